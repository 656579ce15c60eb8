#pragma once
// A brain, or a kennel of brains of one shape, with its agents, on one context: what it costs, what it can
// do, when things happen.
//
// Inference. All agents that asked in a frame are answered by one run of one program over all seats [P, A],
// enqueued in that frame.
//
// Learning. While learning is on and there are samples, one step after the other: a step begun in frame f
// takes in the samples given before it and takes effect in frame f + learn_period_frames exactly
// (engine-bridge/context.h); there the next one begins. The moment between two steps is a boundary.
// Snapshots, restores and saves take place at boundaries, in the order of the calls, so that what they hold
// does not depend on the speed of the GPU. What the host keeps (samples waiting, counters) is copied at the
// call itself.
//
// Some learners learn from whole steps (LearnerTraits::follows): what agents do goes onto a trail for each
// (trail.h), and becomes a sample once it is known what came of it. What is on a trail is in no file and no
// snapshot, and restoring, loading and switching learning off forget it.
//
// Numbers that are not finite never reach the weights: a brain whose loss or gradient is not finite is left
// out of that step on the device, and when the loss has been read back it stops learning until a snapshot is
// restored or a file loaded.
//
// Methods are for the context's frame thread or, between frames, for one other thread at a time, unless
// marked any-thread.

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "compute/base/log.h"
#include "compute/base/result.h"
#include "engine-bridge/context.h"
#include "plugin/agent/decide/agent_slot.h"
#include "plugin/agent/decide/inference.h"
#include "plugin/agent/decide/shared_tensor.h"
#include "plugin/agent/keep/file_writer.h"
#include "plugin/agent/keep/saved_brain.h"
#include "plugin/agent/learn/credit.h"
#include "plugin/agent/learn/replay.h"
#include "plugin/agent/learn/trail.h"
#include "plugin/agent/schema.h"

namespace imprint::agent {

struct FrameClock {
  std::uint64_t frame = 0;
  double time_s = 0;
  bool open = false;  // between frame_begin and frame_end
};

// What a brain lives in; all of it outlives the brain.
struct Surroundings {
  bridge::Context& context;
  FileWriter& files;
  const FrameClock& clock;
  const std::uint32_t& shadow_period_frames;  // of the copies in host memory; 0 = none
  LogSink log;
};

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
  std::uint32_t stopped_brains = 0;   // that no longer learn because their numbers were not finite
  std::uint64_t dropped_samples = 0;  // given faster than steps take them in
  std::uint64_t shadow_frame = 0;     // of the newest copy in host memory; 0 = none
  std::uint64_t bytes_away = 0;       // see Brain::bytes_away
};

enum class CreditKind : std::uint8_t { by_onset, current };

struct Feedback {
  float value = 0, weight = 1;
  CreditKind credit = CreditKind::by_onset;
  double time_s = 0;
  bool pushes_rivals = true;  // when value > 0: BrainSpec::margin
};

struct Demonstration {
  std::span<const float> observation;
  std::uint32_t goal = 0;
  std::span<const std::uint32_t> branches;
  std::span<const float> continuous;
  float weight = 2;
};

class Learner;
struct Retreat;
class Saving;
class Shadow;
class Snapshots;
struct PolicyModel;

class Brain : public std::enable_shared_from_this<Brain> {
 public:
  // Makes and places everything that learning takes memory for; compiles nothing. Errors: those of
  // validate(), out_of_*_memory, unsupported (a tensor beyond the device's buffer range), dtype_mismatch and
  // shape_mismatch (of a shared tensor).
  static Result<std::shared_ptr<Brain>> create(const Surroundings& surroundings, const BrainSpec& spec,
                                               const SharedTensors& shared = {});
  static Result<std::shared_ptr<Brain>> create_policy(const Surroundings& surroundings,
                                                      std::unique_ptr<PolicyModel> model,
                                                      const SharedTensors& shared = {});
  ~Brain();

