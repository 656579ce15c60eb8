#pragma once
// Names objects and commands in validation messages and captures. Does nothing without VK_EXT_debug_utils.

#include <vulkan/vulkan_core.h>

#include <cstdint>
#include <string>

#include "compute/vk/functions.h"

namespace imprint::vk {

class Device;

void set_debug_name(const Device& device, VkObjectType type, std::uint64_t handle, const std::string& name);
template <class H>
void set_debug_name(const Device& device, VkObjectType type, H* handle, const std::string& name) {
  set_debug_name(device, type, reinterpret_cast<std::uint64_t>(handle), name);
}

// Labels the commands that are recorded during its lifetime. Allocates nothing, so frames may use it.
class CommandLabel {
 public:
  CommandLabel(const Functions& functions, VkCommandBuffer commands, const char* name);
  ~CommandLabel();
  CommandLabel(const CommandLabel&) = delete;
  CommandLabel& operator=(const CommandLabel&) = delete;

 private:
  const Functions& functions_;
  VkCommandBuffer commands_;
};

}  // namespace imprint::vk
