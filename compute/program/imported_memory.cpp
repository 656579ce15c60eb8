#include "compute/program/imported_memory.h"

#include <cstdint>
#include <vector>

#include "compute/base/text.h"

namespace imprint::program {
namespace {

constexpr VkExternalMemoryHandleTypeFlagBits kHostAllocation =
    VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT;

// Null unless the extension is enabled.
PFN_vkGetMemoryHostPointerPropertiesEXT properties_function(vk::Device& device) {
  return reinterpret_cast<PFN_vkGetMemoryHostPointerPropertiesEXT>(
      device.functions().vkGetDeviceProcAddr(device.handle(), "vkGetMemoryHostPointerPropertiesEXT"));
}

std::uint64_t import_alignment(vk::Device& device) {
  VkPhysicalDeviceExternalMemoryHostPropertiesEXT host{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_MEMORY_HOST_PROPERTIES_EXT};
  VkPhysicalDeviceProperties2 properties{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, &host};
  device.functions().vkGetPhysicalDeviceProperties2(device.physical_device(), &properties);
  return host.minImportedHostPointerAlignment;
}

Result<vk::Handle<VkBuffer>> make_buffer(vk::Device& device, std::uint64_t bytes) {
  const std::vector<std::uint32_t>& families = device.options().memory.families;
  const VkExternalMemoryBufferCreateInfo external{VK_STRUCTURE_TYPE_EXTERNAL_MEMORY_BUFFER_CREATE_INFO,
                                                  nullptr, kHostAllocation};
  VkBufferCreateInfo info{VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO, &external};
  info.size = bytes;
  info.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
               VK_BUFFER_USAGE_TRANSFER_DST_BIT;
  if (families.size() > 1) {
    info.sharingMode = VK_SHARING_MODE_CONCURRENT;
    info.queueFamilyIndexCount = static_cast<std::uint32_t>(families.size());
    info.pQueueFamilyIndices = families.data();
  }
  const vk::Functions& f = device.functions();
  return vk::make_handle<VkBuffer>(device, "vkCreateBuffer", f.vkCreateBuffer, f.vkDestroyBuffer, info);
}

// The best type that both the buffer and the pointer allow; none: 32.
std::uint32_t coherent_type(vk::Device& device, std::uint32_t allowed) {
  VkPhysicalDeviceMemoryProperties properties{};
  device.functions().vkGetPhysicalDeviceMemoryProperties(device.physical_device(), &properties);
  constexpr VkMemoryPropertyFlags kCoherent =
      VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
  for (const VkMemoryPropertyFlags wanted : {kCoherent | VK_MEMORY_PROPERTY_HOST_CACHED_BIT, kCoherent})
    for (std::uint32_t i = 0; i < properties.memoryTypeCount; ++i)
      if ((allowed >> i & 1u) && (properties.memoryTypes[i].propertyFlags & wanted) == wanted) return i;
  return 32;
}

}  // namespace

bool ImportedMemory::is_usable(vk::Device& device) { return properties_function(device) != nullptr; }

Result<std::unique_ptr<ImportedMemory>> ImportedMemory::import(vk::Device& device,
                                                               std::span<std::byte> host) {
  const PFN_vkGetMemoryHostPointerPropertiesEXT properties_of = properties_function(device);
  if (!properties_of)
    return make_error(ErrorCode::unsupported, "the device was created without VK_EXT_external_memory_host");
  const std::uint64_t alignment = import_alignment(device);
  if (reinterpret_cast<std::uintptr_t>(host.data()) % alignment != 0 || host.size() % alignment != 0)
    return make_error(ErrorCode::unsupported, text("host memory: found one of ", host.size(),
                                                   " bytes, expected whole multiples of ", alignment));
  std::unique_ptr<ImportedMemory> made(new ImportedMemory);
  IMPRINT_ASSIGN(made->buffer_, make_buffer(device, host.size()));
  VkMemoryHostPointerPropertiesEXT pointer{VK_STRUCTURE_TYPE_MEMORY_HOST_POINTER_PROPERTIES_EXT};
  const VkResult known = properties_of(device.handle(), kHostAllocation, host.data(), &pointer);
  if (known != VK_SUCCESS) return vk::vulkan_error(device, "vkGetMemoryHostPointerPropertiesEXT", known);
  const vk::Functions& f = device.functions();
  VkMemoryRequirements requirements{};
  f.vkGetBufferMemoryRequirements(device.handle(), made->buffer_.get(), &requirements);
  const std::uint32_t type = coherent_type(device, requirements.memoryTypeBits & pointer.memoryTypeBits);
  if (type == 32 || requirements.size > host.size())
    return make_error(ErrorCode::unsupported, "host memory: the device has no coherent type for it");
  const VkImportMemoryHostPointerInfoEXT imported{VK_STRUCTURE_TYPE_IMPORT_MEMORY_HOST_POINTER_INFO_EXT,
                                                  nullptr, kHostAllocation, host.data()};
  const VkMemoryAllocateInfo info{VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO, &imported, host.size(), type};
  IMPRINT_ASSIGN(made->memory_, vk::make_handle<VkDeviceMemory>(device, "vkAllocateMemory",
                                                                f.vkAllocateMemory, f.vkFreeMemory, info));
  const VkResult bound = f.vkBindBufferMemory(device.handle(), made->buffer_.get(), made->memory_.get(), 0);
  if (bound != VK_SUCCESS) return vk::vulkan_error(device, "vkBindBufferMemory", bound);
  return made;
}

}  // namespace imprint::program
