#pragma once
// Fixtures for wrong calls through the table: a context with one brain and one agent, and checks of results
// and texts.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <string>

#include <imprint/imprint.hpp>

namespace imprint::game::test {

using ::testing::HasSubstr;

inline const imp_api* api() {
  static const imp_api* table = Library(imp_get_api).api();
  return table;
}

inline void expect_failure(imp_result result, imp_result code, const char* text, const char* call) {
  EXPECT_EQ(result, code) << call << ": " << api()->result_name(result);
  EXPECT_THAT(api()->last_error(), HasSubstr(text)) << call;
}
inline void expect_success(imp_result result, const char* call) {
  EXPECT_EQ(result, IMP_OK) << call << ": " << api()->result_name(result) << ": " << api()->last_error();
}
#define EXPECT_FAILS(call, code, text) expect_failure(call, code, text, #call)
#define EXPECT_WORKS(call) expect_success(call, #call)

inline std::string device_name() {
  const char* name = std::getenv("IMPRINT_TEST_DEVICE");
  return name ? name : "";
}

inline imp_feedback_options small_options() {
  imp_feedback_options options = imp_feedback_options_init();
  options.replay_capacity = 32;
  return options;
}

inline imp_brain_desc small_desc() {
  static const std::uint32_t branch = 3;
  static const imp_feedback_options options = small_options();
  imp_brain_desc desc = imp_brain_desc_init();
  desc.header.next = &options;
  desc.observation_count = 4;
  desc.branch_count = 1;
  desc.branch_sizes = &branch;
  desc.goal_count = 2;
  desc.learner = IMP_LEARNER_FEEDBACK;
  desc.agents_per_brain = 2;
  desc.snapshot_count = 1;
  return desc;
}

class Misuse : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    ASSERT_NE(api(), nullptr);
    const std::string name = device_name();
    imp_standalone_info device = imp_standalone_info_init();
    device.device = name.empty() ? nullptr : name.c_str();
    ASSERT_EQ(api()->tools->context_create_standalone(&device, nullptr, nullptr, &context), IMP_OK)
        << api()->last_error();
    const imp_brain_desc desc = small_desc();
    ASSERT_EQ(api()->brain_create(context, &desc, &brain), IMP_OK) << api()->last_error();
    ASSERT_EQ(api()->agent_create(brain, 0, &agent), IMP_OK);
    ASSERT_EQ(api()->context_warmup(context, nullptr, nullptr), IMP_OK) << api()->last_error();
  }
  static void TearDownTestSuite() {
    EXPECT_WORKS(api()->context_destroy(context));
    EXPECT_FAILS(api()->context_destroy(context), IMP_ERROR_INVALID_HANDLE, "context");
    EXPECT_FAILS(api()->agent_set_goal(agent, 0), IMP_ERROR_INVALID_HANDLE, "agent");
  }
  void TearDown() override {
    if (open) end();
  }

  void begin() {
    imp_frame_info info = imp_frame_info_init();
    info.frame = ++frame;
    info.time_s = static_cast<double>(frame) / 60;
    EXPECT_WORKS(api()->frame_begin(context, &info));
    open = true;
  }
  void end() {
    if (!submitted) EXPECT_WORKS(api()->frame_submit(context, UINT32_MAX));
    EXPECT_WORKS(api()->frame_end(context));
    open = submitted = false;
  }

  static inline imp_context context{};
  static inline imp_brain brain{};
  static inline imp_agent agent{};
  static inline std::uint64_t frame = 0;
  bool open = false, submitted = false;
};

}  // namespace imprint::game::test
