// Activations. Kinks are written with where, so that the derivative at a kink is PyTorch's. The branch not
// taken stays finite: its gradient is multiplied by zero, and 0 * inf is NaN.

#include <numbers>

#include "compute/base/text.h"
#include "compute/tensor/build.h"

namespace imprint {

using namespace tensor;

namespace {

Tensor negative_part(const Tensor& x) { return where(x > 0.0f, 0.0f, x); }

// -|x|, for smooth functions made of two halves: at 0 either half has the function's value and all its
// derivatives. With abs only the first derivative would be right there.
Tensor minus_magnitude(const Tensor& x) { return where(x > 0.0f, -x, x); }

// clamp whose bounds belong to the flat side, where the derivative is 0.
Tensor saturate(const Tensor& x, double low, double high) {
  const Tensor lower = Tensor(low), upper = Tensor(high);
  return where(x <= lower, lower, where(x >= upper, upper, x));
}

}  // namespace

Tensor relu(const Tensor& x) { return where(x <= 0.0f, 0.0f, x); }
Tensor relu6(const Tensor& x) { return saturate(x, 0, 6); }
Tensor leaky_relu(const Tensor& x, double slope) { return where(x > 0.0f, x, Tensor(slope) * x); }

Tensor prelu(const Tensor& x, const Tensor& slope) {
  if (x.ok() && slope.ok()) {
    const std::optional<Shape> wider = broadcast(x.shape(), slope.shape());
    if (!wider || *wider != x.shape())
      return failure(
          ErrorCode::shape_mismatch, "prelu",
          text("found slope ", describe(slope), ", expected a shape that broadcasts to ", describe(x)));
  }
  return where(x > 0.0f, x, slope * x);
}

// Clevert, Unterthiner, Hochreiter, Fast and Accurate Deep Network Learning by Exponential Linear Units,
// 2016.
Tensor elu(const Tensor& x, double alpha) {
  return where(x > 0.0f, x, Tensor(alpha) * expm1(negative_part(x)));
}
// Klambauer, Unterthiner, Mayr, Hochreiter, Self-Normalizing Neural Networks, 2017.
Tensor selu(const Tensor& x) { return Tensor(1.0507009873554804934) * elu(x, 1.6732632423543772848); }
// Barron, Continuously Differentiable Exponential Linear Units, 2017.
Tensor celu(const Tensor& x, double alpha) {
  return where(x > 0.0f, x, Tensor(alpha) * expm1(negative_part(x) * Tensor(1 / alpha)));
}

// Hendrycks, Gimpel, Gaussian Error Linear Units, 2016.
Tensor gelu(const Tensor& x) { return 0.5f * x * (1.0f + erf(x * Tensor(std::numbers::sqrt2 / 2))); }
Tensor gelu_tanh(const Tensor& x) {
  const double scale = std::numbers::sqrt2 * std::numbers::inv_sqrtpi;  // sqrt(2 / pi)
  return 0.5f * x * (1.0f + tanh(Tensor(scale) * (x + Tensor(0.044715) * x * x * x)));
}

// log(1 / (1 + exp(-x))) and log(1 + exp(x)), in forms that do not overflow.
Tensor log_sigmoid(const Tensor& x) { return negative_part(x) - log1p(exp(minus_magnitude(x))); }
Tensor softplus(const Tensor& x, double beta) {
  const Tensor scaled = x * Tensor(beta);
  return (relu(scaled) + log1p(exp(minus_magnitude(scaled)))) * Tensor(1 / beta);
}

Tensor hard_sigmoid(const Tensor& x, double alpha, double beta) {
  return saturate(Tensor(alpha) * x + Tensor(beta), 0, 1);
}
Tensor silu(const Tensor& x) { return x * sigmoid(x); }
Tensor hard_swish(const Tensor& x) { return x * hard_sigmoid(x); }
// Misra, Mish: A Self Regularized Non-Monotonic Activation Function, 2020.
Tensor mish(const Tensor& x) { return x * tanh(softplus(x)); }
Tensor softsign(const Tensor& x) { return x / (1.0f + abs(x)); }
Tensor tanh_shrink(const Tensor& x) { return x - tanh(x); }
Tensor hard_tanh(const Tensor& x, double low, double high) { return saturate(x, low, high); }
Tensor hard_shrink(const Tensor& x, double lambda) { return where(abs(x) <= Tensor(lambda), 0.0f, x); }
Tensor soft_shrink(const Tensor& x, double lambda) { return x - clamp(x, -lambda, lambda); }
Tensor shrink(const Tensor& x, double lambda, double bias) {
  return where(abs(x) <= Tensor(lambda), 0.0f, x - Tensor(bias) * sign(x));
}
Tensor threshold(const Tensor& x, double limit, double value) {
  return where(x <= Tensor(limit), Tensor(value), x);
}
Tensor thresholded_relu(const Tensor& x, double alpha) { return where(x <= Tensor(alpha), 0.0f, x); }

// Dauphin, Fan, Auli, Grangier, Language Modeling with Gated Convolutional Networks, 2017.
Tensor glu(const Tensor& x, int axis) {
  if (!x.ok()) return x;
  const std::optional<int> position = normalize_axis(axis, x.rank());
  if (!position || x.extent(*position) % 2 != 0)
    return failure(ErrorCode::shape_mismatch, "glu",
                   text("found axis ", axis, " of ", describe(x), ", expected an axis with an even extent"));
  const std::int64_t half = x.extent(*position) / 2;
  return narrow(x, *position, 0, half) * sigmoid(narrow(x, *position, half, half));
}

}  // namespace imprint
