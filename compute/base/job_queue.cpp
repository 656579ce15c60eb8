#include "compute/base/job_queue.h"

#include <algorithm>
#include <string>
#include <system_error>
#include <utility>

#ifdef __linux__
#include <pthread.h>
#endif

namespace imprint {

Result<std::shared_ptr<JobQueue>> JobQueue::create(const Options& options) {
  std::shared_ptr<JobQueue> queue(new JobQueue(options.host));
  if (!options.host.submit) IMPRINT_CHECK(queue->start(options));
  return queue;
}

Result<> JobQueue::start(const Options& options) {
  try {
    for (std::uint32_t i = 0; i < options.threads; ++i) {
      threads_.emplace_back([this] { work(); });
#ifdef __linux__
      pthread_setname_np(threads_.back().native_handle(), "imprint-jobs");
#endif
    }
  } catch (const std::system_error& error) {
    if (threads_.empty())
      return make_error(ErrorCode::out_of_host_memory,
                        std::string("job threads: the system refused them: ") + error.what());
    options.log(LogLevel::warning, "job threads: found " + std::to_string(threads_.size()) + ", expected " +
                                       std::to_string(options.threads) +
                                       ". Jobs take longer: " + error.what());
  }
  return {};
}

JobQueue::~JobQueue() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  added_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void JobQueue::add(const void* owner, std::function<void()> job) {
  {
    const std::lock_guard lock(mutex_);
    jobs_.push_back({owner, std::move(job)});
  }
  added_.notify_one();
  finished_.notify_all();  // a waiting thread may run it
  if (!host_.submit) return;
  // The host may call run after another thread ran the job and every owner is gone. The ticket keeps the
  // queue alive until then.
  auto* ticket = new std::shared_ptr<JobQueue>(shared_from_this());
  host_.submit(
      host_.user,
      [](void* data) {
        const std::unique_ptr<std::shared_ptr<JobQueue>> given(static_cast<std::shared_ptr<JobQueue>*>(data));
        (*given)->run_one();
      },
      ticket);
}

bool JobQueue::run_one() {
  std::unique_lock lock(mutex_);
  if (jobs_.empty()) return false;
  run_next(lock);
  return true;
}

void JobQueue::run_next(std::unique_lock<std::mutex>& lock) {
  Job job = std::move(jobs_.front());
  jobs_.pop_front();
  const std::uint64_t number = ++begun_;
  running_.push_back({job.owner, number});
  lock.unlock();
  job.run();
  job.run = nullptr;  // destroys its captures while the owner still exists
  lock.lock();
  running_.erase(std::ranges::find(running_, number, &Running::number));
  finished_.notify_all();
}

bool JobQueue::wait(const std::function<bool()>& done, std::uint64_t timeout_ns) {
  using Clock = std::chrono::steady_clock;
  const bool forever = timeout_ns == kForever;
  const Clock::time_point end =
      Clock::now() + std::chrono::nanoseconds(std::min<std::uint64_t>(timeout_ns, 1ull << 60));
  // A waiting job runs other jobs on its thread, which may be the queue's only one.
  const auto is_this = [](const std::thread& thread) {
    return thread.get_id() == std::this_thread::get_id();
  };
  const bool helps = threads_.empty() || std::ranges::any_of(threads_, is_this);
  std::unique_lock lock(mutex_);
  while (!done()) {
    if (!forever && Clock::now() >= end) return false;
    if (helps && !jobs_.empty())
      run_next(lock);
    else if (forever)
      finished_.wait(lock);
    else
      finished_.wait_until(lock, end);
  }
  return true;
}

void JobQueue::withdraw(const void* owner) {
  std::unique_lock lock(mutex_);
  std::erase_if(jobs_, [&](const Job& job) { return job.owner == owner; });
  finished_.wait(lock, [&] { return std::ranges::find(running_, owner, &Running::owner) == running_.end(); });
}

void JobQueue::wait_for_running(std::chrono::milliseconds timeout) {
  std::unique_lock lock(mutex_);
  finished_.wait_for(lock, timeout, [&, last = begun_] {
    return std::ranges::none_of(running_, [&](const Running& job) { return job.number <= last; });
  });
}

std::size_t JobQueue::waiting() const {
  const std::lock_guard lock(mutex_);
  return jobs_.size();
}

void JobQueue::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    added_.wait(lock, [&] { return stopping_ || !jobs_.empty(); });
    if (jobs_.empty()) return;
    run_next(lock);
  }
}

}  // namespace imprint
