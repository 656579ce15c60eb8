#include "engine-bridge/host/requirements.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <string_view>
#include <utility>

#include "compute/base/text.h"
#include "compute/vk/capabilities/optional_features.h"
#include "compute/vk/capabilities/read_capabilities.h"

namespace imprint::bridge {
namespace {

// An optional feature: enabled in its own struct, or in the struct of a Vulkan version.
struct Feature {
  const char* name;
  const char* extension;
  std::uint32_t core_since;
  VkStructureType own_type;
  std::size_t own_offset;
  VkStructureType version_type;
  std::size_t version_offset;
};
constexpr Feature kFeatures[] = {
    {"timelineSemaphore", "VK_KHR_timeline_semaphore", VK_API_VERSION_1_2,
     VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_FEATURES,
     offsetof(VkPhysicalDeviceTimelineSemaphoreFeatures, timelineSemaphore),
     VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES,
     offsetof(VkPhysicalDeviceVulkan12Features, timelineSemaphore)},
    {"synchronization2", "VK_KHR_synchronization2", VK_API_VERSION_1_3,
     VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SYNCHRONIZATION_2_FEATURES,
     offsetof(VkPhysicalDeviceSynchronization2Features, synchronization2),
     VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_FEATURES,
     offsetof(VkPhysicalDeviceVulkan13Features, synchronization2)},
    {"hostQueryReset", "VK_EXT_host_query_reset", VK_API_VERSION_1_2,
     VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_HOST_QUERY_RESET_FEATURES,
     offsetof(VkPhysicalDeviceHostQueryResetFeatures, hostQueryReset),
     VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES,
     offsetof(VkPhysicalDeviceVulkan12Features, hostQueryReset)},
    {"pipelineCreationCacheControl", "VK_EXT_pipeline_creation_cache_control", VK_API_VERSION_1_3,
     VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PIPELINE_CREATION_CACHE_CONTROL_FEATURES,
     offsetof(VkPhysicalDevicePipelineCreationCacheControlFeatures, pipelineCreationCacheControl),
     VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_FEATURES,
     offsetof(VkPhysicalDeviceVulkan13Features, pipelineCreationCacheControl)},
    {"shaderIntegerDotProduct", "VK_KHR_shader_integer_dot_product", VK_API_VERSION_1_3,
     VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_FEATURES,
     offsetof(VkPhysicalDeviceShaderIntegerDotProductFeatures, shaderIntegerDotProduct),
     VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_FEATURES,
     offsetof(VkPhysicalDeviceVulkan13Features, shaderIntegerDotProduct)},
};
constexpr const char* kExtensions[] = {"VK_EXT_memory_budget"};

// The same text as in the adoption report.
const char* cost_of(std::string_view extension) {
  const auto known = vk::optional_features();
  const auto found = std::ranges::find_if(
      known, [&](const vk::OptionalFeature& one) { return one.extension && extension == one.extension; });
  return found == known.end() ? "" : found->cost;
}

// Sizes of the structs that may come before one that changes, for copying.
struct Known {
  VkStructureType type;
  std::size_t size;
};
#define KNOWN(Struct, type) \
  { VK_STRUCTURE_TYPE_##type, sizeof(Vk##Struct) }
#define KNOWN_DEVICE(Struct, type) KNOWN(PhysicalDevice##Struct, PHYSICAL_DEVICE_##type)
constexpr Known kKnown[] = {
    KNOWN_DEVICE(Features2, FEATURES_2),
    KNOWN_DEVICE(Vulkan11Features, VULKAN_1_1_FEATURES),
    KNOWN_DEVICE(Vulkan12Features, VULKAN_1_2_FEATURES),
    KNOWN_DEVICE(Vulkan13Features, VULKAN_1_3_FEATURES),
    KNOWN(DeviceGroupDeviceCreateInfo, DEVICE_GROUP_DEVICE_CREATE_INFO),
    KNOWN_DEVICE(16BitStorageFeatures, 16BIT_STORAGE_FEATURES),
    KNOWN_DEVICE(8BitStorageFeatures, 8BIT_STORAGE_FEATURES),
    KNOWN_DEVICE(MultiviewFeatures, MULTIVIEW_FEATURES),
    KNOWN_DEVICE(VariablePointersFeatures, VARIABLE_POINTERS_FEATURES),
    KNOWN_DEVICE(ProtectedMemoryFeatures, PROTECTED_MEMORY_FEATURES),
    KNOWN_DEVICE(SamplerYcbcrConversionFeatures, SAMPLER_YCBCR_CONVERSION_FEATURES),
    KNOWN_DEVICE(ShaderDrawParametersFeatures, SHADER_DRAW_PARAMETERS_FEATURES),
    KNOWN_DEVICE(TimelineSemaphoreFeatures, TIMELINE_SEMAPHORE_FEATURES),
    KNOWN_DEVICE(Synchronization2Features, SYNCHRONIZATION_2_FEATURES),
    KNOWN_DEVICE(ShaderFloat16Int8Features, SHADER_FLOAT16_INT8_FEATURES),
    KNOWN_DEVICE(SubgroupSizeControlFeatures, SUBGROUP_SIZE_CONTROL_FEATURES),
    KNOWN_DEVICE(BufferDeviceAddressFeatures, BUFFER_DEVICE_ADDRESS_FEATURES),
    KNOWN_DEVICE(HostQueryResetFeatures, HOST_QUERY_RESET_FEATURES),
    KNOWN_DEVICE(DescriptorIndexingFeatures, DESCRIPTOR_INDEXING_FEATURES),
    KNOWN_DEVICE(ImagelessFramebufferFeatures, IMAGELESS_FRAMEBUFFER_FEATURES),
    KNOWN_DEVICE(ScalarBlockLayoutFeatures, SCALAR_BLOCK_LAYOUT_FEATURES),
    KNOWN_DEVICE(VulkanMemoryModelFeatures, VULKAN_MEMORY_MODEL_FEATURES),
    KNOWN_DEVICE(DynamicRenderingFeatures, DYNAMIC_RENDERING_FEATURES),
    KNOWN_DEVICE(Maintenance4Features, MAINTENANCE_4_FEATURES),
    KNOWN_DEVICE(PipelineCreationCacheControlFeatures, PIPELINE_CREATION_CACHE_CONTROL_FEATURES),
    KNOWN(DevicePrivateDataCreateInfo, DEVICE_PRIVATE_DATA_CREATE_INFO),
    KNOWN_DEVICE(PrivateDataFeatures, PRIVATE_DATA_FEATURES),
    KNOWN_DEVICE(ShaderAtomicInt64Features, SHADER_ATOMIC_INT64_FEATURES),
    KNOWN_DEVICE(ShaderSubgroupExtendedTypesFeatures, SHADER_SUBGROUP_EXTENDED_TYPES_FEATURES),
    KNOWN_DEVICE(UniformBufferStandardLayoutFeatures, UNIFORM_BUFFER_STANDARD_LAYOUT_FEATURES),
    KNOWN_DEVICE(SeparateDepthStencilLayoutsFeatures, SEPARATE_DEPTH_STENCIL_LAYOUTS_FEATURES),
    KNOWN_DEVICE(ShaderDemoteToHelperInvocationFeatures, SHADER_DEMOTE_TO_HELPER_INVOCATION_FEATURES),
    KNOWN_DEVICE(ShaderTerminateInvocationFeatures, SHADER_TERMINATE_INVOCATION_FEATURES),
    KNOWN_DEVICE(ShaderIntegerDotProductFeatures, SHADER_INTEGER_DOT_PRODUCT_FEATURES),
    KNOWN_DEVICE(ZeroInitializeWorkgroupMemoryFeatures, ZERO_INITIALIZE_WORKGROUP_MEMORY_FEATURES),
    KNOWN_DEVICE(ImageRobustnessFeatures, IMAGE_ROBUSTNESS_FEATURES),
    KNOWN_DEVICE(InlineUniformBlockFeatures, INLINE_UNIFORM_BLOCK_FEATURES),
    KNOWN_DEVICE(TextureCompressionASTCHDRFeatures, TEXTURE_COMPRESSION_ASTC_HDR_FEATURES),
    KNOWN_DEVICE(Robustness2FeaturesEXT, ROBUSTNESS_2_FEATURES_EXT),
    KNOWN_DEVICE(CustomBorderColorFeaturesEXT, CUSTOM_BORDER_COLOR_FEATURES_EXT),
    KNOWN_DEVICE(ExtendedDynamicStateFeaturesEXT, EXTENDED_DYNAMIC_STATE_FEATURES_EXT),
    KNOWN_DEVICE(ExtendedDynamicState2FeaturesEXT, EXTENDED_DYNAMIC_STATE_2_FEATURES_EXT),
    KNOWN_DEVICE(ExtendedDynamicState3FeaturesEXT, EXTENDED_DYNAMIC_STATE_3_FEATURES_EXT),
    KNOWN_DEVICE(GraphicsPipelineLibraryFeaturesEXT, GRAPHICS_PIPELINE_LIBRARY_FEATURES_EXT),
    KNOWN_DEVICE(VertexInputDynamicStateFeaturesEXT, VERTEX_INPUT_DYNAMIC_STATE_FEATURES_EXT),
    KNOWN_DEVICE(VertexAttributeDivisorFeaturesEXT, VERTEX_ATTRIBUTE_DIVISOR_FEATURES_EXT),
    KNOWN_DEVICE(DepthClipEnableFeaturesEXT, DEPTH_CLIP_ENABLE_FEATURES_EXT),
    KNOWN_DEVICE(LineRasterizationFeaturesEXT, LINE_RASTERIZATION_FEATURES_EXT),
    KNOWN_DEVICE(TransformFeedbackFeaturesEXT, TRANSFORM_FEEDBACK_FEATURES_EXT),
    KNOWN_DEVICE(IndexTypeUint8FeaturesEXT, INDEX_TYPE_UINT8_FEATURES_EXT),
    KNOWN_DEVICE(MutableDescriptorTypeFeaturesEXT, MUTABLE_DESCRIPTOR_TYPE_FEATURES_EXT),
    KNOWN_DEVICE(DescriptorBufferFeaturesEXT, DESCRIPTOR_BUFFER_FEATURES_EXT),
    KNOWN_DEVICE(MemoryPriorityFeaturesEXT, MEMORY_PRIORITY_FEATURES_EXT),
    KNOWN_DEVICE(PageableDeviceLocalMemoryFeaturesEXT, PAGEABLE_DEVICE_LOCAL_MEMORY_FEATURES_EXT),
    KNOWN_DEVICE(ShaderAtomicFloatFeaturesEXT, SHADER_ATOMIC_FLOAT_FEATURES_EXT),
    KNOWN_DEVICE(ShaderImageAtomicInt64FeaturesEXT, SHADER_IMAGE_ATOMIC_INT64_FEATURES_EXT),
    KNOWN_DEVICE(FragmentShaderInterlockFeaturesEXT, FRAGMENT_SHADER_INTERLOCK_FEATURES_EXT),
    KNOWN_DEVICE(FragmentShaderBarycentricFeaturesKHR, FRAGMENT_SHADER_BARYCENTRIC_FEATURES_KHR),
    KNOWN_DEVICE(FragmentShadingRateFeaturesKHR, FRAGMENT_SHADING_RATE_FEATURES_KHR),
    KNOWN_DEVICE(MeshShaderFeaturesEXT, MESH_SHADER_FEATURES_EXT),
    KNOWN_DEVICE(AccelerationStructureFeaturesKHR, ACCELERATION_STRUCTURE_FEATURES_KHR),
    KNOWN_DEVICE(RayTracingPipelineFeaturesKHR, RAY_TRACING_PIPELINE_FEATURES_KHR),
    KNOWN_DEVICE(RayTracingMaintenance1FeaturesKHR, RAY_TRACING_MAINTENANCE_1_FEATURES_KHR),
    KNOWN_DEVICE(RayQueryFeaturesKHR, RAY_QUERY_FEATURES_KHR),
    KNOWN_DEVICE(PresentIdFeaturesKHR, PRESENT_ID_FEATURES_KHR),
    KNOWN_DEVICE(PresentWaitFeaturesKHR, PRESENT_WAIT_FEATURES_KHR),
    KNOWN_DEVICE(ShaderClockFeaturesKHR, SHADER_CLOCK_FEATURES_KHR),
    KNOWN_DEVICE(WorkgroupMemoryExplicitLayoutFeaturesKHR, WORKGROUP_MEMORY_EXPLICIT_LAYOUT_FEATURES_KHR),
    KNOWN_DEVICE(PerformanceQueryFeaturesKHR, PERFORMANCE_QUERY_FEATURES_KHR),
    KNOWN_DEVICE(PipelineExecutablePropertiesFeaturesKHR, PIPELINE_EXECUTABLE_PROPERTIES_FEATURES_KHR),
    KNOWN_DEVICE(FaultFeaturesEXT, FAULT_FEATURES_EXT),
};
#undef KNOWN_DEVICE
#undef KNOWN

// The physical device's properties, from the instance.
struct Found {
  std::uint32_t version = 0;  // the lower of declared and supported
  std::vector<std::string> extensions;
  std::vector<bool> features;  // [kFeatures] supported
  std::vector<VkQueueFamilyProperties> families;
  bool has(const char* name) const { return std::ranges::find(extensions, name) != extensions.end(); }
  bool core(const Feature& feature) const { return version >= feature.core_since; }
  bool offers(std::size_t i) const {
    return features[i] && (core(kFeatures[i]) || has(kFeatures[i].extension));
  }
};

Result<Found> query_device(const DevicePlan& plan) {
  const auto missing = [](const char* field) {
    return make_error(ErrorCode::invalid_argument,
                      text("device plan: ", field, ": found null, expected it set."));
  };
  if (!plan.get_instance_proc_addr) return missing("get_instance_proc_addr");
  if (!plan.instance) return missing("instance");
  if (!plan.physical_device) return missing("physical_device");
  vk::DeviceDescription declared;
  declared.api_version = plan.api_version;
  IMPRINT_CHECK(vk::check_declared_version(declared));
#define FUNCTION(name)                                                                               \
  const auto name = reinterpret_cast<PFN_##name>(plan.get_instance_proc_addr(plan.instance, #name)); \
  if (!name)                                                                                         \
  return make_error(ErrorCode::invalid_argument,                                                     \
                    "get_instance_proc_addr: found no " #name ". Pass the one that the instance came from.")
  FUNCTION(vkGetPhysicalDeviceProperties2);
  FUNCTION(vkGetPhysicalDeviceFeatures2);
  FUNCTION(vkGetPhysicalDeviceQueueFamilyProperties);
  FUNCTION(vkEnumerateDeviceExtensionProperties);
#undef FUNCTION

  Found found;
  VkPhysicalDeviceProperties2 properties{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2};
  vkGetPhysicalDeviceProperties2(plan.physical_device, &properties);
  found.version = std::min(plan.api_version, properties.properties.apiVersion);
  if (found.version < VK_API_VERSION_1_1) {
    return make_error(
        ErrorCode::unsupported,
        text("physical device: found vulkan ", vk::version_text(found.version), ", expected at least 1.1."));
  }
  std::uint32_t count = 0;
  VkResult result = vkEnumerateDeviceExtensionProperties(plan.physical_device, nullptr, &count, nullptr);
  std::vector<VkExtensionProperties> list(count);
  if (result == VK_SUCCESS)
    result = vkEnumerateDeviceExtensionProperties(plan.physical_device, nullptr, &count, list.data());
  if (result < 0) return vk::result_error("vkEnumerateDeviceExtensionProperties", result);
  for (const VkExtensionProperties& extension : list) found.extensions.emplace_back(extension.extensionName);

  for (const Feature& feature : kFeatures) {
    alignas(8) std::array<std::byte, 256> own{};
    const bool known = properties.properties.apiVersion >= feature.core_since || found.has(feature.extension);
    if (known) {
      auto& link = *reinterpret_cast<VkBaseOutStructure*>(own.data());
      link.sType = feature.own_type;
      VkPhysicalDeviceFeatures2 features{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, &link, {}};
      vkGetPhysicalDeviceFeatures2(plan.physical_device, &features);
    }
    VkBool32 value = VK_FALSE;
    std::memcpy(&value, own.data() + feature.own_offset, sizeof value);
    found.features.push_back(value);
  }
  vkGetPhysicalDeviceQueueFamilyProperties(plan.physical_device, &count, nullptr);
  found.families.resize(count);
  vkGetPhysicalDeviceQueueFamilyProperties(plan.physical_device, &count, found.families.data());
  if (std::ranges::none_of(found.families,
                           [](const auto& family) { return family.queueFlags & VK_QUEUE_COMPUTE_BIT; })) {
    return make_error(ErrorCode::unsupported,
                      "physical device: found no compute queue family. Use another device.");
  }
  return found;
}

Result<> check_names(const VkDeviceCreateInfo& host) {
  const auto refuse = [](const auto&... parts) {
    return make_error(ErrorCode::invalid_argument, text("device create info: ", parts...));
  };
  constexpr std::uint32_t kMost = 4096;  // no device has more: the count was never set
  const std::uint32_t count = host.enabledExtensionCount;
  if (count > kMost) return refuse("enabledExtensionCount: found ", count, ", expected at most ", kMost, ".");
  if (count > 0 && !host.ppEnabledExtensionNames)
    return refuse("ppEnabledExtensionNames: found null, expected ", count, " names.");
  for (std::uint32_t i = 0; i < count; ++i)
    if (!host.ppEnabledExtensionNames[i])
      return refuse("ppEnabledExtensionNames[", i, "]: found null, expected a name.");
  return {};
}

class Merged final : public MergedDevice {
 public:
  Result<> build(const Found& found, const VkDeviceCreateInfo& host);
  const VkDeviceCreateInfo& create_info() const override { return info_; }
  std::span<const char* const> extensions() const override { return names_; }
  const std::string& left_off() const override { return left_off_; }

 private:
  // Large enough for every known struct. A copy never moves.
  struct alignas(8) StructCopy {
    std::array<std::byte, 512> bytes{};
    VkBaseOutStructure* link() { return reinterpret_cast<VkBaseOutStructure*>(bytes.data()); }
  };

  bool owns(const VkBaseInStructure* link) const {
    return std::ranges::any_of(
        copies_, [&](const auto& copy) { return static_cast<const void*>(copy->bytes.data()) == link; });
  }
  bool set(const Feature& feature);
  bool can_own_until(const VkBaseInStructure* last) const;
  void own_until(const VkBaseInStructure* last);
  void enable(const char* extension);

  VkDeviceCreateInfo info_{};
  std::vector<const char*> names_;
  std::string left_off_;
  std::vector<std::unique_ptr<StructCopy>> copies_;  // of the first structs in the chain, in order
};

void Merged::enable(const char* extension) {
  const auto same = [&](const char* name) { return std::strcmp(name, extension) == 0; };
  if (std::ranges::none_of(names_, same)) names_.push_back(extension);
}

// Whether the sizes of all structs up to `last` are known.
bool Merged::can_own_until(const VkBaseInStructure* last) const {
  for (auto* link = static_cast<const VkBaseInStructure*>(info_.pNext);; link = link->pNext) {
    if (!owns(link) && std::ranges::find(kKnown, link->sType, &Known::type) == std::end(kKnown)) return false;
    if (link == last) return true;
  }
}

// Copies the chain up to `last`, so that it can be changed.
void Merged::own_until(const VkBaseInStructure* last) {
  const void** place = &info_.pNext;
  for (auto* link = static_cast<const VkBaseInStructure*>(info_.pNext);; link = link->pNext) {
    const VkBaseInStructure* here = link;
    if (!owns(link)) {
      const auto known = std::ranges::find(kKnown, link->sType, &Known::type);
      auto copy = std::make_unique<StructCopy>();
      std::memcpy(copy->bytes.data(), link, known->size);
      here = reinterpret_cast<const VkBaseInStructure*>(copy->bytes.data());
      *place = here;
      copies_.push_back(std::move(copy));
    }
    place = reinterpret_cast<const void**>(
        const_cast<const VkBaseInStructure**>(&const_cast<VkBaseInStructure*>(here)->pNext));
    if (link == last) return;
  }
}

// False: the feature is off, in a struct that cannot be copied.
bool Merged::set(const Feature& feature) {
  const VkBaseInStructure* place = nullptr;
  std::size_t offset = 0;
  for (auto* link = static_cast<const VkBaseInStructure*>(info_.pNext); link; link = link->pNext) {
    if (link->sType == feature.own_type)
      offset = feature.own_offset;
    else if (link->sType == feature.version_type)
      offset = feature.version_offset;
    else
      continue;
    place = link;
    break;
  }
  constexpr VkBool32 kOn = VK_TRUE;
  if (!place) {
    // In its own struct: a version's struct is invalid beside the structs that it replaces.
    auto copy = std::make_unique<StructCopy>();
    copy->link()->sType = feature.own_type;
    copy->link()->pNext = static_cast<VkBaseOutStructure*>(const_cast<void*>(info_.pNext));
    std::memcpy(copy->bytes.data() + feature.own_offset, &kOn, sizeof kOn);
    info_.pNext = copy->link();
    copies_.insert(copies_.begin(), std::move(copy));
    return true;
  }
  VkBool32 value = VK_FALSE;
  std::memcpy(&value, reinterpret_cast<const std::byte*>(place) + offset, sizeof value);
  if (value) return true;
  if (!can_own_until(place)) return false;
  const VkStructureType type = place->sType;
  own_until(place);
  const auto copy =
      std::ranges::find_if(copies_, [&](const auto& held) { return held->link()->sType == type; });
  std::memcpy((*copy)->bytes.data() + offset, &kOn, sizeof kOn);
  return true;
}

Result<> Merged::build(const Found& found, const VkDeviceCreateInfo& host) {
  IMPRINT_CHECK(check_names(host));
  IMPRINT_CHECK(vk::check_chain(host.pNext, host.pEnabledFeatures,
                                {"device create info: pNext", "device create info: pEnabledFeatures"}));
  info_ = host;
  names_.assign(host.ppEnabledExtensionNames, host.ppEnabledExtensionNames + host.enabledExtensionCount);
  for (std::size_t i = 0; i < std::size(kFeatures); ++i) {
    if (!found.offers(i)) continue;
    if (!set(kFeatures[i]))
      left_off_ += text(left_off_.empty() ? "" : " ", kFeatures[i].name);
    else if (!found.core(kFeatures[i]))
      enable(kFeatures[i].extension);
  }
  for (const char* extension : kExtensions)
    if (found.has(extension)) enable(extension);
  info_.enabledExtensionCount = static_cast<std::uint32_t>(names_.size());
  info_.ppEnabledExtensionNames = names_.data();
  return {};
}

}  // namespace

Result<Requirements> query_requirements(const DevicePlan& plan) {
  IMPRINT_ASSIGN(const Found found, query_device(plan));
  Requirements requirements;
  for (std::size_t i = 0; i < std::size(kFeatures); ++i) {
    const Feature& feature = kFeatures[i];
    if (found.offers(i))
      requirements.wishes.push_back(
          {feature.name, found.core(feature) ? "" : feature.extension, cost_of(feature.extension)});
  }
  for (const char* extension : kExtensions)
    if (found.has(extension)) requirements.wishes.push_back({"", extension, cost_of(extension)});
  for (std::uint32_t i = 0; i < found.families.size(); ++i) {
    const VkQueueFlags flags = found.families[i].queueFlags;
    if ((flags & VK_QUEUE_COMPUTE_BIT) && !(flags & VK_QUEUE_GRAPHICS_BIT))
      requirements.extra_queues.push_back({i, found.families[i].queueCount, 0.0f});
  }
  return requirements;
}

Result<std::unique_ptr<MergedDevice>> MergedDevice::make(const DevicePlan& plan,
                                                         const VkDeviceCreateInfo& host) {
  IMPRINT_ASSIGN(const Found found, query_device(plan));
  auto merged = std::make_unique<Merged>();
  IMPRINT_CHECK(merged->build(found, host));
  return std::unique_ptr<MergedDevice>(std::move(merged));
}

}  // namespace imprint::bridge
