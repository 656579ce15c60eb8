// Layers of a kennel: three networks of one shape give what each gives alone, forward and backward.

#include <gtest/gtest.h>

#include <functional>

#include "compute/graph/gradients/autodiff.h"
#include "compute/nn/module.h"
#include "compute/nn/modules/activation.h"
#include "compute/nn/modules/convolution.h"
#include "compute/nn/modules/embedding.h"
#include "compute/nn/modules/norms.h"
#include "compute/nn/modules/pooling.h"
#include "compute/nn/modules/recurrent.h"
#include "compute/nn/modules/sequential.h"
#include "compute/nn/modules/transformer.h"
#include "tests/unit/nn_check.h"

namespace imprint::nn {
namespace {

constexpr std::int64_t kNetworks = 3;

std::vector<float> narrow_waves(std::int64_t count, int seed) {
  const std::vector<double> values = test::waves(count, 1, seed);
  return {values.begin(), values.end()};
}

Shape with_networks(const Shape& one) {
  Shape all{kNetworks};
  for (const std::int64_t extent : one.extents()) all.append(extent);
  return all;
}

std::vector<float> part_of(const std::vector<float>& all, std::int64_t network) {
  const auto count = static_cast<std::ptrdiff_t>(all.size()) / kNetworks;
  return {all.begin() + network * count, all.begin() + (network + 1) * count};
}

class Kennel : public testing::Test {
 protected:
  using Make = std::function<Module(std::int64_t groups)>;

  struct Side {
    Module layer;
    Pass pass;
    Variable x;
    Tensor y;
    std::vector<Tensor> slopes;  // by x, then by the parameters
  };

  // trains: with a pass, whose statistics count too.
  Side side(const Make& make, std::int64_t groups, const Shape& shape, bool trains) {
    Side made{.layer = make(groups), .pass = {}, .x = {}, .y = {}, .slopes = {}};
    if (trains) made.pass = Pass(text("pass", groups), 1);
    const Shape whole = groups > 0 ? with_networks(shape) : shape;
    made.x =
        Variable(text("x", groups), whole, std::span<const float>(narrow_waves(whole.element_count(), 5)));
    made.y = made.layer(made.x.value(), made.pass);
    EXPECT_TRUE(made.y.ok()) << made.y.error().message;
    if (!made.y.ok()) return made;
    std::vector<Tensor> targets = made.layer.parameters().values();
    targets.insert(targets.begin(), made.x.value());
    // An equal factor for each network.
    Shape one;
    for (int axis = groups > 0 ? 1 : 0; axis < made.y.rank(); ++axis) one.append(made.y.extent(axis));
    const Tensor factor = Tensor::from(narrow_waves(one.element_count(), 9), one);
    const auto slopes = gradients(sum(made.y * factor), targets);
    EXPECT_TRUE(slopes) << slopes.error().message;
    if (slopes) made.slopes = *slopes;
    return made;
  }

  std::vector<float> value(const Tensor& tensor) {
    const auto found = session_.evaluate(tensor);
    EXPECT_TRUE(found) << (found ? "" : found.error().message);
    return found ? found->floats : std::vector<float>();
  }

  void copy_network(const Parameters& from, const Parameters& to, std::int64_t network) {
    ASSERT_EQ(from.size(), to.size());
    const auto contents = session_.read(from.variables());
    ASSERT_TRUE(contents);
    for (std::size_t i = 0; i < from.size(); ++i) {
      if (from[i].variable.dtype() != DType::float32) continue;
      EXPECT_EQ(from[i].name, to[i].name);
      ASSERT_TRUE(session_.write(
          to[i].variable, HostTensor::from(part_of((*contents)[i].floats, network), to[i].variable.shape())));
    }
  }

  void expect_part(const std::vector<float>& all, std::int64_t network, const std::vector<float>& alone,
                   const std::string& what) {
    const std::vector<float> part = part_of(all, network);
    ASSERT_EQ(part.size(), alone.size()) << what;
    for (std::size_t i = 0; i < part.size(); ++i)
      ASSERT_NEAR(part[i], alone[i], 2e-5 * (1 + std::fabs(alone[i]))) << what << " element " << i;
  }

  void advance(const Pass& pass) {
    std::vector<Update> updates;
    pass.finish(updates);
    if (updates.empty()) return;
    auto program = Program::compile(*runtime_, {.name = "statistics", .updates = updates});
    ASSERT_TRUE(program) << program.error().message;
    ASSERT_TRUE(session_.run(*program));
  }

