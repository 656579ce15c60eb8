#include "compute/vk/capabilities.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <string>
#include <unordered_set>

#include "compute/vk/feature_structs.h"

namespace imprint::vk {
namespace {

constexpr std::uint32_t kNever = ~0u;  // "in no core version"

// A version and the extensions that come with it: what was declared, or what the physical device has.
struct Offer {
  std::uint32_t version = 0;
  std::unordered_set<std::string> extensions;
  bool has(const char* extension, std::uint32_t core_since) const {
    return (core_since != kNever && version >= core_since) || (extension && extensions.contains(extension));
  }
};

// A feature bit in a struct of a chain, or several that only count together. It counts with the extension, or
// from the version on that knows the struct: elsewhere the driver would ignore it too. The structs of whole
// versions have no extension, and VkPhysicalDeviceVulkan11Features came with 1.2 only.
struct FeatureBit {
  VkStructureType type;
  std::size_t offset;
  bool Capabilities::*member;
  const char* extension;
  std::uint32_t core_since;
  std::array<std::size_t, 3> beside{};  // offsets of the others; 0: none
};

#define BIT(Struct, type, bit, member, extension, core_since)                          \
  {                                                                                    \
    VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_##type, offsetof(VkPhysicalDevice##Struct, bit), \
        &Capabilities::member, extension, core_since                                   \
  }
constexpr FeatureBit kFeatureBits[] = {
    BIT(Vulkan11Features, VULKAN_1_1_FEATURES, storageBuffer16BitAccess, storage_16bit, nullptr,
        VK_API_VERSION_1_2),
    BIT(Vulkan12Features, VULKAN_1_2_FEATURES, timelineSemaphore, timeline_semaphore, nullptr,
        VK_API_VERSION_1_2),
    BIT(Vulkan12Features, VULKAN_1_2_FEATURES, shaderFloat16, shader_float16, nullptr, VK_API_VERSION_1_2),
    BIT(Vulkan12Features, VULKAN_1_2_FEATURES, vulkanMemoryModel, vulkan_memory_model, nullptr,
        VK_API_VERSION_1_2),
    BIT(Vulkan12Features, VULKAN_1_2_FEATURES, hostQueryReset, host_query_reset, nullptr, VK_API_VERSION_1_2),
    BIT(Vulkan13Features, VULKAN_1_3_FEATURES, synchronization2, synchronization2, nullptr,
        VK_API_VERSION_1_3),
    BIT(Vulkan13Features, VULKAN_1_3_FEATURES, subgroupSizeControl, subgroup_size_control, nullptr,
        VK_API_VERSION_1_3),
    BIT(Vulkan13Features, VULKAN_1_3_FEATURES, pipelineCreationCacheControl, pipeline_creation_cache_control,
        nullptr, VK_API_VERSION_1_3),

    BIT(TimelineSemaphoreFeatures, TIMELINE_SEMAPHORE_FEATURES, timelineSemaphore, timeline_semaphore,
        "VK_KHR_timeline_semaphore", VK_API_VERSION_1_2),
    BIT(Synchronization2Features, SYNCHRONIZATION_2_FEATURES, synchronization2, synchronization2,
        "VK_KHR_synchronization2", VK_API_VERSION_1_3),
    BIT(ShaderFloat16Int8Features, SHADER_FLOAT16_INT8_FEATURES, shaderFloat16, shader_float16,
        "VK_KHR_shader_float16_int8", VK_API_VERSION_1_2),
    BIT(16BitStorageFeatures, 16BIT_STORAGE_FEATURES, storageBuffer16BitAccess, storage_16bit,
        "VK_KHR_16bit_storage", VK_API_VERSION_1_1),
    BIT(SubgroupSizeControlFeatures, SUBGROUP_SIZE_CONTROL_FEATURES, subgroupSizeControl,
        subgroup_size_control, "VK_EXT_subgroup_size_control", VK_API_VERSION_1_3),
    BIT(VulkanMemoryModelFeatures, VULKAN_MEMORY_MODEL_FEATURES, vulkanMemoryModel, vulkan_memory_model,
        "VK_KHR_vulkan_memory_model", VK_API_VERSION_1_2),
    BIT(HostQueryResetFeatures, HOST_QUERY_RESET_FEATURES, hostQueryReset, host_query_reset,
        "VK_EXT_host_query_reset", VK_API_VERSION_1_2),
    BIT(PipelineCreationCacheControlFeatures, PIPELINE_CREATION_CACHE_CONTROL_FEATURES,
        pipelineCreationCacheControl, pipeline_creation_cache_control,
        "VK_EXT_pipeline_creation_cache_control", VK_API_VERSION_1_3),
    BIT(CooperativeMatrixFeaturesNV, COOPERATIVE_MATRIX_FEATURES_NV, cooperativeMatrix, cooperative_matrix_nv,
        "VK_NV_cooperative_matrix", kNever),
    BIT(CooperativeMatrixFeaturesKHR, COOPERATIVE_MATRIX_FEATURES_KHR, cooperativeMatrix,
        cooperative_matrix_khr, "VK_KHR_cooperative_matrix", kNever),
    {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_2_FEATURES_NV,
     offsetof(VkPhysicalDeviceCooperativeMatrix2FeaturesNV, cooperativeMatrixTensorAddressing),
     &Capabilities::cooperative_matrix2_nv,
     "VK_NV_cooperative_matrix2",
     kNever,
     {offsetof(VkPhysicalDeviceCooperativeMatrix2FeaturesNV, cooperativeMatrixWorkgroupScope),
      offsetof(VkPhysicalDeviceCooperativeMatrix2FeaturesNV, cooperativeMatrixFlexibleDimensions),
      offsetof(VkPhysicalDeviceCooperativeMatrix2FeaturesNV, cooperativeMatrixPerElementOperations)}},
};
#undef BIT

// A bonus on top of the baseline, and what is lost without it.
struct Bonus {
  bool Capabilities::*member;
  const char* feature;  // null: the extension is all there is to enable
  const char* extension;
  std::uint32_t core_since;
  const char* cost;
};

constexpr Bonus kBonuses[] = {
    {&Capabilities::timeline_semaphore, "timelineSemaphore", "VK_KHR_timeline_semaphore", VK_API_VERSION_1_2,
     "completion is followed by fences or frame numbers; no waits or signals between queues"},
    {&Capabilities::synchronization2, "synchronization2", "VK_KHR_synchronization2", VK_API_VERSION_1_3,
     "barriers are the classic ones, which hold back more: all shader accesses and transfers, where copies "
     "and storage would do"},
    {&Capabilities::shader_float16, "shaderFloat16", "VK_KHR_shader_float16_int8", VK_API_VERSION_1_2,
     "programs of mixed precision compute in float32, as all others do"},
    {&Capabilities::storage_16bit, "storageBuffer16BitAccess", "VK_KHR_16bit_storage", VK_API_VERSION_1_1,
     "a number in memory takes four bytes, as in all programs but those of narrow floats"},
    {&Capabilities::subgroup_size_control, "subgroupSizeControl", "VK_EXT_subgroup_size_control",
     VK_API_VERSION_1_3, "products of float16 run on matrix units only where all subgroups are of 32"},
    {&Capabilities::host_query_reset, "hostQueryReset", "VK_EXT_host_query_reset", VK_API_VERSION_1_2,
     "timestamp queries are reset by a command before each use"},
    {&Capabilities::memory_budget, nullptr, "VK_EXT_memory_budget", kNever,
     "memory is bounded by the cap alone, not by what the driver has left"},
    {&Capabilities::vulkan_memory_model, "vulkanMemoryModel", "VK_KHR_vulkan_memory_model",
     VK_API_VERSION_1_2, "products of float16 do not run on matrix units, whose shaders are written for it"},
    {&Capabilities::cooperative_matrix_nv, "cooperativeMatrix", "VK_NV_cooperative_matrix", kNever,
     "products of float16 do not run on matrix units (NV)"},
    {&Capabilities::cooperative_matrix_khr, "cooperativeMatrix", "VK_KHR_cooperative_matrix", kNever,
     "products of float16 do not run on matrix units (KHR)"},
    {&Capabilities::cooperative_matrix2_nv, "cooperativeMatrixTensorAddressing", "VK_NV_cooperative_matrix2",
     kNever,
     "matrix units multiply what a subgroup has loaded, not a workgroup's share straight from memory (that "
     "needs cooperativeMatrixWorkgroupScope, "
     "cooperativeMatrixFlexibleDimensions and cooperativeMatrixPerElementOperations too, and vulkan 1.3)"},
    {&Capabilities::pipeline_creation_cache_control, "pipelineCreationCacheControl",
     "VK_EXT_pipeline_creation_cache_control", VK_API_VERSION_1_3,
     "a kernel that a frame asks for is compiled there, and counted, instead of refused"},
};

constexpr UnusedBonus kUnused[] = {
    {"VK_KHR_push_descriptor",
     "programs are recorded once and replayed, and their descriptor sets are written once with that"},
    {"bufferDeviceAddress",
     "kernels reach tensors by bindings and offsets; a tensor is at most maxStorageBufferRange long with it "
     "or without"},
    {"VK_EXT_calibrated_timestamps",
     "the budget is of durations, for which moments of host time say nothing more"},
    {"storageBuffer8BitAccess", "elements take four bytes, or two where floats are narrow"},
    {"shaderInt8", "there is no arithmetic on bytes"},
};

// Every bit of the chain that we know, by whether `offer` lets it count (then in .first) or not (then in
// .second).
std::pair<Capabilities, Capabilities> read_chain(const void* chain, const Offer& offer) {
  std::pair<Capabilities, Capabilities> found;
  for (auto* link = static_cast<const VkBaseInStructure*>(chain); link; link = link->pNext) {
    for (const FeatureBit& bit : kFeatureBits) {
      if (bit.type != link->sType) continue;
      const auto is_set = [&](std::size_t offset) {
        VkBool32 value = VK_FALSE;
        std::memcpy(&value, reinterpret_cast<const std::byte*>(link) + offset, sizeof value);
        return value != VK_FALSE;
      };
      const bool is_whole =
          std::ranges::all_of(bit.beside, [&](std::size_t offset) { return offset == 0 || is_set(offset); });
      if (is_set(bit.offset) && is_whole)
        (offer.has(bit.extension, bit.core_since) ? found.first : found.second).*bit.member = true;
    }
  }
  return found;
}

void read_extensions(const Offer& offer, Capabilities& found) {
  for (const Bonus& bonus : kBonuses) {
    if (!bonus.feature) found.*bonus.member = offer.has(bonus.extension, bonus.core_since);
  }
}

Result<std::unordered_set<std::string>> names(std::span<const char* const> list, const char* field) {
  std::unordered_set<std::string> set;
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (!list[i])
      return make_error(ErrorCode::invalid_argument,
                        std::string(field) + "[" + std::to_string(i) + "] is null");
    set.insert(list[i]);
  }
  return set;
}

Result<std::unordered_set<std::string>> device_extensions(VkPhysicalDevice physical_device,
                                                          const Functions& functions) {
  std::vector<VkExtensionProperties> list;
  VkResult result = VK_INCOMPLETE;
  while (result == VK_INCOMPLETE) {  // the list can grow between the two calls
    std::uint32_t count = 0;
    result = functions.vkEnumerateDeviceExtensionProperties(physical_device, nullptr, &count, nullptr);
    if (result != VK_SUCCESS) break;
    list.resize(count);
    result = functions.vkEnumerateDeviceExtensionProperties(physical_device, nullptr, &count, list.data());
    list.resize(std::min<std::size_t>(count, list.size()));
  }
  if (result != VK_SUCCESS) return result_error("vkEnumerateDeviceExtensionProperties", result);
  std::unordered_set<std::string> set;
  for (const auto& extension : list) set.insert(extension.extensionName);
  return set;
}

template <class Properties>
std::vector<Properties> enumerate(VkPhysicalDevice physical_device,
                                  VkResult(VKAPI_PTR* ask)(VkPhysicalDevice, std::uint32_t*, Properties*),
                                  VkStructureType type) {
  std::uint32_t count = 0;
  if (!ask || ask(physical_device, &count, nullptr) != VK_SUCCESS) return {};
  std::vector<Properties> list(count);
  for (Properties& one : list) one.sType = type;
  if (ask(physical_device, &count, list.data()) < 0) return {};
  list.resize(std::min<std::size_t>(count, list.size()));
  return list;
}

// What kernels are written for, among what the device lists: matrices of 16 x 16 x 16 a subgroup, of float16.
// result: the member of the listed sums' type.
template <class Properties>
bool has_subgroup_matrices(const std::vector<Properties>& list, VkComponentTypeKHR Properties::*result,
                           VkComponentTypeKHR sums) {
  return std::ranges::any_of(list, [&](const Properties& one) {
    return one.scope == VK_SCOPE_SUBGROUP_KHR && one.MSize == 16 && one.NSize == 16 && one.KSize == 16 &&
           one.AType == VK_COMPONENT_TYPE_FLOAT16_KHR && one.BType == VK_COMPONENT_TYPE_FLOAT16_KHR &&
           one.CType == sums && one.*result == sums;
  });
}

bool has_matrices_nv(VkPhysicalDevice physical_device, const Functions& functions) {
  const auto list = enumerate(physical_device, functions.vkGetPhysicalDeviceCooperativeMatrixPropertiesNV,
                              VK_STRUCTURE_TYPE_COOPERATIVE_MATRIX_PROPERTIES_NV);
  return has_subgroup_matrices(list, &VkCooperativeMatrixPropertiesNV::DType, VK_COMPONENT_TYPE_FLOAT32_KHR);
}

// Sums that are rounded have a type of their own here.
bool has_matrices_khr(VkPhysicalDevice physical_device, const Functions& functions) {
  const auto list = enumerate(physical_device, functions.vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR,
                              VK_STRUCTURE_TYPE_COOPERATIVE_MATRIX_PROPERTIES_KHR);
  const auto sums_in = [&](VkComponentTypeKHR type) {
    return has_subgroup_matrices(list, &VkCooperativeMatrixPropertiesKHR::ResultType, type);
  };
  return sums_in(VK_COMPONENT_TYPE_FLOAT32_KHR) && sums_in(VK_COMPONENT_TYPE_FLOAT16_KHR);
}

bool has_workgroup_extents(VkPhysicalDevice physical_device, const Functions& functions) {
  VkPhysicalDeviceCooperativeMatrix2PropertiesNV most{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_2_PROPERTIES_NV};
  VkPhysicalDeviceProperties2 properties{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, &most};
  functions.vkGetPhysicalDeviceProperties2(physical_device, &properties);
  return most.cooperativeMatrixWorkgroupScopeMaxWorkgroupSize >= 256 &&
         most.cooperativeMatrixFlexibleDimensionsMaxDimension >= 256;
}

// Matrices of a workgroup, whose extents are multiples of 64 x 64 x 32 and at most 256.
bool has_workgroup_matrices(VkPhysicalDevice physical_device, const Functions& functions) {
  const auto list =
      enumerate(physical_device, functions.vkGetPhysicalDeviceCooperativeMatrixFlexibleDimensionsPropertiesNV,
                VK_STRUCTURE_TYPE_COOPERATIVE_MATRIX_FLEXIBLE_DIMENSIONS_PROPERTIES_NV);
  const auto of = [&](std::uint32_t invocations) {
    return std::ranges::any_of(list, [&](const VkCooperativeMatrixFlexibleDimensionsPropertiesNV& one) {
      const bool divides = one.MGranularity > 0 && one.NGranularity > 0 && one.KGranularity > 0 &&
                           64 % one.MGranularity == 0 && 64 % one.NGranularity == 0 &&
                           32 % one.KGranularity == 0;
      return divides && one.scope == VK_SCOPE_WORKGROUP_KHR && one.workgroupInvocations == invocations &&
             one.AType == VK_COMPONENT_TYPE_FLOAT16_KHR && one.BType == VK_COMPONENT_TYPE_FLOAT16_KHR &&
             one.CType == VK_COMPONENT_TYPE_FLOAT32_KHR && one.ResultType == VK_COMPONENT_TYPE_FLOAT32_KHR;
    });
  };
  return of(128) && of(256);
}

// Leaves of what the features say what kernels are written for. A validation layer older than the extension
// of workgroup matrices takes the struct of their limits for an error: it is asked for only where the host
// itself has given that extension's features.
void keep_usable_matrices(VkPhysicalDevice physical_device, const Functions& functions,
                          const Capabilities& declared, Capabilities& found) {
  found.cooperative_matrix_nv = found.cooperative_matrix_nv && has_matrices_nv(physical_device, functions);
  found.cooperative_matrix_khr = found.cooperative_matrix_khr && has_matrices_khr(physical_device, functions);
  found.cooperative_matrix2_nv =
      found.cooperative_matrix2_nv && has_workgroup_matrices(physical_device, functions) &&
      (!declared.cooperative_matrix2_nv || has_workgroup_extents(physical_device, functions));
}

Capabilities supported_by(VkPhysicalDevice physical_device, const Functions& functions, const Offer& offer) {
  FeatureStructs structs;

  // Asked by the structs of single features, which any version with the extension knows; only those that the
  // device knows are chained.
  VkPhysicalDeviceFeatures2 features{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2};
  const auto ask = [&](auto& link) {
    const bool known = std::ranges::any_of(kFeatureBits, [&](const FeatureBit& bit) {
      return bit.type == link.sType && offer.has(bit.extension, bit.core_since);
    });
    if (!known) return;
    link.pNext = features.pNext;
    features.pNext = &link;
  };
  ask(structs.timeline);
  ask(structs.synchronization2);
  ask(structs.float16_int8);
  ask(structs.storage_16bit);
  ask(structs.subgroup);
  ask(structs.query_reset);
  ask(structs.cache);
  ask(structs.memory_model);
  ask(structs.matrix_nv);
  ask(structs.matrix_khr);
  ask(structs.matrix2_nv);
  functions.vkGetPhysicalDeviceFeatures2(physical_device, &features);

  Capabilities supported = read_chain(features.pNext, offer).first;
  read_extensions(offer, supported);
  return supported;
}

void read_properties(VkPhysicalDevice physical_device, const Functions& functions, const Offer& offer,
                     Capabilities& found) {
  VkPhysicalDeviceProperties2 properties{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2};
  VkPhysicalDeviceSubgroupProperties subgroup{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_PROPERTIES};
  VkPhysicalDeviceDriverProperties driver{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES};
  properties.pNext = &subgroup;
  const bool names_driver = offer.has("VK_KHR_driver_properties", VK_API_VERSION_1_2);
  if (names_driver) subgroup.pNext = &driver;
  VkPhysicalDeviceSubgroupSizeControlProperties sizes{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_PROPERTIES};
  if (offer.has("VK_EXT_subgroup_size_control", VK_API_VERSION_1_3)) {
    sizes.pNext = properties.pNext;
    properties.pNext = &sizes;
  }
  functions.vkGetPhysicalDeviceProperties2(physical_device, &properties);

  const VkPhysicalDeviceProperties& p = properties.properties;
  found.device_name = p.deviceName;
  found.driver_name = names_driver ? std::string(driver.driverName) + " " + driver.driverInfo
                                   : "driver " + std::to_string(p.driverVersion);
  found.vendor_id = p.vendorID;
  found.device_id = p.deviceID;
  found.driver_version = p.driverVersion;
  std::ranges::copy(p.pipelineCacheUUID, found.pipeline_cache_uuid.begin());
  found.device_type = p.deviceType;
  found.max_storage_buffer_range = p.limits.maxStorageBufferRange;
  found.min_storage_buffer_offset_alignment = p.limits.minStorageBufferOffsetAlignment;
  found.min_uniform_buffer_offset_alignment = p.limits.minUniformBufferOffsetAlignment;
  found.max_push_constant_bytes = p.limits.maxPushConstantsSize;
  found.max_storage_buffers_per_stage =
      std::min(p.limits.maxPerStageDescriptorStorageBuffers, p.limits.maxDescriptorSetStorageBuffers);
  found.max_workgroup_count_x = p.limits.maxComputeWorkGroupCount[0];
  found.max_workgroup_invocations = p.limits.maxComputeWorkGroupInvocations;
  found.max_workgroup_size_x = p.limits.maxComputeWorkGroupSize[0];
  found.max_shared_memory_bytes = p.limits.maxComputeSharedMemorySize;
  found.max_memory_allocation_count = p.limits.maxMemoryAllocationCount;
  found.subgroup_size = subgroup.subgroupSize;
  if (sizes.requiredSubgroupSizeStages & VK_SHADER_STAGE_COMPUTE_BIT) {
    found.min_subgroup_size = sizes.minSubgroupSize;
    found.max_subgroup_size = sizes.maxSubgroupSize;
  }
  found.timestamp_period_ns = p.limits.timestampPeriod;
}

// Of the queue family: it exists, it computes, and how long its timestamps are.
Status read_queue_family(const DeviceDescription& description, const Functions& functions,
                         Capabilities& found) {
  std::uint32_t count = 0;
  functions.vkGetPhysicalDeviceQueueFamilyProperties(description.physical_device, &count, nullptr);
  std::vector<VkQueueFamilyProperties> families(count);
  functions.vkGetPhysicalDeviceQueueFamilyProperties(description.physical_device, &count, families.data());
  const std::string family = "queue family " + std::to_string(description.queue_family);
  if (description.queue_family >= count) {
    return make_error(ErrorCode::invalid_argument,
                      family + " does not exist: the physical device has " + std::to_string(count));
  }
  const VkQueueFamilyProperties& properties = families[description.queue_family];
  if (!(properties.queueFlags & VK_QUEUE_COMPUTE_BIT)) {
    return make_error(ErrorCode::unsupported,
                      family + " has no compute: give a family with VK_QUEUE_COMPUTE_BIT");
  }
  found.timestamp_valid_bits = properties.timestampValidBits;
  return {};
}

CapabilityLoss loss_of(const Bonus& bonus, bool declared, bool declared_too_early, bool supported,
                       bool usable, const Offer& host) {
  const std::string extension = bonus.extension;
  const bool core = bonus.core_since != kNever;
  const std::string where =
      !core ? extension : "vulkan " + version_text(bonus.core_since) + " or " + extension;

  CapabilityLoss loss{bonus.feature ? bonus.feature : extension, "not declared", bonus.cost, {}};
  loss.feature = bonus.feature ? bonus.feature : "";
  loss.extension = extension;
  loss.core_since = core ? bonus.core_since : 0;
  if (bonus.feature && !core) loss.item += " (" + extension + ")";
  if (!supported) {
    loss.kind = declared ? RemedyKind::declare_less : RemedyKind::none;
    loss.cause = declared ? "declared but not supported by the device" : "not supported by the device";
    loss.remedy = declared ? "declare only what vkCreateDevice was given" : "none on this device";
  } else if (!usable) {
    loss.kind = RemedyKind::none;
    loss.cause = "the device's matrices have other shapes or types than kernels are written for";
    loss.remedy = "none on this device";
  } else if (declared_too_early) {
    loss.kind = RemedyKind::raise_version;
    loss.cause = "declared, but not part of the declared vulkan " + version_text(host.version);
    loss.remedy =
        "raise api_version to " + where + ", at vkCreateInstance or vkCreateDevice and in the description";
  } else if (bonus.feature) {
    loss.kind = RemedyKind::enable_feature;
    loss.remedy = "enable " + std::string(bonus.feature) + " (" + where +
                  ") at vkCreateDevice and put its struct into the features chain";
  } else {
    loss.kind = RemedyKind::enable_extension;
    loss.remedy = "enable " + extension + " at vkCreateDevice and list it in device_extensions";
  }
  return loss;
}

Status check_version(std::uint32_t version, const char* what, const char* remedy) {
  if (version >= VK_API_VERSION_1_1) return {};
  return make_error(ErrorCode::unsupported, std::string(what) + " is vulkan " +
                                                version_text(version ? version : VK_API_VERSION_1_0) +
                                                ", and at least 1.1 is needed: " + remedy);
}

}  // namespace

