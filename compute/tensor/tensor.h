#pragma once
// Tensors are values; operations are recorded. A Tensor is a cheap handle to a node; nothing runs until it is
// compiled into a Program or evaluated (compute/program/program.h). A bad operation (shape, dtype) yields a
// tensor that carries the error with the op and both shapes; operations on it carry the first error on, and
// compile / evaluate return it. Any thread; a Tensor itself is not synchronised.
//
// Binary operations broadcast as NumPy does. int32 and float32 do not mix: cast first (a C++ number adopts
// the tensor's dtype). What NaN and infinities become in x * 0, x - x and 0 / x is the device's driver's to
// say: 0 on llvmpipe, NaN on the processor. float16 and bfloat16 halve what memory holds and moves. A cast to
// one rounds; where a kernel goes on with the value itself it need not be stored first. Gradients by them are
// float32, so weights kept in float32 and cast for each product learn as usual. Devices without 16-bit
// storage refuse them.

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compute/base/result.h"
#include "compute/tensor/node.h"

namespace imprint {

class Tensor {
 public:
  Tensor();  // carries the error "uninitialised tensor"
  explicit Tensor(tensor::NodeRef node);
  explicit Tensor(Error error);
  Tensor(float value);  // a float32 scalar; in a binary operation it adopts the other operand's dtype
  Tensor(double value) : Tensor(static_cast<float>(value)) {}
  Tensor(int value);

  static Tensor from(std::span<const float> values, Shape shape);  // copied; count must equal the shape's
  static Tensor from(std::initializer_list<float> values, Shape shape);
  static Tensor from_ints(std::span<const std::int32_t> values, Shape shape);
  static Tensor from_bools(std::span<const bool> values, Shape shape);

  bool ok() const { return node_ != nullptr; }
  const Error& error() const;  // only when !ok()
  const Shape& shape() const;  // a scalar's when !ok()
  DType dtype() const;         // float32 when !ok()
  int rank() const { return shape().rank(); }
  std::int64_t extent(int axis) const;  // negative axes count from the end; 0 when out of range or !ok()
  const tensor::NodeRef& node() const { return node_; }

  // The same value under a name for messages, dumps and benchmark tables.
  Tensor named(std::string name) const;

 private:
  tensor::NodeRef node_;
  std::shared_ptr<const Error> error_;
};

// A named place that the caller fills at each run of a program.
Tensor input(std::string name, Shape shape, DType dtype = DType::float32);

// State across runs. Copyable handle; all copies are one variable. value() is its content when a program
// starts.
class Variable {
 public:
  Variable() = default;
  Variable(std::string name, Shape shape,
           std::span<const float> initial);  // count must equal the shape's, else !ok()
  Variable(std::string name, Shape shape, std::span<const std::int32_t> initial);
  static Variable zeros(std::string name, Shape shape, DType dtype = DType::float32);
  // Without content of its own: it lives in memory that somebody else gives it (Runtime::place_in) before the
  // first program that uses it.
  static Variable external(std::string name, Shape shape, DType dtype = DType::float32);

