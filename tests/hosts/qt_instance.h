#pragma once
// A QVulkanInstance for tests: with the validation layer, whose messages it collects by name.

#include <gtest/gtest.h>
#include <QVersionNumber>
#include <QVulkanInstance>

#include <mutex>
#include <set>
#include <string>

#include "tests/hosts/advice.h"

namespace imprint::hosts {

class QtInstance {
 public:
  // version: null asks for none, as a host that forgot setApiVersion.
  explicit QtInstance(bool validation = true, const QVersionNumber& version = {1, 1}) {
    if (!version.isNull()) instance_.setApiVersion(version);
    instance_.setFlags(QVulkanInstance::NoDebugOutputRedirect);
    if (validation) {
      instance_.setLayers({"VK_LAYER_KHRONOS_validation"});
      instance_.setExtensions({"VK_EXT_debug_utils"});
    }
    ok_ = instance_.create() && (!validation || listen());
    EXPECT_TRUE(ok_) << "Qt could not make a Vulkan instance with the validation layer, VkResult "
                     << instance_.errorCode() << ": install vulkan-validationlayers";
  }
  ~QtInstance() {
    if (messenger_)
      load<PFN_vkDestroyDebugUtilsMessengerEXT>("vkDestroyDebugUtilsMessengerEXT")(instance_.vkInstance(),
                                                                                   messenger_, nullptr);
  }
  QtInstance(const QtInstance&) = delete;
  QtInstance& operator=(const QtInstance&) = delete;

  bool ok() const { return ok_; }
  QVulkanInstance* get() { return &instance_; }
  const std::multiset<std::string>& messages() const { return messages_; }
  const std::string& first_message() const { return first_; }

 private:
  template <class Function>
  Function load(const char* name) {
    return reinterpret_cast<Function>(instance_.getInstanceProcAddr(name));
  }
  bool listen() {
    if (!instance_.layers().contains("VK_LAYER_KHRONOS_validation")) return false;
    VkDebugUtilsMessengerCreateInfoEXT info{VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT};
    info.messageSeverity =
        VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT | VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT;
    info.messageType =
        VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT | VK_DEBUG_UTILS_MESSAGE_TYPE_PERFORMANCE_BIT_EXT;
    info.pfnUserCallback = &QtInstance::note;
    info.pUserData = this;
    const auto create = load<PFN_vkCreateDebugUtilsMessengerEXT>("vkCreateDebugUtilsMessengerEXT");
    return create && create(instance_.vkInstance(), &info, nullptr, &messenger_) == VK_SUCCESS;
  }
  static VKAPI_ATTR VkBool32 VKAPI_CALL note(VkDebugUtilsMessageSeverityFlagBitsEXT,
                                             VkDebugUtilsMessageTypeFlagsEXT,
                                             const VkDebugUtilsMessengerCallbackDataEXT* data, void* user) {
    auto& self = *static_cast<QtInstance*>(user);
    if (is_explained(*data)) return VK_FALSE;
    const std::lock_guard lock(self.mutex_);
    self.messages_.insert(data->pMessageIdName ? data->pMessageIdName : "");
    if (self.first_.empty()) self.first_ = data->pMessage;
    return VK_FALSE;
  }

  QVulkanInstance instance_;
  VkDebugUtilsMessengerEXT messenger_ = VK_NULL_HANDLE;
  bool ok_ = false;
  std::mutex mutex_;
  std::multiset<std::string> messages_;
  std::string first_;
};

}  // namespace imprint::hosts
