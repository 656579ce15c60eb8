// Adoption of a device, against a fake driver. Needs no GPU and no loader.

#include "compute/vk/capabilities/read_capabilities.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "compute/vk/capabilities/optional_features.h"

namespace imprint::vk {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

constexpr VkStructureType kTimeline = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_FEATURES;
constexpr VkStructureType kSync2 = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SYNCHRONIZATION_2_FEATURES;
constexpr VkStructureType kStorage16 = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_16BIT_STORAGE_FEATURES;
constexpr VkStructureType kFloat16 = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_FLOAT16_INT8_FEATURES;

// The object that the fake VkPhysicalDevice handle points to.
struct FakeDriver {
  std::uint32_t version = VK_API_VERSION_1_3;
  std::vector<std::string> extensions;
  std::set<VkStructureType> supported;  // structs whose first feature is there
  std::vector<VkQueueFamilyProperties> families = {{VK_QUEUE_GRAPHICS_BIT | VK_QUEUE_COMPUTE_BIT, 1, 64, {}},
                                                   {VK_QUEUE_TRANSFER_BIT, 1, 0, {}}};
  std::vector<VkStructureType> asked;
  std::vector<VkCooperativeMatrixPropertiesNV> matrices_nv;
  std::vector<VkCooperativeMatrixPropertiesKHR> matrices;
  bool rounds_halves = true, keeps_subnormals = true;  // VkPhysicalDeviceFloatControlsProperties
  bool multiplies_bytes = true;
  std::uint32_t most_extent = 1024, most_invocations = 256;  // of a workgroup's matrices
  std::vector<VkCooperativeMatrixFlexibleDimensionsPropertiesNV> flexible;

