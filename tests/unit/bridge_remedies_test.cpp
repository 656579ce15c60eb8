// Advice to users of each engine about a missing feature.

#include <gmock/gmock.h>

#include <set>

#include "engine-bridge/host/remedies.h"

namespace imprint::bridge {
namespace {

using testing::HasSubstr;
using vk::MissingFeature;
using vk::RemedyKind;

std::string in(Engine engine, const MissingFeature& missing) {
  return engine_remedies(missing)[static_cast<std::size_t>(engine)];
}

MissingFeature missing(RemedyKind kind, const char* feature, const char* extension,
                       std::uint32_t core_since) {
  return {"item", "cause", "cost", "the general remedy", kind, feature, extension, core_since};
}

TEST(EngineRemedies, NameTheEnginesOwnWayToEnableAFeature) {
  const MissingFeature timeline = missing(RemedyKind::enable_feature, "timelineSemaphore",
                                          "VK_KHR_timeline_semaphore", VK_API_VERSION_1_2);
  EXPECT_THAT(in(Engine::unity, timeline), HasSubstr("AddInterceptInitialization"));
  EXPECT_THAT(in(Engine::unreal, timeline), HasSubstr("AddEnabledDeviceExtensionsAndLayers"));
  EXPECT_THAT(in(Engine::godot, timeline), HasSubstr("_initialize_device_extensions"));
  EXPECT_THAT(in(Engine::vulkan_scene_graph, timeline),
              HasSubstr("WindowTraits::deviceFeatures, and below vulkan 1.2"));
  for (const std::string& text : engine_remedies(timeline)) {
    EXPECT_THAT(text, HasSubstr("timelineSemaphore"));
    EXPECT_THAT(text, HasSubstr("VK_KHR_timeline_semaphore"));
  }
}

TEST(EngineRemedies, AreFourDifferentOnesForEachFeature) {
  for (const MissingFeature& one :
       {missing(RemedyKind::enable_extension, "", "VK_EXT_memory_budget", 0),
        missing(RemedyKind::enable_feature, "cooperativeMatrix", "VK_NV_cooperative_matrix", 0),
        missing(RemedyKind::raise_version, "timelineSemaphore", "VK_KHR_timeline_semaphore",
                VK_API_VERSION_1_2),
        missing(RemedyKind::enable_instance_extension, "", "VK_EXT_debug_utils", 0)}) {
    const auto texts = engine_remedies(one);
    EXPECT_EQ(std::set<std::string>(texts.begin(), texts.end()).size(), kEngineCount) << one.extension;
    for (const std::string& text : texts) EXPECT_THAT(text, Not(HasSubstr("0.0"))) << "an invalid version";
  }
}

TEST(EngineRemedies, AreTheGeneralOneWhereNoEngineDecides) {
  for (const RemedyKind kind : {RemedyKind::none, RemedyKind::declare_less, RemedyKind::other_queue_family}) {
    for (const std::string& text : engine_remedies(missing(kind, "f", "e", 0)))
      EXPECT_EQ(text, "the general remedy");
  }
}

}  // namespace
}  // namespace imprint::bridge
