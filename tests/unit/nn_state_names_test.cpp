// State dictionaries of modules without golden values (nn_golden_test.cpp): the names and shapes that
// PyTorch, torchvision and Hugging Face give them, and a file that moves them to another network.

#include <gtest/gtest.h>

#include "compute/model/state_dict.h"
#include "compute/nn/modules/convolution.h"
#include "compute/nn/modules/deformable.h"
#include "compute/nn/modules/embedding.h"
#include "compute/nn/modules/norms.h"
#include "compute/nn/modules/sequential.h"
#include "compute/nn/modules/transformer.h"

namespace imprint::nn {
namespace {

class StateNames : public testing::Test {
 protected:
  // Two networks differ in their weights alone: the file of the first has these arrays, and the second has
  // them after it loads the file.
  template <class Make>
  void expect_state(const Make& make, const std::string& expected) {
    const auto first = make(1), second = make(2);
    const Parameters from = all_of(first), to = all_of(second);
    const auto file = save_state(session_, from, "net.");
    ASSERT_TRUE(file) << file.error().message;
    std::string names;
    for (const auto& [name, array] : file->arrays) names += name.substr(4) + array.shape.text() + " ";
    EXPECT_EQ(names, expected);
    const Result<> loaded = load_state(session_, to, *file, "net.");
    ASSERT_TRUE(loaded) << loaded.error().message;
    const auto again = save_state(session_, to, "net.");
    ASSERT_TRUE(again);
    for (const auto& [name, array] : file->arrays)
      EXPECT_EQ(again->arrays.at(name).bytes, array.bytes) << name;
  }

  std::unique_ptr<Runtime> runtime_ = Runtime::create_on_cpu();
  Session session_{*runtime_};

 private:
  template <class Layer>
  static Parameters all_of(const Layer& layer) {
    Parameters all = layer.parameters();
    if constexpr (requires { layer.buffers(); }) all.add("", layer.buffers());
    return all;
  }
};

using Seed = std::uint64_t;

TEST_F(StateNames, OfTransformers) {
  expect_state(
      [](Seed seed) {
        return TransformerEncoder("m", 1, 8, 2, {.hidden = 16, .norm_first = true, .seed = seed});
      },
      "layers.0.linear1.bias[16] layers.0.linear1.weight[16, 8] layers.0.linear2.bias[8] "
      "layers.0.linear2.weight[8, 16] layers.0.norm1.bias[8] layers.0.norm1.weight[8] layers.0.norm2.bias[8] "
      "layers.0.norm2.weight[8] layers.0.self_attn.in_proj_bias[24] layers.0.self_attn.in_proj_weight[24, 8] "
      "layers.0.self_attn.out_proj.bias[8] layers.0.self_attn.out_proj.weight[8, 8] norm.bias[8] "
      "norm.weight[8] ");
  expect_state(
      [](Seed seed) { return TransformerDecoder("m", 1, 8, 2, {.hidden = 16, .seed = seed}); },
      "layers.0.linear1.bias[16] layers.0.linear1.weight[16, 8] layers.0.linear2.bias[8] "
      "layers.0.linear2.weight[8, 16] layers.0.multihead_attn.in_proj_bias[24] "
      "layers.0.multihead_attn.in_proj_weight[24, 8] layers.0.multihead_attn.out_proj.bias[8] "
      "layers.0.multihead_attn.out_proj.weight[8, 8] layers.0.norm1.bias[8] layers.0.norm1.weight[8] "
      "layers.0.norm2.bias[8] layers.0.norm2.weight[8] layers.0.norm3.bias[8] layers.0.norm3.weight[8] "
      "layers.0.self_attn.in_proj_bias[24] layers.0.self_attn.in_proj_weight[24, 8] "
      "layers.0.self_attn.out_proj.bias[8] layers.0.self_attn.out_proj.weight[8, 8] ");
  expect_state([](Seed seed) { return FeedForward("m", 8, 16, {.seed = seed}); },
               "linear1.bias[16] linear1.weight[16, 8] linear2.bias[8] linear2.weight[8, 16] ");
  // LLaMA's.
  expect_state(
      [](Seed seed) {
        return GatedFeedForward("m", 8, 16, {.activation = Activation::silu, .bias = false, .seed = seed});
      },
      "down_proj.weight[8, 16] gate_proj.weight[16, 8] up_proj.weight[16, 8] ");
  expect_state([](Seed seed) { return LearnedPositions("m", 7, 8, {.seed = seed}); }, "weight[7, 8] ");
}

TEST_F(StateNames, OfConvolutions) {
  expect_state([](Seed seed) { return DeformConv2d("m", 4, 6, 3, {.groups = 2, .seed = seed}); },
               "bias[6] weight[6, 2, 3, 3] ");
  expect_state(
      [](Seed seed) {
        return Conv2d("m", 4, 6, 3, {.weight_form = WeightForm::spectral_norm, .seed = seed});
      },
      "bias[6] parametrizations.weight.0._u[6] parametrizations.weight.0._v[36] "
      "parametrizations.weight.original[6, 4, 3, 3] ");
  expect_state([](Seed seed) { return DepthwiseSeparableConv2d("m", 4, 6, 3, {.seed = seed}); },
               "depthwise.bias[4] depthwise.weight[4, 1, 3, 3] pointwise.bias[6] "
               "pointwise.weight[6, 4, 1, 1] ");
}

// torchvision's BasicBlock.
struct NamedBlock {
  Conv2d conv1;
  BatchNorm bn1;
  Sequential downsample;

  NamedBlock(const std::string& name, Seed seed)
      : conv1(name + ".conv1", 4, 6, 3, {.bias = false, .seed = seed}),
        bn1(name + ".bn1", 6),
        downsample(name + ".downsample") {
    downsample.add<Conv2d>(4, 6, 1, ConvOptions{.bias = false, .seed = seed}).add<BatchNorm>(6);
  }
  Tensor operator()(const Tensor& x, Pass& pass) const {
    return bn1(conv1(x), pass) +
           downsample(narrow(narrow(x, 2, 1, x.extent(2) - 2), 3, 1, x.extent(3) - 2), pass);
  }
  Parameters parameters() const {
    return parameters_of("conv1", conv1, "bn1", bn1, "downsample", downsample);
  }
  Parameters buffers() const { return buffers_of("conv1", conv1, "bn1", bn1, "downsample", downsample); }
};

TEST_F(StateNames, OfModulesOfModules) {
  expect_state(
      [](Seed seed) {
        Sequential network("net");
        return network.add<NamedBlock>(seed)
            .activation(Activation::relu)
            .add(Residual(Conv2d("net.2.body", 6, 6, 1, {.seed = seed})));
      },
      "0.bn1.bias[6] 0.bn1.num_batches_tracked[] 0.bn1.running_mean[6] 0.bn1.running_var[6] 0.bn1.weight[6] "
      "0.conv1.weight[6, 4, 3, 3] 0.downsample.0.weight[6, 4, 1, 1] 0.downsample.1.bias[6] "
      "0.downsample.1.num_batches_tracked[] 0.downsample.1.running_mean[6] 0.downsample.1.running_var[6] "
      "0.downsample.1.weight[6] 2.body.bias[6] 2.body.weight[6, 6, 1, 1] ");
}

}  // namespace
}  // namespace imprint::nn
