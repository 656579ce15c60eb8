#pragma once
// Sub-allocates one block by offsets and sizes, without memory or Vulkan. Best fit. Equal calls give equal
// offsets everywhere.

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

  // Returns the offset of a range of `size` >= 1, a multiple of `alignment` (a power of two). Takes the
  // smallest free range that fits, the lowest among equals. Returns nothing when none fits.
  std::optional<std::uint64_t> allocate(std::uint64_t size, std::uint64_t alignment);

  // Frees the range that starts at `offset` and joins it with its free neighbours. Returns its size; 0 when
  // no range starts there.
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
