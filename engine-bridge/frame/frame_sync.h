#pragma once
// Orders a frame's work with the host's: barriers for shared buffers, changes of their owner, semaphores.

#include <vulkan/vulkan_core.h>

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "compute/base/result.h"
#include "compute/vk/device.h"
#include "engine-bridge/frame/command_set.h"
#include "engine-bridge/host/host_semaphore.h"
#include "engine-bridge/host/shared_buffer.h"

namespace imprint::bridge {

class FrameSync {
 public:
  // exclusive: the queue is Imprint's alone, so that barriers cannot order the host's work.
  static Result<std::unique_ptr<FrameSync>> create(vk::Device& device, CommandSet& commands, bool exclusive);
  ~FrameSync();  // closes buffers that are still held
  FrameSync(const FrameSync&) = delete;
  FrameSync& operator=(const FrameSync&) = delete;

  // ---- create-time ----
  Result<> add(const std::shared_ptr<SharedBuffer>& buffer);  // records its barriers
  void forget(const std::shared_ptr<SharedBuffer>& buffer);   // drops changes of owner not yet issued
  const HostUse& host_use() const { return host_use_; }

  // ---- frame thread; these go with the frame's next issued work ----
  // Nothing to do without SharedBuffer::transfers. Errors: wrong_state (the other side owns it).
  Result<> acquire(const std::shared_ptr<SharedBuffer>& buffer);
  Result<> release(const std::shared_ptr<SharedBuffer>& buffer);
  // Errors: invalid_argument (null), unsupported (a timeline semaphore without that feature).
  Result<> add_semaphores(std::span<const HostSemaphore> waits, std::span<const HostSemaphore> completions);
  bool pending() const {
    return !acquires_.empty() || !releases_.empty() || !waits_.empty() || !completions_.empty();
  }

  void add_entry(std::vector<VkCommandBuffer>& list, VkCommandBufferLevel level) const;
  // has_exit_barrier: `list` contains it. closes_frame: nothing more of this frame follows.
  void add_exit(std::vector<VkCommandBuffer>& list, VkCommandBufferLevel level, bool has_exit_barrier,
                bool closes_frame) const;
  std::span<const HostSemaphore> waits() const { return waits_; }
  std::span<const HostSemaphore> completions() const { return completions_; }
  // Call after the added commands were submitted or recorded. submitted: with semaphores.
  void entry_issued(bool submitted);
  void exit_issued(bool submitted);

 private:
  using Buffers = std::vector<std::shared_ptr<SharedBuffer>>;
  struct Shared {
    std::weak_ptr<SharedBuffer> buffer;
    Commands acquire, release;  // null without SharedBuffer::transfers
  };

  FrameSync(vk::Device& device, CommandSet& commands, bool exclusive)
      : device_(device), commands_(commands), exclusive_(exclusive) {}
  Result<> record_barriers();
  Result<> record_ownership_transfer(Shared& shared, SharedBuffer& buffer);
  void retire_expired();

  vk::Device& device_;
  CommandSet& commands_;
  const bool exclusive_;
  HostUse host_use_;
  Commands entry_, exit_;  // entry_ null: the host shares nothing on this queue
  std::vector<Shared> shared_;
  Buffers acquires_, releases_;
  std::vector<HostSemaphore> waits_, completions_;
};

}  // namespace imprint::bridge
