// The CPU kernels: equal bits from every instruction set, and correct results where functions are hard.

#include "compute/base/text.h"
#include "compute/cpu/kernels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "compute/base/at.h"
#include "compute/base/philox.h"
#include "compute/cpu/patch_product.h"
#include "compute/cpu/product_step.h"

namespace imprint::cpu {

using namespace tensor;

namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

// fuses: those that have fused multiply-adds; without any, all.
std::vector<const KernelSet*> sets_of_this_cpu(bool fuses = false) {
  std::vector<const KernelSet*> sets{&kBaselineKernels};
#if defined(__x86_64__) && !defined(_WIN32)
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) sets.push_back(&kAvx2Kernels);
  if (&kernels() == &kAvx512Kernels) sets.push_back(&kAvx512Kernels);
#elif defined(__aarch64__)
  sets.push_back(&kNeonKernels);
#endif
  if (fuses && sets.back()->fuses) std::erase_if(sets, [](const KernelSet* set) { return !set->fuses; });
  return sets;
}

// All kinds of bit patterns: small and large numbers, subnormals, infinities and NaN.
std::vector<float> floats_of_all_kinds(std::uint32_t stream) {
  std::vector<float> values{0.0f,    -0.0f,   1.0f, -1.0f, kInf,    -kInf,         kNaN, 1e-45f,
                            -1e-40f, 3.4e38f, 0.5f, 88.8f, -103.9f, 2147483648.0f, 1e9f};
  for (std::uint32_t i = 0; i < 1009; ++i) {
    const std::uint32_t bits = philox({i, stream, 0, 0}, {5, 7})[0];
    float value;
    std::memcpy(&value, &bits, 4);
    values.push_back(i % 3 == 0 ? value : 8.0f * static_cast<float>(uniform_of(bits)) - 4.0f);
  }
  return values;
}

std::vector<std::uint32_t> bits_of(const void* values, std::size_t count) {
  std::vector<std::uint32_t> bits(count);
  std::memcpy(bits.data(), values, count * 4);
  return bits;
}

// All NaNs are equal, whatever their bits.
std::vector<std::uint32_t> normalised(std::vector<std::uint32_t> bits) {
  for (std::uint32_t& word : bits)
    if ((word & 0x7fffffffu) > 0x7f800000u) word = 0x7fc00000u;
  return bits;
}

TEST(CpuKernels, EveryInstructionSetGivesTheSameBits) {
  const std::vector<float> a = floats_of_all_kinds(1), b = floats_of_all_kinds(2);
  std::vector<std::int32_t> ints, chosen;
  for (std::size_t i = 0; i < a.size(); ++i) {
    ints.push_back(static_cast<std::int32_t>(philox({static_cast<std::uint32_t>(i), 3, 0, 0}, {5, 7})[0]));
    chosen.push_back(static_cast<std::int32_t>(i % 2));
  }
  int compared = 0;
  for (int code = 0; code <= static_cast<int>(Op::where); ++code) {
    const Op op = static_cast<Op>(code);
    if (op_info(op).kind != OpKind::elementwise || op == Op::stop_gradient) continue;
    for (const DType dtype : {DType::float32, DType::int32}) {
      const void* first = op == Op::where           ? static_cast<const void*>(chosen.data())
                          : dtype == DType::float32 ? static_cast<const void*>(a.data())
                                                    : ints.data();
      const void* second = dtype == DType::float32 ? static_cast<const void*>(b.data()) : ints.data();
      std::vector<std::uint32_t> expected;
      for (const KernelSet* set : sets_of_this_cpu()) {
        const Elementwise function = set->elementwise(op, dtype, dtype);
        ASSERT_EQ(function == nullptr, kBaselineKernels.elementwise(op, dtype, dtype) == nullptr);
        if (!function) continue;
        std::vector<std::uint32_t> result(a.size());
        function(first, second, second, result.data(), static_cast<std::int64_t>(a.size()));
        result = normalised(result);
        if (expected.empty()) expected = result;
        EXPECT_EQ(result, expected) << op_info(op).name << " of " << dtype_name(dtype) << ", " << set->name;
        ++compared;
      }
    }
  }
  EXPECT_GT(compared, 70);
#define IMPRINT_FOLD(name, ...) Op::name,
  for (const Op op : {IMPRINT_FOLD_OPS(IMPRINT_FOLD)}) {
#undef IMPRINT_FOLD
    if (!kBaselineKernels.fold_run(op, DType::float32)) continue;
    for (const std::int64_t count : {0, 1, 15, 16, 17, 1000}) {
      std::vector<float> found;
      for (const KernelSet* set : sets_of_this_cpu()) {
        float total = 0.25f;
        set->fold_run(op, DType::float32)(a.data() + 15, count, &total);
        found.push_back(total);
      }
      for (const float value : found)
        EXPECT_EQ(normalised(bits_of(&value, 1)), normalised(bits_of(&found[0], 1)))
            << op_info(op).name << " of " << count;
    }
  }
}

