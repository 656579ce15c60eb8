#pragma once
// A brain, or a kennel of brains of one shape, with its agents, on one context. It owns four parts and says
// when each has its turn:
//
//   agents()     what the game does with agents (agents.h)
//   Decisions    answers all agents that asked in a frame with one run of one program (decide/decisions.h)
//   Learning     gathers experience and runs learn steps (learn/training/learning.h)
//   state()      snapshots, files, host copies, memory eviction (keep/brain_state.h)
//
// Learn steps run one after the other. A step that begins in frame f takes in the samples given before it and
// takes effect in frame f + learn_period_frames exactly (engine-bridge/context.h); there the next one begins.
// The moment between two steps is a boundary.
//
// Numbers that are not finite never reach the weights. The device leaves a brain with such a loss or gradient
// out of that step. When the host has read the loss back, that brain stops learning until a snapshot is
// restored or a file loaded.
//
// Functions are for the context's frame thread or, between frames, for one other thread at a time, unless
// marked any-thread.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "compute/base/result.h"
#include "plugin/agent/agents.h"
#include "plugin/agent/decide/decisions.h"
#include "plugin/agent/decide/shared_tensor.h"
#include "plugin/agent/keep/brain_state.h"
#include "plugin/agent/learn/training/learning.h"
#include "plugin/agent/spec/brain_counts.h"
#include "plugin/agent/spec/brain_services.h"
#include "plugin/agent/spec/brain_spec.h"

namespace imprint::agent {

struct BrainInfo {
  std::uint32_t observation_count = 0, goal_count = 0, branch_count = 0, continuous_count = 0,
                brain_count = 0, agent_capacity = 0;
  std::uint32_t action_width = 0;  // of a row of shared actions
  std::uint64_t parameter_count = 0;
};

struct BrainStats {
  BrainCounters counters;
  std::uint64_t samples = 0;
  float last_loss = 0;  // mean over the brains that learned; NaN once one stopped
  std::uint32_t snapshots = 0;
  std::uint32_t infer_dispatches = 0, learn_dispatches = 0, infer_barriers = 0, learn_barriers = 0;
  std::uint32_t late_actions = 0;
  std::uint32_t stopped_brains = 0;  // do not learn any more: their numbers were not finite
  std::uint64_t used_samples = 0;    // taken in by learn steps since creation
  LostExperience lost;
  std::uint64_t alarms = 0;               // Alarm bits
  std::uint64_t fall_backs = 0;           // BrainSpec::fall_back
  float reliability = 0;                  // of a person's words: learn/learners/feedback.h
  float rating = 0;                       // learn/samples/opponents.h, of the first brain
  std::uint32_t kept_demonstrations = 0;  // learn/samples/demonstration_memory.h, all brains
  std::uint64_t host_copy_frame = 0;      // of the newest copy in host memory; 0 = none
  std::uint64_t evicted_bytes = 0;        // device memory that learning has given up, about
  std::uint64_t inference_decisions = 0;  // of counters.decisions, since creation
};

struct PolicyModel;

class Brain {
 public:
  // Makes and places everything that learning takes memory for; compiles nothing. Errors: those of
  // validate(), out_of_*_memory, unsupported (a tensor beyond the device's buffer range), dtype_mismatch and
  // shape_mismatch (of a shared tensor).
  static Result<std::shared_ptr<Brain>> create(const BrainServices& services, const BrainSpec& spec,
                                               const SharedTensors& shared = {});
  static Result<std::shared_ptr<Brain>> create_policy(const BrainServices& services,
                                                      std::unique_ptr<PolicyModel> model,
                                                      const SharedTensors& shared = {});
  ~Brain();
  Brain(const Brain&) = delete;
  Brain& operator=(const Brain&) = delete;

  Agents& agents() { return *agents_; }
  BrainState& state() { return *state_; }
  BrainInfo info() const;    // any-thread
  BrainStats stats() const;  // any-thread
  // Any-thread. Null: it does not learn.
  const Curves* curves() const { return learning_ ? &learning_->curves() : nullptr; }
  // The context's file writer writes them; a failure is logged. Between frames.
  void write_curves(const std::string& path);
  // The game changed: earlier returns are no measure any more. Between frames; for a brain that learns.
  void forget_returns() { learning_->experience().returns().forget(); }
  const BrainSpec& spec() const { return spec_; }
  bool uses(const bridge::SharedBuffer& buffer) const;

  // ---- experience of other processes, between frames; errors: wrong_state (not created for it) ----
  Result<std::uint64_t> sent_bytes() const;
  Result<> take_experience(std::span<std::byte> into);
  Result<bool> give_experience(std::uint32_t source, std::span<const std::byte> from);

  // ---- create-time ----
  // Compiles the programs that are not compiled yet; calls `advance` after each.
  std::size_t programs_to_compile() const;
  Result<> warmup(const std::function<void()>& advance);
  // After warmup: runs each program once that has a pipeline which did not run. The state is afterwards as
  // before.
  Result<> run_once(bool in_frame, std::set<VkPipeline>& ran);
  // Cancels everything in flight, as at destruction: a save that was not read back fails, and the log says
  // so.
  void cancel();
  // After the bridge was drained: ends the step in flight and does what waits for a boundary. Waits for the
  // GPU.
  Result<> settle() { return state_->settle(); }

  // ---- frame thread, or between frames ----
  Result<> set_learning(bool enabled);

  bool asks() const { return decisions_.asks(); }  // an agent waits for a decision to be enqueued

  // ---- frame thread ----
  // At the begin of each frame.
  void begin_frame() { decisions_.begin_frame(); }
  // Once per frame, before the bridge's submit or record: enqueues the frame's inference, what is due at a
  // boundary, and the next learn step if it may begin.
  Result<> enqueue_frame(bool may_learn);

 private:
  Brain(const BrainServices& services, const BrainSpec& spec, const SharedTensors& shared,
        std::uint32_t action_width);

  Result<> check_shared() const;
  Result<> check_sample_memory() const;
  Result<> check_memory_cap() const;
  Result<> make_parts();
  void keep_the_best();

  BrainServices services_;
  BrainSpec spec_;
  BrainCounts counts_;
  std::uint64_t parameter_count_ = 0;
  std::uint32_t action_width_;           // of a row of shared actions
  std::unique_ptr<PolicyModel> policy_;  // null: not a policy from a file
  Decisions decisions_;
  std::shared_ptr<Learning> learning_;  // null: no learner
  std::shared_ptr<BrainState> state_;
  std::unique_ptr<Agents> agents_;
  std::vector<Commands> runs_once_;  // with the frame
};

}  // namespace imprint::agent
