#include "compute/training/pending_runs.h"

#include <algorithm>

namespace imprint::training {

Result<> PendingRuns::start(Run run, std::span<const HostTensor> inputs) {
  const std::size_t slots = run.program->slot_count();
  std::size_t ahead = std::min<std::size_t>(2, slots);
  if (seconds_ > 0) ahead = std::clamp(static_cast<std::size_t>(kMostAhead / seconds_), ahead, slots);
  while (runs_.size() + 1 > ahead) IMPRINT_CHECK(finish_oldest());
  const bool is_idle = runs_.size() == unsubmitted_;
  const bool waits = !is_idle && unsubmitted_ + 1 < ahead / 2;
  if (is_idle) {
    busy_since_ = Clock::now();
    counted_ = 0;
    if (runs_.empty()) {
      next_slot_ = 0;  // groups of runs are then of the same slots each time
      has_failed_ = false;
    }
  }
  run.slot = next_slot_ = (next_slot_ + 1) % run.program->slot_count();
  IMPRINT_CHECK(session_.start(*run.program, run.slot, inputs, waits ? Submit::later : Submit::now));
  unsubmitted_ = waits ? unsubmitted_ + 1 : 0;
  runs_.push_back(run);
  // The CPU has computed it.
  return session_.runtime().on_cpu() ? finish_all() : Result<>();
}

void PendingRuns::count_finished() {
  constexpr int kCounted = 2 * kSlots;  // runs of one submission are found complete together
  if (++counted_ < kCounted && seconds_ > 0) return;
  const Clock::time_point now = Clock::now();
  seconds_ = std::chrono::duration<double>(now - busy_since_).count() / counted_;
  busy_since_ = now;
  counted_ = 0;
}

Result<> PendingRuns::finish_oldest() {
  const Run oldest = runs_.front();
  runs_.pop_front();
  if (unsubmitted_ > runs_.size()) unsubmitted_ = 0;  // it was one of them: finish() submits all
  const Result<std::vector<HostTensor>> outputs = session_.finish(*oldest.program, oldest.slot);
  if (has_failed_) return {};
  Result<> done = outputs ? done_(oldest, *outputs) : Result<>(outputs.error());
  has_failed_ = !done.ok();
  count_finished();
  return done;
}

Result<> PendingRuns::finish_all() {
  Result<> first;
  while (!runs_.empty())
    if (Result<> done = finish_oldest(); !done && first.ok()) first = std::move(done);
  return first;
}

}  // namespace imprint::training
