#pragma once
// A brain's keeping part: snapshots, files, host copies, hashes; when each may touch the state.
//
// The state on the device changes while a learn step is in flight. Snapshots, restores, saves and host copies
// therefore take place at boundaries, the moments between two steps, in the order of the calls: what they
// hold does not depend on the GPU's speed. The host's part (waiting samples, counters) is copied at the call.
//
// Frame thread, or between frames, unless marked any-thread.

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "compute/base/hash.h"
#include "compute/base/result.h"
#include "plugin/agent/decide/decisions.h"
#include "plugin/agent/keep/demonstrations.h"
#include "plugin/agent/keep/host_copy.h"
#include "plugin/agent/keep/memory_eviction.h"
#include "plugin/agent/keep/saving.h"
#include "plugin/agent/keep/snapshots.h"
#include "plugin/agent/learn/training/learning.h"
#include "plugin/agent/spec/run_once.h"

namespace imprint::agent {

class BrainState : public std::enable_shared_from_this<BrainState> {
 public:
  // services, spec, counts and decisions outlive it. learning: null = the brain has no learner. variables:
  // all state on the device; a policy from a file has no state to keep (`changes` false).
  static Result<std::shared_ptr<BrainState>> create(const BrainServices& services, const BrainSpec& spec,
                                                    BrainCounts& counts, Decisions& decisions,
                                                    std::shared_ptr<Learning> learning,
                                                    std::vector<StateVariable> variables, bool changes);

  // ---- create-time ----
  std::size_t programs_to_compile() const;
  Result<> compile(const std::function<void()>& advance);
  // Each program of learning and snapshots, if it has not run. The state is afterwards as before.
  Result<> run_once(RunOnce& runs);
  // Takes the memory that save() in a frame needs. Without room the log says so, and save() works between
  // frames only, once there is room.
  Result<> prepare_saving();
  // Hash of the state on the device and the replay memory's fill; waits. Errors: unsupported (record only;
  // policy).
  Result<Hash128> hash();
  Result<> load(const std::string& path);
  Result<> load_weights(const std::string& path);
  // ---- demonstrations as files: keep/demonstrations.h (keep/brain_demonstrations.cpp) ----
  // brain: UINT32_MAX = each. How many the file has. Errors: those of read_demonstrations; unsupported,
  // shape_mismatch, invalid_argument (no such brain, more than it keeps).
  Result<std::uint32_t> load_demonstrations(const std::string& path, std::uint32_t brain);
  // Errors: unsupported, not_found (none), invalid_argument, those of writing.
  Result<> save_demonstrations(const std::string& path, std::uint32_t brain);
  Result<> clear_demonstrations();

  // ---- for tools that learn one brain in several processes (keep/shared_state.cpp) ----
  // The state that learn steps change, except the replay memory and the places in it. As long as the brain
  // lives.
  std::span<const StateVariable> shared_state() const { return shared_; }
  std::uint64_t shared_bytes() const;
  // The contents one after the other. Errors: wrong_state (a learn step is under way), unsupported (record
  // only; policy).
  Result<> read_shared(std::span<std::byte> into);
  // Keeps experience and the order of learn steps; stopped brains learn again. Errors: as above, and
  // invalid_argument (another size, a number that is not finite or out of range).
  Result<> write_shared(std::span<const std::byte> from);

  // Ends a move of learning's memory that is under way; may wait.
  void settle_eviction();
  // Whether learning is on the device, rather than evicted or on its way.
  bool learning_present() const { return !eviction_ || eviction_->present(); }
  // As at destruction: a save that was not read back fails, and the log says so.
  void cancel();
  bool save_waits_for_gpu() const { return saving_ && saving_->waits_for_gpu(); }
  // Before destruction, when the file writer is done. On a lost device the newest host copy serves a save
  // that was not read back. Errors: the outcome of a save that is not on disk, naming it; told once.
  Result<> close_save();
  // After the bridge was drained: does at once what waits for a boundary. Waits for the GPU.
  Result<> settle();

