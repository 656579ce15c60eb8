// Frames on Imprint's own device: order, budgets, deadlines, completion, and all wrong calls.

#include "engine-bridge/context.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <optional>

#include "engine-bridge/own/standalone.h"
#include "tests/hosts/regression.h"

namespace imprint::bridge {
namespace {

using testing::HasSubstr;

constexpr std::uint64_t kSecond = 1000ull * 1000 * 1000;

class ContextTest : public testing::Test {
 protected:
  void SetUp() override { open(true, 0); }

  void open(bool optional_features, std::uint32_t api_version) {
    model_.reset();
    standalone_.reset();
    StandaloneOptions options;
    options.validation = true;
    options.optional_features = optional_features;
    options.api_version = api_version;
    auto opened = Standalone::open(options);
    ASSERT_TRUE(opened) << opened.error().message;
    standalone_ = std::move(*opened);
    model_.emplace();
    const Result<> built = model_->build(context().runtime());
    ASSERT_TRUE(built) << built.error().message;
  }

  void TearDown() override {
    if (!standalone_) return;
    EXPECT_TRUE(context().drain(60 * kSecond));
    model_.reset();
    EXPECT_EQ(standalone_->validation_messages(), 0u) << standalone_->first_validation_message();
  }

  Context& context() { return standalone_->context(); }

  FrameJob learn(std::uint32_t slot, std::uint64_t deadline,
                 std::function<void(std::uint64_t)> on_complete = {}) {
    FrameJob job;
    job.program = &*model_->train;
    job.slot = slot;
    job.kind = FrameJobKind::learn;
    job.deadline_frame = deadline;
    job.on_complete = std::move(on_complete);
    return job;
  }

  // Ends the frame and waits for the GPU, so that the next frame_begin finds everything complete.
  void end_frame(std::uint32_t budget = kFromBudget) {
    Result<> status = context().submit(budget);
    ASSERT_TRUE(status) << status.error().message;
    status = context().frame_end();
    ASSERT_TRUE(status) << status.error().message;
    wait();
  }
  void wait() {
    const Result<> status = context().queue()->wait(context().device().last_ticket(), 60 * kSecond);
    ASSERT_TRUE(status) << status.error().message;
  }
  void begin_frame(std::uint64_t frame) {
    const Result<> status = context().frame_begin({frame, 0});
    ASSERT_TRUE(status) << status.error().message;
  }

  std::vector<float> weights() {
    const Variable both[] = {model_->weight, model_->bias};
    auto values = standalone_->session().read(both);
    if (!values) {
      ADD_FAILURE() << values.error().message;
      return {};
    }
    std::vector<float> all = (*values)[0].floats;
    all.insert(all.end(), (*values)[1].floats.begin(), (*values)[1].floats.end());
    return all;
  }

