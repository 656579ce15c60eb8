#include "samples/pet/view/render/vulkan_host.h"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstring>
#include <memory>

namespace pet {
namespace {

constexpr const char* kValidationLayer = "VK_LAYER_KHRONOS_validation";

template <class T, class Function, class... Arguments>
Result<std::vector<T>> enumerate(const char* name, Function function, Arguments... arguments) {
  std::uint32_t count = 0;
  PET_CHECK(check(function(arguments..., &count, nullptr), name));
  std::vector<T> items(count);
  PET_CHECK(check(function(arguments..., &count, items.data()), name));
  items.resize(count);
  return items;
}

bool contains(const std::vector<VkExtensionProperties>& list, const char* name) {
  return std::any_of(list.begin(), list.end(),
                     [&](const VkExtensionProperties& e) { return std::strcmp(e.extensionName, name) == 0; });
}

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

}  // namespace

std::string result_name(VkResult result) {
  switch (result) {
    case VK_SUCCESS:
      return "VK_SUCCESS";
    case VK_NOT_READY:
      return "VK_NOT_READY";
    case VK_TIMEOUT:
      return "VK_TIMEOUT";
    case VK_INCOMPLETE:
      return "VK_INCOMPLETE";
    case VK_SUBOPTIMAL_KHR:
      return "VK_SUBOPTIMAL_KHR";
    case VK_ERROR_OUT_OF_HOST_MEMORY:
      return "VK_ERROR_OUT_OF_HOST_MEMORY";
    case VK_ERROR_OUT_OF_DEVICE_MEMORY:
      return "VK_ERROR_OUT_OF_DEVICE_MEMORY";
    case VK_ERROR_INITIALIZATION_FAILED:
      return "VK_ERROR_INITIALIZATION_FAILED";
    case VK_ERROR_DEVICE_LOST:
      return "VK_ERROR_DEVICE_LOST";
    case VK_ERROR_LAYER_NOT_PRESENT:
      return "VK_ERROR_LAYER_NOT_PRESENT";
    case VK_ERROR_EXTENSION_NOT_PRESENT:
      return "VK_ERROR_EXTENSION_NOT_PRESENT";
    case VK_ERROR_FEATURE_NOT_PRESENT:
      return "VK_ERROR_FEATURE_NOT_PRESENT";
    case VK_ERROR_INCOMPATIBLE_DRIVER:
      return "VK_ERROR_INCOMPATIBLE_DRIVER";
    case VK_ERROR_SURFACE_LOST_KHR:
      return "VK_ERROR_SURFACE_LOST_KHR";
    case VK_ERROR_OUT_OF_DATE_KHR:
      return "VK_ERROR_OUT_OF_DATE_KHR";
    default:
      return "VkResult " + std::to_string(static_cast<int>(result));
  }
}

Result<> check(VkResult result, const char* call) {
  if (result < 0) return Error{std::string(call) + ": found " + result_name(result)};
  return {};
}

// The features that the device is created with, as one chain. It stays alive because Imprint reads it too.
// The structs per extension are valid on every version that has them, in core or as an extension.
struct VulkanHost::EnabledFeatures {
  VkPhysicalDeviceFeatures2 core{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2};
  VkPhysicalDeviceTimelineSemaphoreFeatures timeline{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_FEATURES};
  VkPhysicalDeviceHostQueryResetFeatures host_query_reset{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_HOST_QUERY_RESET_FEATURES};
  VkPhysicalDeviceSynchronization2Features synchronization2{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SYNCHRONIZATION_2_FEATURES};
  VkPhysicalDeviceSubgroupSizeControlFeatures subgroup_size{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES};
  VkPhysicalDevicePipelineCreationCacheControlFeatures cache_control{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PIPELINE_CREATION_CACHE_CONTROL_FEATURES};

