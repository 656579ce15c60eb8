// A device like Godot 4's: Vulkan 1.2, no timeline semaphores, no synchronization2, one queue and a fence per
// frame. Imprint submits on the render thread between frames and uses fences, or records and uses frame
// numbers.

#include <gtest/gtest.h>

#include <set>

#include "tests/hosts/engine_lesson.h"

namespace imprint::hosts {
namespace {

EngineOptions godot(std::uint32_t api_version) {
  EngineOptions options;
  options.api_version = api_version;
  options.godot = api_version >= VK_API_VERSION_1_2;
  options.window = WindowLibrary::none;
  return options;
}

struct Case {
  const char* name;
  std::uint32_t api_version;
  Access access;
};

class T3GodotLikeHost : public testing::TestWithParam<Case> {};

TEST_P(T3GodotLikeHost, ThePetLearnsWithoutATimeline) {
  const Case& way = GetParam();
  Lesson lesson;
  lesson.engine = godot(way.api_version);
  lesson.access = way.access;
  const Taught taught = teach(lesson);
  EXPECT_EQ(taught.faults, "");
  EXPECT_EQ(taught.calls.timelines, 0u);
  EXPECT_EQ(taught.calls.idle_waits, 0u);
  EXPECT_EQ(taught.calls.queues, 0u);
  if (way.access == Access::record) {
    EXPECT_EQ(taught.calls.submissions, 0u);
  } else {
    EXPECT_GT(taught.calls.submissions, 0u);
  }
  std::printf("%s: %.0f %% of commands carried out after %.0f s of lessons, %zu frames\n", way.name,
              static_cast<double>(100 * taught.success), lesson.seconds, taught.pictures.size());
  ASSERT_EQ(taught.pictures.size(), taught.places.size());
  EXPECT_GT(std::set(taught.pictures.begin(), taught.pictures.end()).size(), 1000u)
      << "the picture hardly changes: it proves nothing";
  EXPECT_EQ(draw_without_imprint(lesson.engine, taught.places), taught.pictures);
}

INSTANTIATE_TEST_SUITE_P(Every, T3GodotLikeHost,
                         testing::Values(Case{"fences_on_the_render_thread", VK_API_VERSION_1_2,
                                              Access::single_thread},
                                         Case{"frame_numbers", VK_API_VERSION_1_1, Access::record}),
                         [](const auto& way) { return std::string(way.param.name); });

TEST(GodotLikeHostFrames, Take) {
  print_frame_times("as Godot, own submits on the render thread", godot(VK_API_VERSION_1_2),
                    Access::single_thread);
}

}  // namespace
}  // namespace imprint::hosts
