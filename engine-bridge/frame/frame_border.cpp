#include "engine-bridge/frame/frame_border.h"

#include <algorithm>
#include <string>
#include <utility>

#include "compute/vk/barrier.h"

namespace imprint::bridge {
namespace {

Status check_semaphore(const vk::Device& device, const char* which, std::size_t index,
                       const HostSemaphore& given) {
  const std::string where = std::string("submit: ") + which + "[" + std::to_string(index) + "]";
  if (!given.semaphore) return make_error(ErrorCode::invalid_argument, where + ".semaphore is null");
  if (given.timeline && !device.capabilities().timeline_semaphore)
    return make_error(
        ErrorCode::unsupported,
        where +
            " is a timeline semaphore, but timelineSemaphore was not declared among the device's features");
  return {};
}

}  // namespace

Result<std::unique_ptr<FrameBorder>> FrameBorder::create(vk::Device& device, CommandSet& commands,
                                                         bool alone) {
  std::unique_ptr<FrameBorder> border(new FrameBorder(device, commands, alone));
  IMPRINT_CHECK(border->record_barriers());
  for (Buffers* list : {&border->acquires_, &border->releases_}) list->reserve(16);
  for (std::vector<HostSemaphore>* list : {&border->waits_, &border->signals_}) list->reserve(16);
  return border;
}

FrameBorder::~FrameBorder() {
  for (const Shared& shared : shared_)
    if (const auto buffer = shared.buffer.lock()) buffer->close();
}

Status FrameBorder::record_barriers() {
  const vk::Functions& f = device_.functions();
  IMPRINT_ASSIGN(const Commands exit, commands_.record(true, [&](VkCommandBuffer commands) {
    record_exit_barrier(f, commands, host_);
  }));
  Commands entry{};
  if (host_.stages) {
    Result<Commands> recorded =
        commands_.record(true, [&](VkCommandBuffer commands) { record_entry_barrier(f, commands, host_); });
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

Status FrameBorder::record_handover(Shared& shared, SharedBuffer& buffer) {
  vk::Handover handover{buffer.description_.buffer, buffer.description_.offset, buffer.description_.size,
                        buffer.host_family(), device_.queue_family()};
  const auto transfer = [&](const vk::Scope& before, const vk::Scope& after) {
    return commands_.record(true, [&](VkCommandBuffer commands) {
      vk::handover_barrier(device_.functions(), commands, before, after, handover);
    });
  };
  // The semaphore between the two queues is waited for in our stages, so the acquisition follows those.
  IMPRINT_ASSIGN(shared.acquire, transfer({vk::kWorkStages, 0}, vk::our_accesses(vk::kWorkStages)));
  std::swap(handover.from_family, handover.to_family);
  IMPRINT_ASSIGN(shared.release,
                 transfer(vk::our_writes(vk::kWorkStages), {VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, 0}));
  buffer.acquire_ = shared.acquire;
  buffer.release_ = shared.release;
  return {};
}

void FrameBorder::retire_expired() {
  std::erase_if(shared_, [&](const Shared& shared) {
    if (!shared.buffer.expired()) return false;
    commands_.retire(shared.acquire);
    commands_.retire(shared.release);
    return true;
  });
}

Status FrameBorder::add(const std::shared_ptr<SharedBuffer>& buffer) {
  retire_expired();
  shared_.push_back({buffer, {}, {}});
  if (buffer->transfers_) IMPRINT_CHECK(record_handover(shared_.back(), *buffer));
  if (alone_ || buffer->host_family() != device_.queue_family()) return {};
  const HostUse before = host_;
  host_.stages |= buffer->description_.stages;
  host_.access |= buffer->description_.access;
  if (before.stages == host_.stages && before.access == host_.access) return {};
  Status recorded = record_barriers();
  if (!recorded.ok()) host_ = before;  // so that the next attempt records them
  return recorded;
}

void FrameBorder::forget(const std::shared_ptr<SharedBuffer>& buffer) {
  std::erase(acquires_, buffer);
  std::erase(releases_, buffer);
}

Status FrameBorder::acquire(const std::shared_ptr<SharedBuffer>& buffer) {
  if (!buffer->transfers_) return {};
  if (buffer->ours_)
    return make_error(ErrorCode::wrong_state, "acquire: shared buffer '" + buffer->description_.name +
                                                  "' is with Imprint already; release it first");
  buffer->ours_ = true;
  acquires_.push_back(buffer);
  return {};
}

Status FrameBorder::release(const std::shared_ptr<SharedBuffer>& buffer) {
  if (!buffer->transfers_) return {};
  if (!buffer->ours_ || std::ranges::find(releases_, buffer) != releases_.end())
    return make_error(ErrorCode::wrong_state, "release: shared buffer '" + buffer->description_.name +
                                                  "' is with the host; acquire it first");
  releases_.push_back(buffer);
  return {};
}

Status FrameBorder::expect(std::span<const HostSemaphore> waits, std::span<const HostSemaphore> signals) {
  for (std::size_t i = 0; i < waits.size(); ++i)
    IMPRINT_CHECK(check_semaphore(device_, "waits", i, waits[i]));
  for (std::size_t i = 0; i < signals.size(); ++i)
    IMPRINT_CHECK(check_semaphore(device_, "signals", i, signals[i]));
  waits_.insert(waits_.end(), waits.begin(), waits.end());
  signals_.insert(signals_.end(), signals.begin(), signals.end());
  return {};
}

void FrameBorder::open(std::vector<VkCommandBuffer>& list, VkCommandBufferLevel level) const {
  for (const auto& buffer : acquires_) list.push_back(buffer->acquire_.get(level));
  if (entry_.primary) list.push_back(entry_.get(level));
}

void FrameBorder::close(std::vector<VkCommandBuffer>& list, VkCommandBufferLevel level, bool finished,
                        bool last) const {
  if (!finished) list.push_back(exit_.get(level));
  if (!last) return;
  for (const auto& buffer : releases_) list.push_back(buffer->release_.get(level));
}

void FrameBorder::opened(bool submitted) {
  acquires_.clear();
  if (submitted) waits_.clear();
}

void FrameBorder::closed(bool submitted) {
  for (const auto& buffer : releases_) buffer->ours_ = false;
  releases_.clear();
  if (submitted) signals_.clear();
}

}  // namespace imprint::bridge
