// Row-local regions give the same results as one kernel per operation, in a few dispatches, for any batch.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdlib>
#include <functional>

#include "compute/base/text.h"
#include "compute/graph/gradients/autodiff.h"
#include "compute/nn/learners/ppo_loss.h"
#include "compute/nn/modules/sequential.h"
#include "compute/nn/optimisers/optimiser.h"
#include "compute/program/program.h"
#include "compute/program/run.h"
#include "tests/gpu/session_test.h"

namespace imprint {
namespace {

using test::wave;

class RegionTest : public test::SessionTest {
 protected:
  using Describe = std::function<ProgramDescription(bool fuse)>;
  using Check = std::function<void(const Program& fused, const Program& plain)>;

  // The outputs of the program as it is fused, and of one kernel per operation, differ by the tolerance at
  // most.
  void expect_same_fused_and_not(const Describe& describe, float tolerance, const Check& check = {}) {
    auto fused = Program::compile(session().runtime(), describe(true)),
         plain = Program::compile(session().runtime(), describe(false));
    ASSERT_TRUE(fused && plain);
    if (check) check(*fused, *plain);
    const auto x = session().run(*fused), y = session().run(*plain);
    ASSERT_TRUE(x && y);
    for (std::size_t o = 0; o < x->size(); ++o)
      EXPECT_THAT((*x)[o].floats, testing::Pointwise(testing::FloatNear(tolerance), (*y)[o].floats))
          << "output " << o;
  }
};

struct Step {
  nn::Sequential network;
  ProgramDescription description;
};

Step ppo_step(std::int64_t batch, std::int64_t hidden, bool fuse) {
  constexpr std::int64_t kActions = 5;
  Step step{
      nn::mlp("net", {7, hidden, hidden, kActions + 1}, {.activation = nn::Activation::tanh, .seed = 3}),
      {.name = "step", .fuse = fuse}};
  const Tensor observation = Variable("observation", {batch, 7}, wave(batch * 7, 1, 1)).value();
  std::vector<std::int32_t> actions(static_cast<std::size_t>(batch));
  for (std::size_t i = 0; i < actions.size(); ++i) actions[i] = static_cast<std::int32_t>(i * 3 % kActions);
  const Tensor outputs = step.network(observation);
  const nn::PpoBatch data{Variable("action", {batch}, actions).value(),
                          Variable("log_probability", {batch}, wave(batch, 0.3f, 2)).value() - 1.6f,
                          Variable("advantage", {batch}, wave(batch, 1.5f, 4)).value(),
                          Variable("target", {batch}, wave(batch, 1, 5)).value()};
  const nn::PpoLoss loss =
      nn::ppo_loss(slice(outputs, 1, 0, kActions), squeeze(slice(outputs, 1, kActions, kActions + 1), 1),
                   data, {.entropy_coefficient = 0.01});
  const nn::ClippedGradients clipped =
      nn::clip_by_global_norm(gradients(loss.total, step.network.parameters().values()).value(), 0.5).value();
  step.description.updates = nn::Adam(step.network.parameters()).step(clipped.gradients, 1e-2).value();
  step.description.outputs = {loss.total,      loss.policy,  loss.value,  loss.entropy,
                              loss.divergence, loss.clipped, clipped.norm};
  return step;
}

// The first network waits for a sum over the second's rows, so the region that is found first runs last.
TEST_F(RegionTest, ARegionMayWaitForALaterOne) {
  const auto describe = [](bool fuse) {
    const Tensor many = Variable("many", {96, 4}, wave(96 * 4, 1, 1)).value(),
                 few = Variable("few", {8, 6}, wave(8 * 6, 1, 2)).value();
    const Tensor first = tanh(matmul(many, Variable("w1", {4, 5}, wave(20, 1, 3)).value()));
    const Tensor second = tanh(matmul(few, Variable("w2", {6, 5}, wave(30, 1, 4)).value()));
    return ProgramDescription{
        .name = "later", .outputs = {exp(first) * sum(second, {0}), second}, .fuse = fuse};
  };
  const std::unique_ptr<Runtime> cpu = Runtime::create_on_cpu();
  Session on_cpu(*cpu);
  const ProgramDescription fused = describe(true), plain = describe(false);
  auto a = Program::compile(session().runtime(), fused), b = Program::compile(*cpu, plain);
  ASSERT_TRUE(a) << a.error().message;
  ASSERT_TRUE(b) << b.error().message;
  const auto x = session().run(*a), y = on_cpu.run(*b);
  ASSERT_TRUE(x && y);
  for (std::size_t o = 0; o < x->size(); ++o)
    for (std::size_t i = 0; i < (*x)[o].floats.size(); ++i)
      ASSERT_NEAR((*x)[o].floats[i], (*y)[o].floats[i], 1e-5) << "output " << o << " element " << i;
}

// A weight gradient and a bias's have few workgroups, and so has the region that does not wait for them.
TEST_F(RegionTest, ProductsAndFoldsOfItsLevelAreInItsDispatch) {
  constexpr std::int64_t kRows = 256, kIn = 64, kOut = 192;
  const auto describe = [](bool fuse) {
    const Tensor x = Variable("x", {kRows, kIn}, wave(kRows * kIn, 1, 1)).value(),
                 y = Variable("y", {1, kRows, kOut}, wave(kRows * kOut, 1, 2)).value(),
                 few = Variable("few", {8, 6}, wave(48, 1, 3)).value();
    const Tensor region = tanh(matmul(few, Variable("w1", {6, 16}, wave(96, 1, 4)).value()));
    return ProgramDescription{
        .name = "joined",
        .outputs = {matmul(permute(x, {1, 0}), reshape(y, {kRows, kOut})), sum(y, {1}, true),
                    tanh(matmul(region, Variable("w2", {16, 5}, wave(80, 1, 5)).value()))},
        .fuse = fuse};
  };
  const std::unique_ptr<Runtime> cpu = Runtime::create_on_cpu();
  Session on_cpu(*cpu);
  auto a = Program::compile(session().runtime(), describe(true)), b = Program::compile(*cpu, describe(false));
  ASSERT_TRUE(a) << a.error().message;
  ASSERT_TRUE(b) << b.error().message;
  if (std::getenv("IMPRINT_TEST_SCHEDULE_AS_GPU")) EXPECT_EQ(a->stats().dispatches, 1u) << a->explain();
  const auto x = session().run(*a), y = on_cpu.run(*b);
  ASSERT_TRUE(x && y);
  for (std::size_t o = 0; o < x->size(); ++o)
    EXPECT_THAT((*x)[o].floats, testing::Pointwise(testing::FloatNear(1e-3f), (*y)[o].floats)) << o;
}

// A software device needs long to compile about fifty kernels, one per operation. Except for the last size,
// the CPU runs them.
TEST_F(RegionTest, APpoStepIsTheSameFusedAndNot) {
  const std::unique_ptr<Runtime> cpu = Runtime::create_on_cpu();
  Session on_cpu(*cpu);
  const std::pair<std::int64_t, std::int64_t> sizes[] = {
      {1, 16}, {31, 33}, {100, 16}, {257, 33}};  // rows, hidden
  for (const auto& [batch, hidden] : sizes) {
    SCOPED_TRACE(text("batch ", batch, " hidden ", hidden));
    Step fused = ppo_step(batch, hidden, true), plain = ppo_step(batch, hidden, false);
    Session& other = batch == std::end(sizes)[-1].first ? session() : on_cpu;
    auto a = Program::compile(session().runtime(), fused.description),
         b = Program::compile(other.runtime(), plain.description);
    ASSERT_TRUE(a) << a.error().message;
    ASSERT_TRUE(b) << b.error().message;
    for (int i = 0; i < 3; ++i) {
      const auto x = session().run(*a), y = other.run(*b);
      ASSERT_TRUE(x && y);
      for (std::size_t o = 0; o < x->size(); ++o)
        EXPECT_NEAR((*x)[o].floats[0], (*y)[o].floats[0], 2e-5 * std::max(1.0f, std::abs((*y)[o].floats[0])))
            << "output " << o << " of step " << i;
    }
    const auto p = session().read(fused.network.parameters().variables()),
               q = other.read(plain.network.parameters().variables());
    ASSERT_TRUE(p && q);
    for (std::size_t i = 0; i < p->size(); ++i)
      EXPECT_THAT((*p)[i].floats, testing::Pointwise(testing::FloatNear(3e-4f), (*q)[i].floats))
          << "parameter " << i;
    EXPECT_LE(a->stats().dispatches, 5u) << a->explain();  // 3 where a workgroup's folds are cheap
  }
}

// An estimate scales a penalty, which is part of the gradients' norm, and changes in the same step by what a
// second batch says. The last kernels read the estimate from before the step.
ProgramDescription penalised_step(const nn::Sequential& network, bool fuse) {
  constexpr std::int64_t kRows = 40, kNews = 8;
  const Tensor x = Variable("x", {kRows, 6}, wave(kRows * 6, 1, 1)).value(),
               target = Variable("target", {kRows, 3}, wave(kRows * 3, 1, 2)).value(),
               news = Variable("news", {kNews, 6}, wave(kNews * 6, 1, 4)).value();
  const Variable doubt("doubt", {1}, std::vector<float>{0.5f}), shares("shares", {1, 3}, wave(3, 0.4f, 5));
  const std::vector<Tensor> weights = network.parameters().values();
  Tensor penalty = full({1}, 0);
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const Tensor scale = i + 2 < weights.size() ? doubt.value() * 0.1f : square(shares.value());
    penalty = penalty + sum(square(weights[i]) * scale);
  }
  const Tensor rows = mean(square(network(x) - target), {1});
  const Tensor loss =
      mean(rows * (1.0f - 0.5f * doubt.value())) + penalty * doubt.value() * (1.0f - doubt.value());
  const nn::ClippedGradients clipped =
      nn::clip_by_global_norm(gradients(sum(loss), weights).value(), 0.5).value();
  ProgramDescription step{.name = "penalised", .fuse = fuse};
  step.updates = nn::Adam(network.parameters()).step(clipped.gradients, 1e-2).value();
  const Tensor told = mean(tanh(network(news)), {0}, true);
  step.updates.push_back(Update::assign(shares, shares.value() + 0.1f * told));
  step.updates.push_back(Update::assign(doubt, 0.9f * doubt.value() + 0.1f * square(mean(told))));
  step.outputs = {sum(loss), clipped.norm, doubt.value() + 0.0f};
  return step;
}

TEST_F(RegionTest, StateThatTheLastKernelsReadIsThatFromBeforeTheStep) {
  const auto network = [] {
    return nn::mlp("net", {6, 32, 16, 3}, {.activation = nn::Activation::tanh, .seed = 3});
  };
  const nn::Sequential fused = network(), plain = network();
  const std::unique_ptr<Runtime> cpu = Runtime::create_on_cpu();
  Session on_cpu(*cpu);
  auto a = Program::compile(session().runtime(), penalised_step(fused, true)),
       b = Program::compile(*cpu, penalised_step(plain, false));
  ASSERT_TRUE(a) << a.error().message;
  ASSERT_TRUE(b) << b.error().message;
  for (int i = 0; i < 4; ++i) {
    const auto x = session().run(*a), y = on_cpu.run(*b);
    ASSERT_TRUE(x && y);
    for (std::size_t o = 0; o < x->size(); ++o)
      EXPECT_NEAR((*x)[o].floats[0], (*y)[o].floats[0], 1e-5) << "output " << o << " of step " << i;
  }
  const auto p = session().read(fused.parameters().variables()),
             q = on_cpu.read(plain.parameters().variables());
  ASSERT_TRUE(p && q);
  for (std::size_t i = 0; i < p->size(); ++i)
    EXPECT_THAT((*p)[i].floats, testing::Pointwise(testing::FloatNear(1e-4f), (*q)[i].floats)) << i;
  EXPECT_LE(a->stats().dispatches, 5u) << a->explain();  // 3 where a workgroup's folds are cheap
}

// An actor and two critics see two batches of the same rows, and a loss of each kind goes through the
// critics: products with the same weights, and others beside them that wait for as many.
ProgramDescription twin_step(const nn::Sequential (&networks)[3], std::int64_t rows, bool fuse) {
  const Tensor x = Variable("x", {rows, 8}, wave(rows * 8, 1, 1)).value(),
               y = Variable("y", {rows, 8}, wave(rows * 8, 1, 2)).value(),
               taken = Variable("taken", {rows, 4}, wave(rows * 4, 1, 3)).value();
  const auto& [actor, first, second] = networks;
  const auto both = [](const Tensor& seen, const Tensor& done) { return concat({seen, done}, 1); };
  const Tensor next = both(y, tanh(actor(y))), own = both(x, tanh(actor(x))), old = both(x, taken);
  const Tensor target = stop_gradient(0.9f * minimum(first(next), second(next)) + sum(taken, {1}, true));
  const Tensor error = mean(square(first(old) - target)) + mean(square(second(old) - target));
  const Tensor worth = mean(minimum(first(own), second(own)));
  ProgramDescription step{.name = "twins", .fuse = fuse};
  step.outputs = {error, worth};
  const auto learn = [&](const Tensor& loss, const nn::Sequential& network) {
    const std::vector<Update> updates =
        nn::Adam(network.parameters())
            .step(gradients(loss, network.parameters().values()).value(), 1e-2)
            .value();
    step.updates.insert(step.updates.end(), updates.begin(), updates.end());
  };
  learn(-worth, actor);
  learn(error, first);
  learn(error, second);
  return step;
}

TEST_F(RegionTest, ProductsThatShareWeightsAreTheSameFusedAndNot) {
  const std::unique_ptr<Runtime> cpu = Runtime::create_on_cpu();
  Session on_cpu(*cpu);
  const auto make = [](std::int64_t hidden) {
    const auto network = [&](const char* name, std::int64_t in, std::int64_t out, std::uint64_t seed) {
      return nn::mlp(name, {in, hidden, hidden, out}, {.activation = nn::Activation::tanh, .seed = seed});
    };
    return std::array{network("actor", 8, 4, 1), network("first", 12, 1, 2), network("second", 12, 1, 3)};
  };
  constexpr std::int64_t kRows = 37, kHidden = 16;
  const auto a = make(kHidden), b = make(kHidden);
  const nn::Sequential fused[] = {a[0], a[1], a[2]}, plain[] = {b[0], b[1], b[2]};
  auto x = Program::compile(session().runtime(), twin_step(fused, kRows, true)),
       y = Program::compile(*cpu, twin_step(plain, kRows, false));
  ASSERT_TRUE(x) << x.error().message;
  ASSERT_TRUE(y) << y.error().message;
  for (int i = 0; i < 3; ++i) {
    const auto own = session().run(*x), other = on_cpu.run(*y);
    ASSERT_TRUE(own && other);
    for (std::size_t o = 0; o < own->size(); ++o)
      EXPECT_NEAR((*own)[o].floats[0], (*other)[o].floats[0], 1e-4) << "output " << o << " of step " << i;
  }
  for (std::size_t n = 0; n < std::size(fused); ++n) {
    const auto p = session().read(fused[n].parameters().variables()),
               q = on_cpu.read(plain[n].parameters().variables());
    ASSERT_TRUE(p && q);
    for (std::size_t i = 0; i < p->size(); ++i)
      EXPECT_THAT((*p)[i].floats, testing::Pointwise(testing::FloatNear(5e-4f), (*q)[i].floats))
          << "network " << n << " parameter " << i;
  }
}

// A kennel: networks, each with its own rows, weights and gradient. The weights of one alone have an axis of
// one element; a workgroup's memory takes them as others.
TEST_F(RegionTest, GroupedGradientsAreTheSameFusedAndNot) {
  constexpr std::int64_t kRows = 37;
  for (const std::int64_t networks : {5, 1}) {
    const auto description = [&](bool fuse) {
      const nn::Sequential network =
          nn::mlp("net", {6, 20, 12, 3}, {.activation = nn::Activation::relu, .groups = networks, .seed = 2});
      const Tensor x = Variable("x", {networks, kRows, 6}, wave(networks * kRows * 6, 1, 1)).value();
      const Tensor target =
          Variable("target", {networks, kRows, 3}, wave(networks * kRows * 3, 1, 2)).value();
      const Tensor losses = mean(square(network(x) - target), {1, 2});
      ProgramDescription result{.name = "grouped", .fuse = fuse};
      result.outputs = gradients(sum(losses), network.parameters().values()).value();
      result.outputs.push_back(losses);
      return result;
    };
    SCOPED_TRACE(networks);
    expect_same_fused_and_not(description, 2e-6f, [](const Program& fused, const Program&) {
      EXPECT_LE(fused.stats().dispatches, 2u) << fused.explain();
    });
  }
}

// Heads before the rows' axis do not count as networks of a kennel.
TEST_F(RegionTest, ProductsWithFurtherAxesAreTheSameFusedAndNot) {
  constexpr std::int64_t kRows = 19, kHeads = 3, kWidth = 4;
  const auto description = [&](bool fuse) {
    const Tensor h =
        tanh(matmul(Variable("x", {kRows, 6}, wave(kRows * 6, 1, 1)).value(),
                    Variable("w", {6, kHeads * kWidth}, wave(6 * kHeads * kWidth, 1, 2)).value()));
    const Tensor heads = permute(reshape(h, {kRows, kHeads, kWidth}), {1, 0, 2});
    const Tensor mix = tanh(Variable("v", {kHeads, kWidth, 5}, wave(kHeads * kWidth * 5, 1, 3)).value());
    const Tensor y = matmul(heads, mix);
    return ProgramDescription{.name = "heads", .outputs = {y, sum(square(y), {1})}, .fuse = fuse};
  };
  expect_same_fused_and_not(description, 1e-4f);
}

// Sums over gradients that other kernels read too.
TEST_F(RegionTest, NormsOfGradientsThatAreUsedElsewhereAreTheSameFusedAndNot) {
  const auto description = [&](bool fuse) {
    const Tensor v = Variable("v", {8, 12}, wave(96, 1, 2)).value(),
                 w = Variable("w", {8, 12}, wave(96, 1, 3)).value();
    const Tensor x = Variable("x", {300, 8}, wave(2400, 1, 1)).value(),
                 y = Variable("y", {300, 8}, wave(2400, 1, 4)).value();
    const Tensor loss = mean(square(tanh(matmul(x, w)) + tanh(matmul(y, v))));
    const Tensor parameters[] = {w, v};
    const std::vector<Tensor> g = gradients(loss, parameters).value();
    const Tensor doubled = g[0] * 2.0f;
    return ProgramDescription{
        .name = "norms",
        .outputs = {g[0] + g[1], doubled, sum(square(doubled)), sum(square(g[1])) + sum(abs(g[0]))},
        .fuse = fuse};
  };
  expect_same_fused_and_not(description, 1e-5f);
}

// A network too wide for a workgroup's memory runs in separate kernels, with the same results.
TEST_F(RegionTest, NetworksThatDoNotFitAreStillRight) {
  const auto description = [&](bool fuse) {
    const nn::Sequential network =
        nn::mlp("wide", {4, 9000, 9000 / 45, 2}, {.activation = nn::Activation::tanh, .seed = 2});
    return ProgramDescription{
        .name = "wide", .outputs = {network(Variable("x", {3, 4}, wave(12, 1, 1)).value())}, .fuse = fuse};
  };
  expect_same_fused_and_not(description, 2e-5f);
}

// Seven wide layers are all needed at the end: too much for the memory of a workgroup, which a cut of the
// region spares.
TEST_F(RegionTest, RegionsThatAreCutAreTheSameFusedAndNot) {
  constexpr std::int64_t kWidth = 1500;
  const auto description = [&](bool fuse) {
    const Tensor x = Variable("x", {64, 4}, wave(256, 1, 1)).value();
    std::vector<Tensor> layers, weights;
    Tensor loss = zeros({});
    for (int layer = 0; layer < 7; ++layer) {
      weights.push_back(
          Variable("w" + std::to_string(layer), {4, kWidth}, wave(4 * kWidth, 1, layer)).value());
      layers.push_back(tanh(matmul(x, weights.back())));
    }
    for (int layer = 0; layer < 7; ++layer) {
      weights.push_back(
          Variable("v" + std::to_string(layer), {kWidth, 3}, wave(3 * kWidth, 0.03f, layer)).value());
      loss = loss + mean(square(matmul(layers[static_cast<std::size_t>(layer)], weights.back())));
    }
    const std::vector<Tensor> g = gradients(loss, weights).value();
    return ProgramDescription{.name = "cut", .outputs = {loss, g[0], g[6], g[7], g[13]}, .fuse = fuse};
  };
  expect_same_fused_and_not(description, 2e-5f, [](const Program& fused, const Program& plain) {
    EXPECT_LT(fused.stats().kernels, plain.stats().kernels);
  });
}

}  // namespace
}  // namespace imprint
