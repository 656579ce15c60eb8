#include "plugin/agent/keep/file_writer.h"

#include <utility>

namespace imprint::agent {

FileWriter::~FileWriter() {
  flush();
  jobs_.withdraw(this);  // the last job may still be returning
}

void FileWriter::add(std::function<void()> task) {
  {
    const std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
    if (tasks_.size() > 1) return;
  }
  jobs_.add(this, [this] { run_one(); });
}

bool FileWriter::flush(std::uint64_t timeout_ns) {
  return jobs_.wait(
      [&] {
        const std::lock_guard lock(mutex_);
        return tasks_.empty();
      },
      timeout_ns);
}

void FileWriter::run_one() {
  std::function<void()> task;
  {
    const std::lock_guard lock(mutex_);
    task = std::exchange(tasks_.front(), nullptr);
  }
  task();
  task = nullptr;  // frees what it holds before it counts as done
  bool more = false;
  {
    const std::lock_guard lock(mutex_);
    tasks_.pop_front();
    more = !tasks_.empty();
  }
  if (more) jobs_.add(this, [this] { run_one(); });
}

}  // namespace imprint::agent
