#pragma once
// Further operations, composed of those of tensor.h: products by letters, triangles and diagonals, other
// arrangements, and elements chosen by indices, order or masks. NumPy's and PyTorch's meanings and names.
// Errors as in tensor.h.

#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "compute/tensor/tensor.h"

namespace imprint {

// ---- products ----
// Einstein's summation: "bij,bjk->bik". One letter per axis; a letter that is not in the result is summed. A
// letter twice in one operand takes the diagonal. "..." stands for further axes, equal from the last on.
// Without "->": the axes of "...", then the letters that occur once, sorted. Operands are contracted from
// left to right.
Tensor einsum(std::string_view letters, std::span<const Tensor> operands);
Tensor einsum(std::string_view letters, std::initializer_list<Tensor> operands);
// Sums over the last `axes` axes of a with the first ones of b.
Tensor tensordot(const Tensor& a, const Tensor& b, int axes = 2);
Tensor outer(const Tensor& a, const Tensor& b);                 // [n], [m] -> [n, m]
Tensor kron(const Tensor& a, const Tensor& b);                  // matrices [n, m], [k, l] -> [n k, m l]
Tensor cross(const Tensor& a, const Tensor& b, int axis = -1);  // of 3 elements along the axis
// (sum |x|^p)^(1 / p) over the axes; p 0 counts what is not 0, an infinite p takes the largest. The
// derivative at 0 is 0.
Tensor norm(const Tensor& x, double p = 2, const Axes& axes = {}, bool keep_dims = false);

// ---- matrices: the last two axes ----
Tensor eye(std::int64_t rows, std::int64_t columns = -1);  // -1: rows
// Zero above (tril) or below (triu) the offset-th diagonal.
Tensor tril(const Tensor& x, std::int64_t offset = 0);
Tensor triu(const Tensor& x, std::int64_t offset = 0);
Tensor diagonal(const Tensor& x, std::int64_t offset = 0);  // [..., n, m] -> [..., length]
Tensor diag_embed(const Tensor& x);                         // [..., n] -> [..., n, n]
Tensor trace(const Tensor& x);                              // [..., n, m] -> [...]

// ---- arrangement ----
Tensor linspace(double start, double stop, std::int64_t count);  // float32 [count], both ends included
// One grid per vector, each [n0, n1, ...].
std::vector<Tensor> meshgrid(std::span<const Tensor> vectors);
Tensor roll(const Tensor& x, std::int64_t shift, int axis);  // elements move by shift, around the end
Tensor rot90(const Tensor& x, int times = 1, int first_axis = 0, int second_axis = 1);
Tensor tile(const Tensor& x, std::span<const std::int64_t> times);        // one number per axis
Tensor repeat_interleave(const Tensor& x, int axis, std::int64_t times);  // each element `times` times
std::vector<Tensor> chunk(const Tensor& x, std::int64_t count, int axis);
Tensor movedim(const Tensor& x, int from, int to);
Tensor unflatten(const Tensor& x, int axis, const Shape& extents);

enum class PadMode : std::uint8_t {
  constant,
  reflect,  // mirrored, without the edge itself; less than the extent
  edge,     // the first or last element; torch's replicate
  wrap      // from the other end; at most the extent; torch's circular
};
Tensor pad(const Tensor& x, std::span<const std::pair<std::int64_t, std::int64_t>> before_after,
           PadMode mode);

// ---- elementwise ----
Tensor floor_divide(const Tensor& a, const Tensor& b);  // rounds toward -inf; int32 or float32
Tensor nan_to_num(const Tensor& x, double nan = 0, double largest = 3.4028234663852886e38,
                  double least = -3.4028234663852886e38);

// ---- by indices: lists of k indices name rows of the first k axes ----
// data [n1, .., nk, rest], indices [.., k] -> [.., rest]. An index outside reads 0.
Tensor gather_nd(const Tensor& data, const Tensor& indices);
// base with updates [.., rest] at the indices [.., k], as scatter. An index outside is dropped.
Tensor scatter_nd(const Tensor& base, const Tensor& indices, const Tensor& updates,
                  Scatter mode = Scatter::assign);
// Combines the rows of x [n, rest] that have the same segment: -> [count, rest]. A segment without rows has 0
// (add, assign), 1 (mul) or an infinity (min, max; int32: the largest and smallest number).
Tensor segment_reduce(const Tensor& x, const Tensor& segments, std::int64_t count,
                      Scatter mode = Scatter::add);
// x with `value` from `start` of the axis on; a negative start counts from the end.
Tensor slice_assign(const Tensor& x, int axis, std::int64_t start, const Tensor& value);
// int32 [count]: how often each of 0 .. count - 1 occurs. Other numbers are not counted.
Tensor bincount(const Tensor& x, std::int64_t count);
// int32 [bins]: elements per bin of equal width; `high` belongs to the last. NaN is not counted.
Tensor histogram(const Tensor& x, std::int64_t bins, double low, double high);

// ---- by order ----
// int32: how many elements of the ascending vector are smaller than each value (right: or equal).
Tensor searchsorted(const Tensor& sorted, const Tensor& values, bool right = false);
// Between neighbours by their distance, as NumPy's linear method. NaN if a line has one.
Tensor quantile(const Tensor& x, double q, int axis = -1, bool keep_dims = false);
Tensor median(const Tensor& x, int axis = -1, bool keep_dims = false);  // of two middle ones the mean

// ---- with a bound: shapes are static, so `most` results have memory; further ones are dropped ----
struct Selected {
  Tensor values;  // [most, ...]
  Tensor count;   // int32 scalar: how many there are, also beyond `most`
};
Selected masked_select(const Tensor& x, const Tensor& mask, std::int64_t most);  // row-major; then 0
Selected nonzero(const Tensor& x, std::int64_t most);  // int32 [most, rank] positions; then -1
Selected unique(const Tensor& x, std::int64_t most);   // ascending; then 0. NaN differ from each other

// ---- random numbers, as in tensor.h ----
Tensor random_bernoulli(const Tensor& generator, const Tensor& probability, std::uint32_t stream);  // bool
Tensor random_exponential(const Tensor& generator, Shape shape, std::uint32_t stream);              // mean 1
// The gamma distribution with scale 1 of each shape parameter alpha; NaN where alpha <= 0. Its gradient by
// alpha keeps the quantile (Figurnov et al., Implicit Reparameterization Gradients, 2018), and is not
// differentiable again.
Tensor random_gamma(const Tensor& generator, const Tensor& alpha, std::uint32_t stream);
// float32 logits [..., classes] -> int32 [..., samples], drawn from softmax(logits). Without replacement each
// class at most once, the first drawn first (Kool et al., Stochastic Beams and Where to Find Them, 2019).
Tensor random_multinomial(const Tensor& generator, const Tensor& logits, std::int64_t samples,
                          std::uint32_t stream, bool replacement = true);
// The normal distribution between two bounds.
Tensor random_truncated_normal(const Tensor& generator, Shape shape, std::uint32_t stream, double low = -2,
                               double high = 2);

// ---- graphs ----
// The same outputs, computed with `to` instead of `from`: inputs, variables' values or any other tensors of
// the graph. Shapes and dtypes are equal in pairs. Nodes that do not depend on them are shared, not copied.
std::vector<Tensor> substitute(std::span<const Tensor> outputs, std::span<const Tensor> from,
                               std::span<const Tensor> to);
Tensor substitute(const Tensor& output, std::span<const Tensor> from, std::span<const Tensor> to);

}  // namespace imprint
