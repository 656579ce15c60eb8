#include "tests/gpu/vk_fixture.h"

#include <dlfcn.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <utility>

#include "compute/vk/handle.h"

namespace imprint::vk::test {
namespace {

constexpr const char* kValidation = "VK_LAYER_KHRONOS_validation";

Error lacking(std::string what) { return make_error(ErrorCode::unsupported, std::move(what)); }

bool has_validation(PFN_vkGetInstanceProcAddr get) {
  const auto enumerate = reinterpret_cast<PFN_vkEnumerateInstanceLayerProperties>(
      get(nullptr, "vkEnumerateInstanceLayerProperties"));
  std::uint32_t count = 0;
  enumerate(&count, nullptr);
  std::vector<VkLayerProperties> layers(count);
  enumerate(&count, layers.data());
  return std::ranges::any_of(
      layers, [](const VkLayerProperties& layer) { return std::strcmp(layer.layerName, kValidation) == 0; });
}

// Part of a name, in any case.
bool contains(std::string_view name, std::string_view part) {
  const auto same = [](unsigned char a, unsigned char b) { return std::tolower(a) == std::tolower(b); };
  return !std::ranges::search(name, part, same).empty() || part.empty();
}

}  // namespace

Result<std::unique_ptr<Instance>> Instance::create(std::uint32_t api_version) {
  std::unique_ptr<Instance> self(new Instance);
  self->api_version_ = api_version;
  self->library_ = dlopen("libvulkan.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!self->library_) return lacking("no libvulkan.so.1: install libvulkan1");
  self->get_instance_proc_addr_ =
      reinterpret_cast<PFN_vkGetInstanceProcAddr>(dlsym(self->library_, "vkGetInstanceProcAddr"));

  VkDebugUtilsMessengerCreateInfoEXT messenger{VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT};
  messenger.messageSeverity =
      VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT | VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT;
  messenger.messageType = VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT;
  messenger.pfnUserCallback = &note;
  messenger.pUserData = self.get();
  const VkValidationFeatureEnableEXT enabled[] = {
      VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT};
  VkValidationFeaturesEXT validation{VK_STRUCTURE_TYPE_VALIDATION_FEATURES_EXT};
  validation.pNext = &messenger;
  validation.enabledValidationFeatureCount = 1;
  validation.pEnabledValidationFeatures = enabled;

  VkApplicationInfo application{VK_STRUCTURE_TYPE_APPLICATION_INFO};
  application.apiVersion = api_version;
  VkInstanceCreateInfo info{VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO};
  info.pApplicationInfo = &application;
  self->validated_ = has_validation(self->get_instance_proc_addr_);
  if (self->validated_) {
    self->extensions_ = {VK_EXT_DEBUG_UTILS_EXTENSION_NAME};
    info.pNext = &validation;
    info.enabledLayerCount = 1;
    info.ppEnabledLayerNames = &kValidation;
  }
  info.enabledExtensionCount = static_cast<std::uint32_t>(self->extensions_.size());
  info.ppEnabledExtensionNames = self->extensions_.data();
  const auto create_instance =
      reinterpret_cast<PFN_vkCreateInstance>(self->get_instance_proc_addr_(nullptr, "vkCreateInstance"));
  if (create_instance(&info, nullptr, &self->handle_) != VK_SUCCESS)
    return lacking("vkCreateInstance failed");
  if (self->validated_) {
    self->function<PFN_vkCreateDebugUtilsMessengerEXT>("vkCreateDebugUtilsMessengerEXT")(
        self->handle_, &messenger, nullptr, &self->messenger_);
  }

  const auto enumerate = self->function<PFN_vkEnumeratePhysicalDevices>("vkEnumeratePhysicalDevices");
  std::uint32_t count = 0;
  enumerate(self->handle_, &count, nullptr);
  std::vector<VkPhysicalDevice> devices(count);
  enumerate(self->handle_, &count, devices.data());
  const char* wanted = std::getenv("IMPRINT_TEST_DEVICE");
  for (const VkPhysicalDevice device : devices) {
    VkPhysicalDeviceProperties properties{};
    self->function<PFN_vkGetPhysicalDeviceProperties>("vkGetPhysicalDeviceProperties")(device, &properties);
    if (!self->physical_device_ && (!wanted || contains(properties.deviceName, wanted)))
      self->physical_device_ = device;
  }
  if (!self->physical_device_)
    return lacking(wanted ? "no Vulkan device of the name in IMPRINT_TEST_DEVICE"
                          : "no Vulkan device: install mesa-vulkan-drivers");
  return self;
}

Instance::~Instance() {
  if (messenger_)
    function<PFN_vkDestroyDebugUtilsMessengerEXT>("vkDestroyDebugUtilsMessengerEXT")(handle_, messenger_,
                                                                                     nullptr);
  if (handle_) function<PFN_vkDestroyInstance>("vkDestroyInstance")(handle_, nullptr);
  // The loader stays loaded: drivers may not support being unmapped between tests.
}

std::vector<std::string> Instance::messages() const {
  const std::lock_guard lock(mutex_);
  return messages_;
}

VKAPI_ATTR VkBool32 VKAPI_CALL Instance::note(VkDebugUtilsMessageSeverityFlagBitsEXT,
                                              VkDebugUtilsMessageTypeFlagsEXT,
                                              const VkDebugUtilsMessengerCallbackDataEXT* data, void* user) {
  auto& self = *static_cast<Instance*>(user);
  const std::lock_guard lock(self.mutex_);
  self.messages_.emplace_back(data->pMessage);
  return VK_FALSE;
}

Result<std::unique_ptr<HostDevice>> HostDevice::create(const Instance& instance, const void* features_chain,
                                                       std::vector<const char*> extensions) {
  std::unique_ptr<HostDevice> self(new HostDevice(instance));
  self->extensions_ = std::move(extensions);
  self->features_.pNext = const_cast<void*>(features_chain);

  std::uint32_t count = 0;
  const auto families_of = instance.function<PFN_vkGetPhysicalDeviceQueueFamilyProperties>(
      "vkGetPhysicalDeviceQueueFamilyProperties");
  families_of(instance.physical_device(), &count, nullptr);
  std::vector<VkQueueFamilyProperties> families(count);
  families_of(instance.physical_device(), &count, families.data());
  while (self->family_ < count && !(families[self->family_].queueFlags & VK_QUEUE_COMPUTE_BIT))
    ++self->family_;
  if (self->family_ == count) return lacking("no compute queue");

  const float priority = 1.0f;
  VkDeviceQueueCreateInfo queue{VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO};
  queue.queueFamilyIndex = self->family_;
  queue.queueCount = 1;
  queue.pQueuePriorities = &priority;
  VkDeviceCreateInfo info{VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO};
  info.pNext = &self->features_;
  info.queueCreateInfoCount = 1;
  info.pQueueCreateInfos = &queue;
  info.enabledExtensionCount = static_cast<std::uint32_t>(self->extensions_.size());
  info.ppEnabledExtensionNames = self->extensions_.data();
  const VkResult result = instance.function<PFN_vkCreateDevice>("vkCreateDevice")(
      instance.physical_device(), &info, nullptr, &self->handle_);
  if (result != VK_SUCCESS) return lacking("vkCreateDevice gave " + std::to_string(result));
  instance.function<PFN_vkGetDeviceQueue>("vkGetDeviceQueue")(self->handle_, self->family_, 0, &self->queue_);
  return self;
}

HostDevice::~HostDevice() {
  if (handle_) instance_.function<PFN_vkDestroyDevice>("vkDestroyDevice")(handle_, nullptr);
}

DeviceDescription HostDevice::description() const {
  DeviceDescription description;
  description.get_instance_proc_addr = instance_.get_instance_proc_addr();
  description.instance = instance_.handle();
  description.physical_device = instance_.physical_device();
  description.device = handle_;
  description.api_version = instance_.api_version();
  description.instance_extensions = instance_.extensions();
  description.device_extensions = extensions_;
  description.features = &features_;
  description.queue_family = family_;
  return description;
}

namespace {

// Binds the buffers from 0 on, and the table of uniforms.
void write_set(Device& device, VkDescriptorSet set, std::span<const Allocation> buffers,
               const Allocation& uniforms) {
  std::vector<VkDescriptorBufferInfo> infos;
  for (const Allocation& buffer : buffers) infos.push_back({buffer.buffer, 0, buffer.bound_size});
  infos.push_back({uniforms.buffer, 0, kTableBytes});
  std::vector<VkWriteDescriptorSet> writes;
  for (std::uint32_t i = 0; i < infos.size(); ++i) {
    const bool last = i + 1 == infos.size();
    VkWriteDescriptorSet write{VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET};
    write.dstSet = set;
    write.dstBinding = last ? kTableBinding : i;
    write.descriptorCount = 1;
    write.descriptorType =
        last ? VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER_DYNAMIC : VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
    write.pBufferInfo = &infos[i];
    writes.push_back(write);
  }
  device.functions().vkUpdateDescriptorSets(device.handle(), static_cast<std::uint32_t>(writes.size()),
                                            writes.data(), 0, nullptr);
}

}  // namespace

Result<> run(Device& device, VkQueue queue, const Kernel& kernel, std::span<const Allocation> buffers,
             std::span<const std::uint32_t> table, std::uint32_t groups) {
  const Functions& f = device.functions();
  IMPRINT_ASSIGN(const Allocation uniforms, device.memory().allocate(kTableBytes, 256, MemoryUse::upload));
  std::memcpy(uniforms.mapped, table.data(), table.size_bytes());

  const VkDescriptorPoolSize sizes[] = {{VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 16},
                                        {VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER_DYNAMIC, 1}};
  VkDescriptorPoolCreateInfo pool_info{VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO};
  pool_info.maxSets = 1;
  pool_info.poolSizeCount = 2;
  pool_info.pPoolSizes = sizes;
  IMPRINT_ASSIGN(const auto pool,
                 make_handle<VkDescriptorPool>(device, "vkCreateDescriptorPool", f.vkCreateDescriptorPool,
                                               f.vkDestroyDescriptorPool, pool_info));
  VkDescriptorSetAllocateInfo set_info{VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO};
  set_info.descriptorPool = pool.get();
  set_info.descriptorSetCount = 1;
  set_info.pSetLayouts = &kernel.set_layout;
  VkDescriptorSet set = VK_NULL_HANDLE;
  if (const VkResult r = f.vkAllocateDescriptorSets(device.handle(), &set_info, &set))
    return vulkan_error(device, "vkAllocateDescriptorSets", r);

  write_set(device, set, buffers, uniforms);

  VkCommandPoolCreateInfo commands_info{VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO};
  commands_info.queueFamilyIndex = device.queue_family();
  IMPRINT_ASSIGN(const auto commands,
                 make_handle<VkCommandPool>(device, "vkCreateCommandPool", f.vkCreateCommandPool,
                                            f.vkDestroyCommandPool, commands_info));
  VkCommandBufferAllocateInfo allocate{VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO};
  allocate.commandPool = commands.get();
  allocate.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
  allocate.commandBufferCount = 1;
  VkCommandBuffer buffer = VK_NULL_HANDLE;
  if (const VkResult r = f.vkAllocateCommandBuffers(device.handle(), &allocate, &buffer))
    return vulkan_error(device, "vkAllocateCommandBuffers", r);

  VkCommandBufferBeginInfo begin{VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
  begin.flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT;
  f.vkBeginCommandBuffer(buffer, &begin);
  const auto offset = static_cast<std::uint32_t>(uniforms.offset);
  f.vkCmdBindPipeline(buffer, VK_PIPELINE_BIND_POINT_COMPUTE, kernel.pipeline);
  f.vkCmdBindDescriptorSets(buffer, VK_PIPELINE_BIND_POINT_COMPUTE, kernel.layout, 0, 1, &set, 1, &offset);
  f.vkCmdDispatch(buffer, groups, 1, 1);
  VkMemoryBarrier barrier{VK_STRUCTURE_TYPE_MEMORY_BARRIER};
  barrier.srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT;
  barrier.dstAccessMask = VK_ACCESS_HOST_READ_BIT;
  f.vkCmdPipelineBarrier(buffer, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, VK_PIPELINE_STAGE_HOST_BIT, 0, 1,
                         &barrier, 0, nullptr, 0, nullptr);
  f.vkEndCommandBuffer(buffer);

  const VkFenceCreateInfo fence_info{VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
  IMPRINT_ASSIGN(const auto fence, make_handle<VkFence>(device, "vkCreateFence", f.vkCreateFence,
                                                        f.vkDestroyFence, fence_info));
  VkSubmitInfo submit{VK_STRUCTURE_TYPE_SUBMIT_INFO};
  submit.commandBufferCount = 1;
  submit.pCommandBuffers = &buffer;
  if (const VkResult r = f.vkQueueSubmit(queue, 1, &submit, fence.get()))
    return vulkan_error(device, "vkQueueSubmit", r);
  const VkFence waited = fence.get();
  const VkResult done = f.vkWaitForFences(device.handle(), 1, &waited, VK_TRUE, 10'000'000'000ull);
  device.memory().free(uniforms);
  if (done != VK_SUCCESS) return vulkan_error(device, "vkWaitForFences", done);
  return {};
}

}  // namespace imprint::vk::test
