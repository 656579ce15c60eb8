// T9. Ten thousand frames on a simulated clock: in 99 of 100 frames, learning adds at most the budget and one
// slice. Pieces take different times that vary from run to run, sometimes by much, and the first guess is
// wrong.

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

#include "compute/base/philox.h"
#include "engine-bridge/frame/cost_model.h"
#include "engine-bridge/frame/frame_schedule.h"

namespace imprint::bridge {
namespace {

constexpr std::uint64_t kFrames = 10'000, kPeriod = 6;
constexpr std::uint32_t kPieces = 40, kCommit = 36;

float draw(std::uint64_t index, std::uint32_t stream) {
  return philox_uniform(static_cast<std::uint32_t>(index), stream, 5, 9, 2);
}

// A brain that always learns: one minibatch per period.
struct Learner {
  std::vector<float> true_us;
  ProgramCost cost;

  Learner(std::uint32_t stream, float minibatch_us, float guessed) {
    for (std::uint32_t i = 0; i < kPieces; ++i)
      true_us.push_back(minibatch_us / kPieces * (0.5f + draw(i, stream)));
    // As a context measures them: the last pieces write, so they are expected to take the mean time of the
    // others.
    std::vector<float> measured(kPieces, guessed * minibatch_us / kPieces);
    for (std::uint32_t i = 0; i < kCommit; ++i) measured[i] = guessed * true_us[i];
    cost = ProgramCost::measured(measured);
  }
};

// budget; factor by which the guess is too long.
class T9Budget : public testing::TestWithParam<std::tuple<float, float>> {};

TEST_P(T9Budget, IsKeptExceptForASlice) {
  const auto [budget_us, guessed] = GetParam();
  const float slice_limit_us = std::max(100.0f, budget_us / 4);
  std::vector<Learner> learners;
  for (std::uint32_t i = 0; i < 2; ++i) learners.emplace_back(i, 0.3f * budget_us * kPeriod, guessed);
  FrameSchedule schedule;
  FramePlan plan;
  std::uint64_t over = 0, issued = 0, slices_too_long = 0, clock = 0;
  for (std::uint64_t frame = 1; frame <= kFrames; ++frame) {
    for (std::size_t i = 0; i < learners.size() && frame % kPeriod == 1; ++i) {
      LearnJob job;
      job.id = frame * 2 + i;
      job.program = reinterpret_cast<std::uintptr_t>(&learners[i].cost);
      job.stream = i;
      job.deadline_frame = frame + kPeriod;
      job.piece_count = kPieces;
      job.commit_piece = kCommit;
      job.cost = &learners[i].cost;
      ASSERT_TRUE(schedule.add(job));
    }
    FrameRequest request;
    request.frame = frame;
    request.budget_us = budget_us;
    request.max_slice_us = slice_limit_us;
    schedule.plan(request, plan);
    const float disturbed = frame % 500 == 250 ? 3.0f : 1.0f;  // other work ran on the device
    float frame_us = 0;
    for (const Slice& slice : plan.slices) {
      float slice_us = 0;
      for (std::uint32_t i = 0; i < slice.step_count; ++i) {
        const Step& step = plan.steps[slice.first_step + i];
        Learner& learner = *std::ranges::find_if(
            learners, [&](const Learner& each) { return &each.cost == schedule.jobs()[step.job].cost; });
        float took_us = 0;
        for (std::uint32_t piece = step.begin; piece < step.end; ++piece, ++clock)
          took_us += learner.true_us[piece] * disturbed * (0.9f + 0.2f * draw(clock, 7));
        learner.cost.correct(step.us, took_us, 1);
        slice_us += took_us;
        ++issued;
      }
      slices_too_long += slice_us > 2 * slice_limit_us;
      frame_us += slice_us;
      schedule.issued(plan, slice);
    }
    schedule.sweep();
    over += frame_us > budget_us + slice_limit_us;
  }
  EXPECT_LE(over, kFrames / 100) << "99th percentile";
  EXPECT_LE(slices_too_long, kFrames / 100);
  EXPECT_GE(issued, kFrames / kPeriod * learners.size()) << "and it learned";
  EXPECT_LE(schedule.jobs().size(), learners.size()) << "with every minibatch done at its deadline";
}

INSTANTIATE_TEST_SUITE_P(Of, T9Budget,
                         testing::Combine(testing::Values(100.0f, 500.0f, 2000.0f),
                                          testing::Values(0.125f, 1.0f, 8.0f)),
                         [](const auto& row) {
                           return "budget_" + std::to_string(static_cast<int>(std::get<0>(row.param))) +
                                  "_guessed_" +
                                  std::to_string(static_cast<int>(std::get<1>(row.param) * 1000)) +
                                  "_thousandths";
                         });

}  // namespace
}  // namespace imprint::bridge
