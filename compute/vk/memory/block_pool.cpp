#include "compute/vk/memory/block_pool.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "compute/base/text.h"
#include "compute/vk/device.h"
#include "compute/vk/memory/memory_block.h"

namespace imprint::vk {
namespace {

constexpr std::uint64_t kSmallBlocks = 16;  // per full block
constexpr std::uint32_t kGrowingShare = 8;  // of the allocations that the device allows, for growing blocks
constexpr double kRoomAgain = 0.95;         // share of the driver's budget

std::uint64_t round_up(std::uint64_t value, std::uint64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

class BlockPool final : public MemoryPool {
 public:
  BlockPool(Device& device, const MemoryPoolOptions& options)
      : device_(device), calls_(options.calls), families_(options.families), cap_(options.cap_bytes) {
    const Capabilities& capabilities = device.capabilities();
    granularity_ = std::max<std::uint64_t>({16, capabilities.min_storage_buffer_offset_alignment,
                                            capabilities.min_uniform_buffer_offset_alignment});
    longest_ = capabilities.max_storage_buffer_range / granularity_ * granularity_;
    block_bytes_ = std::clamp(round_up(options.block_bytes, granularity_), granularity_, longest_);
    first_block_bytes_ =
        std::clamp(round_up(options.first_block_bytes, granularity_), granularity_, block_bytes_);
    device.functions().vkGetPhysicalDeviceMemoryProperties(device.physical_device(), &properties_);
  }

  ~BlockPool() override {
    if (stats_.allocation_count == 0) return;
    device_.options().log(
        LogLevel::warning,
        text("memory pool: found ", stats_.allocation_count, " live allocations (", stats_.bytes_in_use,
             " bytes), expected none. Destroy their owners before the device."));
  }

  Result<Allocation> allocate(std::uint64_t size, std::uint64_t alignment, MemoryUse use,
                              bool yields) override;
  Result<std::vector<Allocation>> allocate_together(std::span<const std::uint64_t> sizes,
                                                    std::uint64_t alignment, MemoryUse use) override;
  Result<Allocation> allocate_long(std::uint64_t size, bool yields) override;
  Result<Allocation> allocate_dedicated(const DedicatedBuffer& description) override;
  BlockMemoryInfo memory_of(const Allocation& allocation) const override;
  void free(const Allocation& allocation) override;
  std::uint64_t trim() override;
  void set_cap(std::uint64_t bytes) override;
  MemoryPressure pressure(std::uint64_t more) const override;
  MemoryStats stats() const override;

 private:
  using Blocks = std::vector<std::unique_ptr<MemoryBlock>>;

  // The caller holds the lock.
  Allocation adopt(std::unique_ptr<MemoryBlock> block, std::uint64_t size, std::uint64_t bytes,
                   std::uint64_t alignment);
  Result<Allocation> allocate_alone(std::uint64_t size, bool yields, const DedicatedBuffer* dedicated);
  std::optional<Allocation> place(MemoryBlock& block, std::uint32_t index, std::uint64_t size,
                                  std::uint64_t bytes, std::uint64_t alignment);
  std::optional<Allocation> find(std::uint64_t size, std::uint64_t bytes, std::uint64_t alignment,
                                 const BlockKind& kind);
  std::uint64_t next_block_bytes(const BlockKind& kind) const;
  Blocks take_empty();
  const char* reserve(std::uint64_t bytes);  // null, or the reason against it
  void unreserve(std::uint64_t bytes);

  // The caller does not hold the lock: these call the driver, which may call the host.
  Result<std::unique_ptr<MemoryBlock>> create_block(std::uint64_t size, const BlockKind& kind,
                                                    const DedicatedBuffer* dedicated = nullptr);
  Result<> check_size(std::uint64_t size, MemoryUse use = MemoryUse::device) const;
  Result<> add_memory(MemoryBlock& block, const VkMemoryRequirements& requirements,
                      VkExternalMemoryHandleTypeFlags exported);
  VkPhysicalDeviceMemoryBudgetPropertiesEXT budget() const;
  bool within_budget(std::uint32_t heap, std::uint64_t bytes) const;
  Error exhausted(std::uint64_t size, MemoryUse use, const std::string& cause) const;

  Device& device_;
  const DeviceMemoryCalls calls_;
  const std::vector<std::uint32_t> families_;
  std::uint64_t granularity_ = 16, longest_ = 0, block_bytes_ = 0, first_block_bytes_ = 0;
  VkPhysicalDeviceMemoryProperties properties_{};

  mutable std::mutex mutex_;
  std::uint64_t cap_;
  std::uint32_t held_ = 0;  // VkDeviceMemory alive or being made
  Blocks blocks_;           // a freed block leaves a null, so that the names of the others stay
  MemoryStats stats_;  // bytes_reserved includes blocks being made; largest_free and block_count are counted
                       // when asked
};

// Descriptors bind only the blocks of the device's use.
Result<> BlockPool::check_size(std::uint64_t size, MemoryUse use) const {
  if (size == 0) return make_error(ErrorCode::invalid_argument, "size: found 0, expected at least 1 byte");
  if (size > longest_ && use == MemoryUse::device) {
    return make_error(ErrorCode::unsupported, text("size: found ", size, " bytes, expected at most ",
                                                   longest_, " (maxStorageBufferRange). Split the tensor."));
  }
  if (device_.lost()) return lost_error();
  return {};
}

Result<Allocation> BlockPool::allocate(std::uint64_t size, std::uint64_t alignment, MemoryUse use,
                                       bool yields) {
  if (!std::has_single_bit(alignment)) {
    return make_error(ErrorCode::invalid_argument,
                      text("alignment: found ", alignment, ", expected a power of two"));
  }
  IMPRINT_CHECK(check_size(size, use));

  const BlockKind kind{use, yields, false};

  // Whole multiples of the granularity leave no unusable remainder.
  const std::uint64_t bytes = round_up(size, granularity_);
  alignment = std::max(alignment, granularity_);
  std::uint64_t cap = 0, next = 0;
  {
    const std::lock_guard lock(mutex_);
    if (const auto allocation = find(size, bytes, alignment, kind)) return *allocation;
    cap = cap_ > 0 ? cap_ : UINT64_MAX;
    next = next_block_bytes(kind);
  }

  // Tries the next block, then a small one if the cap or the device lacks room, then a small one after
  // freeing empty blocks. Small blocks have a minimum size: at the cap, tiny ones would number hundreds, and
  // maxMemoryAllocationCount limits them.
  // Two threads may each create a block here, which costs only memory. Yielding allocations use small blocks,
  // so that more of them become empty. A small cap makes blocks smaller, so that the first use leaves room
  // for the others.
  const std::uint64_t small = std::min({next, block_bytes_ / kSmallBlocks, cap / 64});
  const std::uint64_t large = yields ? small : std::min(next, cap / 8);
  const std::uint64_t least = std::max(round_up(small, granularity_), bytes);
  const std::uint64_t full = std::max(round_up(large, granularity_), bytes);
  auto block = create_block(full, kind);
  if (!block.ok() && block.error().code == ErrorCode::out_of_device_memory && full > least)
    block = create_block(least, kind);
  if (!block.ok() && block.error().code == ErrorCode::out_of_device_memory && trim() > 0)
    block = create_block(least, kind);
  if (!block.ok()) return std::move(block).error();

  const std::lock_guard lock(mutex_);
  return adopt(std::move(block).value(), size, bytes, alignment);
}

Result<std::vector<Allocation>> BlockPool::allocate_together(std::span<const std::uint64_t> sizes,
                                                             std::uint64_t alignment, MemoryUse use) {
  const std::uint64_t step = std::max(alignment, granularity_);
  std::uint64_t total = 0;
  for (const std::uint64_t size : sizes) {
    IMPRINT_CHECK(check_size(size, use));
    total += round_up(size, step);
  }
  // Allocates one range for all, then frees it and allocates its parts under one lock, so that they fit in
  // turn.
  IMPRINT_ASSIGN(const Allocation whole, allocate(total, alignment, use, false));
  const std::lock_guard lock(mutex_);
  MemoryBlock& block = *blocks_[whole.block];
  block.ranges.free(whole.offset);
  stats_.bytes_in_use -= whole.size;
  --stats_.allocation_count;
  std::vector<Allocation> parts;
  for (const std::uint64_t size : sizes)
    parts.push_back(*place(block, whole.block, size, round_up(size, granularity_), step));
  return parts;
}

Allocation BlockPool::adopt(std::unique_ptr<MemoryBlock> block, std::uint64_t size, std::uint64_t bytes,
                            std::uint64_t alignment) {
  const auto slot = std::ranges::find_if(blocks_, [](const auto& held) { return !held; });
  const auto index = static_cast<std::uint32_t>(slot - blocks_.begin());
  if (slot == blocks_.end()) blocks_.emplace_back();
  blocks_[index] = std::move(block);
  return *place(*blocks_[index], index, size, bytes, alignment);  // offset 0 of a block fits any alignment
}

Result<Allocation> BlockPool::allocate_dedicated(const DedicatedBuffer& description) {
  IMPRINT_CHECK(check_size(description.size));
  return allocate_alone(description.size, false, &description);
}

Result<Allocation> BlockPool::allocate_long(std::uint64_t size, bool yields) {
  IMPRINT_CHECK(check_size(std::min(size, longest_)));
  return allocate_alone(size, yields, nullptr);
}

Result<Allocation> BlockPool::allocate_alone(std::uint64_t size, bool yields,
                                             const DedicatedBuffer* dedicated) {
  const std::uint64_t bytes = round_up(size, granularity_);
  const BlockKind kind{MemoryUse::device, yields, true};
  auto block = create_block(bytes, kind, dedicated);
  if (!block.ok() && block.error().code == ErrorCode::out_of_device_memory && trim() > 0)
    block = create_block(bytes, kind, dedicated);
  if (!block.ok()) return std::move(block).error();
  const std::lock_guard lock(mutex_);
  return adopt(std::move(block).value(), size, bytes, granularity_);
}

BlockMemoryInfo BlockPool::memory_of(const Allocation& allocation) const {
  const std::lock_guard lock(mutex_);
  const MemoryBlock& block = *blocks_[allocation.block];
  return {block.memory.get(), block.reserved, block.memory_type};
}

std::optional<Allocation> BlockPool::place(MemoryBlock& block, std::uint32_t index, std::uint64_t size,
                                           std::uint64_t bytes, std::uint64_t alignment) {
  const auto offset = block.ranges.allocate(bytes, alignment);
  if (!offset) return std::nullopt;
  stats_.bytes_in_use += size;
  stats_.bytes_peak = std::max(stats_.bytes_peak, stats_.bytes_in_use);
  ++stats_.allocation_count;
  return Allocation{block.buffer.get(),
                    *offset,
                    size,
                    0,
                    block.size,
                    block.mapped ? static_cast<std::byte*>(block.mapped) + *offset : nullptr,
                    index};
}

std::optional<Allocation> BlockPool::find(std::uint64_t size, std::uint64_t bytes, std::uint64_t alignment,
                                          const BlockKind& kind) {
  for (std::uint32_t i = 0; i < blocks_.size(); ++i) {
    if (!blocks_[i] || blocks_[i]->kind != kind) continue;
    if (auto allocation = place(*blocks_[i], i, size, bytes, alignment)) return allocation;
  }
  return std::nullopt;
}

void BlockPool::free(const Allocation& allocation) {
  if (!allocation) return;
  bool known = false;
  std::unique_ptr<MemoryBlock> last;  // destroyed after the lock
  {
    const std::lock_guard lock(mutex_);
    MemoryBlock* block = allocation.block < blocks_.size() ? blocks_[allocation.block].get() : nullptr;
    known = block && block->buffer.get() == allocation.buffer && block->ranges.free(allocation.offset) > 0;
    if (known) {
      stats_.bytes_in_use -= allocation.size;
      --stats_.allocation_count;
      if (block->kind.dedicated) {
        unreserve(block->reserved);
        last = std::move(blocks_[allocation.block]);
      }
    }
  }
  if (!known)
    device_.options().log(
        LogLevel::error,
        "memory pool: found an unknown or already freed allocation, expected a live one. Ignored the free.");
}

std::uint64_t BlockPool::next_block_bytes(const BlockKind& kind) const {
  if (held_ >= device_.capabilities().max_memory_allocation_count / kGrowingShare) return block_bytes_;
  std::uint64_t held = 0;
  for (const auto& block : blocks_)
    if (block && block->kind == kind) held += block->size;
  return std::clamp(round_up(held, granularity_), first_block_bytes_, block_bytes_);
}

BlockPool::Blocks BlockPool::take_empty() {
  Blocks empty;
  for (auto& block : blocks_) {
    if (!block || block->ranges.live() > 0) continue;
    unreserve(block->reserved);
    empty.push_back(std::move(block));
  }
  while (!blocks_.empty() && !blocks_.back()) blocks_.pop_back();
  return empty;
}

std::uint64_t BlockPool::trim() {
  Blocks empty;
  {
    const std::lock_guard lock(mutex_);
    empty = take_empty();
  }
  std::uint64_t bytes = 0;
  for (const auto& block : empty) bytes += block->reserved;
  return bytes;
}

MemoryStats BlockPool::stats() const {
  const std::lock_guard lock(mutex_);
  MemoryStats stats = stats_;
  for (const auto& block : blocks_) {
    if (!block) continue;
    ++stats.block_count;
    stats.largest_free = std::max(stats.largest_free, block->ranges.largest_free());
  }
  return stats;
}

const char* BlockPool::reserve(std::uint64_t bytes) {
  if (cap_ && (bytes > cap_ || stats_.bytes_reserved > cap_ - bytes)) return "the cap has no room";
  if (held_ >= device_.capabilities().max_memory_allocation_count)
    return "the device allows no further allocation (maxMemoryAllocationCount)";
  stats_.bytes_reserved += bytes;
  ++held_;
  return nullptr;
}

void BlockPool::unreserve(std::uint64_t bytes) {
  stats_.bytes_reserved -= bytes;
  --held_;
}

void BlockPool::set_cap(std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  cap_ = bytes;
}

MemoryPressure BlockPool::pressure(std::uint64_t more) const {
  {
    const std::lock_guard lock(mutex_);
    if (cap_ && stats_.bytes_reserved + more > cap_)
      return {true, text(stats_.bytes_reserved, " of ", cap_, " bytes that its cap allows")};
  }
  if (!device_.capabilities().memory_budget || device_.lost()) return {};
  const VkPhysicalDeviceMemoryBudgetPropertiesEXT found = budget();
  const std::uint32_t ours =
      properties_.memoryTypes[memory_types(properties_, ~0u, MemoryUse::device).front()].heapIndex;
  for (std::uint32_t heap = 0; heap < properties_.memoryHeapCount; ++heap) {
    const std::uint64_t asked = heap == ours ? more : 0;
    const double limit = (more > 0 ? kRoomAgain : 1.0) * static_cast<double>(found.heapBudget[heap]);
    if (found.heapBudget[heap] == 0 || static_cast<double>(found.heapUsage[heap] + asked) <= limit) continue;
    return {true, text(found.heapUsage[heap], " of ", found.heapBudget[heap],
                       " bytes that the driver's memory budget has")};
  }
  return {};
}

Result<std::unique_ptr<MemoryBlock>> BlockPool::create_block(std::uint64_t size, const BlockKind& kind,
                                                             const DedicatedBuffer* dedicated) {
  auto block = std::make_unique<MemoryBlock>(kind, size);
  IMPRINT_ASSIGN(block->buffer, create_block_buffer(device_, size, families_, dedicated));

  VkMemoryRequirements requirements{};
  device_.functions().vkGetBufferMemoryRequirements(device_.handle(), block->buffer.get(), &requirements);
  const char* refusal = nullptr;
  {
    const std::lock_guard lock(mutex_);
    refusal = reserve(requirements.size);
  }
  if (refusal) return exhausted(size, kind.use, refusal);
  block->reserved = requirements.size;

  if (auto bound = add_memory(*block, requirements, dedicated ? dedicated->exported : 0); !bound.ok()) {
    const std::lock_guard lock(mutex_);
    unreserve(requirements.size);
    return std::move(bound).error();
  }
  return block;
}

Result<> BlockPool::add_memory(MemoryBlock& block, const VkMemoryRequirements& requirements,
                               VkExternalMemoryHandleTypeFlags exported) {
  const auto types = memory_types(properties_, requirements.memoryTypeBits, block.kind.use);
  if (types.empty())
    return make_error(ErrorCode::unsupported,
                      text("the device has no memory type for ", use_name(block.kind.use), " blocks"));

  bool over_budget = false;
  VkResult result = VK_ERROR_OUT_OF_DEVICE_MEMORY;
  for (const std::uint32_t type : types) {
    if (!within_budget(properties_.memoryTypes[type].heapIndex, requirements.size)) {
      over_budget = true;
      continue;
    }
    result = allocate_block_memory(block, device_, calls_, requirements.size, type, exported);
    if (result != VK_ERROR_OUT_OF_DEVICE_MEMORY && result != VK_ERROR_TOO_MANY_OBJECTS) break;
  }
  if (result == VK_ERROR_TOO_MANY_OBJECTS)
    return exhausted(block.size, block.kind.use,
                     "the driver refused: Imprint and the host made all allocations that the device allows");
  if (result == VK_ERROR_OUT_OF_DEVICE_MEMORY)
    return exhausted(block.size, block.kind.use,
                     over_budget ? "the driver's memory budget has no room" : "the device has no room");
  if (result != VK_SUCCESS) return vulkan_error(device_, "vkAllocateMemory", result);
  if (!block.memory.get())
    return make_error(ErrorCode::invalid_argument,
                      "allocate_device_memory: found VK_SUCCESS without memory, expected memory or an error. "
                      "Return VK_ERROR_OUT_OF_DEVICE_MEMORY when there is none.");

  Counters& counters = device_.counters();
  counters.allocations.fetch_add(1, std::memory_order_relaxed);
  if (counters.on_frame()) counters.frame_allocations.fetch_add(1, std::memory_order_relaxed);
  std::uint64_t number = 0;
  {
    const std::lock_guard lock(mutex_);
    number = stats_.device_allocations++;
  }
  return bind_block(block, device_, text("imprint ", use_name(block.kind.use), " block ", number));
}

VkPhysicalDeviceMemoryBudgetPropertiesEXT BlockPool::budget() const {
  VkPhysicalDeviceMemoryBudgetPropertiesEXT budget{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT};
  VkPhysicalDeviceMemoryProperties2 properties{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2};
  properties.pNext = &budget;
  device_.functions().vkGetPhysicalDeviceMemoryProperties2(device_.physical_device(), &properties);
  budget.pNext = nullptr;
  return budget;
}

bool BlockPool::within_budget(std::uint32_t heap, std::uint64_t bytes) const {
  if (!device_.capabilities().memory_budget) return true;
  const VkPhysicalDeviceMemoryBudgetPropertiesEXT found = budget();
  // 0: the driver reports no budget for the heap.
  return found.heapBudget[heap] == 0 || found.heapUsage[heap] + bytes <= found.heapBudget[heap];
}

Error BlockPool::exhausted(std::uint64_t size, MemoryUse use, const std::string& cause) const {
  const MemoryStats now = stats();
  std::uint64_t cap = 0, held = 0;
  {
    const std::lock_guard lock(mutex_);
    cap = cap_;
    held = held_;
  }
  return make_error(
      ErrorCode::out_of_device_memory,
      text("device memory: asked for a ", use_name(use), " block of ", size, " bytes, but ", cause, ": ",
           now.bytes_in_use, " bytes are in use, ", now.bytes_reserved, " reserved, the cap is ",
           cap ? text(cap, " bytes") : std::string("off"), ", allocations: ", held, " of ",
           device_.capabilities().max_memory_allocation_count));
}

}  // namespace

std::unique_ptr<MemoryPool> create_block_pool(Device& device, const MemoryPoolOptions& options) {
  return std::make_unique<BlockPool>(device, options);
}

}  // namespace imprint::vk
