#include "compute/vk/vulkan_error.h"

#include "compute/base/text.h"
#include "compute/vk/device.h"

namespace imprint::vk {
namespace {

const char* result_name(VkResult result) {
  switch (result) {
#define NAME(code) \
  case code:       \
    return #code
    NAME(VK_NOT_READY);
    NAME(VK_TIMEOUT);
    NAME(VK_INCOMPLETE);
    NAME(VK_ERROR_OUT_OF_HOST_MEMORY);
    NAME(VK_ERROR_OUT_OF_DEVICE_MEMORY);
    NAME(VK_ERROR_INITIALIZATION_FAILED);
    NAME(VK_ERROR_DEVICE_LOST);
    NAME(VK_ERROR_MEMORY_MAP_FAILED);
    NAME(VK_ERROR_FEATURE_NOT_PRESENT);
    NAME(VK_ERROR_TOO_MANY_OBJECTS);
    NAME(VK_ERROR_FRAGMENTED_POOL);
    NAME(VK_ERROR_OUT_OF_POOL_MEMORY);
    NAME(VK_ERROR_FRAGMENTATION);
    NAME(VK_ERROR_INVALID_EXTERNAL_HANDLE);
    NAME(VK_ERROR_INVALID_SHADER_NV);
    NAME(VK_PIPELINE_COMPILE_REQUIRED);
    NAME(VK_ERROR_UNKNOWN);
#undef NAME
    default:
      return nullptr;
  }
}

ErrorCode error_code_of(VkResult result) {
  switch (result) {
    case VK_NOT_READY:
    case VK_TIMEOUT:
      return ErrorCode::not_ready;
    case VK_ERROR_OUT_OF_HOST_MEMORY:
    case VK_ERROR_MEMORY_MAP_FAILED:
      return ErrorCode::out_of_host_memory;
    case VK_ERROR_OUT_OF_DEVICE_MEMORY:
    case VK_ERROR_TOO_MANY_OBJECTS:
    case VK_ERROR_FRAGMENTED_POOL:
    case VK_ERROR_OUT_OF_POOL_MEMORY:
    case VK_ERROR_FRAGMENTATION:
      return ErrorCode::out_of_device_memory;
    case VK_ERROR_DEVICE_LOST:
      return ErrorCode::device_lost;
    case VK_ERROR_FEATURE_NOT_PRESENT:
      return ErrorCode::unsupported;
    default:
      return ErrorCode::internal;
  }
}

}  // namespace

Error result_error(const char* call, VkResult result) {
  const char* name = result_name(result);
  return make_error(error_code_of(result),
                    name ? text(call, ": ", name) : text(call, ": VkResult ", static_cast<int>(result)));
}

Error lost_error() { return make_error(ErrorCode::device_lost, "device: found it lost. Make a new one."); }

Error vulkan_error(Device& device, const char* call, VkResult result) {
  if (result == VK_ERROR_DEVICE_LOST) device.mark_lost();
  return result_error(call, result);
}

}  // namespace imprint::vk
