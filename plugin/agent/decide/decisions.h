#pragma once
// A brain's deciding part: answers all agents that asked in a frame with one run of one program over all
// agents [P, A], enqueued in that frame. Frame thread, or between frames.

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "compute/base/result.h"
#include "plugin/agent/decide/inference.h"
#include "plugin/agent/decide/noise.h"
#include "plugin/agent/decide/observation_copy.h"
#include "plugin/agent/decide/shared_tensor.h"
#include "plugin/agent/spec/brain_counts.h"
#include "plugin/agent/spec/brain_services.h"
#include "plugin/agent/spec/run_once.h"

namespace imprint::agent {

class Decisions {
 public:
  // The learner's part of decisions in learning mode. Empty functions: version 0, and Gaussian noise of
  // BrainSpec::exploration.
  struct LearnerHooks {
    std::function<std::uint64_t(std::uint32_t brain)> version;  // of the weights that decide now
    std::function<void(const DecisionDraw&, std::span<const std::int32_t> allowed, std::span<float> noise)>
        explore;
    std::function<bool(std::uint32_t brain)> slow;  // DecisionDraw::slow
  };

  // services, spec and counts outlive it. keeps: AgentSlot.
  Decisions(const BrainServices& services, const BrainSpec& spec, const SharedTensors& shared,
            BrainCounts& counts, AgentSlot::Keeps keeps);

  void set_graph(InferGraph graph) { inference_ = std::make_unique<Inference>(std::move(graph), spec_); }
  void set_hooks(LearnerHooks hooks) { hooks_ = std::move(hooks); }
  bool compiled() const { return inference_->compiled(); }
  Result<> compile();
  void cancel();                     // the run in flight, before this is destroyed
  Result<> run_once(RunOnce& runs);  // without an agent; if no run was enqueued since compile()

  // Appends what the agent's group sees, and its number before it; without a group what the agent sees
  // itself. leaves: without the agent.
  void see_group(std::uint32_t agent, bool leaves, std::vector<float>& into) const;
  void begin_frame();  // after the answers that arrived
  bool asks() const;   // an agent waits for a run
  // Enqueues the frame's run. A further call in the frame serves those who asked since. Errors: wrong_state
  // (a shared tensor belongs to the host's queue family).
  Result<> enqueue();

  std::span<AgentSlot> agents() { return agents_; }
  AgentSlot& agent(std::uint32_t index) { return agents_[index]; }
  // A recurrent policy's state begins again with the agent's next decision.
  void reset_state(std::uint32_t agent) { resets_[agent] = 1; }
  const SharedTensors& shared() const { return shared_; }
  // [agents] the newest observation copy that is on the device.
  const CopyLedger& captured() const { return captured_; }

  std::uint64_t noise_seed() const { return noise_seed_; }
  void set_noise_seed(std::uint64_t seed) { noise_seed_ = seed; }

 private:
  // All three for this frame.
  bool has_turn(std::uint32_t agent) const { return spec_.turn_of(agent) == turn_; }
  bool decides(std::uint32_t agent) const;
  bool copies(std::uint32_t agent) const;
  Result<> check_owned() const;
  void fill(std::uint32_t slot);
  std::int32_t stacked_row(std::uint32_t agent, const AgentSlot::PendingCopy& copy) const;
  void count_decisions();
  DecisionDraw draw_of(std::uint32_t agent, std::uint64_t decision) const;
  bool explores(std::uint32_t agent) const { return agents_[agent].mode() == Mode::learning; }
  void explore(std::span<float> noise, std::span<const std::int32_t> allowed, bool learning,
               const DecisionDraw& draw) const;
  // The numbers that were drawn, from the means and the draw's own random numbers.
  Drawn drawn(const Inference::AgentAnswer& answer, const InferenceRun::Asked& asked);
  void finish(std::uint32_t slot);
  void choose_latency();  // grows where the host's safe frame is behind it
  void note_overdue();
  void note_lateness(std::uint64_t frames);  // of one run, from question to answer
  void note_bans(const AgentSlot& agent);

  const BrainServices& services_;
  const BrainSpec& spec_;
  SharedTensors shared_;
  BrainCounts& counts_;
  LearnerHooks hooks_;
  std::vector<AgentSlot> agents_;
  std::unique_ptr<Inference> inference_;
  bool ran_ = false;  // since it was compiled
  std::uint64_t noise_seed_;
  std::uint32_t latency_;
  std::uint32_t late_runs_ = 0;    // one after the other
  std::uint64_t most_frames_ = 0;  // of these, from question to answer
  std::uint32_t turn_ = 0;         // the agents that decide now: BrainSpec::turn_of
  bool turn_taken_ = false;        // in this frame: the next frame is the next turn's
  CopyLedger captured_;
  std::vector<std::uint8_t> resets_;    // [agents]
  std::vector<float> drift_, drawn_;    // [continuous actions] of one answer
  std::vector<std::uint64_t> decided_;  // [P] decisions of all agents, before this frame
};

}  // namespace imprint::agent