  BrainInfo info() const;    // any-thread
  BrainStats stats() const;  // any-thread
  const BrainSpec& spec() const { return spec_; }
  bool uses(const bridge::SharedBuffer& buffer) const {
    return shared_.observations.buffer.get() == &buffer || shared_.actions.buffer.get() == &buffer;
  }

  // ---- create-time ----
  // Compiles the programs that are not compiled yet; `advance` is called after each.
  std::size_t programs_to_compile() const;
  Status warmup(const std::function<void()>& advance);
  // Takes the memory that save() in a frame needs. Where there is none the log says so, and save() works
  // between frames only, once there is.
  Status prepare_saving();
  Result<Hash128>
  hash();  // of the state on the device and the replay's fill; waits. Errors: unsupported (record only)
  Status load(const std::string& path);
  Status load_weights(const std::string& path);
  Result<std::uint32_t> add_agent(
      std::uint32_t brain_index);  // its seat. Errors: invalid_argument, unsupported (all seats taken)
  void remove_agent(std::uint32_t seat);
  // Forgets what is on its way, as when it is destroyed: a save that was not read back fails, and the log
  // says so.
  void give_up();
  // Asks learning to give its memory up, or lets it come back (retreat.h); it goes and comes in later frames.
  // Frame thread.
  void ask_to_retreat(bool retreat);
  std::uint64_t bytes_away()
      const;  // any-thread: of device memory, about, that learning has given up; 0 = none
  // After the bridge was drained: the step under way is over, and what waits for a boundary is done at once.
  // Waits for the GPU.
  Status settle();

  // ---- frame thread, or between frames ----
  Status set_learning(bool enabled);
  // In a frame: wrong_state without prepare_saving. On a lost device: writes the newest shadow, or
  // device_lost when there is none.
  Status save(const std::string& path);
  Status save_status();  // not_ready, or the outcome; not_found when there was none
  Result<std::uint64_t> snapshot();
  Status restore(std::uint64_t snapshot);
  Status set_mode(std::uint32_t seat, Mode mode);
  Status set_goal(std::uint32_t seat, std::uint32_t goal);
  Status set_mask(std::uint32_t seat, std::span<const std::uint8_t> allowed);  // empty = all

  // ---- frame thread ----
  Status observe(std::uint32_t seat, std::span<const float> observation);
  // What it sees begins at this element of the shared observations when the frame's work runs. Errors:
  // unsupported (nothing is shared), invalid_argument (reaches beyond).
  Status observe_in_place(std::uint32_t seat, std::uint64_t place);
  Result<const Answer*> act(std::uint32_t seat);  // not_ready, not_found; valid until the seat's next call
  Status act_by_heuristic(std::uint32_t seat, std::span<const std::uint32_t> branches,
                          std::span<const float> continuous);
  Status feedback(std::uint32_t seat, const Feedback& feedback);
  Status demonstrate(std::uint32_t seat, const Demonstration& demonstration);
  Status reward(std::uint32_t seat, float reward);
  Status end_episode(std::uint32_t seat, EpisodeEnd end);
  // Once a frame, before the bridge's submit or record: enqueues the frame's inference, what is due at a
  // boundary, and the next step unless the context may not learn at all.
  Status enqueue_frame(bool may_learn);

 private:
  Brain(const Surroundings& surroundings, const BrainSpec& spec, const SharedTensors& shared,
        std::uint32_t action_width);

