#pragma once
// Ctrl-C as a request to save and stop, Ctrl-\ (on Windows Ctrl-Break) as one to save and go on.

#include <atomic>

namespace imprint::training {

// While one lives, SIGINT (Ctrl-C) and SIGTERM set its flag instead of ending the program: give flag() to
// TrainerOptions::stop. A second signal ends the program. SIGQUIT sets save_flag(), for TrainerOptions::save.
// One at a time in a program.
class StopSignal {
 public:
  StopSignal();
  ~StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

  const std::atomic<bool>* flag() const;
  std::atomic<bool>* save_flag() const;

 private:
  using Handler = void (*)(int);
  Handler old_interrupt_, old_terminate_, old_save_;
};

}  // namespace imprint::training