  VkPhysicalDevice handle() { return reinterpret_cast<VkPhysicalDevice>(this); }
  static FakeDriver& of(VkPhysicalDevice device) { return *reinterpret_cast<FakeDriver*>(device); }
};

template <class T>
VkResult list_out(const std::vector<T>& own, std::uint32_t* count, T* out) {
  if (out) std::copy_n(own.begin(), *count, out);
  *count = static_cast<std::uint32_t>(own.size());
  return VK_SUCCESS;
}

VkCooperativeMatrixPropertiesNV matrices_nv_of(std::uint32_t columns, VkComponentTypeNV sums) {
  VkCooperativeMatrixPropertiesNV one{VK_STRUCTURE_TYPE_COOPERATIVE_MATRIX_PROPERTIES_NV, nullptr, 16,
                                      columns, 16};
  one.AType = one.BType = VK_COMPONENT_TYPE_FLOAT16_NV;
  one.CType = one.DType = sums;
  one.scope = VK_SCOPE_SUBGROUP_NV;
  return one;
}

VkCooperativeMatrixPropertiesKHR matrices_of(std::uint32_t columns, VkComponentTypeKHR sums) {
  VkCooperativeMatrixPropertiesKHR one{VK_STRUCTURE_TYPE_COOPERATIVE_MATRIX_PROPERTIES_KHR, nullptr, 16,
                                       columns, 16};
  one.AType = one.BType = VK_COMPONENT_TYPE_FLOAT16_KHR;
  one.CType = one.ResultType = sums;
  one.scope = VK_SCOPE_SUBGROUP_KHR;
  return one;
}

VkCooperativeMatrixFlexibleDimensionsPropertiesNV flexible_of(std::uint32_t granularity,
                                                              std::uint32_t invocations) {
  VkCooperativeMatrixFlexibleDimensionsPropertiesNV one{
      VK_STRUCTURE_TYPE_COOPERATIVE_MATRIX_FLEXIBLE_DIMENSIONS_PROPERTIES_NV, nullptr, granularity,
      granularity, 16};
  one.AType = one.BType = VK_COMPONENT_TYPE_FLOAT16_KHR;
  one.CType = one.ResultType = VK_COMPONENT_TYPE_FLOAT32_KHR;
  one.scope = VK_SCOPE_WORKGROUP_KHR;
  one.workgroupInvocations = invocations;
  return one;
}

Functions capability_functions() {
  Functions f;
  f.vkGetPhysicalDeviceProperties2 = [](VkPhysicalDevice device, VkPhysicalDeviceProperties2* properties) {
    properties->properties.apiVersion = FakeDriver::of(device).version;
    std::strcpy(properties->properties.deviceName, "paper GPU");
    properties->properties.driverVersion = 42;
    properties->properties.limits.maxStorageBufferRange = 1u << 27;
    properties->properties.limits.maxPerStageDescriptorStorageBuffers = 4;
    properties->properties.limits.maxDescriptorSetStorageBuffers = 24;
    for (auto* link = static_cast<VkBaseOutStructure*>(properties->pNext); link; link = link->pNext) {
      FakeDriver::of(device).asked.push_back(link->sType);
      if (link->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES) {
        std::strcpy(reinterpret_cast<VkPhysicalDeviceDriverProperties*>(link)->driverName, "paper");
        std::strcpy(reinterpret_cast<VkPhysicalDeviceDriverProperties*>(link)->driverInfo, "1.2.3");
      }
      if (link->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_PROPERTIES) {
        reinterpret_cast<VkPhysicalDeviceSubgroupProperties*>(link)->subgroupSize = 32;
      }
      if (link->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FLOAT_CONTROLS_PROPERTIES) {
        auto& floats = *reinterpret_cast<VkPhysicalDeviceFloatControlsProperties*>(link);
        floats.shaderRoundingModeRTEFloat16 = VK_TRUE;
        floats.shaderDenormPreserveFloat16 = FakeDriver::of(device).keeps_subnormals;
      }
      if (link->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_PROPERTIES) {
        reinterpret_cast<VkPhysicalDeviceShaderIntegerDotProductProperties*>(link)
            ->integerDotProduct4x8BitPackedSignedAccelerated = FakeDriver::of(device).multiplies_bytes;
      }
      if (link->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_2_PROPERTIES_NV) {
        auto& most = *reinterpret_cast<VkPhysicalDeviceCooperativeMatrix2PropertiesNV*>(link);
        most.cooperativeMatrixFlexibleDimensionsMaxDimension = FakeDriver::of(device).most_extent;
        most.cooperativeMatrixWorkgroupScopeMaxWorkgroupSize = FakeDriver::of(device).most_invocations;
      }
    }
  };
  f.vkGetPhysicalDeviceFeatures2 = [](VkPhysicalDevice device, VkPhysicalDeviceFeatures2* features) {
    for (auto* link = static_cast<VkBaseOutStructure*>(features->pNext); link; link = link->pNext) {
      FakeDriver::of(device).asked.push_back(link->sType);
      const VkBool32 value = FakeDriver::of(device).supported.contains(link->sType);
      std::memcpy(reinterpret_cast<char*>(link) + sizeof(VkBaseOutStructure), &value, sizeof value);
    }
  };
  f.vkGetPhysicalDeviceQueueFamilyProperties = [](VkPhysicalDevice device, std::uint32_t* count,
                                                  VkQueueFamilyProperties* families) {
    const auto& own = FakeDriver::of(device).families;
    if (families) std::copy_n(own.begin(), *count, families);
    *count = static_cast<std::uint32_t>(own.size());
  };
  f.vkEnumerateDeviceExtensionProperties = [](VkPhysicalDevice device, const char*, std::uint32_t* count,
                                              VkExtensionProperties* list) {
    const auto& own = FakeDriver::of(device).extensions;
    for (std::uint32_t i = 0; list && i < *count; ++i) std::strcpy(list[i].extensionName, own[i].c_str());
    *count = static_cast<std::uint32_t>(own.size());
    return VK_SUCCESS;
  };
  f.vkGetPhysicalDeviceCooperativeMatrixPropertiesNV = [](VkPhysicalDevice device, std::uint32_t* count,
                                                          VkCooperativeMatrixPropertiesNV* out) {
    return list_out(FakeDriver::of(device).matrices_nv, count, out);
  };
  f.vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR = [](VkPhysicalDevice device, std::uint32_t* count,
                                                           VkCooperativeMatrixPropertiesKHR* out) {
    return list_out(FakeDriver::of(device).matrices, count, out);
  };
  f.vkGetPhysicalDeviceCooperativeMatrixFlexibleDimensionsPropertiesNV =
      [](VkPhysicalDevice device, std::uint32_t* count,
         VkCooperativeMatrixFlexibleDimensionsPropertiesNV* out) {
        return list_out(FakeDriver::of(device).flexible, count, out);
      };
  f.vkSetDebugUtilsObjectNameEXT = [](VkDevice, const VkDebugUtilsObjectNameInfoEXT*) { return VK_SUCCESS; };
  return f;
}

class CapabilitiesTest : public ::testing::Test {
 protected:
  Result<CapabilityReport> read() {
    description_.physical_device = driver_.handle();
    description_.features = features_.pNext ? &features_ : nullptr;
    description_.device_extensions = extensions_;
    description_.instance_extensions = instance_extensions_;
    return read_capabilities(description_, capability_functions());
  }
  template <class T>
  void declare(T& features) {
    features.pNext = features_.pNext;
    features_.pNext = &features;
  }
  static const MissingFeature* loss(const CapabilityReport& report, const std::string& item) {
    for (const auto& loss : report.missing_features) {
      if (loss.item == item) return &loss;
    }
    return nullptr;
  }

