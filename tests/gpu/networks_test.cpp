// A few training steps of small networks on a device, against the oracle: the losses, then every variable.

#include "compute/graph/gradients/autodiff.h"
#include "compute/nn/losses/losses.h"
#include "compute/nn/modules/convolution.h"
#include "compute/nn/modules/dropout.h"
#include "compute/nn/modules/embedding.h"
#include "compute/nn/modules/norms.h"
#include "compute/nn/modules/pooling.h"
#include "compute/nn/modules/recurrent.h"
#include "compute/nn/modules/sequential.h"
#include "compute/nn/modules/transformer.h"
#include "compute/nn/optimisers/averaging.h"
#include "compute/nn/optimisers/optimiser.h"
#include "compute/nn/optimisers/schedule.h"
#include "tests/gpu/session_test.h"
#include "tests/reference/updates.h"

namespace imprint::nn {
namespace {

class Networks : public test::SessionTest {
 protected:
  // Five steps of AdamW with a schedule, clipped, with an average of the weights.
  void expect_steps(const Tensor& loss, const Parameters& parameters, const Pass& pass) {
    ASSERT_TRUE(loss.ok()) << loss.error().message;
    const auto raw = gradients(loss, parameters.values());
    ASSERT_TRUE(raw) << raw.error().message;
    const auto clipped = clip_by_global_norm(*raw, 1.0);
    ASSERT_TRUE(clipped) << clipped.error().message;
    const ScheduledRate rate("net", Schedule::cosine(0.01, 20).warmed_up(2, 0.5));
    const AveragedParameters average("average", parameters, {.decay = 0.9});
    auto updates =
        adam_w(parameters, {.epsilon = 1e-4, .weight_decay = 0.01}).step(clipped->gradients, rate.value());
    ASSERT_TRUE(updates) << updates.error().message;
    average.follow(*updates);
    rate.advance(*updates);
    pass.finish(*updates);

    reference::Bindings state;  // the initial content, before the device takes it
    for (const Update& update : *updates)
      state[update.target.name()] = reference::initial_values(update.target);
    Program program = compile({.name = "steps", .outputs = {loss}, .updates = *updates});
    for (int step = 0; step < 5; ++step) {
      const double expected = reference::evaluate(loss, state)[0];
      const auto outputs = session().run(program);
      ASSERT_TRUE(outputs) << outputs.error().message;
      EXPECT_NEAR((*outputs)[0].floats[0], expected, 1e-4 * (1 + std::fabs(expected))) << "step " << step;
      reference::run_updates(*updates, state);
    }
    for (const Update& update : *updates) {
      if (update.target.dtype() != DType::float32) continue;
      const std::vector<float> found = floats(update.target);
      const std::vector<double>& wanted = state[update.target.name()];
      for (std::size_t i = 0; i < found.size(); ++i)
        ASSERT_NEAR(found[i], wanted[i], 1e-3 * (1 + std::fabs(wanted[i])))
            << update.target.name() << " " << i;
    }
  }

