#include "compute/nn/modules/pooling.h"

#include "compute/nn/layer_parameters.h"

namespace imprint::nn {
namespace {

Axes place_axes(const Tensor& x) {
  Axes axes;
  for (int axis = 2; axis < x.rank(); ++axis) axes.push_back(axis);
  return axes;
}

}  // namespace

Tensor GlobalAvgPool::operator()(const Tensor& x) const {
  if (x.ok() && x.rank() < 3) return unfit_input("global average pool", "", x, "[batch, channels, ...]");
  return mean(x, place_axes(x));
}

Tensor GlobalMaxPool::operator()(const Tensor& x) const {
  if (x.ok() && x.rank() < 3) return unfit_input("global maximum pool", "", x, "[batch, channels, ...]");
  return (max)(x, place_axes(x));
}

Tensor Upsample::operator()(const Tensor& x) const {
  if (x.ok() && (x.rank() < 3 || x.rank() > 5))
    return unfit_input("upsample", "", x, "[batch, channels, places...]");
  const auto places = [&](int i) { return factor_ * (2 + i < x.rank() ? x.extent(2 + i) : 1); };
  return interpolate(x, {places(0), places(1), places(2)}, options_);
}

Tensor Pad::operator()(const Tensor& x) const {
  if (!x.ok()) return x;
  if (x.rank() < 3 || x.rank() > 5) return unfit_input("pad", "", x, "[batch, channels, places...]");
  std::vector<std::pair<std::int64_t, std::int64_t>> amounts(2);
  for (int i = 0; i < x.rank() - 2; ++i) amounts.emplace_back(amount_[i], amount_[i]);
  return mode_ == PadMode::constant ? pad(x, amounts, value_) : pad(x, amounts, mode_);
}

}  // namespace imprint::nn
