#pragma once
// Tensors and their operations.
//
// A Tensor is a value: a cheap handle to a recorded operation. Nothing runs until the tensor is evaluated,
// read back or compiled into a Program (compute/program/program.h).
//
// Errors: an operation that fails (shape, dtype, axis) returns a tensor that carries the error, with the op
// and the shapes. Operations on such a tensor pass its error on; compile and evaluate return it.
// Threads: any. One Tensor object is not synchronised.
//
// Operands broadcast by NumPy's rules. int32 and float32 do not mix: cast one. A C++ number takes the dtype
// of the tensor beside it. Axes may be negative: -1 is the last.
//
// Other types save memory: float16, bfloat16, and integers of 8 to 32 bits; int64 has integer arithmetic.
// dtype.h lists what accepts them and how a cast to one rounds or wraps. Gradients are float32: keep weights
// in float32 and cast them for each product.
//
// Drivers decide what becomes of NaN and infinities in x * 0, x - x and 0 / x: 0 on llvmpipe, NaN on the CPU.

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "compute/base/result.h"
#include "compute/tensor/node.h"

namespace imprint {

class Tensor {
 public:
  Tensor();  // empty: carries the error "uninitialised tensor"
  explicit Tensor(tensor::NodeRef node);
  explicit Tensor(Error error);
  Tensor(float value);  // a float32 scalar; beside a tensor it takes that tensor's dtype
  Tensor(double value) : Tensor(static_cast<float>(value)) {}
  Tensor(int value);
  Tensor(std::int64_t value);  // int64

  // Copies the values, row-major. Error: shape_mismatch when their count is not the shape's.
  static Tensor from(std::span<const float> values, Shape shape);
  static Tensor from(std::initializer_list<float> values, Shape shape);
  static Tensor from_ints(std::span<const std::int32_t> values, Shape shape);
  static Tensor from_int64s(std::span<const std::int64_t> values, Shape shape);
  static Tensor from_bools(std::span<const bool> values, Shape shape);
  // Elements of any dtype as they lie in memory: dtype_size(dtype) bytes each, little-endian; bool as 0 or 1.
  static Tensor from_bytes(std::span<const std::byte> bytes, Shape shape, DType dtype);
  // Keeps the bytes instead of a copy, for example those of a mapped file.
  static Tensor from_bytes(SharedBytes bytes, Shape shape, DType dtype);

  bool ok() const { return node_ != nullptr; }
  const Error& error() const;  // call only when !ok()
  const Shape& shape() const;  // [] when !ok()
  DType dtype() const;         // float32 when !ok()
  int rank() const { return shape().rank(); }
  std::int64_t extent(int axis) const;  // 0 when the axis is outside, or !ok()
  const tensor::NodeRef& node() const { return node_; }

  // The same value with a name for messages and dumps.
  Tensor named(std::string name) const;

 private:
  tensor::NodeRef node_;
  std::shared_ptr<const Error> error_;
};

// A value that the caller provides at each run of a program.
Tensor input(std::string name, Shape shape, DType dtype = DType::float32);

// State that lives across runs of programs. A handle: copies refer to the same variable. Programs change it
// by Update (compute/program/program.h).
class Variable {
 public:
  Variable() = default;
  // Copies the initial values, row-major. A wrong count or shape gives a variable that is !ok(); its value()
  // carries the error.
  Variable(std::string name, Shape shape, std::span<const float> initial);
  Variable(std::string name, Shape shape, std::span<const std::int32_t> initial);
  Variable(std::string name, Shape shape, std::span<const std::int64_t> initial);
  // The same as bytes, as Tensor::from_bytes.
  Variable(std::string name, Shape shape, DType dtype, std::span<const std::byte> initial);
  // Keeps the bytes until the variable is on a device.
  Variable(std::string name, Shape shape, DType dtype, SharedBytes initial);
  static Variable zeros(std::string name, Shape shape, DType dtype = DType::float32);
  // A variable in the caller's memory: call Runtime::place_in before the first program that uses it.
  static Variable external(std::string name, Shape shape, DType dtype = DType::float32);

