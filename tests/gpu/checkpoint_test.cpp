// Recomputation: equal gradients from fewer stored values.

#include "compute/graph/gradients/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compute/graph/gradients/autodiff.h"
#include "compute/nn/losses/losses.h"
#include "compute/nn/modules/sequential.h"
#include "compute/tensor/extent.h"
#include "tests/gpu/session_test.h"

namespace imprint {
namespace {

using ::testing::HasSubstr;

class CheckpointTest : public test::SessionTest {
 protected:
  void expect_close(std::span<const HostTensor> found, std::span<const HostTensor> wanted) {
    ASSERT_EQ(found.size(), wanted.size());
    for (std::size_t i = 0; i < wanted.size(); ++i)
      for (std::size_t k = 0; k < wanted[i].floats.size(); ++k)
        if (runtime().on_cpu())
          ASSERT_EQ(found[i].floats[k], wanted[i].floats[k]) << i << ": " << k;
        else
          ASSERT_NEAR(found[i].floats[k], wanted[i].floats[k], 1e-6 + 1e-5 * std::fabs(wanted[i].floats[k]));
  }
};

// In pieces of `piece` layers; 0: nothing is recomputed.
ProgramDescription training(const nn::Sequential& network, std::int64_t piece, const tensor::ShapeAxis& rows,
                            std::int64_t width) {
  nn::Sequential used = network;
  used.recompute_every(piece);
  const Tensor x = input("x", {rows, width});
  const Tensor loss = nn::mse_loss(used(x), x * 0.5f);
  const Result<std::vector<Tensor>> slopes = gradients(loss, network.parameters().values());
  ProgramDescription description{.name = "deep", .inputs = {x}, .outputs = {loss}};
  if (!slopes) throw std::runtime_error(slopes.error().message);
  // Updates, so that no gradient is an output that must stay.
  const std::vector<Variable> variables = network.parameters().variables();
  for (std::size_t i = 0; i < variables.size(); ++i)
    description.updates.push_back(Update::assign(variables[i], variables[i].value() - 0.1f * (*slopes)[i]));
  return description;
}

// Equal names have equal first weights.
nn::Sequential layers_of(std::int64_t width, std::size_t layers) {
  return nn::mlp("deep", std::vector<std::int64_t>(layers + 1, width),
                 {.activation = nn::Activation::tanh, .seed = 2});
}

TEST_F(CheckpointTest, DeepNetworksTrainAlikeInLessMemory) {
  // A device compiles shaders, which grow with the network.
  const bool is_deep = runtime().on_cpu();
  const std::int64_t width = is_deep ? 64 : 16;
  const nn::Sequential kept = layers_of(width, is_deep ? 16 : 2), again = layers_of(width, is_deep ? 16 : 2);
  Program whole = compile(training(kept, 0, 8 * width, width)),
          pieces = compile(training(again, is_deep ? 8 : 1, 8 * width, width));
  const HostTensor data = HostTensor::from(test::wave(8 * width * width, 1, 3), {8 * width, width});
  for (int step = 0; step < 2; ++step) {
    const auto wanted = session().run(whole, std::span(&data, 1)),
               found = session().run(pieces, std::span(&data, 1));
    ASSERT_TRUE(found.ok()) << found.error().message;
    expect_close(*found, *wanted);
  }
  const auto wanted = session().read(kept.parameters().variables()),
             found = session().read(again.parameters().variables());
  expect_close(*found, *wanted);
  // 32 hidden values and their slopes, of which pieces keep about the half.
  if (is_deep) EXPECT_LT(pieces.stats().arena_bytes, whole.stats().arena_bytes * 6 / 10);
}

TEST_F(CheckpointTest, SeveralValuesAndSecondDerivatives) {
  const Variable weight("weight", {3, 3}, test::wave(9, 1.0f, 1));
  const Tensor x = input("x", {4, 3}), y = input("y", {4, 3});
  const auto f = [&](std::span<const Tensor> in) {
    const Tensor product = matmul(in[0], weight.value());
    return std::vector{tanh(product) * in[1], sum(product * product)};
  };
  const auto outputs_of = [&](bool recompute) {
    const Tensor in[] = {x, y};
    const std::vector<Tensor> out = recompute ? checkpoint(f, in) : f(in);
    const Tensor by[] = {x, y, weight.value()};
    const std::vector<Tensor> slopes = gradients(sum(square(out[0])) + out[1], by).value();
    const std::vector<Tensor> second = gradients(sum(square(slopes[0])) + sum(slopes[2]), by).value();
    std::vector<Tensor> all = out;
    all.insert(all.end(), slopes.begin(), slopes.end());
    all.insert(all.end(), second.begin(), second.end());
    return all;
  };
  Program plain = compile({.name = "plain", .inputs = {x, y}, .outputs = outputs_of(false)}),
          recomputed = compile({.name = "recomputed", .inputs = {x, y}, .outputs = outputs_of(true)});
  const std::vector<HostTensor> data{HostTensor::from(test::wave(12, 1, 4), {4, 3}),
                                     HostTensor::from(test::wave(12, 1, 5), {4, 3})};
  const auto found = session().run(recomputed, data), wanted = session().run(plain, data);
  ASSERT_TRUE(found.ok()) << found.error().message;
  ASSERT_EQ(found->size(), wanted->size());
  for (std::size_t i = 0; i < wanted->size(); ++i)
    for (std::size_t k = 0; k < (*wanted)[i].floats.size(); ++k)
      ASSERT_NEAR((*found)[i].floats[k], (*wanted)[i].floats[k], 1e-4) << i << ": " << k;
}

TEST_F(CheckpointTest, TakesNamedBatches) {
  constexpr std::int64_t kWidth = 8;
  const nn::Sequential fixed = layers_of(kWidth, 2), named = layers_of(kWidth, 2);
  Program exact = compile(training(fixed, 1, 5, kWidth)),
          program = compile(training(named, 1, Extent("rows", 12), kWidth));
  const HostTensor data = HostTensor::from(test::wave(5 * kWidth, 1, 3), {5, kWidth});
  const auto wanted = session().run(exact, std::span(&data, 1)),
             found = session().run(program, std::span(&data, 1));
  ASSERT_TRUE(found.ok()) << found.error().message;
  expect_close(*found, *wanted);
}

TEST_F(CheckpointTest, RefusesWhatItCannotRecompute) {
  EXPECT_THAT(
      checkpoint([](std::span<const Tensor>) { return std::vector<Tensor>(); }, {})[0].error().message,
      HasSubstr("found no inputs"));
}

}  // namespace
}  // namespace imprint
