// R28. Threads that compile and write files: the host's, Imprint's, or the one that waits in a call.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <imprint/imprint.hpp>

#include "tests/hosts/assert_works.h"

namespace {

using ::testing::HasSubstr;
using namespace imprint::game;

struct Given {
  void (*run)(void* data);
  void* data;
};

// The host's job system.
class Workers {
 public:
  explicit Workers(int count) {
    for (int i = 0; i < count; ++i) threads_.emplace_back([this] { work(); });
    for (const std::thread& thread : threads_) ids.insert(thread.get_id());
  }
  ~Workers() {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    added_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }
  void lend_to(imp_host& host) {
    host.user = this;
    host.job_submit = [](void* user, void (*run)(void* data), void* data) {
      auto& self = *static_cast<Workers*>(user);
      const std::lock_guard lock(self.mutex_);
      self.given_.push_back({run, data});
      self.added_.notify_one();
    };
  }

  std::set<std::thread::id> ids;
  std::function<void(const Given& given)> around = [](const Given& given) {
    given.run(given.data);
  };  // on a worker

 private:
  void work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      added_.wait(lock, [&] { return stop_ || !given_.empty(); });
      if (given_.empty()) return;
      const Given next = given_.front();
      given_.pop_front();
      lock.unlock();
      around(next);
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable added_;
  std::deque<Given> given_;
  bool stop_ = false;
  std::vector<std::thread> threads_;
};

// Counts the threads of this process with that name.
std::multiset<std::string> threads_of_ours() {
  std::multiset<std::string> names;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::string name;
    std::ifstream(task.path() / "comm") >> name;
    if (name.starts_with("imprint")) names.insert(name);
  }
  return names;
}
std::size_t threads_of_all() {
  const std::filesystem::directory_iterator tasks("/proc/self/task");
  return static_cast<std::size_t>(std::distance(begin(tasks), end(tasks)));
}

