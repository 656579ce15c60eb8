// Imprint's own device: found, described, opened with every set of features, and used.

#include "engine-bridge/own/standalone.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace imprint::bridge {
namespace {

using testing::HasSubstr;

TEST(Standalone, ListsDevices) {
  const auto devices = list_devices();
  ASSERT_TRUE(devices) << devices.error().message;
  ASSERT_FALSE(devices->empty());
  for (std::size_t i = 0; i < devices->size(); ++i) {
    const PhysicalDeviceSummary& device = (*devices)[i];
    EXPECT_EQ(device.index, i);
    EXPECT_FALSE(device.name.empty());
    EXPECT_GT(device.device_memory_bytes, 0u);
    if (device.compute_queue_count == 0) continue;
    EXPECT_FALSE(device.driver.empty());
    EXPECT_EQ(device.capabilities.device_name, device.name);
    EXPECT_GT(device.capabilities.max_storage_buffer_range, 0u);
  }
}

TEST(Standalone, UnknownNamesAreAnsweredWithTheList) {
  const auto devices = list_devices();
  ASSERT_TRUE(devices) << devices.error().message;
  for (const char* wish : {"no such device", "4711"}) {
    StandaloneOptions options;
    options.device = wish;
    const auto opened = Standalone::open(options);
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().code, ErrorCode::not_found);
    EXPECT_THAT(opened.error().message, HasSubstr("device: found '" + options.device + "'"));
    EXPECT_THAT(opened.error().message, HasSubstr(devices->front().name));
  }
}

TEST(Standalone, TheCpuIsNoVulkanDevice) {
  StandaloneOptions options;
  options.device = "cpu";
  const auto opened = Standalone::open(options);
  ASSERT_FALSE(opened);
  EXPECT_THAT(opened.error().message,
              HasSubstr("found 'cpu', expected a Vulkan device. Runtime::create_on_cpu"));
}

TEST(Standalone, RefusesAVersionBelowTheBaseline) {
  StandaloneOptions options;
  options.api_version = VK_API_VERSION_1_0;
  const auto opened = Standalone::open(options);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, ErrorCode::invalid_argument);
}

struct Height {
  const char* name;
  std::uint32_t api_version;
  bool optional_features;
};

class StandaloneAt : public testing::TestWithParam<Height> {};

TEST_P(StandaloneAt, OpensComputesAndCloses) {
  StandaloneOptions options;
  options.validation = true;
  options.api_version = GetParam().api_version;
  options.optional_features = GetParam().optional_features;
  auto opened = Standalone::open(options);
  ASSERT_TRUE(opened) << opened.error().message;
  Standalone& standalone = **opened;
  const vk::Capabilities& capabilities = standalone.context().device().capabilities();
  if (!options.optional_features) {
    EXPECT_FALSE(capabilities.timeline_semaphore);
    EXPECT_FALSE(capabilities.synchronization2);
    EXPECT_THAT(standalone.context().report(), HasSubstr("completion: fences"));
    EXPECT_THAT(standalone.context().report(), HasSubstr("without timelineSemaphore"));
  }
  if (options.api_version) {
    EXPECT_LE(capabilities.api_version, options.api_version);
  }
  EXPECT_THAT(standalone.context().report(), HasSubstr(capabilities.device_name));

  const Tensor x = Tensor::from({1, 2, 3, 4}, {4});
  for (int round = 0; round < 3; ++round) {
    const auto value = standalone.session().evaluate(sum(x * x + static_cast<float>(round)));
    ASSERT_TRUE(value) << value.error().message;
    EXPECT_EQ(value->floats, std::vector<float>{30.0f + 4.0f * static_cast<float>(round)});
  }
  EXPECT_GT(standalone.context().device().counters().submits, 0u);
  EXPECT_EQ(standalone.validation_messages(), 0u) << standalone.first_validation_message();
}

INSTANTIATE_TEST_SUITE_P(Heights, StandaloneAt,
                         testing::Values(Height{"highest", 0, true}, Height{"highest_bare", 0, false},
                                         Height{"v1_2", VK_API_VERSION_1_2, true},
                                         Height{"v1_1", VK_API_VERSION_1_1, true},
                                         Height{"v1_1_bare", VK_API_VERSION_1_1, false}),
                         [](const auto& height) { return std::string(height.param.name); });

TEST(Standalone, CountsValidationMessages) {
  StandaloneOptions options;
  options.validation = true;
  int logged = 0;
  options.options.log = {[](void* user, LogLevel level, std::string_view) {
                           *static_cast<int*>(user) += level == LogLevel::error;
                         },
                         &logged};
  auto opened = Standalone::open(options);
  ASSERT_TRUE(opened) << opened.error().message;
  vk::Device& device = (*opened)->context().device();
  EXPECT_EQ((*opened)->validation_messages(), 0u) << (*opened)->first_validation_message();
  VkFenceCreateInfo info{VK_STRUCTURE_TYPE_EVENT_CREATE_INFO};  // a wrong sType
  VkFence fence = VK_NULL_HANDLE;
  if (device.functions().vkCreateFence(device.handle(), &info, nullptr, &fence) == VK_SUCCESS) {
    device.functions().vkDestroyFence(device.handle(), fence, nullptr);
  }
  EXPECT_EQ((*opened)->validation_messages(), 1u);
  EXPECT_EQ(logged, 1);
  EXPECT_THAT((*opened)->first_validation_message(), HasSubstr("VUID-VkFenceCreateInfo-sType-sType"));
}

TEST(Standalone, TwoAtOnceAreTwoDevices) {
  auto first = Standalone::open({}), second = Standalone::open({});
  ASSERT_TRUE(first) << first.error().message;
  ASSERT_TRUE(second) << second.error().message;
  EXPECT_NE((*first)->context().device().handle(), (*second)->context().device().handle());
  EXPECT_EQ((*first)->session().evaluate(Tensor(1.0f) + Tensor(2.0f))->floats[0], 3);
  first->reset();
  EXPECT_EQ((*second)->session().evaluate(Tensor(2.0f) + Tensor(2.0f))->floats[0], 4);
}

}  // namespace
}  // namespace imprint::bridge
