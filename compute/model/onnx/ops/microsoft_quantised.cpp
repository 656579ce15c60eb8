// Quantised operators of ONNX Runtime's exporters (com.microsoft): real numbers between two roundings.

#include <array>

#include "compute/base/text.h"
#include "compute/model/onnx/ops/whole_products.h"

namespace imprint::onnx {
namespace {

using Inputs = std::vector<std::optional<Value>>;

// (x - zero point) * scale of inputs at, at + 1, at + 2, each with one scale.
Tensor real_numbers(OpContext& context, int at) {
  const auto one = [&](int input) {
    const Tensor value = imprint::cast(context.tensor(input), DType::float32);
    return context.require(value.shape().element_count() == 1, text("input ", input, ": expected one number"))
               ? imprint::reshape(value, {})
               : value;
  };
  Tensor x = imprint::cast(context.tensor(at), DType::float32);
  if (context.has(at + 2)) x = x - one(at + 2);
  return x * one(at + 1);
}

// Rounded to the scale and zero point of inputs at and at + 1, with the type of input `like`.
void set_quantised(OpContext& context, const Tensor& x, int at, int like) {
  const ElementType type = context.value(like).type();
  if (type != ElementType::uint8 && type != ElementType::int8)
    return context.unsupported("quantised numbers of type " + element_type_name(type));
  const double low = type == ElementType::uint8 ? 0 : -128;
  if (!context.require(context.shape(at).element_count() == 1, "the scale is not one number")) return;
  Tensor out = imprint::round(x / imprint::reshape(context.tensor(at), {}));
  if (context.has(at + 1)) {
    if (!context.require(context.shape(at + 1).element_count() == 1, "the zero point is not one number"))
      return;
    out = out + imprint::reshape(imprint::cast(context.tensor(at + 1), DType::float32), {});
  }
  context.set(0, imprint::cast(imprint::clamp(out, low, low + 255), DType::int32), type);
}

void qlinear_add(OpContext& context) {
  const Tensor x = real_numbers(context, 0) + real_numbers(context, 3);
  if (!context.failure()) set_quantised(context, x, 6, 0);
}
void qlinear_mul(OpContext& context) {
  const Tensor x = real_numbers(context, 0) * real_numbers(context, 3);
  if (!context.failure()) set_quantised(context, x, 6, 0);
}
void qlinear_sigmoid(OpContext& context) {
  const Tensor x = imprint::sigmoid(real_numbers(context, 0));
  if (!context.failure()) set_quantised(context, x, 3, 0);
}
void qlinear_leaky_relu(OpContext& context) {
  const Tensor x = imprint::leaky_relu(real_numbers(context, 0), context.float_attribute("alpha", 0.01));
  if (!context.failure()) set_quantised(context, x, 3, 0);
}

// ---- pools and reductions ----

// x with channels last as [batch, channels, places...], or the other way.
Value turned_channels(OpContext& context, const Value& x, bool last) {
  if (!context.require(x.rank() >= 3, text("input ", x.shape().text(), " has no places"))) return x;
  Axes axes{0};
  if (last) {
    for (int axis = 2; axis < x.rank(); ++axis) axes.push_back(axis);
    axes.push_back(1);
  } else {
    axes.push_back(x.rank() - 1);
    for (int axis = 1; axis + 1 < x.rank(); ++axis) axes.push_back(axis);
  }
  return context.mover().permute(x, axes);
}

// The operator on the real numbers of input 0, rounded to the scale of input 3.
void between_roundings(OpContext& context, std::string_view op, std::int64_t opset,
                       bool channels_last = false) {
  const Tensor x = real_numbers(context, 0);
  if (context.failure()) return;
  Value real = Value::run_time(x, ElementType::float32);
  if (channels_last) real = turned_channels(context, real, false);
  const auto found = context.imported_as(op, opset, {real});
  if (!found) return;
  const Value out = channels_last ? turned_channels(context, (*found)[0], true) : (*found)[0];
  set_quantised(context, out.tensor(), 3, 0);
}

bool has_channels_last(OpContext& context) { return context.int_attribute("channels_last", 0) != 0; }

void qlinear_average(OpContext& context) {
  between_roundings(context, "AveragePool", 19, has_channels_last(context));
}
void qlinear_global_average(OpContext& context) {
  between_roundings(context, "GlobalAveragePool", 1, has_channels_last(context));
}
void qlinear_reduce_mean(OpContext& context) { between_roundings(context, "ReduceMean", 13); }
void qlinear_softmax(OpContext& context) {
  const std::int64_t opset = context.int_attribute("opset", 13);
  between_roundings(context, "Softmax", opset);
}

// The node as an operator whose input and output have channels first.
void channels_last_as(OpContext& context, std::string_view op) {
  const Value x = turned_channels(context, context.value(0), false);
  if (context.failure()) return;
  Inputs inputs = context.inputs();
  inputs[0] = x;
  if (const auto found = context.imported_as(op, 12, std::move(inputs)))
    context.set(0, turned_channels(context, (*found)[0], true));
}
void nhwc_max_pool(OpContext& context) { channels_last_as(context, "MaxPool"); }
void qlinear_conv_ms(OpContext& context) {
  if (has_channels_last(context)) return channels_last_as(context, "QLinearConv");
  if (const auto found = context.imported_as("QLinearConv", 10, context.inputs()))
    context.set(0, (*found)[0]);
}

void reduce_sum_integer(OpContext& context) {
  if (const auto found = context.imported_as("ReduceSum", 11, {context.value(0)}))
    context.set(0, (*found)[0].tensor(), ElementType::int32);
}

// ---- several inputs ----

void qlinear_where(OpContext& context) {
  const Tensor x = real_numbers(context, 1), y = real_numbers(context, 4);
  if (!context.failure()) set_quantised(context, imprint::where(context.tensor(0), x, y), 7, 1);
}

// (A - its zero point) * (B - its zero point), int32.
void mul_integer(OpContext& context) {
  const auto part = [&](int at) {
    const Tensor x = context.tensor(at);
    return context.has(at + 1) ? x - as_scalar(context.tensor(at + 1)) : x;
  };
  context.set(0, part(0) * part(2), ElementType::int32);
}

// Inputs: the scale and zero point of the result, then three for each part.
void qlinear_concat(OpContext& context) {
  const int parts = (context.input_count() - 2) / 3;
  if (!context.require(parts >= 1 && context.input_count() == 2 + 3 * parts,
                       "expected three inputs per part") ||
      !context.may_make(4 * parts))
    return;
  const int axis = context.axis(context.int_attribute("axis", 0), context.shape(2).rank());
  std::vector<Tensor> numbers;
  for (int i = 0; i < parts && !context.failure(); ++i) numbers.push_back(real_numbers(context, 2 + 3 * i));
  if (!context.failure()) set_quantised(context, imprint::concat(numbers, axis), 0, 2);
}

// ---- networks with quantised weights ----

// Weights [directions, from, to] of a DynamicQuantizeLSTM as those of an LSTM: real numbers, [directions, to,
// from]. Scales: one per direction, or one per direction and column.
std::optional<Value> real_weights(OpContext& context, int at, int scale) {
  const Value weights = context.value(at), scales = context.value(scale);
  const std::int64_t directions = weights.rank() == 3 ? weights.shape()[0] : 0;
  if (!context.require(
          directions >= 1 && directions <= 2 && scales.rank() >= 1 && scales.shape()[0] == directions,
          text("weights ", weights.shape().text(), " and scales ", scales.shape().text(), " do not fit")))
    return std::nullopt;
  std::vector<Value> parts;
  for (std::int64_t d = 0; d < directions; ++d) {
    const auto row = [&](const Value& value, bool is_matrix) {
      const Value one = context.mover().slice(value, 0, d, 1, 1);
      const std::int64_t count = one.shape().element_count();
      return context.mover().reshape(one, is_matrix    ? Shape{one.shape()[1], one.shape()[2]}
                                          : count == 1 ? Shape{}
                                                       : Shape{count});
    };
    Inputs inputs{row(weights, true), row(scales, false)};
    if (context.has(scale + 1)) {
      if (!context.require(context.shape(scale + 1) == scales.shape(), "the zero points do not fit"))
        return std::nullopt;
      inputs.push_back(row(context.value(scale + 1), false));
    }
    const auto real = context.imported_as("DequantizeLinear", 13, std::move(inputs));
    if (!real) return std::nullopt;
    const Value turned = context.mover().permute((*real)[0], {1, 0});
    parts.push_back(context.mover().reshape(turned, {1, turned.shape()[0], turned.shape()[1]}));
  }
  return context.mover().concat(parts, 0);
}

// Products of steps are computed in float32: their rounding to 8 bits is left out.
void dynamic_quantize_lstm(OpContext& context) {
  const auto weights = real_weights(context, 1, 8), recurrent = real_weights(context, 2, 10);
  if (!weights || !recurrent) return;
  Inputs inputs(context.inputs().begin(), context.inputs().begin() + 8);
  inputs[1] = *weights;
  inputs[2] = *recurrent;
  const auto found = context.imported_as("LSTM", 14, std::move(inputs));
  if (!found) return;
  for (std::size_t i = 0; i < found->size(); ++i)
    if ((*found)[i].type() != ElementType::undefined) context.set(static_cast<int>(i), (*found)[i]);
}

// Tables, gamma and beta from input 2 on, scales from 8 on, zero points from 13 on.
void quantised_embed_layer_norm(OpContext& context) {
  if (!context.may_make(32)) return;
  Inputs inputs{context.value(0), context.has(1) ? std::optional(context.value(1)) : std::nullopt};
  for (int i = 0; i < 5; ++i) {
    inputs.emplace_back();
    if (i == 2 && !context.has(4)) continue;
    Inputs parts{context.value(2 + i), context.value(8 + i)};
    if (context.has(13 + i)) parts.emplace_back(context.value(13 + i));
    const auto real = context.imported_as("DequantizeLinear", 13, std::move(parts));
    if (!real) return;
    inputs.back() = (*real)[0];
  }
  if (context.has(7)) inputs.emplace_back(context.value(7));
  const auto found = context.imported_as("com.microsoft.EmbedLayerNormalization", 1, std::move(inputs));
  for (std::size_t i = 0; found && i < found->size(); ++i) context.set(static_cast<int>(i), (*found)[i]);
}

constexpr std::array kMicrosoftQuantisedOps{
    OpHandler{"com.microsoft.DynamicQuantizeLSTM", dynamic_quantize_lstm},
    OpHandler{"com.microsoft.MulInteger", mul_integer},
    OpHandler{"com.microsoft.NhwcMaxPool", nhwc_max_pool},
    OpHandler{"com.microsoft.QEmbedLayerNormalization", quantised_embed_layer_norm},
    OpHandler{"com.microsoft.QLinearAdd", qlinear_add},
    OpHandler{"com.microsoft.QLinearAveragePool", qlinear_average},
    OpHandler{"com.microsoft.QLinearConcat", qlinear_concat},
    OpHandler{"com.microsoft.QLinearConv", qlinear_conv_ms},
    OpHandler{"com.microsoft.QLinearGlobalAveragePool", qlinear_global_average},
    OpHandler{"com.microsoft.QLinearLeakyRelu", qlinear_leaky_relu},
    OpHandler{"com.microsoft.QLinearMul", qlinear_mul},
    OpHandler{"com.microsoft.QLinearReduceMean", qlinear_reduce_mean},
    OpHandler{"com.microsoft.QLinearSigmoid", qlinear_sigmoid},
    OpHandler{"com.microsoft.QLinearSoftmax", qlinear_softmax},
    OpHandler{"com.microsoft.QLinearWhere", qlinear_where},
    OpHandler{"com.microsoft.ReduceSumInteger", reduce_sum_integer},
};

}  // namespace

std::span<const OpHandler> microsoft_quantised_ops() { return kMicrosoftQuantisedOps; }

}  // namespace imprint::onnx
