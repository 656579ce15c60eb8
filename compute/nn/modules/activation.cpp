#include "compute/nn/modules/activation.h"

#include <array>
#include <cmath>
#include <numbers>

#include "compute/nn/layer_parameters.h"

namespace imprint::nn {
namespace {

constexpr std::array<std::string_view, 28> kNames{
    "identity",    "relu",    "leaky_relu",  "elu",         "selu",         "gelu",          "gelu_tanh",
    "silu",        "mish",    "tanh",        "sigmoid",     "softplus",     "softsign",      "hard_tanh",
    "hard_swish",  "relu6",   "celu",        "log_sigmoid", "hard_sigmoid", "tanh_shrink",   "hard_shrink",
    "soft_shrink", "softmax", "log_softmax", "softmin",     "glu",          "quiet_softmax", "threshold"};

// The i-th number, or the default.
struct Numbers {
  std::span<const double> given;
  double operator()(std::size_t i, double otherwise) const { return i < given.size() ? given[i] : otherwise; }
};

Tensor activate_rarely(const Tensor& x, Activation activation, const Numbers& number) {
  switch (activation) {
    case Activation::relu6:
      return relu6(x);
    case Activation::celu:
      return celu(x, number(0, 1));
    case Activation::log_sigmoid:
      return log_sigmoid(x);
    case Activation::hard_sigmoid:
      return hard_sigmoid(x, number(0, 1.0 / 6), number(1, 0.5));
    case Activation::tanh_shrink:
      return tanh_shrink(x);
    case Activation::hard_shrink:
      return hard_shrink(x, number(0, 0.5));
    case Activation::soft_shrink:
      return soft_shrink(x, number(0, 0.5));
    case Activation::softmax:
      return softmax(x);
    case Activation::log_softmax:
      return log_softmax(x);
    case Activation::softmin:
      return softmin(x);
    case Activation::glu:
      return glu(x);
    case Activation::quiet_softmax:
      return quiet_softmax(x);
    case Activation::threshold:
      return threshold(x, number(0, 0), number(1, 0));
    default:
      return x;
  }
}

}  // namespace

Tensor activate(const Tensor& x, Activation activation, std::span<const double> numbers) {
  const Numbers number{numbers};
  switch (activation) {
    case Activation::identity:
      return x;
    case Activation::relu:
      return relu(x);
    case Activation::leaky_relu:
      return leaky_relu(x, number(0, 0.01));
    case Activation::elu:
      return elu(x, number(0, 1));
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
      return softplus(x, number(0, 1));
    case Activation::softsign:
      return softsign(x);
    case Activation::hard_tanh:
      return hard_tanh(x, number(0, -1), number(1, 1));
    case Activation::hard_swish:
      return hard_swish(x);
    default:
      return activate_rarely(x, activation, number);
  }
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

PRelu::PRelu(const std::string& name, std::int64_t channels, double initial, std::int64_t groups)
    : weight_(add_constant(parameters_, name, "weight",
                           groups > 0 ? Shape{groups, channels} : Shape{channels}, initial)) {}

Tensor PRelu::operator()(const Tensor& x) const {
  const Tensor weight = weight_.value();
  if (weight.ok() && weight.rank() == 2) {
    Shape beside{weight.extent(0), 1, weight.extent(1)};
    while (x.ok() && beside.rank() < x.rank()) beside.append(1);
    return prelu(x, reshape(weight, beside));
  }
  if (!x.ok() || !weight.ok() || weight.extent(0) == 1 || x.rank() < 2) return prelu(x, weight);
  Shape aligned{weight.extent(0)};
  for (int axis = 2; axis < x.rank(); ++axis) aligned.append(1);
  return prelu(x, reshape(weight, aligned));
}

}  // namespace imprint::nn