  Status check_shared() const;
  Status check_memory() const;
  Status check_turns() const;
  Status build_learning();
  Status enqueue_inference();
  void finish_inference(std::uint32_t slot);
  Status enqueue_save();
  void begin_shadow(bool writes);
  Status enqueue_shadow();
  Status enqueue_all(std::span<const Commands> commands, std::function<void(std::uint64_t)> on_complete);
  bool copies_wait() const;
  Status enqueue_requests(std::uint64_t frame, bool& writes);
  Status save_shadow(const std::string& path);
  Status check_can_load(const char* call) const;
  void drop_step();
  Status replace_state(const char* call,
                       std::vector<std::vector<std::byte>> contents);  // empty: the variable stays as it is
  Status go_on_from_loaded();
  void finish_step(std::uint32_t slot);
  Status start_step();
  Status check_demonstrable(const char* call, std::uint32_t goal, std::span<const std::uint32_t> branches,
                            std::span<const float> continuous) const;
  void give_credit(std::uint32_t seat, const Feedback& feedback);  // to credits_
  void close_scolded(std::uint32_t seat);                          // the action that credits_ mean most
  bool follows(std::uint32_t seat) const;     // what this agent does becomes steps to learn from
  void forget_steps();                        // that are not samples yet, of all agents
  void remember_settled(std::uint32_t seat);  // steps that are whole become samples
  std::span<float> new_sample(std::uint32_t seat, const Choice& choice);  // with what was seen and done
  void remember(std::uint32_t seat, const Choice& choice, float target, float weight,
                bool pushes_rivals = true);
  void remember(std::uint32_t seat, const Step& step);
  void explore(std::span<float> noise, std::span<const std::int32_t> allowed, std::uint32_t seat,
               std::uint64_t draw) const;
  // ---- brain_memory.cpp ----
  const Variable* replay_variable() const;
  Status move_memory(bool writes);
  Status begin_retreat();
  void replay_arrived();
  void begin_return();
  Status come_back();
  void finish_move();
  void leave();
  void settle_return();
  void settle_memory();
  HostState host_state() const;
  void publish();
  std::uint64_t stream() const { return reinterpret_cast<std::uintptr_t>(this); }

  // What waits for a boundary, in the order of the calls.
  struct Request {
    enum class Kind : std::uint8_t { copy, save };
    Kind kind = Kind::copy;
    std::size_t copy = 0;  // of the snapshots, to be kept or restored
    bool restores = false;
    std::uint64_t from_frame =
        0;  // save: the frame whose inference may be followed by the readback; 0 = not at a boundary yet
  };

  Surroundings at_;
  BrainSpec spec_;
  SampleLayout layout_;
  std::uint64_t parameter_count_ = 0;
  std::uint64_t noise_seed_ = 0;
  std::vector<Seat> seats_;
  std::vector<Trail> trails_;               // [seats] of a learner that follows (LearnerTraits), else none
  std::vector<std::uint32_t> newest_step_;  // [P] the seat whose step became a sample last
  std::vector<std::uint8_t> broken_;        // [seats] its last step did not become a sample
  SharedTensors shared_;
  std::uint32_t action_width_;           // of a row of shared actions
  std::uint32_t turn_ = 0;               // whose decisions the next frame takes: BrainSpec::turn_of
  std::vector<std::uint64_t> captured_;  // [seats] newest sight that is on the device
  std::vector<std::uint8_t> resets_;  // [seats] a recurrent policy's state begins anew with the next decision
  std::unique_ptr<PolicyModel> policy_;
  std::unique_ptr<Inference> inference_;
  std::vector<StateVariable> state_;
  std::unique_ptr<Learner> learner_;
  std::unique_ptr<Snapshots> snapshots_;
  std::unique_ptr<Saving> saving_;
  std::unique_ptr<Shadow> shadow_;
  std::unique_ptr<Retreat> retreat_;  // null where there is nothing to give up
  std::uint64_t shadow_from_ = 0;     // the frame whose inference may be followed by its readback
  std::uint64_t next_shadow_ = 0;     // frame from which another one is due
  bool changed_ = true;               // since the newest shadow
  std::deque<Request> requests_;
  std::vector<Credit> credits_;  // of one feedback; kept for its memory
  bool learning_ = true;

  // Written by the frame thread, read by any.
  struct Counts;
  std::unique_ptr<Counts> counts_;
};

}  // namespace imprint::agent
