// The thread that submits to an exclusive queue, on a fake device.

#include "engine-bridge/host/submit_thread.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <set>
#include <string>
#include <thread>

#include "engine-bridge/host/host_queue.h"
#include "tests/unit/bridge_played_device.h"

namespace imprint::bridge {
namespace {

using namespace played;
using testing::HasSubstr;

class SubmitThreadTest : public testing::TestWithParam<bool> {  // with timeline semaphores or with fences
 protected:
  SubmitThreadTest() : device_(GetParam()) {
    driver = &driver_;
    in_flight_ = std::move(InFlight::create(device_)).value();
  }

  void start() {
    thread_ = std::move(SubmitThread::start(device_, *in_flight_, [this](Submission& submission) {
                const VkSubmitInfo& info = submission.info();
                std::unique_lock lock(mutex_);
                ++in_gate_;
                open_gate_.wait(lock, [&] { return gate_; });
                ++tries_;
                threads_.insert(std::this_thread::get_id());
                if (result_ != VK_SUCCESS) return result_;
                EXPECT_EQ(info.pNext != nullptr, GetParam());
                EXPECT_EQ(submission.fence() == VK_NULL_HANDLE, GetParam());
                order_.push_back(info.pCommandBuffers[0]);
                return VK_SUCCESS;
              })).value();
  }

  vk::Ticket post(std::uintptr_t commands) {
    const VkFence fence = GetParam() ? VK_NULL_HANDLE : *in_flight_->take_fence();
    const VkCommandBuffer list[] = {handle<VkCommandBuffer>(commands)};
    const vk::Ticket ticket = device_.completion().next();
    thread_->next().fill(ticket, in_flight_->timeline(), fence, list, {}, {});
    in_flight_->posted(ticket, fence);
    thread_->post();
    return ticket;
  }

  void set(VkResult result, bool gate = true) {
    const std::lock_guard lock(mutex_);
    result_ = result;
    gate_ = gate;
    open_gate_.notify_all();
  }

