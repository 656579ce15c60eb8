// Products of 8-bit numbers with constant weights: exact sums beyond 2^24, whatever kernel a device takes.

#include "compute/tensor/ops/whole_product.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "compute/base/text.h"
#include "compute/program/schedule_figures.h"
#include "compute/tensor/composites/images.h"
#include "tests/gpu/session_test.h"

namespace imprint {
namespace {

using tensor::padded_terms;
using tensor::WholeProduct;
using tensor::WholeWindow;

std::vector<int> whole_numbers(std::int64_t count, int low, int high, int seed) {
  std::vector<int> numbers;
  for (std::int64_t i = 0; i < count; ++i)
    numbers.push_back(low + static_cast<int>((i * 7919 + seed * 104729 + i / 7) % (high - low + 1)));
  return numbers;
}

std::vector<float> as_floats(const std::vector<int>& numbers) { return {numbers.begin(), numbers.end()}; }

// Runs of `run` weights, zeros after each.
SharedBytes packed(const std::vector<int>& weights, std::int64_t run) {
  const std::size_t own = static_cast<std::size_t>(run), wide = static_cast<std::size_t>(padded_terms(run));
  std::vector<std::byte> bytes(weights.size() / own * wide);
  for (std::size_t i = 0; i < weights.size(); ++i)
    bytes[i / own * wide + i % own] = static_cast<std::byte>(weights[i]);
  return SharedBytes(std::move(bytes));
}

// The first sum that differs.
std::string difference(const HostTensor& found, const std::vector<std::int64_t>& expected) {
  const bool is_float = !found.floats.empty();
  if ((is_float ? found.floats.size() : found.ints.size()) != expected.size()) return "another size";
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const bool same = is_float ? found.floats[i] == static_cast<float>(expected[i])
                               : found.ints[i] == static_cast<std::int32_t>(expected[i]);
    if (!same)
      return text("sum ", i, ": found ", is_float ? found.floats[i] : static_cast<float>(found.ints[i]),
                  ", expected ", expected[i]);
  }
  return {};
}

// Dispatches, and how many of them multiply packed numbers. Those that follow a product are part of its
// kernel.
struct Dispatches {
  std::size_t all = 0, packed = 0;
  std::string kernels;  // of all
};

Dispatches dispatches_of(const Program& program) {
  Dispatches found;
  for (const ScheduleFigures& part : program.schedule())
    for (const DispatchFigures& dispatch : part.dispatches) {
      ++found.all;
      for (const KernelFigures& kernel : dispatch.kernels)
        found.kernels += kernel.kind + ": " + kernel.text + "\n";
      found.packed += dispatch.glsl.find("imp_dot(") != std::string::npos ? 1 : 0;
    }
  return found;
}

bool schedules_as_gpu() { return std::getenv("IMPRINT_TEST_SCHEDULE_AS_GPU") != nullptr; }

struct Product {
  std::int64_t rows, terms, columns;
  int low;
  bool has_zero;
  DType sums;
  std::size_t dispatches = 0;  // on a GPU, of those in int8
};

class WholeMatmul : public test::SessionTest, public testing::WithParamInterface<Product> {};

TEST_P(WholeMatmul, IsExact) {
  const auto [rows, terms, columns, low, has_zero, sums, dispatches] = GetParam();
  std::vector<int> x = whole_numbers(rows * terms, low, low + 255, 1),
                   weights = whole_numbers(columns * terms, -128, 127, 2);
  for (std::size_t k = 0; k < static_cast<std::size_t>(terms); ++k) {  // the largest sum of all
    x[k] = low + 255;
    weights[k] = 127;
  }
  const int zero = has_zero ? low + 117 : 0;
  std::vector<std::int64_t> expected;
  for (std::int64_t row = 0; row < rows; ++row)
    for (std::int64_t column = 0; column < columns; ++column) {
      std::int64_t sum = 0;
      for (std::int64_t k = 0; k < terms; ++k)
        sum += std::int64_t{x[static_cast<std::size_t>(row * terms + k)] - zero} *
               weights[static_cast<std::size_t>(column * terms + k)];
      expected.push_back(sum);
    }
  const Tensor numbers = input("numbers", {rows, terms}), point = input("zero", {});
  const Tensor wide = Tensor::from(as_floats(weights), {columns, terms});
  const Tensor product = tensor::whole_matmul(
      {.numbers = numbers,
       .zero = has_zero ? point : Tensor(),
       .low = low,
       .weights = packed(weights, terms),
       .columns = columns,
       .sums = sums,
       .in_float = [=](const Tensor& centred) {  // parts that float32 has exactly
         Tensor sum;
         for (std::int64_t from = 0; from < terms; from += 256) {
           const std::int64_t count = std::min<std::int64_t>(256, terms - from);
           const Tensor part =
               cast(matmul(narrow(centred, 1, from, count), transpose(narrow(wide, 1, from, count))),
                    DType::int32);
           sum = from == 0 ? part : sum + part;
         }
         return cast(sum, sums);
       }});
  Program program =
      compile(ProgramDescription{.name = "whole",
                                 .inputs = {numbers, point},
                                 .outputs = {product, cast(product, DType::float32) * 0.5f + 1.0f}});
  if (schedules_as_gpu()) {
    EXPECT_EQ(dispatches_of(program).packed, dispatches > 0 ? 1u : 0u);
    if (dispatches > 0) EXPECT_EQ(dispatches_of(program).all, dispatches) << dispatches_of(program).kernels;
  }
  const auto found =
      session().run(program, std::vector<HostTensor>{HostTensor::from(as_floats(x), {rows, terms}),
                                                     HostTensor::from({static_cast<float>(zero)}, {})});
  ASSERT_TRUE(found.ok()) << found.error().message;
  EXPECT_EQ(difference((*found)[0], expected), "");
  for (std::size_t i = 0; i < expected.size(); ++i)
    ASSERT_EQ((*found)[1].floats[i], static_cast<float>(expected[i]) * 0.5f + 1.0f) << i;
}

INSTANTIATE_TEST_SUITE_P(Forms, WholeMatmul,
                         testing::Values(Product{1, 1024, 300, 0, true, DType::int32, 1},
                                         Product{1, 333, 5, -128, false, DType::float32},
                                         Product{6, 4112, 130, 0, true, DType::float32, 1},
                                         Product{16, 270, 1000, -128, true, DType::int32, 1},
                                         Product{33, 1040, 70, 0, true, DType::int32},
                                         Product{1030, 1037, 130, -128, false, DType::float32, 2},
                                         Product{700, 180, 1100, 0, true, DType::int32, 2}));

struct Window {
  std::int64_t images, channels, height, width, out;
  WholeWindow::Along y, x;
  bool packed = false;
};

class WholeConvolution : public test::SessionTest, public testing::WithParamInterface<Window> {};

// Padding is the zero point.
TEST_P(WholeConvolution, IsExact) {
  const auto [images, channels, height, width, out, y, x, is_packed] = GetParam();
  constexpr int kZero = 117;
  const std::int64_t taps = y.size * x.size, rows = y.places(height), places = x.places(width);
  const std::vector<int> image = whole_numbers(images * channels * height * width, 0, 255, 3),
                         kernel =
                             whole_numbers(out * taps * channels, -128, 127, 4);  // [out, taps, channels]
  std::vector<std::int64_t> expected;
  for (std::int64_t n = 0; n < images; ++n)
    for (std::int64_t o = 0; o < out; ++o)
      for (std::int64_t i = 0; i < rows * places; ++i) {
        std::int64_t sum = 0;
        for (std::int64_t tap = 0; tap < taps; ++tap) {
          const std::int64_t from_y = i / places * y.stride - y.before + tap / x.size * y.dilation,
                             from_x = i % places * x.stride - x.before + tap % x.size * x.dilation;
          if (from_y < 0 || from_y >= height || from_x < 0 || from_x >= width) continue;
          for (std::int64_t c = 0; c < channels; ++c)
            sum +=
                std::int64_t{
                    image[static_cast<std::size_t>(((n * channels + c) * height + from_y) * width + from_x)] -
                    kZero} *
                kernel[static_cast<std::size_t>((o * taps + tap) * channels + c)];
        }
        expected.push_back(sum);
      }
  const Tensor numbers = input("numbers", {images, channels, height, width}), point = input("zero", {});
  const Tensor floats = movedim(Tensor::from(as_floats(kernel), {out, y.size, x.size, channels}), 3, 1);
  const Tensor product = tensor::whole_convolution(
      {.numbers = numbers,
       .zero = point,
       .low = 0,
       .weights = packed(kernel, channels),
       .columns = out,
       .sums = DType::int32,
       .in_float =
           [=](const Tensor& centred) {
             const std::vector<std::pair<std::int64_t, std::int64_t>> pads{
                 {0, 0}, {0, 0}, {y.before, y.after}, {x.before, x.after}};
             return cast(convolution(pad(centred, pads), floats, Tensor(),
                                     {.stride = {y.stride, x.stride}, .dilation = {y.dilation, x.dilation}}),
                         DType::int32);
           }},
      {y, x});
  Program program =
      compile(ProgramDescription{.name = "whole", .inputs = {numbers, point}, .outputs = {product}});
  if (schedules_as_gpu()) EXPECT_EQ(dispatches_of(program).packed, is_packed ? 1u : 0u);
  const auto found =
      session().run(program, std::vector<HostTensor>{HostTensor::from(as_floats(image), numbers.shape()),
                                                     HostTensor::from({float{kZero}}, {})});
  ASSERT_TRUE(found.ok()) << found.error().message;
  EXPECT_EQ(difference((*found)[0], expected), "");
}

INSTANTIATE_TEST_SUITE_P(Forms, WholeConvolution,
                         testing::Values(Window{1, 64, 9, 7, 40, {3, 1, 1, 1, 1}, {3, 1, 1, 1, 1}},
                                         Window{1, 128, 33, 35, 110, {3, 1, 1, 1, 1}, {3, 1, 1, 1, 1}, true},
                                         Window{2, 40, 61, 91, 90, {3, 2, 1, 1, 0}, {2, 1, 2, 0, 2}, true}));

}  // namespace
}  // namespace imprint