std::string version_text(std::uint32_t version) {
  return std::to_string(VK_API_VERSION_MAJOR(version)) + "." + std::to_string(VK_API_VERSION_MINOR(version));
}

Result<CapabilityReport> read_capabilities(const DeviceDescription& description, const Functions& functions) {
  IMPRINT_CHECK(check_declared_version(description));
  if (description.features && description.features->sType != VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2) {
    return make_error(ErrorCode::invalid_argument, "features is not a VkPhysicalDeviceFeatures2 (sType " +
                                                       std::to_string(description.features->sType) +
                                                       "): set its sType");
  }

  VkPhysicalDeviceProperties2 properties{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2};
  functions.vkGetPhysicalDeviceProperties2(description.physical_device, &properties);
  const std::uint32_t device_version = properties.properties.apiVersion;
  IMPRINT_CHECK(check_version(device_version, "the physical device", "use another device or a newer driver"));

  Offer host{std::min(description.api_version, device_version), {}};
  IMPRINT_ASSIGN(host.extensions, names(description.device_extensions, "device_extensions"));
  IMPRINT_ASSIGN(const auto instance_extensions,
                 names(description.instance_extensions, "instance_extensions"));
  Offer device{device_version, {}};
  IMPRINT_ASSIGN(device.extensions, device_extensions(description.physical_device, functions));

  auto [declared, too_early] = read_chain(description.features ? description.features->pNext : nullptr, host);
  read_extensions(host, declared);
  const Capabilities supported = supported_by(description.physical_device, functions, device);
  Capabilities usable = supported;
  keep_usable_matrices(description.physical_device, functions, declared, usable);

  CapabilityReport report;
  Capabilities& effective = report.capabilities;
  effective.api_version = host.version;
  read_properties(description.physical_device, functions, device, effective);
  IMPRINT_CHECK(read_queue_family(description, functions, effective));
  for (const Bonus& bonus : kBonuses) {
    const bool is_declared = declared.*bonus.member, is_usable = usable.*bonus.member;
    effective.*bonus.member = is_declared && is_usable;
    if (!(is_declared && is_usable))
      report.losses.push_back(
          loss_of(bonus, is_declared, too_early.*bonus.member, supported.*bonus.member, is_usable, host));
  }

  if (!effective.subgroup_size_control) effective.min_subgroup_size = effective.max_subgroup_size = 0;

  effective.debug_utils =
      instance_extensions.contains("VK_EXT_debug_utils") && functions.vkSetDebugUtilsObjectNameEXT;
  if (!effective.debug_utils) {
    report.losses.push_back(
        {"VK_EXT_debug_utils", "not declared",
         "our objects and commands have no names in validation messages and captures",
         "enable VK_EXT_debug_utils at vkCreateInstance and list it in instance_extensions",
         RemedyKind::enable_instance_extension, "", "VK_EXT_debug_utils"});
  }
  if (effective.timestamp_valid_bits == 0) {
    report.losses.push_back(
        {"timestamps", "not supported by the queue family", "GPU time is estimated instead of measured",
         "give a queue family with timestampValidBits above 0", RemedyKind::other_queue_family});
  }
  return report;
}

std::span<const UnusedBonus> unused_bonuses() { return kUnused; }

Status check_declared_version(const DeviceDescription& description) {
  return check_version(description.api_version, "api_version",
                       "raise VkApplicationInfo::apiVersion to VK_API_VERSION_1_1 or above at "
                       "vkCreateInstance and declare it in api_version");
}

}  // namespace imprint::vk
