#pragma once
// The way of a brain's whole state to the host, in two parts: what always lies on the device, and the replay
// memory, which may have left it for a while (retreat.h) and is then read from where it went.

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "compute/base/result.h"
#include "compute/program/runtime.h"
#include "plugin/agent/keep/saved_brain.h"

namespace imprint::agent {

inline constexpr const char* kReplayName = "replay";  // of its state variable

// Frame thread, or between frames; bytes() also on the writer's thread, until when nothing else may be
// called.
class StateReader {
 public:
  explicit StateReader(std::span<const StateVariable> state);

  // Makes what is missing: as much host-visible memory as the state on the device is long. Not on a frame
  // thread.
  Status prepare(Runtime& runtime);
  bool prepared() const { return kept_ != nullptr; }
  // To be run, all of them, in this order.
  std::span<const Commands> commands() const { return commands_; }
  std::span<const std::byte> bytes(
      std::size_t index) const;  // of a state variable, once the commands are complete

  // ---- the replay memory leaves the device and comes back ----
  const Commands& replay_commands() const { return replay_->commands(); }
  std::span<const std::byte> replay_bytes() const { return replay_->bytes(0); }
  void replay_left(std::shared_ptr<const std::vector<std::byte>> content);
  void replay_came_back(std::unique_ptr<StateReadback> readback);  // null where nothing is prepared

 private:
  void list_commands();

  std::vector<StateVariable> state_;
  std::size_t replay_index_;  // state_.size(): there is none
  std::unique_ptr<StateReadback> kept_, replay_;
  std::shared_ptr<const std::vector<std::byte>> away_;  // the replay's content
  std::vector<Commands> commands_;
};

}  // namespace imprint::agent