  FakeDriver driver_;
  DeviceDescription description_{.api_version = VK_API_VERSION_1_3};
  VkPhysicalDeviceFeatures2 features_{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2};
  std::vector<const char*> extensions_, instance_extensions_;

  VkPhysicalDeviceVulkan11Features core11_{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES};
  VkPhysicalDeviceVulkan12Features core12_{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES};
  VkPhysicalDeviceTimelineSemaphoreFeatures timeline_{kTimeline};
  VkPhysicalDeviceSynchronization2Features sync2_{kSync2};
  VkPhysicalDevice16BitStorageFeatures storage16_{kStorage16};
  VkPhysicalDeviceCooperativeMatrixFeaturesNV matrix_nv_{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_NV};
  VkPhysicalDeviceCooperativeMatrixFeaturesKHR matrix_{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_KHR};
  VkPhysicalDeviceCooperativeMatrix2FeaturesNV matrix2_{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_2_FEATURES_NV};
  VkPhysicalDeviceDescriptorIndexingFeatures other_{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DESCRIPTOR_INDEXING_FEATURES};
};

TEST_F(CapabilitiesTest, CountsNothingThatIsNotDeclared) {
  driver_.supported = {kTimeline, kSync2, kStorage16, kFloat16};
  driver_.extensions = {"VK_EXT_memory_budget"};
  const auto report = read();
  ASSERT_TRUE(report.ok()) << report.error().message;
  EXPECT_FALSE(report->capabilities.timeline_semaphore);
  EXPECT_FALSE(report->capabilities.synchronization2);
  EXPECT_FALSE(report->capabilities.memory_budget);
  EXPECT_FALSE(report->capabilities.debug_utils);
  const auto* timeline = loss(*report, "timelineSemaphore");
  ASSERT_TRUE(timeline);
  EXPECT_EQ(timeline->cause, "not declared");
  EXPECT_THAT(timeline->cost, HasSubstr("fences or frame numbers"));
  EXPECT_THAT(timeline->remedy,
              HasSubstr("enable timelineSemaphore (vulkan 1.2 or VK_KHR_timeline_semaphore)"));
  EXPECT_TRUE(loss(*report, "VK_EXT_memory_budget"));
}

TEST_F(CapabilitiesTest, CountsDeclaredAndSupportedFeatures) {
  driver_.supported = {kTimeline, kSync2};
  driver_.extensions = {"VK_EXT_memory_budget"};
  extensions_ = {"VK_EXT_memory_budget"};
  instance_extensions_ = {"VK_EXT_debug_utils"};
  core12_.timelineSemaphore = VK_TRUE;
  sync2_.synchronization2 = VK_TRUE;
  declare(core12_);
  declare(sync2_);
  const auto report = read();
  ASSERT_TRUE(report.ok()) << report.error().message;
  EXPECT_TRUE(report->capabilities.timeline_semaphore);
  EXPECT_TRUE(report->capabilities.synchronization2);
  EXPECT_TRUE(report->capabilities.memory_budget);
  EXPECT_TRUE(report->capabilities.debug_utils);
  EXPECT_FALSE(report->capabilities.host_query_reset);
  for (const char* item :
       {"timelineSemaphore", "synchronization2", "VK_EXT_memory_budget", "VK_EXT_debug_utils"}) {
    EXPECT_FALSE(loss(*report, item)) << item;
  }
}

TEST_F(CapabilitiesTest, ReportsFeaturesDeclaredButMissing) {
  extensions_ = {"VK_EXT_memory_budget"};
  timeline_.timelineSemaphore = VK_TRUE;
  declare(timeline_);
  const auto report = read();
  ASSERT_TRUE(report.ok());
  EXPECT_FALSE(report->capabilities.timeline_semaphore);
  EXPECT_FALSE(report->capabilities.memory_budget);
  ASSERT_TRUE(loss(*report, "timelineSemaphore"));
  EXPECT_EQ(loss(*report, "timelineSemaphore")->cause, "declared but not supported by the device");
}

TEST_F(CapabilitiesTest, TakesAFeatureBeforeItsCoreVersionOnlyWithItsExtension) {
  driver_.supported = {kTimeline};
  driver_.extensions = {"VK_KHR_timeline_semaphore"};
  description_.api_version = VK_API_VERSION_1_1;
  timeline_.timelineSemaphore = VK_TRUE;
  declare(timeline_);
  const auto without = read();
  ASSERT_TRUE(without.ok());
  EXPECT_FALSE(without->capabilities.timeline_semaphore);
  ASSERT_TRUE(loss(*without, "timelineSemaphore"));
  EXPECT_THAT(loss(*without, "timelineSemaphore")->cause, HasSubstr("not part of the declared vulkan 1.1"));
  EXPECT_THAT(loss(*without, "timelineSemaphore")->remedy,
              HasSubstr("vulkan 1.2 or VK_KHR_timeline_semaphore"));

  extensions_ = {"VK_KHR_timeline_semaphore"};
  const auto with = read();
  ASSERT_TRUE(with.ok());
  EXPECT_TRUE(with->capabilities.timeline_semaphore);
}

// Engines chain what vkCreateDevice takes, in an order of their own.
TEST_F(CapabilitiesTest, TakesAnyChainThatVkCreateDeviceTakes) {
  driver_.supported = {kTimeline, kSync2};
  core12_.timelineSemaphore = VK_TRUE;
  sync2_.synchronization2 = VK_TRUE;
  VkBaseOutStructure unknown{static_cast<VkStructureType>(2000000001), nullptr};
  description_.physical_device = driver_.handle();
  const VkPhysicalDeviceFeatures plain{};
  const auto expect_both = [&](const char* order) {
    const auto report = read_capabilities(description_, capability_functions());
    ASSERT_TRUE(report.ok()) << order << ": " << report.error().message;
    EXPECT_TRUE(report->capabilities.timeline_semaphore) << order;
    EXPECT_TRUE(report->capabilities.synchronization2) << order;
  };
  unknown.pNext = reinterpret_cast<VkBaseOutStructure*>(&core12_);
  core12_.pNext = &features_;
  features_.pNext = &sync2_;
  description_.features = &unknown;
  expect_both("VkPhysicalDeviceFeatures2 in the middle");
  core12_.pNext = &sync2_;
  description_.enabled_features = &plain;
  expect_both("without VkPhysicalDeviceFeatures2, with enabled features");
}

TEST_F(CapabilitiesTest, RefusesChainsThatVkCreateDeviceWouldRefuse) {
  description_.physical_device = driver_.handle();
  const auto expect_refused = [&](const char* part) {
    const auto report = read_capabilities(description_, capability_functions());
    ASSERT_FALSE(report.ok());
    EXPECT_EQ(report.error().code, ErrorCode::invalid_argument);
    EXPECT_THAT(report.error().message, HasSubstr(part));
  };
  VkPhysicalDeviceTimelineSemaphoreFeatures twice{kTimeline};
  timeline_.pNext = &twice;
  description_.features = &timeline_;
  expect_refused("features: found two structs of type");
  const VkPhysicalDeviceFeatures plain{};
  timeline_.pNext = &features_;
  description_.enabled_features = &plain;
  expect_refused("Set enabled_features to null");
  description_.enabled_features = nullptr;
  VkBaseOutStructure circle{static_cast<VkStructureType>(2000000001), nullptr};
  circle.pNext = &circle;
  description_.features = &circle;
  expect_refused("expected a chain that ends");
}

TEST_F(CapabilitiesTest, ReadsStructsOfWholeVersionsOnlyFromThatVersionOn) {
  driver_.supported = {kTimeline, kStorage16};
  core11_.storageBuffer16BitAccess = VK_TRUE;
  core12_.timelineSemaphore = VK_TRUE;
  declare(core11_);
  declare(core12_);
  for (const auto& [version, counts] :
       {std::pair{VK_API_VERSION_1_1, false}, {VK_API_VERSION_1_2, true}, {VK_API_VERSION_1_3, true}}) {
    description_.api_version = version;
    const auto report = read();
    ASSERT_TRUE(report.ok());
    EXPECT_EQ(report->capabilities.timeline_semaphore, counts);
    EXPECT_EQ(report->capabilities.storage_16bit, counts)
        << "the struct came with 1.2, though the feature came with 1.1";
    EXPECT_EQ(report->capabilities.api_version, version);
  }
}

TEST_F(CapabilitiesTest, Reads16BitStorageOf11ByItsOwnStruct) {
  driver_.supported = {kStorage16};
  description_.api_version = VK_API_VERSION_1_1;
  storage16_.storageBuffer16BitAccess = VK_TRUE;
  declare(storage16_);
  const auto report = read();
  ASSERT_TRUE(report.ok());
  EXPECT_TRUE(report->capabilities.storage_16bit);
}

TEST_F(CapabilitiesTest, AsksTheDeviceOnlyForStructsThatItKnows) {
  driver_.version = VK_API_VERSION_1_1;
  driver_.extensions = {"VK_KHR_synchronization2"};
  ASSERT_TRUE(read().ok());
  EXPECT_THAT(driver_.asked, UnorderedElementsAre(kStorage16, kSync2,
                                                  VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_PROPERTIES));
}

TEST_F(CapabilitiesTest, TakesTheLowerOfBothVersions) {
  driver_.version = VK_API_VERSION_1_1;
  description_.api_version = VK_API_VERSION_1_3;
  const auto report = read();
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report->capabilities.api_version, VK_API_VERSION_1_1);
}

