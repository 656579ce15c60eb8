#pragma once
// int64 as pairs of int32 words: how operations on int64 tensors become operations that every device has,
// with equal bits. Internal: users write the operations of tensor.h.

#include <cstdint>

#include "compute/tensor/build.h"

namespace imprint::tensor {

// high 2^32 + low, where low's bits are read without a sign.
struct Int64 {
  Int64() = default;
  Int64(Tensor low_bits, Tensor high_bits) : low(std::move(low_bits)), high(std::move(high_bits)) {}
  explicit Int64(std::int64_t value);  // a scalar

  Tensor low, high;  // int32, of one shape
};

// The words of an int64 tensor, and back.
Int64 words_of(const Tensor&);
Tensor joined_words(const Int64&);

// int64 [...] in memory is int32 [..., 2], the low word first.
Shape shape_of_words(Shape shape);
// Word 0 (low) or 1 of a number as `full` has it: 2^63 is the largest.
std::int32_t word_of_full(double value, int place);

// The same number. Floats are truncated and clamped to 64 bits; NaN is 0.
Int64 int64_of(const Tensor& numbers);
// To integers: the low bits. To floats: the nearest float32. To bool: whether it is not 0.
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

// By 0 to 63 bits, int32; right copies the sign.
Int64 shift_left(const Int64&, const Tensor& bits);
Int64 shift_right(const Int64&, const Tensor& bits);

Int64 where(const Tensor& condition, const Int64& if_true, const Int64& if_false);

Tensor equal(const Int64& a, const Int64& b);
Tensor less(const Int64& a, const Int64& b);

}  // namespace imprint::tensor
