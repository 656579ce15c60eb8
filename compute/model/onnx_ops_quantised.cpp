// Quantised operators, in float32 and int32: the numbers are those of int8 arithmetic. The CPU's products see
// that constant weights are whole numbers, and compute them so (compute/cpu/whole_numbers.cpp). Products of
// 8-bit numbers are exact in float32 up to kExactTerms terms, whatever the numbers are. Known weights show
// how many more are: sums of magnitudes below 2^24 are exact in any order. Longer sums are made of such
// parts.

#include <algorithm>
#include <array>

#include "compute/base/text.h"
#include "compute/model/onnx_op.h"

namespace imprint::onnx {
namespace {

constexpr std::int64_t kExactTerms = 256;  // 256 * 255 * 255 < 2^24
constexpr std::int64_t kExactSum = std::int64_t{1} << 24;
constexpr std::int64_t kLargest = 255;  // of an 8-bit number minus its zero point

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

// The input as float32; a known one is converted now.
Tensor as_float(OpContext& context, int input) {
  const Value& value = context.value(input);
  if (is_float(value.type())) return value.tensor();
  if (!value.foldable() || !context.mover().may_fold(ElementType::float32, value.shape().element_count()))
    return imprint::cast(value.tensor(), DType::float32);
  return Tensor::from(std::vector<float>(value.host()->ints.begin(), value.host()->ints.end()),
                      value.shape());
}

// A scale or zero point, shaped to broadcast against x: of all elements, of an axis, or of blocks along it.
std::optional<Tensor> beside(OpContext& context, int input, const Shape& x) {
  Tensor value = as_float(context, input);
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
  Tensor out = imprint::round(as_float(context, 0) / *scale);
  if (context.has(2)) {
    const auto zero = beside(context, 2, x.shape());
    if (!zero) return;
    out = out + *zero;
  }
  context.set(0, saturated(out, *range), type);
}

// Weights of the file become float32 once. Scales: one, or one per index of an axis.
bool fold_dequantized(OpContext& context) {
  const Value x = context.value(0), scale = context.value(1);
  if (!x.foldable() || !scale.foldable() || context.int_attribute("block_size", 0) != 0) return false;
  if (context.has(2) &&
      (!context.value(2).foldable() || context.value(2).shape() != scale.shape() || is_float(x.type())))
    return false;
  const bool one = scale.shape().element_count() == 1;
  const int axis = one ? 0 : context.axis(context.int_attribute("axis", 1), x.rank());
  const std::int64_t count = x.shape().element_count();
  if (context.failure() || is_float(x.type()) || !is_float(scale.type()) ||
      (!one && scale.shape() != Shape{x.shape()[axis]}) || !context.mover().may_fold(scale.type(), count))
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
  context.set(0, Value::known(std::move(out)));
  return true;
}

void dequantize(OpContext& context) {
  const Value x = context.value(0);
  if (x.type() != ElementType::int32 && !range_of(context, x.type())) return;
  if (fold_dequantized(context) || context.failure()) return;
  const auto scale = beside(context, 1, x.shape());
  if (!scale) return;
  Tensor out = as_float(context, 0);
  if (context.has(2)) {
    const auto zero = beside(context, 2, x.shape());
    if (!zero) return;
    out = out - *zero;
  }
  context.set(0, out * *scale, context.value(1).type());
}

struct Dynamic {
  Tensor numbers, scale, zero;  // float32
};

Dynamic quantized(const Tensor& x) {
  const Tensor low = imprint::minimum(imprint::min(x), 0.0f), high = imprint::maximum(imprint::max(x), 0.0f);
  const Tensor scale = (high - low) / 255.0, safe = imprint::where(scale > 0.0f, scale, 1.0f);
  const Tensor zero = imprint::clamp(imprint::round(-low / safe), 0, 255);
  return {imprint::clamp(imprint::round(x / safe) + zero, 0, 255), scale, zero};
}

void dynamic_quantize(OpContext& context) {
  if (!context.require(context.shape(0).element_count() > 0, "an empty input has no range")) return;
  const Dynamic found = quantized(context.tensor(0));
  context.set(0, imprint::cast(found.numbers, DType::int32), ElementType::uint8);
  context.set(1, found.scale, ElementType::float32);
  context.set(2, imprint::cast(found.zero, DType::int32), ElementType::uint8);
}

// Weights of the file minus their zero points, one or one per index of an axis, as a constant: the CPU's
// products see that its numbers are whole. Nothing: they are not known.
std::optional<Tensor> known_centred(OpContext& context, int input, int zero, int axis) {
  const Value value = context.value(input);
  const bool has_zero = context.has(zero);
  if (!value.foldable() || is_float(value.type()) || axis < 0 || axis >= value.rank() ||
      (has_zero && !context.value(zero).foldable()))
    return std::nullopt;
  const std::vector<std::int64_t> zeros =
      has_zero ? context.value(zero).host()->ints : std::vector<std::int64_t>{0};
  const std::int64_t lines = value.shape()[axis], count = value.shape().element_count();
  if ((zeros.size() != 1 && static_cast<std::int64_t>(zeros.size()) != lines) ||
      !context.mover().may_fold(ElementType::float32, count))
    return std::nullopt;
  std::int64_t inner = 1;
  for (int a = axis + 1; a < value.rank(); ++a) inner *= value.shape()[a];
  std::vector<float> numbers;
  numbers.reserve(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) {
    const auto line = static_cast<std::size_t>(zeros.size() == 1 ? 0 : i / inner % lines);
    numbers.push_back(static_cast<float>(value.host()->ints[static_cast<std::size_t>(i)] - zeros[line]));
  }
  return Tensor::from(numbers, value.shape());
}

// x minus its zero point. rows: a list of zero points is one per row, else one per column.
Tensor centred(OpContext& context, int input, int zero, bool rows) {
  if (const auto known =
          rows ? std::nullopt : known_centred(context, input, zero, context.shape(input).rank() - 1))
    return *known;
  const Tensor x = as_float(context, input);
  if (!context.has(zero)) return x;
  Tensor point = as_float(context, zero);
  if (point.shape().element_count() == 1) point = imprint::reshape(point, Shape{});
  if (rows && point.rank() == 1) point = imprint::unsqueeze(point, 1);
  return x - point;
}

// Weights as [outer, terms, inner]: of a convolution [channels, terms, 1]. Zero points: one, or one for each
// index of inner, or of outer if inner is 1.
struct Weights {
  int input = -1, zero = -1;
  std::int64_t outer = 1, terms = 1, inner = 1;
  std::int64_t step = 1;  // of parts of the terms
};

// How many terms of a sum may be added up in float32: all, or a part that leaves an exact sum for every
// result.
std::int64_t exact_terms(OpContext& context, const Weights& w) {
  const Value value = context.value(w.input);
  const bool has_zero = context.has(w.zero);
  if (!value.foldable() || (has_zero && !context.value(w.zero).foldable()) || is_float(value.type()) ||
      w.terms <= kExactTerms ||
      !context.mover().may_fold(ElementType::float32, value.shape().element_count()))
    return kExactTerms;
  const std::vector<std::int64_t>& numbers = value.host()->ints;
  const std::vector<std::int64_t> zeros =
      has_zero ? context.value(w.zero).host()->ints : std::vector<std::int64_t>{0};
  const bool by_outer = w.inner == 1;
  if (zeros.size() > 1 && static_cast<std::int64_t>(zeros.size()) != (by_outer ? w.outer : w.inner))
    return kExactTerms;
  const auto fits = [&](std::int64_t terms) {
    std::vector<std::int64_t> sums(static_cast<std::size_t>(w.inner));
    for (std::int64_t o = 0; o < w.outer; ++o)
      for (std::int64_t t = 0; t < w.terms; ++t) {
        if (t % terms == 0) std::ranges::fill(sums, 0);
        for (std::int64_t i = 0; i < w.inner; ++i) {
          const std::int64_t zero = zeros[static_cast<std::size_t>(zeros.size() == 1 ? 0 : by_outer ? o : i)];
          const std::int64_t number =
              numbers[static_cast<std::size_t>((o * w.terms + t) * w.inner + i)] - zero;
          std::int64_t& sum = sums[static_cast<std::size_t>(i)];
          if ((sum += number < 0 ? -number : number) * kLargest >= kExactSum) return false;
        }
      }
    return true;
  };
  for (std::int64_t parts = 1; parts * kExactTerms < w.terms; parts *= 2) {
    const std::int64_t steps = (w.terms / w.step + parts - 1) / parts;
    if (fits(steps * w.step)) return steps * w.step;
  }
  return kExactTerms;
}

// The exact product of whole numbers of 9 bits, as int32. weights, zero: the inputs that b is made of.
Tensor whole_product(OpContext& context, const Tensor& a, const Tensor& b, int weights, int zero) {
  const int axis_a = a.rank() - 1, axis_b = b.rank() == 1 ? 0 : b.rank() - 2;
  const std::int64_t terms = a.extent(axis_a);
  if (!context.require(a.rank() >= 1 && b.rank() >= 1 && b.extent(axis_b) == terms,
                       text("operands ", a.shape().text(), " and ", b.shape().text(), " do not fit")))
    return a;
  const std::int64_t columns = b.rank() == 1 ? 1 : b.extent(-1);
  const std::int64_t each = exact_terms(
      context, {weights, zero, b.shape().element_count() / std::max<std::int64_t>(1, terms * columns), terms,
                columns});
  if (!context.may_make(terms / each * 5)) return a;
  Tensor sum;
  for (std::int64_t from = 0; from < std::max<std::int64_t>(terms, 1); from += each) {
    const std::int64_t count = std::min(each, terms - from);
    const Tensor part = imprint::cast(
        imprint::matmul(imprint::narrow(a, axis_a, from, count), imprint::narrow(b, axis_b, from, count)),
        DType::int32);
    sum = from == 0 ? part : sum + part;
  }
  return sum;
}

void matmul_integer(OpContext& context) {
  if (!range_of(context, context.value(0).type()) || !range_of(context, context.value(1).type())) return;
  context.set(0, whole_product(context, centred(context, 0, 2, true), centred(context, 1, 3, false), 1, 3),
              ElementType::int32);
}

// Sums of products over the whole kernel, exact, as int32.
Tensor whole_convolution(OpContext& context, const Tensor& x, const Tensor& weight, int weights, int zero) {
  if (!context.require(
          weight.rank() >= 3 && x.rank() == weight.rank() && weight.extent(1) > 0,
          text("input ", x.shape().text(), " and weight ", weight.shape().text(), " do not fit")))
    return x;
  const std::int64_t channels = weight.extent(1),
                     taps = weight.shape().element_count() /
                            std::max<std::int64_t>(1, weight.extent(0) * channels);
  const std::int64_t terms =
      exact_terms(context, {weights, zero, weight.extent(0), channels * taps, 1, taps});
  if (channels * taps <= terms) return imprint::cast(convolved(context, x, weight, Tensor()), DType::int32);
  const std::int64_t each = terms / std::max<std::int64_t>(taps, 1);
  if (each == 0 || context.int_attribute("group", 1) != 1) {
    context.unsupported(text("a kernel of ", channels * taps, " terms with groups or large windows"));
    return x;
  }
  if (!context.may_make(channels / each * 10)) return x;
  Tensor sum;
  for (std::int64_t from = 0; from < channels && !context.failure(); from += each) {
    const std::int64_t count = std::min(each, channels - from);
    const Tensor part = imprint::cast(convolved(context, imprint::narrow(x, 1, from, count),
                                                imprint::narrow(weight, 1, from, count), Tensor()),
                                      DType::int32);
    sum = from == 0 ? part : sum + part;
  }
  return sum;
}

// A number per output channel against the weights [out, in, places...] or the result [batch, out, places...].
Tensor of_channels(const Tensor& value, int rank, int axis) {
  if (value.shape().element_count() == 1) return imprint::reshape(value, Shape{});
  Shape shape;
  for (int i = 0; i < rank; ++i) shape.append(i == axis ? value.shape().element_count() : 1);
  return imprint::reshape(value, shape);
}

// A kernel [out, in, places...] minus its zero point, which may be one per output channel.
Tensor centred_kernel(OpContext& context, int input, int zero) {
  if (const auto known = known_centred(context, input, zero, 0)) return *known;
  const Tensor weight = as_float(context, input);
  return context.has(zero) ? weight - of_channels(as_float(context, zero), weight.rank(), 0) : weight;
}

void conv_integer(OpContext& context) {
  if (!range_of(context, context.value(0).type()) || !range_of(context, context.value(1).type())) return;
  const Tensor x = centred(context, 0, 2, false);
  context.set(0, whole_convolution(context, x, centred_kernel(context, 1, 3), 1, 3), ElementType::int32);
}

// round(sum * a scale * b scale / y scale) + y zero point.
void requantize(OpContext& context, const Tensor& sum, const Tensor& scale, int y_scale) {
  const ElementType type = context.value(y_scale + 1).type();
  const auto range = range_of(context, type);
  if (!range || context.failure()) return;
  const Tensor factor = scale / as_float(context, y_scale);
  const Tensor out =
      imprint::round(imprint::cast(sum, DType::float32) * factor) + as_float(context, y_scale + 1);
  context.set(0, saturated(out, *range), type);
}

Tensor as_scalar(const Tensor& value) {
  return value.shape().element_count() == 1 ? imprint::reshape(value, Shape{}) : value;
}

void qlinear_matmul(OpContext& context) {
  if (!range_of(context, context.value(0).type()) || !range_of(context, context.value(3).type())) return;
  const Tensor sum =
      whole_product(context, centred(context, 0, 2, true), centred(context, 3, 5, false), 3, 5);
  Tensor rows = as_scalar(as_float(context, 1));
  if (rows.rank() == 1) rows = imprint::unsqueeze(rows, 1);
  if (!context.failure()) requantize(context, sum, rows * as_scalar(as_float(context, 4)), 6);
}

void qlinear_conv(OpContext& context) {
  if (!range_of(context, context.value(0).type()) || !range_of(context, context.value(3).type())) return;
  const Tensor x = centred(context, 0, 2, false);
  Tensor sum = whole_convolution(context, x, centred_kernel(context, 3, 5), 3, 5);
  if (context.failure()) return;
  if (context.has(8)) sum = sum + of_channels(context.tensor(8), x.rank(), 1);
  const Tensor scale = as_scalar(as_float(context, 1)) * of_channels(as_float(context, 4), x.rank(), 1);
  requantize(context, sum, scale, 6);
}

// ---- com.microsoft ----

// A (quantised now) times B, as real numbers.
void dynamic_quantize_matmul(OpContext& context) {
  if (!range_of(context, context.value(1).type()) ||
      !context.require(context.shape(0).element_count() > 0, "an empty input has no range"))
    return;
  const Dynamic a = quantized(context.tensor(0));
  const Tensor sum = whole_product(context, a.numbers - a.zero, centred(context, 1, 3, false), 1, 3);
  if (context.failure()) return;
  Tensor out = imprint::cast(sum, DType::float32) * (a.scale * as_scalar(as_float(context, 2)));
  if (context.has(4)) out = out + context.tensor(4);
  context.set(0, out, ElementType::float32);
}

void matmul_integer_to_float(OpContext& context) {
  if (!range_of(context, context.value(0).type()) || !range_of(context, context.value(1).type())) return;
  const Tensor sum =
      whole_product(context, centred(context, 0, 4, true), centred(context, 1, 5, false), 1, 5);
  if (context.failure()) return;
  Tensor out = imprint::cast(sum, DType::float32) *
               (as_scalar(as_float(context, 2)) * as_scalar(as_float(context, 3)));
  if (context.has(6)) out = out + context.tensor(6);
  context.set(0, out, ElementType::float32);
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
    OpHandler{"com.microsoft.QuantizeLinear", quantize},
};

}  // namespace

std::span<const OpHandler> quantised_ops() { return kQuantisedOps; }

}  // namespace imprint::onnx