// Linux lists a joined thread a moment longer: join() returns when the kernel clears the thread's id, which
// is before it leaves /proc.
template <class Holds>
bool soon(const Holds& holds) {
  for (int i = 0; i < 2000 && !holds(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return holds();
}
bool soon_none_of_ours() {
  return soon([] { return threads_of_ours().empty(); });
}

// A context that a test leaves keeps its job threads. The program fails then, in whatever order its tests
// run.
class NoContextIsLeft : public ::testing::Environment {
  void TearDown() override { EXPECT_TRUE(soon_none_of_ours()) << "a test of this program left a context"; }
};
[[maybe_unused]] const ::testing::Environment* const no_context_is_left =
    ::testing::AddGlobalTestEnvironment(new NoContextIsLeft);

class R28Jobs : public ::testing::Test {
 protected:
  Outcome open(std::uint32_t threads, const imp_host& host = imp_host_init()) {
    imp_standalone_info device = imp_standalone_info_init();
    device.device = std::getenv("IMPRINT_TEST_DEVICE");
    imp_limits limits = imp_limits_init();
    limits.worker_threads = threads;
    Made<Context> made = Context::create_standalone(Library(imp_get_api), device, host, limits);
    context_ = std::move(*made);
    return made.outcome;
  }

  void add_pet() {
    const std::uint32_t choices = 3, hidden = 8;
    BrainDesc desc;
    desc.observation_count = 4;
    desc.branch_sizes = {choices};
    desc.hidden_sizes = {hidden};
    desc.learner = FeedbackOptions();
    Made<Brain> brain = context_.create_brain(desc);
    ASSERT_WORKS(brain.outcome);
    brain_ = std::move(*brain);
    Made<Agent> agent = brain_.create_agent();
    ASSERT_WORKS(agent.outcome);
    agent_ = std::move(*agent);
    ASSERT_WORKS(context_.warmup());
  }

  void frame() {
    ++frame_;
    const float seen[] = {1, 0, -1, 0.5f};
    ASSERT_WORKS(context_.frame_begin(frame_, static_cast<double>(frame_) / 60));
    ASSERT_WORKS(agent_.observe(seen));
    if (agent_.act().outcome.ready()) ASSERT_WORKS(agent_.reward(1.0f));
    ASSERT_WORKS(context_.submit());
    ASSERT_WORKS(context_.frame_end());
  }

  // Saves and plays on until the bytes have left the GPU and wait for the file, or are written.
  void save() {
    (void)std::filesystem::remove(path_);
    ASSERT_WORKS(brain_.save(path_.c_str()));
    for (int i = 0;
         i < 1000 && context_.stats()->waiting_jobs == 0 && brain_.save_status().code() == Code::not_ready;
         ++i) {
      ASSERT_NO_FATAL_FAILURE(frame());
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

  void TearDown() override { (void)std::filesystem::remove(path_); }

  const std::string path_ = ::testing::TempDir() + "imprint-jobs-" + std::to_string(::getpid()) + ".brain";
  Context context_;
  Brain brain_;
  Agent agent_;
  std::uint64_t frame_ = 0;
};

TEST_F(R28Jobs, OwnWorkersHaveTheRequestedNumberAndNames) {
  ASSERT_TRUE(soon_none_of_ours()) << "an earlier test left a context";
  ASSERT_WORKS(open(3));
  EXPECT_EQ(threads_of_ours(), (std::multiset<std::string>{"imprint-jobs", "imprint-jobs", "imprint-jobs"}));
  ASSERT_NO_FATAL_FAILURE(add_pet());
  EXPECT_EQ(threads_of_ours().size(), 3u);
  ASSERT_WORKS(context_.destroy());
  EXPECT_TRUE(soon_none_of_ours());
  agent_.release(), brain_.release();
}

TEST_F(R28Jobs, WithoutWorkersThereIsNoOwnThread) {
  ASSERT_TRUE(soon_none_of_ours()) << "an earlier test left a context";
  const std::size_t before = threads_of_all();
  ASSERT_WORKS(open(0));
  ASSERT_NO_FATAL_FAILURE(add_pet());
  for (int i = 0; i < 20; ++i) ASSERT_NO_FATAL_FAILURE(frame());
  ASSERT_NO_FATAL_FAILURE(save());
  EXPECT_EQ(context_.stats()->waiting_jobs, 1u);
  EXPECT_EQ(brain_.save_status().code(), Code::not_ready) << "no thread writes it without run_jobs";
  EXPECT_FALSE(std::filesystem::exists(path_));
  const Made<std::uint32_t> waiting = context_.run_jobs();
  ASSERT_WORKS(waiting.outcome);
  EXPECT_EQ(waiting.value, 0u);
  EXPECT_TRUE(brain_.save_status().ready());
  EXPECT_TRUE(std::filesystem::exists(path_));

  // A call that waits for the job runs it too.
  ASSERT_NO_FATAL_FAILURE(save());
  ASSERT_WORKS(context_.drain(60'000));
  EXPECT_TRUE(brain_.save_status().ready());
  EXPECT_TRUE(soon_none_of_ours());
  if (const char* device = std::getenv("IMPRINT_TEST_DEVICE"); device && std::string(device) == "cpu")
    EXPECT_TRUE(soon([&] { return threads_of_all() <= before; }))
        << threads_of_all() << ", before " << before;
}

TEST_F(R28Jobs, LendingTimeIsBoundedAndForBetweenFrames) {
  ASSERT_WORKS(open(0));
  ASSERT_NO_FATAL_FAILURE(add_pet());
  ASSERT_NO_FATAL_FAILURE(save());
  ASSERT_EQ(context_.stats()->waiting_jobs, 1u);
  ASSERT_WORKS(context_.frame_begin(frame_ + 1, 1e6));
  EXPECT_EQ(context_.run_jobs().outcome.code(), Code::wrong_state);
  ASSERT_WORKS(context_.frame_end());
  const Made<std::uint32_t> waiting = context_.run_jobs(0);
  ASSERT_WORKS(waiting.outcome);
  EXPECT_EQ(waiting.value, 0u) << "at least one job, even with no time left";
  EXPECT_TRUE(brain_.save_status().ready());
}

TEST_F(R28Jobs, AHostsWorkersDoIt) {
  Workers workers(2);
  imp_host host = imp_host_init();
  workers.lend_to(host);
  std::atomic<int> writes{0};
  std::atomic<bool> on_workers{true};
  workers.around = [&](const Given& given) {
    on_workers = on_workers && workers.ids.contains(std::this_thread::get_id());
    const bool before = std::filesystem::exists(path_);
    given.run(given.data);
    writes += !before && std::filesystem::exists(path_);
  };
  ASSERT_WORKS(open(1, host));  // without effect when the host provides workers
  EXPECT_TRUE(soon_none_of_ours());
  ASSERT_NO_FATAL_FAILURE(add_pet());
  ASSERT_NO_FATAL_FAILURE(save());
  for (int i = 0; i < 2000 && brain_.save_status().code() == Code::not_ready; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_TRUE(brain_.save_status().ready());
  ASSERT_WORKS(context_.drain(60'000));
  // The save is ready before the worker that wrote it returns from its job.
  for (int i = 0; i < 2000 && writes == 0; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(writes, 1) << "within the host's own call";
  EXPECT_TRUE(on_workers);
  EXPECT_TRUE(soon_none_of_ours());
  ASSERT_WORKS(context_.destroy());
  agent_.release(), brain_.release();
}

// Pending work completes even if the host's workers never come, because they are busy or waiting themselves.
TEST_F(R28Jobs, NothingWaitsForWorkersThatDoNotCome) {
  struct Late {
    std::vector<Given> given;
  } late;
  imp_host host = imp_host_init();
  host.user = &late;
  host.job_submit = [](void* user, void (*run)(void* data), void* data) {
    static_cast<Late*>(user)->given.push_back({run, data});
  };
  ASSERT_WORKS(open(1, host));
  ASSERT_NO_FATAL_FAILURE(add_pet());
  ASSERT_NO_FATAL_FAILURE(save());
  agent_.reset();
  brain_.reset();  // waits for its file
  EXPECT_TRUE(std::filesystem::exists(path_));
  ASSERT_WORKS(context_.destroy());
  ASSERT_FALSE(late.given.empty());
  for (const Given& given : late.given) given.run(given.data);  // and its owner no longer exists
}

TEST_F(R28Jobs, AHostMayRunThemAtOnce) {
  imp_host host = imp_host_init();
  host.job_submit = [](void*, void (*run)(void* data), void* data) { run(data); };
  ASSERT_WORKS(open(0, host));
  ASSERT_NO_FATAL_FAILURE(add_pet());
  ASSERT_NO_FATAL_FAILURE(save());
  EXPECT_TRUE(brain_.save_status().ready());
  EXPECT_TRUE(soon_none_of_ours());
}

TEST_F(R28Jobs, TooManyThreadsAreRefused) {
  const Outcome refused = open(65);
  EXPECT_EQ(refused.code(), Code::invalid_argument);
  EXPECT_THAT(refused.message(), HasSubstr("worker_threads: found 65"));
}

}  // namespace
