#pragma once
// Activations as values with names, for networks that data describes.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compute/nn/parameter.h"

namespace imprint::nn {

enum class Activation {
  identity,
  relu,
  leaky_relu,
  elu,
  selu,
  gelu,
  gelu_tanh,
  silu,
  mish,
  tanh,
  sigmoid,
  softplus,
  softsign,
  hard_tanh,
  hard_swish,
  relu6,
  celu,
  log_sigmoid,
  hard_sigmoid,
  tanh_shrink,
  hard_shrink,
  soft_shrink,
  softmax,  // over the last axis, as the next three
  log_softmax,
  softmin,
  glu,            // halves the last axis
  quiet_softmax,  // over the last axis
  threshold       // numbers {0, 0}: x above the first, else the second
};

// numbers: instead of the defaults of the function in tensor.h, in its order; {0.2} of leaky_relu is its
// slope. Functions without such take none.
Tensor activate(const Tensor& x, Activation activation, std::span<const double> numbers = {});
std::string_view activation_name(Activation activation);  // "leaky_relu"
std::optional<Activation> find_activation(std::string_view name);

// Gain for the initial weights of the layer before this activation; it keeps the variance of activations
// level. sqrt(2) for relu, sqrt(2 / (1 + slope^2)) for leaky_relu (He et al., Delving Deep into Rectifiers,
// 2015), 5/3 for tanh, 3/4 for selu, 1 for the rest.
double activation_gain(Activation activation);

// An activation as a layer (module.h).
class ActivationLayer {
 public:
  static constexpr std::string_view kKind = "Activation";
  explicit ActivationLayer(Activation activation, std::vector<double> numbers = {})
      : activation_(activation), numbers_(std::move(numbers)) {}
  Tensor operator()(const Tensor& x) const { return activate(x, activation_, numbers_); }

 private:
  Activation activation_;
  std::vector<double> numbers_;
};

// x where positive, else weight x, with one learned weight, or one per channel: x [batch, channels, ...].
// Parameters: "weight" [channels]; with groups (parameter.h) [groups, channels], for x [groups, batch,
// channels, ...]. He, Zhang, Ren, Sun, Delving Deep into Rectifiers, 2015.
class PRelu {
 public:
  static constexpr std::string_view kKind = "PRelu";
  explicit PRelu(const std::string& name, std::int64_t channels = 1, double initial = 0.25,
                 std::int64_t groups = 0);
  Tensor operator()(const Tensor& x) const;
  const Parameters& parameters() const { return parameters_; }

 private:
  Parameters parameters_;
  Variable weight_;
};

}  // namespace imprint::nn
