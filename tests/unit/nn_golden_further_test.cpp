// Golden values of PyTorch for whole transformers, kinds of attention, and the layers and options that the
// other golden files lack: golden_further.json.

#include "compute/nn/modules/activation.h"
#include "compute/nn/modules/attention.h"
#include "compute/nn/modules/convolution.h"
#include "compute/nn/modules/deformable.h"
#include "compute/nn/modules/dropout.h"
#include "compute/nn/modules/embedding.h"
#include "compute/nn/modules/linear.h"
#include "compute/nn/modules/norms.h"
#include "compute/nn/modules/pooling.h"
#include "compute/nn/modules/recurrent.h"
#include "compute/nn/modules/sequential.h"
#include "compute/nn/modules/transformer.h"
#include "tests/unit/nn_golden.h"

namespace imprint::nn {
namespace {

const Json& golden_further() {
  static const Json json = read_golden("golden_further.json");
  return json;
}

class GoldenFurther : public GoldenTest {
 protected:
  void SetUp() override {
    ASSERT_TRUE(golden_further().is_object()) << "tests/data/torch/golden_further.json";
  }
};

using Inputs = std::vector<Tensor>;

// A module whose call is not layer(x).
template <class Layer>
Made called(const Layer& layer, std::function<Tensor(const Inputs&)> forward) {
  return {std::move(forward), layer.parameters(), {}};
}

Made made_transformer(const std::string& name) {
  TransformerLayerOptions options{.hidden = 16, .dropout = 0};
  options.norm_first = name.find("norm_first") != std::string::npos;
  const AttentionMask mask{.causal = name.ends_with("causal")};
  if (name == "decoder" || name == "decoder_norm_first_causal") {
    const TransformerDecoderLayer layer("m", 8, 2, options);
    return called(layer, [=](const Inputs& x) { return layer(x[0], x[1], mask); });
  }
  if (name == "decoder_stack") {
    const TransformerDecoder layer("m", 2, 8, 2, options);
    return called(layer, [=](const Inputs& x) { return layer(x[0], x[1]); });
  }
  if (name.starts_with("encoder_stack")) {
    if (options.norm_first) options.activation = Activation::gelu;
    const TransformerEncoder layer("m", 2, 8, 2, options);
    return called(layer, [=](const Inputs& x) { return layer(x[0], mask); });
  }
  return {};
}

Made made_further_attention(const std::string& name) {
  if (!name.starts_with("attention")) return {};
  AttentionOptions options;
  options.bias = name != "attention_no_bias";
  options.rotary = name == "attention_rotary";
  options.alibi = name == "attention_alibi";
  const bool is_grouped = name == "attention_grouped";
  if (is_grouped) options.key_heads = 2;
  const MultiHeadAttention layer("m", 8, is_grouped ? 4 : 2, options);
  return called(layer, [=](const Inputs& x) {
    AttentionMask mask;
    if (name == "attention_padding")
      mask.padding =
          cast(Tensor::from_ints(std::vector{0, 0, 0, 0, 1, 0, 0, 1, 1, 1}, {2, 5}), DType::boolean);
    if (x.size() > 1) mask.bias = x[1];
    return layer(x[0], mask);
  });
}

Made made_sequence(const std::string& name) {
  if (name == "feed_forward") return one_input(FeedForward("m", 4, 6, {.activation = Activation::gelu}));
  if (name == "gated_feed_forward") return one_input(GatedFeedForward("m", 4, 6));
  if (name == "learned_positions") return one_input(LearnedPositions("m", 6, 4));
  if (name == "embedding_padding") return one_input(Embedding("m", 6, 3, {.padding_index = 1}));
  if (name == "rnn_relu") return one_input(Recurrent("m", Cell::rnn_relu, 3, 4));
  if (name == "gru_no_bias") return one_input(gru("m", 3, 4, {.bias = false}));
  if (name == "lstm_no_bias")
    return one_input(lstm("m", 3, 4, {.layers = 2, .bidirectional = true, .bias = false}));
  return {};
}

Made made_norm(const std::string& name, Pass& pass) {
  if (name.starts_with("batch_norm")) {
    const BatchNorm layer(
        "m", 3, name.ends_with("3d") ? BatchNormOptions{.momentum = 0.3} : BatchNormOptions{.affine = false});
    return {[=, &pass](const Inputs& x) { return layer(x[0], pass); }, layer.parameters(), layer.buffers()};
  }
  if (name == "group_norm_plain") return one_input(GroupNorm("m", 2, 4, {.affine = false}));
  if (name == "instance_norm_affine") return one_input(instance_norm("m", 3, {}));
  if (name == "rms_norm_default") return one_input(RmsNorm("m", 5));
  if (name == "sequential") {
    Sequential net("m");
    net.add<Conv2d>(1, 3, 3, ConvOptions{.padding = 1}).add<BatchNorm>(3).activation(Activation::relu);
    net.add(MaxPool()).add(Flatten()).linear(12, 4).layer_norm(4);
    return {[=, &pass](const Inputs& x) { return net(x[0], pass); }, net.parameters(), net.buffers()};
  }
  return {};
}

Made made_further(const std::string& name) {
  if (name == "linear_no_bias") return one_input(Linear("m", 4, 3, {.bias = false}));
  if (name == "bilinear_no_bias") {
    const Bilinear layer("m", 3, 2, 4, {.bias = false});
    return called(layer, [=](const Inputs& x) { return layer(x[0], x[1]); });
  }
  if (name == "conv2d_no_bias") return one_input(Conv2d("m", 2, 3, 2, {.bias = false}));
  if (name == "depthwise_separable") return one_input(DepthwiseSeparableConv2d("m", 4, 5, 3, {.padding = 1}));
  if (name == "deform_conv2d") {
    const DeformConv2d layer("m", 2, 3, {2, 3}, {.padding = 1});
    return called(layer, [=](const Inputs& x) { return layer(x[0], x[1], x[2]); });
  }
  if (name == "prelu_one") return one_input(PRelu("m"));
  if (name == "pad_constant") return one_input(Pad({2, 1}, PadMode::constant, 0.5));
  if (name == "pad_reflect") return one_input(Pad(2, PadMode::reflect));
  if (name == "pad_edge") return one_input(Pad({2, 1}, PadMode::edge));
  if (name == "pad_circular") return one_input(Pad(1, PadMode::wrap));
  if (name == "global_avg_pool") return one_input(GlobalAvgPool());
  if (name == "global_max_pool") return one_input(GlobalMaxPool());
  if (name == "dropout_eval") return one_input(Dropout(0.5));
  if (name == "flatten") return one_input(Flatten());
  return {};
}

TEST_F(GoldenFurther, ModulesFromTheirStateDictionaries) {
  for (const auto& [name, record] : golden_further().at("modules").items()) {
    SCOPED_TRACE(name);
    Pass pass("net", 1);
    Made made = made_norm(name, pass);
    for (const auto& make : {made_transformer, made_further_attention, made_sequence, made_further})
      if (!made.forward) made = make(name);
    ASSERT_TRUE(made.forward);
    expect_module(record, made, pass, name == "embedding_padding");
  }
}

}  // namespace
}  // namespace imprint::nn
