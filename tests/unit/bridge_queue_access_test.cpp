// The host's queue and the order of completion, on a fake device.

#include "engine-bridge/host/host_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/unit/bridge_played_device.h"

namespace imprint::bridge {
namespace {

using namespace played;
using testing::HasSubstr;

class QueueTest : public testing::TestWithParam<bool> {  // with timeline semaphores or with fences
 protected:
  QueueTest() : device_(GetParam()) {
    driver = &driver_;
    in_flight_ = std::move(InFlight::create(device_)).value();
    device_.completion().set_poll([this] { return in_flight_->poll(); });
    access_.queue = handle<VkQueue>(2);
    access_.single_thread = true;
  }
  ~QueueTest() override {
    device_.completion().set_poll({});
    in_flight_.reset();
    EXPECT_EQ(driver_.fences, 0);
    EXPECT_EQ(driver_.semaphores, 0);
  }

  void finish_first(std::size_t count) {
    if (GetParam()) {
      driver_.counter = driver_.signal_values[count - 1];
    } else {
      for (std::size_t i = 0; i < count; ++i) driver_.signalled.insert(driver_.submitted_fences[i]);
    }
  }

  Driver driver_;
  PlayedDevice device_;
  std::unique_ptr<InFlight> in_flight_;
  QueueAccess access_;
  const VkCommandBuffer commands_[1] = {handle<VkCommandBuffer>(3)};
};

TEST_P(QueueTest, TicketsCompleteInOrder) {
  HostQueue queue(device_, *in_flight_, access_);
  const vk::Ticket first = *queue.submit(commands_), second = *queue.submit(commands_);
  EXPECT_LT(first, second);
  EXPECT_FALSE(device_.is_complete(first));
  finish_first(1);
  EXPECT_TRUE(device_.is_complete(first));
  EXPECT_FALSE(device_.is_complete(second));
  finish_first(2);
  EXPECT_TRUE(device_.is_complete(second));
  EXPECT_EQ(device_.counters().submits, 2u);
  EXPECT_EQ(device_.counters().waits, 0u);
}

TEST_P(QueueTest, UsesASemaphoreOrAsManyFencesAsAreInFlight) {
  HostQueue queue(device_, *in_flight_, access_);
  for (int frame = 0; frame < 50; ++frame) {
    ASSERT_TRUE(queue.submit(commands_));
    if (driver_.submitted_fences.size() > 2) finish_first(driver_.submitted_fences.size() - 2);
    device_.completion().poll();
  }
  EXPECT_EQ(driver_.semaphores, GetParam() ? 1 : 0);
  EXPECT_EQ(driver_.fences, GetParam() ? 0 : 3);
  for (const VkFence fence : driver_.submitted_fences) EXPECT_EQ(fence == VK_NULL_HANDLE, GetParam());
}

TEST_P(QueueTest, RecordedWorkHoldsBackLaterWork) {
  HostQueue queue(device_, *in_flight_, access_);
  const vk::Ticket recorded = device_.completion().next();
  in_flight_->recorded(recorded, 7);
  const vk::Ticket submitted = *queue.submit(commands_);
  finish_first(1);
  EXPECT_FALSE(device_.is_complete(recorded));
  EXPECT_FALSE(device_.is_complete(submitted));
  const Result<> blocked = queue.wait(submitted, 1000);
  ASSERT_FALSE(blocked);
  EXPECT_EQ(blocked.error().code, ErrorCode::not_ready);
  EXPECT_THAT(blocked.error().message, HasSubstr("frame 7"));
  EXPECT_EQ(driver_.waits, 0);
  in_flight_->set_safe_frame(6);
  EXPECT_FALSE(device_.is_complete(recorded));
  in_flight_->set_safe_frame(7);
  EXPECT_TRUE(device_.is_complete(submitted));
}

TEST_P(QueueTest, SafeFrameNeverFalls) {
  const vk::Ticket ticket = device_.completion().next();
  in_flight_->set_safe_frame(9);
  in_flight_->set_safe_frame(0);
  in_flight_->recorded(ticket, 8);
  EXPECT_TRUE(device_.is_complete(ticket));
}

TEST_P(QueueTest, WaitEndsWithTheTicketAndIsCounted) {
  HostQueue queue(device_, *in_flight_, access_);
  const vk::Ticket first = *queue.submit(commands_), second = *queue.submit(commands_);
  ASSERT_TRUE(queue.wait(second, 1000000));
  EXPECT_TRUE(device_.is_complete(first));
  EXPECT_EQ(device_.counters().waits, 1u);
  EXPECT_EQ(device_.counters().frame_waits, 0u);
  ASSERT_TRUE(queue.wait(first, 0));
  EXPECT_EQ(device_.counters().waits, 1u) << "it was complete";
  device_.counters().enter_frame();
  ASSERT_TRUE(queue.wait(*queue.submit(commands_), 1000));
  EXPECT_EQ(device_.counters().frame_waits, 1u);
}

TEST_P(QueueTest, WaitRunsOutOfTime) {
  HostQueue queue(device_, *in_flight_, access_);
  const vk::Ticket ticket = *queue.submit(commands_);
  driver_.wait_result = VK_TIMEOUT;
  const Result<> status = queue.wait(ticket, 5000000);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::not_ready);
  EXPECT_THAT(status.error().message, HasSubstr("5 ms"));
}

TEST_P(QueueTest, AForeignTicketIsNotWaitedFor) {
  HostQueue queue(device_, *in_flight_, access_);
  const Result<> status = queue.wait({5}, 1000);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::invalid_argument);
}

