#pragma once
// Owns one Vulkan object of Imprint's. Move-only; null after a move. Destroys the object on the device, and
// with the callbacks, that created it.

#include <vulkan/vulkan_core.h>

#include <utility>

#include "compute/base/result.h"
#include "compute/vk/device.h"

namespace imprint::vk {

template <class H>
class Handle {
 public:
  using Destroy = void(VKAPI_PTR*)(VkDevice, H, const VkAllocationCallbacks*);

  Handle() = default;
  Handle(const Device& device, H handle, Destroy destroy)
      : handle_(handle),
        device_(device.handle()),
        callbacks_(device.allocation_callbacks()),
        destroy_(destroy) {}
  Handle(Handle&& other) noexcept
      : handle_(other.release()),
        device_(other.device_),
        callbacks_(other.callbacks_),
        destroy_(other.destroy_) {}
  Handle& operator=(Handle&& other) noexcept {
    if (this != &other) {
      reset();
      device_ = other.device_;
      callbacks_ = other.callbacks_;
      destroy_ = other.destroy_;
      handle_ = other.release();
    }
    return *this;
  }
  ~Handle() { reset(); }

  H get() const { return handle_; }
  explicit operator bool() const { return handle_ != VK_NULL_HANDLE; }

  // Gives up ownership: the caller destroys the object.
  H release() { return std::exchange(handle_, H{VK_NULL_HANDLE}); }
  void reset() {
    if (handle_ != VK_NULL_HANDLE) destroy_(device_, release(), callbacks_);
  }

 private:
  H handle_ = VK_NULL_HANDLE;
  VkDevice device_ = VK_NULL_HANDLE;
  const VkAllocationCallbacks* callbacks_ = nullptr;  // the device's copy, which outlives every handle
  Destroy destroy_ = nullptr;
};

// Creates an object and owns it. The error names the call and its result.
//   make_handle<VkFence>(device, "vkCreateFence", f.vkCreateFence, f.vkDestroyFence, info)
template <class H, class Info>
Result<Handle<H>> make_handle(Device& device, const char* call,
                              VkResult(VKAPI_PTR* create)(VkDevice, const Info*, const VkAllocationCallbacks*,
                                                          H*),
                              typename Handle<H>::Destroy destroy, const Info& info) {
  // Another thread may have seen the device loss since the caller looked.
  if (device.lost()) return vulkan_error(device, call, VK_ERROR_DEVICE_LOST);
  H handle = VK_NULL_HANDLE;
  const VkResult result = create(device.handle(), &info, device.allocation_callbacks(), &handle);
  if (result != VK_SUCCESS) return vulkan_error(device, call, result);
  return Handle<H>(device, handle, destroy);
}

}  // namespace imprint::vk
