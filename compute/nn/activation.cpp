#include "compute/nn/activation.h"

#include <array>
#include <cmath>
#include <numbers>

namespace imprint::nn {
namespace {

constexpr std::array<std::string_view, 15> kNames{
    "identity", "relu", "leaky_relu", "elu",      "selu",     "gelu",      "gelu_tanh", "silu",
    "mish",     "tanh", "sigmoid",    "softplus", "softsign", "hard_tanh", "hard_swish"};

}  // namespace

Tensor activate(const Tensor& x, Activation activation) {
  switch (activation) {
    case Activation::identity:
      return x;
    case Activation::relu:
      return relu(x);
    case Activation::leaky_relu:
      return leaky_relu(x);
    case Activation::elu:
      return elu(x);
    case Activation::selu:
      return selu(x);
    case Activation::gelu:
      return gelu(x);
    case Activation::gelu_tanh:
      return gelu_tanh(x);
    case Activation::silu:
      return silu(x);
    case Activation::mish:
      return mish(x);
    case Activation::tanh:
      return tanh(x);
    case Activation::sigmoid:
      return sigmoid(x);
    case Activation::softplus:
      return softplus(x);
    case Activation::softsign:
      return softsign(x);
    case Activation::hard_tanh:
      return hard_tanh(x);
    case Activation::hard_swish:
      return hard_swish(x);
  }
  return x;
}

std::string_view activation_name(Activation activation) {
  return kNames[static_cast<std::size_t>(activation)];
}

std::optional<Activation> find_activation(std::string_view name) {
  for (std::size_t i = 0; i < kNames.size(); ++i)
    if (kNames[i] == name) return static_cast<Activation>(i);
  return std::nullopt;
}

double activation_gain(Activation activation) {
  switch (activation) {
    case Activation::relu:
      return std::numbers::sqrt2;
    case Activation::leaky_relu:
      return std::sqrt(2 / (1 + 0.01 * 0.01));
    case Activation::tanh:
      return 5.0 / 3;
    case Activation::selu:
      return 0.75;
    default:
      return 1;
  }
}

}  // namespace imprint::nn
