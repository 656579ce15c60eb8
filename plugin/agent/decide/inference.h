#pragma once
// One program that answers all agents of a brain at once, and its runs under way.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "compute/base/result.h"
#include "compute/program/program.h"
#include "plugin/agent/decide/agent_slot.h"
#include "plugin/agent/schema.h"

namespace imprint::agent {

// What an inference program takes and gives, by index into its inputs and outputs; -1 = not there. P brains,
// A agents each: all of a brain's, or those of one turn.
struct InferGraph {
  ProgramDescription description;
  std::uint32_t agents = 0;  // A
  int observation = -1;      // float32 [P, A, observations]
  int goal = -1;             // int32 [P, A]
  int mask = -1;             // int32 [P, A, choices]: 1 = may be chosen
  int noise = -1;            // float32 [P, A, choices], added to the values before the choice
  int active = -1;           // int32 [P, A]: 1 = this agent asked (recurrent policies)
  int reset = -1;            // int32 [P, A]: 1 = its episode begins (recurrent policies)
  int place =
      -1;  // int32 [P, A]: first element of the observation in the shared buffer; -1 = it is in `observation`
  int sight_rows =
      -1;  // int32 [P * A]: row of the ring of sights that keeps the observation (sight.h); -1 = none
  int action_rows = -1;       // int32 [P * A]: row of the shared actions that takes the answer; -1 = none
  std::vector<int> branches;  // int32 [P, A] each: the chosen index
  int continuous = -1;        // float32 [P, A, continuous actions]
  int values = -1;            // float32 [P, A, outputs]: the agent's goal's outputs before noise
};

// One frame's batch on its way.
struct InferenceRun {
  struct Asked {
    std::uint32_t seat = 0;
    std::uint64_t ticket = 0;
  };
  std::uint64_t frame = 0;
  std::vector<Asked> asked;
  bool under_way = false;
};

class Inference {
 public:
  Inference(InferGraph graph, const BrainSpec& spec);

  bool compiled() const { return program_ != nullptr; }
  Status compile(Runtime& runtime);
  Program& program() { return *program_; }
  const ProgramStats* stats() const { return program_ ? &program_->stats() : nullptr; }

  // A slot of the program that no run uses; none when the GPU is further behind than the latency allows for.
  std::optional<std::uint32_t> free_slot() const;
  InferenceRun& run(std::uint32_t slot) { return runs_[slot]; }

  // The slot's inputs of one seat. Seats that did not ask keep what is there.
  void begin(std::uint32_t slot);
  void put(std::uint32_t slot, std::uint32_t seat, const Choice& choice);
  std::span<std::int32_t> mask(std::uint32_t slot, std::uint32_t seat);
  std::span<float> noise(std::uint32_t slot, std::uint32_t seat);
  void set_reset(std::uint32_t slot, std::uint32_t seat);
  // Looks at the shared buffer without deciding, or keeps what the decision looks at. row: of the ring of
  // sights.
  void look(std::uint32_t slot, std::uint32_t seat, std::int32_t place, std::int32_t row);

  // The slot's answer for one seat, once its run is complete. Valid until the next answer().
  struct SeatAnswer {
    std::span<const std::uint32_t> branches;
    std::span<const float> continuous, values;
  };
  SeatAnswer answer(std::uint32_t slot, std::uint32_t seat);

 private:
  std::uint32_t row_of(std::uint32_t seat) const;
  template <class T>
  std::span<T> input(std::uint32_t slot, int index, std::uint32_t seat, std::size_t count);
  template <class T>
  std::span<const T> output(std::uint32_t slot, int index, std::uint32_t seat, std::size_t count) const;

  InferGraph graph_;
  std::uint32_t agents_per_brain_, period_;
  std::uint32_t observation_count_, choice_count_, continuous_count_, value_count_;
  std::unique_ptr<Program> program_;
  std::vector<InferenceRun> runs_;
  std::vector<std::uint32_t> branches_;  // of the last answer
};

// Slots of an inference program: the latency, the frame being filled, and two more for a host that tells late
// that the GPU is done.
std::uint32_t inference_slots(std::uint32_t action_latency_frames);

}  // namespace imprint::agent