  Driver driver_;
  PlayedDevice device_;
  std::unique_ptr<InFlight> in_flight_;
  std::mutex mutex_;
  std::condition_variable open_gate_;
  bool gate_ = true;
  VkResult result_ = VK_SUCCESS;
  int tries_ = 0;
  std::atomic<int> in_gate_{0};
  std::vector<VkCommandBuffer> order_;
  std::set<std::thread::id> threads_;
  std::unique_ptr<SubmitThread> thread_;
};

// When the host learns of a lost device, no thread submits any more.
TEST_P(SubmitThreadTest, StopsOnceTheDeviceIsLost) {
  start();
  set(VK_SUCCESS, false);
  post(1);
  post(2);
  while (in_gate_ == 0) std::this_thread::yield();
  device_.mark_lost();
  std::thread opens([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    set(VK_SUCCESS);
  });
  thread_->stop_submitting();
  EXPECT_EQ(tries_, 1) << "running submissions have returned";
  opens.join();
  thread_->wait_until_submitted();
  EXPECT_EQ(tries_, 1) << "and no submission followed";
}

TEST_P(SubmitThreadTest, SubmitsInTheOrderOfPosting) {
  start();
  std::vector<VkCommandBuffer> posted;
  for (std::uintptr_t i = 1; i <= 500; ++i) {  // more than the ring holds at first
    posted.push_back(handle<VkCommandBuffer>(i));
    post(i);
  }
  thread_->wait_until_submitted();
  EXPECT_EQ(order_, posted);
  EXPECT_EQ(threads_.size(), 1u);
  EXPECT_FALSE(threads_.contains(std::this_thread::get_id()));
}

TEST_P(SubmitThreadTest, RetriesRefusedWorkAndAcceptsNoOther) {
  start();
  set(VK_ERROR_OUT_OF_HOST_MEMORY);
  post(1);
  post(2);
  thread_->wait_until_submitted();
  const Result<> refused = thread_->check_accepting();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::out_of_host_memory);
  EXPECT_THAT(refused.error().message, HasSubstr("tried again"));
  EXPECT_FALSE(device_.lost());
  set(VK_SUCCESS);
  while (!thread_->check_accepting()) std::this_thread::yield();
  thread_->wait_until_submitted();
  EXPECT_EQ(order_, (std::vector{handle<VkCommandBuffer>(1), handle<VkCommandBuffer>(2)}));
}

TEST_P(SubmitThreadTest, UnsubmittedWorkIsNotWaitedForOnTheDevice) {
  start();
  set(VK_SUCCESS, false);
  const vk::Ticket ticket = post(1);
  EXPECT_LT(in_flight_->poll(), ticket);
  const Result<> early = in_flight_->wait(ticket, 1000000);
  ASSERT_FALSE(early);
  EXPECT_EQ(early.error().code, ErrorCode::not_ready);
  EXPECT_EQ(driver_.waits, 0);
  set(VK_SUCCESS);
  EXPECT_TRUE(in_flight_->wait(ticket, 60'000'000'000));
  EXPECT_EQ(driver_.waits, 1);
}

TEST_P(SubmitThreadTest, ALostDeviceEndsItAndWakesWaitingThreads) {
  start();
  set(VK_ERROR_DEVICE_LOST, false);
  const vk::Ticket ticket = post(1);
  post(2);
  std::thread opener([this] { set(VK_ERROR_DEVICE_LOST); });
  EXPECT_EQ(in_flight_->wait(ticket, 60'000'000'000).error().code, ErrorCode::device_lost);
  opener.join();
  thread_->wait_until_submitted();
  EXPECT_TRUE(device_.lost());
  EXPECT_EQ(tries_, 1) << "the second was not tried";
}

TEST_P(SubmitThreadTest, SubmitsTheRestWhenItEnds) {
  start();
  set(VK_SUCCESS, false);
  post(1);
  post(2);
  set(VK_SUCCESS);
  thread_.reset();
  EXPECT_EQ(order_.size(), 2u);
}

TEST_P(SubmitThreadTest, EndsWhileItIsRefused) {
  start();
  set(VK_ERROR_OUT_OF_DEVICE_MEMORY);
  post(1);
  thread_->wait_until_submitted();
  thread_.reset();
  EXPECT_TRUE(order_.empty());
}

// The host may submit its wait for a binary semaphore right after the call.
TEST_P(SubmitThreadTest, ABinarySignalIsSubmittedBeforeTheCallReturns) {
  QueueAccess access;
  access.queue = handle<VkQueue>(2);
  access.exclusive = true;
  {
    HostQueue queue(device_, *in_flight_, access);
    ASSERT_TRUE(queue.start());
    const VkCommandBuffer commands[] = {handle<VkCommandBuffer>(3)};
    const HostSemaphore signal{handle<VkSemaphore>(4)};
    ASSERT_TRUE(queue.submit(commands, {}, {&signal, 1}));
    EXPECT_EQ(driver_.calls, std::vector<std::string>{"submit"});
    EXPECT_EQ(device_.counters().submits, 1u);
  }
}

TEST(Submission, PointsToNothingThatItDoesNotHave) {
  Submission submission;
  const VkCommandBuffer commands[] = {handle<VkCommandBuffer>(1)};
  const HostSemaphore semaphore{handle<VkSemaphore>(2), false, 0};
  submission.fill(vk::Ticket{1}, VK_NULL_HANDLE, VK_NULL_HANDLE, commands, {&semaphore, 1}, {&semaphore, 1});
  EXPECT_EQ(submission.info().pWaitSemaphores[0], semaphore.semaphore);
  EXPECT_EQ(submission.info().pSignalSemaphores[0], semaphore.semaphore);
  submission.fill(vk::Ticket{2}, VK_NULL_HANDLE, VK_NULL_HANDLE, {}, {}, {});
  const VkSubmitInfo& info = submission.info();
  EXPECT_EQ(info.waitSemaphoreCount + info.commandBufferCount + info.signalSemaphoreCount, 0u);
  EXPECT_EQ(info.pWaitSemaphores, nullptr);
  EXPECT_EQ(info.pWaitDstStageMask, nullptr);
  EXPECT_EQ(info.pCommandBuffers, nullptr);
  EXPECT_EQ(info.pSignalSemaphores, nullptr);
}

INSTANTIATE_TEST_SUITE_P(Completion, SubmitThreadTest, testing::Values(true, false), [](const auto& mode) {
  return mode.param ? std::string("timeline") : std::string("fences");
});

}  // namespace
}  // namespace imprint::bridge
