// Low-rank adaptation, tied weights, L-BFGS and the rate that falls on a plateau.

#include <gtest/gtest.h>

#include <cmath>

#include "compute/nn/dtype_policy.h"
#include "compute/nn/lora.h"
#include "compute/nn/losses/losses.h"
#include "compute/nn/modules/embedding.h"
#include "compute/nn/modules/sequential.h"
#include "compute/nn/optimisers/optimiser.h"
#include "compute/nn/optimisers/schedule.h"
#include "tests/unit/nn_check.h"
#include "tests/unit/nn_golden.h"

namespace imprint::nn {
namespace {

using test::waves;

TEST(Lora, TunesAndMerges) {
  const Sequential network = mlp("net", {3, 6, 6, 2}, {.activation = Activation::tanh, .seed = 1});
  const Lora lora("tuned", network.parameters().matching("*.weight").without("0.*"), {.rank = 2, .alpha = 4});
  std::string names;
  for (const Parameter& parameter : lora.parameters())
    names += parameter.name + parameter.variable.shape().text() + " ";
  EXPECT_EQ(names,
            "2.lora_A.weight[6, 2] 2.lora_B.weight[2, 6] 4.lora_A.weight[6, 2] 4.lora_B.weight[2, 2] ");
  const std::vector<double> values = waves(15);
  const Tensor x = Tensor::from(std::vector<float>(values.begin(), values.end()), {5, 3});
  const auto runtime = Runtime::create_on_cpu();
  Session session(*runtime);
  const auto error_of = [&](const Tensor& t) { return session.evaluate(t)->floats[0]; };
  const Tensor plain = network(x), tuned = lora(plain);
  EXPECT_EQ(error_of(sum(abs(tuned - plain))), 0);  // B starts at 0

  const Tensor loss = mse_loss(tuned, zeros({5, 2}) + 0.5f);
  const float before = error_of(loss), weight = error_of(sum(abs(network.parameters()[2].value())));
  const auto slopes = gradients(loss, lora.parameters().values());
  ASSERT_TRUE(slopes);
  const Adam adam(lora.parameters());
  const auto updates = adam.step(*slopes, 0.05);
  ASSERT_TRUE(updates);
  auto step = Program::compile(*runtime, {.name = "tune", .updates = *updates});
  ASSERT_TRUE(step) << step.error().message;
  for (int i = 0; i < 60; ++i) ASSERT_TRUE(session.run(*step));
  EXPECT_LT(error_of(loss), 0.2f * before);
  EXPECT_EQ(error_of(sum(abs(network.parameters()[2].value()))), weight);  // the network's own stay

  const auto tuned_values = session.evaluate(tuned);
  auto merge = Program::compile(*runtime, {.name = "merge", .updates = lora.merge()});
  ASSERT_TRUE(merge && session.run(*merge));
  const auto merged = session.evaluate(plain), both = session.evaluate(tuned);
  for (std::size_t i = 0; i < 10; ++i) {
    EXPECT_NEAR(merged->floats[i], tuned_values->floats[i], 1e-6);
    EXPECT_EQ(both->floats[i], merged->floats[i]);
  }
}

// A policy applies to adapted weights as to the plain ones, also where layers are computed again.
TEST(Lora, AdaptedWeightsHaveTheirTypes) {
  const Sequential network = mlp("net", {4, 6, 6, 2}, {.activation = Activation::tanh, .seed = 1});
  Sequential pieces = network;
  pieces.recompute_every(3);
  const Parameters p = network.parameters();
  const Lora lora("tuned", p.matching("*.weight").without("4.*"), {.rank = 2, .alpha = 4});
  const std::vector<double> values = waves(20);
  const Tensor x = Variable("x", {5, 4}, std::vector<float>(values.begin(), values.end())).value();
  const auto runtime = Runtime::create_on_cpu();
  Session session(*runtime);
  const auto value = [&](const Tensor& t) { return session.evaluate(t)->floats; };
  const auto run = [&](const std::vector<Update>& updates) {
    auto program = Program::compile(*runtime, {.name = "once", .updates = updates});
    ASSERT_TRUE(program && session.run(*program));
  };
  std::vector<Update> moved;
  for (const Parameter& parameter : lora.parameters())
    moved.push_back(Update::assign(parameter.variable, parameter.value() + 0.1f));
  run(moved);
  const std::vector<Tensor> targets = lora.parameters().values();
  for (const DType storage : {DType::float32, DType::float16, DType::bfloat16}) {
    SCOPED_TRACE(dtype_name(storage));
    const DtypePolicy policy(text("types ", dtype_name(storage)), p,
                             {{"*.weight", {.storage = storage, .compute = DType::float16}}, {"4.*", {}}});
    run(policy.pack());
    const auto narrow = [](const Tensor& t) { return cast(t, DType::float16); };
    const auto adapted = [&](std::size_t layer) {
      const Tensor stored = cast(cast(p[2 * layer].value(), storage), DType::float32);
      return stored + 2.0f * matmul(targets[2 * layer], targets[2 * layer + 1]);
    };
    Tensor h = x;
    for (std::size_t layer = 0; layer < 2; ++layer)
      h = tanh(matmul(narrow(h), narrow(adapted(layer))) + p[2 * layer + 1].value());
    const Tensor expected = matmul(h, p[4].value()) + p[5].value(), kept = policy(lora(network(x))),
                 again = policy(lora(pieces(x)));
    EXPECT_EQ(value(kept), value(expected));
    EXPECT_EQ(value(again), value(expected));
    const auto wanted = gradients(sum(square(expected)), targets),
               found = gradients(sum(square(kept)), targets),
               found_again = gradients(sum(square(again)), targets);
    ASSERT_TRUE(wanted && found && found_again);
    for (std::size_t i = 0; i < targets.size(); ++i) {
      EXPECT_EQ(value((*found)[i]), value((*wanted)[i])) << i;
      EXPECT_EQ(value((*found_again)[i]), value((*wanted)[i])) << i;
    }
  }
}

TEST(Embedding, TiedLogitsShareTheWeight) {
  const Embedding words("words", 5, 3, {.seed = 1});
  const Tensor x = input("x", {2, 3});
  test::expect_sound(
      words.logits(x),
      {.inputs = {x}, .leaves = {x, words.parameters()[0].value()}, .bindings = {{"x", waves(6)}}});
  // Gradients of both uses add up.
  const Tensor loss = sum(square(words.logits(words(Tensor::from_ints(std::vector{1, 4}, {2})))));
  test::expect_sound(loss, {.leaves = {words.parameters()[0].value()}});
  EXPECT_FALSE(words.logits(input("x", {2, 4})).ok());
}

class GoldenSteps : public GoldenTest {};

TEST_F(GoldenSteps, Lbfgs) {
  const Json golden = read_golden("golden_layers.json");
  expect_steps(
      golden.at("lbfgs"),
      [](const Parameters& parameters) {
        return std::make_shared<Lbfgs>(parameters, LbfgsOptions{.history = 3});
      },
      2e-5);
}

TEST_F(GoldenSteps, PlateauRate) {
  const Json golden = read_golden("golden_layers.json").at("plateau");
  const PlateauRate rate("rate", 1,
                         {.factor = 0.5, .patience = 2, .threshold = 0.01, .cooldown = 1, .least = 0.1});
  const Tensor measured = input("loss", {});
  std::vector<Update> updates;
  rate.measure(updates, measured);
  auto program = Program::compile(*runtime_, {.name = "measure", .inputs = {measured}, .updates = updates});
  ASSERT_TRUE(program) << program.error().message;
  for (std::size_t i = 0; i < golden.at("losses").size(); ++i) {
    const HostTensor loss = HostTensor::from({golden.at("losses")[i].get<float>()}, {});
    ASSERT_TRUE(session_.run(*program, std::span(&loss, 1)));
    EXPECT_FLOAT_EQ(evaluate(rate.value())[0], golden.at("rates")[i].get<float>()) << i;
  }
}

TEST(Lbfgs, FindsTheMinimumOfAQuadraticAndRests) {
  const Variable w("w", {4}, std::vector<float>{3, -2, 5, 1});
  Parameters parameters;
  parameters.add("w", w);
  const Tensor curves = Tensor::from({1, 10, 3, 0.5f}, {4});
  const Lbfgs lbfgs(parameters, {.history = 6});
  const auto slopes = gradients(0.5f * sum(curves * square(w.value() - 1.0f)), parameters.values());
  ASSERT_TRUE(slopes);
  const auto updates = lbfgs.step(*slopes, 1.0);
  ASSERT_TRUE(updates) << updates.error().message;
  const auto runtime = Runtime::create_on_cpu();
  Session session(*runtime);
  auto program = Program::compile(*runtime, {.name = "steps", .updates = *updates});
  ASSERT_TRUE(program) << program.error().message;
  for (int i = 0; i < 30; ++i) ASSERT_TRUE(session.run(*program));
  const auto found = session.evaluate(w.value());
  for (const float value : found->floats) EXPECT_NEAR(value, 1, 1e-5);
}

}  // namespace
}  // namespace imprint::nn
