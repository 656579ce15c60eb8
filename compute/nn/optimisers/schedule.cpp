#include "compute/nn/optimisers/schedule.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "compute/tensor/build.h"

namespace imprint::nn {
namespace {

constexpr double kLastStep = 16777216;  // beyond it float32 does not count

Tensor number_of(std::int64_t value) { return Tensor(static_cast<double>(value)); }

// step / steps, between 0 and 1.
Tensor progress(const Tensor& step, std::int64_t steps) {
  const auto length = static_cast<double>(std::max<std::int64_t>(steps, 1));
  return clamp(step, 0, length) / Tensor(length);
}

Tensor power(double base, const Tensor& exponent) {
  return base > 0 ? exp(exponent * Tensor(std::log(base))) : pow(Tensor(base), exponent);
}

// (1 + cos(pi x)) / 2
Tensor half_cosine(const Tensor& x) { return 0.5f + 0.5f * cos(Tensor(std::numbers::pi) * x); }

Tensor between(double start, double end, const Tensor& share) {
  return Tensor(start) + Tensor(end - start) * share;
}

}  // namespace

Tensor Schedule::at(const Tensor& step) const {
  return function_(step.dtype() == DType::int32 ? cast(step, DType::float32) : step);
}

Schedule Schedule::constant(double rate) {
  return Schedule([=](const Tensor& step) { return zeros_like(step) + Tensor(rate); });
}

Schedule Schedule::linear(double start, double end, std::int64_t steps) {
  return Schedule([=](const Tensor& step) { return between(start, end, progress(step, steps)); });
}

Schedule Schedule::exponential(double rate, double decay) {
  return Schedule([=](const Tensor& step) { return Tensor(rate) * power(decay, step); });
}

Schedule Schedule::step(double rate, std::int64_t every, double factor) {
  const std::int64_t length = std::max<std::int64_t>(every, 1);
  return Schedule([=](const Tensor& step) {
    // Half a step away from whole quotients, which a division may miss.
    const Tensor passed = floor((step + 0.5f) / number_of(length));
    return Tensor(rate) * power(factor, passed);
  });
}

Schedule Schedule::multi_step(double rate, std::vector<std::int64_t> milestones, double factor) {
  return Schedule([=](const Tensor& step) {
    Tensor passed = zeros_like(step);
    for (const std::int64_t milestone : milestones)
      passed = passed + cast(step >= number_of(milestone), DType::float32);
    return Tensor(rate) * power(factor, passed);
  });
}

Schedule Schedule::polynomial(double rate, std::int64_t steps, double exponent, double end) {
  return Schedule([=](const Tensor& step) {
    const Tensor left = 1.0f - progress(step, steps);
    return between(end, rate, exponent == 1 ? left : pow(left, Tensor(exponent)));
  });
}

Schedule Schedule::cosine(double rate, std::int64_t steps, double least) {
  return Schedule(
      [=](const Tensor& step) { return between(least, rate, half_cosine(progress(step, steps))); });
}

Schedule Schedule::cosine_restarts(double rate, std::int64_t period, std::int64_t growth, double least) {
  const auto first = static_cast<double>(std::max<std::int64_t>(period, 1));
  const auto factor = static_cast<double>(std::max<std::int64_t>(growth, 1));
  return Schedule([=](const Tensor& step) {
    Tensor begun = zeros_like(step), length = zeros_like(step) + Tensor(first);
    if (factor == 1) {
      begun = floor((step + 0.5f) / Tensor(first)) * Tensor(first);
    } else {
      // Few periods begin before the last step; each is compared with, which is exact.
      double start = first, extent = first * factor;
      for (; start < kLastStep; start += extent, extent *= factor) {
        const Tensor passed = step >= Tensor(start);
        begun = where(passed, Tensor(start), begun);
        length = where(passed, Tensor(extent), length);
      }
    }
    return between(least, rate, half_cosine((step - begun) / length));
  });
}

Schedule Schedule::one_cycle(double highest, std::int64_t steps, const OneCycle& options) {
  const double start = highest / options.start_divisor, end = start / options.end_divisor;
  const auto total = static_cast<double>(steps);
  // PyTorch's phases end at step share * steps - 1.
  const double top = options.rising * total - 1, last = total - 1;
  const double fallen = options.three_phases ? 2 * options.rising * total - 2 : last;
  const bool is_linear = options.linear, has_third = options.three_phases;
  return Schedule([=](const Tensor& step) {
    const auto phase = [&](double from, double to, double begins, double ends) {
      const Tensor share = clamp((step - Tensor(begins)) * Tensor(1 / std::max(ends - begins, 1e-6)), 0, 1);
      return is_linear ? between(from, to, share) : between(to, from, half_cosine(share));
    };
    Tensor rate = where(step <= Tensor(top), phase(start, highest, 0, top),
                        phase(highest, has_third ? start : end, top, fallen));
    if (has_third) rate = where(step <= Tensor(fallen), rate, phase(start, end, fallen, last));
    return rate;
  });
}

Schedule Schedule::noam(std::int64_t extent, std::int64_t warm_up, double scale) {
  const auto rising = static_cast<double>(std::max<std::int64_t>(warm_up, 1));
  return Schedule([=](const Tensor& step) {
    const Tensor n = step + 1.0f;
    return Tensor(scale / std::sqrt(static_cast<double>(extent))) *
           minimum(rsqrt(n), n * Tensor(std::pow(rising, -1.5)));
  });
}

Schedule Schedule::warmed_up(std::int64_t steps, double start) const {
  return times(linear(start, 1, steps));
}

Schedule Schedule::then(std::int64_t steps, const Schedule& next) const {
  return Schedule([first = *this, next, steps](const Tensor& step) {
    const Tensor begins = number_of(steps);
    return where(step < begins, first.at(step), next.at(clamp_min(step - begins, 0)));
  });
}

Schedule Schedule::times(const Schedule& other) const {
  return Schedule([first = *this, other](const Tensor& step) { return first.at(step) * other.at(step); });
}

ScheduledRate::ScheduledRate(const std::string& name, Schedule schedule)
    : schedule_(std::move(schedule)), step_(Variable::zeros(name + ".rate_step", {1}, DType::int32)) {
  state_.add("step", step_);
}

void ScheduledRate::advance(std::vector<Update>& updates, const Tensor& active) const {
  const Tensor next = step_.value() + 1;
  updates.push_back(Update::assign(
      step_, tensor::is_empty(active) ? next : where(reshape(active, {1}) > 0.0f, next, step_.value())));
}

PlateauRate::PlateauRate(const std::string& name, double rate, const PlateauOptions& options)
    : options_(options) {
  const auto add = [&](const std::string& part, double initial) {
    const float content[] = {static_cast<float>(initial)};
    const Variable made(name + "." + part, {1}, std::span<const float>(content));
    state_.add(part, made);
    return made;
  };
  rate_ = add("rate", rate);
  best_ = add("best", std::numeric_limits<double>::infinity());
  bad_ = add("bad", 0);
  cooldown_ = add("cooldown", 0);
}

void PlateauRate::measure(std::vector<Update>& updates, const Tensor& measured) const {
  constexpr double kLeastFall = 1e-8;  // PyTorch's
  const Tensor now = reshape(measured, {1}), best = best_.value();
  const Tensor bar =
      options_.relative ? best * Tensor(1 - options_.threshold) : best - Tensor(options_.threshold);
  const Tensor is_better = now<bar, cools = cooldown_.value()> 0.0f;
  Tensor bad = where(is_better, 0.0f, bad_.value() + 1.0f), cooldown = cooldown_.value();
  bad = where(cools, 0.0f, bad);
  cooldown = where(cools, cooldown - 1.0f, cooldown);
  const Tensor falls = bad > number_of(options_.patience);
  const Tensor lower = clamp_min(rate_.value() * Tensor(options_.factor), options_.least);
  const Tensor moves = logical_and(falls, rate_.value() - lower > Tensor(kLeastFall));
  updates.push_back(Update::assign(rate_, where(moves, lower, rate_.value())));
  updates.push_back(Update::assign(best_, where(is_better, now, best)));
  updates.push_back(Update::assign(bad_, where(falls, 0.0f, bad)));
  updates.push_back(Update::assign(cooldown_, where(falls, number_of(options_.cooldown), cooldown)));
}

}  // namespace imprint::nn
