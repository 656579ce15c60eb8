#pragma once
// Noise that acts in training passes only (pass.h), as layers (module.h).

#include <string_view>

#include "compute/nn/pass.h"

namespace imprint::nn {

// Each element is 0 with probability p, else divided by 1 - p. per_channel: all places of a channel together,
// for x [batch, channels, ...]: PyTorch's Dropout1d to 3d.
// Srivastava et al., Dropout: A Simple Way to Prevent Neural Networks from Overfitting, 2014.
class Dropout {
 public:
  static constexpr std::string_view kKind = "Dropout";
  explicit Dropout(double p = 0.5, bool per_channel = false) : p_(p), per_channel_(per_channel) {}
  Tensor operator()(const Tensor& x, Pass& pass) const;
  Tensor operator()(const Tensor& x) const { return x; }

 private:
  double p_;
  bool per_channel_;
};

// Adds a normal number with this deviation to each element. PyTorch has none.
class GaussianNoise {
 public:
  static constexpr std::string_view kKind = "GaussianNoise";
  explicit GaussianNoise(double deviation = 0.1) : deviation_(deviation) {}
  Tensor operator()(const Tensor& x, Pass& pass) const;
  Tensor operator()(const Tensor& x) const { return x; }

 private:
  double deviation_;
};

}  // namespace imprint::nn
