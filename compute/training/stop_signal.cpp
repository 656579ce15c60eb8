#include "compute/training/stop_signal.h"

#include <csignal>

namespace imprint::training {
namespace {

std::atomic<bool> must_stop_now{false};
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler may only touch lock-free atomics");

#if defined(SIGQUIT)
constexpr int kSave = SIGQUIT;
#else
constexpr int kSave = SIGBREAK;
#endif
std::atomic<bool> must_save_now{false};

void take_save(int signal) {
  must_save_now = true;
  std::signal(signal, take_save);  // some systems forget it
}

void take_signal(int signal) {
  must_stop_now = true;
  std::signal(signal, SIG_DFL);
}

}  // namespace

StopSignal::StopSignal() {
  must_stop_now = must_save_now = false;
  old_interrupt_ = std::signal(SIGINT, take_signal);
  old_terminate_ = std::signal(SIGTERM, take_signal);
  old_save_ = std::signal(kSave, take_save);
}

StopSignal::~StopSignal() {
  std::signal(SIGINT, old_interrupt_);
  std::signal(SIGTERM, old_terminate_);
  std::signal(kSave, old_save_);
}

const std::atomic<bool>* StopSignal::flag() const { return &must_stop_now; }
std::atomic<bool>* StopSignal::save_flag() const { return &must_save_now; }

}  // namespace imprint::training
