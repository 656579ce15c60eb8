#pragma once
// Threads that share one computation of a few microseconds or more: the loops of the CPU tier. Work outside
// frames uses JobQueue (job_queue.h).

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "compute/base/host_jobs.h"
#include "compute/base/log.h"

namespace imprint {

// Thread-safe. The calling thread computes too, and never waits for a thread that has not begun: a busy host
// or a refused thread costs time, not progress.
class ThreadPool : public std::enable_shared_from_this<ThreadPool> {
 public:
  struct Options {
    std::uint32_t threads = 1;  // of one computation, the calling one included; above 0
    HostJobs host;              // lends the others; null: threads of the pool's own
    LogSink log;                // used only by create()
    // How long a thread looks for the next computation before it sleeps or goes back to its host: longer than
    // the gaps between the steps of one program, and shorter than one between frames.
    std::chrono::microseconds looks_for{100};
  };
  static std::shared_ptr<ThreadPool> create(const Options& options);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  std::uint32_t threads() const { return threads_; }

  // Calls run(part, thread) for each part below `parts`, in any order, then returns. thread < threads(): no
  // two calls at the same time have the same one. run throws nothing and calls no each(). parts <=
  // kMostParts. Thread t begins with the t-th share of the parts, and takes another's when it is done: equal
  // divisions leave data in the caches of the threads that read them next.
  static constexpr std::uint32_t kMostParts = 0xffff;
  template <class Run>
  void each(std::uint32_t parts, const Run& run) {
    compute(
        parts,
        [](const void* data, std::uint32_t part, std::uint32_t thread) {
          (*static_cast<const Run*>(data))(part, thread);
        },
        &run);
  }

 private:
  using Function = void (*)(const void* data, std::uint32_t part, std::uint32_t thread);

  explicit ThreadPool(const Options& options)
      : threads_(options.threads),
        host_(options.host),
        looks_for_(options.looks_for),
        ranges_(std::make_unique<Range[]>(options.threads)) {}
  void start(const LogSink& log);
  void compute(std::uint32_t parts, Function function, const void* data);
  std::optional<std::uint32_t> take_part(std::uint32_t thread);
  bool has_parts() const;
  std::uint32_t run_parts(std::uint32_t thread);  // how many
  void help(std::uint32_t thread);
  void call_helpers();
  void help_for_a_while(std::uint32_t thread);
  void work(std::uint32_t thread);
  void work_as_host();

  const std::uint32_t threads_;
  const HostJobs host_;
  const std::chrono::microseconds looks_for_;
  std::mutex computing_;  // one computation at a time
  Function function_ = nullptr;
  const void* data_ = nullptr;
  // The rest of a thread's parts: the number of the computation, the end and the next part: 32, 16 and 16
  // bits. A thread that takes a part may read function_ and data_, which change only when all parts are done.
  struct alignas(64) Range {
    std::atomic<std::uint64_t> left{0};
  };
  const std::unique_ptr<Range[]> ranges_;  // by thread
  std::uint64_t number_ = 0;               // of the computation
  // Parts that other threads have computed. Each counts its own when it finds no more: data takes longer from
  // core to core than a small part.
  alignas(64) std::atomic<std::uint32_t> done_{0};
  // Own threads that wait, under mutex_; host threads that are lent or asked for, and the numbers in use.
  std::atomic<std::uint32_t> waiting_{0}, lent_{0};
  std::mutex mutex_;
  std::condition_variable called_;
  bool stopping_ = false;
  std::vector<std::uint32_t> free_numbers_;
  std::vector<std::thread> own_;
};

}  // namespace imprint
