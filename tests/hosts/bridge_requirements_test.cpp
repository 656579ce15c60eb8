// T1. Imprint's requirements are merged into create infos of every shape: the device is created, validation
// is silent, and everything asked for is enabled.

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine-bridge/context.h"
#include "engine-bridge/host/requirements.h"
#include "engine-bridge/own/own_device.h"
#include "engine-bridge/own/own_instance.h"

namespace imprint::bridge {
namespace {

// The structs and names that a host's create info borrows.
struct Shape {
  VkPhysicalDeviceFeatures plain{};
  VkPhysicalDeviceFeatures2 features{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2};
  VkPhysicalDeviceVulkan11Features features_11{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES};
  VkPhysicalDeviceVulkan12Features features_12{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES};
  VkPhysicalDeviceVulkan13Features features_13{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_FEATURES};
  VkPhysicalDeviceTimelineSemaphoreFeatures timeline{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_FEATURES};
  VkPhysicalDevice16BitStorageFeatures storage{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_16BIT_STORAGE_FEATURES};
  VkDevicePrivateDataCreateInfo unknown{VK_STRUCTURE_TYPE_DEVICE_PRIVATE_DATA_CREATE_INFO};
  std::vector<const char*> extensions;
};

struct Case {
  const char* name;
  std::uint32_t api_version;
  std::function<void(Shape&, VkDeviceCreateInfo&)> shape;
};

std::vector<Case> cases() {
  return {
      {"NoFeatures", VK_API_VERSION_1_1, [](Shape&, VkDeviceCreateInfo&) {}},
      {"NoFeaturesOfANewInstance", VK_API_VERSION_1_3, [](Shape&, VkDeviceCreateInfo&) {}},
      {"PlainFeatures", VK_API_VERSION_1_2,
       [](Shape& s, VkDeviceCreateInfo& info) { info.pEnabledFeatures = &s.plain; }},
      {"Features2", VK_API_VERSION_1_2, [](Shape& s, VkDeviceCreateInfo& info) { info.pNext = &s.features; }},
      {"VersionStructs", VK_API_VERSION_1_3,
       [](Shape& s, VkDeviceCreateInfo& info) {
         info.pNext = &s.features;
         s.features.pNext = &s.features_11;
         s.features_11.pNext = &s.features_12;
         s.features_12.pNext = &s.features_13;
         s.features_13.pNext = &s.unknown;  // anything may follow the structs that change
       }},
      {"Features2Last", VK_API_VERSION_1_2,
       [](Shape& s, VkDeviceCreateInfo& info) {
         info.pNext = &s.unknown;
         s.unknown.pNext = &s.timeline;
         s.timeline.pNext = &s.storage;
         s.storage.pNext = &s.features;
       }},
      {"VersionStructFirst", VK_API_VERSION_1_3,
       [](Shape& s, VkDeviceCreateInfo& info) {
         info.pNext = &s.features_12;
         info.pEnabledFeatures = &s.plain;
         s.features_12.pNext = &s.features_13;
       }},
      {"PromotedStructOff", VK_API_VERSION_1_2,
       [](Shape& s, VkDeviceCreateInfo& info) {
         info.pNext = &s.storage;
         s.storage.pNext = &s.timeline;
       }},
      {"PromotedStructOn", VK_API_VERSION_1_2,
       [](Shape& s, VkDeviceCreateInfo& info) {
         info.pNext = &s.timeline;
         s.timeline.timelineSemaphore = VK_TRUE;
       }},
      {"DuplicateExtensions", VK_API_VERSION_1_1,
       [](Shape& s, VkDeviceCreateInfo& info) {
         s.extensions = {"VK_KHR_timeline_semaphore"};
         info.pNext = &s.timeline;
         s.timeline.timelineSemaphore = VK_TRUE;
       }},
  };
}

class T1Merge : public testing::TestWithParam<Case> {};

DevicePlan plan_of(const OwnInstance& instance, VkPhysicalDevice device) {
  return {instance.get_instance_proc_addr(), instance.handle(), device, instance.api_version()};
}

TEST_P(T1Merge, AreMergedIntoEveryShape) {
  auto instance = OwnInstance::create({true, false, GetParam().api_version, {}});
  ASSERT_TRUE(instance) << instance.error().message;
  const auto list = candidates(**instance);
  ASSERT_TRUE(list);
  const auto chosen = choose(*list, "");
  ASSERT_TRUE(chosen) << chosen.error().message;
  const Candidate& candidate = (*list)[*chosen];

  Shape shape;
  const float priority = 1;
  VkDeviceQueueCreateInfo queue{VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO};
  queue.queueFamilyIndex = candidate.queue_family;
  queue.queueCount = 1;
  queue.pQueuePriorities = &priority;
  VkDeviceCreateInfo info{VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO};
  info.queueCreateInfoCount = 1;
  info.pQueueCreateInfos = &queue;
  GetParam().shape(shape, info);
  info.enabledExtensionCount = static_cast<std::uint32_t>(shape.extensions.size());
  info.ppEnabledExtensionNames = shape.extensions.data();
  const bool timeline_before = shape.timeline.timelineSemaphore;

  const auto merged = MergedDevice::make(plan_of(**instance, candidate.physical_device), info);
  ASSERT_TRUE(merged) << merged.error().message;
  EXPECT_EQ((*merged)->left_off(), "");
  EXPECT_EQ(shape.timeline.timelineSemaphore, timeline_before) << "the host's own is the host's";
  EXPECT_EQ(shape.features_12.timelineSemaphore, VK_FALSE);
  VkDevice device = VK_NULL_HANDLE;
  ASSERT_EQ(
      (*instance)->vkCreateDevice(candidate.physical_device, &(*merged)->create_info(), nullptr, &device),
      VK_SUCCESS);
  const auto function = [&](const char* name) { return (*instance)->vkGetDeviceProcAddr(device, name); };
  VkQueue handle = VK_NULL_HANDLE;
  reinterpret_cast<PFN_vkGetDeviceQueue>(function("vkGetDeviceQueue"))(device, candidate.queue_family, 0,
                                                                       &handle);
  {
    ContextDescription description;
    description.device.get_instance_proc_addr = (*instance)->get_instance_proc_addr();
    description.device.instance = (*instance)->handle();
    description.device.physical_device = candidate.physical_device;
    description.device.device = device;
    description.device.api_version = (*instance)->api_version();
    description.device.instance_extensions = (*instance)->extensions();
    description.device.device_extensions = (*merged)->extensions();
    description.device.features = (*merged)->create_info().pNext;
    description.device.enabled_features = (*merged)->create_info().pEnabledFeatures;
    description.queue.queue = handle;
    description.queue.family = candidate.queue_family;
    description.queue.single_thread = true;
    const auto context = Context::adopt(description);
    ASSERT_TRUE(context) << context.error().message;
    EXPECT_TRUE((*context)->device().capabilities().timeline_semaphore) << (*context)->report();
    for (const vk::MissingFeature& missing : (*context)->device().missing_features())
      if (missing.kind == vk::RemedyKind::enable_feature || missing.kind == vk::RemedyKind::enable_extension)
        EXPECT_TRUE(missing.cost.starts_with("the plugin loses nothing"))
            << missing.item << " could be had, and is not merged: " << missing.cost;
    const auto asked = query_requirements(plan_of(**instance, candidate.physical_device));
    ASSERT_TRUE(asked);
    for (const Wish& wish : asked->wishes) {
      if (wish.extension.empty()) continue;
      EXPECT_TRUE(std::ranges::any_of((*merged)->extensions(), [&](const char* name) {
        return wish.extension == name;
      })) << wish.extension;
    }
  }
  reinterpret_cast<PFN_vkDestroyDevice>(function("vkDestroyDevice"))(device, nullptr);
  EXPECT_EQ((*instance)->validation_messages(), 0u) << (*instance)->first_validation_message();
}

INSTANTIATE_TEST_SUITE_P(Of, T1Merge, testing::ValuesIn(cases()),
                         [](const auto& one) { return std::string(one.param.name); });

TEST(T1Requirements, AreAskedWithoutADevice) {
  auto instance = OwnInstance::create({});
  ASSERT_TRUE(instance) << instance.error().message;
  const auto list = candidates(**instance);
  ASSERT_TRUE(list);
  const auto chosen = choose(*list, "");
  ASSERT_TRUE(chosen);
  const DevicePlan plan = plan_of(**instance, (*list)[*chosen].physical_device);
  const auto asked = query_requirements(plan);
  ASSERT_TRUE(asked) << asked.error().message;
  EXPECT_FALSE(asked->wishes.empty());
  for (const Wish& wish : asked->wishes) {
    EXPECT_FALSE(wish.feature.empty() && wish.extension.empty());
    EXPECT_FALSE(wish.cost.empty());
  }
  DevicePlan bad = plan;
  bad.api_version = VK_API_VERSION_1_0;
  const auto refused = query_requirements(bad);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::unsupported);
  EXPECT_NE(refused.error().message.find("apiVersion"), std::string::npos) << refused.error().message;
  bad = plan;
  bad.physical_device = VK_NULL_HANDLE;
  EXPECT_EQ(query_requirements(bad).error().code, ErrorCode::invalid_argument);
}

// A physical device, on which no device is made.
class T1Chains : public testing::Test {
 protected:
  void SetUp() override {
    auto made = OwnInstance::create({});
    ASSERT_TRUE(made) << made.error().message;
    instance_ = std::move(*made);
    const auto list = candidates(*instance_);
    ASSERT_TRUE(list);
    const auto chosen = choose(*list, "");
    ASSERT_TRUE(chosen);
    plan_ = plan_of(*instance_, (*list)[*chosen].physical_device);
  }
  static const VkBaseInStructure* find(const VkDeviceCreateInfo& info, VkStructureType type) {
    auto* link = static_cast<const VkBaseInStructure*>(info.pNext);
    while (link && link->sType != type) link = link->pNext;
    return link;
  }
  void expect_refused(const VkDeviceCreateInfo& info, const char* part) {
    const auto merged = MergedDevice::make(plan_, info);
    ASSERT_FALSE(merged);
    EXPECT_EQ(merged.error().code, ErrorCode::invalid_argument);
    EXPECT_NE(merged.error().message.find(part), std::string::npos) << merged.error().message;
  }