  bool ok() const { return state_ != nullptr && !error_; }
  const std::string& name() const;
  const Shape& shape() const;
  DType dtype() const;
  Tensor value() const;
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
Tensor arange(std::int64_t count);                            // int32 0 .. count-1
Tensor arange(double start, double stop, double step);        // float32, ceil((stop-start)/step) elements
Tensor iota(Shape shape, int axis);                           // int32 index along axis
Tensor one_hot(const Tensor& indices, std::int64_t classes);  // int32 [...] -> float32 [..., classes]

// ---- random numbers: Philox4x32-10 (Salmon et al., Parallel Random Numbers: As Easy as 1, 2, 3, SC 2011)
// ---- A generator is an int32[4] tensor {seed_low, seed_high, step, 0}, usually a variable that a program
// advances by one each run (generator_next). Each call names a stream; equal (seed, step, stream, index) give
// equal bits on every device.
Tensor random_uniform(const Tensor& generator, Shape shape,
                      std::uint32_t stream);  // float32 in [0, 1), 24 bits
Tensor random_normal(const Tensor& generator, Shape shape,
                     std::uint32_t stream);  // Box-Muller; uses streams s and s + 0x80000000
Tensor random_categorical(const Tensor& generator, const Tensor& logits,
                          std::uint32_t stream);  // [..., classes] -> int32 [...], Gumbel-max
Tensor random_integers(const Tensor& generator, Shape shape, const Tensor& bound,
                       std::uint32_t stream);  // int32 in [0, bound); 0 where bound < 1
// int32: each line of the last axis holds 0 .. n - 1 in an order of its own (Hoang, Morris, Rogaway, An
// Enciphering Scheme Based on a Card Shuffle, 2012).
Tensor random_permutation(const Tensor& generator, Shape shape, std::uint32_t stream);
Tensor generator_next(const Tensor& generator);

// ---- elementwise: unary ----
Tensor abs(const Tensor&);
Tensor neg(const Tensor&);
Tensor sign(const Tensor&);
Tensor ceil(const Tensor&);
Tensor floor(const Tensor&);
Tensor round(const Tensor&);
Tensor trunc(const Tensor&);
Tensor sqrt(const Tensor&);
Tensor rsqrt(const Tensor&);
Tensor recip(const Tensor&);
Tensor square(const Tensor&);
Tensor exp(const Tensor&);
Tensor exp2(const Tensor&);
Tensor expm1(const Tensor&);
Tensor log(const Tensor&);
Tensor log2(const Tensor&);
Tensor log10(const Tensor&);
Tensor log1p(const Tensor&);
Tensor sin(const Tensor&);
Tensor cos(const Tensor&);
Tensor tan(const Tensor&);
Tensor asin(const Tensor&);
Tensor acos(const Tensor&);
Tensor atan(const Tensor&);
Tensor sinh(const Tensor&);
Tensor cosh(const Tensor&);
Tensor tanh(const Tensor&);
Tensor asinh(const Tensor&);
Tensor acosh(const Tensor&);
Tensor atanh(const Tensor&);
Tensor erf(const Tensor&);
Tensor erfc(const Tensor&);
Tensor deg2rad(const Tensor&);
Tensor rad2deg(const Tensor&);  // of angles
Tensor is_nan(const Tensor&);
Tensor is_inf(const Tensor&);
Tensor is_finite(const Tensor&);
Tensor logical_not(const Tensor&);
Tensor bit_not(const Tensor&);
Tensor cast(const Tensor&, DType dtype);
Tensor stop_gradient(const Tensor&);

// ---- elementwise: binary and ternary, broadcasting ----
Tensor add(const Tensor&, const Tensor&);
Tensor sub(const Tensor&, const Tensor&);
Tensor mul(const Tensor&, const Tensor&);
Tensor div(const Tensor&, const Tensor&);
Tensor remainder(const Tensor&, const Tensor&);
Tensor fmod(const Tensor&, const Tensor&);
Tensor pow(const Tensor&, const Tensor&);
Tensor atan2(const Tensor& y, const Tensor& x);
Tensor hypot(const Tensor&, const Tensor&);
Tensor minimum(const Tensor&, const Tensor&);
Tensor maximum(const Tensor&, const Tensor&);
Tensor equal(const Tensor&, const Tensor&);
Tensor not_equal(const Tensor&, const Tensor&);
// |a - b| <= absolute + relative * |b|; equal infinities are close, NaN is close to nothing. float32.
Tensor is_close(const Tensor& a, const Tensor& b, double relative = 1e-5, double absolute = 1e-8);
Tensor less(const Tensor&, const Tensor&);
Tensor less_equal(const Tensor&, const Tensor&);
Tensor greater(const Tensor&, const Tensor&);
Tensor greater_equal(const Tensor&, const Tensor&);
Tensor logical_and(const Tensor&, const Tensor&);
Tensor logical_or(const Tensor&, const Tensor&);
Tensor logical_xor(const Tensor&, const Tensor&);
Tensor bit_and(const Tensor&, const Tensor&);
Tensor bit_or(const Tensor&, const Tensor&);
Tensor bit_xor(const Tensor&, const Tensor&);
Tensor shift_left(const Tensor&, const Tensor&);
Tensor shift_right(const Tensor&, const Tensor&);
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
Tensor gelu(const Tensor&);
Tensor gelu_tanh(const Tensor&);  // exact with erf; tanh approximation (Hendrycks, Gimpel 2016)
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
Tensor shrink(const Tensor&, double lambda,
              double bias);  // x - bias above lambda, x + bias below -lambda, else 0
Tensor threshold(const Tensor&, double threshold, double value);
Tensor thresholded_relu(const Tensor&, double alpha = 1);
Tensor glu(const Tensor&, int axis = -1);  // a * sigmoid(b), halves along axis

// ---- reductions; axes empty = all; negative axes count from the end ----
// Of nothing: sum 0, prod 1, max -inf, min +inf (the extreme int32), mean and variance NaN, any false, all
// true; argmax and argmin fail.
using Axes = std::vector<int>;
Tensor sum(const Tensor&, const Axes& axes = {}, bool keep_dims = false);
Tensor mean(const Tensor&, const Axes& axes = {}, bool keep_dims = false);
Tensor prod(const Tensor&, const Axes& axes = {}, bool keep_dims = false);
Tensor max(const Tensor&, const Axes& axes = {}, bool keep_dims = false);
Tensor min(const Tensor&, const Axes& axes = {}, bool keep_dims = false);
Tensor variance(const Tensor&, const Axes& axes = {}, bool keep_dims = false,
                double correction = 1);  // / (n - correction)
Tensor logsumexp(const Tensor&, const Axes& axes = {}, bool keep_dims = false);
// int32, the first of equals; over several axes, its place among their elements in row-major order.
Tensor argmax(const Tensor&, const Axes& axes = {}, bool keep_dims = false);
Tensor argmin(const Tensor&, const Axes& axes = {}, bool keep_dims = false);
template <std::same_as<int> Axis>  // which {} is not: that means all
Tensor argmax(const Tensor& x, Axis axis, bool keep_dims = false) {
  return argmax(x, Axes{axis}, keep_dims);
}
template <std::same_as<int> Axis>
Tensor argmin(const Tensor& x, Axis axis, bool keep_dims = false) {
  return argmin(x, Axes{axis}, keep_dims);
}
Tensor any(const Tensor&, const Axes& axes = {}, bool keep_dims = false);  // bool
Tensor all(const Tensor&, const Axes& axes = {}, bool keep_dims = false);
Tensor softmax(const Tensor&, int axis = -1);
Tensor log_softmax(const Tensor&, int axis = -1);
Tensor softmin(const Tensor&, int axis = -1);
Tensor quiet_softmax(
    const Tensor&,
    int axis = -1);  // exp(x) / (1 + sum exp(x)): may choose nothing (Miller, Attention Is Off By One, 2023)
Tensor layer_norm(const Tensor& x, const Tensor& gain, const Tensor& bias,
                  double epsilon = 1e-5);  // over the last axis; gain, bias [n]
Tensor cumsum(const Tensor&, int axis, bool exclusive = false, bool reverse = false);
// out[t] = factors[t] * out[t - 1] + terms[t] along axis, from 0 before the first; reverse: from the last to
// the first, out[t + 1] for out[t - 1]. Discounted returns, generalised advantages, running averages. Equal
// shapes, float32.
Tensor linear_recurrence(const Tensor& terms, const Tensor& factors, int axis, bool reverse = false);

// ---- contraction ----
// [..., m, k] x [..., k, n] -> float32 [..., m, n]; leading axes broadcast; rank-1 operands as in NumPy.
// Operands are float32, or both float16 or bfloat16: sums are of float32 either way, and on a device's matrix
// units where it declares them (float16).
Tensor matmul(const Tensor& a, const Tensor& b);

// ---- shape ----
Tensor reshape(const Tensor&, const Shape& shape);  // one extent may be -1
Tensor flatten(const Tensor&, int first_axis = 0, int last_axis = -1);
Tensor squeeze(const Tensor&, int axis);
Tensor unsqueeze(const Tensor&, int axis);
Tensor transpose(const Tensor&, int axis_a = -2, int axis_b = -1);
Tensor permute(const Tensor&, const Axes& axes);
Tensor expand(const Tensor&, const Shape& shape);  // as NumPy's broadcast_to
Tensor slice(const Tensor&, int axis, std::int64_t start, std::int64_t stop,
             std::int64_t step = 1);  // Python's rules; step may be negative
Tensor narrow(const Tensor&, int axis, std::int64_t start, std::int64_t length);
Tensor flip(const Tensor&, int axis);
Tensor concat(std::span<const Tensor> tensors, int axis);
Tensor concat(std::initializer_list<Tensor> tensors, int axis);
Tensor stack(std::span<const Tensor> tensors, int axis);
Tensor stack(std::initializer_list<Tensor> tensors, int axis);
std::vector<Tensor> split(const Tensor&, std::int64_t size, int axis);
Tensor pad(const Tensor&, std::span<const std::pair<std::int64_t, std::int64_t>> before_after,
           double value = 0);
Tensor repeat(const Tensor&, int axis,
              std::int64_t times);  // the whole axis again and again, as torch's repeat
Tensor window(const Tensor&, int axis, std::int64_t size, std::int64_t stride = 1,
              std::int64_t dilation = 1);  // as torch's unfold

// ---- indexing; int32 indices; an index outside reads 0 (gather, take) or is dropped (scatter_add) ----
Tensor gather(const Tensor& data, int axis, const Tensor& indices);
Tensor take(const Tensor& data, int axis,
            const Tensor& indices);  // index_select for 1-D indices; embedding look-up for axis 0
Tensor index_select(const Tensor& data, int axis, const Tensor& indices);
Tensor scatter_add(const Tensor& base, int axis, const Tensor& indices, const Tensor& updates);

// ---- code of the caller's own ----
// Rows computed by GLSL that the caller wrote: float32 [rows, width]. `glsl` defines
//   void imp_row(int row, a parameter for each input, out float result[width])
// and whatever that calls; imp_uniform of shaders/include/philox.glsl is at hand. Inputs are float32, int32
// or bool: [rows, n] hands over its row and [n] all of it, as float[n] or int[n]; the first has rows. There
// is no derivative. A text that does not compile fails Program::compile.
Tensor custom_rows(std::string name, std::string_view glsl, std::span<const Tensor> inputs,
                   std::int64_t width);

// ---- images: NCHW ----
struct Conv2dOptions {
  std::int64_t stride = 1, padding = 0, dilation = 1, groups = 1;
};
// weight [out, in/groups, kh, kw]; bias [out] or empty Tensor()
Tensor conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias, const Conv2dOptions& options = {});
struct Pool2dOptions {
  std::int64_t size = 2, stride = 2, padding = 0;
};
Tensor max_pool2d(const Tensor& x, const Pool2dOptions& options = {});
Tensor avg_pool2d(const Tensor& x,
                  const Pool2dOptions& options = {});  // counts padding, as ONNX's count_include_pad = 1

}  // namespace imprint
