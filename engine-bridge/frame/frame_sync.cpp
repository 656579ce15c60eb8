#include "engine-bridge/frame/frame_sync.h"

#include <algorithm>
#include <utility>

#include "compute/base/text.h"
#include "compute/vk/barrier.h"

namespace imprint::bridge {
namespace {

Result<> check_semaphore(const vk::Device& device, const char* list, std::size_t index,
                         const HostSemaphore& given) {
  const auto where = [&] { return text("frame_submit: ", list, "[", index, "]"); };
  if (!given.semaphore)
    return make_error(ErrorCode::invalid_argument,
                      text(where(), ".semaphore: found null, expected a semaphore."));
  if (given.timeline && !device.capabilities().timeline_semaphore)
    return make_error(ErrorCode::unsupported,
                      text(where(), ": found a timeline semaphore, which needs timelineSemaphore. ",
                           "Declare it among the device's features."));
  return {};
}

}  // namespace

Result<std::unique_ptr<FrameSync>> FrameSync::create(vk::Device& device, CommandSet& commands,
                                                     bool exclusive) {
  std::unique_ptr<FrameSync> sync(new FrameSync(device, commands, exclusive));
  IMPRINT_CHECK(sync->record_barriers());
  for (Buffers* list : {&sync->acquires_, &sync->releases_}) list->reserve(16);
  for (std::vector<HostSemaphore>* list : {&sync->waits_, &sync->completions_}) list->reserve(16);
  return sync;
}

FrameSync::~FrameSync() {
  for (const Shared& shared : shared_)
    if (const auto buffer = shared.buffer.lock()) buffer->close();
}

Result<> FrameSync::record_barriers() {
  const vk::Functions& f = device_.functions();
  IMPRINT_ASSIGN(const Commands exit, commands_.record(true, [&](VkCommandBuffer commands) {
    record_exit_barrier(f, commands, host_use_);
  }));
  Commands entry{};
  if (host_use_.stages) {
    Result<Commands> recorded = commands_.record(
        true, [&](VkCommandBuffer commands) { record_entry_barrier(f, commands, host_use_); });
    if (!recorded.ok()) {
      commands_.retire(exit);
      return recorded.error();
    }
    entry = *recorded;
  }
  commands_.retire(std::exchange(entry_, entry));
  commands_.retire(std::exchange(exit_, exit));
  return {};
}

Result<> FrameSync::record_ownership_transfer(Shared& shared, SharedBuffer& buffer) {
  vk::Handover handover{buffer.description_.buffer, buffer.description_.offset, buffer.description_.size,
                        buffer.host_family(), device_.queue_family()};
  const auto transfer = [&](const vk::Scope& before, const vk::Scope& after) {
    return commands_.record(true, [&](VkCommandBuffer commands) {
      vk::handover_barrier(device_.functions(), commands, before, after, handover);
    });
  };
  // Work stages wait for the semaphore between the two queues, so the acquisition follows those.
  IMPRINT_ASSIGN(shared.acquire, transfer({vk::kWorkStages, 0}, vk::our_accesses(vk::kWorkStages)));
  std::swap(handover.from_family, handover.to_family);
  IMPRINT_ASSIGN(shared.release,
                 transfer(vk::our_writes(vk::kWorkStages), {VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, 0}));
  buffer.acquire_ = shared.acquire;
  buffer.release_ = shared.release;
  return {};
}

void FrameSync::retire_expired() {
  std::erase_if(shared_, [&](const Shared& shared) {
    if (!shared.buffer.expired()) return false;
    commands_.retire(shared.acquire);
    commands_.retire(shared.release);
    return true;
  });
}

Result<> FrameSync::add(const std::shared_ptr<SharedBuffer>& buffer) {
  retire_expired();
  shared_.push_back({buffer, {}, {}});
  if (buffer->transfers_) IMPRINT_CHECK(record_ownership_transfer(shared_.back(), *buffer));
  if (exclusive_ || buffer->host_family() != device_.queue_family()) return {};
  const HostUse before = host_use_;
  host_use_.stages |= buffer->description_.stages;
  host_use_.access |= buffer->description_.access;
  if (before.stages == host_use_.stages && before.access == host_use_.access) return {};
  Result<> recorded = record_barriers();
  if (!recorded.ok()) host_use_ = before;  // so that the next attempt records them
  return recorded;
}

void FrameSync::forget(const std::shared_ptr<SharedBuffer>& buffer) {
  std::erase(acquires_, buffer);
  std::erase(releases_, buffer);
}

Result<> FrameSync::acquire(const std::shared_ptr<SharedBuffer>& buffer) {
  if (!buffer->transfers_) return {};
  if (buffer->owned_by_imprint_)
    return make_error(ErrorCode::wrong_state,
                      text("tensor_acquire: shared buffer '", buffer->description_.name,
                           "': found it with Imprint, expected it with the host. Release it first."));
  buffer->owned_by_imprint_ = true;
  acquires_.push_back(buffer);
  return {};
}

Result<> FrameSync::release(const std::shared_ptr<SharedBuffer>& buffer) {
  if (!buffer->transfers_) return {};
  if (!buffer->owned_by_imprint_ || std::ranges::find(releases_, buffer) != releases_.end())
    return make_error(ErrorCode::wrong_state,
                      text("tensor_release: shared buffer '", buffer->description_.name,
                           "': found it with the host, expected it with Imprint. Acquire it first."));
  releases_.push_back(buffer);
  return {};
}

Result<> FrameSync::add_semaphores(std::span<const HostSemaphore> waits,
                                   std::span<const HostSemaphore> completions) {
  for (std::size_t i = 0; i < waits.size(); ++i)
    IMPRINT_CHECK(check_semaphore(device_, "waits", i, waits[i]));
  for (std::size_t i = 0; i < completions.size(); ++i)
    IMPRINT_CHECK(check_semaphore(device_, "completions", i, completions[i]));
  waits_.insert(waits_.end(), waits.begin(), waits.end());
  completions_.insert(completions_.end(), completions.begin(), completions.end());
  return {};
}

void FrameSync::add_entry(std::vector<VkCommandBuffer>& list, VkCommandBufferLevel level) const {
  for (const auto& buffer : acquires_) list.push_back(buffer->acquire_.get(level));
  if (entry_.primary) list.push_back(entry_.get(level));
}

void FrameSync::add_exit(std::vector<VkCommandBuffer>& list, VkCommandBufferLevel level,
                         bool has_exit_barrier, bool closes_frame) const {
  if (!has_exit_barrier) list.push_back(exit_.get(level));
  if (!closes_frame) return;
  for (const auto& buffer : releases_) list.push_back(buffer->release_.get(level));
}

void FrameSync::entry_issued(bool submitted) {
  acquires_.clear();
  if (submitted) waits_.clear();
}

void FrameSync::exit_issued(bool submitted) {
  for (const auto& buffer : releases_) buffer->owned_by_imprint_ = false;
  releases_.clear();
  if (submitted) completions_.clear();
}

}  // namespace imprint::bridge
