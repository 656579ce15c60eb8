// Uploads of a device's runtime: a queue of bytes for ranges of device memory. Bytes wait in staging memory,
// up to kUploadRing of them, and beyond that where they are.

#include <algorithm>
#include <cstring>

#include "compute/program/runtime_impl.h"
#include "compute/vk/queue.h"

namespace imprint {

using namespace program;

namespace {

constexpr std::uint64_t kStagingAlignment = 256;
constexpr std::uint64_t kUploadTimeout = 120'000'000'000;  // nanoseconds

bool overlap(const vk::Allocation& a, const vk::Allocation& b) {
  return a.buffer == b.buffer && a.offset < b.offset + b.size && b.offset < a.offset + a.size;
}

// Replay memories and moments start as zeros: many megabytes for many agents. The device fills zeros by
// itself, in whole words.
bool device_can_fill(const vk::Allocation& target, std::span<const std::byte> bytes) {
  return target.size % 4 == 0 &&
         std::ranges::all_of(bytes, [](std::byte byte) { return byte == std::byte{0}; });
}

}  // namespace

Result<Commands> program::stream_uploads(Runtime& runtime, vk::Queue& queue) {
  for (;;) {
    IMPRINT_ASSIGN(const Commands uploads, runtime.take_uploads(kUploadRing));
    if (!uploads.primary || !runtime.has_uploads()) return uploads;
    const Result<vk::Ticket> ticket = queue.submit(std::span(&uploads.primary, 1));
    if (!ticket) {
      runtime.put_back_uploads(uploads);
      return ticket.error();
    }
    IMPRINT_CHECK(queue.wait(*ticket, kUploadTimeout));
    static_cast<RuntimeImpl&>(runtime).device().collect();
  }
}

Result<vk::Allocation> RuntimeImpl::staged(std::span<const std::byte> bytes) {
  IMPRINT_ASSIGN(const vk::Allocation staging,
                 device_.memory().allocate(bytes.size(), kStagingAlignment, vk::MemoryUse::upload));
  std::memcpy(staging.mapped, bytes.data(), bytes.size());
  return staging;
}

Result<> RuntimeImpl::upload(const vk::Allocation& target, std::span<const std::byte> bytes) {
  if (bytes.size() > kUploadRing) return upload(target, SharedBytes(std::vector(bytes.begin(), bytes.end())));
  return upload(target, SharedBytes(bytes, nullptr), true);
}

Result<> RuntimeImpl::upload(const vk::Allocation& target, SharedBytes bytes) {
  return upload(target, bytes, bytes.size() <= room_to_stage());
}

Result<> RuntimeImpl::upload(const vk::Allocation& target, const SharedBytes& bytes, bool at_once) {
  if (bytes.size() > target.size)
    return make_error(ErrorCode::internal, "upload: found " + std::to_string(bytes.size()) +
                                               " bytes, expected at most " + std::to_string(target.size));
  if (device_can_fill(target, bytes)) {
    queue({{}, target, {}});
  } else if (at_once) {
    IMPRINT_ASSIGN(const vk::Allocation staging, staged(bytes));
    queue({staging, target, {}});
  } else {
    queue({{}, target, bytes});
  }
  return {};
}

std::uint64_t RuntimeImpl::room_to_stage() const {
  const std::lock_guard lock(upload_mutex_);
  return kUploadRing - std::min(kUploadRing, staged_bytes_);
}

void RuntimeImpl::queue(Upload upload) {
  const std::lock_guard lock(upload_mutex_);
  staged_bytes_ += upload.staging.size;
  uploads_.push_back(std::move(upload));
}

bool RuntimeImpl::has_uploads() const {
  const std::lock_guard lock(upload_mutex_);
  return !uploads_.empty();
}

Result<std::vector<RuntimeImpl::Upload>> RuntimeImpl::take_some(std::uint64_t most) {
  std::vector<Upload> taken;
  std::uint64_t bytes = 0;
  while (!uploads_.empty()) {
    Upload& next = uploads_.front();
    const std::uint64_t left = most - std::min(most, bytes);
    if (next.source.empty()) {  // staged already, or zeros
      if (!taken.empty() && next.staging.size > left) break;
      bytes += next.staging.size;
      staged_bytes_ -= next.staging.size;
      taken.push_back(std::move(next));
      uploads_.pop_front();
      continue;
    }
    const std::size_t length = std::min<std::size_t>(next.source.size(), std::min(left, kUploadRing));
    if (length == 0) break;
    Result<vk::Allocation> staging = staged(next.source.part(0, length));
    if (!staging) {  // all stays queued
      for (const Upload& upload : taken) staged_bytes_ += upload.staging.size;
      uploads_.insert(uploads_.begin(), taken.begin(), taken.end());
      return std::move(staging).error();
    }
    vk::Allocation target = next.target;
    target.size = length;
    taken.push_back({*staging, target, {}});
    bytes += length;
    next.source = next.source.part(length, next.source.size() - length);
    next.target.offset += length;
    next.target.size -= length;
    if (next.source.empty()) uploads_.pop_front();
  }
  return taken;
}

Result<Commands> RuntimeImpl::take_uploads(std::uint64_t most) {
  std::vector<Upload> uploads;
  {
    const std::lock_guard lock(upload_mutex_);
    IMPRINT_ASSIGN(uploads, take_some(most));
  }
  if (uploads.empty()) return Commands{};
  auto commands = record([&](VkCommandBuffer buffer) {
    const vk::Functions& functions = device_.functions();
    const vk::CommandLabel label(functions, buffer, "imprint uploads");
    global_barrier(functions, buffer, kWorkStages, VK_PIPELINE_STAGE_TRANSFER_BIT);
    for (std::size_t i = 0; i < uploads.size(); ++i) {
      // Two writes of one range keep their order.
      for (std::size_t before = 0; before < i; ++before)
        if (overlap(uploads[before].target, uploads[i].target)) {
          global_barrier(functions, buffer, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_PIPELINE_STAGE_TRANSFER_BIT);
          break;
        }
      const vk::Allocation& target = uploads[i].target;
      if (!uploads[i].staging) {
        functions.vkCmdFillBuffer(buffer, target.buffer, target.offset, target.size, 0);
        continue;
      }
      const VkBufferCopy region{uploads[i].staging.offset, target.offset, uploads[i].staging.size};
      functions.vkCmdCopyBuffer(buffer, uploads[i].staging.buffer, target.buffer, 1, &region);
    }
    global_barrier(functions, buffer, VK_PIPELINE_STAGE_TRANSFER_BIT, kWorkStages);
  });
  if (!commands) {
    const std::lock_guard lock(upload_mutex_);
    for (const Upload& upload : uploads) staged_bytes_ += upload.staging.size;
    uploads_.insert(uploads_.begin(), uploads.begin(), uploads.end());
    return std::move(commands).error();
  }
  auto batch = std::make_shared<Batch>();
  batch->uploads = std::move(uploads);
  batch->commands = *commands;
  {
    const std::lock_guard lock(upload_mutex_);
    taken_ = batch;
  }
  const vk::Ticket carrier{device_.last_ticket().value + 1};
  device_.retire(carrier, [link = link_, &device = device_, batch] {
    if (batch->put_back) return;
    for (const Upload& upload : batch->uploads)
      if (upload.staging) device.memory().free(upload.staging);
    const std::lock_guard lock(link->mutex);
    if (link->runtime) link->runtime->release(batch->commands);
  });
  return *commands;
}

void RuntimeImpl::put_back_uploads(const Commands& commands) {
  if (!commands.primary) return;
  {
    const std::lock_guard lock(upload_mutex_);
    const std::shared_ptr<Batch> batch = taken_.lock();
    if (!batch || batch->commands.primary != commands.primary || batch->put_back.exchange(true)) return;
    for (const Upload& upload : batch->uploads) staged_bytes_ += upload.staging.size;
    uploads_.insert(uploads_.begin(), batch->uploads.begin(), batch->uploads.end());
  }
  release(commands);
}

void RuntimeImpl::forget_uploads(const vk::Allocation& target) {
  const std::lock_guard lock(upload_mutex_);
  std::erase_if(uploads_, [&](const Upload& upload) {
    if (!overlap(upload.target, target)) return false;
    staged_bytes_ -= upload.staging.size;
    if (upload.staging) device_.memory().free(upload.staging);
    return true;
  });
}

}  // namespace imprint
