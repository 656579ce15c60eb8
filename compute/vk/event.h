#pragma once
// A point inside a command buffer that the host can look for. It costs the device less than the end of a
// submission.

#include <vulkan/vulkan_core.h>

#include "compute/base/result.h"
#include "compute/vk/device.h"
#include "compute/vk/handle.h"

namespace imprint::vk {

class Event {
 public:
  // Errors: the driver's.
  static Result<Event> create(Device& device) {
    const auto find = [&]<class Function>(Function& function, const char* name) {
      function = reinterpret_cast<Function>(device.functions().vkGetDeviceProcAddr(device.handle(), name));
    };
    Event made;
    PFN_vkCreateEvent create = nullptr;
    PFN_vkDestroyEvent destroy = nullptr;
    find(create, "vkCreateEvent");
    find(destroy, "vkDestroyEvent");
    find(made.get_status_, "vkGetEventStatus");
    find(made.reset_, "vkResetEvent");
    find(made.set_, "vkCmdSetEvent");
    made.device_ = &device;
    const VkEventCreateInfo info{VK_STRUCTURE_TYPE_EVENT_CREATE_INFO};
    IMPRINT_ASSIGN(made.event_, make_handle<VkEvent>(device, "vkCreateEvent", create, destroy, info));
    return made;
  }

  // The device sets it when all earlier commands of the stages are done.
  void record_set(VkCommandBuffer commands, VkPipelineStageFlags stages) const {
    set_(commands, event_.get(), stages);
  }

  // Clears an event that is set, so that the commands may be submitted again. False: it is not set.
  Result<bool> take() {
    const VkResult status = get_status_(device_->handle(), event_.get());
    if (status == VK_EVENT_RESET) return false;
    if (status != VK_EVENT_SET) return vulkan_error(*device_, "vkGetEventStatus", status);
    if (const VkResult result = reset_(device_->handle(), event_.get()); result != VK_SUCCESS)
      return vulkan_error(*device_, "vkResetEvent", result);
    return true;
  }

 private:
  Event() = default;
  Device* device_ = nullptr;
  Handle<VkEvent> event_;
  PFN_vkGetEventStatus get_status_ = nullptr;
  PFN_vkResetEvent reset_ = nullptr;
  PFN_vkCmdSetEvent set_ = nullptr;
};

}  // namespace imprint::vk
