#ifndef IMPRINT_SAMPLES_ADAPTERS_VULKAN_H_
#define IMPRINT_SAMPLES_ADAPTERS_VULKAN_H_
// Any game that makes its own Vulkan device, whatever opens its window (GLFW, SDL, Dear ImGui's example
// loop). Run by tests/hosts. Include your Vulkan header first; this one calls no function of Vulkan.
//
//   VulkanGuest guest;
//   guest.made_instance(instance_info, instance, vkGetInstanceProcAddr);   // after vkCreateInstance
//   auto merged = guest.merge(library, physical_device, device_info);      // optional: more than Vulkan 1.1
//   guest.made_device(device_info, physical_device, device);               // after vkCreateDevice
//   auto context = Context::create(Library(imp_get_api), guest.record_only(family));

#include <vulkan/vulkan_core.h>
#include <imprint/imprint.hpp>

#include <array>
#include <cstring>
#include <deque>
#include <mutex>
#include <string>
#include <vector>

namespace imprint::adapters {

// Copies what vkCreateInstance and vkCreateDevice were given. Declare it before the context: a context of
// locked() uses its lock until it is destroyed. To quit with saves on disk see last_frame.h.
class VulkanGuest {
 public:
  VulkanGuest() = default;
  VulkanGuest(const VulkanGuest&) = delete;
  VulkanGuest& operator=(const VulkanGuest&) = delete;

  void made_instance(const VkInstanceCreateInfo& info, VkInstance instance,
                     PFN_vkGetInstanceProcAddr loader) {
    instance_ = instance;
    loader_ = loader;
    api_version_ = info.pApplicationInfo && info.pApplicationInfo->apiVersion
                       ? info.pApplicationInfo->apiVersion
                       : VK_API_VERSION_1_0;
    instance_extensions_.assign(info.ppEnabledExtensionNames, info.enabledExtensionCount);
  }
  // `info` with the features that Imprint would use beyond Vulkan 1.1 and this device has. Pass its
  // create_info() to vkCreateDevice and to made_device; keep it until then.
  game::Made<game::MergedDevice> merge(const game::Library& library, VkPhysicalDevice physical_device,
                                       const VkDeviceCreateInfo& info) const {
    imp_vk_plan plan = imp_vk_plan_init();
    plan.get_instance_proc_addr = reinterpret_cast<imp_get_instance_proc_addr>(loader_);
    plan.instance = instance_;
    plan.physical_device = physical_device;
    plan.api_version = api_version_;
    return game::merge_device_create_info(library, plan, info);
  }
  void made_device(const VkDeviceCreateInfo& info, VkPhysicalDevice physical_device, VkDevice device) {
    physical_device_ = physical_device;
    device_ = device;
    device_extensions_.assign(info.ppEnabledExtensionNames, info.enabledExtensionCount);
    copy_features(info);
  }

  // For frame_record: into command buffers of this family.
  imp_vk_device_info record_only(std::uint32_t family) const {
    return declare(game::QueueDesc::record_only(family));
  }
  // For frame_submit. The game holds the same lock in each vkQueueSubmit, vkQueuePresentKHR and
  // vkQueueWaitIdle on this queue, and in vkDeviceWaitIdle:
  //   const std::lock_guard lock(guest.queue_lock());
  imp_vk_device_info locked(VkQueue queue, std::uint32_t family) {
    return declare(game::QueueDesc::locked(queue, family, queue_lock_));
  }
  std::mutex& queue_lock() { return queue_lock_; }