  // Links the structs whose version or extension `supports` accepts.
  template <class Supports>
  void link(Supports supports) {
    void** tail = &core.pNext;
    const auto add = [&](auto& features, std::uint32_t core_version, const char* extension) {
      if (!supports(core_version, extension)) return;
      *tail = &features;
      tail = &features.pNext;
    };
    add(timeline, VK_API_VERSION_1_2, VK_KHR_TIMELINE_SEMAPHORE_EXTENSION_NAME);
    add(host_query_reset, VK_API_VERSION_1_2, VK_EXT_HOST_QUERY_RESET_EXTENSION_NAME);
    add(synchronization2, VK_API_VERSION_1_3, VK_KHR_SYNCHRONIZATION_2_EXTENSION_NAME);
    add(subgroup_size, VK_API_VERSION_1_3, VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME);
    add(cache_control, VK_API_VERSION_1_3, VK_EXT_PIPELINE_CREATION_CACHE_CONTROL_EXTENSION_NAME);
  }
};

Result<std::unique_ptr<VulkanHost>> VulkanHost::create(const VulkanOptions& options) {
  std::unique_ptr<VulkanHost> host(new VulkanHost());
  PET_CHECK(host->create_instance(options));
  if (options.create_surface) {
    PET_ASSIGN(host->surface_, options.create_surface(host->instance_));
  }
  PET_CHECK(host->choose_physical_device(options.device));
  PET_CHECK(host->create_device());
  PET_CHECK(host->create_frames());
  return host;
}

Result<> VulkanHost::create_instance(const VulkanOptions& options) {
  std::uint32_t loader_version = VK_API_VERSION_1_0;
  PET_CHECK(check(vkEnumerateInstanceVersion(&loader_version), "vkEnumerateInstanceVersion"));
  if (loader_version < VK_API_VERSION_1_1)
    return Error{"Vulkan loader: found version 1.0, expected 1.1 or newer. Update libvulkan1."};
  api_version_ = std::min<std::uint32_t>(loader_version, VK_API_VERSION_1_3);

  std::vector<const char*> layers;
  PET_CHECK(choose_extensions(options, layers));

  VkApplicationInfo application{VK_STRUCTURE_TYPE_APPLICATION_INFO};
  application.pApplicationName = "Imprint pet";
  application.apiVersion = api_version_;

  const VkValidationFeatureEnableEXT synchronisation =
      VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT;
  VkValidationFeaturesEXT validation{VK_STRUCTURE_TYPE_VALIDATION_FEATURES_EXT};
  validation.enabledValidationFeatureCount = 1;
  validation.pEnabledValidationFeatures = &synchronisation;

  VkInstanceCreateInfo info{VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO};
  if (options.validation) info.pNext = &validation;
  info.pApplicationInfo = &application;
  info.enabledLayerCount = static_cast<std::uint32_t>(layers.size());
  info.ppEnabledLayerNames = layers.data();
  info.enabledExtensionCount = static_cast<std::uint32_t>(instance_extensions_.size());
  info.ppEnabledExtensionNames = instance_extensions_.data();
  const VkResult result = vkCreateInstance(&info, nullptr, &instance_);
  if (result == VK_ERROR_INCOMPATIBLE_DRIVER)
    return Error{"Vulkan driver: found none. Install one (Debian: mesa-vulkan-drivers)."};
  PET_CHECK(check(result, "vkCreateInstance"));
  if (!options.validation) return {};
  return create_messenger();
}

Result<> VulkanHost::choose_extensions(const VulkanOptions& options, std::vector<const char*>& layers) {
  PET_ASSIGN(const auto available,
             enumerate<VkExtensionProperties>("vkEnumerateInstanceExtensionProperties",
                                              vkEnumerateInstanceExtensionProperties, nullptr));
  window_extensions_ = options.instance_extensions;
  for (const std::string& name : window_extensions_) instance_extensions_.push_back(name.c_str());
  if (!options.validation) {
    if (contains(available, VK_EXT_DEBUG_UTILS_EXTENSION_NAME))
      instance_extensions_.push_back(VK_EXT_DEBUG_UTILS_EXTENSION_NAME);
    return {};
  }
  PET_ASSIGN(const auto found, enumerate<VkLayerProperties>("vkEnumerateInstanceLayerProperties",
                                                            vkEnumerateInstanceLayerProperties));
  const auto validates = [](const VkLayerProperties& layer) {
    return std::strcmp(layer.layerName, kValidationLayer) == 0;
  };
  if (std::none_of(found.begin(), found.end(), validates))
    return Error{
        "--validation: found no VK_LAYER_KHRONOS_validation. Install it (Debian: vulkan-validationlayers)."};
  layers.push_back(kValidationLayer);
  instance_extensions_.push_back(VK_EXT_DEBUG_UTILS_EXTENSION_NAME);
  instance_extensions_.push_back(VK_EXT_VALIDATION_FEATURES_EXTENSION_NAME);
  return {};
}

Result<> VulkanHost::create_messenger() {
  VkDebugUtilsMessengerCreateInfoEXT messenger{VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT};
  messenger.messageSeverity =
      VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT | VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT;
  messenger.messageType =
      VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT | VK_DEBUG_UTILS_MESSAGE_TYPE_PERFORMANCE_BIT_EXT;
  messenger.pfnUserCallback = on_validation;
  messenger.pUserData = this;
  const auto create = reinterpret_cast<PFN_vkCreateDebugUtilsMessengerEXT>(
      vkGetInstanceProcAddr(instance_, "vkCreateDebugUtilsMessengerEXT"));
  return check(create(instance_, &messenger, nullptr, &messenger_), "vkCreateDebugUtilsMessengerEXT");
}

// The first family with graphics and compute that, if there is a window, can present. UINT32_MAX: none.
std::uint32_t VulkanHost::find_queue_family(VkPhysicalDevice candidate) const {
  std::uint32_t count = 0;
  vkGetPhysicalDeviceQueueFamilyProperties(candidate, &count, nullptr);
  std::vector<VkQueueFamilyProperties> families(count);
  vkGetPhysicalDeviceQueueFamilyProperties(candidate, &count, families.data());
  constexpr VkQueueFlags kNeeded = VK_QUEUE_GRAPHICS_BIT | VK_QUEUE_COMPUTE_BIT;
  for (std::uint32_t family = 0; family < count; ++family) {
    VkBool32 presents = surface_ == VK_NULL_HANDLE;
    if (surface_ != VK_NULL_HANDLE &&
        vkGetPhysicalDeviceSurfaceSupportKHR(candidate, family, surface_, &presents) != VK_SUCCESS)
      continue;
    if ((families[family].queueFlags & kNeeded) == kNeeded && presents) return family;
  }
  return UINT32_MAX;
}

Result<> VulkanHost::choose_physical_device(const std::string& wanted) {
  PET_ASSIGN(const auto devices, enumerate<VkPhysicalDevice>("vkEnumeratePhysicalDevices",
                                                             vkEnumeratePhysicalDevices, instance_));
  if (devices.empty())
    return Error{"Vulkan device: found none. Install a driver (Debian: mesa-vulkan-drivers)."};
  const bool by_index = !wanted.empty() && std::all_of(wanted.begin(), wanted.end(),
                                                       [](unsigned char c) { return std::isdigit(c); });

  std::string known;
  int best_rank = -1;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    VkPhysicalDeviceProperties properties;
    vkGetPhysicalDeviceProperties(devices[i], &properties);
    known += (i ? ", " : "") + std::to_string(i) + " = " + properties.deviceName;
    if (by_index && wanted != std::to_string(i)) continue;
    if (!by_index && !wanted.empty() && lower(properties.deviceName).find(lower(wanted)) == std::string::npos)
      continue;
    if (properties.apiVersion < VK_API_VERSION_1_1 || find_queue_family(devices[i]) == UINT32_MAX) continue;
    const int rank = properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU     ? 2
                     : properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU ? 1
                                                                                       : 0;
    if (rank > best_rank) {
      best_rank = rank;
      physical_device_ = devices[i];
    }
  }
  if (!physical_device_)
    return Error{"--device" + (wanted.empty() ? std::string() : " '" + wanted + "'") + ": found " + known +
                 ", expected a device with Vulkan 1.1 and a queue for graphics and compute" +
                 (surface_ ? " that can present" : "")};
  describe_physical_device();
  return {};
}

