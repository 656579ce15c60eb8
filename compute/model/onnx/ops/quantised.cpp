// Quantised operators, in float32 and int32: the numbers are those of int8 arithmetic.

#include <algorithm>
#include <array>

#include "compute/base/text.h"
#include "compute/model/onnx/ops/whole_products.h"

namespace imprint::onnx {
namespace {

struct Range {
  double low = 0, high = 0;
};

std::optional<Range> range_of(OpContext& context, ElementType type) {
  switch (type) {
    case ElementType::uint4:
      return Range{0, 15};
    case ElementType::int4:
      return Range{-8, 7};
    case ElementType::uint8:
      return Range{0, 255};
    case ElementType::int8:
      return Range{-128, 127};
    case ElementType::uint16:
      return Range{0, 65535};
    case ElementType::int16:
      return Range{-32768, 32767};
    default:
      context.unsupported("quantised numbers of type " + element_type_name(type));
      return std::nullopt;
  }
}

// A scale or zero point, shaped to broadcast against x: of all elements, of an axis, or of blocks along it.
std::optional<Tensor> beside(OpContext& context, int input, const Shape& x) {
  Tensor value = as_float(context, context.value(input));
  const Shape& shape = context.shape(input);
  if (shape.element_count() == 1) return imprint::reshape(value, Shape{});
  const std::int64_t block = context.int_attribute("block_size", 0);
  const int axis = context.axis(context.int_attribute("axis", 1), x.rank());
  if (context.failure()) return std::nullopt;
  if (block == 0 && shape == Shape{x[axis]}) {
    Shape along;
    for (int i = 0; i < x.rank(); ++i) along.append(i == axis ? x[axis] : 1);
    return imprint::reshape(value, along);
  }
  bool fits = block > 0 && block <= kMaxElements && shape.rank() == x.rank();
  for (int i = 0; fits && i < x.rank(); ++i)
    fits = i == axis ? shape[i] == (x[i] + block - 1) / block : shape[i] == x[i];
  if (!context.require(fits, text("input ", input, ": found ", shape.text(), " for x ", x.text(),
                                  " and blocks of ", block)))
    return std::nullopt;
  std::vector<std::int32_t> blocks;
  if (!context.mover().may_fold(ElementType::int32, x[axis])) {
    context.unsupported("constants of this size");
    return std::nullopt;
  }
  for (std::int64_t i = 0; i < x[axis]; ++i) blocks.push_back(static_cast<std::int32_t>(i / block));
  return imprint::take(value, axis, Tensor::from_ints(blocks, {x[axis]}));
}

Tensor saturated(const Tensor& rounded, const Range& range) {
  return imprint::cast(imprint::clamp(rounded, range.low, range.high), DType::int32);
}

void quantize(OpContext& context) {
  const Value x = context.value(0);
  ElementType type = context.has(2) ? context.value(2).type() : ElementType::uint8;
  if (!context.has(2))
    if (const std::int64_t asked = context.int_attribute("output_dtype", 0); asked > 0 && asked < 100)
      type = static_cast<ElementType>(static_cast<std::int32_t>(asked));
  const auto range = range_of(context, type);
  const auto scale = beside(context, 1, x.shape());
  if (!range || !scale) return;
  Tensor out = imprint::round(as_float(context, context.value(0)) / *scale);
  if (context.has(2)) {
    const auto zero = beside(context, 2, x.shape());
    if (!zero) return;
    out = out + *zero;
  }
  context.set(0, saturated(out, *range), type);
}

// Products of the value read the numbers themselves.
void keep_numbers(OpContext& context, Value& made) {
  const Value x = context.value(0), scale = context.value(1);
  const bool one = scale.shape().element_count() == 1;
  if (!is_float(scale.type()) || (!one && (scale.rank() != 1 || context.int_attribute("block_size", 0) != 0)))
    return;
  if (context.has(2) && (context.shape(2) != scale.shape() || context.value(2).type() != x.type())) return;
  made.set_dequantized({x, scale, context.has(2) ? std::optional(context.value(2)) : std::nullopt,
                        one ? 0 : context.axis(context.int_attribute("axis", 1), x.rank())});
}

// Weights of the file become float32 once. Scales: one, or one per index of an axis.
bool fold_dequantized(OpContext& context) {
  const Value x = context.value(0), scale = context.value(1);
  if (!x.foldable() || !scale.foldable() || context.int_attribute("block_size", 0) != 0) return false;
  if (context.has(2) && (!context.value(2).foldable() || context.value(2).shape() != scale.shape() ||
                         is_float(context.value(2).type())))
    return false;
  const bool one = scale.shape().element_count() == 1;
  const int axis = one ? 0 : context.axis(context.int_attribute("axis", 1), x.rank());
  const std::int64_t count = x.shape().element_count();
  if (context.failure() || is_float(x.type()) || !is_float(scale.type()) ||
      (!one && scale.shape() != Shape{x.shape()[axis]}) ||
      !context.mover().may_fold_weight(scale.type(), count))
    return false;
  std::int64_t inner = 1;
  for (int a = axis + 1; a < x.rank(); ++a) inner *= x.shape()[a];
  HostArray out{.type = scale.type(), .shape = x.shape(), .floats = {}, .ints = {}, .strings = {}};
  std::vector<float>& floats = out.floats.own();
  floats.reserve(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) {
    const auto channel = static_cast<std::size_t>(one ? 0 : i / inner % x.shape()[axis]);
    const float zero = context.has(2) ? static_cast<float>(context.value(2).host()->ints[channel]) : 0.0f;
    const float number = static_cast<float>(x.host()->ints[static_cast<std::size_t>(i)]);
    floats.push_back((number - zero) * scale.host()->floats[channel]);
  }
  Value made = Value::known(std::move(out));
  keep_numbers(context, made);
  context.set(0, std::move(made));
  return true;
}

void dequantize(OpContext& context) {
  const Value x = context.value(0);
  if (x.type() != ElementType::int32 && !range_of(context, x.type())) return;
  if (fold_dequantized(context) || context.failure()) return;
  const auto scale = beside(context, 1, x.shape());
  if (!scale) return;
  Tensor out = as_float(context, context.value(0));
  if (context.has(2)) {
    const auto zero = beside(context, 2, x.shape());
    if (!zero) return;
    out = out - *zero;
  }
  Value made = Value::run_time(out * *scale, context.value(1).type());
  keep_numbers(context, made);
  context.set(0, std::move(made));
}

struct Dynamic {
  Tensor numbers, scale, zero;  // float32
};

Dynamic quantized(const Tensor& x) {
  const Tensor low = imprint::minimum(imprint::min(x), 0.0f), high = imprint::maximum(imprint::max(x), 0.0f);
  const Tensor scale = (high - low) / 255.0, safe = imprint::where(scale > 0.0f, scale, 1.0f);
  const Tensor zero = imprint::clamp(imprint::round(-low / safe), 0, 255);
  // Zeros alone have the scale 1, as ONNX Runtime gives them: others may divide by it.
  return {imprint::clamp(imprint::round(x / safe) + zero, 0, 255),
          imprint::where(equal(scale, 0.0f), 1.0f, scale), zero};
}

void dynamic_quantize(OpContext& context) {
  if (!context.require(context.shape(0).element_count() > 0, "an empty input has no range")) return;
  const Dynamic found = quantized(context.tensor(0));
  context.set(0, imprint::cast(found.numbers, DType::int32), ElementType::uint8);
  context.set(1, found.scale, ElementType::float32);
  context.set(2, imprint::cast(found.zero, DType::int32), ElementType::uint8);
}

void matmul_integer(OpContext& context) {
  if (!range_of(context, context.value(0).type()) || !range_of(context, context.value(1).type())) return;
  context.set(0,
              whole_product(context, activations(context, eight_bit_input(context, 0, 2)),
                            eight_bit_input(context, 1, 3), DType::int32),
              ElementType::int32);
}

void conv_integer(OpContext& context) {
  if (!range_of(context, context.value(0).type()) || !range_of(context, context.value(1).type())) return;
  const Activations x = activations(context, eight_bit_input(context, 0, 2));
  context.set(0, whole_convolution(context, x, eight_bit_input(context, 1, 3), DType::int32),
              ElementType::int32);
}

// round(sum * a scale * b scale / y scale) + y zero point.
void requantize(OpContext& context, const Tensor& sum, const Tensor& scale, int y_scale) {
  const ElementType type = context.value(y_scale + 1).type();
  const auto range = range_of(context, type);
  if (!range || context.failure()) return;
  const Tensor factor = scale / as_float(context, context.value(y_scale));
  const Tensor out = imprint::round(imprint::cast(sum, DType::float32) * factor) +
                     as_float(context, context.value(y_scale + 1));
  context.set(0, saturated(out, *range), type);
}

void qlinear_matmul(OpContext& context) {
  if (!range_of(context, context.value(0).type()) || !range_of(context, context.value(3).type())) return;
  const Tensor sum = whole_product(context, activations(context, eight_bit_input(context, 0, 2)),
                                   eight_bit_input(context, 3, 5), DType::int32);
  Tensor rows = as_scalar(as_float(context, context.value(1)));
  if (rows.rank() == 1) rows = imprint::unsqueeze(rows, 1);
  if (!context.failure()) requantize(context, sum, rows * as_scalar(as_float(context, context.value(4))), 6);
}

void qlinear_conv(OpContext& context) {
  if (!range_of(context, context.value(0).type()) || !range_of(context, context.value(3).type())) return;
  const Activations x = activations(context, eight_bit_input(context, 0, 2));
  Tensor sum = whole_convolution(context, x, eight_bit_input(context, 3, 5), DType::int32);
  if (context.failure()) return;
  if (context.has(8)) sum = sum + along_axis(context.tensor(8), sum.rank(), 1);
  const Tensor scale = as_scalar(as_float(context, context.value(1))) *
                       along_axis(as_float(context, context.value(4)), sum.rank(), 1);
  requantize(context, sum, scale, 6);
}

// ---- com.microsoft ----

// A (quantised now) times B, as real numbers.
void dynamic_quantize_matmul(OpContext& context) {
  if (!range_of(context, context.value(1).type()) ||
      !context.require(context.shape(0).element_count() > 0, "an empty input has no range"))
    return;
  const Dynamic a = quantized(context.tensor(0));
  const Tensor sum =
      whole_product(context, {a.numbers, a.zero, 0}, eight_bit_input(context, 1, 3), DType::int32);
  if (context.failure()) return;
  Tensor out =
      imprint::cast(sum, DType::float32) * (a.scale * as_scalar(as_float(context, context.value(2))));
  if (context.has(4)) out = out + context.tensor(4);
  context.set(0, out, ElementType::float32);
}

void matmul_integer_to_float(OpContext& context) {
  if (!range_of(context, context.value(0).type()) || !range_of(context, context.value(1).type())) return;
  const Tensor sum = whole_product(context, activations(context, eight_bit_input(context, 0, 4)),
                                   eight_bit_input(context, 1, 5), DType::int32);
  if (context.failure()) return;
  Tensor out = imprint::cast(sum, DType::float32) * (as_scalar(as_float(context, context.value(2))) *
                                                     as_scalar(as_float(context, context.value(3))));
  if (context.has(6)) out = out + context.tensor(6);
  context.set(0, out, ElementType::float32);
}

// alpha A B + C of quantised numbers: real, or rounded to the scale of Y. C: int32, with the scale of alpha A
// B.
void quantised_gemm(OpContext& context) {
  EightBit a = eight_bit_input(context, 0, 2), b = eight_bit_input(context, 3, 5);
  if (!context.require(a.numbers.rank() == 2 && b.numbers.rank() == 2, "expected matrices")) return;
  if (context.int_attribute("transA", 0) != 0) a.numbers = context.mover().permute(a.numbers, {1, 0});
  if (context.int_attribute("transB", 0) != 0) b.numbers = context.mover().permute(b.numbers, {1, 0});
  Tensor sum = whole_product(context, activations(context, a), b, DType::int32);
  if (context.failure()) return;
  if (context.has(6)) sum = sum + context.tensor(6);
  const Tensor scale = as_scalar(as_float(context, context.value(1))) *
                       as_scalar(as_float(context, context.value(4))) * context.float_attribute("alpha", 1);
  if (context.has(7)) return requantize(context, sum, scale, 7);
  context.set(0, imprint::cast(sum, DType::float32) * scale, ElementType::float32);
}

constexpr std::array kQuantisedOps{
    OpHandler{"QuantizeLinear", quantize},
    OpHandler{"DequantizeLinear", dequantize},
    OpHandler{"DynamicQuantizeLinear", dynamic_quantize},
    OpHandler{"MatMulInteger", matmul_integer},
    OpHandler{"ConvInteger", conv_integer},
    OpHandler{"QLinearMatMul", qlinear_matmul},
    OpHandler{"QLinearConv", qlinear_conv},
    OpHandler{"com.microsoft.DequantizeLinear", dequantize},
    OpHandler{"com.microsoft.DynamicQuantizeMatMul", dynamic_quantize_matmul},
    OpHandler{"com.microsoft.MatMulIntegerToFloat", matmul_integer_to_float},
    OpHandler{"com.microsoft.QGemm", quantised_gemm},
    OpHandler{"com.microsoft.QuantizeLinear", quantize},
};

}  // namespace

std::span<const OpHandler> quantised_ops() { return kQuantisedOps; }

}  // namespace imprint::onnx