 private:
  struct Names {
    void assign(const char* const* given, std::uint32_t count) {
      names.assign(given, given + count);
      pointers.clear();
      for (const std::string& name : names) pointers.push_back(name.c_str());
    }
    std::vector<std::string> names;
    std::vector<const char*> pointers;
  };
  struct Known {
    VkStructureType type;
    std::size_t size;
  };
  // The feature structs that Imprint looks into. A copy leaves out all others: to declare less is always
  // right.
  static constexpr Known kKnown[] = {
      {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES, sizeof(VkPhysicalDeviceVulkan11Features)},
      {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES, sizeof(VkPhysicalDeviceVulkan12Features)},
      {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_FEATURES, sizeof(VkPhysicalDeviceVulkan13Features)},
      {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_16BIT_STORAGE_FEATURES,
       sizeof(VkPhysicalDevice16BitStorageFeatures)},
      {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_FLOAT16_INT8_FEATURES,
       sizeof(VkPhysicalDeviceShaderFloat16Int8Features)},
      {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_FEATURES,
       sizeof(VkPhysicalDeviceShaderIntegerDotProductFeatures)},
      {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_MEMORY_MODEL_FEATURES,
       sizeof(VkPhysicalDeviceVulkanMemoryModelFeatures)},
      {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_FEATURES,
       sizeof(VkPhysicalDeviceTimelineSemaphoreFeatures)},
      {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SYNCHRONIZATION_2_FEATURES,
       sizeof(VkPhysicalDeviceSynchronization2Features)},
      {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_HOST_QUERY_RESET_FEATURES,
       sizeof(VkPhysicalDeviceHostQueryResetFeatures)},
      {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES,
       sizeof(VkPhysicalDeviceSubgroupSizeControlFeatures)},
      {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PIPELINE_CREATION_CACHE_CONTROL_FEATURES,
       sizeof(VkPhysicalDevicePipelineCreationCacheControlFeatures)},
      // Newer than the oldest Vulkan headers that Imprint supports, so as numbers: cooperative matrices
      // (KHR), and cooperative matrices 2 (NV).
      {static_cast<VkStructureType>(1000506000), sizeof(VkBaseOutStructure) + 2 * sizeof(VkBool32)},
      {static_cast<VkStructureType>(1000593000), sizeof(VkBaseOutStructure) + 7 * sizeof(VkBool32)},
      {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_NV,
       sizeof(VkPhysicalDeviceCooperativeMatrixFeaturesNV)},
  };
  using Block = std::array<std::uint64_t, 64>;  // one feature struct

  void copy_features(const VkDeviceCreateInfo& info) {
    features_ = {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, nullptr, {}};
    if (info.pEnabledFeatures) features_.features = *info.pEnabledFeatures;
    blocks_.clear();
    auto* last = reinterpret_cast<VkBaseOutStructure*>(&features_);
    for (auto* next = static_cast<const VkBaseInStructure*>(info.pNext); next; next = next->pNext) {
      if (next->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2)
        features_.features = reinterpret_cast<const VkPhysicalDeviceFeatures2*>(next)->features;
      for (const Known& known : kKnown) {
        if (next->sType != known.type) continue;
        Block& block = blocks_.emplace_back();
        static_assert(sizeof(VkPhysicalDeviceVulkan12Features) <= sizeof(Block));
        std::memcpy(block.data(), next, known.size);
        last->pNext = reinterpret_cast<VkBaseOutStructure*>(block.data());
        last = last->pNext;
        last->pNext = nullptr;
      }
    }
  }

  imp_vk_device_info declare(const game::QueueDesc& queue) const {
    game::DeviceDesc desc;
    desc.get_instance_proc_addr = reinterpret_cast<imp_get_instance_proc_addr>(loader_);
    desc.instance = instance_;
    desc.physical_device = physical_device_;
    desc.device = device_;
    desc.api_version = api_version_;
    desc.instance_extensions = instance_extensions_.pointers;
    desc.device_extensions = device_extensions_.pointers;
    desc.features = features_;
    desc.queue = queue;
    return desc;
  }

  VkInstance instance_ = VK_NULL_HANDLE;
  VkPhysicalDevice physical_device_ = VK_NULL_HANDLE;
  VkDevice device_ = VK_NULL_HANDLE;
  PFN_vkGetInstanceProcAddr loader_ = nullptr;
  std::uint32_t api_version_ = 0;
  Names instance_extensions_, device_extensions_;
  VkPhysicalDeviceFeatures2 features_{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, nullptr, {}};
  std::deque<Block> blocks_;  // stay where they are
  std::mutex queue_lock_;
};

}  // namespace imprint::adapters

#endif  // IMPRINT_SAMPLES_ADAPTERS_VULKAN_H_
