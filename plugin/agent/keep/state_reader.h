#pragma once
// Reads a brain's whole state back to the host, in two parts: what is always on the device, and the replay
// memory, which may be in host memory for a while (memory_eviction.h).

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "compute/base/result.h"
#include "compute/program/runtime.h"
#include "plugin/agent/keep/saved_brain.h"

namespace imprint::agent {

// Frame thread, or between frames. bytes() also on the writer's thread, while nothing else is called.
class StateReader {
 public:
  explicit StateReader(std::span<const StateVariable> state);

  // Takes what is missing: host-visible memory of the state's size. Not on a frame thread.
  Result<> prepare(Runtime& runtime);
  bool prepared() const { return kept_ != nullptr; }
  // Run all of them, in this order.
  std::span<const Commands> commands() const { return commands_; }
  std::span<const std::byte> bytes(
      std::size_t index) const;  // of a state variable, once the commands are complete

  // ---- the replay memory leaves the device and comes back ----
  // The replay memory's variables, in the state's order.
  using Contents = std::vector<std::vector<std::byte>>;
  const Commands& replay_commands() const { return replay_->commands(); }
  std::span<const std::byte> replay_bytes(std::size_t index) const { return replay_->bytes(index); }
  void replay_left(std::shared_ptr<const Contents> content);
  void replay_came_back(std::unique_ptr<StateReadback> readback);  // null where nothing is prepared

 private:
  void list_commands();

  std::vector<StateVariable> state_;
  // Place of a state variable: its index in the replay memory, or among the others.
  struct Place {
    bool replay = false;
    std::size_t index = 0;
  };
  std::vector<Place> places_;
  std::unique_ptr<StateReadback> kept_, replay_;
  std::shared_ptr<const Contents> away_;  // the replay's content
  std::vector<Commands> commands_;
};

}  // namespace imprint::agent
