// ThreadPool: every part runs once, on the pool's own threads, on a host's, and where a host lends none.

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "compute/base/thread_pool.h"

namespace imprint {
namespace {

// Expects each part once, and no thread number in two parts at a time.
void expect_all_parts(ThreadPool& pool, std::uint32_t parts) {
  std::vector<std::atomic<int>> runs(parts), users(pool.threads());
  std::atomic<bool> shared = false;
  pool.each(parts, [&](std::uint32_t part, std::uint32_t thread) {
    ASSERT_LT(thread, pool.threads());
    if (users[thread].fetch_add(1) != 0) shared = true;
    runs[part].fetch_add(1);
    users[thread].fetch_sub(1);
  });
  for (std::uint32_t part = 0; part < parts; ++part) ASSERT_EQ(runs[part].load(), 1) << part;
  EXPECT_FALSE(shared);
}

TEST(ThreadPool, RunsEachPartOnce) {
  for (const std::uint32_t threads : {1u, 2u, 5u}) {
    const auto pool = ThreadPool::create({.threads = threads});
    EXPECT_EQ(pool->threads(), threads);
    for (const std::uint32_t parts : {0u, 1u, 2u, 3u, 64u, 1000u})
      for (int again = 0; again < 20; ++again) expect_all_parts(*pool, parts);
  }
}

TEST(ThreadPool, WakesThreadsThatSleep) {
  const auto pool = ThreadPool::create({.threads = 2});
  for (int again = 0; again < 3; ++again) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    // Ends only if two threads are in it at a time.
    std::atomic<int> inside = 0;
    pool->each(2, [&](std::uint32_t part, std::uint32_t thread) {
      EXPECT_EQ(part, thread);  // each begins with its own share
      inside.fetch_add(1);
      while (inside.load() < 2) std::this_thread::yield();
    });
    EXPECT_EQ(inside.load(), 2);
  }
}

TEST(ThreadPool, ServesCallersAtTheSameTime) {
  const auto pool = ThreadPool::create({.threads = 3});
  std::array<std::atomic<int>, 3> sums{};
  std::vector<std::thread> callers;
  for (std::size_t caller = 0; caller < sums.size(); ++caller)
    callers.emplace_back([&, caller] {
      for (int again = 0; again < 200; ++again)
        pool->each(
            10, [&](std::uint32_t part, std::uint32_t) { sums[caller].fetch_add(static_cast<int>(part)); });
    });
  for (std::thread& caller : callers) caller.join();
  for (const auto& sum : sums) EXPECT_EQ(sum.load(), 200 * 45);
}

// A host's job system that runs jobs at once, or keeps them until they are asked for.
struct Host {
  bool at_once = false;
  std::mutex mutex;
  std::deque<std::function<void()>> kept;
  int submits = 0;

  HostJobs jobs() {
    return {[](void* user, void (*run)(void*), void* data) {
              Host& host = *static_cast<Host*>(user);
              if (host.at_once) run(data);
              const std::lock_guard lock(host.mutex);
              ++host.submits;
              if (!host.at_once) host.kept.emplace_back([=] { run(data); });
            },
            this};
  }
};

TEST(ThreadPool, AHostMayRunJobsInsideSubmit) {
  Host host;
  host.at_once = true;
  const auto pool = ThreadPool::create({.threads = 4, .host = host.jobs()});
  for (int again = 0; again < 20; ++again) expect_all_parts(*pool, 50);
  EXPECT_GE(host.submits, 20);
}

TEST(ThreadPool, AHostThatLendsNothingCostsNoProgress) {
  Host host;
  {
    const auto pool = ThreadPool::create({.threads = 3, .host = host.jobs()});
    for (int again = 0; again < 20; ++again) expect_all_parts(*pool, 50);
  }
  EXPECT_EQ(host.submits, 2);               // asked once per thread
  for (const auto& job : host.kept) job();  // after the pool's owner is gone
}

TEST(ThreadPool, HostThreadsCompute) {
  Host host;
  const auto pool = ThreadPool::create({.threads = 2, .host = host.jobs()});
  std::atomic<bool> stop = false;
  std::thread worker([&] {
    while (!stop) {
      std::function<void()> job;
      {
        const std::lock_guard lock(host.mutex);
        if (!host.kept.empty()) {
          job = std::move(host.kept.front());
          host.kept.pop_front();
        }
      }
      if (job) job();
      std::this_thread::yield();
    }
  });
  std::atomic<int> inside = 0;
  pool->each(2, [&](std::uint32_t, std::uint32_t) {
    inside.fetch_add(1);
    while (inside.load() < 2) std::this_thread::yield();
  });
  EXPECT_EQ(inside.load(), 2);
  stop = true;
  worker.join();
}

}  // namespace
}  // namespace imprint
