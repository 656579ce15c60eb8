#pragma once
// Learning rates as functions of the step. They are computed inside the recorded step: a program runs any
// number of steps without the host.
//
//   const ScheduledRate rate("net", Schedule::one_cycle(1e-3, 1000));
//   auto updates = optimiser.step(gradients, rate.value());
//   rate.advance(*updates);
//
// Steps count from 0, as PyTorch's schedulers do when they step after the optimiser. A schedule with an end
// keeps its last value. Steps are exact below 2^24.

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "compute/nn/parameter.h"

namespace imprint::nn {

class Schedule {
 public:
  // function: float32 steps, of any shape, -> the rate at each.
  explicit Schedule(std::function<Tensor(const Tensor& step)> function) : function_(std::move(function)) {}
  Schedule(double rate) : Schedule(constant(rate)) {}

  // step: int32 or float32, of any shape. float32 of the same shape.
  Tensor at(const Tensor& step) const;

  static Schedule constant(double rate);
  // From `start` to `end` in `steps` equal parts. PyTorch's LinearLR.
  static Schedule linear(double start, double end, std::int64_t steps);
  // rate * decay^step. ExponentialLR.
  static Schedule exponential(double rate, double decay);
  // rate * factor^(step / every), in whole numbers. StepLR.
  static Schedule step(double rate, std::int64_t every, double factor = 0.1);
  // rate * factor^(milestones passed). MultiStepLR.
  static Schedule multi_step(double rate, std::vector<std::int64_t> milestones, double factor = 0.1);
  // end + (rate - end) (1 - step / steps)^power. PolynomialLR has end 0.
  static Schedule polynomial(double rate, std::int64_t steps, double power = 1, double end = 0);
  // least + (rate - least) (1 + cos(pi step / steps)) / 2. CosineAnnealingLR up to `steps`.
  // Loshchilov, Hutter, SGDR: Stochastic Gradient Descent with Warm Restarts, 2017.
  static Schedule cosine(double rate, std::int64_t steps, double least = 0);
  // The cosine again and again; each period is `growth` times as long as the one before.
  // CosineAnnealingWarmRestarts.
  static Schedule cosine_restarts(double rate, std::int64_t period, std::int64_t growth = 1,
                                  double least = 0);
  struct OneCycle {
    double rising = 0.3;        // share of the steps in which the rate rises
    double start_divisor = 25;  // of the highest rate, at the start
    double end_divisor = 1e4;   // of the start's rate, at the end
    bool linear = false;        // else cosine
    bool three_phases = false;  // falls as long as it rose, then to the end
  };
  // Smith, Topin, Super-Convergence: Very Fast Training of Neural Networks Using Large Learning Rates, 2018.
  // OneCycleLR.
  static Schedule one_cycle(double highest, std::int64_t steps, const OneCycle& options);
  static Schedule one_cycle(double highest, std::int64_t steps) {
    return one_cycle(highest, steps, OneCycle());
  }
  // scale extent^-0.5 min(n^-0.5, n warm_up^-1.5) with n = step + 1. Vaswani et al., Attention Is All You
  // Need, 2017. PyTorch has none.
  static Schedule noam(std::int64_t extent, std::int64_t warm_up, double scale = 1);

  // This schedule times a factor that rises from `start` to 1 in `steps` equal parts.
  Schedule warmed_up(std::int64_t steps, double start = 0) const;
  // This schedule for `steps` steps, then `next` from its step 0. SequentialLR.
  Schedule then(std::int64_t steps, const Schedule& next) const;
  // The product of two schedules. ChainedScheduler multiplies factors in this way.
  Schedule times(const Schedule& other) const;

 private:
  std::function<Tensor(const Tensor&)> function_;
};

// A schedule with the counter of its steps.
class ScheduledRate {
 public:
  ScheduledRate(const std::string& name, Schedule schedule);

  Tensor value() const { return schedule_.at(step_.value()); }  // float32 [1]
  // Adds the update that counts the step. active: as an optimiser's; a step that is skipped does not count.
  void advance(std::vector<Update>& updates, const Tensor& active = Tensor()) const;
  const Parameters& state() const { return state_; }  // "step": int32 [1]

 private:
  Schedule schedule_;
  Variable step_;
  Parameters state_;
};

struct PlateauOptions {
  double factor = 0.1;
  std::int64_t patience = 10;  // measurements without a better one before the rate falls
  double threshold = 1e-4;     // better: less than best (1 - threshold), or than best - threshold
  bool relative = true;
  std::int64_t cooldown = 0;  // measurements after a fall that do not count as bad
  double least = 0;           // of the rate
};

// A rate that falls when a measure, such as the validation loss, stops falling. PyTorch's ReduceLROnPlateau.
class PlateauRate {
 public:
  PlateauRate(const std::string& name, double rate, const PlateauOptions& options = {});

  Tensor value() const { return rate_.value(); }  // float32 [1]
  // Adds the updates for one measurement: a float32 scalar or [1], smaller is better.
  void measure(std::vector<Update>& updates, const Tensor& measured) const;
  const Parameters& state() const { return state_; }  // "rate", "best", "bad", "cooldown"

 private:
  PlateauOptions options_;
  Variable rate_, best_, bad_, cooldown_;
  Parameters state_;
};

}  // namespace imprint::nn
