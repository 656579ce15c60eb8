#pragma once
// Passes memory between two devices of one process: by file descriptor, on Windows by NT handle.

#include <vulkan/vulkan_core.h>

#include <utility>

#include "compute/base/result.h"

namespace imprint::bridge {

#ifdef _WIN32
inline constexpr VkExternalMemoryHandleTypeFlagBits kMemoryHandle =
    VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_WIN32_BIT;
inline constexpr const char* kMemoryExtension = "VK_KHR_external_memory_win32";
#else
inline constexpr VkExternalMemoryHandleTypeFlagBits kMemoryHandle =
    VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT;
inline constexpr const char* kMemoryExtension = "VK_KHR_external_memory_fd";
#endif

// Owns a handle until a device has imported it.
class ExternalHandle {
 public:
  ExternalHandle() = default;
  ~ExternalHandle() { close(); }
  ExternalHandle(ExternalHandle&& other) noexcept : value_(std::exchange(other.value_, kNone)) {}
  ExternalHandle& operator=(ExternalHandle&& other) noexcept {
    close();
    value_ = std::exchange(other.value_, kNone);
    return *this;
  }

  // Exports memory of `device`. Errors: unsupported (the function is missing), and those of the call.
  static Result<ExternalHandle> of_memory(PFN_vkGetDeviceProcAddr get, VkDevice device,
                                          VkDeviceMemory memory);

  // vkAllocateMemory with `info`, importing the handle. Success consumes it.
  VkResult import_memory(PFN_vkAllocateMemory allocate, VkDevice device, VkMemoryAllocateInfo info,
                         const VkAllocationCallbacks* callbacks, VkDeviceMemory* memory);

 private:
#ifdef _WIN32
  using Value = void*;
  static constexpr Value kNone = nullptr;
#else
  using Value = int;
  static constexpr Value kNone = -1;
#endif
  void close();
  void consumed();  // by an import that succeeded

  Value value_ = kNone;
};

// The error for a VkResult of these calls: out of memory, else unsupported. The next call on a lost device
// reports the loss.
Error external_error(const char* call, VkResult result);

}  // namespace imprint::bridge