  static Tensor numbers(const Shape& shape, int seed) {
    return Tensor::from(test::wave(shape.element_count(), 1, seed), shape);
  }
};

TEST_F(Networks, ConvolutionsNormsAndDropout) {
  Sequential block("net.1");
  block.add<Conv2d>(4, 4, 3, ConvOptions{.padding = 1, .seed = 2}).add<BatchNorm>(4);
  Sequential network("net");
  network.add<Conv2d>(2, 4, 3, ConvOptions{.padding = 1, .seed = 1})
      .add(Residual(block))
      .activation(Activation::relu)
      .add<GroupNorm>(2, 4)
      .add(MaxPool())
      .add(Dropout(0.25))
      .add(Flatten())
      .linear(36, 3, {.seed = 3});
  Pass pass("net", 7);
  const Tensor loss =
      cross_entropy(network(numbers({5, 2, 6, 6}, 1), pass), remainder(arange(5), 3),
                    {.class_weight = Tensor::from({1, 2, 0.5f}, {3}), .label_smoothing = 0.1});
  expect_steps(loss, network.parameters(), pass);
}

TEST_F(Networks, CausalTransformer) {
  const Embedding words("words", 11, 8, {.seed = 1});
  const LearnedPositions positions("positions", 6, 8);
  const TransformerEncoderLayer layer("layer", 8, 2,
                                      {.hidden = 16, .dropout = 0.1, .norm_first = true, .seed = 2});
  const Linear head("head", 8, 11, {.seed = 3});
  Parameters parameters;
  parameters.add("words", words.parameters());
  parameters.add("positions", positions.parameters());
  parameters.add("layer", layer.parameters());
  parameters.add("head", head.parameters());
  Pass pass("net", 3);
  const Tensor ids = remainder(reshape(arange(18), {3, 6}) * 7, 11);
  const Tensor logits = head(layer(positions(words(ids)), {.causal = true}, pass));
  expect_steps(cross_entropy(logits, remainder(ids + 3, 11)), parameters, pass);
}

TEST_F(Networks, RecurrentLayers) {
  for (const Cell cell : {Cell::gru, Cell::lstm}) {
    const Recurrent layer("r", cell, 3, 5, {.bidirectional = true, .seed = 1});
    const RmsNorm norm("norm", 10);
    const Linear head("head", 10, 2, {.seed = 2});
    Parameters parameters;
    parameters.add("r", layer.parameters());
    parameters.add("norm", norm.parameters());
    parameters.add("head", head.parameters());
    Pass pass("net", 3);
    const Tensor y = head(norm(layer(numbers({4, 6, 3}, 1), pass)));
    expect_steps(smooth_l1_loss(y, numbers({4, 6, 2}, 5), 0.5), parameters, pass);
  }
}

// Two networks of one shape: eyes, a memory, attention and a head.
TEST_F(Networks, AKennel) {
  constexpr std::int64_t kKennel = 2;
  Sequential eye("eye");
  eye.add<Conv2d>(2, 3, 3, ConvOptions{.networks = kKennel, .seed = 1})
      .add<BatchNorm>(3, BatchNormOptions{.groups = kKennel})
      .activation(Activation::relu)
      .add(OverGroups(MaxPool()))
      .add(OverGroups(Flatten()))
      .linear(12, 4, {.groups = kKennel, .seed = 2});
  const Recurrent memory = gru("memory", 4, 4, {.groups = kKennel, .seed = 3});
  const MultiHeadAttention attend("attend", 4, 2, {.groups = kKennel, .seed = 4});
  const Parameters parameters = parameters_of("eye", eye, "memory", memory, "attend", attend);
  Pass pass("net", 7);
  const Tensor seen = eye(numbers({kKennel, 6, 2, 6, 6}, 1), pass);
  const Tensor steps = memory(reshape(seen, {kKennel, 2, 3, 4}), pass);
  const Tensor loss =
      mse_loss(attend(steps, {.causal = true}, pass), numbers({kKennel, 2, 3, 4}, 5), Reduction::group_mean);
  expect_steps(sum(loss), parameters, pass);
}

// Large enough for products over windows (compute/graph/passes/window_products.h): strides, dilation, groups,
// asymmetric padding, one and three axes of places, and transposed convolutions.
TEST_F(Networks, GradientsOfLargeConvolutions) {
  const auto check = [&](const char* name, const Tensor& x, const Tensor& w, const Tensor& y) {
    SCOPED_TRACE(name);
    const Tensor targets[] = {x, w};
    const auto found = gradients(sum(y * numbers(y.shape(), 3)), targets);
    ASSERT_TRUE(found) << found.error().message;
    const std::vector<Tensor> outputs{y, (*found)[0], (*found)[1]};
    const auto expected = reference::evaluate_all(outputs);
    Program program = compile({.name = name, .outputs = outputs});
    const auto values = session().run(program);
    ASSERT_TRUE(values) << values.error().message;
    for (std::size_t k = 0; k < outputs.size(); ++k)
      for (std::size_t i = 0; i < expected[k].size(); ++i)
        ASSERT_NEAR((*values)[k].floats[i], expected[k][i], 1e-4 * (1 + std::fabs(expected[k][i])))
            << "output " << k << " at " << i;
  };
  const Tensor image = numbers({2, 16, 15, 17}, 1);  // the images' places are no whole vectors
  const auto convolved = [&](const char* name, const Tensor& w, const ConvolutionOptions& options) {
    check(name, image, w, convolution(image, w, Tensor(), options));
  };
  convolved("same places", numbers({16, 16, 3, 3}, 2), {.padding = 1});
  convolved("strides", numbers({32, 16, 3, 4}, 2), {.stride = {1, 2}, .padding = {0, 2}});
  const Tensor grey = numbers({17, 1, 24, 24}, 1), first = numbers({16, 1, 3, 3}, 2);
  check("one channel", grey, first, convolution(grey, first, Tensor()));
  const Tensor pair = numbers({2, 32, 13, 12}, 1), of_groups = numbers({32, 16, 3, 3}, 2);
  check("groups and dilation", pair, of_groups,
        convolution(pair, of_groups, Tensor(), {.padding = {2, 3}, .dilation = {2, 3}, .groups = 2}));
  const Tensor line = numbers({2, 32, 300}, 1), along = numbers({32, 32, 5}, 2);
  check("line", line, along, convolution(line, along, Tensor(), {.stride = 3, .padding = 2}));
  const Tensor volume = numbers({1, 16, 5, 6, 7}, 1), inside = numbers({16, 16, 3, 3, 3}, 2);
  check("volume", volume, inside, convolution(volume, inside, Tensor(), {.padding = 1}));
  const Tensor small = numbers({2, 16, 8, 9}, 1), wide = numbers({16, 32, 4, 4}, 2);
  check("transposed", small, wide,
        transposed_convolution(small, wide, Tensor(), {.stride = 2, .padding = 1}));
}

}  // namespace
}  // namespace imprint::nn
