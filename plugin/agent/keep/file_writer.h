#pragma once
// Runs slow tasks (writing files, copying megabytes) off the frame thread, one after the other, as jobs.

#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>

#include "compute/base/job_queue.h"

namespace imprint::agent {

// One per context. Tasks run in the order of add(). Their data must live until they are done: flush(), or the
// destructor, which waits for all.
class FileWriter {
 public:
  explicit FileWriter(JobQueue& jobs) : jobs_(jobs) {}  // outlives it
  ~FileWriter();
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;

  void add(std::function<void()> task);
  // Waits for all tasks added before. False at a timeout.
  bool flush(std::uint64_t timeout_ns = JobQueue::kForever);

 private:
  void run_one();

  JobQueue& jobs_;
  std::mutex mutex_;
  std::deque<std::function<void()>> tasks_;  // a job runs the first one
};

}  // namespace imprint::agent