  // shape: of one network's input. Layers that learn start with different weights.
  void expect_equal(const std::string& name, const Make& make, const Shape& shape, bool trains = false) {
    SCOPED_TRACE(name);
    const Side all = side(make, kNetworks, shape, trains), alone = side(make, 0, shape, trains);
    ASSERT_FALSE(testing::Test::HasFailure());
    const Parameters together = all.layer.parameters(), own = alone.layer.parameters();
    const std::vector<float> y = value(all.y), x = value(all.x.value());
    std::vector<std::vector<float>> slopes;
    for (const Tensor& slope : all.slopes) slopes.push_back(value(slope));
    for (std::int64_t network = 0; network < kNetworks; ++network) {
      copy_network(together, own, network);
      copy_network(all.layer.buffers(), alone.layer.buffers(), network);
      ASSERT_TRUE(session_.write(alone.x, HostTensor::from(part_of(x, network), shape)));
      expect_part(y, network, value(alone.y), "output");
      for (std::size_t i = 0; i < slopes.size(); ++i)
        expect_part(slopes[i], network, value(alone.slopes[i]),
                    i == 0 ? "gradient by x" : "gradient by " + together[i - 1].name);
    }
    if (!trains) return;
    const std::int64_t last = kNetworks - 1;
    advance(all.pass);
    advance(alone.pass);
    for (std::size_t i = 0; i + 1 < all.layer.buffers().size(); ++i)
      expect_part(value(all.layer.buffers()[i].value()), last, value(alone.layer.buffers()[i].value()),
                  all.layer.buffers()[i].name);
  }

