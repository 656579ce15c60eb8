#include "compute/vk/memory/memory_block.h"

#include <algorithm>

namespace imprint::vk {

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
  // The mappable part of the device's own heap is often small, and it belongs to the host.
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
  // Device blocks never fall back silently to slow host memory, unless there is no device-local type.
  if (!is_mapped(use) && !types.empty() && rank(types.front()) == 0) {
    std::erase_if(types, [&](std::uint32_t i) { return rank(i) != 0; });
  }
  return types;
}

Result<Handle<VkBuffer>> create_block_buffer(Device& device, std::uint64_t size,
                                             std::span<const std::uint32_t> families,
                                             const DedicatedBuffer* dedicated) {
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
    families = dedicated->families;
  }
  if (families.size() > 1) {
    info.sharingMode = VK_SHARING_MODE_CONCURRENT;
    info.queueFamilyIndexCount = static_cast<std::uint32_t>(families.size());
    info.pQueueFamilyIndices = families.data();
  }
  const Functions& f = device.functions();
  return make_handle<VkBuffer>(device, "vkCreateBuffer", f.vkCreateBuffer, f.vkDestroyBuffer, info);
}

VkResult allocate_block_memory(MemoryBlock& block, const Device& device, const DeviceMemoryCalls& calls,
                               std::uint64_t bytes, std::uint32_t type,
                               VkExternalMemoryHandleTypeFlags exported) {
  VkMemoryDedicatedAllocateInfo alone{VK_STRUCTURE_TYPE_MEMORY_DEDICATED_ALLOCATE_INFO};
  alone.buffer = block.buffer.get();
  VkMemoryAllocateInfo info{VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO};
  if (block.kind.dedicated) info.pNext = &alone;
  // An importer of dedicated memory needs one more extension, so exported memory is not dedicated.
  VkExportMemoryAllocateInfo exporting{VK_STRUCTURE_TYPE_EXPORT_MEMORY_ALLOCATE_INFO, nullptr, exported};
  if (exported) info.pNext = &exporting;
  info.allocationSize = bytes;
  info.memoryTypeIndex = type;
  VkDeviceMemory memory = VK_NULL_HANDLE;
  const VkResult result = calls.allocate
                              ? calls.allocate(calls.user, info, &memory)
                              : device.functions().vkAllocateMemory(device.handle(), &info,
                                                                    device.allocation_callbacks(), &memory);
  if (result == VK_SUCCESS) {
    block.memory = BlockMemory(device, memory, calls);
    block.memory_type = type;
  }
  return result;
}

Result<> bind_block(MemoryBlock& block, Device& device, const std::string& debug_name) {
  const Functions& f = device.functions();
  set_debug_name(device, VK_OBJECT_TYPE_BUFFER, block.buffer.get(), debug_name);
  set_debug_name(device, VK_OBJECT_TYPE_DEVICE_MEMORY, block.memory.get(), debug_name);
  VkResult result = f.vkBindBufferMemory(device.handle(), block.buffer.get(), block.memory.get(), 0);
  if (result != VK_SUCCESS) return vulkan_error(device, "vkBindBufferMemory", result);
  if (is_mapped(block.kind.use)) {
    result = f.vkMapMemory(device.handle(), block.memory.get(), 0, VK_WHOLE_SIZE, 0, &block.mapped);
    if (result != VK_SUCCESS) return vulkan_error(device, "vkMapMemory", result);
  }
  return {};
}

}  // namespace imprint::vk
