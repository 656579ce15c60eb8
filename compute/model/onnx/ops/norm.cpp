// Normalisation at inference.

#include <array>
#include <cmath>

#include "compute/model/onnx/op.h"
#include "compute/tensor/composites/composites.h"

namespace imprint::onnx {

namespace {

// A [channels] tensor shaped to broadcast against [batch, channels, ...].
Tensor per_channel(const Tensor& values, int rank) {
  Shape shape{values.extent(0)};
  for (int i = 2; i < rank; ++i) shape.append(1);
  return imprint::reshape(values, shape);
}

bool is_channel_list(OpContext& context, int input, std::int64_t channels) {
  return context.require(context.shape(input) == Shape{channels},
                         "input " + std::to_string(input) + " has shape " + context.shape(input).text() +
                             " for " + std::to_string(channels) + " channels");
}

}  // namespace

Tensor normalized(const Tensor& x, const Axes& axes, double epsilon) {
  const Tensor centred = imprint::sub(x, imprint::mean(x, axes, true));
  const Tensor variance = imprint::mean(imprint::square(centred), axes, true);
  return imprint::mul(centred, imprint::rsqrt(imprint::add(variance, epsilon)));
}

namespace {

// With the statistics of the batch, and the running ones after it.
void batch_norm_of_batch(OpContext& context, const Tensor& x, double epsilon) {
  Axes axes{0};
  for (int axis = 2; axis < x.rank(); ++axis) axes.push_back(axis);
  const double momentum = context.float_attribute("momentum", 0.9);
  const Tensor mean = imprint::mean(x, axes), variance = imprint::variance(x, axes, false, 0);
  const auto beside = [&](const Tensor& values) { return per_channel(values, x.rank()); };
  const Tensor normal =
      imprint::mul(imprint::sub(x, beside(mean)), imprint::rsqrt(imprint::add(beside(variance), epsilon)));
  context.set(0, imprint::add(imprint::mul(normal, beside(context.tensor(1))), beside(context.tensor(2))));
  const auto running = [&](int input, const Tensor& now) {
    return imprint::add(imprint::mul(context.tensor(input), momentum), imprint::mul(now, 1 - momentum));
  };
  context.set(1, running(3, mean));
  context.set(2, running(4, variance));
  context.set(3, mean);
  context.set(4, variance);
}

// y = scale * (x - mean) / sqrt(variance + epsilon) + bias, with the statistics of training.
void batch_norm(OpContext& context) {
  const Tensor x = context.tensor(0);
  if (context.int_attribute("spatial", 1) == 0)
    return context.unsupported("statistics of each place (spatial = 0)");
  if (!context.require(x.rank() >= 2, "input " + x.shape().text() + " has no channels")) return;
  const std::int64_t channels = x.extent(1);
  for (int input = 1; input < 5; ++input)
    if (!is_channel_list(context, input, channels)) return;
  const double epsilon = context.float_attribute("epsilon", 1e-5);
  // Before opset 14 further outputs asked for training.
  bool trains = context.int_attribute("training_mode", 0) != 0;
  for (int output = 1; output < 5 && context.opset() < 14; ++output) trains = trains || context.wants(output);
  if (trains) return batch_norm_of_batch(context, x, epsilon);

  bool known = true;
  for (int input = 1; input < 5; ++input)
    known = known && context.value(input).foldable() && is_float(context.value(input).type());
  known = known && context.mover().may_fold(ElementType::float32, channels) &&
          context.mover().may_fold(ElementType::float32, channels);
  if (known) {
    // One factor and one offset per channel, computed once, in double.
    const auto number = [&](int input, std::size_t i) {
      return static_cast<double>(context.value(input).host()->floats[i]);
    };
    std::vector<float> factor(static_cast<std::size_t>(channels)), offset(factor.size());
    for (std::size_t i = 0; i < factor.size(); ++i) {
      const double scale = number(1, i) / std::sqrt(number(4, i) + epsilon);
      factor[i] = static_cast<float>(scale);
      offset[i] = static_cast<float>(number(2, i) - number(3, i) * scale);
    }
    const Tensor scaled = imprint::mul(x, per_channel(Tensor::from(factor, {channels}), x.rank()));
    return context.set(0, imprint::add(scaled, per_channel(Tensor::from(offset, {channels}), x.rank())));
  }
  const auto parameter = [&](int input) { return per_channel(context.tensor(input), x.rank()); };
  const Tensor factor = imprint::mul(parameter(1), imprint::rsqrt(imprint::add(parameter(4), epsilon)));
  context.set(0, imprint::add(imprint::mul(imprint::sub(x, parameter(3)), factor), parameter(2)));
}

void instance_norm(OpContext& context) {
  const Tensor x = context.tensor(0);
  if (!context.require(x.rank() >= 3, "input " + x.shape().text() + " has no spatial axes")) return;
  if (!is_channel_list(context, 1, x.extent(1)) || !is_channel_list(context, 2, x.extent(1))) return;
  Axes axes;
  for (int axis = 2; axis < x.rank(); ++axis) axes.push_back(axis);
  const Tensor normal = normalized(x, axes, context.float_attribute("epsilon", 1e-5));
  context.set(0, imprint::add(imprint::mul(normal, per_channel(context.tensor(1), x.rank())),
                              per_channel(context.tensor(2), x.rank())));
}

void layer_norm(OpContext& context) {
  const Tensor x = context.tensor(0);
  if (!context.require(x.rank() >= 1, "a scalar has no axis to normalise")) return;
  const int first = context.axis(context.int_attribute("axis", -1), x.rank());
  Axes axes;
  for (int axis = first; axis < x.rank(); ++axis) axes.push_back(axis);
  const double epsilon = context.float_attribute("epsilon", 1e-5);
  Tensor result = imprint::mul(normalized(x, axes, epsilon), context.tensor(1));
  if (context.has(2)) result = imprint::add(result, context.tensor(2));
  context.set(0, result);
  if (!context.wants(1) && !context.wants(2)) return;
  const Tensor mean = imprint::mean(x, axes, true);
  context.set(1, mean);
  context.set(2, imprint::rsqrt(imprint::add(
                     imprint::mean(imprint::square(imprint::sub(x, mean)), axes, true), epsilon)));
}

void group_norm(OpContext& context) {
  const Tensor x = context.tensor(0);
  const std::int64_t groups = context.int_attribute("num_groups", 0),
                     channels = x.rank() >= 2 ? x.extent(1) : 0;
  if (!context.require(
          x.rank() >= 3 && groups >= 1 && channels % groups == 0,
          "input " + x.shape().text() + " does not divide into " + std::to_string(groups) + " groups"))
    return;
  // Scale and bias are per group up to opset 20, then per channel. Some exporters changed earlier.
  const std::int64_t parameters =
      context.opset() < 21 && context.shape(1) == Shape{groups} ? groups : channels;
  if (!is_channel_list(context, 1, parameters) || !is_channel_list(context, 2, parameters)) return;
  const std::int64_t batch = x.extent(0), count = x.shape().element_count();
  if (!context.require(count > 0, "input " + x.shape().text() + " is empty")) return;
  const Tensor grouped = imprint::reshape(x, {batch, groups, count / (batch * groups)});
  const Tensor normal = normalized(grouped, {2}, context.float_attribute("epsilon", 1e-5));
  const Tensor rows = imprint::reshape(normal, {batch, parameters, count / (batch * parameters)});
  const Tensor scaled =
      imprint::add(imprint::mul(rows, per_channel(context.tensor(1), 3)), per_channel(context.tensor(2), 3));
  context.set(0, imprint::reshape(scaled, x.shape()));
}

// x / sqrt(mean x^2 + epsilon) * scale from `axis` on.
void rms_norm(OpContext& context) {
  const Tensor x = context.tensor(0);
  if (!context.require(x.rank() >= 1, "a scalar has no axis to normalise")) return;
  Axes axes;
  for (int axis = context.axis(context.int_attribute("axis", -1), x.rank()); axis < x.rank(); ++axis)
    axes.push_back(axis);
  const Tensor factor = imprint::rsqrt(
      imprint::add(imprint::mean(imprint::square(x), axes, true), context.float_attribute("epsilon", 1e-5)));
  context.set(0, imprint::mul(imprint::mul(x, factor), context.tensor(1)));
}

void lp_norm(OpContext& context) {
  const Tensor x = context.tensor(0);
  const std::int64_t p = context.int_attribute("p", 2);
  const int axis = context.axis(context.int_attribute("axis", -1), x.rank());
  if (!context.require(x.rank() >= 1 && (p == 1 || p == 2), "p is neither 1 nor 2")) return;
  const Tensor size = imprint::norm(x, static_cast<double>(p), {axis}, true);
  context.set(0, imprint::where(imprint::greater(size, 0.0f), imprint::div(x, size), 0.0f));
}

void mean_variance_norm(OpContext& context) {
  const Tensor x = context.tensor(0);
  const Axes axes = context.axes(context.ints_attribute("axes", {0, 2, 3}), x.rank());
  if (context.failure()) return;
  const Tensor centre = imprint::sub(x, imprint::mean(x, axes, true));
  const Tensor deviation = imprint::sqrt(imprint::mean(imprint::square(centre), axes, true));
  context.set(0, imprint::div(centre, imprint::add(deviation, 1e-9)));
}

// x / (bias + alpha / size * sum of squares over neighbouring channels)^beta.
void local_response_norm(OpContext& context) {
  const Tensor x = context.tensor(0);
  const std::int64_t size = context.int_attribute("size", 0);
  if (!context.require(x.rank() >= 3 && size >= 1 && size < (1 << 24),
                       "input " + x.shape().text() + ": size " + std::to_string(size)))
    return;
  std::vector<std::pair<std::int64_t, std::int64_t>> pads(static_cast<std::size_t>(x.rank()));
  pads[1] = {(size - 1) / 2, size / 2};
  const Tensor sums = imprint::sum(imprint::window(imprint::pad(imprint::square(x), pads), 1, size), {-1});
  const Tensor base =
      imprint::add(imprint::mul(sums, context.float_attribute("alpha", 1e-4) / static_cast<double>(size)),
                   context.float_attribute("bias", 1));
  context.set(0, imprint::div(x, imprint::pow(base, Tensor(context.float_attribute("beta", 0.75)))));
}

constexpr std::array kNormOps{
    OpHandler{"BatchNormalization", batch_norm}, OpHandler{"InstanceNormalization", instance_norm},
    OpHandler{"LayerNormalization", layer_norm}, OpHandler{"GroupNormalization", group_norm},
    OpHandler{"RMSNormalization", rms_norm},     OpHandler{"SimplifiedLayerNormalization", rms_norm},
    OpHandler{"LpNormalization", lp_norm},       OpHandler{"MeanVarianceNormalization", mean_variance_norm},
    OpHandler{"LRN", local_response_norm},
};

}  // namespace

std::span<const OpHandler> norm_ops() { return kNormOps; }

}  // namespace imprint::onnx
