// Operators of the importer by small files: sequences, optionals, strings, random numbers, boxes, steps of
// optimisers, and those of ONNX Runtime's exporters. Values are by hand or from a scalar program.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "compute/program/loop_parts.h"
#include "compute/tensor/pages/library_page.h"
#include "tests/unit/model_onnx_run.h"

namespace imprint {
namespace {

using test::kBool;
using test::kFloat;
using test::kInt32;
using test::kInt64;
using test::kUint8;
using test::must_import;
using test::must_parse;
using test::OnnxBuilder;
using test::refusal;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pointwise;

using Doubles = std::vector<double>;
using Names = std::vector<std::string>;
constexpr int kString = 8;

auto close_to(const Doubles& expected, double within = 1e-5) {
  return Pointwise(testing::DoubleNear(within), expected);
}

// Outputs by name.
Doubles value_of(const ImportedModel& model, const std::string& name,
                 const reference::Bindings& values = {}) {
  for (const ImportedValue& output : model.outputs)
    if (output.name == name) return reference::evaluate(output.tensor, values);
  ADD_FAILURE() << "no output " << name;
  return {};
}

OnnxBuilder& add_strings(OnnxBuilder& builder, const std::string& name, const test::Extents& extents,
                         const Names& values) {
  return builder.graph_field(5, [&](protozero::pbf_writer& tensor) {
    tensor.add_packed_int64(1, extents.begin(), extents.end());
    tensor.add_int32(2, kString);
    for (const std::string& value : values) tensor.add_string(6, value);
    tensor.add_string(8, name);
  });
}

// An input or output that is a sequence of float tensors, or an optional one.
OnnxBuilder& add_listed(OnnxBuilder& builder, std::uint32_t field, const std::string& name, bool optional) {
  return builder.graph_field(field, [&](protozero::pbf_writer& info) {
    info.add_string(1, name);
    protozero::pbf_writer type(info, 2);
    protozero::pbf_writer list(type, optional ? 9 : 4);
    protozero::pbf_writer inner(list, 1);
    protozero::pbf_writer tensor(inner, 1);
    tensor.add_int32(1, kFloat);
  });
}

// ---- sequences ----

TEST(OnnxSequences, AreOfFixedLength) {
  OnnxBuilder builder;
  add_listed(builder, 11, "s", false);
  builder.input("x", {"2"}).longs("first", {}, {0}).longs("last", {}, {-1});
  builder.node("SequenceInsert", {"s", "x", "first"}, {"more"})
      .node("SequenceAt", {"more", "last"}, {"a"})
      .node("SequenceLength", {"more"}, {"n"})
      .node("SequenceErase", {"more", "last"}, {"fewer"})
      .node("ConcatFromSequence", {"fewer"}, {"c"},
            {OnnxBuilder::number("axis", 0), OnnxBuilder::number("new_axis", 1)})
      .output("a")
      .output("n", {}, kInt64)
      .output("c");
  add_listed(builder, 12, "fewer", false);
  const onnx::Model file = must_parse(builder);
  EXPECT_THAT(import_onnx(file, {}).error().message, HasSubstr("a length that is not given"));
  ImportOptions options;
  options.sequence_inputs["s"] = {Shape{2}, Shape{2}};
  const auto model = import_onnx(file, {}, options);
  ASSERT_TRUE(model.ok()) << model.error().message;
  ASSERT_EQ(model->inputs.size(), 3u);
  const reference::Bindings values{{"s[0]", {1, 2}}, {"s[1]", {3, 4}}, {"x", {5, 6}}};
  EXPECT_THAT(value_of(*model, "a", values), ElementsAre(3, 4));
  EXPECT_THAT(value_of(*model, "n", values), ElementsAre(3));
  EXPECT_THAT(value_of(*model, "c", values), ElementsAre(5, 6, 1, 2));
  EXPECT_THAT(value_of(*model, "fewer[1]", values), ElementsAre(1, 2));
}

TEST(OnnxSequences, SplitAndMap) {
  OnnxBuilder body;
  body.input("part", {"2"}).input("add", {"1"}).node("Add", {"part", "add"}, {"sum"}).output("sum");
  OnnxBuilder builder;
  builder.input("x", {"3", "2"}).input("b", {"1"});
  builder.node("SplitToSequence", {"x"}, {"parts"}, {OnnxBuilder::number("keepdims", 0)})
      .node("SequenceMap", {"parts", "b"}, {"mapped"}, {OnnxBuilder::body("body", body)})
      .node("ConcatFromSequence", {"mapped"}, {"y"}, {OnnxBuilder::number("axis", 0)})
      .output("y");
  EXPECT_THAT(test::run(builder, {}, {{"x", {1, 2, 3, 4, 5, 6}}, {"b", {10}}}),
              ElementsAre(11, 12, 13, 14, 15, 16));
  OnnxBuilder sizes;
  sizes.input("x", {"5"}).longs("two", {}, {2}).longs("at", {}, {2});
  sizes.node("SplitToSequence", {"x", "two"}, {"s"}).node("SequenceAt", {"s", "at"}, {"y"}).output("y");
  EXPECT_THAT(test::run(sizes, {}, {{"x", {1, 2, 3, 4, 5}}}), ElementsAre(5));
  OnnxBuilder wrong;
  wrong.input("x", {"5"}).longs("sizes", {2}, {2, 2});
  wrong.node("SplitToSequence", {"x", "sizes"}, {"s"}).node("SequenceLength", {"s"}, {"y"}).output("y");
  EXPECT_THAT(refusal(wrong).message, HasSubstr("found parts of 4 for an axis of 5"));
}

TEST(OnnxSequences, ALoopCarriesThem) {
  OnnxBuilder body;
  body.input("i", {}, kInt64).input("go", {}, kBool).input("list", {"1"});
  body.node("SequenceInsert", {"list", "x"}, {"longer"}).node("Identity", {"go"}, {"on"});
  body.output("on", {}, kBool).output("longer");
  OnnxBuilder builder;
  builder.input("x", {"1"}).longs("three", {}, {3}).node("SequenceEmpty", {}, {"empty"});
  builder.node("Loop", {"three", "", "empty"}, {"all"}, {OnnxBuilder::body("body", body)})
      .node("ConcatFromSequence", {"all"}, {"y"}, {OnnxBuilder::number("axis", 0)})
      .output("y");
  EXPECT_THAT(test::run(builder, {}, {{"x", {7}}}), ElementsAre(7, 7, 7));
}

TEST(OnnxSequences, OptionalsMayHoldNothing) {
  OnnxBuilder builder(18);
  add_listed(builder, 11, "o", true);
  OnnxBuilder has, lacks;
  has.node("OptionalGetElement", {"o"}, {"inside"}).output("inside");
  lacks.node("Identity", {"x"}, {"other"}).output("other");
  builder.input("x", {"1"})
      .node("OptionalHasElement", {"o"}, {"there"})
      .node("If", {"there"}, {"y"},
            {OnnxBuilder::body("then_branch", has), OnnxBuilder::body("else_branch", lacks)})
      .output("y");
  const onnx::Model file = must_parse(builder);
  ImportOptions options;
  options.absent_inputs = {"o"};
  const auto without = import_onnx(file, {}, options);
  ASSERT_TRUE(without.ok()) << without.error().message;
  EXPECT_THAT(value_of(*without, "y", {{"x", {3}}}), ElementsAre(3));
  const auto with = import_onnx(file, {{"o", Shape{1}}});
  ASSERT_TRUE(with.ok()) << with.error().message;
  EXPECT_THAT(value_of(*with, "y", {{"o", {4}}, {"x", {3}}}), ElementsAre(4));
}

TEST(OnnxSequences, OthersRefuseThem) {
  OnnxBuilder builder;
  builder.input("x", {"1"})
      .node("SequenceConstruct", {"x", "x"}, {"s"})
      .node("Neg", {"s"}, {"y"})
      .output("y");
  EXPECT_THAT(refusal(builder).message, HasSubstr("found a sequence of 2, expected a tensor of numbers"));
}

// ---- strings ----

TEST(OnnxStrings, AreNormalisedAndCounted) {
  OnnxBuilder builder;
  add_strings(builder, "words", {4}, {"The", "Cat", "the", "dog"});
  builder
      .node("StringNormalizer", {"words"}, {"lower"},
            {OnnxBuilder::text("case_change_action", "LOWER"), OnnxBuilder::words("stopwords", {"dog"})})
      .node("TfIdfVectorizer", {"lower"}, {"y"},
            {OnnxBuilder::text("mode", "TF"), OnnxBuilder::number("min_gram_length", 1),
             OnnxBuilder::number("max_gram_length", 2), OnnxBuilder::number("max_skip_count", 1),
             OnnxBuilder::list("ngram_counts", {0, 2}), OnnxBuilder::list("ngram_indexes", {0, 2, 1, 4}),
             OnnxBuilder::words("pool_strings", {"the", "bird", "cat", "the", "the", "the"})})
      .output("y")
      .output("lower", {}, kString);
  const ImportedModel model = must_import(builder);
  // "the" twice, "cat the" once in a row, "the the" once with one word between.
  EXPECT_THAT(value_of(model, "y"), ElementsAre(2, 1, 0, 0, 1));
  ASSERT_EQ(model.texts.size(), 1u);
  EXPECT_THAT(model.texts[0].strings, ElementsAre("the", "cat", "the"));
}

TEST(OnnxStrings, CountsOfNumbersAtRunTime) {
  OnnxBuilder builder;
  builder.input("x", {"2", "4"}, kInt32)
      .node(
          "TfIdfVectorizer", {"x"}, {"y"},
          {OnnxBuilder::text("mode", "TFIDF"), OnnxBuilder::number("min_gram_length", 2),
           OnnxBuilder::number("max_gram_length", 2), OnnxBuilder::number("max_skip_count", 0),
           OnnxBuilder::list("ngram_counts", {0, 1}), OnnxBuilder::list("ngram_indexes", {0, 1, 2}),
           OnnxBuilder::numbers("weights", {1, 2, 0.5f}), OnnxBuilder::list("pool_int64s", {5, 5, 6, 6, 5})})
      .output("y");
  EXPECT_THAT(test::run(builder, {}, {{"x", {5, 6, 5, 6, 6, 5, 5, 5}}}), ElementsAre(0, 4, 0.5, 0, 0, 0.5));
}

TEST(OnnxStrings, CastBothWays) {
  OnnxBuilder builder;
  add_strings(builder, "digits", {2}, {"-1.5", "20"});
  builder.longs("n", {2}, {3, -4});
  builder.node("Cast", {"digits"}, {"y"}, {OnnxBuilder::number("to", kFloat)})
      .node("Cast", {"n"}, {"t"}, {OnnxBuilder::number("to", kString)})
      .node("StringConcat", {"t", "digits"}, {"u"})
      .output("y")
      .output("u", {}, kString);
  const ImportedModel model = must_import(builder);
  EXPECT_THAT(value_of(model, "y"), ElementsAre(-1.5, 20));
  EXPECT_THAT(model.texts.at(0).strings, ElementsAre("3-1.5", "-420"));
  OnnxBuilder wrong;
  add_strings(wrong, "w", {1}, {"1x"});
  wrong.node("Cast", {"w"}, {"y"}, {OnnxBuilder::number("to", kFloat)}).output("y");
  EXPECT_THAT(refusal(wrong).message, HasSubstr("a string is no number"));
}

TEST(OnnxStrings, CastAsNumbersAre) {
  constexpr int kUint16 = 4;
  const auto cast = [](const std::string& word, int to) {
    OnnxBuilder builder;
    add_strings(builder, "w", {1}, {word});
    builder.node("Cast", {"w"}, {"y"}, {OnnxBuilder::number("to", to)}).output("y", {}, to);
    return test::run(builder);
  };
  EXPECT_THAT(cast("300", kUint8), ElementsAre(44));
  EXPECT_THAT(cast("-1", kUint16), ElementsAre(65535));
  EXPECT_THAT(cast("1.0001", test::kFloat16), ElementsAre(1));
  OnnxBuilder digits;
  add_strings(digits, "w", {1}, {"9007199254740993"});
  digits.longs("even", {1}, {9007199254740992})
      .node("Cast", {"w"}, {"odd"}, {OnnxBuilder::number("to", kInt64)})
      .node("Sub", {"odd", "even"}, {"y"})
      .output("y", {}, kInt64);
  EXPECT_THAT(test::run(digits), ElementsAre(1));
}

// ---- random numbers ----

TEST(OnnxRandom, DrawsAsTheAttributesSay) {
  OnnxBuilder builder;
  builder.floats("p", {4000}, std::vector<float>(4000, 0.25f)).floats("logs", {1, 2}, {0, std::log(3.0f)});
  builder
      .node("RandomUniform", {}, {"u"},
            {OnnxBuilder::list("shape", {4000}), OnnxBuilder::real("low", 2), OnnxBuilder::real("high", 4)})
      .node("RandomNormalLike", {"p"}, {"n"}, {OnnxBuilder::real("mean", 5), OnnxBuilder::real("scale", 2)})
      .node("RandomNormalLike", {"p"}, {"m"}, {OnnxBuilder::real("mean", 5), OnnxBuilder::real("scale", 2)})
      .node("Bernoulli", {"p"}, {"b"})
      .node("Multinomial", {"logs"}, {"k"}, {OnnxBuilder::number("sample_size", 4000)});
  for (const char* name : {"u", "n", "m", "b"}) builder.output(name);
  builder.output("k", {}, kInt32);
  const ImportedModel model = must_import(builder);
  const auto mean = [](const Doubles& values) {
    double sum = 0;
    for (const double value : values) sum += value;
    return sum / static_cast<double>(values.size());
  };
  const Doubles uniform = value_of(model, "u"), normal = value_of(model, "n");
  EXPECT_NEAR(mean(uniform), 3, 0.05);
  EXPECT_THAT(uniform, Each(testing::AllOf(testing::Ge(2), testing::Lt(4))));
  EXPECT_NEAR(mean(normal), 5, 0.15);
  Doubles squares;
  for (const double value : normal) squares.push_back((value - 5) * (value - 5));
  EXPECT_NEAR(mean(squares), 4, 0.4);
  EXPECT_NE(normal, value_of(model, "m"));  // nodes without a seed differ
  EXPECT_NEAR(mean(value_of(model, "b")), 0.25, 0.03);
  EXPECT_NEAR(mean(value_of(model, "k")), 0.75, 0.03);
}

TEST(OnnxRandom, DropoutInTrainingScalesWhatStays) {
  OnnxBuilder builder;
  builder.input("x", {"1000"}).floats("ratio", {}, {0.75f}).raw("train", {}, kBool, std::string("\1", 1));
  builder.node("Dropout", {"x", "ratio", "train"}, {"y", "mask"}).output("y").output("mask", {}, kBool);
  const ImportedModel model = must_import(builder);
  const reference::Bindings values{{"x", Doubles(1000, 2)}};
  const Doubles y = value_of(model, "y", values), mask = value_of(model, "mask", values);
  double kept = 0;
  for (std::size_t i = 0; i < y.size(); ++i) {
    EXPECT_EQ(y[i], mask[i] != 0 ? 8 : 0);
    kept += mask[i];
  }
  EXPECT_NEAR(kept, 250, 60);
}

// ---- signals and matrices ----

TEST(OnnxSignals, TransformsOfPaddedAndPrimeLengths) {
  OnnxBuilder builder(17);
  builder.input("x", {"1", "3", "1"}).longs("long", {}, {4}).longs("prime", {}, {131});
  builder
      .node("DFT", {"x", "long"}, {"y"}, {OnnxBuilder::number("axis", 1), OnnxBuilder::number("onesided", 1)})
      .node("DFT", {"x", "prime"}, {"wide"}, {OnnxBuilder::number("axis", 1)})
      .node("DFT", {"wide"}, {"z"}, {OnnxBuilder::number("axis", 1), OnnxBuilder::number("inverse", 1)})
      .output("y")
      .output("z");
  const ImportedModel model = must_import(builder);
  const reference::Bindings values{{"x", {1, 2, 4}}};
  // The transform of 1, 2, 4, 0.
  EXPECT_THAT(value_of(model, "y", values), close_to({7, 0, -3, -2, 3, 0}));
  Doubles back = value_of(model, "z", values);
  ASSERT_EQ(back.size(), 262u);
  for (std::size_t i = 0; i < back.size(); ++i)
    EXPECT_NEAR(back[i], i == 0 ? 1 : i == 2 ? 2 : i == 4 ? 4 : 0, 1e-5) << i;
}

TEST(OnnxMatrices, DeterminantsOfMoreThanFourRows) {
  OnnxBuilder builder;
  builder.input("x", {"6", "6"}).node("Det", {"x"}, {"y"}).output("y");
  Doubles x(36);
  for (std::size_t i = 0; i < 6; ++i) x[i * 6 + 5 - i] = static_cast<double>(i + 1), x[i * 6] += 0.5;
  // Reversed rows of six have the sign -1. The first column changes the last row's element only.
  EXPECT_THAT(test::run(builder, {}, {{"x", x}}), close_to({-120 * 6.5}));
}

// ---- boxes ----

TEST(OnnxDetection, SuppressionKeepsTheBestOfOverlappingBoxes) {
  OnnxBuilder builder;
  builder.floats("boxes", {1, 4, 4}, {0, 0, 1, 1, 0, 0.1f, 1, 1.1f, 0, 10, 1, 11, 1, 11.1f, 0, 10.1f})
      .floats("scores", {1, 1, 4}, {0.5f, 0.9f, 0.6f, 0.2f})
      .longs("most", {}, {10})
      .floats("iou", {}, {0.5f})
      .floats("least", {}, {0.1f})
      .node("NonMaxSuppression", {"boxes", "scores", "most", "iou", "least"}, {"y"})
      .output("y", {}, kInt64);
  EXPECT_THAT(test::run(builder), ElementsAre(0, 0, 1, 0, 0, 2));
  OnnxBuilder late;
  late.input("boxes", {"1", "4", "4"}).input("scores", {"1", "1", "4"});
  late.node("NonMaxSuppression", {"boxes", "scores"}, {"y"}).output("y", {}, kInt64);
  EXPECT_THAT(refusal(late).message, HasSubstr("computed at run time"));
}

TEST(OnnxDetection, RegionsAreSampledBetweenElements) {
  OnnxBuilder builder(16);
  builder.input("x", {"1", "1", "3", "3"})
      .floats("regions", {2, 4}, {0.5f, 0.5f, 2.5f, 2.5f, 0, 0, 2, 1})
      .longs("batches", {2}, {0, 0})
      .node("RoiAlign", {"x", "regions", "batches"}, {"y"},
            {OnnxBuilder::number("output_height", 2), OnnxBuilder::number("output_width", 2),
             OnnxBuilder::number("sampling_ratio", 1)})
      .output("y");
  // Half pixels: the first region's samples fall on (0.5, 1.5) x (0.5, 1.5); the second's on y -0.25 and
  // 0.25, x 0 and 1. Values are 3 y + x, and -0.25 reads as 0.
  EXPECT_THAT(test::run(builder, {}, {{"x", {0, 1, 2, 3, 4, 5, 6, 7, 8}}}),
              close_to({2, 3, 5, 6, 0, 1, 0.75, 1.75}));
}

TEST(OnnxDetection, MaxRoiPoolTakesTheLargest) {
  OnnxBuilder builder;
  builder.input("x", {"1", "1", "3", "4"})
      .floats("regions", {1, 5}, {0, 0, 0, 3, 1})
      .node("MaxRoiPool", {"x", "regions"}, {"y"}, {OnnxBuilder::list("pooled_shape", {1, 2})})
      .output("y");
  EXPECT_THAT(test::run(builder, {}, {{"x", {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}}}), ElementsAre(6, 8));
}

TEST(OnnxDetection, UniqueRowsWithTheirCounts) {
  OnnxBuilder builder;
  builder.floats("x", {3, 2}, {2, 1, 0, 5, 2, 1})
      .node("Unique", {"x"}, {"y", "at", "back", "n"}, {OnnxBuilder::number("axis", 0)})
      .node("Unique", {"x"}, {"z"}, {OnnxBuilder::number("sorted", 0)});
  builder.output("y").output("at", {}, kInt64).output("back", {}, kInt64).output("n", {}, kInt64).output("z");
  const ImportedModel model = must_import(builder);
  EXPECT_THAT(value_of(model, "y"), ElementsAre(0, 5, 2, 1));
  EXPECT_THAT(value_of(model, "at"), ElementsAre(1, 0));
  EXPECT_THAT(value_of(model, "back"), ElementsAre(1, 0, 1));
  EXPECT_THAT(value_of(model, "n"), ElementsAre(1, 2));
  EXPECT_THAT(value_of(model, "z"), ElementsAre(2, 1, 0, 5));
}

// ---- steps of optimisers ----

TEST(OnnxTraining, OneStepOfEach) {
  const auto stepped = [](const char* op, const Names& inputs,
                          const std::vector<OnnxBuilder::Attribute>& attributes) {
    OnnxBuilder builder;
    builder.input("x", {"1"}).input("g", {"1"}).floats("v", {1}, {0.5f}).floats("h", {1}, {4});
    builder.floats("r", {}, {0.1f}).longs("t", {}, {2});
    builder.node(op, inputs, {"y"}, attributes, "", "ai.onnx.preview.training").output("y");
    return test::run(builder, {}, {{"x", {1}}, {"g", {3}}});
  };
  EXPECT_THAT(stepped("Adagrad", {"r", "t", "x", "g", "h"}, {OnnxBuilder::real("decay_factor", 0.5f)}),
              close_to({1 - 0.05 * 3 / std::sqrt(13.0)}));
  EXPECT_THAT(stepped("Momentum", {"r", "t", "x", "g", "v"},
                      {OnnxBuilder::real("alpha", 0.9f), OnnxBuilder::real("beta", 2),
                       OnnxBuilder::text("mode", "nesterov")}),
              close_to({1 - 0.1 * (3 + 0.9 * (0.45 + 6))}));
  const double v = 0.9 * 0.5 + 0.1 * 3, h = 0.99 * 4 + 0.01 * 9;
  EXPECT_THAT(stepped("Adam", {"r", "t", "x", "g", "v", "h"}, {OnnxBuilder::real("beta", 0.99f)}),
              close_to({1 - 0.1 * std::sqrt(1 - 0.99 * 0.99) / (1 - 0.81) * v / std::sqrt(h)}, 1e-4));
}

// ---- com.microsoft ----

OnnxBuilder microsoft(OnnxBuilder builder, const char* op, const Names& inputs, const Names& outputs,
                      const std::vector<OnnxBuilder::Attribute>& attributes = {}, int type = kFloat) {
  builder.node(op, inputs, outputs, attributes, "", "com.microsoft");
  for (const std::string& output : outputs) builder.output(output, {}, type);
  return builder;
}

// A second token after one in the cache: one head of queries for each of two, one of keys.
TEST(OnnxMicrosoft, GroupedQueriesWithACache) {
  OnnxBuilder builder;
  builder.input("q", {"1", "1", "4"}).input("k", {"1", "1", "2"}).input("v", {"1", "1", "2"});
  builder.input("pk", {"1", "1", "1", "2"}).input("pv", {"1", "1", "1", "2"});
  builder.raw("last", {1}, kInt32, std::string("\1\0\0\0", 4))
      .raw("total", {}, kInt32, std::string("\2\0\0\0", 4));
  const ImportedModel model = must_import(microsoft(
      builder, "GroupQueryAttention", {"q", "k", "v", "pk", "pv", "last", "total"}, {"y", "nk", "nv"},
      {OnnxBuilder::number("num_heads", 2), OnnxBuilder::number("kv_num_heads", 1),
       OnnxBuilder::real("scale", 1)}));
  const reference::Bindings values{
      {"q", {1, 0, 0, 2}}, {"k", {0, 1}}, {"v", {30, 40}}, {"pk", {1, 0}}, {"pv", {10, 20}}};
  EXPECT_THAT(value_of(model, "nk", values), ElementsAre(1, 0, 0, 1));
  EXPECT_THAT(value_of(model, "nv", values), ElementsAre(10, 20, 30, 40));
  const double a = std::exp(1.0) / (std::exp(1.0) + 1), b = 1 / (1 + std::exp(2.0));
  EXPECT_THAT(value_of(model, "y", values),
              close_to({30 - 20 * a, 40 - 20 * a, 30 - 20 * b, 40 - 20 * b}, 1e-4));
}

TEST(OnnxMicrosoft, FirstTokensOfTwoLengthsAreCausal) {
  OnnxBuilder builder;
  builder.input("q", {"1", "2", "2"}).input("k", {"1", "2", "2"}).input("v", {"1", "2", "2"});
  builder.raw("last", {1}, kInt32, std::string("\1\0\0\0", 4))
      .raw("total", {}, kInt32, std::string("\2\0\0\0", 4));
  builder.floats("cos", {4, 1}, {1, 0, -1, 0}).floats("sin", {4, 1}, {0, 1, 0, -1});
  const ImportedModel model = must_import(microsoft(
      builder, "GroupQueryAttention", {"q", "k", "v", "", "", "last", "total", "cos", "sin"}, {"y", "nk"},
      {OnnxBuilder::number("num_heads", 1), OnnxBuilder::number("kv_num_heads", 1),
       OnnxBuilder::number("do_rotary", 1), OnnxBuilder::real("scale", 1)}));
  const reference::Bindings values{{"q", {1, 0, 1, 0}}, {"k", {1, 0, 1, 0}}, {"v", {1, 2, 3, 4}}};
  EXPECT_THAT(value_of(model, "nk", values), close_to({1, 0, 0, 1}));  // the second is turned by a quarter
  const double second = std::exp(1.0) / (std::exp(1.0) + 1);
  EXPECT_THAT(value_of(model, "y", values), close_to({1, 2, 1 + 2 * second, 2 + 2 * second}, 1e-4));
}

TEST(OnnxMicrosoft, WeightsOfFourBits) {
  // Two columns of 20 weights in blocks of 16: the numbers 0..15, then 4 of the next block.
  std::string packed;
  for (int column = 0; column < 2; ++column)
    for (int block = 0; block < 2; ++block)
      for (int i = 0; i < 8; ++i)
        packed += static_cast<char>(block == 1 && i >= 2 ? 0 : (2 * i) | ((2 * i + 1) << 4));
  Doubles x(20);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<double>(i) - 3;
  const auto product = [&](const Names& further, double zero_of_first) {
    OnnxBuilder builder;
    builder.input("x", {"1", "20"})
        .raw("w", {2, 2, 8}, kUint8, packed)
        .floats("s", {4}, {0.5f, 2, 1, 0.25f})
        .raw("z", {2}, kUint8, std::string("\x83\x88", 2));  // first column: 3 and 8
    Names inputs{"x", "w", "s"};
    inputs.insert(inputs.end(), further.begin(), further.end());
    const Doubles found =
        test::run(microsoft(builder, "MatMulNBits", inputs, {"y"},
                            {OnnxBuilder::number("K", 20), OnnxBuilder::number("N", 2),
                             OnnxBuilder::number("bits", 4), OnnxBuilder::number("block_size", 16)}),
                  {}, {{"x", x}});
    const double scales[] = {0.5, 2, 1, 0.25};
    Doubles expected(2);
    for (std::size_t column = 0; column < 2; ++column)
      for (std::size_t i = 0; i < 20; ++i) {
        const double zero = column == 0 && i < 16 ? zero_of_first : 8;
        expected[column] += x[i] * (static_cast<double>(i % 16) - zero) * scales[2 * column + i / 16];
      }
    EXPECT_THAT(found, close_to(expected, 1e-3));
  };
  product({}, 8);
  product({"z"}, 3);
}

TEST(OnnxMicrosoft, QuantisedAndFused) {
  OnnxBuilder builder;
  builder.input("a", {"3"}, kUint8)
      .input("b", {"3"}, kUint8)
      .floats("half", {}, {0.5f})
      .floats("one", {}, {1});
  builder.raw("z", {}, kUint8, std::string("\12", 1)).raw("none", {}, kUint8, std::string("\0", 1));
  const Names inputs{"a", "half", "z", "b", "one", "none", "one", "z"};
  const reference::Bindings values{{"a", {10, 14, 255}}, {"b", {1, 2, 255}}};
  EXPECT_THAT(test::run(microsoft(builder, "QLinearAdd", inputs, {"y"}, {}, kUint8), {}, values),
              ElementsAre(11, 14, 255));
  EXPECT_THAT(test::run(microsoft(builder, "QLinearMul", inputs, {"y"}, {}, kUint8), {}, values),
              ElementsAre(10, 14, 255));
  OnnxBuilder conv;
  conv.input("x", {"1", "1", "3"}).floats("w", {1, 1, 2}, {1, -1}).floats("b", {1}, {0.5f});
  EXPECT_THAT(test::run(microsoft(conv, "FusedConv", {"x", "w", "b"}, {"y"},
                                  {OnnxBuilder::text("activation", "Relu")}),
                        {}, {{"x", {1, 3, 2}}}),
              ElementsAre(0, 1.5));
}

// Files pack two numbers into a byte, the first in its lower half.
TEST(OnnxQuantised, NumbersOfFourBits) {
  constexpr int kUint4 = 21, kInt4 = 22;
  OnnxBuilder builder(21, 10);
  builder.raw("w", {3, 1}, kInt4, "\x71\x08").raw("u", {3, 1}, kUint4, "\xF1\x08");  // 1 7 -8, 1 15 8
  builder.floats("scales", {2, 1}, {0.5f, 10}).floats("half", {}, {0.5f}).raw("one", {}, kInt4, "\x01");
  builder.input("x", {"4"});
  builder.node("DequantizeLinear", {"w", "scales"}, {"blocks"},
               {OnnxBuilder::number("axis", 0), OnnxBuilder::number("block_size", 2)});
  builder.node("DequantizeLinear", {"w", "half", "one"}, {"a"});
  builder.node("DequantizeLinear", {"u", "half"}, {"b"});
  builder.node("QuantizeLinear", {"x", "half", "one"}, {"q"})
      .node("Cast", {"x"}, {"c"}, {OnnxBuilder::number("to", kUint4)});
  builder.node("Cast", {"c"}, {"whole"}, {OnnxBuilder::number("to", kInt32)});
  for (const char* name : {"blocks", "a", "b"}) builder.output(name);
  const ImportedModel model = must_import(builder.output("q", {}, kInt4).output("whole", {}, kInt32));
  const reference::Bindings values{{"x", {-100, 1, 1.5, 100}}};
  EXPECT_THAT(value_of(model, "blocks"), ElementsAre(0.5, 3.5, -80));
  EXPECT_THAT(value_of(model, "a"), ElementsAre(0, 3, -4.5));
  EXPECT_THAT(value_of(model, "b"), ElementsAre(0.5, 7.5, 4));
  EXPECT_THAT(value_of(model, "q", values), ElementsAre(-8, 3, 4, 7));
  EXPECT_THAT(value_of(model, "whole", values), ElementsAre(12, 1, 1, 4)) << "the low bits";
  OnnxBuilder damaged;
  damaged.raw("w", {3}, kInt4, "\x71\x08\x01")
      .node("Cast", {"w"}, {"y"}, {OnnxBuilder::number("to", kFloat)})
      .output("y");
  EXPECT_THAT(onnx::parse(damaged.bytes()).error().message, HasSubstr("found 3 bytes, expected 2 of int4"));
}

// Small weights are one product however many terms it has; large ones are cut where float32 would round.
TEST(OnnxQuantised, SumsOfManyTermsAreExact) {
  constexpr std::int64_t kTerms = 1100;
  for (const int largest : {8, 127}) {
    std::string weights;
    Doubles x;
    double expected[] = {0, 0};
    for (std::int64_t i = 0; i < kTerms; ++i) {
      x.push_back(static_cast<double>(255 - i % 3));
      for (double& sum : expected) {
        const int weight = largest - static_cast<int>(i % 2) - (&sum == expected ? 0 : 1);
        weights += static_cast<char>(weight);
        sum += (x.back() - 3) * weight;
      }
    }
    OnnxBuilder builder;
    builder.input("x", {"1", std::to_string(kTerms)}, kUint8).raw("w", {kTerms, 2}, test::kInt8, weights);
    builder.raw("zero", {}, kUint8, "\3")
        .node("MatMulInteger", {"x", "w", "zero"}, {"y"})
        .output("y", {}, kInt32);
    const ImportedModel model = must_import(builder);
    EXPECT_THAT(value_of(model, "y", {{"x", x}}), ElementsAre(expected[0], expected[1]));
    const tensor::Node& page = *model.outputs[0].tensor.node();
    ASSERT_EQ(page.op, tensor::Op::page);
    const std::vector<Tensor> inputs(page.inputs.begin(), page.inputs.end());
    const std::vector<Tensor> product = page.page->compose(inputs);
    const auto nodes = program::reachable(product);
    EXPECT_EQ(std::ranges::count(nodes, tensor::Op::matmul, [](const auto* node) { return (*node)->op; }),
              largest == 8 ? 1 : 4);
  }
}

}  // namespace
}  // namespace imprint