TEST_F(CapabilitiesTest, MultipliesBytesOnlyWithAnInstruction) {
  VkPhysicalDeviceShaderIntegerDotProductFeatures dots{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_FEATURES};
  driver_.supported = {dots.sType};
  dots.shaderIntegerDotProduct = VK_TRUE;
  declare(dots);
  EXPECT_TRUE(read()->capabilities.integer_dot);
  driver_.multiplies_bytes = false;
  const auto report = read();
  EXPECT_FALSE(report->capabilities.integer_dot);
  EXPECT_EQ(loss(*report, "shaderIntegerDotProduct")->cause, "the device has no instruction for it");
}

// The feature only says that matrices exist; the physical device lists their shapes.
TEST_F(CapabilitiesTest, TakesMatricesOnlyInTheShapesThatKernelsAreWrittenFor) {
  driver_.extensions = {"VK_KHR_cooperative_matrix"};
  driver_.supported = {matrix_.sType};
  extensions_ = {"VK_KHR_cooperative_matrix"};
  matrix_.cooperativeMatrix = VK_TRUE;
  declare(matrix_);
  const auto has = [&] { return read()->capabilities.cooperative_matrix_khr; };
  EXPECT_FALSE(has()) << "no shape listed";
  driver_.matrices = {matrices_of(8, VK_COMPONENT_TYPE_FLOAT32_KHR),
                      matrices_of(8, VK_COMPONENT_TYPE_FLOAT16_KHR)};
  EXPECT_FALSE(has()) << "others";
  driver_.matrices.push_back(matrices_of(16, VK_COMPONENT_TYPE_FLOAT32_KHR));
  EXPECT_FALSE(has()) << "sums in float32 alone";
  driver_.matrices.push_back(matrices_of(16, VK_COMPONENT_TYPE_FLOAT16_KHR));
  EXPECT_TRUE(has());
  driver_.matrices.back().scope = VK_SCOPE_WORKGROUP_KHR;
  EXPECT_FALSE(has()) << "not of a subgroup";
  const auto report = read();
  const MissingFeature* told = loss(*report, "cooperativeMatrix (VK_KHR_cooperative_matrix)");
  ASSERT_TRUE(told);
  EXPECT_THAT(told->cause, HasSubstr("other shapes")) << "the host's declaration is correct";
  EXPECT_EQ(told->kind, RemedyKind::none);
  extensions_.clear();
  driver_.matrices.back().scope = VK_SCOPE_SUBGROUP_KHR;
  EXPECT_FALSE(has()) << "not declared";
}