// Sums between bounds have the bits of the operations one by one, for NaN and zeros of both signs too.
TEST(CpuKernels, SumsBetweenBoundsAreThoseOfMinimumAndMaximum) {
  std::vector<float> sums = floats_of_all_kinds(4);
  sums.insert(sums.end(), {0.0f, -0.0f, 6.0f, -6.0f});
  const auto count = static_cast<std::int64_t>(sums.size());
  const auto apply = [&](Op op, std::vector<float>& values, float number) {
    const std::vector<float> numbers(values.size(), number);
    kBaselineKernels.elementwise(op, DType::float32, DType::float32)(values.data(), numbers.data(), nullptr,
                                                                     values.data(), count);
  };
  for (const auto& [low, high] : {std::pair{0.0f, 6.0f}, {-0.0f, 0.0f}, {-6.0f, 0.0f}, {2.0f, 1.0f}})
    for (const float number : {0.0f, -0.0f, 0.5f}) {
      std::vector<float> expected = sums;
      apply(Op::add, expected, number);
      apply(Op::maximum, expected, low);
      apply(Op::minimum, expected, high);
      for (const KernelSet* set : sets_of_this_cpu()) {
        std::vector<float> result(sums.size());
        set->add_number(sums.data(), number, {AfterSum::Kind::clamp, low, high}, result.data(), count);
        EXPECT_EQ(normalised(bits_of(result.data(), result.size())),
                  normalised(bits_of(expected.data(), expected.size())))
            << set->name << " between " << low << " and " << high;
      }
    }
}

TEST(CpuKernels, WindowsAreTheSameBits) {
  const std::vector<float> image = floats_of_all_kinds(3), factors{0.5f, -2.0f, 0.25f, 3.0f};
  const std::vector<std::int64_t> offsets{0, 1, 17, 18};
  struct Kind {
    bool largest, weighted, fuses;
  };
  for (const auto& [largest, weighted, fuses] :
       {Kind{false, false, false}, {true, false, false}, {false, true, false}, {false, true, true}})
    for (const std::int64_t count : {1, 3, 4, 15, 16, 17, 63, 64, 65, 900}) {
      std::vector<std::vector<std::uint32_t>> found;
      for (const KernelSet* set : sets_of_this_cpu(fuses)) {
        std::vector<float> result(static_cast<std::size_t>(count) + 1, 7.0f);
        set->window_fold({.elements = image.data(),
                          .offsets = offsets.data(),
                          .factors = weighted ? factors.data() : nullptr,
                          .terms = 4,
                          .result = result.data(),
                          .count = count,
                          .largest = largest,
                          .fuses = fuses});
        EXPECT_EQ(result.back(), 7.0f) << "beyond the end";
        found.push_back(normalised(bits_of(result.data(), result.size())));
      }
      for (const auto& bits : found) EXPECT_EQ(bits, found[0]) << count << (largest ? " largest" : "");
    }
}

