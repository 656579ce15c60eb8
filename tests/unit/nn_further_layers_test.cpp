// Deformable convolutions, decoders, weights in few bits and Adam with small moments.

#include <gtest/gtest.h>

#include <cmath>

#include "compute/nn/lora.h"
#include "compute/nn/losses/losses.h"
#include "compute/nn/modules/deformable.h"
#include "compute/nn/modules/sequential.h"
#include "compute/nn/modules/transformer.h"
#include "compute/nn/optimisers/optimiser.h"
#include "compute/nn/quantised_parameters.h"
#include "tests/reference/updates.h"
#include "tests/unit/nn_check.h"

namespace imprint::nn {
namespace {

using test::waves;
using Numbers = std::vector<double>;

std::size_t place(std::int64_t i) { return static_cast<std::size_t>(i); }

// One channel of 5 x 6 pixels, read bilinearly; 0 outside.
double read_between(const Numbers& x, std::int64_t channel, double y, double z) {
  double sum = 0;
  for (std::int64_t i = 0; i < 5; ++i)
    for (std::int64_t j = 0; j < 6; ++j)
      sum += std::fmax(0, 1 - std::fabs(y - static_cast<double>(i))) *
             std::fmax(0, 1 - std::fabs(z - static_cast<double>(j))) * x[place((channel * 5 + i) * 6 + j)];
  return sum;
}

TEST(DeformConv2d, ReadsAtMovedPlaces) {
  // Two parts of two channels each; groups of one channel each; kernel 2 x 3, stride (2, 1), padding 1.
  const DeformConv2d layer("d", 4, 8, {2, 3}, {.stride = {2, 1}, .padding = 1, .groups = 4, .seed = 2});
  const Tensor x = input("x", {1, 4, 5, 6}), offset = input("offset", {1, 24, 3, 6}),
               mask = input("mask", {1, 12, 3, 6});
  const Numbers v = waves(120, 1, 1), moves = waves(432, 1.9, 2), factors = waves(216, 1, 3);
  const Numbers w = reference::initial_values(layer.parameters()[0].variable),
                b = reference::initial_values(layer.parameters()[1].variable);
  ASSERT_EQ(layer.parameters()[0].variable.shape(), (Shape{8, 1, 2, 3}));
  Numbers expected;
  for (std::int64_t o = 0; o < 8; ++o)
    for (std::int64_t i = 0; i < 3; ++i)
      for (std::int64_t j = 0; j < 6; ++j) {
        double sum = b[place(o)];
        const std::int64_t channel = o / 2, part = channel / 2;
        for (std::int64_t k = 0; k < 6; ++k) {
          const auto moved = [&](std::int64_t axis) {
            return moves[place(((part * 12 + 2 * k + axis) * 3 + i) * 6 + j)];
          };
          sum += w[place(o * 6 + k)] * factors[place(((part * 6 + k) * 3 + i) * 6 + j)] *
                 read_between(v, channel, static_cast<double>(2 * i - 1 + k / 3) + moved(0),
                              static_cast<double>(j - 1 + k % 3) + moved(1));
        }
        expected.push_back(sum);
      }
  const reference::Bindings bindings{{"x", v}, {"offset", moves}, {"mask", factors}};
  const Tensor y = layer(x, offset, mask);
  ASSERT_TRUE(y.ok()) << y.error().message;
  const Numbers found = reference::evaluate(y, bindings);
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-6) << i;
  test::expect_sound(
      y, {.inputs = {x, offset, mask},
          .leaves = {x, offset, mask, layer.parameters()[0].value(), layer.parameters()[1].value()},
          .bindings = bindings});
}

TEST(DeformConv2d, WithoutMovesIsAConvolution) {
  const DeformConv2d layer("d", 3, 4, 3, {.padding = 1, .dilation = 2, .seed = 2});
  const Conv2d plain("d", 3, 4, 3, {.padding = 1, .dilation = 2, .seed = 2});  // the same name: equal weights
  const Tensor x = input("x", {2, 3, 6, 5});
  const reference::Bindings bindings{{"x", waves(180)}};
  const Numbers found = reference::evaluate(layer(x, zeros({2, 18, 4, 3})), bindings),
                expected = reference::evaluate(plain(x), bindings);
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-6) << i;
  EXPECT_NE(layer(x, zeros({2, 17, 4, 3})).error().message.find("expected offsets [2, 18 parts, 4, 3]"),
            std::string::npos);
  EXPECT_FALSE(layer(x, zeros({2, 18, 4, 3}), zeros({2, 8, 4, 3})).ok());
  EXPECT_FALSE(layer(input("y", {2, 4, 6, 5}), zeros({2, 18, 4, 3})).ok());
}

