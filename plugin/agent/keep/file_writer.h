#pragma once
// Writes files behind the frame's back: jobs of the context's, one after the other.

#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>

#include "compute/base/job_queue.h"

namespace imprint::agent {

// A context owns one. Tasks run in the order in which they were added; whatever they touch must live until
// they are done (flush, or the destructor, which waits for all).
class FileWriter {
 public:
  explicit FileWriter(JobQueue& jobs) : jobs_(jobs) {}  // which outlives it
  ~FileWriter();
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;

  void add(std::function<void()> task);
  // Returns when all tasks added before are done; false when the time was over first.
  bool flush(std::uint64_t timeout_ns = JobQueue::kForever);

 private:
  void run_one();

  JobQueue& jobs_;
  std::mutex mutex_;
  std::deque<std::function<void()>> tasks_;  // the first one has a job
};

}  // namespace imprint::agent
