#pragma once
// Layers (module.h) that draw random numbers in training passes only (pass.h).

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

// x where it is not negative, else x times a slope: of each element, between both, in training, and the mean
// of both in evaluations. Xu, Wang, Chen, Li, Empirical Evaluation of Rectified Activations in Convolutional
// Network, 2015.
class RRelu {
 public:
  static constexpr std::string_view kKind = "RRelu";
  explicit RRelu(double lower = 1.0 / 8, double upper = 1.0 / 3) : lower_(lower), upper_(upper) {}
  Tensor operator()(const Tensor& x, Pass& pass) const;
  Tensor operator()(const Tensor& x) const;

 private:
  double lower_, upper_;
};

}  // namespace imprint::nn
