// The source of a KernelSet, compiled once per instruction set by kernels_*.cpp, which define
// IMPRINT_KERNEL_SET, kSetName and kLanes (floats per vector). Nothing here may be shared with other files
// (float_functions.h says why): no templates of the standard library.

#include "compute/cpu/float_functions.h"
#include "compute/cpu/kernels.h"

#ifdef __FMA__
#include <immintrin.h>
#endif

namespace imprint::cpu {
namespace {

using Int = std::int32_t;

// The result may be one of the operands: elements do not depend on each other.
#ifdef __clang__
#define IMPRINT_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define IMPRINT_INDEPENDENT _Pragma("GCC ivdep")
#endif
#ifdef __clang__
#define IMPRINT_UNROLL _Pragma("clang loop unroll(full)")
#else
#define IMPRINT_UNROLL _Pragma("GCC unroll 16")
#endif
#define IMPRINT_EACH_ELEMENT IMPRINT_INDEPENDENT for (std::int64_t i = 0; i < count; ++i)

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

// In place of an expression: the operation is not defined for the dtype.
struct None {};
constexpr None none;

template <class T>
constexpr bool is_none = false;
template <>
constexpr bool is_none<None> = true;

// Rows of op_rows.h as functions: Function computes one element.
template <class In, class Out, class Function>
constexpr Elementwise function_of_one() {
  if constexpr (is_none<decltype(Function{}(In{}))>)
    return nullptr;
  else
    return [](const void* a, const void*, const void*, void* result, std::int64_t count) {
      map_one<In, Out>(a, result, count, [](In x) -> Out { return static_cast<Out>(Function{}(x)); });
    };
}
template <class In, class Out, class Function>
constexpr Elementwise function_of_two() {
  if constexpr (is_none<decltype(Function{}(In{}, In{}))>)
    return nullptr;
  else
    return [](const void* a, const void* b, const void*, void* result, std::int64_t count) {
      map_two<In, Out>(a, b, result, count,
                       [](In x, In y) -> Out { return static_cast<Out>(Function{}(x, y)); });
    };
}

// An operation for floats, and for int32 with bool as 0 or 1.
struct Functions {
  Elementwise of_floats, of_ints;
};

template <bool ToBool, class OfFloats, class OfInts>
constexpr Functions functions_of_one() {
  if constexpr (ToBool)
    return {function_of_one<float, Int, OfFloats>(), function_of_one<Int, Int, OfInts>()};
  else
    return {function_of_one<float, float, OfFloats>(), function_of_one<Int, Int, OfInts>()};
}
template <bool ToBool, class OfFloats, class OfInts>
constexpr Functions functions_of_two() {
  if constexpr (ToBool)
    return {function_of_two<float, Int, OfFloats>(), function_of_two<Int, Int, OfInts>()};
  else
    return {function_of_two<float, float, OfFloats>(), function_of_two<Int, Int, OfInts>()};
}

#define IMPRINT_ONE(In, expression) decltype([]([[maybe_unused]] In x) { return expression; })
#define IMPRINT_TWO(In, expression) \
  decltype([]([[maybe_unused]] In x, [[maybe_unused]] In y) { return expression; })
// The functions of two operands by name, for folds: add_of_floats, add_of_ints, ...
#define IMPRINT_BINARY(name, kind, inputs, accepted, cost, glsl, floats, ints, ...) \
  using name##_of_floats = IMPRINT_TWO(float, floats);                              \
  using name##_of_ints = IMPRINT_TWO(Int, ints);
IMPRINT_BINARY_OPS(IMPRINT_BINARY)
#undef IMPRINT_BINARY

#define IMPRINT_OF_1(name, to_bool, floats, ints, ...) \
  functions_of_one<to_bool, IMPRINT_ONE(float, floats), IMPRINT_ONE(Int, ints)>(),
#define IMPRINT_OF_2(name, to_bool, ...) functions_of_two<to_bool, name##_of_floats, name##_of_ints>(),
#define IMPRINT_ELEMENTWISE(name, kind, inputs, accepted, cost, glsl, ...) \
  IMPRINT_OF_##inputs(name, tensor::dtypes::accepted.to_bool, __VA_ARGS__)
#define IMPRINT_NO_FUNCTIONS(...) Functions{},

constexpr Functions kFunctions[] = {IMPRINT_OPS_BY_TABLE(IMPRINT_NO_FUNCTIONS, IMPRINT_ELEMENTWISE)};

#undef IMPRINT_OF_1
#undef IMPRINT_OF_2
#undef IMPRINT_ELEMENTWISE
#undef IMPRINT_NO_FUNCTIONS

template <class In, class Out, class Function>
constexpr Elementwise by(Function) {
  return function_of_one<In, Out, Function>();
}

// An element as a narrow integer keeps its low bits.
template <class In, class Number>
Elementwise cast_to_int(DType to, Number) {
  switch (to) {
    case DType::uint8:
      return by<In, Int>([](In x) { return Number{}(x)&0xff; });
    case DType::int8:
      return by<In, Int>([](In x) { return wrapped(unsigned_of(Number{}(x)) << 24) >> 24; });
    case DType::uint16:
      return by<In, Int>([](In x) { return Number{}(x)&0xffff; });
    case DType::int16:
      return by<In, Int>([](In x) { return wrapped(unsigned_of(Number{}(x)) << 16) >> 16; });
    default:
      return by<In, Int>([](In x) { return Number{}(x); });
  }
}

// ToFloat: the element as a float32.
template <class In, class ToFloat>
Elementwise cast_of(DType from, DType to, ToFloat) {
  if (from == to) return by<In, In>([](In x) { return x; });
  switch (to) {
    case DType::float32:
      return by<In, float>([](In x) { return ToFloat{}(x); });
    case DType::float16:
      return by<In, float>([](In x) { return rounded_to_half(ToFloat{}(x)); });
    case DType::bfloat16:
      return by<In, float>([](In x) { return rounded_to_bfloat16(ToFloat{}(x)); });
    case DType::boolean:
      return by<In, Int>([](In x) { return x != 0; });
    default:
      break;
  }
  if constexpr (static_cast<In>(0.5f) != 0) {  // floats
    if (to == DType::uint32) return by<float, Int>([](float x) { return truncated_unsigned(x); });
    return cast_to_int<float>(to, [](float x) { return truncated(x); });
  } else {
    return cast_to_int<Int>(to, [](Int x) { return x; });
  }
}

Elementwise cast_function(DType from, DType to) {
  if (dtype_is_float(from)) return cast_of<float>(from, to, [](float x) { return x; });
  if (from == DType::uint32)
    return cast_of<Int>(from, to, [](Int x) { return static_cast<float>(unsigned_of(x)); });
  return cast_of<Int>(from, to, [](Int x) { return static_cast<float>(x); });
}

template <class T>
void choose(const void* condition, const void* a, const void* b, void* result, std::int64_t count) {
  const Int* chosen = static_cast<const Int*>(condition);
  const T* x = static_cast<const T*>(a);
  const T* y = static_cast<const T*>(b);
  T* out = static_cast<T*>(result);
  IMPRINT_EACH_ELEMENT out[i] = chosen[i] ? x[i] : y[i];
}

void add_number(const float* x, float number, const AfterSum& after, float* result, std::int64_t count) {
  const float low = after.low, high = after.high;
  switch (after.kind) {
    case AfterSum::Kind::none:
      return map_one<float, float>(x, result, count, [=](float each) { return each + number; });
    case AfterSum::Kind::relu:
      return map_one<float, float>(x, result, count, [=](float each) {
        const float sum = each + number;
        return sum <= 0.0f ? 0.0f : sum;
      });
    case AfterSum::Kind::clamp:
      // As `larger` and `smaller` of limits that are numbers, in one instruction each.
      return map_one<float, float>(x, result, count, [=](float each) {
        const float sum = each + number, raised = low > sum ? low : sum;
        return high < raised ? high : raised;
      });
  }
}

void find_relu(const void* a, const void*, const void*, void* result, std::int64_t count) {
  map_one<float, float>(a, result, count, [](float x) { return x <= 0.0f ? 0.0f : x; });
}

Elementwise find_elementwise(Op op, DType operand, DType result) {
  if (op == Op::cast) return cast_function(operand, result);
  if (op == Op::where) return dtype_is_float(result) ? choose<float> : choose<Int>;
  const Functions& functions = kFunctions[static_cast<int>(op)];
  return operand == DType::float32 ? functions.of_floats : functions.of_ints;
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

template <class T, class Combine, class Start>
constexpr FoldRun fold_function() {
  if constexpr (is_none<decltype(Combine{}(T{}, T{}))>)
    return nullptr;
  else
    return [](const void* elements, std::int64_t count, void* accumulator) {
      fold_run<T>(elements, count, accumulator, Start{}(),
                  [](T x, T y) -> T { return static_cast<T>(Combine{}(x, y)); });
    };
}

#define IMPRINT_START(T, value) decltype([] { return static_cast<T>(value); })
#define IMPRINT_FOLD(name, kind, inputs, rule, cost, derivative, function, combination, floats, ints) \
  case Op::name:                                                                                      \
    return operand == DType::float32                                                                  \
               ? fold_function<float, combination##_of_floats, IMPRINT_START(float, floats)>()        \
               : fold_function<Int, combination##_of_ints, IMPRINT_START(Int, ints)>();

FoldRun find_fold_run(Op op, DType operand) {
  switch (op) {
    IMPRINT_FOLD_OPS(IMPRINT_FOLD)
    default:
      return nullptr;
  }
}

// ---- copies ----

typedef std::uint32_t Bits __attribute__((may_alias));

// A vector of N elements.
template <int N>
struct Some {
  typedef float Type __attribute__((vector_size(N * 4)));
};

// Whether this set has fused multiply-adds: a * b + c, rounded once.
#ifdef __FMA__
constexpr bool kFuses = true;
inline Some<4>::Type fused_add(Some<4>::Type a, Some<4>::Type b, Some<4>::Type c) {
  return _mm_fmadd_ps(a, b, c);
}
inline Some<8>::Type fused_add(Some<8>::Type a, Some<8>::Type b, Some<8>::Type c) {
  return _mm256_fmadd_ps(a, b, c);
}
#ifdef __AVX512F__
inline Some<16>::Type fused_add(Some<16>::Type a, Some<16>::Type b, Some<16>::Type c) {
  return _mm512_fmadd_ps(a, b, c);
}
#endif
#else
constexpr bool kFuses = false;
#endif
template <bool Fused, class Vector>
inline Vector add_product(Vector a, Vector b, Vector c) {
#ifdef __FMA__
  if constexpr (Fused) return fused_add(a, b, c);
#endif
  return a * b + c;
}

template <int N>
inline void copy_vector(const Bits* from, Bits* to) {
  typename Some<N>::Type value;
  __builtin_memcpy(&value, from, sizeof value);
  __builtin_memcpy(to, &value, sizeof value);
}

// Vectors of N, the last of which may copy elements again. count >= N.
template <int N>
inline void copy_vectors(const Bits* from, Bits* to, std::int64_t count) {
  for (std::int64_t i = 0; i + N < count; i += N) copy_vector<N>(from + i, to + i);
  copy_vector<N>(from + count - N, to + count - N);
}

// Rows of images are often shorter than a vector, or end inside of one.
inline void copy_row(const Bits* from, Bits* to, std::int64_t count) {
  if (count >= kLanes) return copy_vectors<kLanes>(from, to, count);
  if constexpr (kLanes > 8)
    if (count >= 8) return copy_vectors<8>(from, to, count);
  if (count >= 4) return copy_vectors<4>(from, to, count);
  for (std::int64_t i = 0; i < count; ++i) to[i] = from[i];
}

template <int N>
inline void fill_vectors(Bits value, Bits* to, std::int64_t count) {
  Bits row[N];
  for (int i = 0; i < N; ++i) row[i] = value;
  for (std::int64_t i = 0; i + N < count; i += N) copy_vector<N>(row, to + i);
  copy_vector<N>(row, to + count - N);
}

// Every second of 2 N - 1 elements.
template <int N>
inline typename Some<N>::Type every_second(const Bits* from) {
  typename Some<N>::Type low, high;  // high starts at an odd element: nothing beyond the last one is read
  __builtin_memcpy(&low, from, sizeof low);
  __builtin_memcpy(&high, from + N - 1, sizeof high);
  if constexpr (N == 16)
    return __builtin_shufflevector(low, high, 0, 2, 4, 6, 8, 10, 12, 14, 17, 19, 21, 23, 25, 27, 29, 31);
  else if constexpr (N == 8)
    return __builtin_shufflevector(low, high, 0, 2, 4, 6, 9, 11, 13, 15);
  else
    return __builtin_shufflevector(low, high, 0, 2, 5, 7);
}

template <int N>
inline void copy_every_second(const Bits* from, Bits* to, std::int64_t count) {
  const auto copy = [&](std::int64_t i) {
    const typename Some<N>::Type value = every_second<N>(from + 2 * i);
    __builtin_memcpy(to + i, &value, sizeof value);
  };
  for (std::int64_t i = 0; i + N < count; i += N) copy(i);
  copy(count - N);
}

inline void copy_run(const void* elements, std::int64_t stride, void* result, std::int64_t count) {
  const Bits* from = static_cast<const Bits*>(elements);
  Bits* to = static_cast<Bits*>(result);
  if (stride == 1) {
    copy_row(from, to, count);
  } else if (stride == 0) {
    const Bits value = *from;
    if (count >= kLanes) return fill_vectors<kLanes>(value, to, count);
    for (std::int64_t i = 0; i < count; ++i) to[i] = value;
  } else if (stride == 2 && count >= 4) {
    if (count >= kLanes) return copy_every_second<kLanes>(from, to, count);
    if constexpr (kLanes > 8)
      if (count >= 8) return copy_every_second<8>(from, to, count);
    copy_every_second<4>(from, to, count);
  } else {
    IMPRINT_EACH_ELEMENT to[i] = from[i * stride];
  }
}

void copy_all_rows(const CopyRows& c) {
  const Bits* from = static_cast<const Bits*>(c.from);
  Bits* to = static_cast<Bits*>(c.to);
  if (c.stride == 1)
    for (std::int64_t row = 0; row < c.rows; ++row)
      copy_row(from + row * c.from_row, to + row * c.to_row, c.columns);
  else
    for (std::int64_t row = 0; row < c.rows; ++row)
      copy_run(from + row * c.from_row, c.stride, to + row * c.to_row, c.columns);
}

}  // namespace
}  // namespace imprint::cpu

#include "compute/cpu/kernel_products.h"

#include "compute/cpu/kernel_patches.h"

namespace imprint::cpu {
namespace {

// ---- windows ----

enum class FoldKind { sum, weighted, largest };

template <FoldKind Kind, bool Fused, int Vectors>
inline void window_lanes(const WindowFold& w, std::int64_t i) {
  Lanes folded[Vectors];
  for (int v = 0; v < Vectors; ++v) folded[v] = Lanes{};
  if (Kind == FoldKind::largest)
    for (int v = 0; v < Vectors; ++v) folded[v] -= kInfinity;
  for (std::int64_t t = 0; t < w.terms; ++t) {
    const float* from = w.elements + w.offsets[t] + i;
    Lanes factor = Lanes{};
    if (Kind == FoldKind::weighted) factor = w.factors[t] - Lanes{};
    for (int v = 0; v < Vectors; ++v) {
      const Lanes x = load(from + v * kLanes);
      if (Kind == FoldKind::weighted)
        folded[v] = add_product<Fused>(x, factor, folded[v]);
      else if (Kind == FoldKind::sum)
        folded[v] += x;
      else
        folded[v] = ((folded[v] >= x) | (folded[v] != folded[v])) ? folded[v] : x;
    }
  }
  for (int v = 0; v < Vectors; ++v) store(w.result + i + v * kLanes, folded[v]);
}

template <FoldKind Kind, bool Fused = false>
inline void fold_windows_of(const WindowFold& w) {
  constexpr std::int64_t kWide = 4 * kLanes;
  std::int64_t i = 0;
  for (; i + kWide <= w.count; i += kWide) window_lanes<Kind, Fused, 4>(w, i);
  for (; i + kLanes <= w.count; i += kLanes) window_lanes<Kind, Fused, 1>(w, i);
  if (i == w.count) return;
  if (w.count >= kLanes) return window_lanes<Kind, Fused, 1>(w, w.count - kLanes);  // some of them again
  for (; i < w.count; ++i) {
    float folded = Kind == FoldKind::largest ? -kInfinity : 0.0f;
    for (std::int64_t t = 0; t < w.terms; ++t) {
      const float x = w.elements[w.offsets[t] + i];
      if (Kind == FoldKind::weighted)
        folded = Fused ? __builtin_fmaf(x, w.factors[t], folded) : folded + x * w.factors[t];
      else
        folded = Kind == FoldKind::sum ? folded + x : larger(folded, x);
    }
    w.result[i] = folded;
  }
}

template <FoldKind Kind, bool Fused = false>
inline void fold_rows_of(WindowFold w) {
  for (std::int64_t row = 0; row < w.rows; ++row, w.elements += w.row, w.result += w.result_row)
    fold_windows_of<Kind, Fused>(w);
}

void fold_windows(const WindowFold& w) {
  if (w.largest)
    fold_rows_of<FoldKind::largest>(w);
  else if (w.factors && kFuses && w.fuses)
    fold_rows_of<FoldKind::weighted, kFuses>(w);
  else if (w.factors)
    fold_rows_of<FoldKind::weighted>(w);
  else
    fold_rows_of<FoldKind::sum>(w);
}

}  // namespace
}  // namespace imprint::cpu

#include "compute/cpu/kernel_whole_products.h"

namespace imprint::cpu {

extern const KernelSet IMPRINT_KERNEL_SET;
static_assert(24 % kTileRows == 0);
const KernelSet IMPRINT_KERNEL_SET = {kSetName,     kFuses,        find_elementwise, find_fold_run,
                                      find_product, kTileRows,     2 * kLanes,       kConstantPanel,
                                      find_relu,    add_number,    copy_run,         copy_all_rows,
                                      fold_windows, kWholeKernels, read_patches,     write_places};

}  // namespace imprint::cpu
