#pragma once
// Sub-allocation of one block: offsets and sizes only, no memory and no Vulkan. Best fit; the same calls give
// the same offsets everywhere.

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace imprint::vk {

class BlockAllocator {
 public:
  explicit BlockAllocator(std::uint64_t capacity);

  // The offset of a range of `size` >= 1, a multiple of `alignment` (a power of two), from the smallest free
  // range that holds it, the lowest of equals. Nothing when no free range does.
  std::optional<std::uint64_t> allocate(std::uint64_t size, std::uint64_t alignment);

  // Gives back the range that starts at `offset` and joins it with its free neighbours. The size it had; 0
  // when none starts there.
  std::uint64_t free(std::uint64_t offset);

  std::uint64_t capacity() const { return capacity_; }
  std::uint64_t used() const { return used_; }
  std::size_t live() const { return live_.size(); }
  std::uint64_t largest_free() const { return free_by_size_.empty() ? 0 : free_by_size_.rbegin()->first; }

 private:
  void add_free(std::uint64_t offset, std::uint64_t size);
  void remove_free(std::uint64_t offset, std::uint64_t size);

  std::uint64_t capacity_ = 0;
  std::uint64_t used_ = 0;
  std::map<std::uint64_t, std::uint64_t> live_;                     // offset -> size
  std::map<std::uint64_t, std::uint64_t> free_by_offset_;           // offset -> size; neighbours never touch
  std::set<std::pair<std::uint64_t, std::uint64_t>> free_by_size_;  // the same ranges as {size, offset}
};

}  // namespace imprint::vk
