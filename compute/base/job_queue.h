#pragma once
// Runs work outside frames, such as compiling and writing files. The host chooses the threads: Imprint's, its
// own, or the threads that wait for the work.

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

#include "compute/base/host_jobs.h"
#include "compute/base/log.h"
#include "compute/base/result.h"

namespace imprint {

// Thread-safe. Jobs start in the order of add() and throw nothing. The queue's own threads run them, if it
// has any. Otherwise the host's threads run them, if it lends any, and a waiting thread runs jobs that have
// not started. So nothing waits for a host whose workers are all busy or waiting themselves. A job that waits
// runs other jobs in either case.
class JobQueue : public std::enable_shared_from_this<JobQueue> {
 public:
  struct Options {
    std::uint32_t threads = 1;  // Imprint's; none when the host runs jobs
    HostJobs host;
    LogSink log;  // used only by create()
  };
  static constexpr std::uint64_t kForever = UINT64_MAX;

  // Errors: out_of_host_memory (threads were requested and none could start).
  static Result<std::shared_ptr<JobQueue>> create(const Options& options);
  ~JobQueue();  // no job may wait or run any more
  JobQueue(const JobQueue&) = delete;
  JobQueue& operator=(const JobQueue&) = delete;

  void add(const void* owner, std::function<void()> job);
  bool run_one();  // on the calling thread; false when no job waits
  // Returns true once done() is true, or false when the time is over. Calls done() under the queue's lock, at
  // first and after each job. A job that started on this thread delays the timeout.
  bool wait(const std::function<bool()>& done, std::uint64_t timeout_ns = kForever);
  void withdraw(const void* owner);  // removes the owner's waiting jobs, then waits for its running ones
  // Waits for the jobs that run now, or until the time is over. Jobs that start meanwhile do not count.
  void wait_for_running(std::chrono::milliseconds timeout);
  std::size_t waiting() const;

 private:
  struct Job {
    const void* owner = nullptr;
    std::function<void()> run;
  };

  struct Running {
    const void* owner;
    std::uint64_t number;  // among all jobs ever started, from 1
  };

  explicit JobQueue(const HostJobs& host) : host_(host) {}
  Result<> start(const Options& options);
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