void VulkanHost::describe_physical_device() {
  queue_family_ = find_queue_family(physical_device_);
  vkGetPhysicalDeviceMemoryProperties(physical_device_, &memory_);
  vkGetPhysicalDeviceProperties(physical_device_, &properties_);
  driver_name_ = "driver " + std::to_string(properties_.driverVersion);
  if (std::min(api_version_, properties_.apiVersion) >= VK_API_VERSION_1_2) {
    VkPhysicalDeviceDriverProperties driver{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES};
    VkPhysicalDeviceProperties2 properties{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, &driver};
    vkGetPhysicalDeviceProperties2(physical_device_, &properties);
    driver_name_ = std::string(driver.driverName) + " " + driver.driverInfo;
  }
}

Result<> VulkanHost::create_device() {
  PET_ASSIGN(const auto available, enumerate<VkExtensionProperties>("vkEnumerateDeviceExtensionProperties",
                                                                    vkEnumerateDeviceExtensionProperties,
                                                                    physical_device_, nullptr));
  const std::uint32_t version = std::min(api_version_, properties_.apiVersion);
  const auto in_core_or_enabled = [&](std::uint32_t core_version, const char* extension) {
    if (version >= core_version) return true;
    if (!contains(available, extension)) return false;
    device_extensions_.push_back(extension);
    return true;
  };

  features_ = std::make_unique<EnabledFeatures>();
  features_->link(in_core_or_enabled);
  vkGetPhysicalDeviceFeatures2(physical_device_, &features_->core);
  // The query left the supported ones on. The game needs none of the 1.0 features.
  features_->core.features = {};

  if (surface_) device_extensions_.push_back(VK_KHR_SWAPCHAIN_EXTENSION_NAME);
  for (const char* bonus : {VK_EXT_MEMORY_BUDGET_EXTENSION_NAME, VK_KHR_PUSH_DESCRIPTOR_EXTENSION_NAME,
                            VK_EXT_CALIBRATED_TIMESTAMPS_EXTENSION_NAME})
    if (contains(available, bonus)) device_extensions_.push_back(bonus);

  const float priority = 1.0f;
  VkDeviceQueueCreateInfo queue{VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO};
  queue.queueFamilyIndex = queue_family_;
  queue.queueCount = 1;
  queue.pQueuePriorities = &priority;

  VkDeviceCreateInfo info{VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO};
  info.pNext = &features_->core;
  info.queueCreateInfoCount = 1;
  info.pQueueCreateInfos = &queue;
  info.enabledExtensionCount = static_cast<std::uint32_t>(device_extensions_.size());
  info.ppEnabledExtensionNames = device_extensions_.data();
  PET_CHECK(check(vkCreateDevice(physical_device_, &info, nullptr, &device_), "vkCreateDevice"));
  vkGetDeviceQueue(device_, queue_family_, 0, &queue_);
  return {};
}

