// The frame schedule without a GPU: examples, and properties over random jobs, costs, budgets and deadlines.

#include "engine-bridge/frame/frame_schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <random>

namespace imprint::bridge {
namespace {

constexpr float kUnlimited = std::numeric_limits<float>::infinity();

ProgramCost equal_pieces(std::uint32_t count, float us) {
  return ProgramCost::measured(std::vector<float>(count, us));
}

LearnJob job(std::uint64_t id, const ProgramCost& cost, std::uint64_t deadline, std::uint32_t commit) {
  LearnJob job;
  job.id = id;
  job.program = reinterpret_cast<std::uintptr_t>(&cost);
  job.stream = id;
  job.deadline_frame = deadline;
  job.piece_count = cost.piece_count();
  job.commit_piece = commit;
  job.cost = &cost;
  return job;
}

FrameRequest request(std::uint64_t frame, float budget_us) {
  FrameRequest request;
  request.frame = frame;
  request.budget_us = budget_us;
  return request;
}

// Plans a frame and issues all of it. Pieces by job id.
using Ran = std::vector<std::pair<std::uint64_t, std::pair<std::uint32_t, std::uint32_t>>>;
Ran run(FrameSchedule& schedule, const FrameRequest& wanted, FramePlan& plan) {
  schedule.plan(wanted, plan);
  Ran ran;
  for (const Step& step : plan.steps) ran.push_back({schedule.jobs()[step.job].id, {step.begin, step.end}});
  for (const Slice& slice : plan.slices) schedule.issued(plan, slice);
  schedule.sweep();
  return ran;
}

TEST(FrameSchedule, NothingToDoIsNoSlice) {
  FrameSchedule schedule;
  FramePlan plan;
  EXPECT_TRUE(run(schedule, request(1, 1000), plan).empty());
  EXPECT_TRUE(plan.slices.empty());
  EXPECT_EQ(plan.left_us, 0);
}

TEST(FrameSchedule, RunsAsFarAsTheBudgetGoes) {
  const ProgramCost cost = equal_pieces(10, 100);
  FrameSchedule schedule;
  FramePlan plan;
  ASSERT_TRUE(schedule.add(job(1, cost, 100, 8)));
  EXPECT_EQ(run(schedule, request(1, 250), plan), (Ran{{1, {0, 2}}}));
  EXPECT_NEAR(plan.left_us, 800, 0.1);
  EXPECT_EQ(run(schedule, request(2, 350), plan), (Ran{{1, {2, 5}}}));
  EXPECT_EQ(run(schedule, request(3, 0), plan), Ran{});
  EXPECT_EQ(run(schedule, request(4, kUnlimited), plan), (Ran{{1, {5, 8}}}));
  EXPECT_EQ(run(schedule, request(5, kUnlimited), plan), Ran{}) << "the rest waits for the deadline";
  EXPECT_EQ(run(schedule, request(100, 0), plan), (Ran{{1, {8, 10}}}));
  EXPECT_TRUE(schedule.empty());
}

TEST(FrameSchedule, LearningWaitsForTimeOfTheFrameThread) {
  const ProgramCost cost = equal_pieces(10, 100), other = equal_pieces(3, 100);
  FrameSchedule schedule;
  FramePlan plan;
  ASSERT_TRUE(schedule.add(job(1, cost, 100, 8)));
  ASSERT_TRUE(schedule.add(job(2, other, 3, 2)));
  FrameRequest wanted = request(1, 350);
  wanted.max_pieces = 2;
  EXPECT_EQ(run(schedule, wanted, plan), (Ran{{1, {0, 2}}}));
  EXPECT_TRUE(plan.held_back);
  EXPECT_EQ(plan.pieces, 2u);
  wanted.frame = 2;
  wanted.max_pieces = 3;
  EXPECT_EQ(run(schedule, wanted, plan), (Ran{{1, {2, 5}}}));
  EXPECT_FALSE(plan.held_back) << "the budget ends there too";
  wanted = request(3, 1000);
  wanted.max_pieces = 4;
  EXPECT_EQ(run(schedule, wanted, plan), (Ran{{2, {0, 3}}, {1, {5, 6}}})) << "due work uses the time first";
  EXPECT_TRUE(plan.held_back);
  wanted = request(100, 1000);
  wanted.max_pieces = 0;
  EXPECT_EQ(run(schedule, wanted, plan), (Ran{{1, {6, 10}}})) << "and runs without";
  EXPECT_FALSE(plan.held_back);
}

TEST(FrameSchedule, DueWorkRunsWithAnyBudget) {
  const ProgramCost cost = equal_pieces(4, 100), other = equal_pieces(4, 100);
  FrameSchedule schedule;
  FramePlan plan;
  ASSERT_TRUE(schedule.add(job(1, other, 9, 4)));
  ASSERT_TRUE(schedule.add(job(2, cost, 3, 2)));
  EXPECT_EQ(run(schedule, request(3, 0), plan), (Ran{{2, {0, 4}}}));
  EXPECT_NEAR(plan.due_us, 400, 0.1);
}

TEST(FrameSchedule, DueWorkCountsAgainstTheBudgetOfTheOthers) {
  const ProgramCost due = equal_pieces(3, 100), other = equal_pieces(5, 100);
  FrameSchedule schedule;
  FramePlan plan;
  ASSERT_TRUE(schedule.add(job(1, other, 9, 5)));
  ASSERT_TRUE(schedule.add(job(2, due, 1, 3)));
  EXPECT_EQ(run(schedule, request(1, 450), plan), (Ran{{2, {0, 3}}, {1, {0, 1}}}));
}

TEST(FrameSchedule, APastDeadlineIsDue) {
  const ProgramCost cost = equal_pieces(3, 10);
  FrameSchedule schedule;
  FramePlan plan;
  ASSERT_TRUE(schedule.add(job(1, cost, 2, 1)));
  EXPECT_EQ(run(schedule, request(7, 0), plan), (Ran{{1, {0, 3}}}));
}

TEST(FrameSchedule, OneStreamRunsInOrder) {
  const ProgramCost first = equal_pieces(3, 10), second = equal_pieces(3, 10);
  FrameSchedule schedule;
  FramePlan plan;
  LearnJob a = job(1, first, 5, 2), b = job(2, second, 6, 2);
  a.stream = b.stream = 7;
  ASSERT_TRUE(schedule.add(a));
  ASSERT_TRUE(schedule.add(b));
  EXPECT_EQ(run(schedule, request(1, kUnlimited), plan), (Ran{{1, {0, 2}}}));
  EXPECT_EQ(run(schedule, request(5, kUnlimited), plan), (Ran{{1, {2, 3}}, {2, {0, 2}}}))
      << "the second may start after the first has finished";
  EXPECT_EQ(run(schedule, request(6, kUnlimited), plan), (Ran{{2, {2, 3}}}));
}

TEST(FrameSchedule, OtherStreamsNeedNotWait) {
  const ProgramCost first = equal_pieces(3, 10), second = equal_pieces(3, 10);
  FrameSchedule schedule;
  FramePlan plan;
  ASSERT_TRUE(schedule.add(job(1, first, 9, 2)));
  ASSERT_TRUE(schedule.add(job(2, second, 5, 2)));
  EXPECT_EQ(run(schedule, request(1, kUnlimited), plan), (Ran{{1, {0, 2}}, {2, {0, 2}}}));
  EXPECT_EQ(run(schedule, request(5, 0), plan), (Ran{{2, {2, 3}}}));
}

TEST(FrameSchedule, RunsOfOneProgramDoNotOverlap) {
  const ProgramCost cost = equal_pieces(4, 10);
  FrameSchedule schedule;
  FramePlan plan;
  ASSERT_TRUE(schedule.add(job(1, cost, 5, 3)));
  ASSERT_TRUE(schedule.add(job(2, cost, 5, 3)));  // another stream, the same program
  EXPECT_EQ(run(schedule, request(1, kUnlimited), plan), (Ran{{1, {0, 3}}}));
  EXPECT_EQ(run(schedule, request(5, 0), plan), (Ran{{1, {3, 4}}, {2, {0, 4}}}));
}

TEST(FrameSchedule, RefusesAFallingDeadline) {
  const ProgramCost first = equal_pieces(3, 10), second = equal_pieces(3, 10);
  FrameSchedule schedule;
  LearnJob a = job(1, first, 9, 2), b = job(2, second, 8, 2);
  a.stream = b.stream = 0;
  ASSERT_TRUE(schedule.add(a));
  const Result<> refused = schedule.add(b);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::invalid_argument);
  EXPECT_NE(refused.error().message.find("found 8, expected at least 9"), std::string::npos)
      << refused.error().message;
  EXPECT_NE(refused.error().message.find("stream"), std::string::npos);
  b.program = a.program;
  b.stream = 1;
  EXPECT_FALSE(schedule.add(b)) << "of the same program in another stream";
  b.deadline_frame = 9;
  EXPECT_TRUE(schedule.add(b));
}

TEST(FrameSchedule, CancelForgetsAProgram) {
  const ProgramCost first = equal_pieces(3, 10), second = equal_pieces(3, 10);
  FrameSchedule schedule;
  FramePlan plan;
  LearnJob a = job(1, first, 9, 3), b = job(2, second, 9, 3);
  a.stream = b.stream = 0;
  ASSERT_TRUE(schedule.add(a));
  ASSERT_TRUE(schedule.add(b));
  EXPECT_EQ(run(schedule, request(1, 15), plan), (Ran{{1, {0, 1}}}));
  schedule.cancel(a.program);
  EXPECT_EQ(run(schedule, request(2, kUnlimited), plan), (Ran{{2, {0, 3}}})) << "the stream continues";
}

TEST(FrameSchedule, CutsSlices) {
  const ProgramCost cost = equal_pieces(10, 100);
  FrameSchedule schedule;
  FramePlan plan;
  ASSERT_TRUE(schedule.add(job(1, cost, 1, 9)));
  FrameRequest wanted = request(1, 0);
  wanted.max_slice_us = 350;
  wanted.first_slice_open = true;
  wanted.first_slice_us = 200;
  EXPECT_EQ(run(schedule, wanted, plan), (Ran{{1, {0, 1}}, {1, {1, 4}}, {1, {4, 7}}, {1, {7, 10}}}));
  ASSERT_EQ(plan.slices.size(), 4u);
  for (const Slice& slice : plan.slices) EXPECT_EQ(slice.step_count, 1u);
}

TEST(FrameSchedule, ImmediateWorkMayFillTheFirstSlice) {
  const ProgramCost cost = equal_pieces(2, 100);
  FrameSchedule schedule;
  FramePlan plan;
  ASSERT_TRUE(schedule.add(job(1, cost, 1, 2)));
  FrameRequest wanted = request(1, 0);
  wanted.max_slice_us = 350;
  wanted.first_slice_open = true;
  wanted.first_slice_us = 400;
  EXPECT_EQ(run(schedule, wanted, plan), (Ran{{1, {0, 2}}}));
  ASSERT_EQ(plan.slices.size(), 2u);
  EXPECT_EQ(plan.slices[0].step_count, 0u);
  EXPECT_EQ(plan.slices[1].step_count, 1u);
}

TEST(FrameSchedule, ImmediateWorkAloneIsOneEmptySlice) {
  FrameSchedule schedule;
  FramePlan plan;
  FrameRequest wanted = request(1, 0);
  wanted.first_slice_open = true;
  run(schedule, wanted, plan);
  ASSERT_EQ(plan.slices.size(), 1u);
  EXPECT_EQ(plan.slices[0].step_count, 0u);
}

TEST(FrameSchedule, APieceLongerThanASliceIsASeparateSlice) {
  const ProgramCost cost = equal_pieces(3, 500);
  FrameSchedule schedule;
  FramePlan plan;
  ASSERT_TRUE(schedule.add(job(1, cost, 1, 3)));
  FrameRequest wanted = request(1, 0);
  wanted.max_slice_us = 100;
  EXPECT_EQ(run(schedule, wanted, plan), (Ran{{1, {0, 1}}, {1, {1, 2}}, {1, {2, 3}}}));
  EXPECT_EQ(plan.slices.size(), 3u);
}

TEST(FrameSchedule, APieceLongerThanTheBudgetRunsWhenEnoughWasSaved) {
  const ProgramCost cost = equal_pieces(4, 250);
  FrameSchedule schedule;
  FramePlan plan;
  ASSERT_TRUE(schedule.add(job(1, cost, 1000, 4)));
  std::vector<std::uint64_t> frames;
  for (std::uint64_t frame = 1; frame <= 12; ++frame) {
    if (!run(schedule, request(frame, 100), plan).empty()) frames.push_back(frame);
  }
  EXPECT_EQ(frames, (std::vector<std::uint64_t>{3, 5, 8, 10})) << "a hundred per frame on average";
}

TEST(FrameSchedule, NothingIsSavedUpWithoutNeed) {
  const ProgramCost cost = equal_pieces(40, 60);
  FrameSchedule schedule;
  FramePlan plan;
  ASSERT_TRUE(schedule.add(job(1, cost, 1000, 40)));
  for (std::uint64_t frame = 1; frame <= 20; ++frame) {
    run(schedule, request(frame, 100), plan);
    EXPECT_LE(plan.early_us, 100);
  }
}

TEST(FrameSchedule, EverythingIgnoresDeadlines) {
  const ProgramCost first = equal_pieces(3, 10), second = equal_pieces(3, 10);
  FrameSchedule schedule;
  FramePlan plan;
  ASSERT_TRUE(schedule.add(job(1, first, 90, 1)));
  ASSERT_TRUE(schedule.add(job(2, second, 80, 1)));
  FrameRequest wanted = request(1, 0);
  wanted.everything = true;
  EXPECT_EQ(run(schedule, wanted, plan), (Ran{{1, {0, 3}}, {2, {0, 3}}}));
}

TEST(FrameSchedule, AFailedSliceRunsAgain) {
  const ProgramCost cost = equal_pieces(4, 100);
  FrameSchedule schedule;
  FramePlan plan;
  ASSERT_TRUE(schedule.add(job(1, cost, 1, 4)));
  FrameRequest wanted = request(1, 0);
  wanted.max_slice_us = 200;
  schedule.plan(wanted, plan);
  ASSERT_EQ(plan.slices.size(), 2u);
  schedule.issued(plan, plan.slices[0]);  // the second was refused by the queue
  schedule.sweep();
  EXPECT_EQ(run(schedule, request(2, 0), plan), (Ran{{1, {2, 4}}}));
}

// A game: programs, and the frames in which their jobs arrive, with deadlines.
struct Game {
  struct Arrival {
    std::uint64_t frame, deadline, stream;
    std::size_t program;
  };
  std::vector<std::unique_ptr<ProgramCost>> costs;
  std::vector<std::uint32_t> commits;
  std::vector<Arrival> arrivals;  // by frame
};

Game random_game(std::mt19937& random) {
  Game game;
  for (std::size_t i = 0, count = 1 + random() % 4; i < count; ++i) {
    std::vector<float> us(1 + random() % 12);
    for (float& piece : us) piece = 1 + static_cast<float>(random() % 200);
    game.costs.push_back(std::make_unique<ProgramCost>(ProgramCost::measured(us)));
    game.commits.push_back(static_cast<std::uint32_t>(random() % (us.size() + 1)));
  }
  std::map<std::uint64_t, std::uint64_t> stream_deadline;
  std::map<std::size_t, std::uint64_t> program_deadline;
  std::uint64_t frame = 1;
  for (int i = 0; i < 12; ++i) {
    frame += random() % 4;
    const std::size_t program = random() % game.costs.size();
    const std::uint64_t stream = random() % 3;
    const std::uint64_t deadline =
        std::max({frame + random() % 10, stream_deadline[stream], program_deadline[program]});
    stream_deadline[stream] = program_deadline[program] = deadline;
    game.arrivals.push_back({frame, deadline, stream, program});
  }
  return game;
}

struct Piece {
  std::uint64_t frame, job;
  std::uint32_t index;
};

// Plays the game under a budget and returns every piece in the order of issue.
std::vector<Piece> play(const Game& game, std::mt19937& random, float budget, float max_slice) {
  FrameSchedule schedule;
  FramePlan plan;
  std::vector<Piece> pieces;
  std::size_t arrived = 0;
  for (std::uint64_t frame = 1; frame < 80; ++frame) {
    for (; arrived < game.arrivals.size() && game.arrivals[arrived].frame == frame; ++arrived) {
      const Game::Arrival& arrival = game.arrivals[arrived];
      LearnJob added =
          job(arrived, *game.costs[arrival.program], arrival.deadline, game.commits[arrival.program]);
      added.stream = arrival.stream;
      EXPECT_TRUE(schedule.add(added));
    }
    FrameRequest wanted = request(frame, budget < 0 ? static_cast<float>(random() % 600) : budget);
    wanted.max_slice_us = max_slice;
    wanted.first_slice_open = random() % 2 == 0;
    wanted.first_slice_us = wanted.first_slice_open ? static_cast<float>(random() % 100) : 0;
    schedule.plan(wanted, plan);

    std::uint32_t next_step = 0;
    for (std::size_t s = 0; s < plan.slices.size(); ++s) {
      const Slice& slice = plan.slices[s];
      EXPECT_EQ(slice.step_count ? slice.first_step : next_step, next_step)
          << "slices cover the steps in order";
      next_step += slice.step_count;
      float us = s == 0 ? wanted.first_slice_us : 0;
      std::uint32_t count = 0;
      for (std::uint32_t i = 0; i < slice.step_count; ++i) {
        const Step& step = plan.steps[slice.first_step + i];
        EXPECT_LT(step.begin, step.end);
        for (std::uint32_t p = step.begin; p < step.end; ++p, ++count)
          pieces.push_back({frame, schedule.jobs()[step.job].id, p});
        us += step.us;
      }
      if (max_slice > 0 && count > 1) {
        EXPECT_LE(us, max_slice * 1.0001f);
      }
    }
    EXPECT_EQ(next_step, plan.steps.size());
    for (const Slice& slice : plan.slices) schedule.issued(plan, slice);
    schedule.sweep();
  }
  EXPECT_TRUE(schedule.empty());
  return pieces;
}

class AnyGame : public testing::TestWithParam<unsigned> {};

TEST_P(AnyGame, KeepsItsPromises) {
  std::mt19937 random(GetParam());
  const Game game = random_game(random);
  for (const float budget : {0.0f, 50.0f, 300.0f, -1.0f, kUnlimited}) {
    for (const float max_slice : {0.0f, 120.0f}) {
      const std::vector<Piece> pieces = play(game, random, budget, max_slice);
      std::vector<std::vector<std::pair<std::size_t, Piece>>> by_job(game.arrivals.size());
      for (std::size_t i = 0; i < pieces.size(); ++i) by_job[pieces[i].job].push_back({i, pieces[i]});
      for (std::size_t j = 0; j < by_job.size(); ++j) {
        const Game::Arrival& arrival = game.arrivals[j];
        const std::uint32_t commit = game.commits[arrival.program];
        ASSERT_EQ(by_job[j].size(), game.costs[arrival.program]->piece_count()) << "every piece once";
        for (std::uint32_t p = 0; p < by_job[j].size(); ++p) {
          const auto& [position, piece] = by_job[j][p];
          EXPECT_EQ(piece.index, p) << "in order";
          EXPECT_GE(piece.frame, arrival.frame);
          EXPECT_LE(piece.frame, arrival.deadline);
          if (p >= commit) {
            EXPECT_EQ(piece.frame, arrival.deadline) << "writing pieces wait for the deadline";
          }
          if (p > commit) {
            EXPECT_EQ(position, by_job[j][p - 1].first + 1) << "and is one slice";
          }
        }
        // Jobs of one stream or one program: the earlier ends before the later begins.
        for (std::size_t earlier = 0; earlier < j; ++earlier) {
          const Game::Arrival& other = game.arrivals[earlier];
          if (other.stream == arrival.stream || other.program == arrival.program) {
            EXPECT_LT(by_job[earlier].back().first, by_job[j].front().first);
          }
        }
      }
      if (budget == 0) {
        for (const Piece& piece : pieces)
          EXPECT_EQ(piece.frame, game.arrivals[piece.job].deadline) << "without a budget only due work";
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Random, AnyGame, testing::Range(0u, 200u));

TEST(FrameSchedule, EarlyWorkStaysInTheBudgetOrIsOnePiece) {
  std::mt19937 random(99);
  for (int round = 0; round < 100; ++round) {
    std::vector<float> us(20);
    for (float& piece : us) piece = 1 + static_cast<float>(random() % 300);
    const ProgramCost cost = ProgramCost::measured(us);
    FrameSchedule schedule;
    FramePlan plan;
    ASSERT_TRUE(schedule.add(job(1, cost, 1000, 20)));
    float granted = 0, spent = 0;
    for (std::uint64_t frame = 1; frame < 60; ++frame) {
      const float budget = 20 + static_cast<float>(random() % 200);
      const bool was_empty = schedule.empty();
      run(schedule, request(frame, budget), plan);
      if (!was_empty) granted += budget;
      spent += plan.early_us;
      EXPECT_LE(plan.early_us, budget + 301);
      EXPECT_LE(spent, granted + 0.1f) << "on average never more than the budget";
    }
    EXPECT_TRUE(schedule.empty()) << "it reaches the budget";
  }
}

}  // namespace
}  // namespace imprint::bridge
