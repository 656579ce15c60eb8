#pragma once
// Ctrl-C as a request to save and stop.

#include <atomic>

namespace imprint::training {

// While one lives, SIGINT (Ctrl-C) and SIGTERM set its flag instead of ending the program: give flag() to
// TrainerOptions::stop. A second signal ends the program. One at a time in a program.
class StopSignal {
 public:
  StopSignal();
  ~StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

  const std::atomic<bool>* flag() const;

 private:
  using Handler = void (*)(int);
  Handler old_interrupt_, old_terminate_;
};

}  // namespace imprint::training
