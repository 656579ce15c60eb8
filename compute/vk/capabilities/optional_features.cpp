#include "compute/vk/capabilities/optional_features.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>

#include "compute/base/text.h"
#include "compute/vk/capabilities/feature_structs.h"

namespace imprint::vk {
namespace {

// A feature bit in a chained struct, or several bits that count only together. A bit counts from the version
// that includes the struct, or with the extension. Elsewhere a driver ignores it. The structs of whole
// versions have no extension. VkPhysicalDeviceVulkan11Features came with 1.2.
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
    BIT(Vulkan13Features, VULKAN_1_3_FEATURES, shaderIntegerDotProduct, integer_dot, nullptr,
        VK_API_VERSION_1_3),

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
    BIT(ShaderIntegerDotProductFeatures, SHADER_INTEGER_DOT_PRODUCT_FEATURES, shaderIntegerDotProduct,
        integer_dot, "VK_KHR_shader_integer_dot_product", VK_API_VERSION_1_3),
    BIT(CooperativeMatrixFeaturesNV, COOPERATIVE_MATRIX_FEATURES_NV, cooperativeMatrix, cooperative_matrix_nv,
        "VK_NV_cooperative_matrix", kNeverCore),
    BIT(CooperativeMatrixFeaturesKHR, COOPERATIVE_MATRIX_FEATURES_KHR, cooperativeMatrix,
        cooperative_matrix_khr, "VK_KHR_cooperative_matrix", kNeverCore),
    {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_2_FEATURES_NV,
     offsetof(VkPhysicalDeviceCooperativeMatrix2FeaturesNV, cooperativeMatrixTensorAddressing),
     &Capabilities::cooperative_matrix2_nv,
     "VK_NV_cooperative_matrix2",
     kNeverCore,
     {offsetof(VkPhysicalDeviceCooperativeMatrix2FeaturesNV, cooperativeMatrixWorkgroupScope),
      offsetof(VkPhysicalDeviceCooperativeMatrix2FeaturesNV, cooperativeMatrixFlexibleDimensions),
      offsetof(VkPhysicalDeviceCooperativeMatrix2FeaturesNV, cooperativeMatrixPerElementOperations)}},
};
#undef BIT

#define LIBRARY_ONLY "the plugin loses nothing; in the C++ library "
// In order of cost without them: first those of every frame of a game, then rare cases. Float16 comes last:
// the plugin computes in float32.
constexpr OptionalFeature kOptionalFeatures[] = {
    {&Capabilities::timeline_semaphore, "timelineSemaphore", "VK_KHR_timeline_semaphore", VK_API_VERSION_1_2,
     "completion is tracked by fences or frame numbers; queues cannot wait for or signal each other"},
    {&Capabilities::synchronization2, "synchronization2", "VK_KHR_synchronization2", VK_API_VERSION_1_3,
     "barriers are Vulkan 1.0's, which wait for more: all shader accesses and transfers instead of storage "
     "buffers and copies"},
    {&Capabilities::memory_budget, nullptr, "VK_EXT_memory_budget", kNeverCore,
     "only the cap limits memory, not the driver's remaining budget"},
    {&Capabilities::pipeline_creation_cache_control, "pipelineCreationCacheControl",
     "VK_EXT_pipeline_creation_cache_control", VK_API_VERSION_1_3,
     "a kernel first needed inside a frame is compiled there and counted, instead of refused"},
    {&Capabilities::host_query_reset, "hostQueryReset", "VK_EXT_host_query_reset", VK_API_VERSION_1_2,
     "timestamp queries are reset by a command before each use"},
    {&Capabilities::integer_dot, "shaderIntegerDotProduct", "VK_KHR_shader_integer_dot_product",
     VK_API_VERSION_1_3,
     "agents lose nothing; quantised models compute convolutions and products of many rows in float32"},
    {&Capabilities::cooperative_matrix_khr, "cooperativeMatrix", "VK_KHR_cooperative_matrix", kNeverCore,
     LIBRARY_ONLY "float16 products do not run on matrix units (KHR)"},
    {&Capabilities::cooperative_matrix_nv, "cooperativeMatrix", "VK_NV_cooperative_matrix", kNeverCore,
     LIBRARY_ONLY "float16 products do not run on matrix units (NV)"},
    {&Capabilities::shader_float16, "shaderFloat16", "VK_KHR_shader_float16_int8", VK_API_VERSION_1_2,
     LIBRARY_ONLY "mixed-precision programs compute in float32"},
    {&Capabilities::storage_16bit, "storageBuffer16BitAccess", "VK_KHR_16bit_storage", VK_API_VERSION_1_1,
     LIBRARY_ONLY "programs cannot hold float16 or bfloat16 in memory"},
    {&Capabilities::vulkan_memory_model, "vulkanMemoryModel", "VK_KHR_vulkan_memory_model",
     VK_API_VERSION_1_2, LIBRARY_ONLY "float16 products do not run on matrix units, whose shaders need it"},
    {&Capabilities::subgroup_size_control, "subgroupSizeControl", "VK_EXT_subgroup_size_control",
     VK_API_VERSION_1_3,
     LIBRARY_ONLY "float16 products run on matrix units only if every subgroup has 32 invocations"},
    {&Capabilities::cooperative_matrix2_nv, "cooperativeMatrixTensorAddressing", "VK_NV_cooperative_matrix2",
     kNeverCore,
     LIBRARY_ONLY
     "matrix units multiply what a subgroup has loaded, not a workgroup's tile straight from memory (which "
     "also needs cooperativeMatrixWorkgroupScope, cooperativeMatrixFlexibleDimensions, "
     "cooperativeMatrixPerElementOperations and vulkan 1.3)"},
};
#undef LIBRARY_ONLY

constexpr UnusedFeature kUnused[] = {
    {"VK_KHR_push_descriptor",
     "programs are recorded once and replayed; their descriptor sets are written once too"},
    {"bufferDeviceAddress",
     "kernels reach tensors by bindings and offsets; maxStorageBufferRange limits a tensor either way"},
    {"VK_EXT_calibrated_timestamps", "budgets are durations, which need no host clock"},
    {"storageBuffer8BitAccess", "elements take four bytes, or two for narrow floats"},
    {"shaderInt8", "bytes are packed in words"},
};

}  // namespace

