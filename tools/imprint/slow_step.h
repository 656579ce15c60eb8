#pragma once
// Says on stderr what a command does, if that takes longer than a second.

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace imprint::tools {

class SlowStep {
 public:
  explicit SlowStep(std::string what);  // "compiling 'a.onnx'"
  ~SlowStep();
  SlowStep(const SlowStep&) = delete;
  SlowStep& operator=(const SlowStep&) = delete;

 private:
  void watch();

  std::string what_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::mutex mutex_;
  std::condition_variable ended_;
  bool over_ = false, told_ = false;
  std::thread thread_;
};

}  // namespace imprint::tools
