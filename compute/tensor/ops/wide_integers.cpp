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

}  // namespace imprint
