#include "engine-bridge/own/external_handle.h"

#ifdef _WIN32
#ifndef WIN32_LEAN_AND_MEAN
#define WIN32_LEAN_AND_MEAN
#endif
#ifndef NOMINMAX
#define NOMINMAX
#endif
#include <windows.h>

#include <vulkan/vulkan_win32.h>
#else
#include <unistd.h>
#endif

#include "compute/base/text.h"

#include "compute/vk/device.h"

namespace imprint::bridge {
namespace {

#ifdef _WIN32
using GetMemory = PFN_vkGetMemoryWin32HandleKHR;
constexpr const char* kGetMemory = "vkGetMemoryWin32HandleKHR";
#else
using GetMemory = PFN_vkGetMemoryFdKHR;
constexpr const char* kGetMemory = "vkGetMemoryFdKHR";
#endif

Error missing(const char* name) {
  return make_error(ErrorCode::unsupported, text("the device has no ", name));
}

}  // namespace

Error external_error(const char* call, VkResult result) {
  Error error = vk::result_error(call, result);
  if (error.code != ErrorCode::out_of_host_memory && error.code != ErrorCode::out_of_device_memory)
    error.code = ErrorCode::unsupported;
  return error;
}

Result<ExternalHandle> ExternalHandle::of_memory(PFN_vkGetDeviceProcAddr get, VkDevice device,
                                                 VkDeviceMemory memory) {
  const auto call = reinterpret_cast<GetMemory>(get(device, kGetMemory));
  if (!call) return missing(kGetMemory);
#ifdef _WIN32
  const VkMemoryGetWin32HandleInfoKHR info{VK_STRUCTURE_TYPE_MEMORY_GET_WIN32_HANDLE_INFO_KHR, nullptr,
                                           memory, kMemoryHandle};
#else
  const VkMemoryGetFdInfoKHR info{VK_STRUCTURE_TYPE_MEMORY_GET_FD_INFO_KHR, nullptr, memory, kMemoryHandle};
#endif
  ExternalHandle handle;
  if (const VkResult result = call(device, &info, &handle.value_); result != VK_SUCCESS)
    return external_error(kGetMemory, result);
  return handle;
}

VkResult ExternalHandle::import_memory(PFN_vkAllocateMemory allocate, VkDevice device,
                                       VkMemoryAllocateInfo info, const VkAllocationCallbacks* callbacks,
                                       VkDeviceMemory* memory) {
#ifdef _WIN32
  const VkImportMemoryWin32HandleInfoKHR from{VK_STRUCTURE_TYPE_IMPORT_MEMORY_WIN32_HANDLE_INFO_KHR,
                                              info.pNext, kMemoryHandle, value_, nullptr};
#else
  const VkImportMemoryFdInfoKHR from{VK_STRUCTURE_TYPE_IMPORT_MEMORY_FD_INFO_KHR, info.pNext, kMemoryHandle,
                                     value_};
#endif
  info.pNext = &from;
  const VkResult result = allocate(device, &info, callbacks, memory);
  if (result == VK_SUCCESS) consumed();
  return result;
}

void ExternalHandle::close() {
  if (value_ == kNone) return;
#ifdef _WIN32
  CloseHandle(value_);
#else
  ::close(value_);
#endif
  value_ = kNone;
}

// The driver now owns a file descriptor. An NT handle must still be closed.
void ExternalHandle::consumed() {
#ifndef _WIN32
  value_ = kNone;
#endif
}

}  // namespace imprint::bridge
