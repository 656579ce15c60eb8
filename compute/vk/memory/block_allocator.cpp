#include "compute/vk/memory/block_allocator.h"

#include <iterator>

namespace imprint::vk {

BlockAllocator::BlockAllocator(std::uint64_t capacity) : capacity_(capacity) {
  if (capacity) add_free(0, capacity);
}

std::optional<std::uint64_t> BlockAllocator::allocate(std::uint64_t size, std::uint64_t alignment) {
  if (size == 0 || size > capacity_) return std::nullopt;
  for (auto candidate = free_by_size_.lower_bound({size, 0}); candidate != free_by_size_.end(); ++candidate) {
    const auto [free_size, free_offset] = *candidate;
    const std::uint64_t padding = (alignment - free_offset % alignment) % alignment;
    if (padding > free_size - size) continue;

    const std::uint64_t offset = free_offset + padding;
    remove_free(free_offset, free_size);
    if (padding) add_free(free_offset, padding);
    if (const std::uint64_t rest = free_size - padding - size) add_free(offset + size, rest);
    live_.emplace(offset, size);
    used_ += size;
    return offset;
  }
  return std::nullopt;
}

std::uint64_t BlockAllocator::free(std::uint64_t offset) {
  const auto found = live_.find(offset);
  if (found == live_.end()) return 0;
  const std::uint64_t size = found->second;
  live_.erase(found);
  used_ -= size;

  std::uint64_t begin = offset, end = offset + size;
  const auto after = free_by_offset_.lower_bound(offset);
  if (after != free_by_offset_.end() && after->first == end) end += after->second;
  if (after != free_by_offset_.begin()) {
    const auto before = std::prev(after);
    if (before->first + before->second == offset) begin = before->first;
  }
  if (begin < offset) remove_free(begin, offset - begin);
  if (end > offset + size) remove_free(offset + size, end - offset - size);
  add_free(begin, end - begin);
  return size;
}

void BlockAllocator::add_free(std::uint64_t offset, std::uint64_t size) {
  free_by_offset_.emplace(offset, size);
  free_by_size_.emplace(size, offset);
}

void BlockAllocator::remove_free(std::uint64_t offset, std::uint64_t size) {
  free_by_offset_.erase(offset);
  free_by_size_.erase({size, offset});
}

}  // namespace imprint::vk
