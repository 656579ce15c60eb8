// Products with a constant operand of whole numbers: the bits of the float product, and its way for others.

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "compute/cpu/product_step.h"
#include "compute/cpu/step.h"
#include "compute/program/run.h"
#include "compute/tensor/composites/images.h"

namespace imprint::cpu {
namespace {

std::vector<const KernelSet*> whole_sets() {
  std::vector<const KernelSet*> sets;
#if defined(__x86_64__) && !defined(_WIN32)
  if (__builtin_cpu_supports("avx2")) sets.push_back(&kAvx2Kernels);
  if (&kernels() == &kAvx512Kernels) sets.push_back(&kAvx512Kernels);
#endif
  return sets;
}

// From -most to most.
std::vector<float> whole_numbers(std::int64_t count, int most, int seed) {
  std::vector<float> numbers;
  for (std::int64_t i = 0; i < count; ++i)
    numbers.push_back(static_cast<float>((i * 7919 + seed * 104729 + i / 13) % (2 * most + 1) - most));
  return numbers;
}

Strided matrix(std::int64_t rows, std::int64_t columns) {
  Strided out;
  out.shape = {rows, columns};
  out.strides = row_major_strides(out.shape);
  return out;
}

struct Sizes {
  std::int64_t rows, depth, columns;
};

class WholeProducts : public ::testing::TestWithParam<Sizes> {};

TEST_P(WholeProducts, HaveTheBitsOfFloatProducts) {
  const auto [rows, depth, columns] = GetParam();
  const std::vector<float> a = whole_numbers(rows * depth, 127, 1), b = whole_numbers(depth * columns, 31, 2);
  std::vector<float> scratch(kMatmulScratch);
  for (const KernelSet* set : whole_sets()) {
    for (const bool left : {false, true}) {
      const Strided constant = left ? matrix(rows, depth) : matrix(depth, columns);
      const auto whole = whole_operand(left ? a.data() : b.data(), constant, left, *set);
      ASSERT_TRUE(whole) << set->name;
      EXPECT_EQ(whole->left, left);
      std::vector<float> found(static_cast<std::size_t>(rows * columns), -1), expected = found;
      Matmul m{.a = a.data(),
               .b = b.data(),
               .c = expected.data(),
               .rows = rows,
               .depth = depth,
               .columns = columns,
               .a_row = depth,
               .a_depth = 1,
               .b_depth = columns,
               .b_column = 1,
               .c_row = columns,
               .scratch = scratch.data()};
      set->matmul(m);
      m.c = found.data();
      EXPECT_TRUE(whole_product(*whole, m, 0, 0, set->whole)) << set->name;
      EXPECT_EQ(found, expected) << set->name << ", left " << left;
      // One number of the other operand that is not whole, or too large.
      for (const float odd : {0.5f, 40000.0f, std::numeric_limits<float>::quiet_NaN()}) {
        std::vector<float> other = left ? b : a;
        other.back() = odd;
        (left ? m.b : m.a) = other.data();
        EXPECT_FALSE(whole_product(*whole, m, 0, 0, set->whole)) << odd;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, WholeProducts,
                         ::testing::Values(Sizes{1, 16, 1}, Sizes{3, 17, 31}, Sizes{8, 64, 32},
                                           Sizes{17, 333, 70}, Sizes{130, 1025, 33}));

TEST(WholeProductsOfConstants, OthersAreLeftToFloatProducts) {
  std::vector<float> numbers = whole_numbers(64 * 4, 100, 3);
  const Strided constant = matrix(64, 4);
  for (const KernelSet* set : whole_sets()) {
    EXPECT_TRUE(whole_operand(numbers.data(), constant, false, *set));
    EXPECT_FALSE(whole_operand(numbers.data(), matrix(8, 32), false, *set)) << "few terms";
    std::vector<float> fraction = numbers, large = numbers;
    fraction[17] = 0.25f;
    large[17] = 140000;  // 128 times it is above 2^24
    EXPECT_FALSE(whole_operand(fraction.data(), constant, false, *set));
    EXPECT_FALSE(whole_operand(large.data(), constant, false, *set));
  }
  EXPECT_FALSE(whole_operand(numbers.data(), constant, false, kBaselineKernels));
}

// Through programs: results do not tell which way was taken.
TEST(WholeProductsOfConstants, ProgramsTakeBothWays) {
  const auto runtime = Runtime::create_on_cpu();
  Session session(*runtime);
  const Tensor weights = Tensor::from(whole_numbers(40 * 70, 127, 4), {40, 70});
  const Tensor kernel = Tensor::from(whole_numbers(8 * 4 * 9, 127, 5), {8, 4, 3, 3});
  for (const float step : {1.0f, 0.125f}) {  // sums of eighths are exact too
    const std::vector<float> x = whole_numbers(30 * 40, 100, 6),
                             image = whole_numbers(2 * 4 * 12 * 12, 100, 7);
    const Tensor rows = Tensor::from(x, {30, 40}) * step,
                 picture = Tensor::from(image, {2, 4, 12, 12}) * step;
    const Tensor results[] = {matmul(rows, weights), convolution(picture, kernel, Tensor(), {})};
    const auto found = session.evaluate(results);
    ASSERT_TRUE(found.ok()) << found.error().message;
    const std::vector<float> w = whole_numbers(40 * 70, 127, 4), k = whole_numbers(8 * 4 * 9, 127, 5);
    for (std::size_t row = 0; row < 30; ++row)
      for (std::size_t column = 0; column < 70; ++column) {
        double sum = 0;
        for (std::size_t i = 0; i < 40; ++i)
          sum += static_cast<double>(x[row * 40 + i]) * static_cast<double>(w[i * 70 + column]);
        ASSERT_EQ((*found)[0].floats[row * 70 + column], static_cast<float>(sum * static_cast<double>(step)));
      }
    for (std::size_t n = 0; n < 2; ++n)
      for (std::size_t out = 0; out < 8; ++out)
        for (std::size_t at = 0; at < 100; ++at) {
          double sum = 0;
          for (std::size_t c = 0; c < 4; ++c)
            for (std::size_t tap = 0; tap < 9; ++tap)
              sum += static_cast<double>(
                         image[((n * 4 + c) * 12 + at / 10 + tap / 3) * 12 + at % 10 + tap % 3]) *
                     static_cast<double>(k[(out * 4 + c) * 9 + tap]);
          ASSERT_EQ((*found)[1].floats[(n * 8 + out) * 100 + at],
                    static_cast<float>(sum * static_cast<double>(step)));
        }
  }
}

}  // namespace
}  // namespace imprint::cpu
