#include "compute/vk/memory_pool.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "compute/vk/block_allocator.h"
#include "compute/vk/device.h"
#include "compute/vk/handle.h"

namespace imprint::vk {
namespace {

constexpr std::uint64_t kSmallBlocks = 16;  // to a full one
constexpr double kRoomAgain = 0.95;         // of the driver's budget

const char* use_name(MemoryUse use) {
  switch (use) {
    case MemoryUse::device:
      return "device";
    case MemoryUse::upload:
      return "upload";
    case MemoryUse::readback:
      return "readback";
  }
  return "unknown";
}

bool is_mapped(MemoryUse use) { return use == MemoryUse::upload || use == MemoryUse::readback; }

// Device memory that a block holds, given back to whom it came from.
class BlockMemory {
 public:
  BlockMemory() = default;
  BlockMemory(const Device& device, VkDeviceMemory memory, const DeviceMemoryCalls& calls)
      : device_(&device), memory_(memory), calls_(calls) {}
  BlockMemory(const BlockMemory&) = delete;
  BlockMemory& operator=(BlockMemory&& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(memory_, other.memory_);
    std::swap(calls_, other.calls_);
    return *this;
  }
  ~BlockMemory() {
    if (!memory_) return;
    if (calls_.free)
      calls_.free(calls_.user, memory_);
    else
      device_->functions().vkFreeMemory(device_->handle(), memory_, device_->allocation_callbacks());
  }
  VkDeviceMemory get() const { return memory_; }

