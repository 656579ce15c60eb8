// Each result element comes from the operands' elements at its position: arithmetic, comparison, logic, Cast.

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "compute/base/quote.h"
#include "compute/base/text.h"
#include "compute/model/onnx/op.h"

namespace imprint::onnx {
namespace {

constexpr std::int64_t kOperationsOfRounding = 64;

// x to `digits` binary digits behind the first, halves to even; at least the digits of 2^least. Beyond `most`
// infinite. By exact products with powers of two, which needs no 16-bit storage and no bits of floats.
Tensor rounded_to(const Tensor& x, int digits, int least, int largest, double most) {
  const Tensor size = abs(x);
  Tensor power = full(x.shape(), std::ldexp(1.0, least)),
         to_whole = full(x.shape(), std::ldexp(1.0, digits - least));
  // Binary search of the exponent. A step of 128 would multiply by 2^128, which is no float32.
  int left = largest - least;
  for (int step = 64; step > 0; step /= 2)
    for (int times = std::max(1, left / step); times > 0 && step <= largest - least; --times) {
      const Tensor larger = size >= power * std::ldexp(1.0, step);
      power = imprint::where(larger, power * std::ldexp(1.0, step), power);
      to_whole = imprint::where(larger, to_whole * std::ldexp(1.0, -step), to_whole);
      left = std::max(0, left - step);
    }
  const Tensor out = round(x * to_whole) * (power * std::ldexp(1.0, -digits));
  const double infinite = std::numeric_limits<double>::infinity();
  return imprint::where(abs(out) > Tensor(most),
                        imprint::where(out > 0.0f, Tensor(infinite), Tensor(-infinite)), out);
}

}  // namespace

Tensor stored_as(OpContext& context, ElementType type, const Tensor& x) {
  const bool rounds = type == ElementType::float16 || type == ElementType::bfloat16;
  if (rounds && !context.may_make(kOperationsOfRounding)) return x;
  const auto sign_extended = [&](int bits) { return shift_right(shift_left(x, bits), bits); };
  switch (type) {
    case ElementType::uint4:
      return bit_and(x, 0xF);
    case ElementType::int4:
      return sign_extended(28);
    case ElementType::uint8:
      return bit_and(x, 0xFF);
    case ElementType::uint16:
      return bit_and(x, 0xFFFF);
    case ElementType::int8:
      return sign_extended(24);
    case ElementType::int16:
      return sign_extended(16);
    case ElementType::float16:
      return rounded_to(x, 10, -14, 15, 65504);
    case ElementType::bfloat16:
      return rounded_to(x, 7, -100, 127, std::numeric_limits<double>::infinity());
    default:
      return x;
  }
}

namespace {

// Gives the result the first input's type, unless it is a bool.
void set_wrapped(OpContext& context, const Tensor& result) {
  const ElementType type = context.value(0).type();
  context.set(0, result.ok() && result.dtype() == DType::int32 ? stored_as(context, type, result) : result);
}

template <Tensor (*function)(const Tensor&)>
void unary(OpContext& context) {
  set_wrapped(context, function(context.tensor(0)));
}

// Before opset 7 an attribute said where the second operand's axes begin, instead of NumPy's rule.
Tensor second_operand(OpContext& context) {
  const Tensor b = context.tensor(1);
  if (context.opset() >= 7 || !context.has_attribute("axis")) return b;
  const int rank = context.shape(0).rank();
  const std::int64_t axis = context.int_attribute("axis", 0);
  if (!context.require(axis >= -rank && axis + (axis < 0 ? rank : 0) + b.rank() <= rank,
                       text("axis: found ", axis, " for operands of rank ", rank, " and ", b.rank())))
    return b;
  std::vector<std::int64_t> extents = extents_of(b.shape());
  extents.resize(static_cast<std::size_t>(rank - (axis < 0 ? axis + rank : axis)), 1);
  return imprint::reshape(b, Shape(extents));
}

template <Tensor (*function)(const Tensor&, const Tensor&)>
void binary(OpContext& context) {
  set_wrapped(context, function(context.tensor(0), second_operand(context)));
}

// Any number of operands, folded from the left.
template <Tensor (*function)(const Tensor&, const Tensor&)>
void variadic(OpContext& context) {
  Tensor result = context.tensor(0);
  for (int i = 1; i < context.input_count(); ++i) result = function(result, context.tensor(i));
  context.set(0, result);
}

void mean(OpContext& context) {
  Tensor sum = context.tensor(0);
  for (int i = 1; i < context.input_count(); ++i) sum = add(sum, context.tensor(i));
  context.set(0, mul(sum, 1.0 / std::max(1, context.input_count())));
}

void modulo(OpContext& context) {
  const Tensor a = context.tensor(0), b = context.tensor(1);
  context.set(0, context.int_attribute("fmod", 0) != 0 ? fmod(a, b) : remainder(a, b));
}

constexpr std::int64_t kLargestPower = 1024;
constexpr std::int64_t kOperationsOfKnownPower = 24;

// By squaring. Wraps as products do: float32 has too few digits.
Tensor whole_power(Tensor base, std::int64_t exponent) {
  Tensor result = ones_like(base);
  for (;; base = mul(base, base)) {
    if (exponent % 2 != 0) result = mul(result, base);
    exponent /= 2;
    if (exponent == 0) return result;
  }
}

// The same for exponents of run time. Of negative powers only those of 1 and -1 are whole; the rest becomes
// 0.
Tensor whole_power(Tensor base, const Tensor& exponent) {
  const Tensor magnitude = abs(exponent), whole_base = base;
  Tensor result = add(mul(base, 0), add(mul(exponent, 0), 1));
  for (int bit = 0; bit < 31; ++bit, base = mul(base, base))
    result = imprint::where(equal(bit_and(magnitude, 1 << bit), 0), result, mul(result, base));
  const Tensor has_inverse = equal(mul(whole_base, whole_base), 1);
  return imprint::where(logical_or(exponent >= 0, has_inverse), result, 0);
}

void power(OpContext& context) {
  if (context.opset() < 7 && context.has_attribute("axis"))
    return context.unsupported("broadcasting from an axis, as before opset 7");
  const Value base = context.value(0), exponent = context.value(1);
  const HostArray* host = exponent.host();
  // Squares are common, and a product is exact where exp(2 log x) is not.
  if (host && host->shape.element_count() == 1 && exponent.rank() <= base.rank() &&
      (is_float(host->type) ? host->floats[0] == 2 : host->ints[0] == 2))
    return context.set(0, stored_as(context, base.type(), imprint::square(base.tensor())), base.type());
  if (is_integer(base.type()) && is_integer(exponent.type()) && host && host->shape.element_count() == 1 &&
      exponent.rank() <= base.rank() && host->ints[0] >= 0 && host->ints[0] <= kLargestPower) {
    if (!context.may_make(kOperationsOfKnownPower)) return;
    return context.set(0, stored_as(context, base.type(), whole_power(base.tensor(), host->ints[0])),
                       base.type());
  }
  constexpr std::int64_t kOperationsOfPower = 192;
  if (is_integer(base.type()) && is_integer(exponent.type()) && !context.mover().may_make(kOperationsOfPower))
    return context.unsupported("more powers of whole numbers than one model may have");
  if (is_integer(base.type()) && is_integer(exponent.type()))
    return context.set(0, stored_as(context, base.type(), whole_power(base.tensor(), exponent.tensor())),
                       base.type());
  const Tensor result = pow(cast(base.tensor(), DType::float32), cast(exponent.tensor(), DType::float32));
  context.set(0, cast(is_float(base.type()) ? result : trunc(result), run_time_dtype(base.type())),
              base.type());
}

// The operator is for types without a sign. Bits beyond the 32 of a number are lost.
void bit_shift(OpContext& context) {
  const std::string direction = context.string_attribute("direction", "");
  if (!context.require(direction == "LEFT" || direction == "RIGHT",
                       "direction " + quote(direction) + " is neither LEFT nor RIGHT"))
    return;
  const Tensor x = context.tensor(0), bits = context.tensor(1), places = minimum(maximum(bits, 0), 31),
               all_but_sign = full(bits.shape(), std::numeric_limits<std::int32_t>::max(), DType::int32);
  const auto without_sign = [&] {
    const Tensor rest = maximum(places - 1, 0);
    return imprint::where(places > 0, bit_and(shift_right(x, places), shift_right(all_but_sign, rest)), x);
  };
  const Tensor shifted = direction == "LEFT" ? shift_left(x, places) : without_sign();
  set_wrapped(context, imprint::where(equal(bits, places), shifted, 0));
}

void infinite(OpContext& context) {
  const Tensor x = context.tensor(0);
  const bool positive = context.int_attribute("detect_positive", 1) != 0,
             negative = context.int_attribute("detect_negative", 1) != 0;
  if (positive && negative) return context.set(0, is_inf(x));
  if (!positive && !negative) return context.set(0, full(x.shape(), 0, DType::boolean));
  context.set(0, logical_and(is_inf(x), positive ? greater(x, 0.0f) : less(x, 0.0f)));
}

void select(OpContext& context) {
  context.set(0, imprint::where(context.tensor(0), context.tensor(1), context.tensor(2)),
              context.value(1).type());
}

void clip(OpContext& context) {
  Tensor x = context.tensor(0);
  if (context.opset() < 11) {
    if (context.has_attribute("min")) x = maximum(x, Tensor(context.float_attribute("min", 0)));
    if (context.has_attribute("max")) x = minimum(x, Tensor(context.float_attribute("max", 0)));
  } else {
    if (context.has(1)) x = maximum(x, context.tensor(1));
    if (context.has(2)) x = minimum(x, context.tensor(2));
  }
  context.set(0, x);
}

// Whole numbers wrap, floats are cut towards zero and rounded to float16's and bfloat16's digits.
void cast_value(OpContext& context, ElementType to) {
  const Value from = context.value(0);
  if (to == from.type()) return context.set(0, from);
  if (to == ElementType::uint32) return context.set(0, uint32_of(from.tensor()), to);
  context.set(0, stored_as(context, to, cast(from.tensor(), run_time_dtype(to))), to);
}

void cast_to(OpContext& context) {
  const std::int64_t number = context.int_attribute("to", 0);
  const bool to_text = number == static_cast<std::int32_t>(ElementType::string);
  const auto to = to_text ? std::optional(ElementType::string) : cast_target(context, number);
  if (to && !cast_text(context, *to)) cast_value(context, *to);
}

void cast_like(OpContext& context) {
  const ElementType to = context.value(1).type();
  if (!context.failure() && cast_text(context, to)) return;
  if (cast_target(context, static_cast<std::int64_t>(to))) cast_value(context, to);
}

constexpr std::array kElementwiseOps{
    OpHandler{"Abs", unary<imprint::abs>, fold_elementwise},
    OpHandler{"Neg", unary<imprint::neg>, fold_elementwise},
    OpHandler{"Sign", unary<imprint::sign>, fold_elementwise},
    OpHandler{"Ceil", unary<imprint::ceil>, fold_elementwise},
    OpHandler{"Floor", unary<imprint::floor>, fold_elementwise},
    OpHandler{"Round", unary<imprint::round>, fold_elementwise},
    OpHandler{"Sqrt", unary<imprint::sqrt>, fold_elementwise},
    OpHandler{"Reciprocal", unary<imprint::recip>, fold_elementwise},
    OpHandler{"Exp", unary<imprint::exp>},
    OpHandler{"Log", unary<imprint::log>},
    OpHandler{"Sin", unary<imprint::sin>},
    OpHandler{"Cos", unary<imprint::cos>},
    OpHandler{"Tan", unary<imprint::tan>},
    OpHandler{"Asin", unary<imprint::asin>},
    OpHandler{"Acos", unary<imprint::acos>},
    OpHandler{"Atan", unary<imprint::atan>},
    OpHandler{"Sinh", unary<imprint::sinh>},
    OpHandler{"Cosh", unary<imprint::cosh>},
    OpHandler{"Asinh", unary<imprint::asinh>},
    OpHandler{"Acosh", unary<imprint::acosh>},
    OpHandler{"Atanh", unary<imprint::atanh>},
    OpHandler{"Erf", unary<imprint::erf>},
    OpHandler{"IsNaN", unary<imprint::is_nan>},
    OpHandler{"IsInf", infinite},
    OpHandler{"Not", unary<imprint::logical_not>, fold_elementwise},
    OpHandler{"BitwiseNot", unary<imprint::bit_not>},
    OpHandler{"Add", binary<imprint::add>, fold_elementwise},
    OpHandler{"Sub", binary<imprint::sub>, fold_elementwise},
    OpHandler{"Mul", binary<imprint::mul>, fold_elementwise},
    OpHandler{"Div", binary<imprint::div>, fold_elementwise},
    OpHandler{"Mod", modulo, fold_elementwise},
    OpHandler{"Pow", power, fold_elementwise},
    OpHandler{"And", binary<imprint::logical_and>, fold_elementwise},
    OpHandler{"Or", binary<imprint::logical_or>, fold_elementwise},
    OpHandler{"Xor", binary<imprint::logical_xor>, fold_elementwise},
    OpHandler{"BitwiseAnd", binary<imprint::bit_and>},
    OpHandler{"BitwiseOr", binary<imprint::bit_or>},
    OpHandler{"BitwiseXor", binary<imprint::bit_xor>},
    OpHandler{"BitShift", bit_shift},
    OpHandler{"Equal", binary<imprint::equal>, fold_elementwise},
    OpHandler{"Less", binary<imprint::less>, fold_elementwise},
    OpHandler{"LessOrEqual", binary<imprint::less_equal>, fold_elementwise},
    OpHandler{"Greater", binary<imprint::greater>, fold_elementwise},
    OpHandler{"GreaterOrEqual", binary<imprint::greater_equal>, fold_elementwise},
    OpHandler{"Min", variadic<imprint::minimum>, fold_elementwise},
    OpHandler{"Max", variadic<imprint::maximum>, fold_elementwise},
    OpHandler{"Sum", variadic<imprint::add>},
    OpHandler{"Mean", mean},
    OpHandler{"Where", select, fold_where},
    OpHandler{"Clip", clip},
    OpHandler{"Cast", cast_to, fold_cast, Takes::text},
    OpHandler{"CastLike", cast_like, nullptr, Takes::text},
};

}  // namespace

std::span<const OpHandler> elementwise_ops() { return kElementwiseOps; }

}  // namespace imprint::onnx
