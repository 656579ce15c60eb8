// Products of 8-bit numbers are exact in float32 up to kExactTerms terms, whatever the numbers are. Known
// weights show how many more are: sums of magnitudes below 2^24 are exact in any order. Longer sums are made
// of such parts.

#include "compute/model/onnx/ops/whole_products.h"

#include <algorithm>
#include <cstdlib>

#include "compute/base/text.h"
#include "compute/tensor/ops/whole_product.h"

namespace imprint::onnx {
namespace {

constexpr std::int64_t kExactTerms = 256;  // 256 * 255 * 255 < 2^24
constexpr std::int64_t kExactSum = std::int64_t{1} << 24;
constexpr std::int64_t kLargest = 255;  // of an 8-bit number minus its zero point
const std::vector<std::int64_t> kNoZeroPoint{0};
constexpr std::int64_t kLeastChannels = 8;  // of packed kernels, which load 16 at a time
constexpr std::int64_t kLeastTerms = 16;    // of a pair: below, float32 is as fast

// Weights of the file minus their zero points, one or one per index of an axis, as a constant: the CPU's
// products see that its numbers are whole. Nothing: they are not known.
std::optional<Tensor> known_centred(OpContext& context, const EightBit& weights, int axis) {
  const Value& value = weights.numbers;
  if (!value.foldable() || is_float(value.type()) || axis < 0 || axis >= value.rank() ||
      (weights.zero && !weights.zero->foldable()))
    return std::nullopt;
  const std::vector<std::int64_t>& zeros = weights.zero ? weights.zero->host()->ints : kNoZeroPoint;
  const std::int64_t lines = value.shape()[axis], count = value.shape().element_count();
  if ((zeros.size() != 1 && static_cast<std::int64_t>(zeros.size()) != lines) ||
      !context.mover().may_fold_weight(ElementType::float32, count))
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

bool is_known_zero(const Value& value) {
  return value.foldable() && !is_float(value.type()) &&
         std::ranges::all_of(value.host()->ints, [](std::int64_t number) { return number == 0; });
}

// Weights as [outer, terms, inner]: of a convolution [channels, terms, 1]. Zero points: one, or one for each
// index of inner, or of outer if inner is 1.
struct Terms {
  std::int64_t outer = 1, terms = 1, inner = 1;
  std::int64_t step = 1;  // of parts of the terms
};

// How many terms of a sum may be added up in float32: all, or a part that leaves an exact sum for every
// result.
std::int64_t exact_terms(OpContext& context, const EightBit& weights, const Terms& w) {
  const Value& value = weights.numbers;
  if (!value.foldable() || (weights.zero && !weights.zero->foldable()) || is_float(value.type()) ||
      w.terms <= kExactTerms ||
      !context.mover().may_fold_weight(ElementType::float32, value.shape().element_count()))
    return kExactTerms;
  const std::vector<std::int64_t>& numbers = value.host()->ints;
  const std::vector<std::int64_t>& zeros = weights.zero ? weights.zero->host()->ints : kNoZeroPoint;
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

// Adds a part of a sum, whose first part begins at 0.
void add_part(Tensor& sum, std::int64_t from, const Tensor& product, DType sums) {
  const Tensor part = sums == DType::float32 ? product : imprint::cast(product, sums);
  sum = from == 0 ? part : sum + part;
}

// A kernel [out, in, places...] minus its zero point, which may be one per output channel.
Tensor centred_kernel(OpContext& context, const EightBit& weights) {
  if (const auto known = known_centred(context, weights, 0)) return *known;
  const Tensor kernel = as_float(context, weights.numbers);
  return weights.zero ? kernel - along_axis(as_float(context, *weights.zero), kernel.rank(), 0) : kernel;
}

// Weights [terms, columns] minus their zero points, which may be one per column.
Tensor centred_columns(OpContext& context, const EightBit& weights) {
  if (const auto known = known_centred(context, weights, weights.numbers.rank() - 1)) return *known;
  const Tensor numbers = as_float(context, weights.numbers);
  if (!weights.zero || (weights.zero->shape().element_count() == 1 && is_known_zero(*weights.zero)))
    return numbers;
  return numbers - as_scalar(as_float(context, *weights.zero));
}

// Known weights as tensor::WholeProduct has them, if they fit 8 bits without their zero points. columns: the
// axis that has one index per sum: 1 of a matrix, 0 of a kernel [out, in, places...].
// sums: their type; float32 ones never wrap.
std::optional<SharedBytes> packed_weights(OpContext& context, const EightBit& weights, int columns,
                                          DType sums) {
  const Value& value = weights.numbers;
  if (!value.foldable() || is_float(value.type()) || (weights.zero && !weights.zero->foldable()))
    return std::nullopt;
  const std::vector<std::int64_t>&numbers = value.host()->ints,
        &zeros = weights.zero ? weights.zero->host()->ints : kNoZeroPoint;
  const std::int64_t lines = value.shape()[columns], run = value.shape()[1 - columns],
                     taps = value.shape().element_count() / std::max<std::int64_t>(1, lines * run),
                     wide = tensor::padded_terms(run);
  if (value.shape().element_count() == 0 ||
      !context.mover().may_fold_weight(ElementType::float32, lines * taps * wide / 4) ||
      (zeros.size() != 1 && static_cast<std::int64_t>(zeros.size()) != lines))
    return std::nullopt;
  std::vector<std::byte> bytes(static_cast<std::size_t>(lines * taps * wide));
  std::vector<std::int64_t> largest(static_cast<std::size_t>(lines));  // of a line's sums, without signs
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const auto at = static_cast<std::int64_t>(i), tap = at % taps, second = at / taps % value.shape()[1],
               first = at / taps / value.shape()[1], line = columns == 0 ? first : second;
    const std::int64_t number = numbers[i] - zeros[static_cast<std::size_t>(zeros.size() == 1 ? 0 : line)];
    if (number < -128 || number > 127) return std::nullopt;
    bytes[static_cast<std::size_t>((line * taps + tap) * wide + (columns == 0 ? second : first))] =
        static_cast<std::byte>(number);
    largest[static_cast<std::size_t>(line)] += 255 * std::abs(number);
  }
  if (sums == DType::float32 && !largest.empty() && std::ranges::max(largest) > INT32_MAX)
    return std::nullopt;
  return SharedBytes(std::move(bytes));
}

// Why the product stays in float32; empty: it need not. outputs: the axis of the weights that has one index
// per sum. terms: of a sum.
std::string why_float(const Value& x, const Value& weights, int outputs, std::int64_t terms) {
  const Dequantized *a = x.dequantized(), *b = weights.dequantized();
  if (!a) return text("input 0: found ", x.text(), ", expected a result of DequantizeLinear");
  if (!b) return text("input 1: found ", weights.text(), ", expected a result of DequantizeLinear");
  if (!a->has_one_scale()) return "input 0: found several scales, expected one";
  if (!is_eight_bit(a->numbers.type()) || !is_eight_bit(b->numbers.type()))
    return text("found numbers of type ", element_type_name(a->numbers.type()), " and ",
                element_type_name(b->numbers.type()), ", expected 8 bits at most");
  if (!b->numbers.foldable() || (b->zero && !b->zero->foldable()))
    return "input 1: found numbers of run time, expected an initializer";
  if (!b->has_one_scale() && b->axis != outputs)
    return text("input 1: found scales along axis ", b->axis, ", expected axis ", outputs);
  if (terms < kLeastTerms) return text("found sums of ", terms, " terms, expected at least ", kLeastTerms);
  return {};
}

// The product of both scales; of known ones now.
Tensor both_scales(OpContext& context, const Value& x, const Value& weights, int rank, int axis) {
  if (x.foldable() && weights.foldable() &&
      context.mover().may_fold(ElementType::float32, weights.shape().element_count())) {
    std::vector<float> scales;
    for (const float scale : weights.host()->floats) scales.push_back(x.host()->floats[0] * scale);
    return along_axis(Tensor::from(scales, {static_cast<std::int64_t>(scales.size())}), rank, axis);
  }
  return as_scalar(as_float(context, x)) * along_axis(as_float(context, weights), rank, axis);
}

}  // namespace

bool is_eight_bit(ElementType type) {
  return type == ElementType::uint8 || type == ElementType::int8 || type == ElementType::uint4 ||
         type == ElementType::int4;
}

EightBit eight_bit_input(OpContext& context, int input, int zero) {
  EightBit out{context.value(input), context.has(zero) ? std::optional(context.value(zero)) : std::nullopt};
  for (const Value* value : {&out.numbers, out.zero ? &*out.zero : nullptr})
    if (value && !is_eight_bit(value->type()))
      context.fail(ErrorCode::dtype_mismatch, text("input ", value == &out.numbers ? input : zero, ": found ",
                                                   value->text(), ", expected numbers of 8 bits at most"));
  if (context.failure()) out.zero.reset();
  return out;
}

Tensor as_float(OpContext& context, const Value& value) {
  if (is_float(value.type())) return value.tensor();
  if (!value.foldable() || !context.mover().may_fold(ElementType::float32, value.shape().element_count()))
    return imprint::cast(value.tensor(), DType::float32);
  return Tensor::from(std::vector<float>(value.host()->ints.begin(), value.host()->ints.end()),
                      value.shape());
}

Tensor as_scalar(const Tensor& value) {
  return value.shape().element_count() == 1 ? imprint::reshape(value, Shape{}) : value;
}

Tensor along_axis(const Tensor& value, int rank, int axis) {
  if (value.shape().element_count() == 1) return imprint::reshape(value, Shape{});
  Shape shape;
  for (int i = 0; i < rank; ++i) shape.append(i == axis ? value.shape().element_count() : 1);
  return imprint::reshape(value, shape);
}

Tensor Activations::centred() const { return zero.ok() ? numbers - zero : numbers; }

Activations activations(OpContext& context, const EightBit& x) {
  const ElementType type = x.numbers.type();
  Activations out{as_float(context, x.numbers), Tensor(),
                  type == ElementType::uint8 || type == ElementType::uint4 ? 0 : -128};
  if (!x.zero || (x.zero->shape().element_count() == 1 && is_known_zero(*x.zero))) return out;
  out.zero = as_scalar(as_float(context, *x.zero));
  if (out.zero.rank() == 1) out.zero = imprint::unsqueeze(out.zero, 1);
  return out;
}

Tensor whole_product(OpContext& context, const Activations& a, const EightBit& weights, DType sums) {
  const Tensor b = centred_columns(context, weights);
  const int axis_a = a.numbers.rank() - 1, axis_b = b.rank() == 1 ? 0 : b.rank() - 2;
  if (!context.require(a.numbers.rank() >= 1 && b.rank() >= 1 && b.extent(axis_b) == a.numbers.extent(axis_a),
                       text("operands ", a.numbers.shape().text(), " and ", b.shape().text(), " do not fit")))
    return a.numbers;
  const std::int64_t terms = a.numbers.extent(axis_a), columns = b.rank() == 1 ? 1 : b.extent(-1);
  const std::int64_t each =
      exact_terms(context, weights,
                  {b.shape().element_count() / std::max<std::int64_t>(1, terms * columns), terms, columns});
  if (!context.may_make(terms / each * 5)) return a.numbers;
  const auto in_float = [=](const Tensor& x) {
    Tensor sum;
    for (std::int64_t from = 0; from < std::max<std::int64_t>(terms, 1); from += each) {
      const std::int64_t count = std::min(each, terms - from);
      add_part(
          sum, from,
          imprint::matmul(imprint::narrow(x, axis_a, from, count), imprint::narrow(b, axis_b, from, count)),
          sums);
    }
    return sum;
  };
  const auto packed = b.rank() == 2 && terms >= kLeastTerms && a.has_packed_form()
                          ? packed_weights(context, weights, 1, sums)
                          : std::nullopt;
  return packed ? tensor::whole_matmul({.numbers = a.numbers,
                                        .zero = a.zero,
                                        .low = a.low,
                                        .weights = *packed,
                                        .columns = columns,
                                        .sums = sums,
                                        .in_float = in_float})
                : in_float(a.centred());
}

Tensor whole_convolution(OpContext& context, const Activations& x, const EightBit& weights, DType sums) {
  const Tensor kernel = centred_kernel(context, weights);
  if (!context.require(
          kernel.rank() >= 3 && x.numbers.rank() == kernel.rank() && kernel.extent(1) > 0,
          text("input ", x.numbers.shape().text(), " and weight ", kernel.shape().text(), " do not fit")))
    return x.numbers;
  const std::int64_t channels = kernel.extent(1),
                     taps = kernel.shape().element_count() /
                            std::max<std::int64_t>(1, kernel.extent(0) * channels);
  const std::int64_t terms = exact_terms(context, weights, {kernel.extent(0), channels * taps, 1, taps}),
                     each = channels * taps <= terms ? channels : terms / taps;
  const auto form = convolution_form(context, x.numbers, kernel);
  if (!form) return x.numbers;
  if (each == 0 || (each < channels && form->options.groups != 1)) {
    context.unsupported(text("a kernel of ", channels * taps, " terms with groups or large windows"));
    return x.numbers;
  }
  if (each < channels && !context.may_make(channels / each * 10)) return x.numbers;
  const auto in_float = [=, form = *form](const Tensor& image) {
    if (each == channels) {
      const Tensor sum = form.of(image, kernel, Tensor());
      return sums == DType::float32 ? sum : imprint::cast(sum, sums);
    }
    Tensor sum;
    for (std::int64_t from = 0; from < channels; from += each) {
      const std::int64_t count = std::min(each, channels - from);
      add_part(
          sum, from,
          form.of(imprint::narrow(image, 1, from, count), imprint::narrow(kernel, 1, from, count), Tensor()),
          sums);
    }
    return sum;
  };
  const bool fits = kernel.rank() == 4 && form->options.groups == 1 && channels >= kLeastChannels &&
                    x.has_packed_form() && (!x.zero.ok() || x.zero.rank() == 0);
  const auto packed = fits ? packed_weights(context, weights, 0, sums) : std::nullopt;
  if (!packed) return in_float(x.centred());
  const auto along = [&](int axis) {
    return tensor::WholeWindow::Along{kernel.extent(2 + axis), form->options.stride[axis],
                                      form->options.dilation[axis], form->pads[2 + axis].first,
                                      form->pads[2 + axis].second};
  };
  return tensor::whole_convolution({.numbers = x.numbers,
                                    .zero = x.zero,
                                    .low = x.low,
                                    .weights = *packed,
                                    .columns = kernel.extent(0),
                                    .sums = sums,
                                    .in_float = in_float},
                                   {along(0), along(1)});
}

std::optional<Tensor> dequantized_matmul(OpContext& context, const Value& a, const Value& weights) {
  if (!a.dequantized() && !weights.dequantized()) return std::nullopt;
  std::string why = a.rank() < 1 || weights.rank() != 2
                        ? text("input 1: found ", weights.text(), ", expected two axes")
                        : why_float(a, weights, 1, weights.shape()[0]);
  context.note_quantised(why);
  if (!why.empty()) return std::nullopt;
  const Dequantized &x = *a.dequantized(), &w = *weights.dequantized();
  const Tensor sum =
      whole_product(context, activations(context, {x.numbers, x.zero}), {w.numbers, w.zero}, DType::float32);
  return context.failure() ? sum : sum * both_scales(context, x.scale, w.scale, 1, 0);
}

std::optional<Tensor> dequantized_convolution(OpContext& context, const Value& x, const Value& weights) {
  if (!x.dequantized() && !weights.dequantized()) return std::nullopt;
  const std::int64_t groups = context.int_attribute("group", 1);
  if (weights.rank() < 3 || weights.rank() != x.rank() || weights.shape().element_count() == 0)
    return std::nullopt;  // an error
  const std::int64_t terms = weights.shape().element_count() / weights.shape()[0],
                     places = terms / weights.shape()[1];
  std::string why = groups != 1 ? text("found ", groups, " groups, expected 1")
                    : places > kExactTerms
                        ? text("found a window of ", places, " places, expected at most ", kExactTerms)
                        : why_float(x, weights, 0, terms);
  context.note_quantised(why);
  if (!why.empty()) return std::nullopt;
  const Dequantized &image = *x.dequantized(), &w = *weights.dequantized();
  const Tensor sum = whole_convolution(context, activations(context, {image.numbers, image.zero}),
                                       {w.numbers, w.zero}, DType::float32);
  return context.failure() ? sum : sum * both_scales(context, image.scale, w.scale, x.rank(), 1);
}

}  // namespace imprint::onnx
