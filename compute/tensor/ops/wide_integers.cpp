#include "compute/tensor/ops/wide_integers.h"

#include <limits>
#include <vector>

#include "compute/base/text.h"
#include "compute/tensor/build.h"
#include "compute/tensor/composites/composites.h"

namespace imprint {

using namespace tensor;

namespace {

constexpr std::int32_t kSignBit = std::numeric_limits<std::int32_t>::min();
constexpr double kWordValues = 4294967296.0;  // 2^32

std::int32_t int64_word(std::int64_t value, int place) {
  return static_cast<std::int32_t>(
      static_cast<std::uint32_t>(static_cast<std::uint64_t>(value) >> (32 * place)));
}

Tensor constant_words(std::span<const std::int64_t> values, const Shape& shape, int place) {
  std::vector<std::int32_t> words;
  words.reserve(values.size());
  for (const std::int64_t value : values) words.push_back(int64_word(value, place));
  return Tensor::from_ints(words, shape);
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

Int64::Int64(std::int64_t value) : Int64(std::span(&value, 1), {}) {}

Int64::Int64(std::span<const std::int64_t> values, const Shape& shape)
    : low(constant_words(values, shape, 0)), high(constant_words(values, shape, 1)) {}

Int64 int64_from_words(const Tensor& words) {
  if (words.ok() &&
      (words.dtype() != DType::int32 || words.rank() < 1 || words.extent(words.rank() - 1) != 2)) {
    const Tensor error =
        failure(ErrorCode::shape_mismatch, "int64_from_words",
                text("found ", dtype_name(words.dtype()), " ", describe(words), ", expected int32 [..., 2]"));
    return {error, error};
  }
  const int last = words.rank() - 1;
  const auto word = [&](std::int64_t place) { return squeeze(narrow(words, last, place, 1), last); };
  return {word(0), word(1)};
}

Tensor words_of(const Int64& x) { return stack({x.low, x.high}, -1); }

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
  if (dtype == DType::boolean) return not_equal(x, Int64(0));
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
  const Tensor differs = logical_and(not_equal(rest, Int64(0)), less(bit_xor(rest.high, b.high), 0));
  return where(differs, rest + b, rest);
}

Int64 bit_not(const Int64& x) { return {bit_not(x.low), bit_not(x.high)}; }
Int64 bit_and(const Int64& a, const Int64& b) { return {bit_and(a.low, b.low), bit_and(a.high, b.high)}; }
Int64 bit_or(const Int64& a, const Int64& b) { return {bit_or(a.low, b.low), bit_or(a.high, b.high)}; }
Int64 bit_xor(const Int64& a, const Int64& b) { return {bit_xor(a.low, b.low), bit_xor(a.high, b.high)}; }

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

Tensor not_equal(const Int64& a, const Int64& b) { return logical_not(equal(a, b)); }

Tensor less(const Int64& a, const Int64& b) {
  return logical_or(less(a.high, b.high), logical_and(equal(a.high, b.high), is_below(a.low, b.low)));
}

Tensor less_equal(const Int64& a, const Int64& b) { return logical_not(less(b, a)); }

Int64 minimum(const Int64& a, const Int64& b) { return where(less(b, a), b, a); }
Int64 maximum(const Int64& a, const Int64& b) { return where(less(a, b), b, a); }

}  // namespace imprint
