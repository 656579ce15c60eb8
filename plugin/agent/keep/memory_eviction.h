#pragma once
// Moves a brain's learning off the device when memory runs short, and back when there is room.
//
//   on the device   stays                     leaves
//                   weights, moments,         the replay memory, to host memory
//                   generator, snapshots      the learning program: activations, gradients, inputs and
//                   outputs, inference                 the readback of the replay memory (saves, host copies)
//
// Nothing is lost: after the return the next minibatch has the bits that it would have had anyway. Both ways
// begin and end on the frame thread at a boundary (brain.h); the slow work in between is the file writer's.
// Meanwhile the brain acts and can be saved and copied; new samples, snapshots and restores wait.

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "compute/base/result.h"
#include "compute/program/program.h"
#include "plugin/agent/keep/host_copy.h"
#include "plugin/agent/keep/saving.h"
#include "plugin/agent/keep/snapshots.h"
#include "plugin/agent/keep/state_reader.h"
#include "plugin/agent/learn/training/learning.h"
#include "plugin/agent/spec/brain_services.h"

namespace imprint::agent {

// Frame thread, or between frames, unless marked any-thread.
class MemoryEviction : public std::enable_shared_from_this<MemoryEviction> {
 public:
  // Everything here outlives it; the program must be a device's. replay: the replay memory, empty = none.
  struct Parts {
    const BrainServices& services;
    const BrainSpec& spec;
    Learning& learning;
    Snapshots& snapshots;
    Saving& saving;
    HostCopy& host_copy;
    std::vector<Variable> replay = {};
  };
  explicit MemoryEviction(const Parts& parts) : parts_(parts) {}

  void request(bool evict) { wanted_ = evict; }
  bool present() const { return phase_ == Phase::present; }
  bool evicted() const { return phase_ == Phase::evicted; }
  bool moving() const { return !present() && !evicted(); }
  // Device memory given up, about, in bytes; 0 = none. Any thread.
  std::uint64_t bytes() const { return bytes_; }

  // Content of the replay memory while it is in host memory; else null.
  const std::shared_ptr<StateReader::Contents>& replay() const { return replay_; }
  void replace_replay(std::size_t index, std::vector<std::byte> content);

  // Finishes a move that is done. False while one is under way.
  bool poll();
  // At a boundary with nothing requested: begins a move when one is due. writes: this frame still changes the
  // state.
  Result<> begin(bool writes);
  // For calls between frames, which may wait: afterwards no move is under way.
  void settle();

 private:
  enum class Phase : std::uint8_t {
    present,
    reading,  // the replay memory is on its way to the host
    leaving,  // the writer copies it out of the readback
    evicted,
    returning  // the writer makes everything again
  };
  // Objects that the writer makes.
  struct Returned {
    std::unique_ptr<Program> learning;
    std::vector<Snapshots::Programs> snapshots;
    std::unique_ptr<StateReadback> saving, host_copy;
  };

  Result<> begin_eviction();
  void replay_arrived();
  void begin_return();
  Result<> make_returned();
  void finish();
  void evict();
  void displace_replay();
  void finish_return();

  Parts parts_;
  Phase phase_ = Phase::present;
  bool wanted_ = false;
  std::shared_ptr<StateReader::Contents> replay_;  // null also when it stayed for lack of a readback
  std::atomic<bool> done_{false};                  // the writer's work
  Result<> outcome_;                               // of a return, once done
  Returned returned_;
  std::uint64_t retry_frame_ = 0;  // a failed return is not tried again before
  std::atomic<std::uint64_t> bytes_{0};
};

}  // namespace imprint::agent
