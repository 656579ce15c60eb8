#include "host.h"

#include <vector>

bool Host::fail(const char* what, VkResult result) {
  error_ = what;
  if (result != VK_SUCCESS) error_ += " failed with VkResult " + std::to_string(static_cast<int>(result));
  return false;
}

bool Host::choose(const std::string& device) {
  std::uint32_t count = 0;
  vkEnumeratePhysicalDevices(instance_, &count, nullptr);
  std::vector<VkPhysicalDevice> devices(count);
  vkEnumeratePhysicalDevices(instance_, &count, devices.data());
  std::string names;
  for (const VkPhysicalDevice candidate : devices) {
    vkGetPhysicalDeviceProperties(candidate, &properties_);
    names += (names.empty() ? "'" : ", '") + std::string(properties_.deviceName) + "'";
    if (std::string(properties_.deviceName).find(device) == std::string::npos) continue;
    vkGetPhysicalDeviceQueueFamilyProperties(candidate, &count, nullptr);
    std::vector<VkQueueFamilyProperties> families(count);
    vkGetPhysicalDeviceQueueFamilyProperties(candidate, &count, families.data());
    for (family_ = 0; family_ < count; ++family_)
      if (families[family_].queueFlags & VK_QUEUE_COMPUTE_BIT) {
        physical_device_ = candidate;
        return true;
      }
  }
  if (names.empty())
    return fail("device: found no Vulkan device. Install a driver, or mesa-vulkan-drivers for software.");
  return fail(
      ("device: found none with '" + device + "' in its name and a compute queue, expected one of " + names)
          .c_str());
}

bool Host::open(const std::string& device, std::span<const char* const> instance_extensions,
                std::span<const char* const> device_extensions) {
  if (volkInitialize() != VK_SUCCESS) return fail("Vulkan loader: not found. Install libvulkan1.");
  VkApplicationInfo application{VK_STRUCTURE_TYPE_APPLICATION_INFO};
  application.pApplicationName = "imprint-sample";
  application.apiVersion = kApiVersion;
  VkInstanceCreateInfo instance{VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO};
  instance.pApplicationInfo = &application;
  instance.enabledExtensionCount = static_cast<std::uint32_t>(instance_extensions.size());
  instance.ppEnabledExtensionNames = instance_extensions.data();
  if (const VkResult r = vkCreateInstance(&instance, nullptr, &instance_); r != VK_SUCCESS)
    return fail("vkCreateInstance", r);
  volkLoadInstance(instance_);
  if (!choose(device)) return false;

  const float priority = 1;
  VkDeviceQueueCreateInfo queue{VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO};
  queue.queueFamilyIndex = family_;
  queue.queueCount = 1;
  queue.pQueuePriorities = &priority;
  VkDeviceCreateInfo info{VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO};
  info.queueCreateInfoCount = 1;
  info.pQueueCreateInfos = &queue;
  info.enabledExtensionCount = static_cast<std::uint32_t>(device_extensions.size());
  info.ppEnabledExtensionNames = device_extensions.data();
  if (const VkResult r = vkCreateDevice(physical_device_, &info, nullptr, &device_); r != VK_SUCCESS)
    return fail("vkCreateDevice", r);
  volkLoadDevice(device_);
  vkGetDeviceQueue(device_, family_, 0, &queue_);

  VkCommandPoolCreateInfo pool{VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO};
  pool.flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT;
  pool.queueFamilyIndex = family_;
  if (const VkResult r = vkCreateCommandPool(device_, &pool, nullptr, &pool_); r != VK_SUCCESS)
    return fail("vkCreateCommandPool", r);
  for (Frame& frame : frames_) {
    VkCommandBufferAllocateInfo buffers{VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO};
    buffers.commandPool = pool_;
    buffers.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
    buffers.commandBufferCount = 1;
    if (const VkResult r = vkAllocateCommandBuffers(device_, &buffers, &frame.commands); r != VK_SUCCESS)
      return fail("vkAllocateCommandBuffers", r);
    const VkFenceCreateInfo fence{VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
    if (const VkResult r = vkCreateFence(device_, &fence, nullptr, &frame.fence); r != VK_SUCCESS)
      return fail("vkCreateFence", r);
  }
  return true;
}

Host::~Host() {
  if (device_) {
    vkDeviceWaitIdle(device_);
    for (const Frame& frame : frames_) vkDestroyFence(device_, frame.fence, nullptr);
    vkDestroyCommandPool(device_, pool_, nullptr);
    vkDestroyDevice(device_, nullptr);
  }
  if (instance_) vkDestroyInstance(instance_, nullptr);
}

bool Host::wait(Frame& frame) {
  if (frame.number == 0) return true;
  if (const VkResult r = vkWaitForFences(device_, 1, &frame.fence, VK_TRUE, UINT64_MAX); r != VK_SUCCESS)
    return fail("vkWaitForFences", r);
  vkResetFences(device_, 1, &frame.fence);
  if (frame.number > safe_frame_) safe_frame_ = frame.number;
  frame.number = 0;
  return true;
}

VkCommandBuffer Host::begin_frame(std::uint64_t frame) {
  current_ = &frames_[frame % kFramesInFlight];
  if (!wait(*current_)) return VK_NULL_HANDLE;
  current_->number = frame;
  VkCommandBufferBeginInfo begin{VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
  begin.flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT;
  if (const VkResult r = vkBeginCommandBuffer(current_->commands, &begin); r != VK_SUCCESS)
    return fail("vkBeginCommandBuffer", r), VK_NULL_HANDLE;
  return current_->commands;
}

bool Host::end_frame(VkSemaphore acquired, VkSemaphore finished) {
  if (const VkResult r = vkEndCommandBuffer(current_->commands); r != VK_SUCCESS)
    return fail("vkEndCommandBuffer", r);
  VkSubmitInfo submit{VK_STRUCTURE_TYPE_SUBMIT_INFO};
  submit.commandBufferCount = 1;
  submit.pCommandBuffers = &current_->commands;
  const VkPipelineStageFlags copies = VK_PIPELINE_STAGE_TRANSFER_BIT;
  submit.waitSemaphoreCount = acquired ? 1 : 0;
  submit.pWaitSemaphores = &acquired;
  submit.pWaitDstStageMask = &copies;
  submit.signalSemaphoreCount = finished ? 1 : 0;
  submit.pSignalSemaphores = &finished;
  if (const VkResult r = vkQueueSubmit(queue_, 1, &submit, current_->fence); r != VK_SUCCESS)
    return fail("vkQueueSubmit", r);
  return true;
}

void Host::wait_for_all() {
  for (Frame& frame : frames_) wait(frame);
}