  // ---- frame thread, or between frames ----
  // In a frame: wrong_state without prepare_saving. On a lost device: writes the newest host copy;
  // device_lost when there is none.
  Result<> save(const std::string& path);
  Result<> save_status();  // not_ready, the outcome, or not_found when nothing was saved
  Result<std::uint64_t> snapshot();
  Result<> restore(std::uint64_t snapshot);
  // Beside the snapshots: BrainSpec::fall_back.
  void keep_best();
  bool has_best() const { return snapshots_ && snapshots_->has_best(); }
  void restore_best();

  // ---- frame thread ----
  // Once per frame, after the frame's inference: enqueues what is due at a boundary. Returns whether a learn
  // step may begin.
  Result<bool> enqueue();
  // As enqueue, when everything before is issued whatever its deadline: ends the step in flight, and enqueues
  // what waits for a boundary. Returns whether anything was enqueued; call again when that is issued.
  Result<bool> enqueue_rest();
  void changed() { changed_ = true; }  // a learn step began

  // Asks learning to give its memory up, or lets it return; takes effect in later frames (memory_eviction.h).
  void request_eviction(bool evict);
  std::uint64_t evicted_bytes() const;    // any-thread
  std::uint64_t host_copy_frame() const;  // any-thread: the newest host copy's; 0 = none

 private:
  // Waits for a boundary.
  struct Request {
    enum class Kind : std::uint8_t { copy, save };
    Kind kind = Kind::copy;
    std::size_t copy = 0;  // index of the snapshot to keep or restore
    bool restores = false;
    // save: the first frame whose inference the readback may follow; 0 = not at a boundary yet.
    std::uint64_t from_frame = 0;
  };

  BrainState(const BrainServices& services, const BrainSpec& spec, BrainCounts& counts, Decisions& decisions,
             std::shared_ptr<Learning> learning, std::vector<StateVariable> variables);

  Result<> run_learning_once(RunOnce& runs);
  Result<> put_back(RunOnce& runs);
  Result<> check_changes(const char* call) const;
  void go_back(const Snapshots::Found& found);
  Result<> check_can_load(const char* call) const;
  Result<> check_shows(const char* call, std::uint32_t brain) const;
  Result<Demonstrations> kept_demonstrations(std::uint32_t brain);
  Result<std::vector<std::byte>> read_save(const char* call, const std::string& path) const;
  Result<> check_between_steps(const char* call) const;
  std::uint64_t state_bytes() const;
  std::vector<Variable> replay_variables() const;
  HostState host_state() const;
  bool copies_wait() const;
  Result<> enqueue_requests(bool& writes);
  Result<> enqueue_save();
  void begin_host_copy(bool writes);
  Result<> enqueue_host_copy();
  void give_up_host_copy();  // that waits for its frame: the state is of another moment by then
  Result<> enqueue_all(std::span<const Commands> commands, std::function<void(std::uint64_t)> on_complete);
  Result<> save_host_copy(const std::string& path);
  // contents: per variable; empty = the variable stays as it is.
  Result<> replace(const char* call, std::vector<std::vector<std::byte>> contents);
  Result<> resume_loaded();
  void hint_at_frames();
  void publish();

  const BrainServices& services_;
  const BrainSpec& spec_;
  BrainCounts& counts_;
  Decisions& decisions_;
  std::shared_ptr<Learning> learning_;
  std::vector<StateVariable> variables_;
  std::vector<StateVariable> shared_;           // without Merge::none
  std::unique_ptr<StateReader> shared_reader_;  // once it was asked for
  std::unique_ptr<Snapshots> snapshots_;        // null of a policy, as are the next two
  std::unique_ptr<Saving> saving_;
  std::unique_ptr<HostCopy> host_copy_;
  std::uint64_t polled_at_ = 0;  // frames at the last poll of a save
  std::uint32_t polls_ = 0;      // since then
  bool hinted_at_frames_ = false;
  std::shared_ptr<MemoryEviction> eviction_;  // null where nothing can be evicted
  std::deque<Request> requests_;              // in the order of the calls
  std::shared_ptr<StateCopy> beside_;         // while learning runs once
  bool put_back_pending_ = false;             // learning ran once, and beside_ has the state from before
  std::uint64_t host_copy_from_ = 0;          // the first frame whose inference its readback may follow
  std::uint64_t next_host_copy_ = 0;          // the first frame in which another one is due
  bool changed_ = true;                       // since the newest host copy
};

}  // namespace imprint::agent
