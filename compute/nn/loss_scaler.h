#pragma once
// Loss scaling for programs of Precision::mixed16: the loss is multiplied by a power of two, so that small
// gradients keep their place in float16, and gradients are divided by it before anything else sees them.
// Dynamic: a step whose gradients are not finite is skipped and halves the scale, and so many good steps in a
// row double it; all of it inside the recorded step (Micikevicius et al., Mixed Precision Training, 2018,
// section 3.2).
//
//   LossScaler scaler("net");
//   gradients(scaler.scaled(loss), parameters)                                  -> raw
//   clip_by_global_norm(raw, max_norm, groups, scaler.scale())                  -> clipped, of the loss as it
//   was optimiser.step(clipped.gradients, rate, scaler.active(clipped.norm))        -> updates
//   scaler.step(clipped.norm)                                                   -> more updates

#include <cstdint>
#include <string>
#include <vector>

#include "compute/nn/parameter.h"

namespace imprint::nn {

// The defaults are those of PyTorch's GradScaler: 2^16, doubled after 2,000 good steps, halved by a bad one.
// All but the interval should be powers of two, which change no digit of what they scale.
struct LossScalerOptions {
  double initial = 65536;
  std::int64_t growth_interval =
      2000;  // good steps; 0: the scale never changes, and bad steps are skipped all the same
  double least = 1, most = 16777216;  // bounds of the scale
  std::int64_t groups = 0;            // of a kennel: each network has a scale of its own
};

class LossScaler {
 public:
  explicit LossScaler(const std::string& name, const LossScalerOptions& options = {});

  // float32: a scalar, or [groups]. For what follows the gradients.
  Tensor scale() const;
  // The loss, or a loss per group, times its scale; differentiate (the sum of) that.
  Tensor scaled(const Tensor& loss) const;
  // float32: 1 where the norm is finite, else 0. norm: of all gradients together, as clip_by_global_norm
  // gives it.
  Tensor active(const Tensor& norm) const;
  // Updates of the scale after a step whose gradients have this norm.
  std::vector<Update> step(const Tensor& norm) const;

  // "scale", float32, and "good_steps", int32: [1], or [groups].
  const Parameters& state() const { return state_; }

 private:
  LossScalerOptions options_;
  Variable scale_, good_steps_;
  Variable applied_;  // the scale of the last step
  Parameters state_;
};

}  // namespace imprint::nn
