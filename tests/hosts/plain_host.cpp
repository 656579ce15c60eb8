#include "tests/hosts/plain_host.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "tests/hosts/advice.h"

namespace imprint::bridge {
namespace {

constexpr VkDeviceSize kSceneBytes = 1
                                     << 20;  // the checks advise against dedicated memory for smaller buffers
constexpr VkDeviceSize kFilledBytes = 1 << 16;

bool check(VkResult result, const char* what) {
  EXPECT_EQ(result, VK_SUCCESS) << what;
  return result == VK_SUCCESS;
}

bool has_layer(const char* name) {
  std::uint32_t count = 0;
  vkEnumerateInstanceLayerProperties(&count, nullptr);
  std::vector<VkLayerProperties> list(count);
  vkEnumerateInstanceLayerProperties(&count, list.data());
  return std::ranges::any_of(list,
                             [&](const auto& layer) { return std::strcmp(layer.layerName, name) == 0; });
}

}  // namespace

struct PlainHost::Bonuses {
  VkPhysicalDeviceTimelineSemaphoreFeatures timeline{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_FEATURES};
  VkPhysicalDeviceSynchronization2Features synchronization2{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SYNCHRONIZATION_2_FEATURES};
  VkPhysicalDeviceHostQueryResetFeatures query_reset{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_HOST_QUERY_RESET_FEATURES};
  VkPhysicalDeviceSubgroupSizeControlFeatures subgroups{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES};
  VkPhysicalDevicePipelineCreationCacheControlFeatures cache{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PIPELINE_CREATION_CACHE_CONTROL_FEATURES};
  VkPhysicalDeviceShaderFloat16Int8Features float16{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_FLOAT16_INT8_FEATURES};
  VkPhysicalDevice16BitStorageFeatures storage_16bit{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_16BIT_STORAGE_FEATURES};