TEST(CpuKernels, ProductsOfEveryShapeAreTheSameBitsAndRight) {
  std::vector<float> a(70 * 600), b(600 * 70);
  for (std::size_t i = 0; i < a.size(); ++i)
    a[i] = static_cast<float>(static_cast<int>(i * 7919 % 2003) - 1001) / 1001.0f;
  for (std::size_t i = 0; i < b.size(); ++i)
    b[i] = static_cast<float>(static_cast<int>(i * 104729 % 1999) - 999) / 999.0f;
  std::vector<float> scratch(kMatmulScratch);
  for (const std::int64_t rows : {1, 2, 5, 8, 70})
    for (const std::int64_t depth : {0, 1, 33, 600})
      for (const std::int64_t columns : {1, 3, 16, 33, 70})
        for (const auto& [transposed, fuses] :
             {std::pair{false, false}, {true, false}, {false, true}, {true, true}}) {
          std::vector<std::vector<float>> found;
          for (const KernelSet* set : sets_of_this_cpu(fuses)) {
            std::vector<float> c(static_cast<std::size_t>(rows * columns), kNaN);
            // a by columns and b by rows, or the other way around.
            set->matmul({.a = a.data(),
                         .b = b.data(),
                         .c = c.data(),
                         .rows = rows,
                         .depth = depth,
                         .columns = columns,
                         .a_row = transposed ? 1 : 600,
                         .a_depth = transposed ? 70 : 1,
                         .b_depth = transposed ? 1 : 70,
                         .b_column = transposed ? 600 : 1,
                         .c_row = columns,
                         .scratch = scratch.data(),
                         .fuses = fuses});
            found.push_back(c);
          }
          SCOPED_TRACE(text(rows, "x", depth, "x", columns, (transposed ? " transposed" : "")));
          for (const std::vector<float>& c : found) ASSERT_EQ(c, found[0]);
          for (std::int64_t row = 0; row < rows; ++row)
            for (std::int64_t column = 0; column < columns; ++column) {
              double sum = 0;
              for (std::int64_t k = 0; k < depth; ++k)
                sum += static_cast<double>(
                           a[static_cast<std::size_t>(transposed ? row + k * 70 : row * 600 + k)]) *
                       static_cast<double>(
                           b[static_cast<std::size_t>(transposed ? k + column * 600 : k * 70 + column)]);
              ASSERT_NEAR(found[0][static_cast<std::size_t>(row * columns + column)], sum, 1e-4);
            }
        }
}

// Panels of far rows are copied many at a time, those of a transposed matrix in squares; what is left of the
// columns is a panel of one vector or half of one.
TEST(CpuKernels, ProductsOfEveryLayoutAreTheSameBits) {
  constexpr std::int64_t kRows = 67, kDepth = 603, kFar = 1024;
  std::vector<float> scratch(kMatmulScratch), a(at(kRows * kDepth));
  for (std::size_t i = 0; i < a.size(); ++i)
    a[i] = static_cast<float>(static_cast<int>(i * 7919 % 2003) - 1001) / 1001.0f;
  for (const auto& [columns, fuses] : {std::pair{200, false}, {209, true}, {217, true}, {230, false}}) {
    std::vector<std::vector<float>> found;
    for (const KernelSet* set : sets_of_this_cpu(fuses))
      for (const auto& [row, column] : {std::pair{std::int64_t{columns}, std::int64_t{1}},
                                        {kFar, std::int64_t{1}},
                                        {std::int64_t{1}, kDepth}}) {
        std::vector<float> b(at(kDepth * kFar)), c(at(kRows * columns), kNaN);
        for (std::int64_t k = 0; k < kDepth; ++k)
          for (std::int64_t n = 0; n < columns; ++n)
            b[at(k * row + n * column)] = static_cast<float>((n * 7907 + k * 1009) % 1999 - 999) / 999.0f;
        set->matmul({.a = a.data(),
                     .b = b.data(),
                     .c = c.data(),
                     .rows = kRows,
                     .depth = kDepth,
                     .columns = columns,
                     .a_row = kDepth,
                     .a_depth = 1,
                     .b_depth = row,
                     .b_column = column,
                     .c_row = columns,
                     .scratch = scratch.data(),
                     .fuses = fuses});
        found.push_back(std::move(c));
      }
    for (const std::vector<float>& c : found) EXPECT_EQ(c, found[0]) << columns;
  }
}

struct Function {
  Op op;
  double (*oracle)(double);
  double low, high;        // of the arguments
  double relative = 3e-7;  // error
};

// A convolution of 3 x 3, [rows, 9 channels] x windows of [channels, height + 2, width + 2], computed in
// parts.
struct PatchCase {
  std::int64_t rows, channels, height, width;
  std::vector<float> weights = numbers(rows * 9 * channels, 3),
                     image = numbers(channels * (height + 2) * (width + 2), 5);

