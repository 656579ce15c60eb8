#include "compute/base/thread_pool.h"

#include <algorithm>
#include <cassert>
#include <chrono>
#include <string>
#include <system_error>
#include <utility>

#ifdef __linux__
#include <pthread.h>
#endif

namespace imprint {

namespace {

constexpr int kLooksAtOnce = 64;  // before it asks for the time

std::uint64_t next_of(std::uint64_t range) { return range & 0xffff; }
std::uint64_t end_of(std::uint64_t range) { return range >> 16 & 0xffff; }

// The pool that calls its host on this thread.
thread_local const ThreadPool* calling_host = nullptr;

void pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace

std::shared_ptr<ThreadPool> ThreadPool::create(const Options& options) {
  Options within = options;
  within.threads = std::max(options.threads, 1u);
  std::shared_ptr<ThreadPool> pool(new ThreadPool(within));
  pool->start(options.log);
  return pool;
}

void ThreadPool::start(const LogSink& log) {
  for (std::uint32_t number = threads_ - 1; number > 0; --number) free_numbers_.push_back(number);
  if (host_.submit) return;
  try {
    for (std::uint32_t number = 1; number < threads_; ++number) {
      own_.emplace_back([this, number] { work(number); });
#ifdef __linux__
      pthread_setname_np(own_.back().native_handle(), "imprint-cpu");
#endif
    }
  } catch (const std::system_error& error) {
    log(LogLevel::warning, "CPU threads: found " + std::to_string(own_.size() + 1) + ", expected " +
                               std::to_string(threads_) + ". Programs take longer: " + error.what());
  }
}

ThreadPool::~ThreadPool() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  called_.notify_all();
  for (std::thread& thread : own_) thread.join();
}

void ThreadPool::compute(std::uint32_t parts, Function function, const void* data) {
  assert(parts <= kMostParts);
  std::unique_lock lock(computing_, std::defer_lock);
  if (threads_ == 1 || parts < 2 || !lock.try_lock()) {
    for (std::uint32_t part = 0; part < parts; ++part) function(data, part, 0);
    return;
  }
  function_ = function;
  data_ = data;
  done_.store(0, std::memory_order_relaxed);
  // The last range first: a thread that looks meanwhile finds its own parts before those of others.
  ++number_;
  for (std::uint64_t thread = threads_; thread-- > 0;)
    ranges_[thread].left.store(number_ << 32 | parts * (thread + 1) / threads_ << 16 |
                               parts * thread / threads_);
  call_helpers();
  const std::uint32_t others = parts - run_parts(0);
  for (int looks = 0; done_.load(std::memory_order_acquire) < others; ++looks) {
    pause();
    if (looks > 1000) std::this_thread::yield();  // a part's thread may have lost its core
  }
}

// From the front of its own range, or from the back of another's.
std::optional<std::uint32_t> ThreadPool::take_part(std::uint32_t thread) {
  for (std::uint32_t i = 0; i < threads_; ++i) {
    std::atomic<std::uint64_t>& left = ranges_[(thread + i) % threads_].left;
    std::uint64_t range = left.load();
    while (next_of(range) < end_of(range)) {
      const std::uint64_t rest = i == 0 ? range + 1 : range - 0x10000;
      if (left.compare_exchange_weak(range, rest))
        return static_cast<std::uint32_t>(i == 0 ? next_of(range) : end_of(range) - 1);
    }
  }
  return {};
}

bool ThreadPool::has_parts() const {
  for (std::uint32_t i = 0; i < threads_; ++i)
    if (const std::uint64_t range = ranges_[i].left.load(); next_of(range) < end_of(range)) return true;
  return false;
}

std::uint32_t ThreadPool::run_parts(std::uint32_t thread) {
  std::uint32_t count = 0;
  while (const std::optional<std::uint32_t> part = take_part(thread)) {
    function_(data_, *part, thread);
    ++count;
  }
  return count;
}

// All parts belong to one computation: it is not over before they are counted.
void ThreadPool::help(std::uint32_t thread) {
  if (const std::uint32_t count = run_parts(thread)) done_.fetch_add(count, std::memory_order_release);
}

void ThreadPool::call_helpers() {
  if (!host_.submit) {
    if (waiting_.load() == 0) return;
    { const std::lock_guard lock(mutex_); }  // no thread is between its last look and its sleep
    called_.notify_all();
    return;
  }
  const ThreadPool* const before = std::exchange(calling_host, this);
  for (std::uint32_t missing = threads_ - 1 - lent_.load(); missing > 0 && has_parts(); --missing) {
    lent_.fetch_add(1);
    // Keeps the pool alive until the host calls run, which may be after every computation.
    auto* ticket = new std::shared_ptr<ThreadPool>(shared_from_this());
    host_.submit(
        host_.user,
        [](void* given) {
          const std::unique_ptr<std::shared_ptr<ThreadPool>> pool(
              static_cast<std::shared_ptr<ThreadPool>*>(given));
          (*pool)->work_as_host();
        },
        ticket);
  }
  calling_host = before;
}

void ThreadPool::help_for_a_while(std::uint32_t thread) {
  // Looks at its own range alone until the next computation: those of others stay in their caches.
  std::uint64_t seen = 0;  // number of a computation
  auto end = std::chrono::steady_clock::now() + looks_for_;
  for (;;) {
    bool helped = false;
    for (int looks = 0; looks < kLooksAtOnce; ++looks) {
      const std::uint64_t number = ranges_[thread].left.load() >> 32;
      if (number != seen) {
        seen = number;
        help(thread);
        helped = true;
        looks = 0;
      }
      pause();
    }
    const auto now = std::chrono::steady_clock::now();
    if (helped) end = now + looks_for_;
    if (now >= end) return;
  }
}

void ThreadPool::work(std::uint32_t thread) {
  for (;;) {
    help_for_a_while(thread);
    std::unique_lock lock(mutex_);
    waiting_.fetch_add(1);
    called_.wait(lock, [&] { return stopping_ || has_parts(); });
    waiting_.fetch_sub(1);
    if (stopping_) return;
  }
}

void ThreadPool::work_as_host() {
  std::uint32_t thread = 0;
  {
    const std::lock_guard lock(mutex_);
    thread = free_numbers_.back();
    free_numbers_.pop_back();
  }
  if (calling_host == this)  // a host that runs jobs inside job_submit
    help(thread);
  else
    help_for_a_while(thread);
  const std::lock_guard lock(mutex_);
  free_numbers_.push_back(thread);
  lent_.fetch_sub(1);
}

}  // namespace imprint
