#pragma once
// What stands before and behind a frame's work: barriers towards the host's own use of shared buffers,
// changes of their owner, semaphores.

#include <vulkan/vulkan_core.h>

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "compute/base/result.h"
#include "compute/vk/device.h"
#include "engine-bridge/frame/command_set.h"
#include "engine-bridge/host/shared_buffer.h"

namespace imprint::bridge {

class FrameBorder {
 public:
  // alone: the host uses our queue for nothing, so that barriers of ours cannot order anything of its own.
  static Result<std::unique_ptr<FrameBorder>> create(vk::Device& device, CommandSet& commands, bool alone);
  ~FrameBorder();  // closes the buffers that somebody still holds
  FrameBorder(const FrameBorder&) = delete;
  FrameBorder& operator=(const FrameBorder&) = delete;

  // ---- create-time ----
  Status add(const std::shared_ptr<SharedBuffer>& buffer);   // records what its frames need
  void forget(const std::shared_ptr<SharedBuffer>& buffer);  // changes of its owner that are still to come
  const HostUse& host_use() const { return host_; }

  // ---- frame thread: for the frame's first and last submission, or the one that works after it was refused
  // ---- Errors: wrong_state (not whose turn it is). Nothing to do for a buffer that is not handed over.
  Status acquire(const std::shared_ptr<SharedBuffer>& buffer);
  Status release(const std::shared_ptr<SharedBuffer>& buffer);
  // Errors: invalid_argument (null), unsupported (a timeline semaphore without that feature).
  Status expect(std::span<const HostSemaphore> waits, std::span<const HostSemaphore> signals);
  bool pending() const {
    return !acquires_.empty() || !releases_.empty() || !waits_.empty() || !signals_.empty();
  }

  void open(std::vector<VkCommandBuffer>& list, VkCommandBufferLevel level) const;
  // finished: the exit barrier is in the list. last: nothing more of this frame comes.
  void close(std::vector<VkCommandBuffer>& list, VkCommandBufferLevel level, bool finished, bool last) const;
  std::span<const HostSemaphore> waits() const { return waits_; }
  std::span<const HostSemaphore> signals() const { return signals_; }
  // Given to the GPU; semaphores only by submissions.
  void opened(bool submitted);
  void closed(bool submitted);

 private:
  using Buffers = std::vector<std::shared_ptr<SharedBuffer>>;
  struct Shared {
    std::weak_ptr<SharedBuffer> buffer;
    Commands acquire, release;  // null: it is not handed over
  };

  FrameBorder(vk::Device& device, CommandSet& commands, bool alone)
      : device_(device), commands_(commands), alone_(alone) {}
  Status record_barriers();
  Status record_handover(Shared& shared, SharedBuffer& buffer);
  void retire_expired();

  vk::Device& device_;
  CommandSet& commands_;
  const bool alone_;
  HostUse host_;
  Commands entry_, exit_;  // entry: none while the host shares nothing on this queue
  std::vector<Shared> shared_;
  Buffers acquires_, releases_;
  std::vector<HostSemaphore> waits_, signals_;
};

}  // namespace imprint::bridge