  // Calls use(name, extension, since, struct, its field) for each.
  template <class Use>
  void each(Use&& use) {
    use("timelineSemaphore", "VK_KHR_timeline_semaphore", VK_API_VERSION_1_2, timeline,
        timeline.timelineSemaphore);
    use("synchronization2", "VK_KHR_synchronization2", VK_API_VERSION_1_3, synchronization2,
        synchronization2.synchronization2);
    use("hostQueryReset", "VK_EXT_host_query_reset", VK_API_VERSION_1_2, query_reset,
        query_reset.hostQueryReset);
    use("subgroupSizeControl", "VK_EXT_subgroup_size_control", VK_API_VERSION_1_3, subgroups,
        subgroups.subgroupSizeControl);
    use("pipelineCreationCacheControl", "VK_EXT_pipeline_creation_cache_control", VK_API_VERSION_1_3, cache,
        cache.pipelineCreationCacheControl);
    use("shaderFloat16", "VK_KHR_shader_float16_int8", VK_API_VERSION_1_2, float16, float16.shaderFloat16);
    use("storageBuffer16BitAccess", "VK_KHR_16bit_storage", VK_API_VERSION_1_1, storage_16bit,
        storage_16bit.storageBuffer16BitAccess);
  }
};

PlainHost::PlainHost(const HostProfile& profile) {
  ok_ = check(volkInitialize(), "volkInitialize") && make_instance(profile) && make_device(profile) &&
        make_frames();
}

PlainHost::~PlainHost() {
  stop_busy_thread();
  if (device_) {
    vk_.vkDeviceWaitIdle(device_);
    for (const Frame& frame : frames_) vk_.vkDestroyFence(device_, frame.fence, nullptr);
    vk_.vkDestroyBuffer(device_, scene_, nullptr);
    vk_.vkFreeMemory(device_, scene_memory_, nullptr);
    for (const Frame& frame : frames_) vk_.vkDestroyCommandPool(device_, frame.pool, nullptr);
    vk_.vkDestroyDevice(device_, nullptr);
  }
  if (messenger_) vkDestroyDebugUtilsMessengerEXT(instance_, messenger_, nullptr);
  if (instance_) vkDestroyInstance(instance_, nullptr);
  EXPECT_EQ(messages_, 0u) << first_message_;
}

bool PlainHost::make_instance(const HostProfile& profile) {
  api_version_ = profile.api_version;
  VkApplicationInfo application{VK_STRUCTURE_TYPE_APPLICATION_INFO};
  application.pApplicationName = "plain host";
  application.apiVersion = api_version_;
  const char* layer = "VK_LAYER_KHRONOS_validation";
  VkInstanceCreateInfo info{VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO};
  info.pApplicationInfo = &application;
  if (profile.validation) {
    if (!has_layer(layer)) {
      ADD_FAILURE() << "the validation layer is missing: install vulkan-validationlayers";
      return false;
    }
    instance_extensions_ = {"VK_EXT_validation_features", "VK_EXT_debug_utils"};
    info.pNext = &hosts::kValidation;
    info.enabledLayerCount = 1;
    info.ppEnabledLayerNames = &layer;
  }
  info.enabledExtensionCount = static_cast<std::uint32_t>(instance_extensions_.size());
  info.ppEnabledExtensionNames = instance_extensions_.data();
  if (!check(vkCreateInstance(&info, nullptr, &instance_), "vkCreateInstance")) return false;
  volkLoadInstanceOnly(instance_);
  if (!profile.validation) return true;
  VkDebugUtilsMessengerCreateInfoEXT messenger{VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT};
  messenger.messageSeverity =
      VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT | VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT;
  messenger.messageType =
      VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT | VK_DEBUG_UTILS_MESSAGE_TYPE_PERFORMANCE_BIT_EXT;
  messenger.pfnUserCallback = on_message;
  messenger.pUserData = this;
  return check(vkCreateDebugUtilsMessengerEXT(instance_, &messenger, nullptr, &messenger_),
               "vkCreateDebugUtilsMessengerEXT");
}

VkBool32 PlainHost::on_message(VkDebugUtilsMessageSeverityFlagBitsEXT, VkDebugUtilsMessageTypeFlagsEXT,
                               const VkDebugUtilsMessengerCallbackDataEXT* data, void* user) {
  auto& host = *static_cast<PlainHost*>(user);
  if (hosts::is_explained(*data)) return VK_FALSE;
  const std::lock_guard lock(host.message_mutex_);
  if (host.messages_++ == 0) host.first_message_ = data->pMessage;
  return VK_FALSE;
}

std::string PlainHost::first_message() const {
  const std::lock_guard lock(message_mutex_);
  return first_message_;
}

void PlainHost::choose_features(const HostProfile& profile) {
  declares_ = profile.declares;
  std::uint32_t count = 0;
  vkEnumerateDeviceExtensionProperties(physical_device_, nullptr, &count, nullptr);
  std::vector<VkExtensionProperties> offered(count);
  vkEnumerateDeviceExtensionProperties(physical_device_, nullptr, &count, offered.data());
  const auto offers = [&](const char* name) {
    return std::ranges::any_of(
        offered, [&](const auto& extension) { return std::strcmp(extension.extensionName, name) == 0; });
  };
  if (profile.everything) {
    features_.pNext = &features_11_;
    features_11_.pNext = &features_12_;
    features_12_.pNext = &features_13_;
    VkPhysicalDeviceFeatures2 supported{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2};
    VkPhysicalDeviceVulkan11Features supported_11{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES};
    VkPhysicalDeviceVulkan12Features supported_12{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES};
    VkPhysicalDeviceVulkan13Features supported_13{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_FEATURES};
    supported.pNext = &supported_11;
    supported_11.pNext = &supported_12;
    supported_12.pNext = &supported_13;
    vkGetPhysicalDeviceFeatures2(physical_device_, &supported);
    const auto enable = [&](const char* name, VkBool32& field, VkBool32 there) {
      field = there && !(profile.without && std::strcmp(profile.without, name) == 0);
      if (field) enabled_.emplace_back(name);
    };
    enable("storageBuffer16BitAccess", features_11_.storageBuffer16BitAccess,
           supported_11.storageBuffer16BitAccess);
    enable("timelineSemaphore", features_12_.timelineSemaphore, supported_12.timelineSemaphore);
    enable("shaderFloat16", features_12_.shaderFloat16, supported_12.shaderFloat16);
    enable("hostQueryReset", features_12_.hostQueryReset, supported_12.hostQueryReset);
    enable("synchronization2", features_13_.synchronization2, supported_13.synchronization2);
    enable("subgroupSizeControl", features_13_.subgroupSizeControl, supported_13.subgroupSizeControl);
    enable("pipelineCreationCacheControl", features_13_.pipelineCreationCacheControl,
           supported_13.pipelineCreationCacheControl);
    return;
  }
  if (profile.bonuses.empty()) return;
  bonuses_ = std::make_shared<Bonuses>();
  VkPhysicalDeviceProperties properties{};
  vkGetPhysicalDeviceProperties(physical_device_, &properties);
  bonuses_->each(
      [&](const char* name, const char* extension, std::uint32_t since, auto& link, VkBool32& field) {
        const bool wanted = std::ranges::any_of(
            profile.bonuses, [&](const char* bonus) { return std::strcmp(bonus, name) == 0; });
        const bool core = std::min(profile.api_version, properties.apiVersion) >= since;
        if (!wanted || (!core && !offers(extension))) return;
        field = VK_TRUE;
        enabled_.emplace_back(name);
        link.pNext = features_.pNext;
        features_.pNext = &link;
        if (!core) device_extensions_.push_back(extension);
      });
  for (const char* bonus : profile.bonuses)
    if (std::strncmp(bonus, "VK_", 3) == 0 && offers(bonus)) {
      device_extensions_.push_back(bonus);
      enabled_.emplace_back(bonus);
    }
}

bool PlainHost::make_device(const HostProfile& profile) {
  std::uint32_t count = 1;
  const VkResult found = vkEnumeratePhysicalDevices(instance_, &count, &physical_device_);
  EXPECT_TRUE(found == VK_SUCCESS || found == VK_INCOMPLETE);
  if (count == 0) {
    ADD_FAILURE() << "no Vulkan device";
    return false;
  }
  std::uint32_t family_count = 0;
  vkGetPhysicalDeviceQueueFamilyProperties(physical_device_, &family_count, nullptr);
  std::vector<VkQueueFamilyProperties> families(family_count);
  vkGetPhysicalDeviceQueueFamilyProperties(physical_device_, &family_count, families.data());
  while (family_ < family_count && !(families[family_].queueFlags & VK_QUEUE_COMPUTE_BIT)) ++family_;

  choose_features(profile);
  const float priorities[] = {1, 0.5f};
  VkDeviceQueueCreateInfo queues[2]{{VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO},
                                    {VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO}};
  queues[0].queueFamilyIndex = family_;
  queues[0].queueCount = 1;
  queues[0].pQueuePriorities = priorities;
  queues[1] = queues[0];
  std::uint32_t queue_infos = 1, second_index = 0;
  bool second = false;
  if (profile.second_queue) {
    second_family_ = 0;
    while (second_family_ < family_count &&
           (second_family_ == family_ || !(families[second_family_].queueFlags & VK_QUEUE_COMPUTE_BIT)))
      ++second_family_;
    second = second_family_ < family_count || families[family_].queueCount > 1;
    if (second && second_family_ < family_count) {
      queues[1].queueFamilyIndex = second_family_;
      queue_infos = 2;
    } else if (second) {
      second_family_ = family_;
      queues[0].queueCount = 2;
      second_index = 1;
    }
  }
  VkDeviceCreateInfo info{VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO};
  if (features_.pNext) info.pNext = &features_;
  info.enabledExtensionCount = static_cast<std::uint32_t>(device_extensions_.size());
  info.ppEnabledExtensionNames = device_extensions_.data();
  info.queueCreateInfoCount = queue_infos;
  info.pQueueCreateInfos = queues;
  if (!check(vkCreateDevice(physical_device_, &info, nullptr, &device_), "vkCreateDevice")) return false;
  volkLoadDeviceTable(&vk_, device_);
  vk_.vkGetDeviceQueue(device_, family_, 0, &queue_);
  if (second) vk_.vkGetDeviceQueue(device_, second_family_, second_index, &second_queue_);
  return true;
}

bool PlainHost::make_frames() {
  VkCommandPoolCreateInfo pool{VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO};
  pool.queueFamilyIndex = family_;
  for (Frame& frame : frames_) {
    if (!check(vk_.vkCreateCommandPool(device_, &pool, nullptr, &frame.pool), "vkCreateCommandPool"))
      return false;
    VkCommandBufferAllocateInfo allocate{VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO};
    allocate.commandPool = frame.pool;
    allocate.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
    allocate.commandBufferCount = 1;
    VkFenceCreateInfo fence{VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
    fence.flags = VK_FENCE_CREATE_SIGNALED_BIT;
    if (!check(vk_.vkAllocateCommandBuffers(device_, &allocate, &frame.commands),
               "vkAllocateCommandBuffers") ||
        !check(vk_.vkCreateFence(device_, &fence, nullptr, &frame.fence), "vkCreateFence")) {
      return false;
    }
  }
  VkBufferCreateInfo buffer{VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO};
  buffer.size = kSceneBytes;
  buffer.usage = VK_BUFFER_USAGE_TRANSFER_DST_BIT;
  if (!check(vk_.vkCreateBuffer(device_, &buffer, nullptr, &scene_), "vkCreateBuffer")) return false;
  VkMemoryRequirements needs{};
  vk_.vkGetBufferMemoryRequirements(device_, scene_, &needs);
  VkMemoryAllocateInfo allocate{VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO};
  allocate.allocationSize = needs.size;
  while (!(needs.memoryTypeBits & (1u << allocate.memoryTypeIndex))) ++allocate.memoryTypeIndex;
  return check(vk_.vkAllocateMemory(device_, &allocate, nullptr, &scene_memory_), "vkAllocateMemory") &&
         check(vk_.vkBindBufferMemory(device_, scene_, scene_memory_, 0), "vkBindBufferMemory");
}

vk::DeviceDescription PlainHost::describe() const {
  vk::DeviceDescription description;
  description.get_instance_proc_addr = vkGetInstanceProcAddr;
  description.instance = instance_;
  description.physical_device = physical_device_;
  description.device = device_;
  description.api_version = api_version_;
  description.instance_extensions = instance_extensions_;
  if (!declares_) return description;
  description.device_extensions = device_extensions_;
  if (features_.pNext) description.features = &features_;
  return description;
}

bool PlainHost::enabled(const char* bonus) const {
  return std::ranges::find(enabled_, bonus) != enabled_.end();
}

VkResult PlainHost::submit(std::uint32_t count, const VkSubmitInfo* submits, VkFence fence) {
  const std::lock_guard lock(mutex_);
  return vk_.vkQueueSubmit(queue_, count, submits, fence);
}

void PlainHost::fill(VkCommandBuffer commands, std::uint32_t value) {
  VkMemoryBarrier barrier{VK_STRUCTURE_TYPE_MEMORY_BARRIER};
  barrier.srcAccessMask = VK_ACCESS_TRANSFER_WRITE_BIT;
  barrier.dstAccessMask = VK_ACCESS_TRANSFER_WRITE_BIT;
  vk_.vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_PIPELINE_STAGE_TRANSFER_BIT, 0, 1,
                           &barrier, 0, nullptr, 0, nullptr);
  vk_.vkCmdFillBuffer(commands, scene_, 0, kFilledBytes, value);
}

VkCommandBuffer PlainHost::begin_frame(std::uint64_t number) {
  current_ = (current_ + 1) % kFramesInFlight;
  Frame& frame = frames_[current_];
  EXPECT_EQ(vk_.vkWaitForFences(device_, 1, &frame.fence, VK_TRUE, ~0ull), VK_SUCCESS);
  safe_frame_ = std::max(safe_frame_, frame.number);
  frame.number = number;
  VkCommandBufferBeginInfo begin{VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
  begin.flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT;
  EXPECT_EQ(vk_.vkResetCommandPool(device_, frame.pool, 0), VK_SUCCESS);
  EXPECT_EQ(vk_.vkBeginCommandBuffer(frame.commands, &begin), VK_SUCCESS);
  fill(frame.commands, 1);
  return frame.commands;
}

void PlainHost::end_frame() {
  Frame& frame = frames_[current_];
  fill(frame.commands, 2);
  EXPECT_EQ(vk_.vkEndCommandBuffer(frame.commands), VK_SUCCESS);
  EXPECT_EQ(vk_.vkResetFences(device_, 1, &frame.fence), VK_SUCCESS);
  VkSubmitInfo info{VK_STRUCTURE_TYPE_SUBMIT_INFO};
  info.commandBufferCount = 1;
  info.pCommandBuffers = &frame.commands;
  EXPECT_EQ(submit(1, &info, frame.fence), VK_SUCCESS);
}

void PlainHost::wait_idle() { EXPECT_EQ(vk_.vkDeviceWaitIdle(device_), VK_SUCCESS); }

void PlainHost::finish_frames() {
  for (const Frame& frame : frames_) {
    EXPECT_EQ(vk_.vkWaitForFences(device_, 1, &frame.fence, VK_TRUE, ~0ull), VK_SUCCESS);
    safe_frame_ = std::max(safe_frame_, frame.number);
  }
}

void PlainHost::start_busy_thread() {
  stop_ = false;
  busy_ = std::thread([this] {
    while (!stop_) {
      EXPECT_EQ(submit(0, nullptr, VK_NULL_HANDLE), VK_SUCCESS);
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
  });
}

void PlainHost::stop_busy_thread() {
  stop_ = true;
  if (busy_.joinable()) busy_.join();
}

}  // namespace imprint::bridge
