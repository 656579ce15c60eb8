// An engine with a window: the pet learns in its frames, and its picture is the same as without Imprint.
// Compiled twice: with function pointers of its own (volk) and no libvulkan, and linked to libvulkan.

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <set>

#include "tests/hosts/engine_lesson.h"

namespace imprint::hosts {
namespace {

EngineOptions engine_with(std::uint32_t frames_in_flight, bool modern) {
  EngineOptions options;
  options.frames_in_flight = frames_in_flight;
  options.modern = modern;
  options.api_version = modern ? VK_API_VERSION_1_3 : VK_API_VERSION_1_1;
  return options;
}

struct Case {
  const char* name;
  std::uint32_t frames_in_flight;
  bool modern;
  Access access;
};

class T8EngineHost : public testing::TestWithParam<Case> {};

TEST_P(T8EngineHost, ThePetLearnsAndThePictureIsTheSame) {
  const Case& way = GetParam();
  Lesson lesson;
  lesson.engine = engine_with(way.frames_in_flight, way.modern);
  lesson.access = way.access;
  lesson.resize_at = 300;
  const Taught taught = teach(lesson);
  EXPECT_EQ(taught.faults, "");
  EXPECT_EQ(taught.calls.idle_waits, 0u);
  EXPECT_EQ(taught.calls.queues, 0u);
  EXPECT_EQ(taught.calls.submissions > 0, way.access == Access::lock) << "in the other ways the host submits";
  std::printf("%s: %.0f %% of commands carried out after %.0f s of lessons, %zu frames\n", way.name,
              static_cast<double>(100 * taught.success), lesson.seconds, taught.pictures.size());
  ASSERT_EQ(taught.pictures.size(), taught.places.size());
  EXPECT_GT(std::set(taught.pictures.begin(), taught.pictures.end()).size(), 1000u)
      << "the picture hardly changes: it proves nothing";
  EXPECT_EQ(draw_without_imprint(lesson.engine, taught.places), taught.pictures);
}

#ifdef HOST_LINKS_LIBVULKAN
constexpr Case kCases[] = {{"record_2_in_flight", 2, false, Access::record}};
#else
constexpr Case kCases[] = {{"record_3_in_flight", 3, true, Access::record},
                           {"lock_3_in_flight", 3, true, Access::lock},
                           {"submit_callback_2_in_flight", 2, false, Access::submit}};
#endif
INSTANTIATE_TEST_SUITE_P(Every, T8EngineHost, testing::ValuesIn(kCases),
                         [](const auto& way) { return std::string(way.param.name); });

TEST(T4EngineHostLoader, IsTheHostsOwn) {
#ifdef HOST_LINKS_LIBVULKAN
  EXPECT_NE(dlsym(RTLD_DEFAULT, "vkCreateInstance"), nullptr) << "expected this host to link libvulkan";
#else
  EXPECT_EQ(dlsym(RTLD_DEFAULT, "vkCreateInstance"), nullptr)
      << "a library links libvulkan into a host with its own loader";
#endif
  EXPECT_NE(dlsym(RTLD_DEFAULT, "imp_get_api"), nullptr);
}

TEST(EngineHostFrames, Take) {
#ifdef HOST_LINKS_LIBVULKAN
  print_frame_times("linked to libvulkan, record, 2 in flight", engine_with(2, false), Access::record);
#else
  print_frame_times("volk, record, 3 in flight", engine_with(3, true), Access::record);
  print_frame_times("volk, own submits under a lock, 3 in flight", engine_with(3, true), Access::lock);
#endif
}

}  // namespace
}  // namespace imprint::hosts
