// Functions and features of a device that Imprint uses. The samples' adapter passes all of them on.

#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "compute/vk/capabilities/optional_features.h"
#include "compute/vk/capabilities/read_capabilities.h"
#include "samples/adapters/vulkan.h"

namespace imprint::vk {
namespace {

// A loader returns every function of the core version. Only effective ones are called.
TEST(Functions, KeepOnlyDeclaredFunctions) {
  Functions f;
  f.vkCmdPipelineBarrier2 = [](VkCommandBuffer, const VkDependencyInfo*) {};
  f.vkResetQueryPool = [](VkDevice, VkQueryPool, std::uint32_t, std::uint32_t) {};
  f.vkGetSemaphoreCounterValue = [](VkDevice, VkSemaphore, std::uint64_t*) { return VK_SUCCESS; };
  Capabilities capabilities;
  capabilities.host_query_reset = true;
  drop_undeclared(f, capabilities);
  EXPECT_EQ(f.vkCmdPipelineBarrier2, nullptr);
  EXPECT_EQ(f.vkGetSemaphoreCounterValue, nullptr);
  EXPECT_NE(f.vkResetQueryPool, nullptr);
}

TEST(Capabilities, SaysWhichSubgroupsItsKernelsMayAskFor) {
  Capabilities fixed;
  fixed.subgroup_size = 64;
  EXPECT_TRUE(fixed.runs_subgroups_of(64));
  EXPECT_FALSE(fixed.runs_subgroups_of(32));
  Capabilities chosen = fixed;
  chosen.min_subgroup_size = 32;
  chosen.max_subgroup_size = 64;
  EXPECT_TRUE(chosen.runs_subgroups_of(32));
  EXPECT_FALSE(chosen.runs_subgroups_of(16));
}

// Fewer features would be legal, so only this test sees that the adapter's copy lacks one.
TEST(AdapterVulkan, PassesOnEveryFeatureThatImprintReads) {
  FeatureSource source{VK_API_VERSION_1_3, {}};
  for (const OptionalFeature& feature : optional_features())
    if (feature.extension) source.extensions.insert(feature.extension);
  struct AllOn {
    VkStructureType type;
    const void* next = nullptr;
    std::array<VkBool32, 100> features;
  } chain;
  chain.features.fill(VK_TRUE);
  std::vector<int> types;
  for (int core = 0; core < 64; ++core) types.push_back(core);
  for (int extension = 1; extension < 1000; ++extension)
    for (int of_extension = 0; of_extension < 10; ++of_extension)
      types.push_back(1'000'000'000 + (extension - 1) * 1000 + of_extension);
  imprint::adapters::VulkanGuest guest;
  const VkDeviceCreateInfo device{VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO, &chain};
  int read = 0;
  for (const int type : types) {
    chain.type = static_cast<VkStructureType>(type);
    const Capabilities wanted = read_chain(&chain, source).usable;
    guest.made_device(device, VK_NULL_HANDLE, VK_NULL_HANDLE);
    const Capabilities copied = read_chain(guest.record_only(0).features, source).usable;
    for (const OptionalFeature& feature : optional_features()) {
      EXPECT_EQ(copied.*feature.member, wanted.*feature.member)
          << "struct " << type << ", " << feature.feature;
      read += wanted.*feature.member;
    }
  }
  EXPECT_GE(read, 21);  // each optional feature of a struct, by its version and by its extension
}

}  // namespace
}  // namespace imprint::vk
