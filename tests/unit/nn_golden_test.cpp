// Golden values of PyTorch (tests/data/torch): ten steps of each optimiser, schedules, losses, and modules
// whose state dictionaries are loaded.

#include "tests/unit/nn_golden.h"
#include "compute/nn/losses/losses.h"
#include "compute/nn/modules/convolution.h"
#include "compute/nn/modules/embedding.h"
#include "compute/nn/modules/norms.h"
#include "compute/nn/modules/recurrent.h"
#include "compute/nn/modules/transformer.h"
#include "compute/nn/optimisers/schedule.h"

namespace imprint::nn {
namespace {

const Json& golden() {
  static const Json json = read_golden("golden.json");
  return json;
}

class Golden : public GoldenTest {
 protected:
  void SetUp() override { ASSERT_TRUE(golden().is_object()) << "tests/data/torch/golden.json"; }
};

// ---- optimisers ----

using Make = std::function<std::shared_ptr<Optimiser>(const Parameters&)>;

template <class O, class Options>
Make making(Options options) {
  return [options](const Parameters& parameters) { return std::make_shared<O>(parameters, options); };
}

std::map<std::string, Make> optimisers() {
  const AdamOptions adam{.beta2 = 0.9, .weight_decay = 0.1};
  AdamOptions amsgrad = adam, decoupled = adam;
  amsgrad.amsgrad = true;
  decoupled.decoupled = true;
  AdamOptions both = amsgrad;
  both.decoupled = true;
  return {
      {"sgd_momentum", making<Sgd>(SgdOptions{.momentum = 0.9, .weight_decay = 0.01})},
      {"sgd_nesterov", making<Sgd>(SgdOptions{.momentum = 0.9, .nesterov = true, .weight_decay = 0.01})},
      {"rmsprop", making<RmsProp>(RmsPropOptions{.smoothing = 0.9, .weight_decay = 0.02})},
      {"rmsprop_centred_momentum",
       making<RmsProp>(
           RmsPropOptions{.smoothing = 0.9, .momentum = 0.9, .centred = true, .weight_decay = 0.02})},
      {"adagrad", making<Adagrad>(AdagradOptions{.rate_decay = 0.1, .initial = 0.2, .weight_decay = 0.02})},
      {"adadelta", making<Adadelta>(AdadeltaOptions{.weight_decay = 0.02})},
      {"adam", making<Adam>(adam)},
      {"adam_amsgrad", making<Adam>(amsgrad)},
      {"adam_w", making<Adam>(decoupled)},
      {"adam_w_amsgrad", making<Adam>(both)},
      {"adamax", making<Adamax>(AdamaxOptions{.weight_decay = 0.02})},
      {"nadam", making<NAdam>(NAdamOptions{.weight_decay = 0.05})},
      {"nadam_decoupled", making<NAdam>(NAdamOptions{.weight_decay = 0.05, .decoupled = true})},
      {"radam", making<RAdam>(RAdamOptions{.weight_decay = 0.05})},
      {"adafactor", making<Adafactor>(AdafactorOptions{.weight_decay = 0.01})},
      {"muon", making<Muon>(MuonOptions{})},
      {"muon_match", making<Muon>(MuonOptions{.rate = MuonRate::match_adam_rms})},
  };
}

TEST_F(Golden, TenStepsOfEachOptimiser) {
  const auto known = optimisers();
  for (const auto& [name, record] : golden().at("optimisers").items()) {
    SCOPED_TRACE(name);
    ASSERT_TRUE(known.contains(name));
    // Muon orthogonalises in bfloat16 there.
    expect_steps(record, known.at(name), name.starts_with("muon") ? 3e-3 : 1e-5);
  }
}

TEST_F(Golden, Schedules) {
  const std::map<std::string, Schedule> schedules{
      {"linear", Schedule::linear(0.5, 2, 10)},
      {"exponential", Schedule::exponential(2, 0.9)},
      {"step", Schedule::step(2, 7)},
      {"multi_step", Schedule::multi_step(2, {3, 4, 20}, 0.5)},
      {"polynomial", Schedule::polynomial(2, 10, 2)},
      {"cosine", Schedule::cosine(2, 20, 0.5)},
      {"cosine_restarts_1", Schedule::cosine_restarts(2, 4, 1, 0.5)},
      {"cosine_restarts_2", Schedule::cosine_restarts(2, 4, 2, 0.5)},
      {"one_cycle", Schedule::one_cycle(1, 50)},
      {"one_cycle_linear", Schedule::one_cycle(1, 50, {.linear = true})},
      {"one_cycle_three", Schedule::one_cycle(1, 50, {.three_phases = true})},
  };
  for (const auto& [name, rates] : golden().at("schedules").items()) {
    ASSERT_TRUE(schedules.contains(name)) << name;
    const auto expected = rates.get<std::vector<float>>();
    expect_close(evaluate(schedules.at(name).at(arange(static_cast<std::int64_t>(expected.size())))),
                 expected, 1e-6, name);
  }
}

// ---- losses ----

Tensor loss_of(const std::string& name, const std::vector<Tensor>& x) {
  const Tensor w = Tensor::from({0.5f, 1.5f, 2, 1}, {4});
  if (name == "mse") return mse_loss(x[0], x[1]);
  if (name == "l1") return l1_loss(x[0], x[1]);
  if (name == "smooth_l1") return smooth_l1_loss(x[0], x[1], 0.5);
  if (name == "huber") return huber_loss(x[0], x[1], 0.7);
  if (name.starts_with("cross_entropy"))
    return cross_entropy(x[0], x[1], {.class_weight = w, .label_smoothing = 0.2});
  if (name == "nll") return nll_loss(x[0], x[1], {.class_weight = w});
  if (name == "bce") return binary_cross_entropy(x[0], x[1]);
  if (name == "bce_logits") return binary_cross_entropy_with_logits(x[0], x[1], Reduction::mean, Tensor(), w);
  if (name == "kl") return kl_divergence(x[0], x[1]);
  if (name == "kl_log") return kl_divergence(x[0], x[1], true, Reduction::batch_mean);
  if (name == "poisson") return poisson_nll_loss(x[0], x[1], {.full = true});
  if (name == "gaussian") return gaussian_nll_loss(x[0], x[1], x[2], {.full = true});
  if (name == "hinge_embedding") return hinge_embedding_loss(x[0], x[1], 1.5);
  if (name == "margin_ranking") return margin_ranking_loss(x[0], x[1], x[2], 0.25);
  if (name == "triplet") return triplet_margin_loss(x[0], x[1], x[2], {.margin = 1.5, .swap = true});
  if (name == "cosine_embedding") return cosine_embedding_loss(x[0], x[1], x[2], 0.1);
  return Tensor();
}

TEST_F(Golden, Losses) {
  for (const auto& [name, record] : golden().at("losses").items()) {
    SCOPED_TRACE(name);
    std::vector<Tensor> inputs;
    for (const Json& array : record.at("inputs")) {
      const bool is_class = (name == "cross_entropy" || name == "nll") && inputs.size() == 1;
      inputs.push_back(is_class ? indices_of(array) : constant_of(array));
    }
    expect_loss(record, inputs, [&](const std::vector<Tensor>& x) { return loss_of(name, x); });
  }
}

// ---- modules ----

Made made_attention(const std::string& name) {
  const MultiHeadAttention layer("m", 8, 2);
  const bool causal = name.ends_with("causal"), cross = name.ends_with("cross");
  return {[=](const std::vector<Tensor>& x) {
            Pass pass;
            return cross ? layer.cross(x[0], x[1], {}, pass) : layer(x[0], {.causal = causal});
          },
          layer.parameters(),
          {}};
}

Made module_of(const std::string& name, Pass& pass) {
  if (name == "linear") return one_input(Linear("m", 4, 3));
  if (name == "bilinear") {
    const Bilinear layer("m", 3, 2, 4);
    return {[=](const std::vector<Tensor>& x) { return layer(x[0], x[1]); }, layer.parameters(), {}};
  }
  if (name == "embedding") return one_input(Embedding("m", 6, 3));
  if (name == "conv1d")
    return one_input(Conv1d("m", 4, 6, 3, {.stride = 2, .padding = 1, .dilation = 2, .groups = 2}));
  if (name == "conv2d") return one_input(Conv2d("m", 4, 6, 3, {.stride = 2, .padding = 1, .groups = 2}));
  if (name.starts_with("batch_norm")) {
    const BatchNorm layer("m", 3);
    const bool trains = name.ends_with("train");
    return {[=, &pass](const std::vector<Tensor>& x) { return trains ? layer(x[0], pass) : layer(x[0]); },
            layer.parameters(), layer.buffers()};
  }
  if (name == "group_norm") return one_input(GroupNorm("m", 2, 4));
  if (name == "instance_norm") return one_input(instance_norm("m", 4));
  if (name == "layer_norm") return one_input(LayerNorm("m", 5));
  if (name == "rms_norm") return one_input(RmsNorm("m", 5, {.epsilon = 1e-5}));
  if (name == "prelu") return one_input(PRelu("m", 4));
  if (name == "rnn") return one_input(rnn("m", 3, 4, {.layers = 2}));
  if (name == "gru") return one_input(gru("m", 3, 4, {.layers = 2, .bidirectional = true}));
  if (name == "lstm") return one_input(lstm("m", 3, 4, {.layers = 2, .bidirectional = true}));
  if (name.starts_with("attention")) return made_attention(name);
  if (name == "decoder") {
    const TransformerDecoderLayer layer("m", 8, 2, {.hidden = 16, .dropout = 0});
    return {[=](const std::vector<Tensor>& x) { return layer(x[0], x[1], AttentionMask()); },
            layer.parameters(),
            {}};
  }
  if (name.starts_with("transformer")) {
    TransformerLayerOptions options{.hidden = 16, .dropout = 0};
    if (name.ends_with("norm_first")) options.norm_first = true, options.activation = Activation::gelu;
    return one_input(TransformerEncoderLayer("m", 8, 2, options));
  }
  return {};
}

TEST_F(Golden, ModulesFromTheirStateDictionaries) {
  for (const auto& [name, record] : golden().at("modules").items()) {
    SCOPED_TRACE(name);
    Pass pass("net", 1);
    const Made made = module_of(name, pass);
    ASSERT_TRUE(made.forward);
    expect_module(record, made, pass, name == "embedding");
  }
}

}  // namespace
}  // namespace imprint::nn
