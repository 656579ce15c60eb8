#pragma once
// Work that is no frame's, such as compiling and writing files. Whose threads do it is for the host to say:
// ours, its own, or those that wait for it.

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "compute/base/log.h"
#include "compute/base/result.h"

namespace imprint {

// The host's job system: submit hands run(data) over, which is to be called exactly once, on any thread, at
// once or later. Called with no lock of ours held.
struct HostJobs {
  void (*submit)(void* user, void (*run)(void* data), void* data) = nullptr;
  void* user = nullptr;
};

// Thread-safe. Jobs begin in the order in which they were added, and throw nothing. With threads of its own
// those do the work; without, the host's do, where it lends some, and whoever waits does what nobody has
// begun: so nothing waits for a host whose workers are all busy, or wait themselves. A job that waits does
// the same anywhere.
class JobQueue : public std::enable_shared_from_this<JobQueue> {
 public:
  struct Options {
    std::uint32_t threads = 1;  // ours; none with the host's
    HostJobs host;
    LogSink log;  // of the call
  };
  static constexpr std::uint64_t kForever = UINT64_MAX;

  // Errors: out_of_host_memory (threads were asked for, and there are none to be had).
  static Result<std::shared_ptr<JobQueue>> create(const Options& options);
  ~JobQueue();  // nothing of anybody's waits or runs any more
  JobQueue(const JobQueue&) = delete;
  JobQueue& operator=(const JobQueue&) = delete;

  void add(const void* owner, std::function<void()> job);
  bool run_one();  // on the calling thread; false when none waits
  // Returns when done() is true, asked after each job and under the queue's lock, or when the time is over,
  // but for a job begun on this thread. True: done.
  bool wait(const std::function<bool()>& done, std::uint64_t timeout_ns = kForever);
  void withdraw(const void* owner);  // forgets its jobs that nobody has begun, and waits for those that run
  // Until the jobs that run now are done, whatever begins meanwhile, or the time is over.
  void stand_still(std::chrono::milliseconds timeout);
  std::size_t waiting() const;

 private:
  struct Job {
    const void* owner = nullptr;
    std::function<void()> run;
  };

  struct Running {
    const void* owner;
    std::uint64_t number;  // of all that were begun
  };

  explicit JobQueue(const HostJobs& host) : host_(host) {}
  Status start(const Options& options);
  void work();
  void run_next(std::unique_lock<std::mutex>& lock);

  const HostJobs host_;
  mutable std::mutex mutex_;
  std::condition_variable added_, finished_;
  std::deque<Job> jobs_;
  std::vector<Running> running_;
  std::uint64_t begun_ = 0;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace imprint
