#include "tools/imprint/slow_step.h"

#include <cstdio>

namespace imprint::tools {

SlowStep::SlowStep(std::string what) : what_(std::move(what)), thread_([this] { watch(); }) {}

SlowStep::~SlowStep() {
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  ended_.notify_one();
  thread_.join();
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start_;
  if (told_) std::fprintf(stderr, "%s: %.1f s\n", what_.c_str(), taken.count());
}

void SlowStep::watch() {
  std::unique_lock lock(mutex_);
  if (ended_.wait_for(lock, std::chrono::seconds(1), [this] { return over_; })) return;
  std::fprintf(stderr, "%s ..\n", what_.c_str());
  told_ = true;
}

}  // namespace imprint::tools
