// Quantised weights: the file is an ONNX model again, whose answers are near. And an imported model that is
// tuned.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "compute/graph/gradients/autodiff.h"
#include "compute/model/quantise.h"
#include "compute/model/state_dict.h"
#include "compute/nn/lora.h"
#include "compute/nn/losses/losses.h"
#include "compute/nn/optimisers/optimiser.h"
#include "compute/program/run.h"
#include "compute/tensor/composites/composites.h"
#include "tests/unit/model_onnx_run.h"

namespace imprint {
namespace {

using test::OnnxBuilder;
using testing::HasSubstr;

// Numbers between -1 and 1 that follow no pattern.
std::vector<float> some_numbers(std::int64_t count, std::uint32_t seed) {
  std::vector<float> values;
  for (std::int64_t i = 0; i < count; ++i) {
    seed = seed * 1664525u + 1013904223u;
    values.push_back(static_cast<float>(seed >> 8) / 8388608.0f - 1.0f);
  }
  return values;
}

// x [3, 70] -> MatMul [70, 40] -> Gemm transB [24, 40] -> y.
OnnxBuilder products(std::int64_t opset) {
  OnnxBuilder builder(opset);
  builder.input("x", {"3", "70"}).output("y");
  builder.floats("w", {70, 40}, some_numbers(2800, 1)).floats("v", {24, 40}, some_numbers(960, 2));
  builder.floats("bias", {24}, some_numbers(24, 4));
  builder.node("MatMul", {"x", "w"}, {"h"}, {}, "first");
  builder.node("Gemm", {"h", "v", "bias"}, {"y"}, {OnnxBuilder::number("transB", 1)});
  return builder;
}

QuantisedModel must_quantise(const OnnxBuilder& builder, const QuantiseOptions& options) {
  auto made = quantise_onnx(builder.bytes(), test::must_parse(builder), options);
  EXPECT_TRUE(made.ok()) << made.error().message;
  return made ? std::move(*made) : QuantisedModel();
}

std::vector<float> answers(const std::vector<std::byte>& file, const Tensor& x) {
  const auto model = onnx::parse(file);
  EXPECT_TRUE(model.ok()) << model.error().message;
  const auto imported = import_onnx(*model, {});
  EXPECT_TRUE(imported.ok()) << imported.error().message;
  if (!imported) return {};
  const auto runtime = Runtime::create_on_cpu();
  Session session(*runtime);
  const Tensor y =
      substitute(imported->output_tensors(), imported->input_tensors(), std::vector<Tensor>{x})[0];
  const auto found = session.evaluate(y);
  EXPECT_TRUE(found.ok()) << found.error().message;
  return found ? found->floats : std::vector<float>();
}

// Root of the mean square of the change, over that of `exact`.
double change_of(const std::vector<float>& exact, const std::vector<float>& found) {
  double change = 0, size = 0;
  EXPECT_EQ(exact.size(), found.size());
  for (std::size_t i = 0; i < std::min(exact.size(), found.size()); ++i) {
    change += std::pow(static_cast<double>(found[i] - exact[i]), 2);
    size += std::pow(static_cast<double>(exact[i]), 2);
  }
  return std::sqrt(change / size);
}

TEST(Quantise, EightBitsPerChannelAreNearInEveryOpset) {
  const Tensor x = Tensor::from(some_numbers(210, 3), {3, 70});
  for (const std::int64_t opset : {9, 13, 21}) {
    const OnnxBuilder builder = products(opset);
    const QuantisedModel made = must_quantise(builder, {.least_elements = 900});
    ASSERT_EQ(made.weights.size(), 2u);
    EXPECT_EQ(made.weights[0].name, "w");
    EXPECT_LT(made.weights[0].error, 0.01);
    EXPECT_GT(made.weights[0].error, 0);
    EXPECT_EQ(made.bytes_before, (2800u + 960 + 24) * 4);
    EXPECT_EQ(made.bytes_after, 2800u + 40 * 4 + 960 + 24 * 4 + 24 * 4);
    const auto model = onnx::parse(made.file);
    ASSERT_TRUE(model.ok());
    EXPECT_EQ(model->graph.nodes[0].op_type, opset < 13 ? "Cast" : "DequantizeLinear");
    EXPECT_EQ(model->graph.nodes.back().op_type, "Gemm");
    EXPECT_EQ(model->graph.inputs[0].name, "x");
    EXPECT_LT(change_of(answers(builder.bytes(), x), answers(made.file, x)), 0.02) << opset;
    EXPECT_EQ(made.file, must_quantise(builder, {.least_elements = 900}).file);
  }
}

// 70 is no multiple of the block.
TEST(Quantise, FourBitsPerBlockArePackedProducts) {
  const Tensor x = Tensor::from(some_numbers(210, 3), {3, 70});
  const OnnxBuilder builder = products(17);
  const QuantisedModel made = must_quantise(builder, {.bits = 4, .least_elements = 900});
  ASSERT_EQ(made.weights.size(), 2u);
  EXPECT_EQ(made.weights[0].bits, 4);
  EXPECT_EQ(made.weights[1].bits, 8);  // Gemm's
  EXPECT_LT(made.weights[0].error, 0.1);
  const auto model = onnx::parse(made.file);
  ASSERT_TRUE(model.ok());
  ASSERT_EQ(model->graph.nodes[1].op_type, "MatMulNBits");
  EXPECT_EQ(model->graph.nodes[1].domain, "com.microsoft");
  EXPECT_EQ(model->graph.nodes[1].name, "first");
  EXPECT_EQ(model->opsets.at("com.microsoft"), 1);
  const double change = change_of(answers(builder.bytes(), x), answers(made.file, x));
  EXPECT_LT(change, 0.15);
  EXPECT_GT(change, 0.001);
  const QuantisedModel finer = must_quantise(builder, {.bits = 4, .block = 16, .least_elements = 900});
  EXPECT_LT(finer.weights[0].error, made.weights[0].error);
}

TEST(Quantise, LeavesWhatIsSmallOrAnOutputOrUsedElsewhere) {
  OnnxBuilder builder(17);
  builder.input("x", {"2", "40"}).output("y").output("kept");
  builder.floats("small", {40, 3}, some_numbers(120, 120)).floats("kept", {40, 40}, some_numbers(1600, 1600));
  builder.floats("added", {40, 40}, some_numbers(1600, 1600));
  builder.node("MatMul", {"x", "kept"}, {"h"}).node("MatMul", {"h", "added"}, {"i"});
  builder.node("Add", {"added", "added"}, {"twice"});
  builder.node("MatMul", {"i", "twice"}, {"j"}).node("MatMul", {"j", "small"}, {"y"});
  const QuantisedModel made = must_quantise(builder, {.bits = 4});
  ASSERT_EQ(made.weights.size(), 1u);
  EXPECT_EQ(made.weights[0].name, "added");
  EXPECT_EQ(made.weights[0].bits, 8);  // another node reads it too
}

// They are written as dense tensors, or rounded; the order of the file's initializers stays.
TEST(Quantise, SparseInitializersToo) {
  const Tensor x = Tensor::from(some_numbers(210, 3), {3, 70});
  OnnxBuilder builder(17);
  builder.input("x", {"3", "70"}).output("y");
  builder.sparse("scale", {40}, {2, -3}, {2}, {39, 1});
  builder.floats("w", {70, 40}, some_numbers(2800, 1));
  builder.sparse("v", {40, 40}, {1, 2, 3}, {3}, {0, 41, 1599});
  builder.node("MatMul", {"x", "w"}, {"h"}).node("Mul", {"h", "scale"}, {"i"});
  builder.node("MatMul", {"i", "v"}, {"y"});
  const QuantisedModel made = must_quantise(builder, {.least_elements = 900});
  EXPECT_EQ(made.weights.size(), 2u);
  EXPECT_LT(change_of(answers(builder.bytes(), x), answers(made.file, x)), 0.02);
}

TEST(Quantise, RefusesNumbersThatAreNone) {
  for (const int bits : {4, 8})
    for (const float odd : {INFINITY, NAN}) {
      std::vector<float> weights = some_numbers(1600, 1600);
      weights[41] = odd;
      OnnxBuilder builder(17);
      builder.input("x", {"2", "40"}).output("y").floats("w", {40, 40}, weights);
      builder.node("MatMul", {"x", "w"}, {"y"});
      const std::vector<std::byte> file = builder.bytes();
      const auto made = quantise_onnx(file, test::must_parse(builder), {.bits = bits});
      ASSERT_FALSE(made.ok());
      EXPECT_EQ(made.error().code, ErrorCode::corrupt_file);
      EXPECT_THAT(made.error().message, testing::HasSubstr("initializer 'w': element 41: found "));
    }
}

// Ranges of activations make their values 8-bit numbers, once per value; a narrow range clips.
TEST(Quantise, LeavesProductsOfOtherForms) {
  for (const auto& outputs : {std::vector<std::string>{}, {"h", "more"}}) {
    OnnxBuilder builder(17);
    builder.input("x", {"3", "70"}).floats("w", {70, 40}, some_numbers(2800, 1)).output("x");
    builder.node("MatMul", {"x", "w"}, outputs);
    EXPECT_TRUE(quantise_onnx(builder.bytes(), test::must_parse(builder), {.bits = 4}).ok());
  }
}

TEST(Quantise, RefusesInitializersOfOneName) {
  for (const std::int64_t rank : {1, 2}) {
    OnnxBuilder builder = products(17);
    if (rank == 1)
      builder.floats("w", {2800}, some_numbers(2800, 1));
    else
      builder.raw("w", {1, 4097}, test::kUint8, std::string(4097, '\1'));
    const auto made = quantise_onnx(builder.bytes(), test::must_parse(builder), {});
    ASSERT_FALSE(made.ok());
    EXPECT_THAT(made.error().message, HasSubstr("found two initializers 'w'"));
  }
}

TEST(Quantise, ActivationsAreRoundedInTheirRange) {
  const Tensor x = Tensor::from(some_numbers(210, 3), {3, 70});
  const OnnxBuilder builder = products(17);
  QuantiseOptions options{.least_elements = 900};
  EXPECT_THAT(quantised_activations(test::must_parse(builder), options), testing::ElementsAre("x", "h"));
  const std::vector<float> exact = answers(builder.bytes(), x);
  const double of_weights = change_of(exact, answers(must_quantise(builder, options).file, x));
  options.activations = {{"x", {-1, 1}}, {"h", {-16, 16}}};
  const QuantisedModel made = must_quantise(builder, options);
  EXPECT_EQ(made.activations, 2u);
  const double of_both = change_of(exact, answers(made.file, x));
  EXPECT_GT(of_both, of_weights);
  EXPECT_LT(of_both, 0.05);
  options.activations["x"] = {-0.5f, 0.5f};
  EXPECT_GT(change_of(exact, answers(must_quantise(builder, options).file, x)), 0.2);
  const onnx::Model model = test::must_parse(builder);
  options.activations["x"] = {1, -1};
  const auto turned = quantise_onnx(builder.bytes(), model, options);
  ASSERT_FALSE(turned.ok());
  EXPECT_EQ(turned.error().code, ErrorCode::invalid_argument);
  const OnnxBuilder old = products(9);
  options.activations["x"] = {-1, 1};
  const auto early = quantise_onnx(old.bytes(), test::must_parse(old), options);
  ASSERT_FALSE(early.ok());
  EXPECT_EQ(early.error().code, ErrorCode::unsupported);
}

TEST(Quantise, RefusesOptions) {
  const OnnxBuilder builder = products(17);
  const onnx::Model model = test::must_parse(builder);
  const auto bits = quantise_onnx(builder.bytes(), model, {.bits = 5});
  ASSERT_FALSE(bits.ok());
  EXPECT_THAT(bits.error().message, HasSubstr("bits: found 5, expected 8 or 4"));
  const auto block = quantise_onnx(builder.bytes(), model, {.bits = 4, .block = 24});
  ASSERT_FALSE(block.ok());
  EXPECT_THAT(block.error().message, HasSubstr("block: found 24"));
}

// ---- tuning ----

TEST(TunedImport, AdaptersOfAFewBytesGiveTheTunedAnswers) {
  const OnnxBuilder builder = products(17);
  const Tensor x = Tensor::from(some_numbers(210, 3), {3, 70}), target = zeros({3, 24}) + 0.25f;
  const auto runtime = Runtime::create_on_cpu();
  Session session(*runtime);
  struct Tuned {
    ImportedModel model;
    Tensor plain, adapted;
    std::unique_ptr<nn::Lora> lora;
  };
  const auto import = [&] {
    Tuned made;
    auto imported = import_onnx(test::must_parse(builder), {}, {.parameters_as_variables = true});
    EXPECT_TRUE(imported.ok());
    made.model = std::move(*imported);
    made.plain =
        substitute(made.model.output_tensors(), made.model.input_tensors(), std::vector<Tensor>{x})[0];
    made.lora =
        std::make_unique<nn::Lora>("tuned", nn::parameters_of(made.model), nn::LoraOptions{.rank = 4});
    made.adapted = (*made.lora)(made.plain);
    return made;
  };
  const Tuned first = import();
  EXPECT_EQ(nn::parameters_of(first.model).size(), 3u);
  EXPECT_EQ(first.lora->parameters().size(), 4u);  // of two matrices
  const Tensor loss = nn::mse_loss(first.adapted, target);
  const auto slopes = gradients(loss, first.lora->parameters().values());
  ASSERT_TRUE(slopes.ok());
  const auto updates = nn::Adam(first.lora->parameters()).step(*slopes, 0.02);
  ASSERT_TRUE(updates.ok());
  auto step = Program::compile(*runtime, {.name = "tune", .updates = *updates});
  ASSERT_TRUE(step.ok()) << step.error().message;
  const float before = session.evaluate(loss)->floats[0];
  for (int i = 0; i < 300; ++i) ASSERT_TRUE(session.run(*step).ok());
  EXPECT_LT(session.evaluate(loss)->floats[0], 0.3f * before);

  const auto saved = nn::save_state(session, first.lora->parameters());
  ASSERT_TRUE(saved.ok()) << saved.error().message;
  const auto file = safetensors::serialize(*saved);
  ASSERT_TRUE(file.ok());
  EXPECT_LT(file->size(), 3500u);  // of a model of 15 KB

  const Tuned second = import();
  const auto loaded = safetensors::parse(*file);
  ASSERT_TRUE(loaded.ok());
  ASSERT_TRUE(nn::load_state(session, second.lora->parameters(), *loaded).ok());
  EXPECT_EQ(session.evaluate(second.adapted)->floats, session.evaluate(first.adapted)->floats);
}

TEST(TunedImport, TheLastLayerAloneLearns) {
  auto imported = import_onnx(test::must_parse(products(17)), {}, {.parameters_as_variables = true});
  ASSERT_TRUE(imported.ok());
  const Tensor x = Tensor::from(some_numbers(210, 3), {3, 70});
  const Tensor y =
      substitute(imported->output_tensors(), imported->input_tensors(), std::vector<Tensor>{x})[0];
  const nn::Parameters all = nn::parameters_of(*imported), last = all.without("w");
  const Tensor loss = nn::mse_loss(y, zeros({3, 24}));
  const auto slopes = gradients(loss, last.values());
  ASSERT_TRUE(slopes.ok());
  const auto updates = nn::Adam(last).step(*slopes, 0.05);
  ASSERT_TRUE(updates.ok());
  const auto runtime = Runtime::create_on_cpu();
  Session session(*runtime);
  auto step = Program::compile(*runtime, {.name = "tune", .updates = *updates});
  ASSERT_TRUE(step.ok()) << step.error().message;
  const auto first_before = session.evaluate(all.find("w")->value());
  const float before = session.evaluate(loss)->floats[0];
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(session.run(*step).ok());
  EXPECT_LT(session.evaluate(loss)->floats[0], 0.1f * before);
  EXPECT_EQ(session.evaluate(all.find("w")->value())->floats, first_before->floats);
}

}  // namespace
}  // namespace imprint
