#pragma once
// What two devices of one process pass memory to each other as: file descriptors, or NT handles on Windows.

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

// A handle until the importing device has taken it over; closed with it otherwise.
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

  // Of memory of `device`, by its own vkGetMemoryFdKHR or the like. Errors: unsupported (no such function),
  // and what the call says.
  static Result<ExternalHandle> of_memory(PFN_vkGetDeviceProcAddr get, VkDevice device,
                                          VkDeviceMemory memory);

  // As vkAllocateMemory with `info`, importing. A success uses the handle up.
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
  void used();  // by an import that succeeded

  Value value_ = kNone;
};

// The error that a VkResult of one of these calls is: out of memory, or unsupported, for what cannot be
// passed on is not shared. A lost device is told by the next call that works on it.
Error external_error(const char* call, VkResult result);

}  // namespace imprint::bridge