TEST_F(CapabilitiesTest, TakesMatricesOfTheOlderExtensionInThoseShapesOnly) {
  driver_.extensions = {"VK_NV_cooperative_matrix"};
  extensions_ = {"VK_NV_cooperative_matrix"};
  driver_.supported = {matrix_nv_.sType};
  matrix_nv_.cooperativeMatrix = VK_TRUE;
  declare(matrix_nv_);
  const auto has = [&] { return read()->capabilities.cooperative_matrix_nv; };
  driver_.matrices_nv = {matrices_nv_of(8, VK_COMPONENT_TYPE_FLOAT32_NV),
                         matrices_nv_of(16, VK_COMPONENT_TYPE_FLOAT16_NV)};
  EXPECT_FALSE(has());
  driver_.matrices_nv.push_back(matrices_nv_of(16, VK_COMPONENT_TYPE_FLOAT32_NV));
  EXPECT_TRUE(has());
}

TEST_F(CapabilitiesTest, TakesMatricesOfAWorkgroupWithAllThatTheirKernelsUse) {
  driver_.extensions = {"VK_NV_cooperative_matrix2"};
  driver_.flexible = {flexible_of(32, 128), flexible_of(32, 256)};
  extensions_ = {"VK_NV_cooperative_matrix2"};
  Functions functions = capability_functions();
  functions.vkGetPhysicalDeviceFeatures2 = [](VkPhysicalDevice, VkPhysicalDeviceFeatures2* features) {
    for (auto* link = static_cast<VkBaseOutStructure*>(features->pNext); link; link = link->pNext)
      if (link->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_2_FEATURES_NV) {
        auto& own = *reinterpret_cast<VkPhysicalDeviceCooperativeMatrix2FeaturesNV*>(link);
        own.cooperativeMatrixWorkgroupScope = own.cooperativeMatrixFlexibleDimensions = VK_TRUE;
        own.cooperativeMatrixPerElementOperations = own.cooperativeMatrixTensorAddressing = VK_TRUE;
      }
  };
  description_.physical_device = driver_.handle();
  description_.device_extensions = extensions_;
  declare(matrix2_);
  description_.features = &features_;
  const auto has = [&] {
    return read_capabilities(description_, functions)->capabilities.cooperative_matrix2_nv;
  };
  matrix2_.cooperativeMatrixTensorAddressing = matrix2_.cooperativeMatrixWorkgroupScope =
      matrix2_.cooperativeMatrixFlexibleDimensions = VK_TRUE;
  EXPECT_FALSE(has()) << "one of four is not declared";
  EXPECT_THAT(driver_.asked,
              Not(Contains(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_2_PROPERTIES_NV)))
      << "an older layer would report this";
  matrix2_.cooperativeMatrixPerElementOperations = VK_TRUE;
  EXPECT_TRUE(has());
  EXPECT_THAT(driver_.asked, Contains(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_2_PROPERTIES_NV));
  driver_.flexible = {flexible_of(32, 256)};
  EXPECT_FALSE(has()) << "not of 128 invocations";
  driver_.flexible = {flexible_of(32, 128), flexible_of(128, 256)};
  EXPECT_FALSE(has()) << "too coarse";
  driver_.flexible = {flexible_of(32, 128), flexible_of(32, 256)};
  EXPECT_TRUE(has());
  driver_.most_extent = 128;
  EXPECT_FALSE(has()) << "too small";
  driver_.most_extent = 256;
  driver_.most_invocations = 128;
  EXPECT_FALSE(has()) << "of too few invocations";
}

