#include "compute/tensor/int64_words.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "compute/base/text.h"
#include "compute/tensor/composites/composites.h"
#include "compute/tensor/int64_nodes.h"

namespace imprint::tensor {

namespace {

constexpr std::int32_t kSignBit = std::numeric_limits<std::int32_t>::min();
constexpr double kWordValues = 4294967296.0;  // 2^32

std::int32_t int64_word(std::int64_t value, int place) {
  return static_cast<std::int32_t>(
      static_cast<std::uint32_t>(static_cast<std::uint64_t>(value) >> (32 * place)));
}

// Order without a sign.
Tensor is_below(const Tensor& a, const Tensor& b) { return less(bit_xor(a, kSignBit), bit_xor(b, kSignBit)); }

Tensor shifted_down(const Tensor& word, int bits) {
  return bit_and(shift_right(word, bits), static_cast<std::int32_t>((1u << (32 - bits)) - 1));
}

// The nearest float32 of a number without a sign: its leading 1 becomes bit 63, and any bit below the upper
// word counts as one bit there, which is all that rounding to 24 bits depends on.
Tensor nearest_float(Tensor low, Tensor high) {
  const Tensor is_short = equal(high, 0);
  high = where(is_short, low, high);
  low = where(is_short, 0, low);
  Tensor scale = where(is_short, 1.0f, static_cast<float>(kWordValues));
  for (const int bits : {16, 8, 4, 2, 1}) {
    const Tensor is_free = equal(shifted_down(high, 32 - bits), 0);
    high = where(is_free, bit_or(shift_left(high, bits), shifted_down(low, 32 - bits)), high);
    low = where(is_free, shift_left(low, bits), low);
    scale = where(is_free, scale * (1.0f / static_cast<float>(1 << bits)), scale);
  }
  const Tensor top = bit_or(high, cast(not_equal(low, 0), DType::int32));
  const Tensor upper = cast(shifted_down(top, 16), DType::float32) * 65536.0f;
  return (upper + cast(bit_and(top, 0xffff), DType::float32)) * scale;
}

// The 64 bits of a product of two words without a sign, by its four products of 16 bits.
Int64 product_of_words(const Tensor& a, const Tensor& b) {
  const auto lower = [](const Tensor& x) { return bit_and(x, 0xffff); };
  const auto upper = [](const Tensor& x) { return shifted_down(x, 16); };
  const Tensor least = lower(a) * lower(b), left = upper(a) * lower(b), right = lower(a) * upper(b);
  const Tensor middle = upper(least) + lower(left) + lower(right);
  return {bit_or(lower(least), shift_left(middle, 16)),
          upper(a) * upper(b) + upper(left) + upper(right) + upper(middle)};
}

struct Divided {
  Int64 quotient, rest;
};

// Takes numbers without a sign, up to 2^63; b is not 0. Each turn subtracts what float32 knows of the
// quotient, rounded down by more than its error: of a rest of r times b, about r / 2^20 + 1 times b remain.
Divided divide_sizes(const Int64& a, const Int64& b) {
  constexpr float kBelow = 1 - 0x1p-21f;
  constexpr int kTurns = 4;  // of 20 bits each
  Divided found{Int64(0), a};
  const Tensor divisor = nearest_float(b.low, b.high);
  for (int turn = 0; turn < kTurns; ++turn) {
    const Tensor part = floor(nearest_float(found.rest.low, found.rest.high) / divisor * kBelow);
    const Tensor upper = floor(part * static_cast<float>(1 / kWordValues));
    const Tensor lower = part - upper * static_cast<float>(kWordValues);
    const Int64 whole{cast(cast(lower, DType::uint32), DType::int32), cast(upper, DType::int32)};
    found = {found.quotient + whole, found.rest - whole * b};
  }
  const auto is_less = [](const Int64& x, const Int64& y) {
    return logical_or(is_below(x.high, y.high), logical_and(equal(x.high, y.high), is_below(x.low, y.low)));
  };
  const Tensor is_rest = is_less(found.rest, b);
  return {where(is_rest, found.quotient, found.quotient + Int64(1)),
          where(is_rest, found.rest, found.rest - b)};
}

// Truncated, with the rest's sign that of a. Of b 0 both are 0.
Divided divide_wide(const Int64& a, const Int64& b) {
  const Tensor is_zero = equal(b, Int64(0));
  const Divided sizes = divide_sizes(abs(a), where(is_zero, Int64(1), abs(b)));
  const Tensor turns = less(bit_xor(a.high, b.high), 0), is_negative = less(a.high, 0);
  return {where(is_zero, Int64(0), where(turns, -sizes.quotient, sizes.quotient)),
          where(is_zero, Int64(0), where(is_negative, -sizes.rest, sizes.rest))};
}

}  // namespace

Int64::Int64(std::int64_t value) : low(Tensor(int64_word(value, 0))), high(Tensor(int64_word(value, 1))) {}

Int64 int64_of(const Tensor& numbers) {
  if (!numbers.ok()) return {numbers, numbers};
  if (!dtype_is_float(numbers.dtype())) {
    const Tensor low = cast(numbers, DType::int32);
    return {low, numbers.dtype() == DType::uint32 ? zeros_like(low) : shift_right(low, 31)};
  }
  const Tensor x = cast(numbers, DType::float32), size = trunc(abs(x)),
               upper = floor(size * static_cast<float>(1 / kWordValues));
  const Tensor low = cast(cast(size - upper * static_cast<float>(kWordValues), DType::uint32), DType::int32);
  const Int64 positive{low, cast(upper, DType::int32)};
  const Int64 found = where(less(x, 0.0f), -positive, positive);
  const float limit = 9223372036854775808.0f;  // 2^63
  return where(greater_equal(x, limit), Int64(std::numeric_limits<std::int64_t>::max()),
               where(less_equal(x, -limit), Int64(std::numeric_limits<std::int64_t>::min()),
                     where(is_nan(x), Int64(0), found)));
}

Tensor cast(const Int64& x, DType dtype) {
  if (dtype == DType::boolean) return cast(bit_or(x.low, x.high), DType::boolean);
  if (!dtype_is_float(dtype)) return cast(x.low, dtype);
  const Tensor is_negative = less(x.high, 0);
  const Int64 size = where(is_negative, -x, x);
  const Tensor nearest = nearest_float(size.low, size.high);
  return cast(where(is_negative, -nearest, nearest), dtype);
}

Tensor index_of(const Int64& x) {
  const Tensor limit = bit_xor(shift_right(x.high, 31), std::numeric_limits<std::int32_t>::max());
  return where(equal(x.high, shift_right(x.low, 31)), x.low, limit);
}

Int64 operator+(const Int64& a, const Int64& b) {
  const Tensor low = a.low + b.low;
  return {low, a.high + b.high + cast(is_below(low, a.low), DType::int32)};
}

Int64 operator-(const Int64& a, const Int64& b) {
  return {a.low - b.low, a.high - b.high - cast(is_below(a.low, b.low), DType::int32)};
}

Int64 operator-(const Int64& x) { return Int64(0) - x; }

Int64 operator*(const Int64& a, const Int64& b) {
  const Int64 lower = product_of_words(a.low, b.low);
  return {lower.low, lower.high + a.low * b.high + a.high * b.low};
}

Int64 abs(const Int64& x) { return where(less(x.high, 0), -x, x); }

Int64 operator/(const Int64& a, const Int64& b) { return divide_wide(a, b).quotient; }

Int64 fmod(const Int64& a, const Int64& b) { return divide_wide(a, b).rest; }

Int64 remainder(const Int64& a, const Int64& b) {
  const Int64 rest = divide_wide(a, b).rest;
  const Tensor differs = logical_and(cast(rest, DType::boolean), less(bit_xor(rest.high, b.high), 0));
  return where(differs, rest + b, rest);
}

Int64 shift_left(const Int64& x, const Tensor& bits) {
  const Tensor few = bit_and(bits, 31), rest = bit_and(32 - few, 31);
  const Tensor carried = bit_and(shift_right(x.low, rest), shift_left(1, few) - 1);
  const Tensor low = shift_left(x.low, few), is_word = greater_equal(bits, 32);
  return {where(is_word, 0, low), where(is_word, low, bit_or(shift_left(x.high, few), carried))};
}

Int64 shift_right(const Int64& x, const Tensor& bits) {
  const Tensor few = bit_and(bits, 31), rest = bit_and(32 - few, 31), is_none = equal(few, 0);
  const Tensor lower = bit_and(shift_right(x.low, few), shift_left(1, rest) - 1);
  const Tensor low = where(is_none, x.low, bit_or(lower, shift_left(x.high, rest)));
  const Tensor high = shift_right(x.high, few), is_word = greater_equal(bits, 32);
  return {where(is_word, high, low), where(is_word, shift_right(x.high, 31), high)};
}

Int64 where(const Tensor& condition, const Int64& if_true, const Int64& if_false) {
  return {where(condition, if_true.low, if_false.low), where(condition, if_true.high, if_false.high)};
}

Tensor equal(const Int64& a, const Int64& b) {
  return logical_and(equal(a.low, b.low), equal(a.high, b.high));
}

Tensor less(const Int64& a, const Int64& b) {
  return logical_or(less(a.high, b.high), logical_and(equal(a.high, b.high), is_below(a.low, b.low)));
}

// ---- the primitives ----

namespace {

constexpr std::int64_t kMostTerms = 65536;  // of which sums of half words stay below 2^32

bool is_int64(const Tensor& x) { return x.dtype() == DType::int64; }

Tensor no_form(Op op, const Tensor& x, std::string_view expected) {
  return bad_dtype(op_info(op).name, x, expected);
}

// Element by element, of operands of one shape. Nothing where the op has no form for int64.
std::optional<Tensor> unary_of_words(Op op, const Int64& x) {
  switch (op) {
    case Op::abs:
      return joined_words(abs(x));
    case Op::neg:
      return joined_words(-x);
    case Op::sign: {
      const Tensor is_positive = cast(cast(x, DType::boolean), DType::int32);
      const Tensor sign = where(less(x.high, 0), -1, is_positive);
      return joined_words({sign, shift_right(sign, 31)});
    }
    case Op::bit_not:
      return joined_words({bit_not(x.low), bit_not(x.high)});
    default:
      return std::nullopt;
  }
}

std::optional<Tensor> compared_words(Op op, const Int64& a, const Int64& b) {
  switch (op) {
    case Op::equal:
      return equal(a, b);
    case Op::not_equal:
      return logical_not(equal(a, b));
    case Op::less:
      return less(a, b);
    case Op::less_equal:
      return logical_not(less(b, a));
    case Op::greater:
      return less(b, a);
    case Op::greater_equal:
      return logical_not(less(a, b));
    default:
      return std::nullopt;
  }
}

std::optional<Int64> computed_words(Op op, const Int64& a, const Int64& b) {
  switch (op) {
    case Op::add:
      return a + b;
    case Op::sub:
      return a - b;
    case Op::mul:
      return a * b;
    case Op::div:
      return a / b;
    case Op::fmod:
      return fmod(a, b);
    case Op::remainder:
      return remainder(a, b);
    case Op::minimum:
      return where(less(b, a), b, a);
    case Op::maximum:
      return where(less(a, b), b, a);
    case Op::bit_and:
      return Int64{bit_and(a.low, b.low), bit_and(a.high, b.high)};
    case Op::bit_or:
      return Int64{bit_or(a.low, b.low), bit_or(a.high, b.high)};
    case Op::bit_xor:
      return Int64{bit_xor(a.low, b.low), bit_xor(a.high, b.high)};
    case Op::shift_left:
      return shift_left(a, bit_and(b.low, 63));
    case Op::shift_right:
      return shift_right(a, bit_and(b.low, 63));
    default:
      return std::nullopt;
  }
}

Tensor element_by_element(Op op, std::span<const Tensor> inputs) {
  if (op == Op::where && is_int64(inputs[0])) return no_form(op, inputs[0], "a bool condition");
  const std::span<const Tensor> numbers = op == Op::where ? inputs.subspan(1) : inputs;
  if (!std::ranges::all_of(numbers, is_int64))
    return failure(ErrorCode::dtype_mismatch, op_info(op).name,
                   text("found ", dtype_name(numbers.front().dtype()), " ", describe(numbers.front()),
                        " and ", dtype_name(numbers.back().dtype()), " ", describe(numbers.back()),
                        ", expected one dtype. Cast one of them first."));
  if (op == Op::where) return joined_words(where(inputs[0], words_of(inputs[1]), words_of(inputs[2])));
  const Int64 x = words_of(inputs[0]);
  std::optional<Tensor> made;
  if (inputs.size() == 1) {
    made = unary_of_words(op, x);
  } else {
    const Int64 y = words_of(inputs[1]);
    made = compared_words(op, x, y);
    if (!made)
      if (const std::optional<Int64> found = computed_words(op, x, y)) made = joined_words(*found);
  }
  if (made) return *made;
  return no_form(op, inputs[0], dtypes_of(op).floats ? "float32" : dtypes_of(op).bools ? "bool" : "int32");
}

// Moves elements of the first inputs; the other inputs are indices.
Tensor moved_words(Op op, std::span<const Tensor> inputs, const Attributes& attributes) {
  std::vector<NodeRef> refs;
  for (const Tensor& input : inputs) refs.push_back(input.node());
  const Result<Inferred> inferred = infer(op, refs, attributes);  // the messages name int64
  if (!inferred) return Tensor(inferred.error());
  std::vector<Tensor> low, high;
  for (const Tensor& input : inputs) {
    const Int64 words = is_int64(input) ? words_of(input) : Int64{input, input};
    low.push_back(words.low);
    high.push_back(words.high);
  }
  Attributes of_high = attributes, of_low = attributes;
  if (op == Op::pad) {
    of_low.floats = {static_cast<double>(word_of_full(attributes.floats[0], 0))};
    of_high.floats = {static_cast<double>(word_of_full(attributes.floats[0], 1))};
  }
  return joined_words({make(op, low, std::move(of_low)), make(op, high, std::move(of_high))});
}

// `add` adds up to kMostTerms words.
template <class Add>
Int64 added_up(const Int64& x, Add add) {
  const Tensor least = add(bit_and(x.low, 0xffff)), next = add(shifted_down(x.low, 16));
  return Int64{least, zeros_like(least)} + Int64{shift_left(next, 16), shifted_down(next, 16) + add(x.high)};
}

Tensor sum_of_words(const Tensor& x, const std::vector<std::int64_t>& axes) {
  std::int64_t terms = 1;
  for (const std::int64_t axis : axes) terms *= x.shape()[static_cast<int>(axis)];
  if (terms <= kMostTerms)
    return joined_words(added_up(
        words_of(x), [&](const Tensor& word) { return make(Op::reduce_sum, {word}, {.ints = axes}); }));
  Tensor sum = x;
  if (axes.size() > 1) {
    for (const std::int64_t axis : axes) sum = sum_of_words(sum, {axis});
    return sum;
  }
  if (x.shape().is_named())
    return failure(ErrorCode::unsupported, "sum",
                   text("found int64 ", describe(x),
                        ", expected at most 65536 terms where an axis is named. "
                        "Give the axis a number instead of an Extent."));
  // Sums of parts of the axis, then of those.
  const int axis = static_cast<int>(axes[0]);
  std::int64_t outer = 1, inner = 1;
  for (int k = 0; k < x.rank(); ++k) (k < axis ? outer : inner) *= k == axis ? 1 : x.extent(k);
  const std::int64_t parts = (terms - 1) / kMostTerms + 1;
  const std::pair<std::int64_t, std::int64_t> filled[] = {{0, 0}, {0, parts * kMostTerms - terms}, {0, 0}};
  const Tensor lines = pad(reshape(x, {outer, terms, inner}), filled);
  sum = sum_of_words(sum_of_words(reshape(lines, {outer, parts, kMostTerms, inner}), {2}), {1});
  Shape kept = x.shape();
  kept[axis] = 1;
  return reshape(sum, kept);
}

// The extreme high word, and of those that have it the extreme low word.
Int64 extreme_words(Op op, const Int64& x, const Attributes& attributes) {
  const Tensor high = make(op, {x.high}, attributes);
  const Tensor low =
      where(equal(x.high, high), bit_xor(x.low, kSignBit), static_cast<std::int32_t>(fold_of(op)->int_start));
  return {bit_xor(make(op, {low}, attributes), kSignBit), high};
}

Tensor folded_words(Op op, const Tensor& x, const Attributes& attributes) {
  switch (op) {
    case Op::reduce_sum:
      return sum_of_words(x, attributes.ints);
    case Op::reduce_max:
    case Op::reduce_min:
      return joined_words(extreme_words(op, words_of(x), attributes));
    case Op::argmax:
    case Op::argmin: {
      const Int64 words = words_of(x);
      const Int64 found =
          extreme_words(op == Op::argmax ? Op::reduce_max : Op::reduce_min, words, attributes);
      return make(Op::argmax, {cast(equal(words, found), DType::int32)}, attributes);
    }
    default:
      return no_form(op, x, "float32 or int32");
  }
}

Tensor accumulated_words(Op op, std::span<const Tensor> inputs, const Attributes& attributes) {
  const Tensor& terms = inputs.back();
  const std::int64_t count = terms.rank() > static_cast<int>(attributes.ints[0])
                                 ? terms.extent(static_cast<int>(attributes.ints[0]))
                                 : 0;
  if (count > kMostTerms)
    return failure(ErrorCode::unsupported, op_info(op).name,
                   text("found int64 ", describe(terms), ", expected at most 65536 terms along axis ",
                        attributes.ints[0], ". Add parts of it."));
  if (op == Op::cumsum)
    return joined_words(
        added_up(words_of(terms), [&](const Tensor& word) { return make(op, {word}, attributes); }));
  if (!is_int64(inputs[0]) || !is_int64(terms)) return element_by_element(op, std::vector{inputs[0], terms});
  const Int64 base = words_of(inputs[0]);
  const Tensor nothing = zeros_like(base.low);
  return joined_words(base + added_up(words_of(terms), [&](const Tensor& word) {
                        return make(op, {nothing, inputs[1], word}, attributes);
                      }));
}

std::optional<Tensor> word_of(Op op, const Tensor& x) {
  const Node& node = *x.node();
  const int place = op == Op::int64_low ? 0 : 1;
  if (node.op == Op::int64_pair) return Tensor(node.inputs[static_cast<std::size_t>(place)]);
  if (node.op == Op::full) return full(node.shape, word_of_full(node.floats[0], place), DType::int32);
  return std::nullopt;
}

Tensor converted_words(const Tensor& x, DType dtype) {
  if (dtype != DType::int64) return cast(words_of(x), dtype);
  if (!is_int64(x)) return joined_words(int64_of(x));
  // A copy.
  const Int64 words = words_of(x);
  return make(Op::int64_pair, {make(Op::cast, {words.low}, {.dtype = DType::int32}),
                               make(Op::cast, {words.high}, {.dtype = DType::int32})});
}

}  // namespace

std::int32_t word_of_full(double value, int place) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  return int64_word(value >= 0x1p63 ? kMost : static_cast<std::int64_t>(value), place);
}