TEST_P(QueueTest, ALostDeviceIsLeftAlone) {
  HostQueue queue(device_, *in_flight_, access_);
  ASSERT_TRUE(queue.submit(commands_));
  driver_.submit_result = VK_ERROR_DEVICE_LOST;
  const auto refused = queue.submit(commands_);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::device_lost);
  EXPECT_TRUE(device_.lost());
  EXPECT_EQ(device_.last_ticket().value, 1u) << "a failed submission leaves no ticket";
  const std::size_t calls = driver_.calls.size();
  EXPECT_EQ(queue.submit(commands_).error().code, ErrorCode::device_lost);
  EXPECT_EQ(queue.wait({1}, 1000).error().code, ErrorCode::device_lost);
  EXPECT_EQ(driver_.calls.size(), calls);
  EXPECT_EQ(driver_.waits, 0);
}

TEST_P(QueueTest, ARefusedSubmissionMayBeTriedAgain) {
  HostQueue queue(device_, *in_flight_, access_);
  driver_.submit_result = VK_ERROR_OUT_OF_DEVICE_MEMORY;
  EXPECT_EQ(queue.submit(commands_).error().code, ErrorCode::out_of_device_memory);
  driver_.submit_result = VK_SUCCESS;
  ASSERT_TRUE(queue.submit(commands_));
  EXPECT_LE(driver_.fences, 1) << "the fence of the refused submission is used again";
}

TEST_P(QueueTest, LocksAroundTheSubmission) {
  access_.single_thread = false;
  access_.user = &driver_;
  access_.lock = [](void* user, VkQueue queue) {
    EXPECT_EQ(queue, handle<VkQueue>(2));
    static_cast<Driver*>(user)->calls.push_back("lock");
  };
  access_.unlock = [](void* user, VkQueue) { static_cast<Driver*>(user)->calls.push_back("unlock"); };
  HostQueue queue(device_, *in_flight_, access_);
  ASSERT_TRUE(queue.submit(commands_));
  EXPECT_EQ(driver_.calls, (std::vector<std::string>{"lock", "submit", "unlock"}));
  driver_.submit_result = VK_ERROR_DEVICE_LOST;
  ASSERT_FALSE(queue.submit(commands_));
  EXPECT_EQ(driver_.calls.back(), "unlock") << "also when it fails";
}

TEST_P(QueueTest, GoesThroughTheHostsSubmit) {
  access_.single_thread = false;
  access_.user = &driver_;
  access_.submit = [](void* user, VkQueue queue, std::uint32_t count, const VkSubmitInfo* submits,
                      VkFence fence) {
    static_cast<Driver*>(user)->calls.push_back("host");
    EXPECT_EQ(count, 1u);
    return queue_submit(queue, count, submits, fence);
  };
  HostQueue queue(device_, *in_flight_, access_);
  ASSERT_TRUE(queue.submit(commands_));
  EXPECT_EQ(driver_.calls, (std::vector<std::string>{"host", "submit"}));
}

