// Wrong calls for estimates, pipeline caches and reports.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <vector>

#include <imprint/imprint.hpp>

#include "tests/gpu/abi_misuse.h"

namespace {

using namespace imprint::game;
using namespace imprint::game::test;

TEST_F(Misuse, Estimates) {
  imp_estimate estimate = imp_estimate_init();
  EXPECT_FAILS(api()->tools->frame_estimate(context, &estimate), IMP_ERROR_WRONG_STATE, "frame_begin");
  begin();
  EXPECT_FAILS(api()->tools->frame_estimate(context, nullptr), IMP_ERROR_INVALID_ARGUMENT, "null");
  const float seen[] = {0, 1, 0, 1};
  EXPECT_WORKS(api()->agent_observe(agent, seen, 4));
  EXPECT_WORKS(api()->tools->frame_estimate(context, &estimate));
  EXPECT_GT(estimate.due_us, 0u) << "an inference";
  EXPECT_WORKS(api()->frame_submit(context, UINT32_MAX));
  submitted = true;
  EXPECT_FAILS(api()->tools->frame_estimate(context, &estimate), IMP_ERROR_WRONG_STATE, "already submitted");
}

TEST_F(Misuse, ThePipelineCacheTakesTwoCallsAndComesWhole) {
  std::size_t size = 0;
  if (device_name() == "cpu") {
    EXPECT_FAILS(api()->tools->pipeline_cache_get(context, nullptr, &size), IMP_ERROR_UNSUPPORTED,
                 "on the CPU");
    return;
  }
  EXPECT_WORKS(api()->tools->pipeline_cache_get(context, nullptr, &size));
  ASSERT_GT(size, 24u);
  std::vector<char> cache(size);
  std::size_t small = size - 1;
  EXPECT_FAILS(api()->tools->pipeline_cache_get(context, cache.data(), &small), IMP_ERROR_INVALID_ARGUMENT,
               "bytes");
  EXPECT_FAILS(api()->tools->pipeline_cache_get(context, cache.data(), nullptr), IMP_ERROR_INVALID_ARGUMENT,
               "size");
  EXPECT_WORKS(api()->tools->pipeline_cache_get(context, cache.data(), &size));
  EXPECT_WORKS(api()->tools->pipeline_cache_set(context, cache.data(), size));
  EXPECT_FAILS(api()->tools->pipeline_cache_set(context, cache.data(), size - 1), IMP_ERROR_CORRUPT_FILE,
               "damaged");
  EXPECT_FAILS(api()->tools->pipeline_cache_set(context, "nonsense", 8), IMP_ERROR_CORRUPT_FILE,
               "found other bytes");
  EXPECT_FAILS(api()->tools->pipeline_cache_set(context, nullptr, 8), IMP_ERROR_INVALID_ARGUMENT, "data");
  begin();
  EXPECT_FAILS(api()->tools->pipeline_cache_get(context, nullptr, &size), IMP_ERROR_WRONG_STATE, "frame");
}

TEST_F(Misuse, TheReportComesInTwoCalls) {
  std::size_t size = 0;
  EXPECT_WORKS(api()->tools->context_get_report_text(context, nullptr, &size));
  ASSERT_GT(size, 10u);
  std::string text(size, '?');
  std::size_t small = 3;
  EXPECT_FAILS(api()->tools->context_get_report_text(context, text.data(), &small),
               IMP_ERROR_INVALID_ARGUMENT, "bytes");
  EXPECT_WORKS(api()->tools->context_get_report_text(context, text.data(), &size));
  EXPECT_EQ(text[size - 1], '\0');
  EXPECT_THAT(text, HasSubstr("device"));
  EXPECT_FAILS(api()->tools->context_get_report_text(context, nullptr, nullptr), IMP_ERROR_INVALID_ARGUMENT,
               "size");
}

}  // namespace
