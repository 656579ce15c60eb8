// T2. The same model gives the same answer on devices like several engines', and with each optional feature
// off alone. The report names what a device lacks.

#include <gmock/gmock.h>

#include <set>
#include <string>

#include "tests/hosts/bridge_player.h"

namespace imprint::bridge {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;

// ---- each optional feature has its own fallback ----

class T2Bonuses : public testing::TestWithParam<const char*> {};

TEST_P(T2Bonuses, OneOffAloneLearnsTheSameBits) {
  HostProfile profile = kEverything;
  profile.without = GetParam();
  for (const Mode mode : {Mode::record, Mode::lock})
    EXPECT_EQ(play(profile, mode, {1000, 1000}), expected()) << name_of(mode);
}

INSTANTIATE_TEST_SUITE_P(Without, T2Bonuses,
                         testing::Values("timelineSemaphore", "synchronization2", "hostQueryReset",
                                         "subgroupSizeControl", "shaderFloat16", "storageBuffer16BitAccess",
                                         "pipelineCreationCacheControl"),
                         [](const auto& bonus) { return std::string(bonus.param); });

// ---- devices like several engines' ----

struct Engine {
  HostProfile profile;
  bool declares = true;                // false: it does not declare what it enabled
  std::vector<std::string> has, lost;  // items of the report
};

std::vector<Engine> engines() {
  return {
      {{"godot_4",
        VK_API_VERSION_1_2,
        false,
        true,
        false,
        nullptr,
        {"shaderFloat16", "storageBuffer16BitAccess"}},
       true,
       {"storageBuffer16BitAccess"},
       {"timelineSemaphore", "synchronization2", "VK_EXT_memory_budget", "hostQueryReset"}},
      {{"vulkan_scene_graph_1_1", VK_API_VERSION_1_1},
       true,
       {},
       {"timelineSemaphore", "synchronization2", "storageBuffer16BitAccess", "VK_EXT_memory_budget"}},
      {{"unity_1_1",
        VK_API_VERSION_1_1,
        false,
        true,
        false,
        nullptr,
        {"timelineSemaphore", "hostQueryReset", "storageBuffer16BitAccess"}},
       false,
       {},
       {"timelineSemaphore", "hostQueryReset", "storageBuffer16BitAccess", "synchronization2"}},
      {{"sascha_1_1", VK_API_VERSION_1_1, false, true, false, nullptr, {"VK_EXT_memory_budget"}},
       true,
       {"VK_EXT_memory_budget"},
       {"timelineSemaphore", "synchronization2", "hostQueryReset"}},
      {{"by_extensions_1_1",
        VK_API_VERSION_1_1,
        false,
        true,
        false,
        nullptr,
        {"timelineSemaphore", "synchronization2", "hostQueryReset"}},
       true,
       {"timelineSemaphore", "synchronization2", "hostQueryReset"},
       {"storageBuffer16BitAccess", "VK_EXT_memory_budget"}},
      {kEverything,
       true,
       {"timelineSemaphore", "synchronization2", "hostQueryReset", "storageBuffer16BitAccess"},
       {"VK_EXT_memory_budget"}},
  };
}

class T2Profiles : public testing::TestWithParam<Engine> {};

TEST_P(T2Profiles, LearnTheSameBitsAndReportTheLosses) {
  HostProfile profile = GetParam().profile;
  profile.declares = GetParam().declares;
  for (const Mode mode : {Mode::record, Mode::lock})
    EXPECT_EQ(play(profile, mode, {1000, 1000}), expected()) << name_of(mode);

  PlainHost host(profile);
  ASSERT_TRUE(host.ok());
  auto context = adopt(host, Mode::lock, {});
  ASSERT_TRUE(context) << context.error().message;
  std::set<std::string> lost;
  for (const vk::MissingFeature& loss : (*context)->device().missing_features()) lost.insert(loss.item);
  const std::string report = (*context)->report();
  for (const std::string& item : GetParam().lost) {
    EXPECT_THAT(lost, Contains(item));
    EXPECT_THAT(report, HasSubstr("without " + item));
  }
  for (const std::string& item : GetParam().has)
    if (host.enabled(item.c_str())) EXPECT_THAT(lost, Not(Contains(item)));
  for (const vk::UnusedFeature& bonus : vk::unused_features())
    EXPECT_THAT(report, HasSubstr(std::string("not used, declared or not: ") + bonus.item));
}

INSTANTIATE_TEST_SUITE_P(Like, T2Profiles, testing::ValuesIn(engines()),
                         [](const auto& engine) { return std::string(engine.param.profile.name); });

}  // namespace
}  // namespace imprint::bridge
