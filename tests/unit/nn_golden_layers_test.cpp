// Golden values of PyTorch for layers that move, pool or reshape, for activations, and for the losses and the
// optimiser of golden_layers.json.

#include "compute/nn/losses/losses_sequences.h"
#include "compute/nn/modules/activation.h"
#include "compute/nn/modules/convolution.h"
#include "compute/nn/modules/linear.h"
#include "compute/nn/modules/norms.h"
#include "compute/nn/modules/pooling.h"
#include "compute/nn/modules/recurrent.h"
#include "tests/unit/nn_golden.h"

namespace imprint::nn {
namespace {

const Json& golden_layers() {
  static const Json json = read_golden("golden_layers.json");
  return json;
}

class GoldenLayers : public GoldenTest {
 protected:
  void SetUp() override { ASSERT_TRUE(golden_layers().is_object()) << "tests/data/torch/golden_layers.json"; }
};

Made made_convolution(const std::string& name) {
  if (name == "conv3d")
    return one_input(Conv3d("m", 4, 6, {2, 3, 2}, {.stride = {1, 2, 1}, .padding = {0, 1, 1}, .groups = 2}));
  if (name == "conv2d_per_axis")
    return one_input(Conv2d("m", 2, 3, {2, 3}, {.stride = {2, 1}, .padding = {1, 0}, .dilation = {1, 2}}));
  if (name == "conv2d_same") return one_input(Conv2d("m", 2, 3, {2, 3}, {.same = true}));
  if (name == "conv1d_reflect")
    return one_input(Conv1d("m", 2, 3, 3, {.padding = 2, .padding_mode = PadMode::reflect}));
  if (name == "conv1d_circular")
    return one_input(Conv1d("m", 2, 3, 3, {.padding = 2, .padding_mode = PadMode::wrap}));
  if (name == "conv1d_replicate")
    return one_input(Conv1d("m", 2, 3, 3, {.padding = 2, .padding_mode = PadMode::edge}));
  if (name == "conv_transpose1d")
    return one_input(
        ConvTranspose1d("m", 4, 6, 3, {.stride = 2, .padding = 1, .output_padding = 1, .groups = 2}));
  if (name == "conv_transpose2d")
    return one_input(
        ConvTranspose2d("m", 3, 2, {3, 2}, {.stride = {2, 3}, .padding = {1, 0}, .dilation = {2, 1}}));
  if (name == "conv_transpose3d") return one_input(ConvTranspose3d("m", 2, 3, 2, {.stride = 2}));
  return {};
}

Made made_pool(const std::string& name) {
  if (name == "max_pool2d") return one_input(MaxPool({.size = 3, .stride = 2, .padding = 1, .ceil = true}));
  if (name == "max_pool3d") return one_input(MaxPool());
  if (name == "max_pool1d_dilated") return one_input(MaxPool({.size = 2, .stride = 2, .dilation = 3}));
  if (name == "avg_pool2d_ceil")
    return one_input(AvgPool({.size = 3, .stride = 2, .padding = 1, .ceil = true}));
  if (name == "avg_pool2d_inside")
    return one_input(AvgPool({.size = 3, .stride = 2, .padding = 1, .ceil = true, .count_padding = false}));
  if (name == "avg_pool1d") return one_input(AvgPool());
  if (name == "lp_pool2d") return one_input(LpPool(3));
  if (name == "adaptive_avg_pool2d") return one_input(AdaptiveAvgPool({3, 2}));
  if (name == "adaptive_max_pool2d") return one_input(AdaptiveMaxPool({3, 4}));
  return {};
}

Made made_resize(const std::string& name) {
  const ResizeOptions linear{.mode = Resize::linear}, cubic{.mode = Resize::cubic};
  const ResizeOptions linear_corners{.mode = Resize::linear, .align_corners = true},
      cubic_corners{.mode = Resize::cubic, .align_corners = true};
  const UnfoldOptions windows{.size = {2, 3}, .stride = {1, 2}, .padding = {1, 0}, .dilation = {2, 1}};
  if (name == "nearest") return one_input(Interpolate({5, 8}));
  if (name == "linear") return one_input(Interpolate(7, linear));
  if (name == "bilinear") return one_input(Interpolate({5, 3}, linear));
  if (name == "bilinear_corners") return one_input(Interpolate({5, 3}, linear_corners));
  if (name == "trilinear") return one_input(Interpolate({3, 2, 4}, linear));
  if (name == "bicubic") return one_input(Interpolate({7, 4}, cubic));
  if (name == "bicubic_corners") return one_input(Interpolate({7, 4}, cubic_corners));
  if (name == "pixel_shuffle") return one_input(PixelShuffle(2));
  if (name == "pixel_unshuffle") return one_input(PixelUnshuffle(2));
  if (name == "unfold") return one_input(Unfold(windows));
  if (name == "fold") return one_input(Fold(4, 7, windows));
  return {};
}

Made made_activation(const std::string& name) {
  const std::map<std::string, std::vector<double>> numbers{
      {"leaky_relu", {0.2}}, {"elu", {1.5}},         {"softplus", {2}},      {"hard_tanh", {-0.5, 0.75}},
      {"celu", {1.5}},       {"hard_shrink", {0.4}}, {"soft_shrink", {0.4}}, {"threshold", {0.25, -2}}};
  const auto kind = find_activation(name);
  if (!kind) return {};
  return one_input(ActivationLayer(*kind, numbers.contains(name) ? numbers.at(name) : std::vector<double>()));
}

Made made_layer(const std::string& name, Pass& pass) {
  if (name.starts_with("activation_")) return made_activation(name.substr(11));
  if (name == "local_response_norm")
    return one_input(LocalResponseNorm(3, {.alpha = 0.5, .beta = 0.75, .k = 1.5}));
  if (name == "weight_norm") return one_input(Linear("m", 4, 3, {.weight_form = WeightForm::weight_norm}));
  if (name == "weight_norm_conv")
    return one_input(Conv1d("m", 2, 3, 3, {.weight_form = WeightForm::weight_norm}));
  if (name.starts_with("spectral_norm")) {
    const Linear layer("m", 4, 3, {.weight_form = WeightForm::spectral_norm});
    const bool trains = name.ends_with("train");
    return {[=, &pass](const std::vector<Tensor>& x) { return trains ? layer(x[0], pass) : layer(x[0]); },
            layer.parameters(), layer.buffers()};
  }
  if (name == "lstm_projection")
    return one_input(lstm("m", 3, 5, {.layers = 2, .bidirectional = true, .projection = 2}));
  for (const auto& make : {made_convolution, made_pool, made_resize})
    if (const Made made = make(name); made.forward) return made;
  return {};
}

TEST_F(GoldenLayers, ModulesFromTheirStateDictionaries) {
  for (const auto& [name, record] : golden_layers().at("modules").items()) {
    SCOPED_TRACE(name);
    Pass pass("net", 1);
    const Made made = made_layer(name, pass);
    ASSERT_TRUE(made.forward);
    expect_module(record, made, pass);
  }
}

TEST_F(GoldenLayers, Losses) {
  for (const auto& [name, record] : golden_layers().at("losses").items()) {
    SCOPED_TRACE(name);
    const Json& inputs = record.at("inputs");
    std::vector<Tensor> operands{constant_of(inputs[0])};
    const bool is_float = name.find("soft_margin") != std::string::npos;
    for (std::size_t i = 1; i < inputs.size(); ++i)
      operands.push_back(is_float ? constant_of(inputs[i]) : indices_of(inputs[i]));
    expect_loss(
        record, operands,
        [&](const std::vector<Tensor>& x) {
          if (name == "multi_margin") return multi_margin_loss(x[0], x[1], 0.75);
          if (name == "multi_margin_square") return multi_margin_loss(x[0], x[1], 1, 2);
          if (name == "multilabel_margin") return multilabel_margin_loss(x[0], x[1]);
          if (name == "multilabel_soft_margin") return multilabel_soft_margin_loss(x[0], x[1]);
          if (name == "soft_margin") return soft_margin_loss(x[0], x[1]);
          const Reduction reduction = name == "ctc_sum" ? Reduction::sum : Reduction::mean;
          return name.starts_with("ctc")
                     ? ctc_loss(log_softmax(x[0]), x[1], x[2], x[3], {.reduction = reduction})
                     : Tensor();
        },
        5e-6);
  }
}

}  // namespace
}  // namespace imprint::nn