Shape shape_of_words(Shape shape) {
  shape.append(2);
  return shape;
}

Int64 words_of(const Tensor& x) { return {make(Op::int64_low, {x}), make(Op::int64_high, {x})}; }

Tensor joined_words(const Int64& x) {
  if (x.low.ok() && x.high.ok() && is_op(x.low, Op::int64_low) && is_op(x.high, Op::int64_high) &&
      x.low.node()->inputs[0] == x.high.node()->inputs[0])
    return Tensor(x.low.node()->inputs[0]);
  return make(Op::int64_pair, {x.low, x.high});
}

std::optional<Tensor> made_of_words(Op op, std::span<const Tensor> inputs, const Attributes& attributes) {
  const bool any = std::ranges::any_of(inputs, is_int64);
  if (op == Op::cast && (any || attributes.dtype == DType::int64))
    return converted_words(inputs[0], attributes.dtype);
  if (!any || op == Op::int64_pair || op == Op::loop || op == Op::loop_output) return std::nullopt;
  if (op == Op::int64_low || op == Op::int64_high) return word_of(op, inputs[0]);
  if (op == Op::stop_gradient) return inputs[0];
  switch (op_info(op).kind) {
    case OpKind::elementwise:
      return element_by_element(op, inputs);
    case OpKind::view:
    case OpKind::select:
      return moved_words(op, inputs, attributes);
    case OpKind::reduce:
      return folded_words(op, inputs[0], attributes);
    default:
      if (op == Op::cumsum || op == Op::scatter_add) return accumulated_words(op, inputs, attributes);
      return no_form(op, *std::ranges::find_if(inputs, is_int64), "another type");
  }
}
}  // namespace imprint::tensor