std::span<const OptionalFeature> optional_features() { return kOptionalFeatures; }

std::span<const UnusedFeature> unused_features() { return kUnused; }

ChainFeatures read_chain(const void* chain, const FeatureSource& source) {
  ChainFeatures found;
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
        (source.has(bit.extension, bit.core_since) ? found.usable : found.too_early).*bit.member = true;
    }
  }
  return found;
}

Result<> check_chain(const void* chain, const VkPhysicalDeviceFeatures* enabled_features,
                     const ChainFields& fields) {
  constexpr std::size_t kMost = 1024;  // Vulkan has fewer structs for this chain
  const auto is_read = [](VkStructureType type) {
    return type == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2 ||
           std::ranges::any_of(kFeatureBits, [&](const FeatureBit& bit) { return bit.type == type; });
  };
  std::unordered_set<std::int32_t> met;
  std::size_t count = 0;
  for (auto* link = static_cast<const VkBaseInStructure*>(chain); link; link = link->pNext) {
    if (++count > kMost)
      return make_error(ErrorCode::invalid_argument,
                        text(fields.chain, ": found more than ", kMost,
                             " structs, expected a chain that ends. Set pNext of its last struct to null."));
    if (is_read(link->sType) && !met.insert(link->sType).second)
      return make_error(
          ErrorCode::invalid_argument,
          text(fields.chain, ": found two structs of type ", static_cast<std::int32_t>(link->sType),
               ", expected one. Leave the other one out, as at vkCreateDevice."));
  }
  if (enabled_features && met.contains(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2))
    return make_error(ErrorCode::invalid_argument,
                      text(fields.chain, ", ", fields.enabled_features,
                           ": found a VkPhysicalDeviceFeatures2 in the chain and enabled features beside it, "
                           "expected one of them. Set ",
                           fields.enabled_features, " to null."));
  return {};
}

void read_extensions(const FeatureSource& source, Capabilities& found) {
  for (const OptionalFeature& each : kOptionalFeatures) {
    if (!each.feature) found.*each.member = source.has(each.extension, each.core_since);
  }
}

Capabilities supported_features(VkPhysicalDevice physical_device, const Functions& functions,
                                const FeatureSource& device) {
  FeatureStructs structs;

  // Uses the structs of single features: every version with the extension knows them. Chains only structs
  // that the device knows.
  VkPhysicalDeviceFeatures2 features{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2};
  const auto ask = [&](auto& link) {
    const bool known = std::ranges::any_of(kFeatureBits, [&](const FeatureBit& bit) {
      return bit.type == link.sType && device.has(bit.extension, bit.core_since);
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
  ask(structs.integer_dot);
  ask(structs.matrix_nv);
  ask(structs.matrix_khr);
  ask(structs.matrix2_nv);
  functions.vkGetPhysicalDeviceFeatures2(physical_device, &features);

  Capabilities supported = read_chain(features.pNext, device).usable;
  read_extensions(device, supported);
  return supported;
}

MissingFeature missing_feature(const OptionalFeature& feature, const FeatureState& state,
                               const FeatureSource& host) {
  const std::string extension = feature.extension;
  const bool core = feature.core_since != kNeverCore;
  const std::string where =
      !core ? extension : "vulkan " + version_text(feature.core_since) + " or " + extension;

  MissingFeature missing{feature.feature ? feature.feature : extension, "not declared", feature.cost, {}};
  missing.feature = feature.feature ? feature.feature : "";
  missing.extension = extension;
  missing.core_since = core ? feature.core_since : 0;
  if (feature.feature && !core) missing.item += " (" + extension + ")";
  if (!state.supported) {
    missing.kind = state.declared ? RemedyKind::declare_less : RemedyKind::none;
    missing.cause =
        state.declared ? "declared but not supported by the device" : "not supported by the device";
    missing.remedy = state.declared ? "declare only what vkCreateDevice was given" : "none on this device";
  } else if (!state.usable) {
    missing.kind = RemedyKind::none;
    missing.cause = feature.member == &Capabilities::integer_dot
                        ? "the device has no instruction for it"
                        : "the device's matrices have other shapes or types than kernels are written for";
    missing.remedy = "none on this device";
  } else if (state.declared_too_early) {
    missing.kind = RemedyKind::raise_version;
    missing.cause = "declared, but not part of the declared vulkan " + version_text(host.version);
    missing.remedy =
        "raise api_version to " + where + ", at vkCreateInstance or vkCreateDevice and in the description";
  } else if (feature.feature) {
    missing.kind = RemedyKind::enable_feature;
    missing.remedy = "enable " + std::string(feature.feature) + " (" + where +
                     ") at vkCreateDevice and declare the same chain in features";
  } else {
    missing.kind = RemedyKind::enable_extension;
    missing.remedy = "enable " + extension + " at vkCreateDevice and list it in device_extensions";
  }
  return missing;
}

}  // namespace imprint::vk