TEST(TransformerDecoder, IsItsLayersAndTheCacheAgrees) {
  const TransformerDecoder decoder("net", 2, 8, 2, {.hidden = 12, .norm_first = true, .seed = 3});
  const TransformerDecoderLayer first("net.layers.0", 8, 2, {.hidden = 12, .norm_first = true, .seed = 3}),
      second("net.layers.1", 8, 2, {.hidden = 12, .norm_first = true, .seed = 3});
  const LayerNorm norm("net.norm", 8);
  EXPECT_NE(decoder.parameters().find("layers.1.multihead_attn.in_proj_weight"), nullptr);
  EXPECT_NE(decoder.parameters().find("norm.weight"), nullptr);
  const std::vector<double> values = waves(32), keys = waves(48, 1, 4);
  const Tensor x = Tensor::from(std::vector<float>(values.begin(), values.end()), {1, 4, 8}),
               memory = Tensor::from(std::vector<float>(keys.begin(), keys.end()), {1, 6, 8});
  const auto runtime = Runtime::create_on_cpu();
  Session session(*runtime);
  const Tensor whole = decoder(x, memory);
  const auto apart = session.evaluate(max(abs(whole - norm(second(first(x, memory), memory)))));
  ASSERT_TRUE(apart) << apart.error().message;
  EXPECT_EQ(apart->floats[0], 0);

  const std::vector<AttentionCache> caches = decoder.caches("cache", 1, 4);
  std::vector<Update> updates;
  const Tensor next = input("next", {1, 1, 8}), step = decoder.cached(next, memory, {}, caches, updates);
  auto program =
      Program::compile(*runtime, {.name = "next", .inputs = {next}, .outputs = {step}, .updates = updates});
  ASSERT_TRUE(program) << program.error().message;
  const auto expected = session.evaluate(whole);
  for (std::size_t t = 0; t < 4; ++t) {
    const auto at = values.begin() + static_cast<std::ptrdiff_t>(8 * t);
    const HostTensor given = HostTensor::from(std::vector<float>(at, at + 8), {1, 1, 8});
    const auto found = session.run(*program, std::span(&given, 1));
    ASSERT_TRUE(found) << found.error().message;
    for (std::size_t i = 0; i < 8; ++i)
      EXPECT_NEAR((*found)[0].floats[i], expected->floats[8 * t + i], 1e-5) << t;
  }
  EXPECT_FALSE(decoder.cached(next, memory, {}, {}, updates).ok());
}

class QuantisedNetwork : public testing::Test {
 protected:
  float number(const Tensor& tensor) {
    const auto value = session_.evaluate(tensor);
    EXPECT_TRUE(value) << (value ? "" : value.error().message);
    return value ? value->floats[0] : NAN;
  }
  void run(const std::vector<Update>& updates, int times = 1) {
    auto program = Program::compile(*runtime_, {.name = "run", .updates = updates});
    ASSERT_TRUE(program) << program.error().message;
    for (int i = 0; i < times; ++i) ASSERT_TRUE(session_.run(*program));
  }
  std::unique_ptr<Runtime> runtime_ = Runtime::create_on_cpu();
  Session session_{*runtime_};
};

TEST_F(QuantisedNetwork, WeightsKeepTheirValuesToHalfAStep) {
  const Sequential network = mlp("net", {5, 9, 3}, {.seed = 1});
  const Parameters weights = network.parameters().matching("*.weight");
  const struct {
    WeightCode code;
    double half_step;
    std::uint64_t bytes;  // 45 and 27 weights in blocks of 16, with a scale of 4 bytes each
  } cases[] = {{WeightCode::int8, 0.5 / 127, 5 * (16 + 4)},
               {WeightCode::int4, 0.5 / 7, 5 * (8 + 4)},
               {WeightCode::normal4, 0.5 * (1 - 0.6961928), 5 * (8 + 4)}};
  for (const auto& each : cases) {
    const QuantisedParameters small(text("small", each.bytes, each.half_step), weights,
                                    {.code = each.code, .block = 16});
    EXPECT_EQ(small.bytes(), each.bytes);
    run(small.pack());
    double worst = 0;
    for (const Parameter& weight : weights) {
      const auto exact = session_.evaluate(weight.value()), coded = session_.evaluate(small(weight.value()));
      ASSERT_TRUE(exact && coded) << coded.error().message;
      for (std::size_t i = 0; i < exact->floats.size(); ++i) {
        float scale = 0;
        for (std::size_t k = i / 16 * 16; k < std::min(i / 16 * 16 + 16, exact->floats.size()); ++k)
          scale = std::fmax(scale, std::fabs(exact->floats[k]));
        const double error = std::fabs(exact->floats[i] - coded->floats[i]);
        EXPECT_LE(error, each.half_step * scale * 1.0001) << i;
        worst = std::fmax(worst, error);
      }
    }
    EXPECT_GT(worst, 0);
  }
}