  std::unique_ptr<Runtime> runtime_ = Runtime::create_on_cpu();
  Session session_{*runtime_};
};

TEST_F(Kennel, LinearLayersAndNorms) {
  expect_equal("linear", [](auto n) { return Linear("l", 4, 3, {.groups = n, .seed = 1}); }, {2, 5, 4});
  expect_equal("layer norm", [](auto n) { return LayerNorm("l", 4, {.groups = n}); }, {2, 5, 4});
  expect_equal("rms norm", [](auto n) { return RmsNorm("l", 4, {.groups = n}); }, {2, 5, 4});
  expect_equal("prelu", [](auto n) { return PRelu("p", 4, 0.25, n); }, {2, 4, 3});
  for (const bool trains : {false, true})
    expect_equal(
        "batch norm", [](auto n) { return BatchNorm("b", 3, {.groups = n}); }, {4, 3, 2}, trains);
  expect_equal("group norm", [](auto n) { return GroupNorm("g", 2, 4, {.networks = n}); }, {2, 4, 3});
  expect_equal("feed forward", [](auto n) { return FeedForward("f", 4, 6, {.groups = n, .seed = 1}); },
               {2, 5, 4});
  expect_equal("gated feed forward",
               [](auto n) { return GatedFeedForward("f", 4, 6, {.groups = n, .seed = 1}); }, {2, 5, 4});
}

TEST_F(Kennel, Convolutions) {
  expect_equal("conv1d",
               [](auto n) {
                 return Conv1d("c", 4, 6, 3,
                               {.stride = 2, .padding = 1, .groups = 2, .networks = n, .seed = 1});
               },
               {2, 4, 7});
  expect_equal("conv2d",
               [](auto n) {
                 return Conv2d("c", 2, 3, 3,
                               {.padding = 1, .padding_mode = PadMode::reflect, .networks = n, .seed = 1});
               },
               {2, 2, 4, 5});
  expect_equal("conv3d", [](auto n) { return Conv3d("c", 2, 3, 2, {.networks = n, .seed = 1}); },
               {2, 2, 3, 3, 3});
  expect_equal("transposed",
               [](auto n) {
                 return ConvTranspose2d("c", 2, 3, 3, {.stride = 2, .padding = 1, .networks = n, .seed = 1});
               },
               {2, 2, 4, 3});
  expect_equal(
      "separable",
      [](auto n) { return DepthwiseSeparableConv2d("c", 2, 3, 3, {.padding = 1, .networks = n, .seed = 1}); },
      {2, 2, 4, 3});
  // An eye: layers without parameters see one long batch.
  expect_equal("network",
               [](std::int64_t n) {
                 const auto over = [&](Module layer) { return n > 0 ? Module(OverGroups(layer)) : layer; };
                 Sequential eye("eye");
                 eye.add<Conv2d>(2, 4, 3, ConvOptions{.padding = 1, .networks = n, .seed = 1})
                     .add<BatchNorm>(4, BatchNormOptions{.groups = n})
                     .activation(Activation::relu)
                     .add(over(MaxPool()))
                     .add(over(Flatten()))
                     .linear(16, 3, {.groups = n, .seed = 2});
                 return Module(eye);
               },
               {2, 2, 4, 4});
  EXPECT_FALSE(Conv2d("c", 2, 3, 3, {.networks = 3})(zeros({2, 2, 2, 4, 4})).ok());
  EXPECT_FALSE(Conv2d("c", 2, 3, 3, {.networks = 3})(zeros({3, 2, 4, 4})).ok());
}

TEST_F(Kennel, RecurrentLayers) {
  for (const Cell cell : {Cell::rnn, Cell::gru, Cell::lstm})
    expect_equal(text("cell ", static_cast<int>(cell)),
                 [&](auto n) {
                   return Recurrent("r", cell, 3, 4,
                                    {.layers = 2, .bidirectional = true, .groups = n, .seed = 1});
                 },
                 {2, 5, 3});
  expect_equal("projected", [](auto n) { return lstm("r", 3, 5, {.projection = 2, .groups = n, .seed = 1}); },
               {2, 4, 3});
  const Recurrent layer = gru("r", 3, 4, {.groups = 2});
  EXPECT_EQ(layer(zeros({2, 5, 3})).error().message,
            "recurrent 'r': found input [2, 5, 3], expected [2, batch, steps, 3] with 1 step or more");
}

TEST_F(Kennel, AttentionAndTransformers) {
  expect_equal(
      "attention",
      [](std::int64_t n) {
        const MultiHeadAttention layer("a", 8, 4, {.rotary = true, .key_heads = 2, .groups = n, .seed = 1});
        return Module([layer](const Tensor& x) { return layer(x, {.causal = true}); }, layer.parameters());
      },
      {2, 5, 8});
  expect_equal("encoder",
               [](auto n) {
                 return TransformerEncoderLayer("e", 8, 2,
                                                {.hidden = 12, .alibi = true, .groups = n, .seed = 1});
               },
               {2, 5, 8});
  expect_equal("decoder",
               [](std::int64_t n) {
                 const TransformerDecoderLayer layer(
                     "d", 8, 2, {.hidden = 12, .norm_first = true, .groups = n, .seed = 1});
                 return Module([layer](const Tensor& x) { return layer(x, 0.5f * x + 0.1f); },
                               layer.parameters());
               },
               {2, 5, 8});
  // Step by step, with caches.
  const TransformerEncoder network("t", 2, 8, 2,
                                   {.hidden = 12, .norm_first = true, .rotary = true, .groups = kNetworks});
  const Tensor x =
      Variable("steps", {kNetworks, 2, 3, 8}, std::span<const float>(narrow_waves(kNetworks * 48, 3)))
          .value();
  const auto caches = network.caches("cache", 2, 4);
  std::vector<Update> updates;
  const std::vector<float> whole = value(network(x, {.causal = true})),
                           stepwise = value(network.cached(x, caches, updates));
  ASSERT_EQ(whole.size(), stepwise.size());
  for (std::size_t i = 0; i < whole.size(); ++i) ASSERT_NEAR(whole[i], stepwise[i], 1e-5);
}

TEST_F(Kennel, Embeddings) {
  const Tensor ids = Tensor::from_ints(std::vector<int>{0, 4, 2, -1, 5, 1, 3, 2, 2, 1, 0, 4}, {3, 2, 2});
  for (const std::int64_t padding : {-1, 2}) {
    const Embedding all("e", 5, 4, {.padding_index = padding, .groups = 3, .seed = 1}),
        alone("a", 5, 4, {.padding_index = padding, .seed = 1});
    const Tensor factor = Tensor::from(narrow_waves(16, 2), {2, 2, 4});
    const Tensor y = all(ids);
    const std::vector<Tensor> targets = all.parameters().values(), own = alone.parameters().values();
    const auto slopes = gradients(sum(y * factor), targets);
    ASSERT_TRUE(slopes) << slopes.error().message;
    const std::vector<float> found = value(y), by_weight = value((*slopes)[0]),
                             logits = value(all.logits(reshape(y, {3, 4, 4})));
    for (std::int64_t network = 0; network < 3; ++network) {
      copy_network(all.parameters(), alone.parameters(), network);
      const Tensor z = alone(squeeze(narrow(ids, 0, network, 1), 0));
      const auto slope = gradients(sum(z * factor), own);
      ASSERT_TRUE(slope);
      expect_part(found, network, value(z), "rows");
      expect_part(by_weight, network, value((*slope)[0]), "gradient");
      expect_part(logits, network, value(alone.logits(reshape(z, {4, 4}))), "logits");
    }
  }
  EXPECT_FALSE(Embedding("e", 5, 4, {.groups = 2})(ids).ok());
}

TEST_F(Kennel, LearnedPositions) {
  const LearnedPositions all("p", 5, 4, {.groups = 3, .seed = 1}), alone("a", 5, 4, {.seed = 1});
  const Tensor x = Tensor::from(narrow_waves(48, 2), {3, 2, 2, 4});
  const Tensor first = Tensor::from_ints(std::vector<int>{2}, {1});
  const std::vector<float> from_start = value(all(x)), later = value(all(x, first));
  for (std::int64_t network = 0; network < 3; ++network) {
    copy_network(all.parameters(), alone.parameters(), network);
    const Tensor own = squeeze(narrow(x, 0, network, 1), 0);
    expect_part(from_start, network, value(alone(own)), "from the start");
    expect_part(later, network, value(alone(own, first)), "later");
  }
  EXPECT_FALSE(all(squeeze(narrow(x, 0, 0, 1), 0)).ok());
}

}  // namespace
}  // namespace imprint::nn