Result<> VulkanHost::create_frames() {
  for (FrameSlot& slot : slots_) {
    VkCommandPoolCreateInfo pool{VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO};
    pool.flags = VK_COMMAND_POOL_CREATE_TRANSIENT_BIT;
    pool.queueFamilyIndex = queue_family_;
    PET_CHECK(check(vkCreateCommandPool(device_, &pool, nullptr, &slot.pool), "vkCreateCommandPool"));

    VkCommandBufferAllocateInfo commands{VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO};
    commands.commandPool = slot.pool;
    commands.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
    commands.commandBufferCount = 1;
    PET_CHECK(
        check(vkAllocateCommandBuffers(device_, &commands, &slot.commands), "vkAllocateCommandBuffers"));

    VkFenceCreateInfo fence{VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
    fence.flags = VK_FENCE_CREATE_SIGNALED_BIT;
    PET_CHECK(check(vkCreateFence(device_, &fence, nullptr, &slot.done), "vkCreateFence"));
  }
  return {};
}

// Declares everything that was enabled above. Imprint uses nothing that is not declared.
imp_vk_device_info VulkanHost::device_info(QueueAccess access) const {
  imp_vk_device_info info = imp_vk_device_info_init();
  info.get_instance_proc_addr = reinterpret_cast<imp_get_instance_proc_addr>(vkGetInstanceProcAddr);
  info.instance = instance_;
  info.physical_device = physical_device_;
  info.device = device_;
  info.api_version = api_version_;
  info.instance_extension_count = static_cast<std::uint32_t>(instance_extensions_.size());
  info.instance_extensions = instance_extensions_.data();
  info.device_extension_count = static_cast<std::uint32_t>(device_extensions_.size());
  info.device_extensions = device_extensions_.data();
  info.features = &features_->core;
  info.queue.family = queue_family_;
  if (access == QueueAccess::submit) {
    info.queue.queue = queue_;
    info.queue.access = IMP_QUEUE_LOCK;
    info.queue.user = &queue_mutex_;
    info.queue.lock = [](void* mutex, VkQueue) { static_cast<std::mutex*>(mutex)->lock(); };
    info.queue.unlock = [](void* mutex, VkQueue) { static_cast<std::mutex*>(mutex)->unlock(); };
  }
  return info;
}

Result<FrameStart> VulkanHost::begin_frame() {
  const std::uint64_t frame = ++frame_;
  FrameSlot& slot = slots_[frame % kFramesInFlight];
  PET_CHECK(check(vkWaitForFences(device_, 1, &slot.done, VK_TRUE, UINT64_MAX), "vkWaitForFences"));
  safe_frame_ = std::max(safe_frame_, slot.frame);
  PET_CHECK(check(vkResetFences(device_, 1, &slot.done), "vkResetFences"));
  PET_CHECK(check(vkResetCommandPool(device_, slot.pool, 0), "vkResetCommandPool"));

  VkCommandBufferBeginInfo begin{VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
  begin.flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT;
  PET_CHECK(check(vkBeginCommandBuffer(slot.commands, &begin), "vkBeginCommandBuffer"));
  slot.frame = frame;
  return FrameStart{slot.commands, frame, safe_frame_, static_cast<std::uint32_t>(frame % kFramesInFlight)};
}

Result<> VulkanHost::end_frame(VkSemaphore wait, VkSemaphore signal) {
  FrameSlot& slot = slots_[frame_ % kFramesInFlight];
  PET_CHECK(check(vkEndCommandBuffer(slot.commands), "vkEndCommandBuffer"));
  const VkPipelineStageFlags wait_stages =
      VK_PIPELINE_STAGE_COLOR_ATTACHMENT_OUTPUT_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT;
  VkSubmitInfo submit{VK_STRUCTURE_TYPE_SUBMIT_INFO};
  submit.waitSemaphoreCount = wait ? 1 : 0;
  submit.pWaitSemaphores = &wait;
  submit.pWaitDstStageMask = &wait_stages;
  submit.commandBufferCount = 1;
  submit.pCommandBuffers = &slot.commands;
  submit.signalSemaphoreCount = signal ? 1 : 0;
  submit.pSignalSemaphores = &signal;
  const std::lock_guard lock(queue_mutex_);
  return check(vkQueueSubmit(queue_, 1, &submit, slot.done), "vkQueueSubmit");
}

Result<> VulkanHost::wait_idle() {
  for (const FrameSlot& slot : slots_)
    PET_CHECK(check(vkWaitForFences(device_, 1, &slot.done, VK_TRUE, UINT64_MAX), "vkWaitForFences"));
  for (const FrameSlot& slot : slots_) safe_frame_ = std::max(safe_frame_, slot.frame);
  return {};
}

Result<> VulkanHost::run_once(const std::function<void(VkCommandBuffer)>& record) {
  PET_ASSIGN(const FrameStart start, begin_frame());
  record(start.commands);
  PET_CHECK(end_frame());
  return wait_idle();
}

Result<std::uint32_t> VulkanHost::memory_type(std::uint32_t type_bits, VkMemoryPropertyFlags flags) const {
  for (std::uint32_t i = 0; i < memory_.memoryTypeCount; ++i)
    if ((type_bits >> i & 1) && (memory_.memoryTypes[i].propertyFlags & flags) == flags) return i;
  return Error{"memory type: found none with flags " + std::to_string(flags) + " among " +
               std::to_string(type_bits)};
}

VkBool32 VulkanHost::on_validation(VkDebugUtilsMessageSeverityFlagBitsEXT, VkDebugUtilsMessageTypeFlagsEXT,
                                   const VkDebugUtilsMessengerCallbackDataEXT* data, void* user) {
  ++static_cast<VulkanHost*>(user)->validation_messages_;
  std::fprintf(stderr, "validation: %s\n", data->pMessage);
  return VK_FALSE;
}

VulkanHost::~VulkanHost() {
  if (device_) {
    {
      const std::lock_guard lock(queue_mutex_);
      vkDeviceWaitIdle(device_);
    }
    for (FrameSlot& slot : slots_) {
      vkDestroyFence(device_, slot.done, nullptr);
      vkDestroyCommandPool(device_, slot.pool, nullptr);
    }
    vkDestroyDevice(device_, nullptr);
  }
  if (surface_) vkDestroySurfaceKHR(instance_, surface_, nullptr);
  if (messenger_) {
    const auto destroy_messenger = reinterpret_cast<PFN_vkDestroyDebugUtilsMessengerEXT>(
        vkGetInstanceProcAddr(instance_, "vkDestroyDebugUtilsMessengerEXT"));
    destroy_messenger(instance_, messenger_, nullptr);
  }
  if (instance_) vkDestroyInstance(instance_, nullptr);
}

}  // namespace pet
