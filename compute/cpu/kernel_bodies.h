// The source of a KernelSet, compiled once per instruction set by kernels_*.cpp, which define
// IMPRINT_KERNEL_SET, kSetName and kLanes (floats per vector). Nothing here may be shared with other files
// (float_functions.h says why): no templates of the standard library.

#include "compute/cpu/float_functions.h"
#include "compute/cpu/kernels.h"

namespace imprint::cpu {
namespace {

using Int = std::int32_t;

// The result may be one of the operands: elements do not depend on each other.
#define IMPRINT_EACH_ELEMENT _Pragma("GCC ivdep") for (std::int64_t i = 0; i < count; ++i)

template <class In, class Out, class Function>
inline void map_one(const void* a, void* result, std::int64_t count, Function function) {
  const In* x = static_cast<const In*>(a);
  Out* y = static_cast<Out*>(result);
  IMPRINT_EACH_ELEMENT y[i] = function(x[i]);
}

template <class In, class Out, class Function>
inline void map_two(const void* a, const void* b, void* result, std::int64_t count, Function function) {
  const In* x = static_cast<const In*>(a);
  const In* z = static_cast<const In*>(b);
  Out* y = static_cast<Out*>(result);
  IMPRINT_EACH_ELEMENT y[i] = function(x[i], z[i]);
}

#define IMPRINT_ONE(In, Out, expression)                                                 \
  return [](const void* a, const void*, const void*, void* result, std::int64_t count) { \
    map_one<In, Out>(a, result, count, [](In x) -> Out { return expression; });          \
  }
#define IMPRINT_TWO(In, Out, expression)                                                   \
  return [](const void* a, const void* b, const void*, void* result, std::int64_t count) { \
    map_two<In, Out>(a, b, result, count, [](In x, In y) -> Out { return expression; });   \
  }

Elementwise float_function_of_one(Op op) {
  switch (op) {
    case Op::abs:
      IMPRINT_ONE(float, float, magnitude(x));
    case Op::neg:
      IMPRINT_ONE(float, float, -x);
    case Op::sign:
      IMPRINT_ONE(float, float, x > 0.0f ? 1.0f : x < 0.0f ? -1.0f : 0.0f);
    case Op::ceil:
      IMPRINT_ONE(float, float, __builtin_ceilf(x));
    case Op::floor:
      IMPRINT_ONE(float, float, __builtin_floorf(x));
    case Op::round:
      IMPRINT_ONE(float, float, __builtin_rintf(x));
    case Op::trunc:
      IMPRINT_ONE(float, float, __builtin_truncf(x));
    case Op::sqrt:
      IMPRINT_ONE(float, float, __builtin_sqrtf(x));
    case Op::recip:
      IMPRINT_ONE(float, float, 1.0f / x);
    case Op::exp:
      IMPRINT_ONE(float, float, exp_of(x));
    case Op::expm1:
      IMPRINT_ONE(float, float, expm1_of(x));
    case Op::log:
      IMPRINT_ONE(float, float, log_of(x));
    case Op::log1p:
      IMPRINT_ONE(float, float, log1p_of(x));
    case Op::sin:
      IMPRINT_ONE(float, float, sin_of(x));
    case Op::cos:
      IMPRINT_ONE(float, float, cos_of(x));
    case Op::tan:
      IMPRINT_ONE(float, float, tan_of(x));
    case Op::asin:
      IMPRINT_ONE(float, float, asin_of(x));
    case Op::acos:
      IMPRINT_ONE(float, float, acos_of(x));
    case Op::atan:
      IMPRINT_ONE(float, float, atan_of(x));
    case Op::sinh:
      IMPRINT_ONE(float, float, sinh_of(x));
    case Op::cosh:
      IMPRINT_ONE(float, float, cosh_of(x));
    case Op::tanh:
      IMPRINT_ONE(float, float, tanh_of(x));
    case Op::asinh:
      IMPRINT_ONE(float, float, asinh_of(x));
    case Op::acosh:
      IMPRINT_ONE(float, float, acosh_of(x));
    case Op::atanh:
      IMPRINT_ONE(float, float, atanh_of(x));
    case Op::erf:
      IMPRINT_ONE(float, float, erf_of(x));
    case Op::sigmoid:
      IMPRINT_ONE(float, float, sigmoid_of(x));
    case Op::is_nan:
      IMPRINT_ONE(float, Int, x != x);
    case Op::is_inf:
      IMPRINT_ONE(float, Int, magnitude(x) == kInfinity);
    default:
      return nullptr;
  }
}

Elementwise float_function_of_two(Op op) {
  switch (op) {
    case Op::add:
      IMPRINT_TWO(float, float, x + y);
    case Op::sub:
      IMPRINT_TWO(float, float, x - y);
    case Op::mul:
      IMPRINT_TWO(float, float, x* y);
    case Op::div:
      IMPRINT_TWO(float, float, x / y);
    case Op::remainder:
      IMPRINT_TWO(float, float, float_remainder(x, y));
    case Op::fmod:
      IMPRINT_TWO(float, float, fmodf(x, y));
    case Op::pow:
      IMPRINT_TWO(float, float, pow_of(x, y));
    case Op::atan2:
      IMPRINT_TWO(float, float, atan2f(x, y));
    case Op::minimum:
      IMPRINT_TWO(float, float, smaller(x, y));
    case Op::maximum:
      IMPRINT_TWO(float, float, larger(x, y));
    case Op::equal:
      IMPRINT_TWO(float, Int, x == y);
    case Op::not_equal:
      IMPRINT_TWO(float, Int, x != y);
    case Op::less:
      IMPRINT_TWO(float, Int, x < y);
    case Op::less_equal:
      IMPRINT_TWO(float, Int, x <= y);
    case Op::greater:
      IMPRINT_TWO(float, Int, x > y);
    case Op::greater_equal:
      IMPRINT_TWO(float, Int, x >= y);
    default:
      return nullptr;
  }
}

Elementwise float_function(Op op) {
  const Elementwise of_one = float_function_of_one(op);
  return of_one ? of_one : float_function_of_two(op);
}

// int32, and bool as 0 or 1.
Elementwise int_function(Op op) {
  switch (op) {
    case Op::abs:
      IMPRINT_ONE(Int, Int, x < 0 ? negated(x) : x);
    case Op::neg:
      IMPRINT_ONE(Int, Int, negated(x));
    case Op::sign:
      IMPRINT_ONE(Int, Int, (x > 0) - (x < 0));
    case Op::logical_not:
      IMPRINT_ONE(Int, Int, x == 0);
    case Op::bit_not:
      IMPRINT_ONE(Int, Int, ~x);
    case Op::add:
      IMPRINT_TWO(Int, Int, wrapped(unsigned_of(x) + unsigned_of(y)));
    case Op::sub:
      IMPRINT_TWO(Int, Int, wrapped(unsigned_of(x) - unsigned_of(y)));
    case Op::mul:
      IMPRINT_TWO(Int, Int, wrapped(unsigned_of(x) * unsigned_of(y)));
    case Op::div:
      IMPRINT_TWO(Int, Int, quotient(x, y));
    case Op::remainder:
      IMPRINT_TWO(Int, Int, remainder_of(x, y));
    case Op::fmod:
      IMPRINT_TWO(Int, Int, rest_of(x, y));
    case Op::minimum:
      IMPRINT_TWO(Int, Int, x < y ? x : y);
    case Op::maximum:
      IMPRINT_TWO(Int, Int, x > y ? x : y);
    case Op::equal:
      IMPRINT_TWO(Int, Int, x == y);
    case Op::not_equal:
      IMPRINT_TWO(Int, Int, x != y);
    case Op::less:
      IMPRINT_TWO(Int, Int, x < y);
    case Op::less_equal:
      IMPRINT_TWO(Int, Int, x <= y);
    case Op::greater:
      IMPRINT_TWO(Int, Int, x > y);
    case Op::greater_equal:
      IMPRINT_TWO(Int, Int, x >= y);
    case Op::logical_and:
    case Op::bit_and:
      IMPRINT_TWO(Int, Int, x & y);
    case Op::logical_or:
    case Op::bit_or:
      IMPRINT_TWO(Int, Int, x | y);
    case Op::logical_xor:
    case Op::bit_xor:
      IMPRINT_TWO(Int, Int, x ^ y);
    case Op::shift_left:
      IMPRINT_TWO(Int, Int, wrapped(unsigned_of(x) << (y & 31)));
    case Op::shift_right:
      IMPRINT_TWO(Int, Int, x >> (y & 31));
    default:
      return nullptr;
  }
}

Elementwise cast_function(DType from, DType to) {
  const bool from_float = from == DType::float32, to_float = to == DType::float32;
  if (from_float && to_float) IMPRINT_ONE(float, float, x);
  if (to_float) IMPRINT_ONE(Int, float, static_cast<float>(x));
  if (to == DType::boolean && from_float) IMPRINT_ONE(float, Int, x != 0.0f);
  if (to == DType::boolean) IMPRINT_ONE(Int, Int, x != 0);
  if (from_float) IMPRINT_ONE(float, Int, truncated(x));
  IMPRINT_ONE(Int, Int, x);
}

template <class T>
void choose(const void* condition, const void* a, const void* b, void* result, std::int64_t count) {
  const Int* chosen = static_cast<const Int*>(condition);
  const T* x = static_cast<const T*>(a);
  const T* y = static_cast<const T*>(b);
  T* out = static_cast<T*>(result);
  IMPRINT_EACH_ELEMENT out[i] = chosen[i] ? x[i] : y[i];
}

Elementwise find_elementwise(Op op, DType operand, DType result) {
  if (op == Op::cast) return cast_function(operand, result);
  if (op == Op::where) return result == DType::float32 ? choose<float> : choose<Int>;
  return operand == DType::float32 ? float_function(op) : int_function(op);
}

// ---- folds ----

template <class T, class Combine>
inline void fold_run(const void* elements, std::int64_t count, void* accumulator, T start, Combine combine) {
  constexpr int kSums = 16;
  const T* x = static_cast<const T*>(elements);
  T sums[kSums];
  for (int lane = 0; lane < kSums; ++lane) sums[lane] = start;
  std::int64_t i = 0;
  for (; i + kSums <= count; i += kSums)
    for (int lane = 0; lane < kSums; ++lane) sums[lane] = combine(sums[lane], x[i + lane]);
  for (int lane = 0; i + lane < count; ++lane) sums[lane] = combine(sums[lane], x[i + lane]);
  for (int half = kSums / 2; half > 0; half /= 2)
    for (int lane = 0; lane < half; ++lane) sums[lane] = combine(sums[lane], sums[lane + half]);
  T* total = static_cast<T*>(accumulator);
  *total = combine(*total, sums[0]);
}

#define IMPRINT_FOLD(T, start, expression)                                                      \
  return [](const void* elements, std::int64_t count, void* accumulator) {                      \
    fold_run<T>(elements, count, accumulator, start, [](T x, T y) -> T { return expression; }); \
  }

FoldRun find_fold_run(Op op, DType operand) {
  if (operand == DType::float32) switch (op) {
      case Op::reduce_sum:
        IMPRINT_FOLD(float, 0.0f, x + y);
      case Op::reduce_prod:
        IMPRINT_FOLD(float, 1.0f, x* y);
      case Op::reduce_max:
        IMPRINT_FOLD(float, -kInfinity, larger(x, y));
      case Op::reduce_min:
        IMPRINT_FOLD(float, kInfinity, smaller(x, y));
      default:
        return nullptr;
    }
  switch (op) {
    case Op::reduce_sum:
      IMPRINT_FOLD(Int, 0, wrapped(unsigned_of(x) + unsigned_of(y)));
    case Op::reduce_prod:
      IMPRINT_FOLD(Int, 1, wrapped(unsigned_of(x) * unsigned_of(y)));
    case Op::reduce_max:
      IMPRINT_FOLD(Int, -2147483647 - 1, x > y ? x : y);
    case Op::reduce_min:
      IMPRINT_FOLD(Int, 2147483647, x < y ? x : y);
    default:
      return nullptr;
  }
}

// ---- matmul ----

typedef float Lanes __attribute__((vector_size(kLanes * 4)));

inline Lanes load(const float* from) {
  Lanes value;
  __builtin_memcpy(&value, from, sizeof value);
  return value;
}
inline void store(float* to, Lanes value) { __builtin_memcpy(to, &value, sizeof value); }

// A panel of b: `depth` rows of Vectors * kLanes columns, `stride` apart.
struct Panel {
  const float* elements;
  std::int64_t stride;
  std::int64_t depth;
  std::int64_t columns;  // of the panel inside c
};

// Rows x (Vectors * kLanes) outputs in registers.
template <int Rows, int Vectors>
inline void tile(const float* a, std::int64_t a_row, std::int64_t a_depth, const Panel& panel, float* c,
                 std::int64_t c_row, bool first) {
  Lanes sums[Rows][Vectors];
  for (int r = 0; r < Rows; ++r)
    for (int v = 0; v < Vectors; ++v) sums[r][v] = Lanes{};
  const float* b = panel.elements;
  for (std::int64_t k = 0; k < panel.depth; ++k, b += panel.stride) {
    Lanes row[Vectors];
    for (int v = 0; v < Vectors; ++v) row[v] = load(b + v * kLanes);
    for (int r = 0; r < Rows; ++r) {
      const Lanes factor = a[r * a_row + k * a_depth] - Lanes{};
      for (int v = 0; v < Vectors; ++v) sums[r][v] += factor * row[v];
    }
  }
  for (int r = 0; r < Rows; ++r) {
    float* target = c + r * c_row;
    if (panel.columns == Vectors * kLanes) {
      for (int v = 0; v < Vectors; ++v)
        store(target + v * kLanes, first ? sums[r][v] : load(target + v * kLanes) + sums[r][v]);
      continue;
    }
    float edge[Vectors * kLanes];
    for (int v = 0; v < Vectors; ++v) store(edge + v * kLanes, sums[r][v]);
    for (std::int64_t n = 0; n < panel.columns; ++n) target[n] = first ? edge[n] : target[n] + edge[n];
  }
}

template <int Vectors>
inline void rows_of_panel(const Matmul& m, const float* a, const Panel& panel, float* c, bool first) {
  std::int64_t row = 0;
  const auto take = [&]<int Rows>() {
    tile<Rows, Vectors>(a + row * m.a_row, m.a_row, m.a_depth, panel, c + row * m.columns, m.columns, first);
    row += Rows;
  };
  while (m.rows - row >= kTileRows) take.template operator()<kTileRows>();
  if (m.rows - row >= 4) take.template operator()<4>();
  if (m.rows - row >= 2) take.template operator()<2>();
  if (m.rows - row >= 1) take.template operator()<1>();
}

// b's panel in place, where whole vectors are contiguous; else a copy padded with zeros.
inline Panel panel_of(const Matmul& m, std::int64_t k, std::int64_t n, std::int64_t width) {
  Panel panel{m.b + k * m.b_depth + n * m.b_column, m.b_depth, m.depth - k, m.columns - n};
  if (panel.depth > kMatmulDepth) panel.depth = kMatmulDepth;
  if (panel.columns > width) panel.columns = width;
  // Rows of b that are far apart share no cache lines or pages: worth a copy where many rows of a use it.
  const bool far = m.b_depth > 1024 && m.rows > 16;
  if (m.b_column == 1 && panel.columns == width && !far) return panel;
  float* copy = m.scratch;
  for (std::int64_t row = 0; row < panel.depth; ++row, copy += width) {
    const float* from = panel.elements + row * m.b_depth;
    for (std::int64_t column = 0; column < panel.columns; ++column) copy[column] = from[column * m.b_column];
    for (std::int64_t column = panel.columns; column < width; ++column) copy[column] = 0;
  }
  panel.elements = m.scratch;
  panel.stride = width;
  return panel;
}

template <int Vectors>
inline void panels(const Matmul& m) {
  constexpr std::int64_t kWidth = Vectors * kLanes;
  static_assert(kWidth <= 64);
  for (std::int64_t k = 0; k < m.depth; k += kMatmulDepth)
    for (std::int64_t n = 0; n < m.columns; n += kWidth)
      rows_of_panel<Vectors>(m, m.a + k * m.a_depth, panel_of(m, k, n, kWidth), m.c + n, k == 0);
}

// A single row cannot share b's vectors with another; several partial sums keep the adders busy.
inline void one_row(const Matmul& m) {
  constexpr int kVectors = 64 / kLanes < 8 ? 64 / kLanes : 8;
  constexpr std::int64_t kWidth = kVectors * kLanes;
  Matmul rest = m;
  if (m.b_column == 1)
    for (std::int64_t n = 0; n + kWidth <= m.columns; n += kWidth) {
      for (std::int64_t k = 0; k < m.depth; k += kMatmulDepth)
        tile<1, kVectors>(m.a + k * m.a_depth, m.a_row, m.a_depth, panel_of(m, k, n, kWidth), m.c + n,
                          m.columns, k == 0);
      rest.b += kWidth;
      rest.c += kWidth;
      rest.columns -= kWidth;
    }
  if (rest.columns > 0) panels<1>(rest);
}

void find_product(const Matmul& m) {
  if (m.depth == 0) {
    for (std::int64_t i = 0; i < m.rows * m.columns; ++i) m.c[i] = 0;
    return;
  }
  if (m.rows == 1)
    one_row(m);
  else if (m.columns <= kLanes)
    panels<1>(m);
  else
    panels<2>(m);
}

}  // namespace

extern const KernelSet IMPRINT_KERNEL_SET;
const KernelSet IMPRINT_KERNEL_SET = {kSetName, find_elementwise, find_fold_run, find_product};

}  // namespace imprint::cpu
