#pragma once
// Activations by name, for networks described as data.

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
std::string_view activation_name(Activation activation);
std::optional<Activation> find_activation(std::string_view name);

// What orthogonal, Kaiming and Xavier weights before this activation are multiplied by, so that the variance
// of activations stays level: sqrt(2) for rectifiers (He et al., Delving Deep into Rectifiers, 2015), 5/3 for
// tanh, 3/4 for selu, 1 for the rest.
double activation_gain(Activation activation);

}  // namespace imprint::nn
