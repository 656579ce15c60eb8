#pragma once
// What the programs of one device share: the storage of variables and constants, transfers between host and state, and command pools.
// A Runtime never submits. It hands out command buffers, and whoever owns the queue (the engine bridge, or run.h) puts them in order.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "compute/base/result.h"
#include "compute/tensor/tensor.h"
#include "compute/vk/device.h"

namespace imprint {

class Program;

// A command buffer of either level with the same content: submit the primary, or execute the secondary in a host's command buffer.
struct Commands {
  VkCommandBuffer primary = VK_NULL_HANDLE;
  VkCommandBuffer secondary = VK_NULL_HANDLE;
  VkCommandBuffer get(VkCommandBufferLevel level) const { return level == VK_COMMAND_BUFFER_LEVEL_PRIMARY ? primary : secondary; }
};

// A copy of variables on its way to the host. Run commands(), and once that work is complete take() the bytes.
class StateReadback {
 public:
  virtual ~StateReadback() = default;                  // release only when its commands are complete or never ran
  virtual const Commands& commands() const = 0;
  virtual std::span<const std::byte> bytes(std::size_t index) const = 0;  // of the index-th variable asked for; valid while this lives
};

// Thread-safe. Outlives its programs; must be destroyed before its device.
class Runtime {
 public:
  static Result<std::unique_ptr<Runtime>> create(vk::Device& device);
  virtual ~Runtime() = default;

  virtual vk::Device& device() = 0;

  // A global barrier (compute and transfer, all accesses), for the start of any slice that follows work of another program. Never changes.
  virtual const Commands& barrier() const = 0;

  // ---- host to state ----
  // Gives the variable storage on this device (if it has none) and queues its initial bytes. Program::compile does this for its variables.
  virtual Status place(const Variable& variable) = 0;
  // Queues new content; bytes.size() must equal the variable's. Takes effect in the order of calls, when the pending uploads run.
  virtual Status write(const Variable& variable, std::span<const std::byte> bytes) = 0;
  // Uploads queued since the last call, as commands to run before anything else (begins and ends with barriers); null handles when there are
  // none. The staging memory is retired after `Device::last_ticket() + 1`, that is with the submission that carries the commands.
  virtual Result<Commands> take_uploads() = 0;
  // The submission that was to carry what the newest take_uploads gave did not happen: it waits again, in front of what was queued since. Call it
  // before anything else is submitted; the commands are gone. Commands without handles: nothing to do.
  virtual void put_back_uploads(const Commands& commands) = 0;
  virtual bool has_uploads() const = 0;

  // ---- state to host ----
  virtual Result<std::unique_ptr<StateReadback>> read(std::span<const Variable> variables) = 0;
};

}  // namespace imprint
