// Pools and depthwise convolutions of the CPU, which run over whole images.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "compute/program/run.h"
#include "compute/tensor/composites/composites.h"
#include "compute/tensor/composites/images.h"
#include "tests/reference/interpreter.h"

namespace imprint::cpu {

using namespace tensor;

namespace {

constexpr std::int64_t kBatch = 2, kChannels = 3;

std::vector<float> noise(std::int64_t count, std::uint32_t seed) {
  std::vector<float> values;
  for (std::int64_t i = 0; i < count; ++i)
    values.push_back(std::sin(static_cast<float>(i * 37 % 1009) + 0.3f * static_cast<float>(seed)));
  return values;
}

void expect_as_oracle(const Tensor& x, const std::vector<float>& values, const std::vector<Tensor>& results,
                      const std::string& place) {
  const auto runtime = Runtime::create_on_cpu();
  Session session(*runtime);
  auto program = Program::compile(*runtime, {.name = "windows", .inputs = {x}, .outputs = results});
  ASSERT_TRUE(program.ok()) << place << program.error().message;
  const HostTensor given = HostTensor::from(values, x.shape());
  const auto found = session.run(*program, std::vector{given});
  ASSERT_TRUE(found.ok()) << place << found.error().message;
  const auto expected = reference::evaluate_all(results, {{"x", {values.begin(), values.end()}}});
  for (std::size_t r = 0; r < results.size(); ++r) {
    ASSERT_EQ((*found)[r].floats.size(), expected[r].size()) << place;
    for (std::size_t i = 0; i < expected[r].size(); ++i)
      ASSERT_NEAR((*found)[r].floats[i], expected[r][i], 2e-6) << place << " result " << r << " at " << i;
  }
}

void expect_windows(std::int64_t height, std::int64_t width, std::int64_t stride, std::int64_t dilation,
                    std::int64_t padding) {
  const Tensor x = input("x", {kBatch, kChannels, height, width});
  const PerAxis strides{stride, 4 - stride, 1}, dilations{dilation, 1, 1}, pads{padding, padding, 0};
  const PoolOptions pool{.size = {2, 3, 1}, .stride = strides, .padding = pads, .dilation = dilations};
  const Tensor weight = Tensor::from(noise(kChannels * 9, 5), {kChannels, 1, 3, 3});
  const Tensor depthwise = convolution(
      x, weight, Tensor(), {.stride = strides, .padding = pads, .dilation = dilations, .groups = kChannels});
  expect_as_oracle(x, noise(x.shape().element_count(), 1), {max_pool(x, pool), avg_pool(x, pool), depthwise},
                   std::to_string(height) + " x " + std::to_string(width) + ", stride " +
                       std::to_string(stride) + ", dilation " + std::to_string(dilation) + ", padding " +
                       std::to_string(padding) + ":");
}

// Odd sizes, so that rows end inside of vectors, and images that are one window.
TEST(CpuWindows, AgreeWithTheOracleForEveryStrideAndDilation) {
  for (const std::int64_t height : {5, 9, 17})
    for (const std::int64_t width : {5, 8, 37})
      for (const std::int64_t stride : {1, 2, 3})
        for (const std::int64_t dilation : {1, 2})
          for (const std::int64_t padding : {0, 1}) expect_windows(height, width, stride, dilation, padding);
}

// Images that are computed in bands of rows, the last of which is lower.
TEST(CpuWindows, OfLargeImagesAgreeWithTheOracle) {
  for (const std::int64_t stride : {1, 2, 3})
    for (const std::int64_t dilation : {1, 2}) expect_windows(87, 103, stride, dilation, 1);
}

// A bias and bounds are computed with the windows, image by image.
TEST(CpuWindows, ComputeWhatReadsThem) {
  const Tensor weight = Tensor::from(noise(kChannels * 9, 5), {kChannels, 1, 3, 3}),
               bias = Tensor::from(noise(kChannels, 2), {kChannels});
  for (const std::int64_t size : {7, 87}) {
    const Tensor x = input("x", {kBatch, kChannels, size, size});
    const ConvolutionOptions options{.stride = 2, .groups = kChannels};
    const Tensor sum = convolution(x, weight, bias, options), alone = convolution(x, weight, {}, options),
                 bounded = minimum(maximum(sum, -0.5f), 0.75f);
    for (const std::vector<Tensor>& results : {std::vector{bounded}, std::vector{relu(sum)},
                                               std::vector{bounded, sum}, std::vector{alone, tanh(alone)}})
      expect_as_oracle(x, noise(x.shape().element_count(), 1), results, std::to_string(size) + ":");
    const auto runtime = Runtime::create_on_cpu();
    const auto program = Program::compile(*runtime, {.name = "windows", .inputs = {x}, .outputs = {bounded}});
    ASSERT_TRUE(program.ok()) << program.error().message;
    EXPECT_NE(program->explain().find(" of 1 steps"), std::string::npos) << program->explain();
  }
}

// Axes of one place, lines, and windows of one column.
TEST(CpuWindows, AgreeWithTheOracleForLinesAndThinWindows) {
  for (const Shape& shape : {Shape{2, 3, 1, 40}, Shape{2, 3, 40, 1}, Shape{1, 1, 7, 7}, Shape{3, 5, 3, 3}}) {
    const Tensor x = input("x", shape);
    const std::int64_t h = std::min<std::int64_t>(3, shape[2]), w = std::min<std::int64_t>(3, shape[3]);
    std::vector<Tensor> results;
    for (const PerAxis size : {PerAxis{h, w, 1}, PerAxis{1, w, 1}, PerAxis{h, 1, 1}}) {
      results.push_back(max_pool(x, {.size = size, .stride = {1, 2, 1}}));
      const Tensor weight =
          Tensor::from(noise(shape[1] * size[0] * size[1], 3), {shape[1], 1, size[0], size[1]});
      if (shape[1] > 1)
        results.push_back(convolution(x, weight, Tensor(), {.stride = {2, 1, 1}, .groups = shape[1]}));
    }
    expect_as_oracle(x, noise(shape.element_count(), 2), results, shape.text() + ":");
  }
  const Tensor line = input("x", {2, 3, 131});
  expect_as_oracle(line, noise(2 * 3 * 131, 4),
                   {max_pool(line, {.size = {5, 1, 1}, .stride = {2, 1, 1}}),
                    avg_pool(line, {.size = {4, 1, 1}, .stride = {1, 1, 1}})},
                   "a line:");
}

}  // namespace
}  // namespace imprint::cpu
