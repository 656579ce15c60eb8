#pragma once
// The cost of Imprint per frame, for the overlay and the report.

#include <cstdint>
#include <deque>
#include <vector>

#include "samples/pet/brain/pet_brain.h"
#include "samples/pet/report.h"
#include "samples/pet/view/overlay/overlay_state.h"

namespace pet {

class Meters {
 public:
  // After each frame.
  void read(const imp_context_stats& stats);
  // A few times per second.
  void read(const imp_brain_stats& stats, double time_s);

  void show(OverlayState& overlay) const;
  void fill(Report& report) const;

 private:
  struct Count {
    double time_s;
    std::uint64_t minibatches;
  };

  std::vector<float> infer_us_, learn_us_, gpu_us_, cpu_us_;
  float smooth_infer_us_ = 0.0f;
  float smooth_learn_us_ = 0.0f;
  float smooth_cpu_us_ = 0.0f;
  std::uint64_t measured_frame_ = 0;
  imp_context_stats context_{};
  imp_brain_stats brain_{};
  std::deque<Count> counts_;  // the last seconds, for a rate
};

}  // namespace pet