TEST_F(CapabilitiesTest, RoundsToFloat16WhereTheDeclaredVersionOrExtensionHasModes) {
  const auto has = [&] { return read()->capabilities.rounds_to_float16; };
  EXPECT_TRUE(has());
  driver_.keeps_subnormals = false;
  EXPECT_FALSE(has());
  driver_.keeps_subnormals = true;
  description_.api_version = VK_API_VERSION_1_1;
  EXPECT_FALSE(has()) << "not declared";
  extensions_ = {"VK_KHR_shader_float_controls"};
  EXPECT_TRUE(has());
}

TEST_F(CapabilitiesTest, PassesOverStructsThatItDoesNotKnow) {
  driver_.supported = {kTimeline};
  timeline_.timelineSemaphore = VK_TRUE;
  declare(timeline_);
  declare(other_);
  const auto report = read();
  ASSERT_TRUE(report.ok());
  EXPECT_TRUE(report->capabilities.timeline_semaphore);
}

TEST_F(CapabilitiesTest, NamesTheDriverWhenTheDeviceCan) {
  EXPECT_EQ(read()->capabilities.driver_name, "paper 1.2.3");
  EXPECT_EQ(read()->capabilities.device_name, "paper GPU");
  EXPECT_EQ(read()->capabilities.subgroup_size, 32u);
  EXPECT_EQ(read()->capabilities.max_storage_buffers_per_stage, 4u);
  EXPECT_EQ(read()->capabilities.timestamp_valid_bits, 64u);
  driver_.version = VK_API_VERSION_1_1;
  EXPECT_EQ(read()->capabilities.driver_name, "driver 42");
  driver_.extensions = {"VK_KHR_driver_properties"};
  EXPECT_EQ(read()->capabilities.driver_name, "paper 1.2.3");
}

