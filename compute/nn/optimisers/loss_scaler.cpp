#include "compute/nn/optimisers/loss_scaler.h"

#include <algorithm>

#include "compute/tensor/build.h"

namespace imprint::nn {

using namespace tensor;

LossScaler::LossScaler(const std::string& name, const LossScalerOptions& options) : options_(options) {
  const std::int64_t count = std::max<std::int64_t>(options.groups, 1);
  const std::vector<float> initial(static_cast<std::size_t>(count), static_cast<float>(options.initial));
  scale_ = Variable(name + ".loss_scale", {count}, initial);
  good_steps_ = Variable::zeros(name + ".good_steps", {count}, DType::int32);
  applied_ = Variable(name + ".applied_scale", {count}, initial);
  state_.add("scale", scale_);
  state_.add("good_steps", good_steps_);
}

// Reads the copy that step() stores. The new scale then need not wait for the last kernels that use the old
// one.
Tensor LossScaler::scale() const {
  const Tensor copy = make(Op::cast, {scale_.value()}, {.dtype = DType::float32});
  return options_.groups > 0 ? copy : reshape(copy, {});
}

Tensor LossScaler::scaled(const Tensor& loss) const {
  return loss * (options_.groups > 0 ? scale_.value() : reshape(scale_.value(), {}));
}

Tensor LossScaler::active(const Tensor& norm) const { return cast(is_finite(norm), DType::float32); }

std::vector<Update> LossScaler::step(const Tensor& norm) const {
  if (options_.growth_interval == 0) return {};
  const Tensor good = reshape(is_finite(norm), scale_.shape());
  const Tensor steps = where(good, good_steps_.value() + 1, zeros(scale_.shape(), DType::int32));
  const Tensor grows = steps >= static_cast<int>(options_.growth_interval);
  const Tensor scale =
      where(grows, scale_.value() * 2.0f, where(good, scale_.value(), scale_.value() * 0.5f));
  return {Update::assign(applied_, scale_.value()),
          Update::assign(scale_, clamp(scale, options_.least, options_.most)),
          Update::assign(good_steps_, where(grows, zeros(scale_.shape(), DType::int32), steps))};
}

}  // namespace imprint::nn
