// Calls through the table in the wrong order, on the wrong thread or from a callback.

#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include <imprint/imprint.hpp>

#include "tests/gpu/abi_misuse.h"

namespace {

using namespace imprint::game;
using namespace imprint::game::test;

// Threads that keep calling a context while it is destroyed get an error and do no harm.
TEST_F(Misuse, OtherThreadsMayCallAContextDuringDestroy) {
  std::atomic<std::uint64_t> newest{0};
  std::atomic<bool> over{false};
  std::vector<std::thread> askers;
  for (int i = 0; i < 3; ++i) {
    askers.emplace_back([&] {
      imp_result odd = IMP_OK;
      while (!over) {
        std::size_t size = 0;
        for (const imp_result result :
             {api()->frame_end({newest}), api()->tools->context_get_report_text({newest}, nullptr, &size),
              api()->frame_submit({newest}, 0)})
          if (result != IMP_OK && result != IMP_ERROR_INVALID_HANDLE && result != IMP_ERROR_WRONG_STATE)
            odd = result;
      }
      EXPECT_EQ(odd, IMP_OK);
    });
  }
  imp_standalone_info device = imp_standalone_info_init();
  device.device = "cpu";
  for (int i = 0; i < 200; ++i) {
    imp_context made{};
    EXPECT_WORKS(api()->tools->context_create_standalone(&device, nullptr, nullptr, &made));
    newest = made.id;
    imp_result result = api()->context_destroy(made);
    // another thread was inside a call
    while (result == IMP_ERROR_WRONG_STATE) result = api()->context_destroy(made);
    EXPECT_EQ(result, IMP_OK) << api()->last_error();
  }
  over = true;
  for (std::thread& asker : askers) asker.join();
}

TEST_F(Misuse, WrongOrder) {
  const float seen[4] = {};
  imp_action action = imp_action_init();
  EXPECT_FAILS(api()->frame_submit(context, 0), IMP_ERROR_WRONG_STATE, "no frame is open");
  EXPECT_FAILS(api()->frame_end(context), IMP_ERROR_WRONG_STATE, "no frame is open");
  EXPECT_FAILS(api()->agent_observe(agent, seen, 4), IMP_ERROR_WRONG_STATE, "no frame is open");
  EXPECT_FAILS(api()->agent_act(agent, &action), IMP_ERROR_WRONG_STATE, "no frame is open");
  begin();
  imp_frame_info info = imp_frame_info_init();
  info.frame = frame + 1;
  info.time_s = 1e9;
  EXPECT_FAILS(api()->frame_begin(context, &info), IMP_ERROR_WRONG_STATE, "a frame is open");
  imp_brain made{};
  const imp_brain_desc desc = small_desc();
  std::uint64_t low = 0, high = 0;
  std::size_t size = 0;
  imp_limits limits = imp_limits_init();
  EXPECT_FAILS(api()->brain_create(context, &desc, &made), IMP_ERROR_WRONG_STATE, "a frame is open");
  EXPECT_FAILS(api()->brain_destroy(brain), IMP_ERROR_WRONG_STATE, "a frame is open");
  EXPECT_FAILS(api()->brain_load(brain, "x"), IMP_ERROR_WRONG_STATE, "a frame is open");
  EXPECT_FAILS(api()->brain_load_weights(brain, "x"), IMP_ERROR_WRONG_STATE, "a frame is open");
  EXPECT_FAILS(api()->tools->brain_hash(brain, &low, &high), IMP_ERROR_WRONG_STATE, "a frame is open");
  EXPECT_FAILS(api()->context_warmup(context, nullptr, nullptr), IMP_ERROR_WRONG_STATE, "a frame is open");
  EXPECT_FAILS(api()->context_drain(context, 1), IMP_ERROR_WRONG_STATE, "a frame is open");
  EXPECT_FAILS(api()->context_set_limits(context, &limits), IMP_ERROR_WRONG_STATE, "a frame is open");
  EXPECT_FAILS(api()->tools->context_get_report_text(context, nullptr, &size), IMP_ERROR_WRONG_STATE,
               "a frame is open");
  EXPECT_FAILS(api()->context_destroy(context), IMP_ERROR_WRONG_STATE, "a frame is open");
  EXPECT_WORKS(api()->frame_submit(context, UINT32_MAX));
  submitted = true;
  EXPECT_FAILS(api()->frame_submit(context, UINT32_MAX), IMP_ERROR_WRONG_STATE, "already");
  EXPECT_FAILS(api()->agent_observe(agent, seen, 4), IMP_ERROR_WRONG_STATE, "already");
  end();
  info.frame = frame;
  const std::string last = std::to_string(frame);
  EXPECT_FAILS(api()->frame_begin(context, &info), IMP_ERROR_INVALID_ARGUMENT,
               ("frame: found " + last + ", expected above the last frame, " + last).c_str());
  for (const std::uint64_t beyond : {std::uint64_t{1} << 63, std::numeric_limits<std::uint64_t>::max()}) {
    info.frame = beyond;
    EXPECT_FAILS(api()->frame_begin(context, &info), IMP_ERROR_INVALID_ARGUMENT,
                 "expected at most 9223372036854775807");
  }
  info.frame = frame + 1;
  info.time_s = 0;
  EXPECT_FAILS(api()->frame_begin(context, &info), IMP_ERROR_INVALID_ARGUMENT,
               "time_s: found 0, expected at least the last frame's");
  info.time_s = std::numeric_limits<double>::infinity();
  EXPECT_FAILS(api()->frame_begin(context, &info), IMP_ERROR_INVALID_ARGUMENT, "finite");
  begin();
}

TEST_F(Misuse, AFrameThatSubmitsNothingIsAFrame) {
  begin();
  submitted = true;  // end() has nothing to do but to end
  end();
  const float seen[4] = {};
  imp_action action = imp_action_init();
  begin();
  EXPECT_WORKS(api()->agent_observe(agent, seen, 4));
  submitted = true;
  end();
  begin();
  EXPECT_EQ(api()->agent_act(agent, &action), IMP_NOT_READY)
      << "asked in a frame without submit: the next frame answers";
  end();
  EXPECT_WORKS(api()->context_drain(context, 10000));
  begin();
  EXPECT_WORKS(api()->agent_act(agent, &action));
  EXPECT_WORKS(api()->agent_end_episode(agent, IMP_EPISODE_TERMINATED));
}

TEST_F(Misuse, WrongThread) {
  begin();
  std::thread([] {
    const float seen[4] = {};
    EXPECT_FAILS(api()->agent_observe(agent, seen, 4), IMP_ERROR_WRONG_STATE, "another thread");
    EXPECT_FAILS(api()->frame_submit(context, 0), IMP_ERROR_WRONG_STATE, "another thread");
    EXPECT_FAILS(api()->frame_end(context), IMP_ERROR_WRONG_STATE, "another thread");
    EXPECT_FAILS(api()->brain_set_learning(brain, 1), IMP_ERROR_WRONG_STATE, "another thread");
    imp_brain_stats stats = imp_brain_stats_init();
    EXPECT_WORKS(api()->tools->brain_get_stats(brain, &stats));
    imp_context_stats context_stats = imp_context_stats_init();
    EXPECT_WORKS(api()->tools->context_get_stats(context, &context_stats));
  }).join();
}

TEST_F(Misuse, CallsFromCallbacks) {
  imp_brain made{};
  const imp_brain_desc desc = small_desc();
  EXPECT_WORKS(api()->brain_create(context, &desc, &made));
  EXPECT_WORKS(api()->context_warmup(
      context,
      [](void*, float) {
        EXPECT_FAILS(api()->context_warmup(context, nullptr, nullptr), IMP_ERROR_WRONG_STATE, "callback");
        imp_context_stats stats = imp_context_stats_init();
        EXPECT_WORKS(api()->tools->context_get_stats(context, &stats));
      },
      nullptr));
  EXPECT_WORKS(api()->brain_destroy(made));
}

TEST_F(Misuse, BeforeWarmup) {
  imp_brain cold{};
  imp_agent cold_agent{};
  std::uint64_t snapshot = 0;
  const imp_brain_desc desc = small_desc();
  EXPECT_WORKS(api()->brain_create(context, &desc, &cold));
  EXPECT_WORKS(api()->agent_create(cold, 0, &cold_agent));
  EXPECT_FAILS(api()->brain_snapshot(cold, &snapshot), IMP_ERROR_WRONG_STATE, "warmup");
  begin();
  const float seen[4] = {};
  EXPECT_FAILS(api()->agent_observe(cold_agent, seen, 4), IMP_ERROR_WRONG_STATE, "warmup");
  end();
  EXPECT_WORKS(api()->brain_destroy(cold));
}

TEST_F(Misuse, RecordWithoutACommandBuffer) {
  begin();
  imp_record_info info = imp_record_info_init();
  EXPECT_FAILS(api()->vulkan->frame_record(context, &info, nullptr), IMP_ERROR_INVALID_ARGUMENT,
               "command_buffer");
  EXPECT_FAILS(api()->vulkan->frame_record(context, nullptr, nullptr), IMP_ERROR_INVALID_ARGUMENT, "null");
}

}  // namespace