 private:
  const Device* device_ = nullptr;
  VkDeviceMemory memory_ = VK_NULL_HANDLE;
  DeviceMemoryCalls calls_;
};

// What lies together.
struct BlockKind {
  MemoryUse use = MemoryUse::device;
  bool yields = false;
  bool dedicated = false;  // to one allocation, and given back with it
  bool operator==(const BlockKind&) const = default;
};

// A buffer over all of one VkDeviceMemory.
struct Block {
  Block(const BlockKind& k, std::uint64_t s) : kind(k), size(s), ranges(s) {}
  BlockKind kind;
  std::uint64_t size;
  BlockAllocator ranges;
  std::uint64_t reserved = 0;  // bytes of the VkDeviceMemory, for the cap
  std::uint32_t memory_type = 0;
  void* mapped = nullptr;
  BlockMemory memory;  // freed after the buffer; unmapped by that
  Handle<VkBuffer> buffer;
};

std::uint64_t round_up(std::uint64_t value, std::uint64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

// The memory types that serve a use, the best first. Types of equal standing keep the driver's order, which
// puts the faster first.
std::vector<std::uint32_t> memory_types(const VkPhysicalDeviceMemoryProperties& properties,
                                        std::uint32_t allowed, MemoryUse use) {
  constexpr VkMemoryPropertyFlags kUseless =
      VK_MEMORY_PROPERTY_LAZILY_ALLOCATED_BIT | VK_MEMORY_PROPERTY_PROTECTED_BIT |
      VK_MEMORY_PROPERTY_DEVICE_COHERENT_BIT_AMD | VK_MEMORY_PROPERTY_DEVICE_UNCACHED_BIT_AMD;
  constexpr VkMemoryPropertyFlags kMappable =
      VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
  const VkMemoryPropertyFlags required = is_mapped(use) ? kMappable : 0;
  const VkMemoryPropertyFlags wanted =
      !is_mapped(use)              ? VkMemoryPropertyFlags{VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT}
      : use == MemoryUse::readback ? VkMemoryPropertyFlags{VK_MEMORY_PROPERTY_HOST_CACHED_BIT}
                                   : 0;
  // Staging memory stays out of the device's own heap, whose mappable part is often small and the host's to
  // use.
  const VkMemoryPropertyFlags unwanted = is_mapped(use) ? VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT : 0;

  std::vector<std::uint32_t> types;
  for (std::uint32_t i = 0; i < properties.memoryTypeCount; ++i) {
    const VkMemoryPropertyFlags flags = properties.memoryTypes[i].propertyFlags;
    if ((allowed >> i & 1u) && (flags & required) == required && !(flags & kUseless)) types.push_back(i);
  }
  const auto rank = [&](std::uint32_t i) {
    const VkMemoryPropertyFlags flags = properties.memoryTypes[i].propertyFlags;
    return 2 * ((flags & wanted) != wanted) + ((flags & unwanted) != 0);
  };
  std::ranges::stable_sort(types, {}, rank);
  // Device blocks in host memory would be slow without a word: only where there is no device-local type at
  // all.
  if (!is_mapped(use) && !types.empty() && rank(types.front()) == 0) {
    std::erase_if(types, [&](std::uint32_t i) { return rank(i) != 0; });
  }
  return types;
}

class PooledMemory final : public MemoryPool {
 public:
  PooledMemory(Device& device, const MemoryPoolOptions& options)
      : device_(device), calls_(options.calls), cap_(options.cap_bytes) {
    const Capabilities& capabilities = device.capabilities();
    granularity_ = std::max<std::uint64_t>({16, capabilities.min_storage_buffer_offset_alignment,
                                            capabilities.min_uniform_buffer_offset_alignment});
    longest_ = capabilities.max_storage_buffer_range / granularity_ * granularity_;
    block_bytes_ = std::clamp(round_up(options.block_bytes, granularity_), granularity_, longest_);
    device.functions().vkGetPhysicalDeviceMemoryProperties(device.physical_device(), &properties_);
  }

  ~PooledMemory() override {
    if (stats_.allocation_count == 0) return;
    device_.options().log(
        LogLevel::warning,
        std::to_string(stats_.allocation_count) + " allocations (" + std::to_string(stats_.bytes_in_use) +
            " bytes) of the memory pool were never freed: destroy what holds them before the device");
  }

  Result<Allocation> allocate(std::uint64_t size, std::uint64_t alignment, MemoryUse use,
                              bool yields) override;
  Result<std::vector<Allocation>> allocate_together(std::span<const std::uint64_t> sizes,
                                                    std::uint64_t alignment, MemoryUse use) override;
  Result<Allocation> allocate_dedicated(const DedicatedBuffer& description) override;
  BlockMemoryInfo memory_of(const Allocation& allocation) const override;
  void free(const Allocation& allocation) override;
  std::uint64_t trim() override;
  void set_cap(std::uint64_t bytes) override;
  MemoryPressure pressure(std::uint64_t more) const override;
  MemoryStats stats() const override;

 private:
  using Blocks = std::vector<std::unique_ptr<Block>>;

  // These want the lock held.
  Allocation adopt(std::unique_ptr<Block> block, std::uint64_t size, std::uint64_t bytes,
                   std::uint64_t alignment);
  std::optional<Allocation> place(Block& block, std::uint32_t index, std::uint64_t size, std::uint64_t bytes,
                                  std::uint64_t alignment);
  std::optional<Allocation> find(std::uint64_t size, std::uint64_t bytes, std::uint64_t alignment,
                                 const BlockKind& kind);
  Blocks take_empty();
  const char* reserve(std::uint64_t bytes);  // null, or why not
  void unreserve(std::uint64_t bytes);

  // These want it free: they call the driver, and that the host's callbacks.
  Result<std::unique_ptr<Block>> create_block(std::uint64_t size, const BlockKind& kind,
                                              const DedicatedBuffer* dedicated = nullptr);
  Status check_size(std::uint64_t size) const;
  Status bind_memory(Block& block, const VkMemoryRequirements& requirements,
                     VkExternalMemoryHandleTypeFlags exported);
  VkPhysicalDeviceMemoryBudgetPropertiesEXT budget() const;
  bool within_budget(std::uint32_t heap, std::uint64_t bytes) const;
  Error exhausted(std::uint64_t size, MemoryUse use, const std::string& cause) const;

  Device& device_;
  const DeviceMemoryCalls calls_;
  std::uint64_t granularity_ = 16, longest_ = 0, block_bytes_ = 0;
  VkPhysicalDeviceMemoryProperties properties_{};

  mutable std::mutex mutex_;
  std::uint64_t cap_;
  std::uint32_t held_ = 0;  // VkDeviceMemory alive or being made
  Blocks blocks_;           // a freed block leaves a null, so that the names of the others stay
  MemoryStats stats_;  // bytes_reserved includes blocks being made; largest_free and block_count are counted
                       // when asked
};

Status PooledMemory::check_size(std::uint64_t size) const {
  if (size == 0) return make_error(ErrorCode::invalid_argument, "asked for an allocation of 0 bytes");
  if (size > longest_) {
    return make_error(ErrorCode::unsupported, "asked for " + std::to_string(size) +
                                                  " bytes in one piece, and this device's kernels reach " +
                                                  std::to_string(longest_) +
                                                  " (maxStorageBufferRange): split what it is for");
  }
  if (device_.lost()) return make_error(ErrorCode::device_lost, "the device is lost");
  return {};
}

Result<Allocation> PooledMemory::allocate(std::uint64_t size, std::uint64_t alignment, MemoryUse use,
                                          bool yields) {
  if (!std::has_single_bit(alignment)) {
    return make_error(ErrorCode::invalid_argument, "asked for an alignment of " + std::to_string(alignment) +
                                                       ", which is not a power of two");
  }
  IMPRINT_CHECK(check_size(size));

  const BlockKind kind{use, yields, false};

  // Whole multiples of the granularity, so that no sliver is left which nothing fits into.
  const std::uint64_t bytes = round_up(size, granularity_);
  alignment = std::max(alignment, granularity_);
  std::uint64_t cap = 0;
  {
    const std::lock_guard lock(mutex_);
    if (const auto allocation = find(size, bytes, alignment, kind)) return *allocation;
    cap = cap_ > 0 ? cap_ : UINT64_MAX;
  }

  // A full block; where cap or device have no room for that, a small one; then the same with the empty blocks
  // of other uses given back. Never one for a small request alone: at the cap there would be hundreds, and
  // there is a limit to their number too (maxMemoryAllocationCount). Two threads may come here at once and
  // both take a block: that costs memory, not correctness. What yields never takes a full one: the less lies
  // together, the more of it comes free. Each use has blocks of its own, so that a small cap asks for smaller
  // ones: the first would leave nothing for the others.
  const std::uint64_t full =
      yields ? 0 : std::max(std::min(block_bytes_, round_up(cap / 8, granularity_)), bytes);
  const std::uint64_t least =
      std::max(round_up(std::min(block_bytes_ / kSmallBlocks, cap / 64), granularity_), bytes);
  auto block = create_block(std::max(full, least), kind);
  if (!block.ok() && block.error().code == ErrorCode::out_of_device_memory && full > least)
    block = create_block(least, kind);
  if (!block.ok() && block.error().code == ErrorCode::out_of_device_memory && trim() > 0)
    block = create_block(least, kind);
  if (!block.ok()) return std::move(block).error();

  const std::lock_guard lock(mutex_);
  return adopt(std::move(block).value(), size, bytes, alignment);
}

Result<std::vector<Allocation>> PooledMemory::allocate_together(std::span<const std::uint64_t> sizes,
                                                                std::uint64_t alignment, MemoryUse use) {
  const std::uint64_t step = std::max(alignment, granularity_);
  std::uint64_t total = 0;
  for (const std::uint64_t size : sizes) {
    IMPRINT_CHECK(check_size(size));
    total += round_up(size, step);
  }
  // One range that holds them all, given up again for its parts under one lock: what fitted in it as a whole
  // fits in it in turn.
  IMPRINT_ASSIGN(const Allocation whole, allocate(total, alignment, use, false));
  const std::lock_guard lock(mutex_);
  Block& block = *blocks_[whole.block];
  block.ranges.free(whole.offset);
  stats_.bytes_in_use -= whole.size;
  --stats_.allocation_count;
  std::vector<Allocation> parts;
  for (const std::uint64_t size : sizes)
    parts.push_back(*place(block, whole.block, size, round_up(size, granularity_), step));
  return parts;
}

Allocation PooledMemory::adopt(std::unique_ptr<Block> block, std::uint64_t size, std::uint64_t bytes,
                               std::uint64_t alignment) {
  const auto slot = std::ranges::find_if(blocks_, [](const auto& held) { return !held; });
  const auto index = static_cast<std::uint32_t>(slot - blocks_.begin());
  if (slot == blocks_.end()) blocks_.emplace_back();
  blocks_[index] = std::move(block);
  return *place(*blocks_[index], index, size, bytes, alignment);  // offset 0 of a block fits any alignment
}

Result<Allocation> PooledMemory::allocate_dedicated(const DedicatedBuffer& description) {
  const std::uint64_t size = description.size;
  IMPRINT_CHECK(check_size(size));
  const std::uint64_t bytes = round_up(size, granularity_);
  const BlockKind kind{MemoryUse::device, false, true};
  auto block = create_block(bytes, kind, &description);
  if (!block.ok() && block.error().code == ErrorCode::out_of_device_memory && trim() > 0)
    block = create_block(bytes, kind, &description);
  if (!block.ok()) return std::move(block).error();
  const std::lock_guard lock(mutex_);
  return adopt(std::move(block).value(), size, bytes, granularity_);
}

BlockMemoryInfo PooledMemory::memory_of(const Allocation& allocation) const {
  const std::lock_guard lock(mutex_);
  const Block& block = *blocks_[allocation.block];
  return {block.memory.get(), block.reserved, block.memory_type};
}

std::optional<Allocation> PooledMemory::place(Block& block, std::uint32_t index, std::uint64_t size,
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

std::optional<Allocation> PooledMemory::find(std::uint64_t size, std::uint64_t bytes, std::uint64_t alignment,
                                             const BlockKind& kind) {
  for (std::uint32_t i = 0; i < blocks_.size(); ++i) {
    if (!blocks_[i] || blocks_[i]->kind != kind) continue;
    if (auto allocation = place(*blocks_[i], i, size, bytes, alignment)) return allocation;
  }
  return std::nullopt;
}

void PooledMemory::free(const Allocation& allocation) {
  if (!allocation) return;
  bool known = false;
  std::unique_ptr<Block> last;  // goes without the lock
  {
    const std::lock_guard lock(mutex_);
    Block* block = allocation.block < blocks_.size() ? blocks_[allocation.block].get() : nullptr;
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
        "freed an allocation that the memory pool does not know, or freed one twice: ignored");
}

PooledMemory::Blocks PooledMemory::take_empty() {
  Blocks empty;
  for (auto& block : blocks_) {
    if (!block || block->ranges.live() > 0) continue;
    unreserve(block->reserved);
    empty.push_back(std::move(block));
  }
  while (!blocks_.empty() && !blocks_.back()) blocks_.pop_back();
  return empty;
}

std::uint64_t PooledMemory::trim() {
  Blocks empty;
  {
    const std::lock_guard lock(mutex_);
    empty = take_empty();
  }
  std::uint64_t bytes = 0;
  for (const auto& block : empty) bytes += block->reserved;
  return bytes;
}

MemoryStats PooledMemory::stats() const {
  const std::lock_guard lock(mutex_);
  MemoryStats stats = stats_;
  for (const auto& block : blocks_) {
    if (!block) continue;
    ++stats.block_count;
    stats.largest_free = std::max(stats.largest_free, block->ranges.largest_free());
  }
  return stats;
}

const char* PooledMemory::reserve(std::uint64_t bytes) {
  if (cap_ && (bytes > cap_ || stats_.bytes_reserved > cap_ - bytes)) return "which would pass the cap";
  if (held_ >= device_.capabilities().max_memory_allocation_count)
    return "which would be one allocation more than the device allows (maxMemoryAllocationCount)";
  stats_.bytes_reserved += bytes;
  ++held_;
  return nullptr;
}

void PooledMemory::unreserve(std::uint64_t bytes) {
  stats_.bytes_reserved -= bytes;
  --held_;
}

void PooledMemory::set_cap(std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  cap_ = bytes;
}

MemoryPressure PooledMemory::pressure(std::uint64_t more) const {
  const auto text = [](std::uint64_t used, std::uint64_t of, const char* whose) {
    return std::to_string(used) + " of " + std::to_string(of) + " bytes that " + whose;
  };
  {
    const std::lock_guard lock(mutex_);
    if (cap_ && stats_.bytes_reserved + more > cap_)
      return {true, text(stats_.bytes_reserved, cap_, "its cap allows")};
  }
  if (!device_.capabilities().memory_budget || device_.lost()) return {};
  const VkPhysicalDeviceMemoryBudgetPropertiesEXT found = budget();
  const std::uint32_t ours =
      properties_.memoryTypes[memory_types(properties_, ~0u, MemoryUse::device).front()].heapIndex;
  for (std::uint32_t heap = 0; heap < properties_.memoryHeapCount; ++heap) {
    const std::uint64_t asked = heap == ours ? more : 0;
    const double limit = (more > 0 ? kRoomAgain : 1.0) * static_cast<double>(found.heapBudget[heap]);
    if (found.heapBudget[heap] == 0 || static_cast<double>(found.heapUsage[heap] + asked) <= limit) continue;
    return {true, text(found.heapUsage[heap], found.heapBudget[heap], "the driver's memory budget has")};
  }
  return {};
}

Result<std::unique_ptr<Block>> PooledMemory::create_block(std::uint64_t size, const BlockKind& kind,
                                                          const DedicatedBuffer* dedicated) {
  const Functions& f = device_.functions();
  auto block = std::make_unique<Block>(kind, size);

  VkBufferCreateInfo info{VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO};
  info.size = size;
  info.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_UNIFORM_BUFFER_BIT |
               VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT;
  info.sharingMode = VK_SHARING_MODE_EXCLUSIVE;
  VkExternalMemoryBufferCreateInfo external{VK_STRUCTURE_TYPE_EXTERNAL_MEMORY_BUFFER_CREATE_INFO};
  if (dedicated) {
    external.handleTypes = dedicated->exported;
    if (external.handleTypes) info.pNext = &external;
    info.usage |= dedicated->usage;
    if (dedicated->families.size() > 1) {
      info.sharingMode = VK_SHARING_MODE_CONCURRENT;
      info.queueFamilyIndexCount = static_cast<std::uint32_t>(dedicated->families.size());
      info.pQueueFamilyIndices = dedicated->families.data();
    }
  }
  IMPRINT_ASSIGN(block->buffer,
                 make_handle<VkBuffer>(device_, "vkCreateBuffer", f.vkCreateBuffer, f.vkDestroyBuffer, info));

  VkMemoryRequirements requirements{};
  f.vkGetBufferMemoryRequirements(device_.handle(), block->buffer.get(), &requirements);
  const char* refusal = nullptr;
  {
    const std::lock_guard lock(mutex_);
    refusal = reserve(requirements.size);
  }
  if (refusal) return exhausted(size, kind.use, refusal);
  block->reserved = requirements.size;

  if (auto bound = bind_memory(*block, requirements, external.handleTypes); !bound.ok()) {
    const std::lock_guard lock(mutex_);
    unreserve(requirements.size);
    return std::move(bound).error();
  }
  return block;
}

Status PooledMemory::bind_memory(Block& block, const VkMemoryRequirements& requirements,
                                 VkExternalMemoryHandleTypeFlags exported) {
  const Functions& f = device_.functions();
  const auto types = memory_types(properties_, requirements.memoryTypeBits, block.kind.use);
  if (types.empty())
    return make_error(ErrorCode::unsupported, std::string("the device has no memory type for ") +
                                                  use_name(block.kind.use) + " blocks");

  bool over_budget = false;
  VkResult result = VK_ERROR_OUT_OF_DEVICE_MEMORY;
  for (const std::uint32_t type : types) {
    if (!within_budget(properties_.memoryTypes[type].heapIndex, requirements.size)) {
      over_budget = true;
      continue;
    }
    VkMemoryDedicatedAllocateInfo alone{VK_STRUCTURE_TYPE_MEMORY_DEDICATED_ALLOCATE_INFO};
    alone.buffer = block.buffer.get();
    VkMemoryAllocateInfo info{VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO};
    if (block.kind.dedicated) info.pNext = &alone;
    // Memory that is dedicated to one buffer would have to be imported so too, which needs one extension more
    // of the other device.
    VkExportMemoryAllocateInfo exporting{VK_STRUCTURE_TYPE_EXPORT_MEMORY_ALLOCATE_INFO, nullptr, exported};
    if (exported) info.pNext = &exporting;
    info.allocationSize = requirements.size;
    info.memoryTypeIndex = type;
    VkDeviceMemory memory = VK_NULL_HANDLE;
    result = calls_.allocate
                 ? calls_.allocate(calls_.user, info, &memory)
                 : f.vkAllocateMemory(device_.handle(), &info, device_.allocation_callbacks(), &memory);
    if (result == VK_SUCCESS && !memory)
      return make_error(ErrorCode::invalid_argument,
                        "the host's allocate_device_memory returned VK_SUCCESS and no memory; where it has "
                        "none it is to return "
                        "VK_ERROR_OUT_OF_DEVICE_MEMORY");
    if (result == VK_SUCCESS) {
      block.memory = BlockMemory(device_, memory, calls_);
      block.memory_type = type;
      break;
    }
    if (result != VK_ERROR_OUT_OF_DEVICE_MEMORY && result != VK_ERROR_TOO_MANY_OBJECTS) break;
  }
  if (result == VK_ERROR_TOO_MANY_OBJECTS) {
    return exhausted(
        block.size, block.kind.use,
        "which the driver refused: Imprint and the host have made all allocations that the device allows");
  }
  if (result == VK_ERROR_OUT_OF_DEVICE_MEMORY) {
    return exhausted(block.size, block.kind.use,
                     over_budget ? "which the driver's memory budget has no room for"
                                 : "which the device has no room for");
  }
  if (result != VK_SUCCESS) return vulkan_error(device_, "vkAllocateMemory", result);

  Counters& counters = device_.counters();
  counters.allocations.fetch_add(1, std::memory_order_relaxed);
  if (counters.on_frame()) counters.frame_allocations.fetch_add(1, std::memory_order_relaxed);
  std::uint64_t number = 0;
  {
    const std::lock_guard lock(mutex_);
    number = stats_.device_allocations++;
  }
  const std::string name =
      std::string("imprint ") + use_name(block.kind.use) + " block " + std::to_string(number);
  set_debug_name(device_, VK_OBJECT_TYPE_BUFFER, block.buffer.get(), name);
  set_debug_name(device_, VK_OBJECT_TYPE_DEVICE_MEMORY, block.memory.get(), name);

  if (result = f.vkBindBufferMemory(device_.handle(), block.buffer.get(), block.memory.get(), 0);
      result != VK_SUCCESS) {
    return vulkan_error(device_, "vkBindBufferMemory", result);
  }
  if (is_mapped(block.kind.use)) {
    result = f.vkMapMemory(device_.handle(), block.memory.get(), 0, VK_WHOLE_SIZE, 0, &block.mapped);
    if (result != VK_SUCCESS) return vulkan_error(device_, "vkMapMemory", result);
  }
  return {};
}

VkPhysicalDeviceMemoryBudgetPropertiesEXT PooledMemory::budget() const {
  VkPhysicalDeviceMemoryBudgetPropertiesEXT budget{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT};
  VkPhysicalDeviceMemoryProperties2 properties{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2};
  properties.pNext = &budget;
  device_.functions().vkGetPhysicalDeviceMemoryProperties2(device_.physical_device(), &properties);
  budget.pNext = nullptr;
  return budget;
}

bool PooledMemory::within_budget(std::uint32_t heap, std::uint64_t bytes) const {
  if (!device_.capabilities().memory_budget) return true;
  const VkPhysicalDeviceMemoryBudgetPropertiesEXT found = budget();
  // A driver that reports no budget for the heap has none to keep.
  return found.heapBudget[heap] == 0 || found.heapUsage[heap] + bytes <= found.heapBudget[heap];
}

Error PooledMemory::exhausted(std::uint64_t size, MemoryUse use, const std::string& cause) const {
  const MemoryStats now = stats();
  std::uint64_t cap = 0, held = 0;
  {
    const std::lock_guard lock(mutex_);
    cap = cap_;
    held = held_;
  }
  return make_error(ErrorCode::out_of_device_memory,
                    std::string("asked for a ") + use_name(use) + " block of " + std::to_string(size) +
                        " bytes, " + cause + ": " + std::to_string(now.bytes_in_use) + " bytes are in use, " +
                        std::to_string(now.bytes_reserved) + " reserved, the cap is " +
                        (cap ? std::to_string(cap) + " bytes" : "off") +
                        ", allocations: " + std::to_string(held) + " of " +
                        std::to_string(device_.capabilities().max_memory_allocation_count));
}

}  // namespace

std::unique_ptr<MemoryPool> MemoryPool::create(Device& device, const MemoryPoolOptions& options) {
  return std::make_unique<PooledMemory>(device, options);
}

}  // namespace imprint::vk