  static std::vector<float> numbers(std::int64_t count, std::uint32_t stream) {
    std::vector<float> values;
    for (std::int64_t i = 0; i < count; ++i)
      values.push_back(2 * uniform_of(philox({static_cast<std::uint32_t>(i), stream, 0, 0}, {1, 2})[0]) - 1);
    return values;
  }
  Strided left() const { return {0, 0, Shape{rows, 9 * channels}, {9 * channels, 1}}; }
  WindowMatrix windows() const {
    const std::int64_t pitch = width + 2, plane = pitch * (height + 2);
    WindowMatrix made{.depth = 9 * channels, .columns = height * width, .run = width};
    for (std::int64_t k = 0; k < made.depth; ++k)
      made.rows.push_back(k % channels * plane + k / channels / 3 * pitch + k / channels % 3);
    for (std::int64_t y = 0; y < height; ++y) made.runs.push_back(y * pitch);
    return made;
  }
  std::vector<float> found(const KernelSet& set, bool by_rows) const {
    const auto operand = PatchOperand::make(weights.data(), left(), windows(), set);
    std::vector<float> c(at(rows * height * width), kNaN),
        scratch(operand ? at(operand->scratch()) : 0, kNaN);
    if (!operand) return c;
    const std::int64_t step = by_rows ? operand->tile_rows() : rows,
                       few = by_rows ? operand->piece() : operand->unit();
    for (std::int64_t row = 0; row < rows; row += step)
      for (std::int64_t column = 0; column < height * width; column += few)
        operand->compute(image.data(), {row, std::min(row + step, rows)},
                         {column, std::min(column + few, height * width)},
                         c.data() + row * height * width + column, height * width, scratch.data(), set);
    return c;
  }
  double expected(std::int64_t row, std::int64_t column) const {
    const WindowMatrix of = windows();
    double sum = 0;
    for (std::int64_t k = 0; k < of.depth; ++k)
      sum += static_cast<double>(weights[at(row * of.depth + k)]) *
             image[at(of.rows[at(k)] + of.runs[at(column / width)] + column % width)];
    return sum;
  }
};

TEST(CpuKernels, PatchesAreTheSameBitsAndRight) {
  for (const PatchCase& one : {PatchCase{64, 16, 12, 12}, PatchCase{50, 21, 13, 11},
                               PatchCase{24, 130, 7, 45}, PatchCase{17, 61, 57, 58}}) {
    const std::vector<float> first = one.found(*sets_of_this_cpu(true)[0], false);
    for (const KernelSet* set : sets_of_this_cpu(true))
      for (const bool by_rows : {false, true})
        EXPECT_EQ(bits_of(first.data(), first.size()), bits_of(one.found(*set, by_rows).data(), first.size()))
            << set->name << " " << one.height << " x " << one.width;
    for (std::size_t i = 0; i < first.size(); i += 13) {
      const auto places = static_cast<std::size_t>(one.height * one.width);
      ASSERT_NEAR(first[i],
                  one.expected(static_cast<std::int64_t>(i / places), static_cast<std::int64_t>(i % places)),
                  2e-5)
          << one.height << " x " << one.width << " at " << i;
    }
  }
}

// Windows with another stride, small images and few channels are plain products.
TEST(CpuKernels, PatchesAreOfWindowsOfThree) {
  const PatchCase one{64, 16, 12, 12};
  const auto is_made = [&](const Strided& left, const WindowMatrix& windows) {
    return PatchOperand::make(one.weights.data(), left, windows, kBaselineKernels) != nullptr;
  };
  EXPECT_TRUE(is_made(one.left(), one.windows()));
  WindowMatrix strided = one.windows(), moved = one.windows();
  strided.column = 2;
  moved.rows.back() += 1;
  EXPECT_FALSE(is_made(one.left(), strided));
  EXPECT_FALSE(is_made(one.left(), moved));
  for (const PatchCase& other : {PatchCase{128, 8, 12, 12}, PatchCase{8, 128, 12, 12},
                                 PatchCase{16, 32, 12, 12}, PatchCase{64, 16, 4, 4}})
    EXPECT_FALSE(is_made(other.left(), other.windows()));
}

