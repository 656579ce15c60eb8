// Programs on several threads of the CPU: the same bits as on one.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <memory>
#include <vector>

#include "compute/program/run.h"
#include "compute/tensor/composites/composites.h"
#include "compute/tensor/composites/images.h"

namespace imprint {
namespace {

// A value between -1 and 1 per element.
HostTensor some_values(const Shape& shape) {
  std::vector<float> values;
  for (std::int64_t i = 0; i < shape.element_count(); ++i)
    values.push_back(std::sin(static_cast<float>(i * 7919 % 10007)));
  return HostTensor::from(std::move(values), shape);
}

// Kernels of every kind, with sizes that no number of threads divides.
std::vector<Tensor> some_results(const Tensor& image, const Tensor& rows) {
  const auto weight = [](const Shape& shape) { return Tensor::from(some_values(shape).floats, shape); };
  const Tensor order = cast(remainder(rows * 1000, 37.0f) + 37.0f, DType::int32);
  return {relu(image) * 2 + tanh(image),
          convolution(image, weight({24, 5, 3, 3}), weight({24}), {.padding = 1}),
          convolution(image, weight({5, 1, 3, 3}), {}, {.stride = 2, .padding = 1, .groups = 5}),
          max_pool(image, {.size = 3, .stride = 2}),
          matmul(rows, weight({131, 517})),
          matmul(transpose(rows), rows),
          matmul(reshape(rows, {7, 43, 131}), transpose(reshape(rows, {7, 43, 131}))),
          sum(rows * 3, {1}),
          sum(rows * rows, {0}),
          mean(image, {0, 2, 3}),
          softmax(rows),
          argmax(rows, 1),
          cumsum(rows, 1),
          transpose(rows),
          concat({rows, rows * 2}, 1),
          take(rows, 1, Tensor::from_ints(std::vector<std::int32_t>{5, 3, 130, 0, 77}, {5})),
          gather(rows, 0, order),
          cast(cast(rows, DType::float16), DType::float32)};
}

std::vector<HostTensor> results_on(std::uint32_t threads) {
  const auto runtime = Runtime::create_on_cpu({}, 0, {.count = threads});
  Session session(*runtime);
  const Tensor image = input("image", {3, 5, 67, 71}), rows = input("rows", {301, 131});
  auto program = Program::compile(
      *runtime, {.name = "threads", .inputs = {image, rows}, .outputs = some_results(image, rows)});
  EXPECT_TRUE(program.ok()) << program.error().message;
  if (!program) return {};
  EXPECT_THAT(program->explain(), testing::HasSubstr(std::to_string(threads) + " threads"));
  std::vector<HostTensor> found;
  for (int again = 0; again < 3; ++again) {
    auto results = session.run(*program, std::vector{some_values(image.shape()), some_values(rows.shape())});
    EXPECT_TRUE(results.ok()) << results.error().message;
    if (results) found = std::move(*results);
  }
  return found;
}

TEST(CpuThreads, GiveTheSameBits) {
  const std::vector<HostTensor> alone = results_on(1);
  ASSERT_FALSE(alone.empty());
  for (const std::uint32_t threads : {2u, 3u, 7u}) {
    const std::vector<HostTensor> found = results_on(threads);
    ASSERT_EQ(found.size(), alone.size());
    for (std::size_t i = 0; i < found.size(); ++i) {
      EXPECT_EQ(found[i].ints, alone[i].ints) << "result " << i << " on " << threads;
      ASSERT_EQ(found[i].floats.size(), alone[i].floats.size());
      EXPECT_EQ(
          std::memcmp(found[i].floats.data(), alone[i].floats.data(), found[i].floats.size() * sizeof(float)),
          0)
          << "result " << i << " on " << threads;
    }
  }
}

}  // namespace
}  // namespace imprint
