#pragma once
// The program that answers all agents of a brain at once, and its runs in flight.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "compute/base/result.h"
#include "compute/program/program.h"
#include "plugin/agent/decide/agent_slot.h"
#include "plugin/agent/decide/noise.h"
#include "plugin/agent/spec/brain_spec.h"

namespace imprint::agent {

// Inputs and outputs of an inference program, by index; -1 = absent. P brains with A agents each: all agents
// of a brain, or those of one turn.
struct InferGraph {
  ProgramDescription description;
  std::uint32_t agents = 0;  // A
  int observation = -1;      // float32 [P, A, observations]
  int goal = -1;             // int32 [P, A]
  int mask = -1;             // int32 [P, A, choices]: 1 = allowed
  int noise = -1;            // float32 [P, A, choices], added to the values before the choice
  int random_choice =
      -1;          // float32 [P, A, 2]: a random choice, taken where the second is below the change_epsilon
  int drift = -1;  // float32 [P, A, continuous actions]: normal numbers (policies that draw them)
  int opponent = -1;     // int32 [P, A]: entry of the pool that it acts by, -1 = the network's own weights
  int active = -1;       // int32 [P, A]: 1 = this agent asked (recurrent policies)
  int reset = -1;        // int32 [P, A]: 1 = its episode begins (recurrent policies)
  int offset = -1;       // int32 [P, A]: first element in the shared observations; -1 = in `observation`
  int stacked = -1;      // int32 [P, A]: row of the observation copies that it is stacked on; -1 = none
  int copy_rows = -1;    // int32 [P * A]: row of the observation copies to write; -1 = none
  int action_rows = -1;  // int32 [P * A]: row of the shared actions to write; -1 = none
  std::vector<int> branches;  // int32 [P, A] each: the chosen index
  int continuous = -1;        // float32 [P, A, continuous actions]
  int log_deviation = -1;     // float32 [P, 1, continuous actions] of what was drawn
  int values = -1;            // float32 [P, A, outputs]: the outputs of the agent's goal before noise
  int state = -1;  // float32 [P, A, states]: of the cells before this run, where learning needs them
  // Of one run, with bytes moved. A file may ask for any number of operations on a few bytes.
  std::uint64_t most_operations = UINT64_MAX;
};

// One frame's batch in flight.
struct InferenceRun {
  struct Asked {
    std::uint32_t agent = 0;
    std::uint64_t ticket = 0;
    DecisionDraw draw;
    bool explores = false;
  };
  std::uint64_t frame = 0;  // FrameClock::count
  std::vector<Asked> asked;
  bool in_flight = false;
};

class Inference {
 public:
  Inference(InferGraph graph, const BrainSpec& spec);

  bool compiled() const { return program_ != nullptr; }
  // Errors: those of Program::compile; unsupported (most_operations).
  Result<> compile(Runtime& runtime);
  Program& program() { return *program_; }
  const ProgramStats* stats() const { return program_ ? &program_->stats() : nullptr; }

  // A program slot that no run uses; none when the GPU is further behind than the latency allows for.
  std::optional<std::uint32_t> free_slot() const;
  InferenceRun& run(std::uint32_t slot) { return runs_[slot]; }
  std::uint32_t run_count() const { return static_cast<std::uint32_t>(runs_.size()); }

  // ---- inputs of a slot, one agent at a time. Agents that did not ask keep what is there. ----
  void begin(std::uint32_t slot);
  // entry: InferGraph::opponent.
  void put(std::uint32_t slot, std::uint32_t agent, const Choice& choice, std::int32_t entry = -1);
  std::span<std::int32_t> mask(std::uint32_t slot, std::uint32_t agent);
  std::span<float> noise(std::uint32_t slot, std::uint32_t agent);
  std::span<float> random_choice(std::uint32_t slot, std::uint32_t agent);
  std::span<float> drift(std::uint32_t slot, std::uint32_t agent);
  void set_reset(std::uint32_t slot, std::uint32_t agent);
  // Copies the shared observation at `offset` to `row` of the observation copies, whether the agent asks or
  // not. stacked: InferGraph.
  void copy_observation(std::uint32_t slot, std::uint32_t agent, std::int32_t offset, std::int32_t row,
                        std::int32_t stacked);

  // The answer for one agent, once the slot's run is complete. Valid until the next answer().
  struct AgentAnswer {
    std::span<const std::uint32_t> branches;
    std::span<const float> continuous, values;
    std::span<const float> log_deviation;  // empty: continuous actions are not drawn
    std::span<const float> state;          // empty: learning does not need it
  };
  AgentAnswer answer(std::uint32_t slot, std::uint32_t agent);

 private:
  std::uint32_t row_of(std::uint32_t agent) const;
  template <class T>
  std::span<T> input(std::uint32_t slot, int index, std::uint32_t agent, std::size_t count);
  template <class T>
  std::span<const T> output(std::uint32_t slot, int index, std::uint32_t agent, std::size_t count) const;

  InferGraph graph_;
  std::uint32_t agents_per_brain_, period_;
  std::uint32_t observation_count_, choice_count_, continuous_count_, value_count_, state_count_;
  std::unique_ptr<Program> program_;
  std::vector<InferenceRun> runs_;
  std::vector<std::uint32_t> branches_;  // of the last answer
};

// Slots of an inference program: the latency, the frame being filled, and two more for a host that reports
// completed frames late.
std::uint32_t inference_slots(std::uint32_t action_latency_frames);

}  // namespace imprint::agent
