#pragma once
// Integers of 64 bits on every device, as pairs of int32: arithmetic, bits, comparisons and indices.
//
//   const Int64 ids = int64_from_words(table.value());    // int32 [n, 2], the bytes of int64 [n]
//   const Tensor rows = take(data, 0, index_of(ids - Int64(first)));
//
// Errors as in tensor.h. Operands of two shapes broadcast. No gradients.

#include <cstdint>
#include <span>

#include "compute/tensor/tensor.h"

namespace imprint {

// high 2^32 + low, where low's bits are read without a sign.
struct Int64 {
  Int64() = default;
  Int64(Tensor low_bits, Tensor high_bits) : low(std::move(low_bits)), high(std::move(high_bits)) {}
  explicit Int64(std::int64_t value);  // a scalar
  Int64(std::span<const std::int64_t> values, const Shape& shape);

  Tensor low, high;  // int32, of one shape. Views, gathers and joins move each of them
};

// Memory: int32 [..., 2], the low word first, has the bytes of int64 [...].
Int64 int64_from_words(const Tensor& words);
Tensor words_of(const Int64&);

// The same number. Floats are truncated and clamped to 64 bits; NaN is 0.
Int64 int64_of(const Tensor& numbers);
// To integers: the low bits. To floats: the nearest. To bool: whether it is not 0.
Tensor cast(const Int64&, DType dtype);
// int32, clamped: a position outside an axis stays outside.
Tensor index_of(const Int64&);

// Results wrap to 64 bits.
Int64 operator+(const Int64& a, const Int64& b);
Int64 operator-(const Int64& a, const Int64& b);
Int64 operator-(const Int64&);
Int64 operator*(const Int64& a, const Int64& b);
Int64 abs(const Int64&);
// Truncates toward zero; x / 0 and its remainders are 0. About 300 operations for each element.
Int64 operator/(const Int64& a, const Int64& b);
Int64 fmod(const Int64& a, const Int64& b);       // the sign of the dividend, as C's %
Int64 remainder(const Int64& a, const Int64& b);  // the sign of the divisor, as Python's %

Int64 bit_not(const Int64&);
Int64 bit_and(const Int64& a, const Int64& b);
Int64 bit_or(const Int64& a, const Int64& b);
Int64 bit_xor(const Int64& a, const Int64& b);
// By 0 to 63 bits, int32; right copies the sign.
Int64 shift_left(const Int64&, const Tensor& bits);
Int64 shift_right(const Int64&, const Tensor& bits);

Int64 where(const Tensor& condition, const Int64& if_true, const Int64& if_false);

Tensor equal(const Int64& a, const Int64& b);
Tensor not_equal(const Int64& a, const Int64& b);
Tensor less(const Int64& a, const Int64& b);
Tensor less_equal(const Int64& a, const Int64& b);
Int64 minimum(const Int64& a, const Int64& b);
Int64 maximum(const Int64& a, const Int64& b);
inline Tensor operator<(const Int64& a, const Int64& b) { return less(a, b); }
inline Tensor operator<=(const Int64& a, const Int64& b) { return less_equal(a, b); }
inline Tensor operator>(const Int64& a, const Int64& b) { return less(b, a); }
inline Tensor operator>=(const Int64& a, const Int64& b) { return less_equal(b, a); }

}  // namespace imprint