  std::unique_ptr<OwnInstance> instance_;
  DevicePlan plan_;
  VkDeviceCreateInfo info_{VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO};
  VkPhysicalDeviceTimelineSemaphoreFeatures timeline_{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_FEATURES};
};

TEST_F(T1Chains, AStructOfUnknownTypeIsPassedOver) {
  constexpr auto kUnknown = static_cast<VkStructureType>(2000000001);
  VkBaseOutStructure unknown{kUnknown, reinterpret_cast<VkBaseOutStructure*>(&timeline_)};
  info_.pNext = &unknown;
  const auto off = MergedDevice::make(plan_, info_);
  ASSERT_TRUE(off) << off.error().message;
  EXPECT_EQ((*off)->left_off(), "timelineSemaphore") << "it is off in a struct that cannot be copied";
  EXPECT_EQ(find((*off)->create_info(), kUnknown), reinterpret_cast<const VkBaseInStructure*>(&unknown));
  EXPECT_EQ(find((*off)->create_info(), timeline_.sType),
            reinterpret_cast<const VkBaseInStructure*>(&timeline_));
  EXPECT_TRUE(find((*off)->create_info(), VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_HOST_QUERY_RESET_FEATURES))
      << "other wishes are added";

  timeline_.timelineSemaphore = VK_TRUE;
  const auto on = MergedDevice::make(plan_, info_);
  ASSERT_TRUE(on) << on.error().message;
  EXPECT_EQ((*on)->left_off(), "");
  EXPECT_EQ(unknown.pNext, reinterpret_cast<VkBaseOutStructure*>(&timeline_)) << "the host's is the host's";
}

TEST_F(T1Chains, WhatVulkanRefusesIsRefused) {
  VkPhysicalDeviceTimelineSemaphoreFeatures twice = timeline_;
  timeline_.pNext = &twice;
  info_.pNext = &timeline_;
  expect_refused(info_, "pNext: found two structs of type 1000207000");

  VkPhysicalDeviceFeatures2 features{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2};
  timeline_.pNext = &features;
  info_.pEnabledFeatures = &features.features;
  expect_refused(info_, "Set device create info: pEnabledFeatures to null");

  info_.pEnabledFeatures = nullptr;
  VkBaseOutStructure circle{static_cast<VkStructureType>(2000000001), nullptr};
  circle.pNext = &circle;
  timeline_.pNext = &circle;
  expect_refused(info_, "expected a chain that ends");
}

}  // namespace
}  // namespace imprint::bridge
