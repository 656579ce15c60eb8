#include "plugin/agent/file_writer.h"

#include <chrono>
#include <utility>

#if defined(__linux__)
#include <pthread.h>
#endif

namespace imprint::agent {

FileWriter::FileWriter() : thread_([this] { work(); }) {
#if defined(__linux__)
  pthread_setname_np(thread_.native_handle(), "imprint-files");
#endif
}

FileWriter::~FileWriter() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

void FileWriter::add(std::function<void()> task) {
  {
    const std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
  }
  wake_.notify_one();
}

void FileWriter::flush() {
  std::unique_lock lock(mutex_);
  done_.wait(lock, [&] { return tasks_.empty() && !busy_; });
}

bool FileWriter::flush(std::uint64_t timeout_ns) {
  std::unique_lock lock(mutex_);
  return done_.wait_for(lock, std::chrono::nanoseconds(timeout_ns), [&] { return tasks_.empty() && !busy_; });
}

void FileWriter::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [&] { return stop_ || !tasks_.empty(); });
    if (tasks_.empty()) return;
    std::function<void()> task = std::move(tasks_.front());
    tasks_.pop_front();
    busy_ = true;
    lock.unlock();
    task();
    task = nullptr;
    lock.lock();
    busy_ = false;
    if (tasks_.empty()) done_.notify_all();
  }
}

}  // namespace imprint::agent
