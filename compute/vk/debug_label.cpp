#include "compute/vk/debug_label.h"

#include "compute/vk/device.h"

namespace imprint::vk {

void set_debug_name(const Device& device, VkObjectType type, std::uint64_t handle, const std::string& name) {
  if (!device.capabilities().debug_utils || device.lost()) return;
  VkDebugUtilsObjectNameInfoEXT info{VK_STRUCTURE_TYPE_DEBUG_UTILS_OBJECT_NAME_INFO_EXT};
  info.objectType = type;
  info.objectHandle = handle;
  info.pObjectName = name.c_str();
  device.functions().vkSetDebugUtilsObjectNameEXT(device.handle(), &info);
}

CommandLabel::CommandLabel(const Functions& functions, VkCommandBuffer commands, const char* name)
    : functions_(functions), commands_(commands) {
  if (!functions.vkCmdBeginDebugUtilsLabelEXT) return;
  VkDebugUtilsLabelEXT label{VK_STRUCTURE_TYPE_DEBUG_UTILS_LABEL_EXT};
  label.pLabelName = name;
  functions.vkCmdBeginDebugUtilsLabelEXT(commands, &label);
}

CommandLabel::~CommandLabel() {
  if (functions_.vkCmdEndDebugUtilsLabelEXT) functions_.vkCmdEndDebugUtilsLabelEXT(commands_);
}

}  // namespace imprint::vk