TEST_P(QueueTest, RunsWhereTheHostSubmits) {
  access_.single_thread = false;
  access_.user = &driver_;
  access_.run = [](void* user, void (*work)(void* data, VkQueue queue), void* data) {
    static_cast<Driver*>(user)->calls.push_back("host");
    work(data, handle<VkQueue>(2));
  };
  HostQueue queue(device_, *in_flight_, access_);
  ASSERT_TRUE(queue.submit(commands_));
  EXPECT_EQ(driver_.calls, (std::vector<std::string>{"host", "submit"}));
  access_.run = [](void*, void (*)(void*, VkQueue), void*) {};
  HostQueue idle(device_, *in_flight_, access_);
  const auto refused = idle.submit(commands_);
  ASSERT_FALSE(refused) << "the host never ran it";
  EXPECT_EQ(refused.error().code, ErrorCode::wrong_state);
  EXPECT_THAT(refused.error().message, HasSubstr("run_on_queue: it returned without calling work"));
}

TEST_P(QueueTest, WithoutAFenceATimelineTellsOrElseFrames) {
  access_.single_thread = false;
  access_.submit = [](void*, VkQueue queue, std::uint32_t count, const VkSubmitInfo* submits, VkFence fence) {
    EXPECT_EQ(fence, VkFence{VK_NULL_HANDLE});
    return queue_submit(queue, count, submits, fence);
  };
  access_.submit_without_fence = true;
  HostQueue queue(device_, *in_flight_, access_);
  EXPECT_EQ(queue.completes_by_frames(), !GetParam());
  in_flight_->begin_frame(5);
  const auto ticket = queue.submit(commands_);
  ASSERT_TRUE(ticket);
  EXPECT_EQ(driver_.fences, 0);
  EXPECT_LT(in_flight_->poll(), *ticket);
  if (GetParam()) driver_.counter = ticket->value;
  in_flight_->set_safe_frame(4);
  EXPECT_EQ(in_flight_->poll() == *ticket, GetParam());
  in_flight_->set_safe_frame(5);
  EXPECT_EQ(in_flight_->poll(), *ticket);
}

INSTANTIATE_TEST_SUITE_P(Completion, QueueTest, testing::Values(true, false), [](const auto& mode) {
  return mode.param ? std::string("timeline") : std::string("fences");
});

std::string refusal(const QueueAccess& access) {
  const Result<> status = check_queue_access(access);
  if (status) return {};
  EXPECT_EQ(status.error().code, ErrorCode::invalid_argument);
  return status.error().message;
}

TEST(QueueAccessCheck, NamesMissingAndExtraFields) {
  QueueAccess access;
  EXPECT_EQ(refusal(access), "") << "record only";
  access.queue = handle<VkQueue>(2);
  EXPECT_THAT(refusal(access), HasSubstr("without a way to share it"));
  access.lock = [](void*, VkQueue) {};
  EXPECT_THAT(refusal(access), HasSubstr("unlock: found null"));
  access.unlock = [](void*, VkQueue) {};
  EXPECT_EQ(refusal(access), "");
  access.single_thread = true;
  EXPECT_THAT(refusal(access), HasSubstr("found lock and unlock, single_thread"));
  access.lock = nullptr;
  EXPECT_THAT(refusal(access), HasSubstr("lock: found null"));
  access.unlock = nullptr;
  EXPECT_EQ(refusal(access), "");
  access.submit_without_fence = true;
  EXPECT_THAT(refusal(access),
              HasSubstr("submit_without_fence: found with single_thread, expected with submit"));
  access.submit_without_fence = false;
  access.internally_synchronized = true;
  EXPECT_THAT(refusal(access), HasSubstr("found single_thread, internally_synchronized"));
  access.single_thread = false;
  EXPECT_EQ(refusal(access), "");
  access.exclusive = true;
  EXPECT_THAT(refusal(access), HasSubstr("found internally_synchronized, exclusive"));
  access.internally_synchronized = false;
  EXPECT_EQ(refusal(access), "");
  access.lock = access.unlock = [](void*, VkQueue) {};
  EXPECT_EQ(refusal(access), "") << "a lock may be added";
  access.submit_without_fence = true;
  EXPECT_THAT(refusal(access), HasSubstr("submit_without_fence: found with lock and unlock"));
  access.queue = VK_NULL_HANDLE;
  EXPECT_THAT(refusal(access), HasSubstr("queue: found null"));
}

}  // namespace
}  // namespace imprint::bridge
