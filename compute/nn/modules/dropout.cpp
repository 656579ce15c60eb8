#include "compute/nn/modules/dropout.h"

#include "compute/base/text.h"

namespace imprint::nn {

Tensor Dropout::operator()(const Tensor& x, Pass& pass) const {
  if (!x.ok() || !pass.trains() || p_ == 0) return x;
  if (p_ < 0 || p_ > 1)
    return Tensor(
        make_error(ErrorCode::invalid_argument, text("dropout: found p ", p_, ", expected 0 to 1")));
  if (p_ == 1) return zeros_like(x);
  Shape shape = x.shape();
  for (int axis = 2; per_channel_ && axis < shape.rank(); ++axis) shape[axis] = 1;
  const Tensor kept = pass.uniform(shape) >= Tensor(p_);
  return where(kept, x * Tensor(1 / (1 - p_)), 0.0f);
}

Tensor GaussianNoise::operator()(const Tensor& x, Pass& pass) const {
  if (!x.ok() || !pass.trains() || deviation_ == 0) return x;
  return x + Tensor(deviation_) * pass.normal(x.shape());
}

Tensor RRelu::operator()(const Tensor& x, Pass& pass) const {
  if (!x.ok() || !pass.trains()) return (*this)(x);
  const Tensor slope = Tensor(lower_) + Tensor(upper_ - lower_) * pass.uniform(x.shape());
  return where(x < 0.0f, slope * x, x);
}

Tensor RRelu::operator()(const Tensor& x) const { return leaky_relu(x, (lower_ + upper_) / 2); }

}  // namespace imprint::nn