TEST_F(CapabilitiesTest, RefusesVersionsBelow11NamingTheField) {
  for (const std::uint32_t version : {0u, VK_API_VERSION_1_0}) {
    description_.api_version = version;
    const auto report = read();
    ASSERT_FALSE(report.ok());
    EXPECT_EQ(report.error().code, ErrorCode::unsupported);
    EXPECT_THAT(report.error().message, HasSubstr("api_version: found vulkan 1.0"));
    EXPECT_THAT(report.error().message, HasSubstr("VkApplicationInfo::apiVersion"));
  }
  description_.api_version = VK_API_VERSION_1_1;
  driver_.version = VK_API_VERSION_1_0;
  const auto report = read();
  ASSERT_FALSE(report.ok());
  EXPECT_THAT(report.error().message, HasSubstr("physical device: found vulkan 1.0"));
}

TEST_F(CapabilitiesTest, RefusesQueueFamiliesThatAreMissingOrDoNotCompute) {
  description_.queue_family = 2;
  EXPECT_EQ(read().error().code, ErrorCode::invalid_argument);
  description_.queue_family = 1;
  const auto report = read();
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.error().code, ErrorCode::unsupported);
  EXPECT_THAT(report.error().message, HasSubstr("queue.family: found 1, which has no compute"));
}

TEST_F(CapabilitiesTest, RefusesBrokenDescriptions) {
  extensions_ = {"VK_EXT_memory_budget", nullptr};
  const auto null_name = read();
  ASSERT_FALSE(null_name.ok());
  EXPECT_THAT(null_name.error().message, HasSubstr("device_extensions[1]: found null"));
}

TEST_F(CapabilitiesTest, ReportsAFamilyWithoutTimestamps) {
  driver_.families[0].timestampValidBits = 0;
  const auto report = read();
  ASSERT_TRUE(report.ok());
  ASSERT_TRUE(loss(*report, "timestamps"));
  EXPECT_THAT(loss(*report, "timestamps")->cost, HasSubstr("estimated"));
}

TEST_F(CapabilitiesTest, GivesEveryLossACauseACostAndARemedy) {
  const auto report = read();
  ASSERT_TRUE(report.ok());
  EXPECT_GE(report->missing_features.size(), 10u);
  std::set<std::string> items;
  for (const auto& loss : report->missing_features) {
    EXPECT_TRUE(items.insert(loss.item).second) << loss.item << " twice";
    EXPECT_THAT(loss.cause, Not(IsEmpty())) << loss.item;
    EXPECT_THAT(loss.cost, Not(IsEmpty())) << loss.item;
    EXPECT_THAT(loss.remedy, Not(IsEmpty())) << loss.item;
  }
}

// A feature without benefit is reported as such, and does not count as missing.
TEST_F(CapabilitiesTest, NamesMissingFeaturesAndWhy) {
  const auto report = read();
  ASSERT_TRUE(report.ok());
  EXPECT_GE(unused_features().size(), 3u);
  for (const UnusedFeature& bonus : unused_features()) {
    EXPECT_THAT(std::string(bonus.reason), Not(IsEmpty())) << bonus.item;
    EXPECT_FALSE(loss(*report, bonus.item)) << bonus.item;
  }
}

}  // namespace
}  // namespace imprint::vk
