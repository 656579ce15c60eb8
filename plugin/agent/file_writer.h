#pragma once
// Writes files behind the frame's back: one thread, tasks in order.

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace imprint::agent {

// A context owns one. Tasks run on its thread; whatever they touch must live until they are done (flush, or the destructor, which runs what waits).
class FileWriter {
 public:
  FileWriter();
  ~FileWriter();
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;

  void add(std::function<void()> task);
  void flush();                            // returns when all tasks added before are done
  bool flush(std::uint64_t timeout_ns);    // false when the time was over first

 private:
  void work();

  std::mutex mutex_;
  std::condition_variable wake_, done_;
  std::deque<std::function<void()>> tasks_;
  bool busy_ = false, stop_ = false;
  std::thread thread_;
};

}  // namespace imprint::agent
