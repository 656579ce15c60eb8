#include "engine-bridge/own/own_device.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstring>

#include "compute/base/text.h"
#include "engine-bridge/own/creation_error.h"
#include "engine-bridge/own/standalone.h"

namespace imprint::bridge {
namespace {

constexpr std::uint32_t kNever = ~0u;

std::string lower(std::string_view from) {
  std::string out(from);
  std::ranges::transform(out, out.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

int rank(VkPhysicalDeviceType type) {
  switch (type) {
    case VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU:
      return 3;
    case VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU:
      return 2;
    case VK_PHYSICAL_DEVICE_TYPE_CPU:
      return 0;
    default:
      return 1;
  }
}

std::string listing(const std::vector<Candidate>& list) {
  std::string all;
  for (std::size_t i = 0; i < list.size(); ++i) {
    all += text(i ? ", " : "", i, " '", list[i].properties.deviceName, "'");
    if (!list[i].usable()) all += " (no vulkan 1.1 compute)";
  }
  return all;
}

Result<std::vector<VkExtensionProperties>> device_extensions(const OwnInstance& instance,
                                                             VkPhysicalDevice physical_device) {
  std::uint32_t count = 0;
  std::vector<VkExtensionProperties> list;
  VkResult result = instance.vkEnumerateDeviceExtensionProperties(physical_device, nullptr, &count, nullptr);
  if (result == VK_SUCCESS) {
    list.resize(count);
    result = instance.vkEnumerateDeviceExtensionProperties(physical_device, nullptr, &count, list.data());
  }
  if (result < 0) return vk::result_error("vkEnumerateDeviceExtensionProperties", result);
  list.resize(std::min<std::size_t>(count, list.size()));
  return list;
}

}  // namespace

bool names_cpu(std::string_view device) { return lower(device) == "cpu"; }

Result<std::vector<Candidate>> candidates(const OwnInstance& instance) {
  IMPRINT_ASSIGN(const std::vector<VkPhysicalDevice> devices, instance.physical_devices());
  std::vector<Candidate> list;
  for (const VkPhysicalDevice physical_device : devices) {
    Candidate candidate;
    candidate.physical_device = physical_device;
    VkPhysicalDeviceProperties2 properties{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2};
    instance.vkGetPhysicalDeviceProperties2(physical_device, &properties);
    candidate.properties = properties.properties;
    std::uint32_t count = 0;
    instance.vkGetPhysicalDeviceQueueFamilyProperties(physical_device, &count, nullptr);
    std::vector<VkQueueFamilyProperties> families(count);
    instance.vkGetPhysicalDeviceQueueFamilyProperties(physical_device, &count, families.data());
    bool timed = false;
    for (std::uint32_t family = 0; family < count; ++family) {
      constexpr VkQueueFlags kKinds = VK_QUEUE_COMPUTE_BIT | VK_QUEUE_GRAPHICS_BIT | VK_QUEUE_TRANSFER_BIT;
      if ((families[family].queueFlags & kKinds) == VK_QUEUE_TRANSFER_BIT &&
          candidate.copy_queue_count == 0) {
        candidate.copy_family = family;
        candidate.copy_queue_count = families[family].queueCount;
      }
      if (!(families[family].queueFlags & VK_QUEUE_COMPUTE_BIT) || families[family].queueCount == 0) continue;
      const bool has_time = families[family].timestampValidBits > 0;
      if (candidate.compute_queue_count == 0 || (has_time && !timed)) candidate.queue_family = family;
      timed = timed || has_time;
      candidate.compute_queue_count += families[family].queueCount;
    }
    list.push_back(candidate);
  }
  return list;
}

std::size_t find(const OwnInstance& instance, const std::vector<Candidate>& list,
                 const std::array<std::uint8_t, VK_UUID_SIZE>& device_uuid) {
  const auto found = std::ranges::find_if(list, [&](const Candidate& candidate) {
    VkPhysicalDeviceIDProperties id{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ID_PROPERTIES};
    VkPhysicalDeviceProperties2 properties{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, &id};
    if (!candidate.usable()) return false;
    instance.vkGetPhysicalDeviceProperties2(candidate.physical_device, &properties);
    return std::ranges::equal(device_uuid, id.deviceUUID);
  });
  return static_cast<std::size_t>(found - list.begin());
}

Result<std::size_t> choose(const std::vector<Candidate>& list, std::string_view wish) {
  std::size_t index = 0;
  const auto [end, error] = std::from_chars(wish.data(), wish.data() + wish.size(), index);
  const bool is_index = !wish.empty() && error == std::errc() && end == wish.data() + wish.size();
  std::size_t best = list.size();
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (!list[i].usable()) continue;
    if (is_index && i != index) continue;
    if (!is_index && lower(list[i].properties.deviceName).find(lower(wish)) == std::string::npos) continue;
    if (best == list.size() || rank(list[i].properties.deviceType) > rank(list[best].properties.deviceType))
      best = i;
  }
  if (best < list.size()) return best;
  if (wish.empty()) {
    return make_error(ErrorCode::not_found,
                      text("no Vulkan device with version 1.1 and a compute queue: found ", listing(list),
                           ". Install a newer driver, or mesa-vulkan-drivers for software."));
  }
  return make_error(ErrorCode::not_found,
                    text("device: found '", wish,
                         "', expected 'cpu', or a number or a part of a name of: ", listing(list)));
}

Result<std::unique_ptr<DeviceSetup>> DeviceSetup::make(const OwnInstance& instance,
                                                       VkPhysicalDevice physical_device,
                                                       bool optional_features,
                                                       std::span<const char* const> extensions) {
  std::unique_ptr<DeviceSetup> setup(new DeviceSetup);
  setup->chain_ = std::make_unique<vk::FeatureStructs>();
  IMPRINT_ASSIGN(const auto available, device_extensions(instance, physical_device));
  const auto has = [&](const char* name) {
    return std::ranges::any_of(
        available, [&](const VkExtensionProperties& e) { return std::strcmp(e.extensionName, name) == 0; });
  };
  // Vulkan requires this of devices that have it.
  if (has("VK_KHR_portability_subset")) setup->extensions_.push_back("VK_KHR_portability_subset");
  for (const char* extension : extensions)
    if (has(extension)) setup->extensions_.push_back(extension);
  if (!optional_features) return setup;

  VkPhysicalDeviceProperties2 properties{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2};
  instance.vkGetPhysicalDeviceProperties2(physical_device, &properties);
  const std::uint32_t version = std::min(instance.api_version(), properties.properties.apiVersion);
  const auto enable = [&](const char* name) {
    const auto same = [&](const char* enabled) { return std::strcmp(enabled, name) == 0; };
    if (std::ranges::none_of(setup->extensions_, same)) setup->extensions_.push_back(name);
  };
  if (has("VK_EXT_memory_budget")) enable("VK_EXT_memory_budget");
  if (has("VK_EXT_external_memory_host")) enable("VK_EXT_external_memory_host");
  const auto add = [&](auto& link, const char* extension, std::uint32_t core_since) {
    if (core_since == kNever || version < core_since) {
      if (!has(extension)) return;
      enable(extension);
    }
    link.pNext = setup->features_.pNext;
    setup->features_.pNext = &link;
  };
  vk::FeatureStructs& c = *setup->chain_;
  add(c.timeline, "VK_KHR_timeline_semaphore", VK_API_VERSION_1_2);
  add(c.synchronization2, "VK_KHR_synchronization2", VK_API_VERSION_1_3);
  add(c.float16_int8, "VK_KHR_shader_float16_int8", VK_API_VERSION_1_2);
  add(c.storage_16bit, "VK_KHR_16bit_storage", VK_API_VERSION_1_1);
  add(c.subgroup, "VK_EXT_subgroup_size_control", VK_API_VERSION_1_3);
  add(c.query_reset, "VK_EXT_host_query_reset", VK_API_VERSION_1_2);
  add(c.cache, "VK_EXT_pipeline_creation_cache_control", VK_API_VERSION_1_3);
  add(c.memory_model, "VK_KHR_vulkan_memory_model", VK_API_VERSION_1_2);
  add(c.integer_dot, "VK_KHR_shader_integer_dot_product", VK_API_VERSION_1_3);
  add(c.matrix_nv, "VK_NV_cooperative_matrix", kNever);
  if (instance.may_enable_since(VK_MAKE_API_VERSION(0, 1, 3, 255)))
    add(c.matrix_khr, "VK_KHR_cooperative_matrix", kNever);
  if (has("VK_KHR_cooperative_matrix") && instance.may_enable_since(VK_MAKE_API_VERSION(0, 1, 4, 303)))
    add(c.matrix2_nv, "VK_NV_cooperative_matrix2", kNever);
  instance.vkGetPhysicalDeviceFeatures2(physical_device, &setup->features_);

  // Features that Imprint does not use stay off: some of them cost time.
  setup->features_.features = VkPhysicalDeviceFeatures{};
  c.storage_16bit.uniformAndStorageBuffer16BitAccess = c.storage_16bit.storagePushConstant16 =
      c.storage_16bit.storageInputOutput16 = VK_FALSE;
  c.float16_int8.shaderInt8 = VK_FALSE;
  c.matrix_nv.cooperativeMatrixRobustBufferAccess = VK_FALSE;
  c.matrix_khr.cooperativeMatrixRobustBufferAccess = VK_FALSE;
  c.matrix2_nv.cooperativeMatrixReductions = c.matrix2_nv.cooperativeMatrixConversions =
      c.matrix2_nv.cooperativeMatrixBlockLoads = VK_FALSE;
  return setup;
}

vk::DeviceDescription DeviceSetup::describe(const OwnInstance& instance, const Candidate& candidate) const {
  vk::DeviceDescription description;
  description.get_instance_proc_addr = instance.get_instance_proc_addr();
  description.instance = instance.handle();
  description.physical_device = candidate.physical_device;
  description.api_version = instance.api_version();
  description.instance_extensions = instance.extensions();
  description.device_extensions = extensions_;
  description.features = &features_;
  description.queue_family = candidate.queue_family;
  return description;
}

Result<std::unique_ptr<OwnDevice>> OwnDevice::create(const OwnInstance& instance, const Candidate& candidate,
                                                     const DeviceSetup& setup, bool copies) {
  std::unique_ptr<OwnDevice> own(new OwnDevice);
  const float priorities[] = {1.0f, 1.0f};
  const std::uint32_t copy_count = copies ? std::min(candidate.copy_queue_count, 2u) : 0;
  VkDeviceQueueCreateInfo queues[2]{};
  for (VkDeviceQueueCreateInfo& queue : queues) queue.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO;
  queues[0].queueFamilyIndex = candidate.queue_family;
  queues[0].queueCount = 1;
  queues[1].queueFamilyIndex = candidate.copy_family;
  queues[1].queueCount = copy_count;
  for (VkDeviceQueueCreateInfo& queue : queues) queue.pQueuePriorities = priorities;
  VkDeviceCreateInfo info{VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO};
  info.pNext = setup.features();
  info.queueCreateInfoCount = copy_count > 0 ? 2 : 1;
  info.pQueueCreateInfos = queues;
  info.enabledExtensionCount = static_cast<std::uint32_t>(setup.extensions().size());
  info.ppEnabledExtensionNames = setup.extensions().data();
  const VkResult result = instance.vkCreateDevice(candidate.physical_device, &info, nullptr, &own->device_);
  if (result != VK_SUCCESS)
    return creation_error(text("vkCreateDevice on '", candidate.properties.deviceName, "'").c_str(), result);
  own->destroy_ =
      reinterpret_cast<PFN_vkDestroyDevice>(instance.vkGetDeviceProcAddr(own->device_, "vkDestroyDevice"));
  const auto get_queue =
      reinterpret_cast<PFN_vkGetDeviceQueue>(instance.vkGetDeviceProcAddr(own->device_, "vkGetDeviceQueue"));
  if (!own->destroy_ || !get_queue)
    return make_error(ErrorCode::internal, "vkGetDeviceProcAddr has no vkDestroyDevice or vkGetDeviceQueue");
  get_queue(own->device_, candidate.queue_family, 0, &own->queue_);
  own->copy_queues_ = {own->queue_, own->queue_};
  for (std::uint32_t i = 0; i < own->copy_queues_.size() && copy_count > 0; ++i)
    get_queue(own->device_, candidate.copy_family, std::min(i, copy_count - 1), &own->copy_queues_[i]);
  return own;
}

OwnDevice::~OwnDevice() {
  if (device_ && destroy_) destroy_(device_, nullptr);
}

}  // namespace imprint::bridge
