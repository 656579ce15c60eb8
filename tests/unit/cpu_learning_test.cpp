// Training steps on the CPU agree with the oracle's.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "compute/base/text.h"
#include "compute/graph/gradients/autodiff.h"
#include "compute/nn/learners/ppo_loss.h"
#include "compute/nn/modules/sequential.h"
#include "compute/nn/optimisers/optimiser.h"
#include "compute/program/run.h"
#include "tests/gpu/session_test.h"
#include "tests/reference/updates.h"

namespace imprint {
namespace {

class CpuLearningTest : public test::SessionTest {};

std::vector<float> wave(std::int64_t count, float scale, int seed) {
  std::vector<float> values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = scale * std::sin(static_cast<float>(i + 1) * (0.7f + 0.13f * static_cast<float>(seed)));
  return values;
}

struct Step {
  nn::Sequential network;
  ProgramDescription description;
};

// Loss, backward, norm clip and Adam.
Step learning(nn::Sequential network, const Tensor& loss, std::vector<Tensor> outputs) {
  Step step{std::move(network), {.name = "step"}};
  const nn::ClippedGradients clipped =
      nn::clip_by_global_norm(gradients(loss, step.network.parameters().values()).value(), 0.5).value();
  step.description.updates = nn::Adam(step.network.parameters()).step(clipped.gradients, 1e-2).value();
  step.description.outputs = std::move(outputs);
  step.description.outputs.push_back(clipped.norm);
  return step;
}

Step ppo_step(std::int64_t batch, std::int64_t hidden) {
  constexpr std::int64_t kActions = 5;
  nn::Sequential network =
      nn::mlp("net", {7, hidden, hidden, kActions + 1}, {.activation = nn::Activation::tanh, .seed = 3});
  std::vector<std::int32_t> actions(static_cast<std::size_t>(batch));
  for (std::size_t i = 0; i < actions.size(); ++i) actions[i] = static_cast<std::int32_t>(i * 3 % kActions);
  const Tensor outputs = network(Variable("observation", {batch, 7}, wave(batch * 7, 1, 1)).value());
  const nn::PpoBatch data{Variable("action", {batch}, actions).value(),
                          Variable("log_probability", {batch}, wave(batch, 0.3f, 2)).value() - 1.6f,
                          Variable("advantage", {batch}, wave(batch, 1.5f, 4)).value(),
                          Variable("target", {batch}, wave(batch, 1, 5)).value()};
  const nn::PpoLoss loss =
      nn::ppo_loss(slice(outputs, 1, 0, kActions), squeeze(slice(outputs, 1, kActions, kActions + 1), 1),
                   data, {.entropy_coefficient = 0.01});
  return learning(std::move(network), loss.total,
                  {loss.total, loss.policy, loss.value, loss.entropy, loss.divergence});
}

// A kennel: several networks, each with its own rows.
Step kennel_step() {
  constexpr std::int64_t kNetworks = 5, kRows = 37;
  nn::Sequential network =
      nn::mlp("net", {6, 20, 3}, {.activation = nn::Activation::relu, .groups = kNetworks, .seed = 2});
  const Tensor x = Variable("x", {kNetworks, kRows, 6}, wave(kNetworks * kRows * 6, 1, 1)).value();
  const Tensor loss = mean(square(
      network(x) - Variable("target", {kNetworks, kRows, 3}, wave(kNetworks * kRows * 3, 1, 2)).value()));
  return learning(std::move(network), loss, {loss});
}

void expect_as_the_oracle(Session& session, const Step& own, const Step& oracle) {
  auto program = Program::compile(session.runtime(), own.description);
  ASSERT_TRUE(program.ok()) << program.error().message;
  reference::Bindings state;
  for (int i = 0; i < 3; ++i) {
    const auto found = session.run(*program);
    ASSERT_TRUE(found.ok());
    const auto expected = reference::evaluate_all(oracle.description.outputs, state);
    for (std::size_t o = 0; o < expected.size(); ++o)
      EXPECT_NEAR((*found)[o].floats[0], expected[o][0], 2e-5 * std::max(1.0, std::abs(expected[o][0])))
          << "output " << o << " of step " << i;
    reference::run_updates(oracle.description.updates, state);
  }
  for (const Update& update : own.description.updates) {
    const auto found = session.read(std::span(&update.target, 1));
    ASSERT_TRUE(found.ok());
    const std::vector<double>& expected = state.at(update.target.name());
    for (std::size_t i = 0; i < (*found)[0].floats.size(); ++i)
      ASSERT_NEAR((*found)[0].floats[i], expected[i], 3e-4) << update.target.name() << " " << i;
  }
}

TEST_F(CpuLearningTest, APpoStepIsTheOracles) {
  const std::pair<std::int64_t, std::int64_t> sizes[] = {
      {1, 16}, {31, 33}, {100, 16}, {257, 33}};  // rows, hidden
  for (const auto& [batch, hidden] : sizes) {
    SCOPED_TRACE(text("batch ", batch, " hidden ", hidden));
    expect_as_the_oracle(session(), ppo_step(batch, hidden), ppo_step(batch, hidden));
  }
}

TEST_F(CpuLearningTest, AKennelsStepIsTheOracles) {
  expect_as_the_oracle(session(), kennel_step(), kennel_step());
}

TEST_F(CpuLearningTest, EqualRunsGiveEqualBits) {
  const auto learned = [&] {
    const Step step = ppo_step(100, 16);
    Program program = compile(step.description);
    for (int i = 0; i < 20; ++i) EXPECT_TRUE(session().run(program).ok());
    std::vector<float> all;
    for (const Variable& variable : step.network.parameters().variables())
      for (const float value : floats(variable)) all.push_back(value);
    return all;
  };
  EXPECT_EQ(learned(), learned());
}

// A row's result does not depend on its position among others. Large numbers make a wrong rounding order
// visible.
TEST_F(CpuLearningTest, EqualRowsGiveEqualBits) {
  for (const std::int64_t width : {3, 169, 512, 700, 1100}) {
    SCOPED_TRACE(text("rows of ", width));
    constexpr std::int64_t kRows = 300;
    const std::vector<float> row = wave(width, 1e9f, 1);
    std::vector<float> rows;
    for (std::int64_t i = 0; i < kRows; ++i) rows.insert(rows.end(), row.begin(), row.end());
    const Tensor x = input("x", {kRows, width});
    Program program = compile({.name = "rows",
                               .inputs = {x},
                               .outputs = {mean(relu(x), {1}), logsumexp(x, {1}), variance(x, {1})}});
    const HostTensor inputs[] = {HostTensor::from(rows, {kRows, width})};
    const auto found = session().run(program, inputs).value();
    for (const HostTensor& output : found)
      for (const float value : output.floats) ASSERT_EQ(value, output.floats[0]);
  }
}

// Requesting more memory than exists gives an error, in the public interface too.
TEST_F(CpuLearningTest, TooLittleMemoryIsAnError) {
  const auto vast = session().evaluate(full({std::int64_t{1} << 47, 2}, 1.0));
  ASSERT_FALSE(vast.ok());
  EXPECT_EQ(vast.error().code, ErrorCode::out_of_host_memory) << vast.error().message;
  const Tensor x = input("x", {std::int64_t{1} << 46});
  const auto program = Program::compile(runtime(), {.name = "vast", .inputs = {x}, .outputs = {x + 1.0f}});
  ASSERT_FALSE(program.ok());
  EXPECT_EQ(program.error().code, ErrorCode::out_of_host_memory) << program.error().message;
}

TEST_F(CpuLearningTest, InputsAreOfTheirOwnType) {
  const Tensor whole = input("whole", {2}, DType::int32), truth = input("truth", {2}, DType::boolean),
               real = input("real", {2});
  Program program = compile({.name = "types",
                             .inputs = {whole, truth, real},
                             .outputs = {where(truth, cast(whole, DType::float32), real)}});
  const HostTensor ints = HostTensor::from_ints({3, 4}, {2}), bools{DType::boolean, {2}, {}, {1, 0}},
                   floats = HostTensor::from({5, 6}, {2});
  EXPECT_EQ(session().run(program, std::vector{ints, bools, floats}).value()[0].floats,
            (std::vector<float>{3, 6}));
  for (const std::vector<HostTensor>& wrong :
       {std::vector{bools, bools, floats}, std::vector{ints, ints, floats}, std::vector{ints, bools, ints}}) {
    const auto refused = session().run(program, wrong);
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().code, ErrorCode::dtype_mismatch) << refused.error().message;
  }
}

TEST_F(CpuLearningTest, RefusesGpuKernels) {
  const Tensor state = input("state", {4, 2});
  const auto program = Program::compile(
      runtime(), {.name = "world",
                  .inputs = {state},
                  .outputs = {custom_rows("cart", "void row() {}", std::span(&state, 1), 2)}});
  ASSERT_FALSE(program.ok());
  EXPECT_EQ(program.error().code, ErrorCode::unsupported);
  EXPECT_THAT(program.error().message, testing::HasSubstr("custom_rows 'cart': found the CPU device"));
}

TEST_F(CpuLearningTest, LargeProductsAndLongFoldsTakeTheirTurns) {
  // Several blocks of depth, copied panels, and incomplete tiles of rows and columns.
  const Tensor x = input("x", {3, 70, 1100}), w = input("w", {1100, 131});
  const Tensor y = matmul(x, w);
  const Tensor outputs[] = {y, sum(tanh(y), {0, 1}), matmul(transpose(y, 1, 2), x), max(y, {0, 2})};
  Program program = compile(
      {.name = "large", .inputs = {x, w}, .outputs = {outputs[0], outputs[1], outputs[2], outputs[3]}});
  const std::vector<float> a = wave(3 * 70 * 1100, 0.5f, 1), b = wave(1100 * 131, 0.1f, 2);
  const HostTensor inputs[] = {HostTensor::from(a, {3, 70, 1100}), HostTensor::from(b, {1100, 131})};
  const auto found = session().run(program, inputs).value();
  const auto expected =
      reference::evaluate_all(outputs, {{"x", {a.begin(), a.end()}}, {"w", {b.begin(), b.end()}}});
  for (std::size_t o = 0; o < expected.size(); ++o)
    for (std::size_t i = 0; i < expected[o].size(); ++i)
      ASSERT_NEAR(found[o].floats[i], expected[o][i], 1e-4 * (1 + std::abs(expected[o][i]))) << o << " " << i;
}

}  // namespace
}  // namespace imprint
