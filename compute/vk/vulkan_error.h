#pragma once
// Turns VkResults into Errors: "vkQueueSubmit: VK_ERROR_DEVICE_LOST".

#include <vulkan/vulkan_core.h>

#include "compute/base/result.h"

namespace imprint::vk {

class Device;

// Marks the device lost when the result says so.
Error vulkan_error(Device& device, const char* call, VkResult result);
// For calls made before there is a device to mark.
Error result_error(const char* call, VkResult result);
// For a call that was not made because the device was already lost.
Error lost_error();

}  // namespace imprint::vk