  bool ok() const { return state_ != nullptr && !error_; }
  const std::string& name() const;
  const Shape& shape() const;
  DType dtype() const;
  std::uint64_t bytes() const;  // of its elements; 0 when !ok()
  Tensor value() const;         // the content when a program starts
  const std::shared_ptr<tensor::VariableState>& state() const { return state_; }

 private:
  std::shared_ptr<tensor::VariableState> state_;
  std::shared_ptr<const Error> error_;
  tensor::NodeRef node_;
};

// ---- creation ----
Tensor full(Shape shape, double value, DType dtype = DType::float32);
Tensor zeros(Shape shape, DType dtype = DType::float32);
Tensor ones(Shape shape, DType dtype = DType::float32);
Tensor zeros_like(const Tensor& t);
Tensor ones_like(const Tensor& t);
Tensor arange(std::int64_t count);                      // int32 [count]: 0, 1, ..., count - 1
Tensor arange(double start, double stop, double step);  // float32 [ceil((stop - start) / step)]
Tensor iota(Shape shape, int axis);                     // int32: the index along the axis
// int32 [...] -> float32 [..., classes]. An index outside [0, classes) gives a row of zeros.
Tensor one_hot(const Tensor& indices, std::int64_t classes);

// ---- random numbers ----
// A generator is an int32 [4] tensor {seed low, seed high, step, 0}, usually a variable. A program advances
// its step once per run: Update::assign(generator, generator_next(generator.value())). Each call needs its
// own stream number. Equal seed, step, stream and index give equal bits on every device.
// Philox4x32-10: Salmon, Moraes, Dror, Shaw, Parallel Random Numbers: As Easy as 1, 2, 3, 2011.

// float32 in [0, 1), 24 bits.
Tensor random_uniform(const Tensor& generator, Shape shape, std::uint32_t stream);
// float32, mean 0, variance 1 (Box and Muller, 1958). Uses streams s and s + 0x80000000.
Tensor random_normal(const Tensor& generator, Shape shape, std::uint32_t stream);
// float32 logits [..., classes] -> int32 [...], drawn from softmax(logits) (Gumbel, 1954).
Tensor random_categorical(const Tensor& generator, const Tensor& logits, std::uint32_t stream);
// int32 in [0, bound), 0 where bound < 1. bound: int32, broadcasts to shape.
Tensor random_integers(const Tensor& generator, Shape shape, const Tensor& bound, std::uint32_t stream);
// int32 [..., n]: each line of the last axis is its own permutation of 0 .. n - 1 (Hoang, Morris, Rogaway, An
// Enciphering Scheme Based on a Card Shuffle, 2012).
Tensor random_permutation(const Tensor& generator, Shape shape, std::uint32_t stream);
// The generator of the next step.
Tensor generator_next(const Tensor& generator);

// ---- elementwise: one operand ----
// int64 is taken wherever int32 is. Pairs of words compute it: division takes about 300 operations.
// abs, neg, sign and square take float32 or int32; logical_not takes bool; bit_not takes int32; the others
// take float32. round rounds halves to even. is_nan and is_inf return bool.
// The rows of op_rows.h: Tensor abs(const Tensor& x), neg, sign, ceil, floor, round, trunc, sqrt, recip, exp,
// expm1, log, log1p, sin, cos, tan, asin, acos, atan, sinh, cosh, tanh, asinh, acosh, atanh, erf, sigmoid,
// erfinv, lgamma (of |gamma(x)|), digamma, is_nan, is_inf, logical_not, bit_not.
#define IMPRINT_DECLARE_UNARY(name, ...) Tensor name(const Tensor& x);
IMPRINT_UNARY_OPS(IMPRINT_DECLARE_UNARY)
#undef IMPRINT_DECLARE_UNARY
Tensor rsqrt(const Tensor&);
Tensor square(const Tensor&);
Tensor exp2(const Tensor&);
Tensor log2(const Tensor&);
Tensor log10(const Tensor&);
Tensor erfc(const Tensor&);
Tensor deg2rad(const Tensor&);
Tensor rad2deg(const Tensor&);
Tensor trigamma(const Tensor&);   // the derivative of digamma
Tensor is_finite(const Tensor&);  // -> bool
// float to int truncates; any number to bool is x != 0; narrower integers keep the low bits (dtype.h).
Tensor cast(const Tensor&, DType dtype);
// The same value; its derivative is 0.
Tensor stop_gradient(const Tensor&);

// ---- elementwise: two and three operands, broadcasting ----
// int32 division truncates toward zero; int32 x / 0 and x % 0 are 0. Comparisons return bool.
// The rows of op_rows.h: Tensor add(const Tensor& a, const Tensor& b), sub, mul, div, remainder (the sign of
// the divisor, as Python's %), fmod (the sign of the dividend, as C's), pow (a negative base needs an
// integral exponent, else NaN), atan2 (y, x), minimum, maximum, logaddexp, equal, not_equal, less,
// less_equal, greater, greater_equal, logical_and, logical_or, logical_xor, bit_and, bit_or, bit_xor,
// shift_left and shift_right (by 0 to 31 bits, int64 by 0 to 63; right copies the sign).
#define IMPRINT_DECLARE_BINARY(name, ...) Tensor name(const Tensor& a, const Tensor& b);
IMPRINT_BINARY_OPS(IMPRINT_DECLARE_BINARY)
#undef IMPRINT_DECLARE_BINARY
Tensor hypot(const Tensor&, const Tensor&);
// |a - b| <= absolute + relative * |b|. float32. Equal infinities are close; NaN is close to nothing.
Tensor is_close(const Tensor& a, const Tensor& b, double relative = 1e-5, double absolute = 1e-8);
Tensor where(const Tensor& condition, const Tensor& if_true, const Tensor& if_false);
Tensor clamp(const Tensor& x, double low, double high);
Tensor clamp_min(const Tensor& x, double low);
Tensor clamp_max(const Tensor& x, double high);
Tensor lerp(const Tensor& a, const Tensor& b, const Tensor& t);  // a + t * (b - a)
Tensor masked_fill(const Tensor& x, const Tensor& mask, double value);

inline Tensor operator+(const Tensor& a, const Tensor& b) { return add(a, b); }
inline Tensor operator-(const Tensor& a, const Tensor& b) { return sub(a, b); }
inline Tensor operator*(const Tensor& a, const Tensor& b) { return mul(a, b); }
inline Tensor operator/(const Tensor& a, const Tensor& b) { return div(a, b); }
inline Tensor operator-(const Tensor& a) { return neg(a); }
inline Tensor operator<(const Tensor& a, const Tensor& b) { return less(a, b); }
inline Tensor operator<=(const Tensor& a, const Tensor& b) { return less_equal(a, b); }
inline Tensor operator>(const Tensor& a, const Tensor& b) { return greater(a, b); }
inline Tensor operator>=(const Tensor& a, const Tensor& b) { return greater_equal(a, b); }

// ---- activations ----
Tensor relu(const Tensor&);
Tensor relu6(const Tensor&);
Tensor leaky_relu(const Tensor&, double slope = 0.01);
Tensor prelu(const Tensor& x, const Tensor& slope);  // slope broadcasts to x
Tensor elu(const Tensor&, double alpha = 1);
Tensor selu(const Tensor&);
Tensor celu(const Tensor&, double alpha = 1);
// Hendrycks, Gimpel, Gaussian Error Linear Units, 2016: exact with erf, or approximated with tanh.
Tensor gelu(const Tensor&);
Tensor gelu_tanh(const Tensor&);
Tensor sigmoid(const Tensor&);
Tensor log_sigmoid(const Tensor&);
Tensor hard_sigmoid(const Tensor&, double alpha = 1.0 / 6, double beta = 0.5);
Tensor silu(const Tensor&);
Tensor hard_swish(const Tensor&);
Tensor mish(const Tensor&);
Tensor softplus(const Tensor&, double beta = 1);
Tensor softsign(const Tensor&);
Tensor tanh_shrink(const Tensor&);
Tensor hard_tanh(const Tensor&, double low = -1, double high = 1);
Tensor hard_shrink(const Tensor&, double lambda = 0.5);
Tensor soft_shrink(const Tensor&, double lambda = 0.5);
// x - bias above lambda, x + bias below -lambda, else 0.
Tensor shrink(const Tensor&, double lambda, double bias);
// x above the threshold, else value.
Tensor threshold(const Tensor&, double threshold, double value);
Tensor thresholded_relu(const Tensor&, double alpha = 1);
// a * sigmoid(b), where a and b are the halves along the axis.
Tensor glu(const Tensor&, int axis = -1);

// ---- reductions ----
// No axes means all axes; one axis may be a plain number: sum(x, -1). keep_dims keeps the reduced axes with
// extent 1.
// Of no elements: sum 0, prod 1, max -inf, min +inf (int32: the smallest and largest number), mean and
// variance NaN, any false, all true. argmax and argmin fail.
struct Axes : std::vector<int> {
  using std::vector<int>::vector;
  Axes() = default;
  Axes(std::vector<int> axes) : std::vector<int>(std::move(axes)) {}
  template <std::same_as<int> Axis>  // a bool or a size is not meant as an axis
  Axes(Axis axis) : std::vector<int>{axis} {}
};
// The rows of op_rows.h: sum, prod, max, min.
#define IMPRINT_DECLARE_FOLD(name, kind, inputs, rule, cost, derivative, function, ...) \
  Tensor(function)(const Tensor& x, const Axes& axes = {}, bool keep_dims = false);
IMPRINT_FOLD_OPS(IMPRINT_DECLARE_FOLD)
#undef IMPRINT_DECLARE_FOLD
Tensor mean(const Tensor&, const Axes& axes = {}, bool keep_dims = false);
// Sum of squared distances from the mean, divided by n - correction.
Tensor variance(const Tensor&, const Axes& axes = {}, bool keep_dims = false, double correction = 1);
Tensor logsumexp(const Tensor&, const Axes& axes = {}, bool keep_dims = false);
// int32 index of the extreme element, the first of equals. Over several axes: its row-major index in them.
Tensor argmax(const Tensor&, const Axes& axes = {}, bool keep_dims = false);
Tensor argmin(const Tensor&, const Axes& axes = {}, bool keep_dims = false);
Tensor any(const Tensor&, const Axes& axes = {}, bool keep_dims = false);  // bool
Tensor all(const Tensor&, const Axes& axes = {}, bool keep_dims = false);
Tensor softmax(const Tensor&, int axis = -1);
Tensor log_softmax(const Tensor&, int axis = -1);
Tensor softmin(const Tensor&, int axis = -1);
// exp(x) / (1 + sum exp(x)): all outputs may be near 0 (Miller, Attention Is Off By One, 2023).
Tensor quiet_softmax(const Tensor&, int axis = -1);
// Normalises over the last axis, then multiplies by gain and adds bias, both [n].
Tensor layer_norm(const Tensor& x, const Tensor& gain, const Tensor& bias, double epsilon = 1e-5);
// exclusive: each sum omits its own element. reverse: sums from the end.
Tensor cumsum(const Tensor&, int axis, bool exclusive = false, bool reverse = false);
// out[t] = factors[t] * out[t - 1] + terms[t] along the axis; out is 0 before the first. reverse: from the
// last to the first, with out[t + 1]. float32, equal shapes. For discounted returns, advantages and running
// averages.
Tensor linear_recurrence(const Tensor& terms, const Tensor& factors, int axis, bool reverse = false);

Tensor cumprod(const Tensor&, int axis);       // float32; zeros have exact gradients
Tensor logcumsumexp(const Tensor&, int axis);  // float32: log of the sum of exp so far
// An extreme and its int32 position along the axis.
struct WithIndices {
  Tensor values, indices;
};
// The largest (smallest) so far; of equals the last position. NaN wins over every number.
WithIndices cummax(const Tensor&, int axis);
WithIndices cummin(const Tensor&, int axis);

// ---- order; float32 or int32 ----
// Stable: equals keep their order, and -0 equals 0. NaN comes last, ascending or descending. The gradient
// goes to where each value came from.
Tensor argsort(const Tensor&, int axis = -1, bool descending = false);  // int32 positions along the axis
WithIndices sort(const Tensor&, int axis = -1, bool descending = false);
// The `count` largest (smallest) in order, the first of equals first. NaN counts only after all numbers.
WithIndices topk(const Tensor&, std::int64_t count, int axis = -1, bool largest = true);

// ---- contraction ----
// [..., m, k] x [..., k, n] -> float32 [..., m, n]. Leading axes broadcast; rank-1 operands as in NumPy.
// Operands are both float32, both float16 or both bfloat16; sums are float32. float16 uses matrix units where
// the device declares them.
Tensor matmul(const Tensor& a, const Tensor& b);

// ---- shape ----
Tensor reshape(const Tensor&, const Shape& shape);  // one extent may be -1: what remains
Tensor flatten(const Tensor&, int first_axis = 0, int last_axis = -1);
Tensor squeeze(const Tensor&, int axis);
Tensor unsqueeze(const Tensor&, int axis);
Tensor transpose(const Tensor&, int axis_a = -2, int axis_b = -1);
Tensor permute(const Tensor&, const Axes& axes);
Tensor expand(const Tensor&, const Shape& shape);  // as NumPy's broadcast_to
// Python's rules: negative positions count from the end, step may be negative.
Tensor slice(const Tensor&, int axis, std::int64_t start, std::int64_t stop, std::int64_t step = 1);
// length elements from start. Error: shape_mismatch when they are not all inside.
Tensor narrow(const Tensor&, int axis, std::int64_t start, std::int64_t length);
Tensor flip(const Tensor&, int axis);
Tensor concat(std::span<const Tensor> tensors, int axis);
Tensor concat(std::initializer_list<Tensor> tensors, int axis);
Tensor stack(std::span<const Tensor> tensors, int axis);
Tensor stack(std::initializer_list<Tensor> tensors, int axis);
// Pieces of `size` along the axis; the last may be shorter.
std::vector<Tensor> split(const Tensor&, std::int64_t size, int axis);
// Adds elements before and after each axis; one pair per axis, each 0 or more.
Tensor pad(const Tensor&, std::span<const std::pair<std::int64_t, std::int64_t>> before_after,
           double value = 0);
Tensor repeat(const Tensor&, int axis,
              std::int64_t times);  // the whole axis, `times` times, as torch's repeat
// Sliding windows: the axis becomes positions, a last axis of `size` is added. As torch's unfold.
Tensor window(const Tensor&, int axis, std::int64_t size, std::int64_t stride = 1, std::int64_t dilation = 1);

// ---- indexing; integer indices ----
// An index outside the axis reads 0 (gather, take, index_select) or is dropped (scatter_add).

// out[.., i, ..] = data[.., indices[.., i, ..], ..]. Indices have the data's extents except along the axis.
Tensor gather(const Tensor& data, int axis, const Tensor& indices);
// The axis is replaced by the shape of the indices. Embedding look-up: axis 0.
Tensor take(const Tensor& data, int axis, const Tensor& indices);
Tensor index_select(const Tensor& data, int axis, const Tensor& indices);  // take with 1-D indices
// base with updates added at the indices, in a fixed order. As torch's scatter_add.
Tensor scatter_add(const Tensor& base, int axis, const Tensor& indices, const Tensor& updates);

// As scatter_add, with another combination: assign (the last update wins), mul, min or max (a NaN wins).
enum class Scatter : std::uint8_t { assign, add, mul, min, max };
Tensor scatter(const Tensor& base, int axis, const Tensor& indices, const Tensor& updates, Scatter mode);

// ---- the caller's own GLSL ----
// Rows computed by the caller's GLSL: float32 [rows, width]. Vulkan devices only.
// glsl defines void imp_row(int row, <one parameter per input>, out float result[width]) and the functions
// that it calls. It may call imp_uniform (shaders/include/philox.glsl).
// inputs: float32, int32 or bool. A [rows, n] input passes its row, an [n] input all of it, as float[n] or
// int[n]. The first input has rows.
// No derivative. Code that does not compile fails Program::compile (compile_failed).
Tensor custom_rows(std::string name, std::string_view glsl, std::span<const Tensor> inputs,
                   std::int64_t width);

}  // namespace imprint
