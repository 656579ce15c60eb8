#pragma once
// The error for a VkResult of calls that create or enumerate instances and devices.

#include <vulkan/vulkan_core.h>

#include "compute/vk/device.h"

namespace imprint::bridge {

// result_error's code where it names a cause that the caller can act on, else unsupported: this system cannot
// do it.
inline Error creation_error(const char* call, VkResult result) {
  Error error = vk::result_error(call, result);
  if (error.code == ErrorCode::internal) error.code = ErrorCode::unsupported;
  return error;
}

}  // namespace imprint::bridge
