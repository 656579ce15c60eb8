// One game in every mode that a host can choose, on a bare and a rich device, under any budget: the same
// bits, no validation message, and frames that compile, allocate and wait for nothing.

#include <gtest/gtest.h>

#include "compute/program/run.h"
#include "tests/hosts/bridge_player.h"

namespace imprint::bridge {
namespace {

struct Way {
  const HostProfile* profile;
  Mode mode;
  std::uint32_t budget_us;
};

class T2T3T13HostModes : public testing::TestWithParam<Way> {};

TEST_P(T2T3T13HostModes, LearnTheSameBits) {
  ASSERT_EQ(expected().size(), 5u);
  EXPECT_NEAR(expected()[0], 2, 0.2);
  EXPECT_NEAR(expected()[1], -1, 0.2);
  const auto& [profile, mode, budget_us] = GetParam();
  EXPECT_EQ(play(*profile, mode, {budget_us, budget_us == kUnlimited ? 0u : 1000u}), expected());
}

std::vector<Way> ways() {
  std::vector<Way> list;
  for (const HostProfile* profile : {&kBaseline, &kEverything}) {
    for (const Mode mode : {Mode::record, Mode::lock, Mode::submit, Mode::single_thread, Mode::exclusive}) {
      for (const std::uint32_t budget_us : {100u, 1000u, kUnlimited})
        list.push_back({profile, mode, budget_us});
    }
  }
  return list;
}

INSTANTIATE_TEST_SUITE_P(Every, T2T3T13HostModes, testing::ValuesIn(ways()), [](const auto& way) {
  const std::string budget =
      way.param.budget_us == kUnlimited ? "unlimited" : std::to_string(way.param.budget_us) + "us";
  return std::string(way.param.profile->name) + "_" + name_of(way.param.mode) + "_" + budget;
});

TEST(T5HostContexts, TwoOnOneDeviceDoNotMeet) {
  for (const HostProfile* profile : {&kBaseline, &kEverything}) {
    PlainHost host(*profile);
    ASSERT_TRUE(host.ok());
    {
      auto recording = adopt(host, Mode::record, {100, 0}),
           submitting = adopt(host, Mode::lock, {1000, 1000});
      ASSERT_TRUE(recording) << recording.error().message;
      ASSERT_TRUE(submitting) << submitting.error().message;
      Player first(**recording, Mode::record), second(**submitting, Mode::lock);
      for (std::uint64_t frame = 1; frame <= kFrames + 1; ++frame) {
        if (frame == kFrames + 1) {
          host.finish_frames();
          ASSERT_TRUE((*submitting)->drain(60'000'000'000));
        }
        const VkCommandBuffer commands = host.begin_frame(frame);
        first.frame(frame, host.safe_frame(), commands);
        second.frame(frame, 0, VK_NULL_HANDLE);
        host.end_frame();
      }
      host.finish_frames();
      EXPECT_EQ(first.weights, expected());
      EXPECT_EQ(second.weights, expected());
    }
    EXPECT_EQ(host.messages(), 0u) << host.first_message();
  }
}

TEST(T6ExclusiveQueue, IsOurs) {
  HostProfile profile = kEverything;
  profile.second_queue = true;
  PlainHost host(profile);
  ASSERT_TRUE(host.ok());
  auto adopted = adopt(host, Mode::exclusive, {});
  ASSERT_TRUE(adopted) << adopted.error().message;
  Context& context = **adopted;
  EXPECT_TRUE(context.exclusive());
  EXPECT_NE(context.report().find("queue: Imprint's own"), std::string::npos);
  const VkCommandBuffer commands = host.begin_frame(1);
  ASSERT_TRUE(context.frame_begin({1, 0}));
  EXPECT_EQ(context.record(commands, 0).error().code, ErrorCode::unsupported);
  ASSERT_TRUE(context.submit(0));
  ASSERT_TRUE(context.frame_end());
  host.end_frame();
  host.finish_frames();
}

// Training without drawing: Imprint owns the only queue, and no lock is needed.
TEST(T6ExclusiveQueue, OfADeviceWithOneQueueTrainsWithoutDrawing) {
  for (const HostProfile* profile : {&kBaseline, &kEverything}) {
    PlainHost host(*profile);
    ASSERT_TRUE(host.ok());
    {
      ContextDescription description;
      description.device = host.describe();
      description.budget = {kUnlimited, 100};
      description.queue.family = host.family();
      description.queue.queue = host.queue();
      description.queue.exclusive = true;
      auto adopted = Context::adopt(description);
      ASSERT_TRUE(adopted) << adopted.error().message;
      Player player(**adopted, Mode::exclusive);
      for (std::uint64_t frame = 1; frame <= kFrames + 1; ++frame) {
        player.frame(frame, 0, VK_NULL_HANDLE);
        // Quiesced around the host's wait for its device, then resumed.
        ASSERT_TRUE((*adopted)->quiesce(60'000'000'000));
        if (frame % 50 == 0) host.wait_idle();
        ASSERT_TRUE((*adopted)->resume());
      }
      ASSERT_TRUE((*adopted)->drain(60'000'000'000));
      EXPECT_EQ(player.weights, expected());
    }
    EXPECT_EQ(host.messages(), 0u) << host.first_message();
  }
}

// The queue sometimes refuses: the next submission carries everything of the refused one, in the same order.
struct MoodyHost {
  PlainHost& host;
  int accept = -1;  // submissions until one is refused; < 0: all are accepted
  int refused = 0;

  static VkResult submit(void* user, VkQueue, std::uint32_t count, const VkSubmitInfo* submits,
                         VkFence fence) {
    auto& self = *static_cast<MoodyHost*>(user);
    if (self.accept == 0) {
      ++self.refused;
      return VK_ERROR_OUT_OF_HOST_MEMORY;
    }
    if (self.accept > 0) --self.accept;
    return self.host.submit(count, submits, fence);
  }

  Result<std::unique_ptr<Context>> adopt(const Budget& budget) {
    ContextDescription description;
    description.device = host.describe();
    description.budget = budget;
    description.queue.family = host.family();
    description.queue.queue = host.queue();
    description.queue.user = this;
    description.queue.submit = submit;
    return Context::adopt(description);
  }
};

TEST(HostContexts, ARefusedSubmissionLosesNothing) {
  // Slices of one piece: a frame is refused as a whole or in the middle.
  for (const HostProfile* profile : {&kBaseline, &kEverything}) {
    for (const Budget budget : {Budget{100, 0}, Budget{1000, 1}}) {
      PlainHost host(*profile);
      ASSERT_TRUE(host.ok());
      MoodyHost moody{host};
      {
        auto adopted = moody.adopt(budget);
        ASSERT_TRUE(adopted) << adopted.error().message;
        Player player(**adopted, Mode::submit);
        for (std::uint64_t frame = 1; frame <= kFrames; ++frame) {
          const VkCommandBuffer commands = host.begin_frame(frame);
          const bool refuse = frame == 1 || frame % 17 == 0;
          // A training step is due in odd frames, and makes slices on any device.
          const bool in_the_middle = budget.max_slice_us > 0 && frame > 1 && frame % 2 == 1;
          moody.accept = refuse ? static_cast<int>(in_the_middle ? frame % 3 : 0) : -1;
          const int refused = moody.refused;
          player.frame(frame, 0, commands, refuse);
          EXPECT_EQ(moody.refused, refused + (refuse ? 1 : 0)) << "frame " << frame;
          host.end_frame();
        }
        moody.accept = -1;
        host.finish_frames();
        ASSERT_TRUE((*adopted)->drain(60'000'000'000));
        const VkCommandBuffer commands = host.begin_frame(kFrames + 1);
        player.frame(kFrames + 1, 0, commands);
        host.end_frame();
        host.finish_frames();
        EXPECT_EQ(player.weights, expected())
            << profile->name << ", slices of " << budget.max_slice_us << " us";
      }
      EXPECT_EQ(host.messages(), 0u) << host.first_message();
    }
  }
}

// Work that was due in the refused frame runs before the next frame looks.
TEST(HostContexts, ARefusedFrameComesBeforeTheNext) {
  std::vector<std::vector<float>> read;
  enum class Course { accepted, refused, refused_then_recorded };
  for (const Course course : {Course::accepted, Course::refused, Course::refused_then_recorded}) {
    PlainHost host(kEverything);
    ASSERT_TRUE(host.ok());
    MoodyHost moody{host};
    {
      auto adopted = moody.adopt({0, 0});
      ASSERT_TRUE(adopted) << adopted.error().message;
      Context& context = **adopted;
      Regression model;
      ASSERT_TRUE(model.build(context.runtime()));
      const auto readback = context.runtime().read(std::vector<Variable>{model.weight});
      ASSERT_TRUE(readback) << readback.error().message;
      for (std::uint64_t frame = 1; frame <= 3; ++frame) {
        ASSERT_TRUE(context.frame_begin({frame, 0}));
        if (frame < 3) {
          FrameJob job;
          job.program = &*model.train;
          job.slot = static_cast<std::uint32_t>(frame);
          job.kind = FrameJobKind::learn;
          job.deadline_frame = frame;
          model.fill(job.slot, static_cast<std::uint32_t>(frame));
          ASSERT_TRUE(context.enqueue(std::move(job)));
        } else {
          ASSERT_TRUE(context.enqueue((*readback)->commands(), {}));
        }
        if (frame == 3 && course == Course::refused_then_recorded) {
          ASSERT_TRUE(context.record(host.begin_frame(frame), kFromBudget));
          host.end_frame();
          host.finish_frames();
        } else {
          moody.accept = course != Course::accepted && frame < 3 ? 0 : -1;
          EXPECT_EQ(context.submit(kFromBudget).ok(), moody.accept < 0);
        }
        ASSERT_TRUE(context.frame_end());
      }
      ASSERT_TRUE(context.frame_begin({4, host.safe_frame()}));
      ASSERT_TRUE(context.frame_end());
      ASSERT_TRUE(context.drain(60'000'000'000));
      const auto* floats = reinterpret_cast<const float*>((*readback)->bytes(0).data());
      read.emplace_back(floats, floats + 4);
    }
    EXPECT_EQ(host.messages(), 0u) << host.first_message();
  }
  EXPECT_NE(read[0], std::vector<float>(4, 0));
  EXPECT_EQ(read[1], read[0]);
  EXPECT_EQ(read[2], read[0]);
}

TEST(HostContexts, CommandsOfARefusedSubmissionCanBeCancelled) {
  PlainHost host(kEverything);
  ASSERT_TRUE(host.ok());
  MoodyHost moody{host};
  {
    auto adopted = moody.adopt({});
    ASSERT_TRUE(adopted) << adopted.error().message;
    Context& context = **adopted;
    Regression model;
    ASSERT_TRUE(model.build(context.runtime()));
    bool called = false;
    for (std::uint64_t frame = 1; frame <= 4; ++frame) {
      auto readback = context.runtime().read(std::vector<Variable>{model.weight});
      ASSERT_TRUE(readback) << readback.error().message;
      moody.accept = frame % 2 ? 0 : -1;  // refused, and still pending when it is cancelled
      ASSERT_TRUE(context.frame_begin({frame, 0}));
      ASSERT_TRUE(context.enqueue((*readback)->commands(), [&](std::uint64_t) { called = true; }));
      EXPECT_EQ(context.submit(kFromBudget).ok(), frame % 2 == 0);
      ASSERT_TRUE(context.frame_end());
      context.cancel((*readback)->commands());
    }
    ASSERT_TRUE(context.drain(60'000'000'000));
    EXPECT_FALSE(called);
    moody.accept = 0;
    Regression late;
    ASSERT_TRUE(late.build(context.runtime()));
    if (context.device().capabilities().timestamp_valid_bits > 0) EXPECT_FALSE(context.measure(*late.infer));
    moody.accept = -1;
    ASSERT_TRUE(context.measure(*late.infer));
    Session session(context.runtime(), *context.queue());
    const std::vector<float> ones{1, 1, 1, 1};
    const HostTensor in[] = {HostTensor::from(ones, {1, 4})};
    const auto out = session.run(*late.infer, in);
    ASSERT_TRUE(out) << out.error().message;
    EXPECT_EQ((*out)[0].floats, std::vector<float>{0});
  }
  EXPECT_EQ(host.messages(), 0u) << host.first_message();
}

TEST(HostContexts, RecordOnlyCannotSubmit) {
  PlainHost host(kEverything);
  ASSERT_TRUE(host.ok());
  auto context = adopt(host, Mode::record, {});
  ASSERT_TRUE(context) << context.error().message;
  EXPECT_EQ((*context)->queue(), nullptr);
  EXPECT_EQ((*context)->drain(0).error().code, ErrorCode::unsupported);
  ASSERT_TRUE((*context)->frame_begin({1, 0}));
  const Result<> refused = (*context)->submit(0);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::unsupported);
  EXPECT_FALSE((*context)->record(VK_NULL_HANDLE, 0));
  const VkCommandBuffer commands = host.begin_frame(1);
  ASSERT_TRUE((*context)->record(commands, 0));
  EXPECT_EQ((*context)->submit(0).error().code, ErrorCode::wrong_state);
  ASSERT_TRUE((*context)->frame_end());
  host.end_frame();
  host.finish_frames();
}

}  // namespace
}  // namespace imprint::bridge