TEST_F(QuantisedNetwork, LoraTunesBesideCodedWeights) {
  const Sequential network = mlp("net", {3, 8, 2}, {.activation = Activation::tanh, .seed = 1});
  const Parameters weights = network.parameters().matching("*.weight");
  const QuantisedParameters small("small", weights, {.code = WeightCode::normal4, .block = 8});
  run(small.pack());
  const Lora lora("tuned", weights, {.rank = 2});
  const std::vector<double> values = waves(15);
  const Tensor x = Tensor::from(std::vector<float>(values.begin(), values.end()), {5, 3});
  const Tensor loss = mse_loss(small(lora(network(x))), zeros({5, 2}) + 0.5f);
  const auto slopes = gradients(loss, lora.parameters().values());
  ASSERT_TRUE(slopes) << slopes.error().message;
  const Adam adam(lora.parameters());
  const auto updates = adam.step(*slopes, 0.05);
  ASSERT_TRUE(updates);
  const float before = number(loss);
  run(*updates, 60);
  EXPECT_LT(number(loss), 0.3f * before);
  // A program of it does not read the weights' own variables.
  for (const Parameter& weight : weights) run({Update::assign(weight.variable, zeros_like(weight.value()))});
  EXPECT_LT(number(loss), 0.3f * before);
}

// Minimises sum of curves (w - 1)^2 over 300 numbers with very different slopes.
class SmallMoments : public QuantisedNetwork {
 protected:
  template <class O>
  std::vector<float> after(const std::string& name, int steps, float rate, O make) {
    const Variable w(name, {300}, std::span<const float>(std::vector<float>(300, 0.0f)));
    Parameters parameters;
    parameters.add("w", w);
    const Tensor curves = exp2(cast(remainder(arange(300), 16), DType::float32) - 12.0f);
    const auto optimiser = make(parameters);
    const auto slopes = gradients(sum(curves * square(w.value() - 1.0f)), parameters.values());
    const auto updates = optimiser.step(*slopes, Tensor(rate));
    EXPECT_TRUE(updates) << updates.error().message;
    run(*updates, steps);
    return session_.evaluate(w.value())->floats;
  }
};

TEST_F(SmallMoments, FollowAdamInAQuarterOfItsMemory) {
  std::uint64_t bytes = 0;
  const auto small = after("small", 10, 0.01f, [&](const Parameters& p) {
    EightBitAdam made(p, {.block = 100});
    for (const Parameter& each : made.state())
      if (each.name != "step") bytes += each.variable.bytes();
    return made;
  });
  const auto exact = after("exact", 10, 0.01f, [](const Parameters& p) { return Adam(p); });
  EXPECT_EQ(bytes, 300 * 2 + 3 * 8u);
  for (std::size_t i = 0; i < 300; ++i) EXPECT_NEAR(small[i], exact[i], 0.08f * exact[i]) << i;
}

TEST_F(SmallMoments, SlowAveragesMove) {
  // The first gradients are large: rounding to the nearest code would keep the second moment there.
  const auto found =
      after("slow", 600, 0.02f, [](const Parameters& p) { return EightBitAdam(p, {.block = 64}); });
  for (std::size_t i = 0; i < 300; ++i) EXPECT_NEAR(found[i], 1, 0.02) << i;
}

TEST_F(SmallMoments, AFrozenStepChangesNothing) {
  const Variable w("w", {3}, std::vector<float>{1, 2, 3});
  Parameters parameters;
  parameters.add("w", w);
  const EightBitAdam optimiser(parameters, {.weight_decay = 0.1, .decoupled = true});
  const Tensor slope = Tensor::from({NAN, 1, 2}, {3});
  const auto updates = optimiser.step(std::span(&slope, 1), 0.1f, Tensor(0.0f));
  ASSERT_TRUE(updates) << updates.error().message;
  run(*updates);
  EXPECT_EQ(session_.evaluate(w.value())->floats, (std::vector<float>{1, 2, 3}));
  EXPECT_EQ(number(sum(cast(optimiser.state().find("step")->value(), DType::float32))), 0);
  EXPECT_EQ(number(sum(optimiser.state().find("second_scales.w")->value())), 0);
}

}  // namespace
}  // namespace imprint::nn
