// Adam with moments in 8 bits each. A code counts steps of 2^(1/8) below the largest magnitude of its block,
// so that its error is a share of the value. Rounding is random in proportion: a moment that moves by less
// than a step still moves on average.

#include <algorithm>
#include <cmath>

#include "compute/nn/optimisers/optimiser_step.h"

namespace imprint::nn {
namespace {

constexpr float kStepsPerOctave = 8;

// Magnitudes up to 1 -> int32 codes 0 .. most, where most is 1 and 0 is 0. draw: uniform in [0, 1).
Tensor log_codes(const Tensor& share, float most, const Tensor& draw) {
  const Tensor at = most + kStepsPerOctave * log2(clamp_min(share, 1e-30));
  const Tensor below = clamp(floor(at), 0, static_cast<double>(most));
  const Tensor low = where(below < 1.0f, zeros(share.shape()), exp2((below - most) / kStepsPerOctave));
  const Tensor high = exp2((below + 1.0f - most) / kStepsPerOctave);
  const Tensor up = cast(draw * (high - low) < share - low, DType::float32);
  return cast(clamp_max(below + up, static_cast<double>(most)), DType::int32);
}

Tensor log_values(const Tensor& codes, float most) {
  const Tensor number = cast(codes, DType::float32);
  return where(codes < 1, zeros(codes.shape()), exp2((number - most) / kStepsPerOctave));
}

Tensor largest_of(const Tensor& rows) { return clamp_min(max(abs(rows), {1}, true), 1e-30); }

}  // namespace

EightBitAdam::EightBitAdam(const Parameters& parameters, const EightBitAdamOptions& options)
    : Optimiser(parameters, 0), options_(options) {
  options_.block = std::max<std::int64_t>(options.block, 1);
  for (const Parameter& parameter : parameters_) {
    const std::int64_t count = parameter.variable.shape().element_count();
    const std::int64_t blocks = (count + options_.block - 1) / options_.block;
    const std::string owner = parameter.variable.name();
    Moments made{Variable::zeros(owner + ".first_codes", {blocks, options_.block}, DType::int8),
                 Variable::zeros(owner + ".first_scales", {blocks, 1}),
                 Variable::zeros(owner + ".second_codes", {blocks, options_.block}, DType::uint8),
                 Variable::zeros(owner + ".second_scales", {blocks, 1})};
    state_.add("first_codes." + parameter.name, made.first);
    state_.add("first_scales." + parameter.name, made.first_scale);
    state_.add("second_codes." + parameter.name, made.second);
    state_.add("second_scales." + parameter.name, made.second_scale);
    moments_.push_back(std::move(made));
  }
  const std::string owner = parameters_.empty() ? std::string("adam") : parameters_[0].variable.name();
  step_ = Variable::zeros(owner + ".step", {1}, DType::int32);
  state_.add("step", step_);
}

Result<std::vector<Update>> EightBitAdam::step(std::span<const Tensor> gradients, const Tensor& learning_rate,
                                               const Tensor& active) const {
  IMPRINT_ASSIGN(OptimiserStep step, begin_optimiser_step(gradients, parameters_, 0, learning_rate, active));
  const Tensor count = step.next_count(step_), steps = OptimiserStep::as_number(count);
  const Tensor rate = reshape(step.learning_rate, {});
  const Tensor first_rate = rate / reshape(bias_correction(steps, options_.beta1), {});
  const Tensor scale = rsqrt(reshape(bias_correction(steps, options_.beta2), {}));
  const Tensor alive = step.active.ok() ? reshape(step.active, {}) > 0.0f : Tensor();
  const Tensor generator = concat({Tensor::from_ints(std::vector<std::int32_t>{0x8b17, 0}, {2}),
                                   step_.value(), Tensor::from_ints(std::vector<std::int32_t>{0}, {1})},
                                  0);
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const Moments& kept = moments_[i];
    const Tensor value = parameters_[i].value();
    const std::int64_t size = value.shape().element_count(), rows = kept.first_scale.shape()[0];
    const Shape blocks{rows, options_.block};
    const bool decays = options_.weight_decay != 0;
    const Tensor gradient =
        decays && !options_.decoupled ? gradients[i] + Tensor(options_.weight_decay) * value : gradients[i];
    const std::pair<std::int64_t, std::int64_t> missing{0, rows * options_.block - size};
    const Tensor slope = reshape(pad(reshape(gradient, {size}), std::span(&missing, 1)), blocks);
    const Tensor codes = cast(kept.first.value(), DType::int32);
    const Tensor old_first =
        kept.first_scale.value() * cast(sign(codes), DType::float32) * log_values(abs(codes), 127);
    const Tensor first = Tensor(options_.beta1) * old_first + Tensor(1 - options_.beta1) * slope;
    const Tensor old_second =
        kept.second_scale.value() * log_values(cast(kept.second.value(), DType::int32), 255);
    const Tensor second = Tensor(options_.beta2) * old_second + Tensor(1 - options_.beta2) * square(slope);
    const auto stream = static_cast<std::uint32_t>(2 * i);
    const Tensor first_scale = largest_of(first), second_scale = largest_of(second);
    const Tensor first_codes =
        cast(sign(first), DType::int32) *
        log_codes(abs(first) / first_scale, 127, random_uniform(generator, blocks, stream));
    const Tensor second_codes =
        log_codes(second / second_scale, 255, random_uniform(generator, blocks, stream + 1));
    const Tensor change = first_rate * first / (sqrt(second) * scale + Tensor(options_.epsilon));
    Tensor next =
        value - reshape(narrow(reshape(change, {rows * options_.block}), 0, 0, size), value.shape());
    if (decays && options_.decoupled) next = next - rate * Tensor(options_.weight_decay) * value;
    // Selected as int32: kernels select no narrower numbers.
    const auto kept_or = [&](const Tensor& next_codes, const Variable& variable) {
      const Tensor old_codes = cast(variable.value(), DType::int32);
      return cast(alive.ok() ? where(alive, next_codes, old_codes) : next_codes, variable.dtype());
    };
    step.updates.push_back(Update::assign(kept.first, kept_or(first_codes, kept.first)));
    step.updates.push_back(Update::assign(kept.second, kept_or(second_codes, kept.second)));
    step.assign(kept.first_scale, first_scale, alive);
    step.assign(kept.second_scale, second_scale, alive);
    step.assign(parameters_[i].variable, next, alive);
  }
  step.updates.push_back(Update::assign(step_, count));
  return step.finish();
}

}  // namespace imprint::nn