TEST(CpuKernels, FunctionsAreRightOverTheirRange) {
  const Function functions[] = {{Op::exp, std::exp, -87, 88},
                                {Op::log, std::log, 1e-30, 1e30},
                                {Op::log, std::log, 0.5, 2},
                                {Op::expm1, std::expm1, -5, 20},
                                {Op::log1p, std::log1p, -0.9, 50},
                                {Op::sin, std::sin, -1e5, 1e5},
                                {Op::cos, std::cos, -1e5, 1e5},
                                {Op::tan, std::tan, -1e3, 1e3, 5e-7},
                                {Op::asin, std::asin, -1, 1, 5e-7},
                                {Op::acos, std::acos, -1, 1, 5e-7},
                                {Op::atan, std::atan, -1e3, 1e3},
                                {Op::sinh, std::sinh, -20, 20, 1e-6},
                                {Op::cosh, std::cosh, -20, 20, 1e-6},
                                {Op::tanh, std::tanh, -12, 12, 1e-6},
                                {Op::asinh, std::asinh, -1e3, 1e3, 1e-6},
                                {Op::acosh, std::acosh, 1.01, 1e3, 1e-6},
                                {Op::erf, std::erf, -4, 4, 1e-6}};
  for (const Function& function : functions)
    for (int i = 0; i < 2000; ++i) {
      const float x =
          static_cast<float>(function.low + (function.high - function.low) *
                                                philox_uniform(static_cast<std::uint32_t>(i), 0, 0, 1, 2));
      float found;
      kernels().elementwise(function.op, DType::float32, DType::float32)(&x, nullptr, nullptr, &found, 1);
      const double expected = function.oracle(static_cast<double>(x));
      ASSERT_NEAR(found, expected, function.relative * std::abs(expected) + 1e-9)
          << op_info(function.op).name << "(" << x << ")";
    }
}

TEST(CpuKernels, FunctionsEndWhereNumbersDo) {
  struct Case {
    Op op;
    float x, expected;
  };
  const Case cases[] = {
      {Op::exp, 89, kInf},        {Op::exp, kInf, kInf},          {Op::exp, -kInf, 0},
      {Op::exp, -104, 0},         {Op::exp, -100, 3.783506e-44f}, {Op::log, 0, -kInf},
      {Op::log, -1, kNaN},        {Op::log, kInf, kInf},          {Op::log, 1e-45f, -103.278929f},
      {Op::tanh, kInf, 1},        {Op::tanh, -kInf, -1},          {Op::sigmoid, -kInf, 0},
      {Op::sigmoid, kInf, 1},     {Op::atan, kInf, 1.5707963f},   {Op::acos, 1, 0},
      {Op::acos, -1, 3.1415927f}, {Op::asin, 1, 1.5707963f},      {Op::acos, 1.5f, kNaN},
      {Op::sin, kInf, kNaN},      {Op::expm1, -kInf, -1},         {Op::log1p, -1, -kInf},
      {Op::sinh, 1e3f, kInf},     {Op::cosh, -1e3f, kInf},        {Op::erf, kInf, 1},
      {Op::erf, -kInf, -1},       {Op::round, 2.5f, 2},           {Op::round, -0.5f, 0},
      {Op::floor, -0.5f, -1}};
  for (const Case& one : cases) {
    float found;
    kernels().elementwise(one.op, DType::float32, DType::float32)(&one.x, nullptr, nullptr, &found, 1);
    if (std::isnan(one.expected))
      EXPECT_TRUE(std::isnan(found)) << op_info(one.op).name << "(" << one.x << ") is " << found;
    else if (std::isinf(one.expected))
      EXPECT_EQ(found, one.expected) << op_info(one.op).name << "(" << one.x << ")";
    else
      EXPECT_NEAR(found, one.expected, 3e-7 * std::abs(one.expected) + 1e-45)
          << op_info(one.op).name << "(" << one.x << ")";
    float nothing;
    kernels().elementwise(one.op, DType::float32, DType::float32)(&kNaN, nullptr, nullptr, &nothing, 1);
    EXPECT_TRUE(std::isnan(nothing)) << op_info(one.op).name << " of NaN is " << nothing;
  }
}

}  // namespace
}  // namespace imprint::cpu
