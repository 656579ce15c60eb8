#pragma once
// Loss scaling, for programs of Precision::mixed16. The loss is multiplied by a power of two so that small
// gradients do not underflow in float16; the gradients are divided by it before any other use.
//
// The scale adapts inside the recorded step. A step whose gradients are not finite is skipped and halves the
// scale; a row of growth_interval good steps doubles it. Micikevicius et al., Mixed Precision Training, 2018,
// section 3.2.
//
//   LossScaler scaler("net");
//   auto raw = gradients(scaler.scaled(loss), parameters.values());
//   auto clipped = clip_by_global_norm(*raw, max_norm, groups, scaler.scale());
//   auto updates = optimiser.step(clipped->gradients, rate, scaler.active(clipped->norm));
//   auto scale_updates = scaler.step(clipped->norm);

#include <cstdint>
#include <string>
#include <vector>

#include "compute/nn/parameter.h"

namespace imprint::nn {

// The defaults are those of PyTorch's GradScaler. Scales should be powers of two, which change no digit of
// what they multiply.
struct LossScalerOptions {
  double initial = 65536;
  std::int64_t growth_interval = 2000;  // good steps; 0: the scale stays, bad steps are still skipped
  double least = 1, most = 16777216;    // bounds of the scale
  std::int64_t groups = 0;              // of a kennel (parameter.h): each network has its own scale
};

class LossScaler {
 public:
  explicit LossScaler(const std::string& name, const LossScalerOptions& options = {});

  // float32 scalar, or [groups].
  Tensor scale() const;
  // The loss, or the loss per group, times its scale. Differentiate this, or its sum.
  Tensor scaled(const Tensor& loss) const;
  // float32: 1 where the norm is finite, else 0. norm: from clip_by_global_norm.
  Tensor active(const Tensor& norm) const;
  // The updates of the scale after a step with this norm.
  std::vector<Update> step(const Tensor& norm) const;

  // "scale" (float32) and "good_steps" (int32): [1], or [groups].
  const Parameters& state() const { return state_; }

 private:
  LossScalerOptions options_;
  Variable scale_, good_steps_;
  Variable applied_;  // the scale of the last step
  Parameters state_;
};

}  // namespace imprint::nn
