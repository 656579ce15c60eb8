// Threads that run jobs outside frames.

#include "compute/base/job_queue.h"

#include <gtest/gtest.h>

#include <atomic>
#include <deque>
#include <fstream>
#include <future>
#include <set>
#include <string>

namespace imprint {
namespace {

std::shared_ptr<JobQueue> make(std::uint32_t threads, const HostJobs& host = {}) {
  auto made = JobQueue::create({threads, host, {}});
  EXPECT_TRUE(made.ok());
  return std::move(made).value();
}

// Jobs that a host received and has not run yet.
struct HostQueue {
  struct Given {
    void (*run)(void* data);
    void* data;
  };
  std::deque<Given> given;

  HostJobs jobs() {
    return {[](void* self, void (*run)(void* data), void* data) {
              static_cast<HostQueue*>(self)->given.push_back({run, data});
            },
            this};
  }
  void run_next() {
    const Given next = given.front();
    given.pop_front();
    next.run(next.data);
  }
};

std::string thread_name() {
  std::string name;
  std::ifstream("/proc/thread-self/comm") >> name;
  return name;
}

TEST(JobQueue, OwnThreadsDoItAndHaveAName) {
  const auto queue = make(2);
  std::promise<void> met;
  std::shared_future<void> meeting = met.get_future().share();
  std::atomic<int> here{0}, done{0}, named{0};
  for (int i = 0; i < 2; ++i) {
    queue->add(nullptr, [&] {
      if (++here == 2) met.set_value();
      meeting.wait();  // two jobs: this one waits for the other
      named += thread_name() == "imprint-jobs";
      ++done;
    });
  }
  EXPECT_TRUE(queue->wait([&] { return done == 2; }));
#ifdef __linux__
  EXPECT_EQ(named, 2);
#endif
  EXPECT_EQ(queue->waiting(), 0u);
}

TEST(JobQueue, WithoutThreadsTheWaitingThreadRunsJobs) {
  const auto queue = make(0);
  std::vector<int> order;
  std::set<std::thread::id> threads;
  for (int i = 0; i < 3; ++i) {
    queue->add(nullptr, [&, i] {
      order.push_back(i);
      threads.insert(std::this_thread::get_id());
    });
  }
  EXPECT_EQ(queue->waiting(), 3u);
  EXPECT_TRUE(queue->run_one());
  EXPECT_EQ(order, (std::vector<int>{0}));
  EXPECT_TRUE(queue->wait([&] { return order.size() == 2; })) << "and only the job that it waits for";
  EXPECT_EQ(queue->waiting(), 1u);
  EXPECT_TRUE(queue->run_one());
  EXPECT_FALSE(queue->run_one());
  EXPECT_EQ(order, (std::vector<int>{0, 1, 2}));
  EXPECT_EQ(threads, std::set{std::this_thread::get_id()});
}

TEST(JobQueue, AHostRunsEachInItsOwnTime) {
  HostQueue host;
  const auto queue = make(4, host.jobs());
  int done = 0;
  queue->add(nullptr, [&] { ++done; });
  queue->add(nullptr, [&] { ++done; });
  ASSERT_EQ(host.given.size(), 2u);
  EXPECT_EQ(done, 0) << "no other thread runs it";
  host.run_next();
  EXPECT_EQ(done, 1);
  host.run_next();
  EXPECT_EQ(done, 2);
}

// The host's workers are all busy, or the waiting thread is the only one.
TEST(JobQueue, AWaitingThreadNeedsNoHost) {
  HostQueue host;
  auto queue = make(0, host.jobs());
  int done = 0;
  queue->add(nullptr, [&] { ++done; });
  EXPECT_TRUE(queue->wait([&] { return done == 1; }));
  const std::weak_ptr<JobQueue> gone = queue;
  queue.reset();
  host.run_next();  // a late call, after everything is gone
  EXPECT_EQ(done, 1);
  EXPECT_TRUE(gone.expired());
}

TEST(JobQueue, AHostMayRunAtOnce) {
  const HostJobs at_once{[](void*, void (*run)(void* data), void* data) { run(data); }, nullptr};
  const auto queue = make(0, at_once);
  int done = 0;
  queue->add(nullptr, [&] {
    queue->add(nullptr, [&] { ++done; });
    ++done;
  });
  EXPECT_EQ(done, 2);
}

TEST(JobQueue, WaitingHasAnEnd) {
  const auto queue = make(1);
  EXPECT_FALSE(queue->wait([] { return false; }, 1'000'000));
  const auto none = make(0);
  EXPECT_FALSE(none->wait([] { return false; }, 1'000'000));
  EXPECT_TRUE(none->wait([] { return true; }, 0));
}

TEST(JobQueue, WithdrawnJobsNeverBegin) {
  const auto queue = make(1);
  std::promise<void> begun, go;
  std::atomic<bool> finished{false}, other{false};
  const int mine = 0, others = 0;
  queue->add(&mine, [&] {
    begun.set_value();
    go.get_future().wait();
    finished = true;
  });
  begun.get_future().wait();
  queue->add(&mine, [] { ADD_FAILURE() << "withdrawn"; });
  queue->add(&others, [&] { other = true; });
  std::thread opens([&] {
    // until the queue has dropped the jobs that were not started
    while (queue->waiting() > 1) std::this_thread::yield();
    go.set_value();
  });
  queue->withdraw(&mine);
  EXPECT_TRUE(finished) << "waits for the job that was running";
  EXPECT_TRUE(queue->wait([&] { return other.load(); }));
  opens.join();
}

// cancel waits for the running job, not for queued ones, and not forever.
TEST(JobQueue, IsIdleAfterTheRunningJob) {
  const auto none = make(0);
  none->add(nullptr, [] { ADD_FAILURE() << "a cancelled job ran"; });
  none->wait_for_running(std::chrono::minutes(1));  // at once
  none->withdraw(nullptr);

  const auto queue = make(1);
  std::promise<void> begun, go;
  std::atomic<bool> finished{false};
  queue->add(nullptr, [&] {
    begun.set_value();
    go.get_future().wait();
    finished = true;
  });
  begun.get_future().wait();
  std::promise<void> end;
  queue->add(nullptr, [&, over = end.get_future().share()] { over.wait(); });  // starts when the other ends
  queue->wait_for_running(std::chrono::milliseconds(1));
  EXPECT_FALSE(finished) << "its time was used up";
  // A job that started before the call would count, so the first one ends during it.
  std::thread opens([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    go.set_value();
  });
  queue->wait_for_running(std::chrono::seconds(10));
  EXPECT_TRUE(finished);
  end.set_value();
  opens.join();
}

// A job's captures are released before any thread learns that it is complete.
TEST(JobQueue, AJobHoldsNothingOnceItIsDone) {
  const auto queue = make(1);
  auto held = std::make_shared<int>(1);
  std::atomic<bool> ran{false};
  const int owner = 0;
  queue->add(&owner, [&ran, held] { ran = true; });
  queue->wait([&] { return ran.load(); });
  queue->withdraw(&owner);
  EXPECT_EQ(held.use_count(), 1);
}

// A job that waits for others on the only thread runs them itself.
TEST(JobQueue, AJobMayWaitForOthers) {
  const auto queue = make(1);
  const int owner = 0;
  std::atomic<bool> inner{false}, outer{false};
  queue->add(&owner, [&, q = queue.get()] {
    q->add(&owner, [&] { inner = true; });
    outer = q->wait([&] { return inner.load(); });
  });
  EXPECT_TRUE(queue->wait([&] { return outer.load(); }, 60'000'000'000));
}

TEST(JobQueue, ManyAddAndManyDo) {
  const auto queue = make(3);
  std::atomic<int> done{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 250; ++i) queue->add(&done, [&] { ++done; });
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(queue->wait([&] { return done == 1000; }));
}

}  // namespace
}  // namespace imprint
