// The engine's instance, device and declaration.

#include "tests/hosts/engine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "tests/hosts/advice.h"
#include "tests/hosts/watched_loader.h"

namespace imprint::hosts {

bool works(VkResult result, const char* what) {
  EXPECT_EQ(result, VK_SUCCESS) << what;
  return result == VK_SUCCESS;
}

namespace {

bool has_extension(VkPhysicalDevice device, const char* name) {
  std::uint32_t count = 0;
  vkEnumerateDeviceExtensionProperties(device, nullptr, &count, nullptr);
  std::vector<VkExtensionProperties> list(count);
  vkEnumerateDeviceExtensionProperties(device, nullptr, &count, list.data());
  return std::ranges::any_of(
      list, [&](const auto& extension) { return std::strcmp(extension.extensionName, name) == 0; });
}

}  // namespace

bool Engine::make_instance(const EngineOptions& options) {
#ifndef HOST_LINKS_LIBVULKAN
  if (!works(volkInitialize(), "volkInitialize")) return false;
#endif
  VkApplicationInfo application{VK_STRUCTURE_TYPE_APPLICATION_INFO};
  application.pApplicationName = "engine";
  application.apiVersion = options.api_version;
  const char* layer = "VK_LAYER_KHRONOS_validation";
  std::vector<const char*> extensions;
  if (window_) extensions = window_->instance_extensions();
  VkInstanceCreateInfo info{VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO};
  info.pApplicationInfo = &application;
  if (options.validation) {
    extensions.push_back("VK_EXT_validation_features");
    extensions.push_back("VK_EXT_debug_utils");
    info.pNext = &kValidation;
    info.enabledLayerCount = 1;
    info.ppEnabledLayerNames = &layer;
  }
  info.enabledExtensionCount = static_cast<std::uint32_t>(extensions.size());
  info.ppEnabledExtensionNames = extensions.data();
  if (!works(vkCreateInstance(&info, nullptr, &instance_),
             "vkCreateInstance (vulkan-validationlayers must be installed)"))
    return false;
#ifndef HOST_LINKS_LIBVULKAN
  volkLoadInstance(instance_);
#endif
  // imprint: begin
  guest_.made_instance(info, instance_, watch(vkGetInstanceProcAddr));
  // imprint: end
  if (!options.validation) return true;
  VkDebugUtilsMessengerCreateInfoEXT messenger{VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT};
  messenger.messageSeverity =
      VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT | VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT;
  messenger.messageType =
      VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT | VK_DEBUG_UTILS_MESSAGE_TYPE_PERFORMANCE_BIT_EXT;
  messenger.pfnUserCallback = on_message;
  messenger.pUserData = this;
  const auto create = reinterpret_cast<PFN_vkCreateDebugUtilsMessengerEXT>(
      vkGetInstanceProcAddr(instance_, "vkCreateDebugUtilsMessengerEXT"));
  return works(create(instance_, &messenger, nullptr, &messenger_), "vkCreateDebugUtilsMessengerEXT");
}

VkBool32 Engine::on_message(VkDebugUtilsMessageSeverityFlagBitsEXT, VkDebugUtilsMessageTypeFlagsEXT,
                            const VkDebugUtilsMessengerCallbackDataEXT* data, void* user) {
  auto& engine = *static_cast<Engine*>(user);
  if (is_explained(*data)) return VK_FALSE;
  const std::lock_guard lock(engine.message_mutex_);
  if (engine.messages_++ == 0) engine.first_message_ = data->pMessage;
  return VK_FALSE;
}

bool Engine::make_device(const EngineOptions& options) {
  if (window_) surface_ = window_->make_surface(instance_);
  if (window_ && !surface_) return ADD_FAILURE() << "no Vulkan driver can draw on this display", false;
  std::uint32_t count = 1;
  vkEnumeratePhysicalDevices(instance_, &count, &physical_device_);
  if (!physical_device_) return ADD_FAILURE() << "no Vulkan device", false;
  vkGetPhysicalDeviceQueueFamilyProperties(physical_device_, &count, nullptr);
  std::vector<VkQueueFamilyProperties> families(count);
  vkGetPhysicalDeviceQueueFamilyProperties(physical_device_, &count, families.data());
  for (family_ = 0; family_ < count; ++family_) {
    constexpr VkQueueFlags kNeeded = VK_QUEUE_GRAPHICS_BIT | VK_QUEUE_COMPUTE_BIT;
    VkBool32 presents = !surface_;
    if (surface_) vkGetPhysicalDeviceSurfaceSupportKHR(physical_device_, family_, surface_, &presents);
    if ((families[family_].queueFlags & kNeeded) == kNeeded && presents) break;
  }
  if (family_ == count) return ADD_FAILURE() << "no queue that draws, computes and presents", false;

  if (options.modern || options.godot) {
    VkPhysicalDeviceFeatures2 supported{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2};
    VkPhysicalDeviceVulkan11Features supported_11{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES};
    VkPhysicalDeviceVulkan12Features supported_12{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES};
    VkPhysicalDeviceVulkan13Features supported_13{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_FEATURES};
    supported.pNext = &supported_11;
    supported_11.pNext = &supported_12;
    if (options.modern) supported_12.pNext = &supported_13;
    vkGetPhysicalDeviceFeatures2(physical_device_, &supported);
    features_.pNext = &features_11_;
    features_11_.pNext = &features_12_;
    features_11_.storageBuffer16BitAccess = supported_11.storageBuffer16BitAccess;
    features_11_.multiview = supported_11.multiview;
    features_12_.shaderFloat16 = supported_12.shaderFloat16;
    if (options.modern) {
      features_12_.pNext = &features_13_;
      features_12_.timelineSemaphore = supported_12.timelineSemaphore;
      features_12_.hostQueryReset = supported_12.hostQueryReset;
      features_12_.bufferDeviceAddress = supported_12.bufferDeviceAddress;
      features_13_.synchronization2 = supported_13.synchronization2;
      features_13_.subgroupSizeControl = supported_13.subgroupSizeControl;
      features_13_.pipelineCreationCacheControl = supported_13.pipelineCreationCacheControl;
    }
  }
  std::vector<const char*> extensions;
  if (surface_) extensions.push_back(VK_KHR_SWAPCHAIN_EXTENSION_NAME);
  if (options.modern)
    for (const char* bonus : {VK_EXT_MEMORY_BUDGET_EXTENSION_NAME, VK_KHR_PUSH_DESCRIPTOR_EXTENSION_NAME})
      if (has_extension(physical_device_, bonus)) extensions.push_back(bonus);

  const float priority = 1;
  VkDeviceQueueCreateInfo queue{VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO};
  queue.queueFamilyIndex = family_;
  queue.queueCount = 1;
  queue.pQueuePriorities = &priority;
  VkDeviceCreateInfo info{VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO};
  if (features_.pNext) info.pNext = &features_;
  info.queueCreateInfoCount = 1;
  info.pQueueCreateInfos = &queue;
  info.enabledExtensionCount = static_cast<std::uint32_t>(extensions.size());
  info.ppEnabledExtensionNames = extensions.data();
  if (!works(vkCreateDevice(physical_device_, &info, nullptr, &device_), "vkCreateDevice")) return false;
#ifndef HOST_LINKS_LIBVULKAN
  volkLoadDevice(device_);
#endif
  // imprint: begin
  guest_.made_device(info, physical_device_, device_);
  // imprint: end
  vkGetDeviceQueue(device_, family_, 0, &queue_);
  return true;
}

imp_vk_device_info Engine::declare(Access access) {
  if (access == Access::lock) return guest_.locked(queue_, family_);
  imp_vk_device_info info = guest_.record_only(family_);
  if (access == Access::single_thread) {
    info.queue.queue = queue_;
    info.queue.access = IMP_QUEUE_SINGLE_THREAD;
  } else if (access == Access::submit) {
    info.queue.queue = queue_;
    info.queue.user = this;
    info.queue.access = IMP_QUEUE_SUBMIT_CALLBACK;
    info.queue.submit = [](void* user, VkQueue queue, std::uint32_t count, const void* submits,
                           std::uint64_t fence) -> std::int32_t {
      VkFence handle = VK_NULL_HANDLE;
      std::memcpy(&handle, &fence, sizeof handle);
      const std::lock_guard lock(static_cast<Engine*>(user)->guest_.queue_lock());
      return vkQueueSubmit(queue, count, static_cast<const VkSubmitInfo*>(submits), handle);
    };
  }
  return info;
}

}  // namespace imprint::hosts
