/* Before and after Vulkan's own header: the handles are the same types. */
#include <imprint/imprint_vulkan.h>
#include <vulkan/vulkan_core.h>

VkDevice same(const imp_vk_device_info* info);
VkDevice same(const imp_vk_device_info* info) { return info->device; }
