// Steps of optimisers: ai.onnx.preview.training. The inputs are a rate, the number of steps before, and then
// a list for each role: weights, gradients, and what the optimiser remembers.

#include <array>
#include <cmath>

#include "compute/base/amount.h"
#include "compute/base/quote.h"
#include "compute/base/text.h"
#include "compute/model/onnx/op.h"

namespace imprint::onnx {
namespace {

struct OptimiserInputs {
  Tensor rate, step;  // scalars, float32
  int count = 0;      // of weights
};

// lists: how many tensors belong to each weight.
std::optional<OptimiserInputs> optimiser_inputs(OpContext& context, int lists) {
  const int rest = context.input_count() - 2;
  if (!context.require(rest > 0 && rest % lists == 0, text("found ", amount(context.input_count(), "input"),
                                                           ", expected 2 and ", lists, " per weight")) ||
      !context.may_make(16 * rest))
    return std::nullopt;
  if (!context.require(context.shape(0).element_count() == 1 && context.shape(1).element_count() == 1,
                       "the rate or the number of steps is not one number"))
    return std::nullopt;
  for (int i = 2; i < context.input_count(); ++i)
    if (!context.require(context.shape(i) == context.shape(2 + (i - 2) % (rest / lists)),
                         text("input ", i, ": found ", context.shape(i).text(), " beside a weight ",
                              context.shape(2 + (i - 2) % (rest / lists)).text())))
      return std::nullopt;
  return OptimiserInputs{imprint::reshape(context.tensor(0), {}),
                         imprint::cast(imprint::reshape(context.tensor(1), {}), DType::float32),
                         rest / lists};
}

void adagrad(OpContext& context) {
  const auto in = optimiser_inputs(context, 3);
  if (!in) return;
  const double decay = context.float_attribute("decay_factor", 0),
               epsilon = context.float_attribute("epsilon", 0),
               shrink = context.float_attribute("norm_coefficient", 0);
  const Tensor rate = in->rate / (in->step * decay + 1.0f);
  for (int i = 0; i < in->count; ++i) {
    const Tensor x = context.tensor(2 + i), squares = context.tensor(2 + 2 * in->count + i);
    const Tensor gradient = x * shrink + context.tensor(2 + in->count + i);
    const Tensor sum = squares + imprint::square(gradient);
    context.set(i, x - rate * gradient / (imprint::sqrt(sum) + epsilon));
    context.set(in->count + i, sum);
  }
}

void adam(OpContext& context) {
  const auto in = optimiser_inputs(context, 4);
  if (!in) return;
  const double alpha = context.float_attribute("alpha", 0.9), beta = context.float_attribute("beta", 0.999),
               epsilon = context.float_attribute("epsilon", 0),
               shrink = context.float_attribute("norm_coefficient", 0),
               after = context.float_attribute("norm_coefficient_post", 0);
  const auto power = [&](double base) { return imprint::pow(Tensor(base), in->step); };
  const Tensor corrected = in->rate * imprint::sqrt(1.0f - power(beta)) / (1.0f - power(alpha));
  const Tensor rate = imprint::where(in->step > 0.0f, corrected, in->rate);
  for (int i = 0; i < in->count; ++i) {
    const auto part = [&](int list) { return context.tensor(2 + list * in->count + i); };
    const Tensor x = part(0), gradient = x * shrink + part(1);
    const Tensor mean = part(2) * alpha + gradient * (1 - alpha),
                 squares = part(3) * beta + imprint::square(gradient) * (1 - beta);
    context.set(i, (x - rate * mean / (imprint::sqrt(squares) + epsilon)) * (1 - after));
    context.set(in->count + i, mean);
    context.set(2 * in->count + i, squares);
  }
}

void momentum(OpContext& context) {
  const auto in = optimiser_inputs(context, 3);
  if (!in) return;
  const double alpha = context.float_attribute("alpha", 0), beta = context.float_attribute("beta", 0),
               shrink = context.float_attribute("norm_coefficient", 0);
  const std::string mode = context.string_attribute("mode", "standard");
  if (mode != "standard" && mode != "nesterov") return context.unsupported("mode " + quote(mode));
  const Tensor weight = imprint::where(in->step > 0.0f, Tensor(beta), 1.0f);
  for (int i = 0; i < in->count; ++i) {
    const auto part = [&](int list) { return context.tensor(2 + list * in->count + i); };
    const Tensor x = part(0), gradient = x * shrink + part(1);
    const Tensor velocity = part(2) * alpha + gradient * weight;
    context.set(i, x - in->rate * (mode == "nesterov" ? gradient + velocity * alpha : velocity));
    context.set(in->count + i, velocity);
  }
}

constexpr std::array kTrainingOps{
    OpHandler{"ai.onnx.preview.training.Adagrad", adagrad},
    OpHandler{"ai.onnx.preview.training.Adam", adam},
    OpHandler{"ai.onnx.preview.training.Momentum", momentum},
};

}  // namespace

std::span<const OpHandler> training_ops() { return kTrainingOps; }

}  // namespace imprint::onnx
