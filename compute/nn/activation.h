#pragma once
// Activations as values with names, for networks that data describes.

#include <optional>
#include <string_view>

#include "compute/tensor/tensor.h"

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
  hard_swish
};

Tensor activate(const Tensor& x, Activation activation);
std::string_view activation_name(Activation activation);  // "leaky_relu"
std::optional<Activation> find_activation(std::string_view name);

// Gain for the initial weights of the layer before this activation; it keeps the variance of activations
// level. sqrt(2) for relu, sqrt(2 / (1 + slope^2)) for leaky_relu (He et al., Delving Deep into Rectifiers,
// 2015), 5/3 for tanh, 3/4 for selu, 1 for the rest.
double activation_gain(Activation activation);

}  // namespace imprint::nn