  std::unique_ptr<Standalone> standalone_;
  std::optional<Regression> model_;
};

TEST_F(ContextTest, ALearnJobAppearsAtItsDeadline) {
  const std::uint32_t commit = model_->train->first_state_write();
  ASSERT_GT(commit, 1u) << "no work ahead of its frame: " << model_->train->explain();
  model_->fill(0, 1);
  std::uint64_t issued = 0;
  begin_frame(1);
  ASSERT_TRUE(context().enqueue(learn(0, 4, [&](std::uint64_t frame) { issued = frame; })));
  end_frame(100000);
  for (std::uint64_t frame = 2; frame <= 4; ++frame) {
    EXPECT_EQ(weights(), std::vector<float>(5, 0)) << "before frame " << frame;
    begin_frame(frame);
    end_frame(100000);
  }
  EXPECT_NE(weights(), std::vector<float>(5, 0));
  EXPECT_EQ(issued, 0u) << "not before a later frame begins";
  begin_frame(5);
  EXPECT_EQ(issued, 4u);
  EXPECT_GT(model_->loss(0), 0);
  end_frame();
}

TEST_F(ContextTest, ImmediateJobsOfTheDeadlineFrameSeeTheOldState) {
  model_->fill(0, 1);
  const float ones[4] = {1, 1, 1, 1};
  float answers[3] = {};
  for (std::uint64_t frame = 1; frame <= 3; ++frame) {
    begin_frame(frame);
    const auto slot = static_cast<std::uint32_t>(frame % 3);
    std::memcpy(model_->infer->input_bytes(slot, 0).data(), ones, sizeof ones);
    if (frame == 1) {
      ASSERT_TRUE(context().enqueue(learn(0, 2)));
    }
    FrameJob job;
    job.program = &*model_->infer;
    job.slot = slot;
    ASSERT_TRUE(context().enqueue(std::move(job)));
    end_frame();
    std::memcpy(&answers[frame - 1], model_->infer->output_bytes(slot, 0).data(), sizeof(float));
  }
  EXPECT_EQ(answers[0], 0);
  EXPECT_EQ(answers[1], 0) << "learned in this frame, seen in the next";
  EXPECT_NE(answers[2], 0);
}

// The same hundred steps, cut in every possible way.
TEST_F(ContextTest, AnyCutGivesTheSameBits) {
  struct Way {
    bool optional_features;
    std::uint32_t budget, slice;
  };
  std::vector<float> expected;
  float expected_loss = 0;
  for (const Way way : {Way{true, 0, 0}, Way{true, 30, 40}, Way{true, 100, 1000}, Way{true, 1000, 100},
                        Way{true, kFromBudget, 0}, Way{false, 100, 60}}) {
    open(way.optional_features, 0);
    context().set_budget({way.budget, way.slice});
    if (way.budget == 100) {
      ASSERT_TRUE(context().measure(*model_->train));
    }
    std::uint32_t steps = 0;
    float last_loss = 0;
    for (std::uint64_t frame = 1; frame <= 305; ++frame) {
      begin_frame(frame);
      if (frame % 3 == 1 && frame <= 300) {
        const std::uint32_t slot = static_cast<std::uint32_t>(frame / 3) % 3;
        model_->fill(slot, static_cast<std::uint32_t>(frame));
        const Result<> added = context().enqueue(learn(slot, frame + 2, [&, slot](std::uint64_t) {
          ++steps;
          last_loss = model_->loss(slot);
        }));
        ASSERT_TRUE(added) << added.error().message;
      }
      Result<> status = context().submit(kFromBudget);
      ASSERT_TRUE(status) << status.error().message;
      ASSERT_TRUE(context().frame_end());
      if (frame % 3 == 0) wait();  // a host that keeps three frames in flight
    }
    ASSERT_TRUE(context().drain(60 * kSecond));
    EXPECT_EQ(steps, 100u);
    const std::vector<float> found = weights();
    if (expected.empty()) {
      expected = found;
      expected_loss = last_loss;
      EXPECT_NEAR(found[0], 2, 0.2);
      EXPECT_NEAR(found[1], -1, 0.2);
    }
    EXPECT_EQ(std::memcmp(found.data(), expected.data(), found.size() * sizeof(float)), 0);
    EXPECT_EQ(std::memcmp(&last_loss, &expected_loss, sizeof(float)), 0);
    EXPECT_EQ(standalone_->validation_messages(), 0u) << standalone_->first_validation_message();
  }
}

TEST_F(ContextTest, AQuietFrameSubmitsNothingAndABusyOneOnce) {
  context().set_budget({1000000, 1000000});
  begin_frame(1);  // issues the uploads of the variables
  end_frame();
  const std::uint64_t before = context().device().counters().submits;
  begin_frame(2);
  end_frame();
  EXPECT_EQ(context().device().counters().submits, before);
  model_->fill(0, 1);
  begin_frame(3);
  ASSERT_TRUE(context().enqueue(learn(0, 3)));
  FrameJob job;
  job.program = &*model_->infer;
  ASSERT_TRUE(context().enqueue(std::move(job)));
  end_frame();
  EXPECT_EQ(context().device().counters().submits, before + 1);
}

TEST_F(ContextTest, SlicesAreSubmissions) {
  ASSERT_TRUE(context().measure(*model_->train));
  // On a software device every piece takes longer than a microsecond; on a fast one pieces share slices.
  context().set_budget({0, 1});
  model_->fill(0, 1);
  const std::uint64_t before = context().stats().submits;
  begin_frame(1);
  ASSERT_TRUE(context().enqueue(learn(0, 1)));
  end_frame();
  EXPECT_GT(context().stats().submits, before + 1);
  EXPECT_EQ(context().stats().slices, context().stats().submits - before);
}

TEST_F(ContextTest, EstimatesTheWorkOfAFrame) {
  EXPECT_FALSE(context().estimate()) << "no frame is open";
  ASSERT_TRUE(context().measure(*model_->train));
  ASSERT_TRUE(context().measure(*model_->infer));
  context().set_budget({0, 0});
  model_->fill(0, 1);
  begin_frame(1);
  const auto empty = context().estimate();
  ASSERT_TRUE(empty) << empty.error().message;
  EXPECT_EQ(empty->due_us + empty->later_us, 0);
  FrameJob job;
  job.program = &*model_->infer;
  ASSERT_TRUE(context().enqueue(std::move(job)));
  const float infer_us = context().estimate()->due_us;
  EXPECT_GT(infer_us, 0);
  ASSERT_TRUE(context().enqueue(learn(0, 3)));
  EXPECT_EQ(context().estimate()->due_us, infer_us) << "learning is due in frame 3";
  const float learn_us = context().estimate()->later_us;
  EXPECT_GT(learn_us, 0);
  end_frame();
  begin_frame(3);
  EXPECT_EQ(context().estimate()->due_us, learn_us);
  EXPECT_EQ(context().estimate()->later_us, 0);
  end_frame();
  EXPECT_FALSE(context().estimate());
}

TEST_F(ContextTest, SteadyFramesNeitherCompileNorAllocateNorWait) {
  const vk::Counters& counters = context().device().counters();
  std::uint64_t compiles = 0, allocations = 0, waits = 0;
  for (std::uint64_t frame = 1; frame <= 60; ++frame) {
    if (frame == 4)
      compiles = counters.frame_compiles, allocations = counters.frame_allocations,
      waits = counters.frame_waits;
    begin_frame(frame);
    const auto slot = static_cast<std::uint32_t>(frame % 3);
    model_->fill(slot, static_cast<std::uint32_t>(frame));
    ASSERT_TRUE(context().enqueue(learn(slot, frame)));
    end_frame();
  }
  EXPECT_EQ(counters.frame_compiles, compiles);
  EXPECT_EQ(counters.frame_allocations, allocations);
  EXPECT_EQ(counters.frame_waits, waits);
  EXPECT_EQ(waits, 0u);
  EXPECT_FALSE(counters.on_frame());
}

TEST_F(ContextTest, TimesArrive) {
  if (context().device().capabilities().timestamp_valid_bits == 0)
    GTEST_SKIP() << "no timestamps on this queue family";
  model_->fill(0, 1);
  begin_frame(7);
  FrameJob job;
  job.program = &*model_->infer;
  ASSERT_TRUE(context().enqueue(std::move(job)));
  ASSERT_TRUE(context().enqueue(learn(0, 7)));
  end_frame();
  begin_frame(8);
  end_frame();
  const ContextStats stats = context().stats();
  EXPECT_EQ(stats.times.frame, 7u);
  EXPECT_GT(stats.times.immediate_us, 0);
  EXPECT_GT(stats.times.learn_us, 0);
  EXPECT_FLOAT_EQ(static_cast<float>(stats.immediate_us), stats.times.immediate_us);
  EXPECT_FLOAT_EQ(static_cast<float>(stats.learn_us), stats.times.learn_us);
  EXPECT_EQ(stats.frames, 2u);
  EXPECT_GT(stats.frame_cpu_us, 0);

  // Frames that complete together show the times of the newest one. The sums have them all.
  for (const std::uint32_t slot : {0u, 1u}) {
    model_->fill(slot, 1);
    begin_frame(9 + slot);
    ASSERT_TRUE(context().enqueue(learn(slot, 9 + slot)));
    ASSERT_TRUE(context().submit(kFromBudget));
    ASSERT_TRUE(context().frame_end());
  }
  wait();
  begin_frame(11);
  end_frame();
  const ContextStats together = context().stats();
  EXPECT_EQ(together.times.frame, 10u);
  EXPECT_GT(together.learn_us - stats.learn_us, together.times.learn_us * 1.001);
}

TEST_F(ContextTest, ReadbacksRunAmongTheImmediateJobs) {
  const Variable variables[] = {model_->weight};
  auto readback = context().runtime().read(variables);
  ASSERT_TRUE(readback) << readback.error().message;
  std::vector<float> fresh{1, 2, 3, 4};
  ASSERT_TRUE(context().runtime().write(model_->weight, std::as_bytes(std::span(fresh))));
  std::uint64_t issued = 0;
  begin_frame(1);
  ASSERT_TRUE(context().enqueue((*readback)->commands(), [&](std::uint64_t frame) { issued = frame; }));
  end_frame();
  begin_frame(2);
  EXPECT_EQ(issued, 1u);
  end_frame();
  std::vector<float> found(4);
  std::memcpy(found.data(), (*readback)->bytes(0).data(), 16);
  EXPECT_EQ(found, fresh);
}

TEST_F(ContextTest, AProgramWithoutInputsAndOutputsMayRunAgainAtOnce) {
  Variable count = Variable::zeros("count", {1});
  ProgramDescription description;
  description.name = "count";
  description.updates = {Update::assign(count, count.value() + 1.0f)};
  auto program = Program::compile(context().runtime(), description);
  ASSERT_TRUE(program) << program.error().message;
  for (std::uint64_t frame = 1; frame <= 3; ++frame) {
    begin_frame(frame);
    for (int i = 0; i < 2; ++i) {
      FrameJob job;
      job.program = &*program;
      job.kind = FrameJobKind::learn;
      job.deadline_frame = frame;
      ASSERT_TRUE(context().enqueue(std::move(job)));
    }
    ASSERT_TRUE(context().submit(kFromBudget));
    ASSERT_TRUE(context().frame_end());
  }
  ASSERT_TRUE(context().drain(60 * kSecond));
  const Variable variables[] = {count};
  EXPECT_EQ((*standalone_->session().read(variables))[0].floats, std::vector<float>{6});
}

TEST_F(ContextTest, CallbacksMayEnqueue) {
  int rounds = 0;
  std::function<void(std::uint64_t)> again = [&](std::uint64_t) {
    if (++rounds < 4) {
      EXPECT_TRUE(context().enqueue(learn(0, 0, again)));
    }
  };
  model_->fill(0, 1);
  begin_frame(1);
  ASSERT_TRUE(context().enqueue(learn(0, 1, again)));
  end_frame();
  begin_frame(2);
  EXPECT_EQ(rounds, 1);
  end_frame();
  ASSERT_TRUE(context().drain(60 * kSecond));
  EXPECT_EQ(rounds, 4);
}

TEST_F(ContextTest, CancelledJobsAreForgotten) {
  model_->fill(0, 1);
  bool called = false;
  begin_frame(1);
  ASSERT_TRUE(context().enqueue(learn(0, 1, [&](std::uint64_t) { called = true; })));
  ASSERT_TRUE(context().enqueue(learn(1, 9, [&](std::uint64_t) { called = true; })));
  ASSERT_TRUE(context().submit(kFromBudget));
  ASSERT_TRUE(context().frame_end());
  context().cancel(*model_->train);
  model_->train.reset();  // while its pieces may still be running
  begin_frame(2);
  end_frame();
  EXPECT_TRUE(context().drain(60 * kSecond));
  EXPECT_FALSE(called);
}

TEST_F(ContextTest, WrongOrderIsReported) {
  const auto expect = [](const Result<>& status, const char* text) {
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code, ErrorCode::wrong_state);
    EXPECT_THAT(status.error().message, HasSubstr(text));
  };
  expect(context().frame_end(), "no frame is open");
  expect(context().submit(0), "no frame is open");
  expect(context().enqueue(learn(0, 1)), "no frame is open");
  expect(context().record(VK_NULL_HANDLE, 0).ok() ? Result<>{}
                                                  : Result<>(context().record(VK_NULL_HANDLE, 0).error()),
         "no frame is open");
  begin_frame(5);
  expect(context().frame_begin({6, 0}), "a frame is open");
  expect(context().drain(0), "a frame is open");
  expect(context().measure(*model_->train), "a frame is open");
  ASSERT_TRUE(context().submit(0));
  expect(context().submit(0), "already submitted");
  expect(context().enqueue(learn(0, 1)), "already submitted");
  ASSERT_TRUE(context().frame_end());
  const Result<> past = context().frame_begin({5, 0});
  ASSERT_FALSE(past);
  EXPECT_EQ(past.error().code, ErrorCode::invalid_argument) << "like every bad value";
  EXPECT_THAT(past.error().message, HasSubstr("expected more than the last one, 5"));
  begin_frame(6);
  model_->fill(0, 1);
  ASSERT_TRUE(context().enqueue(learn(0, 6)));
  ASSERT_TRUE(context().frame_end()) << "a frame without submit or record is valid";
  begin_frame(7);
  expect(context().enqueue(learn(0, 8)), "still using");
  end_frame();
  EXPECT_NE(weights(), std::vector<float>(5, 0))
      << "what was enqueued in a frame without submit runs in the next";
}

TEST_F(ContextTest, WrongJobsAreRefused) {
  begin_frame(1);
  FrameJob empty;
  EXPECT_EQ(context().enqueue(std::move(empty)).error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(context().enqueue(learn(3, 1)).error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(context().enqueue(Commands{}, {}).error().code, ErrorCode::invalid_argument);
  model_->fill(0, 1);
  ASSERT_TRUE(context().enqueue(learn(0, 9)));
  EXPECT_EQ(context().enqueue(learn(1, 8)).error().code, ErrorCode::invalid_argument) << "a falling deadline";
  end_frame(1000000);
  begin_frame(2);
  FrameJob overlap;
  overlap.program = &*model_->train;
  overlap.slot = 1;
  const Result<> refused = context().enqueue(std::move(overlap));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::wrong_state);
  EXPECT_THAT(refused.error().message, HasSubstr("cannot overlap"));
  end_frame();
}

TEST_F(ContextTest, ALostDeviceIsReportedEverywhere) {
  begin_frame(1);
  end_frame();
  context().device().mark_lost();
  const auto lost = [](const Result<>& status) {
    return !status && status.error().code == ErrorCode::device_lost;
  };
  EXPECT_TRUE(lost(context().frame_begin({2, 0})));
  EXPECT_TRUE(lost(context().enqueue(Commands{}, {})));
  EXPECT_TRUE(lost(context().submit(0)));
  EXPECT_TRUE(lost(context().frame_end()));
  EXPECT_TRUE(lost(context().drain(0)));
  EXPECT_TRUE(lost(context().measure(*model_->train)));
  EXPECT_EQ(context().record(VK_NULL_HANDLE, 0).error().code, ErrorCode::device_lost);
  model_.reset();
  standalone_.reset();
}

TEST(ContextAdoption, RefusesAQueueWithoutAWayToUseIt) {
  ContextDescription description;
  description.queue.queue = reinterpret_cast<VkQueue>(static_cast<std::uintptr_t>(1));
  const auto adopted = Context::adopt(description);
  ASSERT_FALSE(adopted);
  EXPECT_EQ(adopted.error().code, ErrorCode::invalid_argument);
  EXPECT_THAT(adopted.error().message, HasSubstr("queue access"));
}

}  // namespace
}  // namespace imprint::bridge
