// Operators of the importer by small files: resizing, scatters, recurrent cells, attention, quantised
// numbers. Values are by hand, from the specification's examples, or from a scalar program.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>

#include "compute/model/onnx/op.h"
#include "compute/tensor/pages/library_page.h"
#include "tests/unit/model_onnx_run.h"

namespace imprint {
namespace {

using test::kBool;
using test::kFloat;
using test::kFloat16;
using test::kInt32;
using test::kInt64;
using test::kInt8;
using test::kUint8;
using test::must_import;
using test::OnnxBuilder;
using test::refusal;
using test::run;
using testing::DoubleNear;
using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::HasSubstr;
using testing::Pointwise;

using Doubles = std::vector<double>;
auto near(const Doubles& expected, double within = 1e-5) {
  return Pointwise(testing::DoubleNear(within), expected);
}

Doubles output(const OnnxBuilder& builder, std::size_t at, const reference::Bindings& values = {}) {
  const ImportedModel model = must_import(builder);
  return at < model.outputs.size() ? reference::evaluate(model.outputs[at].tensor, values) : Doubles();
}

// The page lists what the importer has, and nothing else.
TEST(OnnxPage, ListsEachOperator) {
  std::ifstream file(IMPRINT_TEST_ONNX_PAGE);
  std::stringstream text;
  text << file.rdbuf();
  const std::string page = text.str();
  std::set<std::string> listed, known;
  const std::size_t begin = page.find("## Operators"), end = page.find("\n## ", begin + 1);
  ASSERT_NE(begin, std::string::npos);
  const std::string part = page.substr(begin, end - begin);
  const std::regex name("`([A-Za-z0-9.]+)`");
  for (std::sregex_iterator at(part.begin(), part.end(), name), last; at != last; ++at)
    listed.insert((*at)[1]);
  for (const auto family : onnx::all_ops())
    for (const onnx::OpHandler& handler : family) known.insert(std::string(handler.name));
  EXPECT_EQ(listed, known);
}

// ---- resizing and convolution ----

OnnxBuilder resize(const std::vector<float>& scales, const std::vector<OnnxBuilder::Attribute>& attributes,
                   const std::vector<std::string>& extents = {"1", "1", "2", "2"}) {
  OnnxBuilder builder;
  builder.input("x", extents)
      .floats("scales", {static_cast<std::int64_t>(scales.size())}, scales)
      .node("Resize", {"x", "", "scales"}, {"y"}, attributes)
      .output("y");
  return builder;
}

TEST(OnnxResize, ModesOfTheSpecification) {
  const reference::Bindings two{{"x", {1, 2, 3, 4}}};
  EXPECT_THAT(run(resize({1, 1, 2, 3}, {}), {}, two),
              ElementsAre(1, 1, 1, 2, 2, 2, 1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4, 3, 3, 3, 4, 4, 4));
  EXPECT_THAT(run(resize({1, 1, 2, 2}, {OnnxBuilder::text("mode", "linear")}), {}, two),
              near({1, 1.25, 1.75, 2, 1.5, 1.75, 2.25, 2.5, 2.5, 2.75, 3.25, 3.5, 3, 3.25, 3.75, 4}));
  EXPECT_THAT(
      run(resize({1, 1, 2, 2}, {OnnxBuilder::text("mode", "linear"),
                                OnnxBuilder::text("coordinate_transformation_mode", "align_corners")}),
          {}, two),
      near({1, 4.0 / 3, 5.0 / 3, 2, 5.0 / 3, 2, 7.0 / 3, 8.0 / 3, 7.0 / 3, 8.0 / 3, 3, 10.0 / 3, 3, 10.0 / 3,
            11.0 / 3, 4}));
  const std::vector<std::string> wide{"1", "1", "2", "4"};
  const reference::Bindings eight{{"x", {1, 2, 3, 4, 5, 6, 7, 8}}};
  // The specification's examples of downsampling by 0.6.
  EXPECT_THAT(run(resize({1, 1, 0.6f, 0.6f}, {OnnxBuilder::text("mode", "linear")}, wide), {}, eight),
              near({2.6666665, 4.3333331}));
  EXPECT_THAT(run(resize({1, 1, 0.6f, 0.6f}, {}, wide), {}, eight), ElementsAre(1, 3));
}

// Half of 5 places are 2 and a half: both ends lose as much.
TEST(OnnxResize, SymmetricPlacesLieAroundTheCentre) {
  EXPECT_THAT(run(resize({1, 1, 0.5f},
                         {OnnxBuilder::text("mode", "linear"),
                          OnnxBuilder::text("coordinate_transformation_mode", "half_pixel_symmetric")},
                         {"1", "1", "5"}),
                  {}, {{"x", {10, 11, 13, 17, 19}}}),
              near({11, 17}));
}

TEST(OnnxResize, CubicKeepsAConstantAndItsOwnPlaces) {
  const std::vector<std::string> line{"1", "1", "4"};
  const Doubles twice = run(resize({1, 1, 2},
                                   {OnnxBuilder::text("mode", "cubic"),
                                    OnnxBuilder::text("coordinate_transformation_mode", "asymmetric")},
                                   line),
                            {}, {{"x", {1, 5, 2, 4}}});
  ASSERT_EQ(twice.size(), 8u);
  // Keys' kernel with a = -0.75 at 0.5: -3/32, 19/32, 19/32, -3/32.
  EXPECT_THAT(twice, near({1, (19 * (1 + 5.0) - 3 * (1 + 2.0)) / 32, 5, (19 * 7.0 - 3 * 5.0) / 32, 2,
                           (19 * 6.0 - 3 * 9.0) / 32, 4, (19 * 8.0 - 3 * 6.0) / 32}));
}

TEST(OnnxResize, SizesMayKeepTheAspectRatio) {
  OnnxBuilder builder(18);
  builder.input("x", {"2", "4"})
      .longs("sizes", {2}, {6, 6})
      .node("Resize", {"x", "", "", "sizes"}, {"y"},
            {OnnxBuilder::text("keep_aspect_ratio_policy", "not_larger")})
      .output("y");
  EXPECT_EQ(must_import(builder).outputs.at(0).tensor.shape(), (Shape{3, 6}));
  EXPECT_THAT(refusal(resize({1, 1, 0, 1}, {})).message, HasSubstr("found 0 places"));
  EXPECT_THAT(refusal(resize({1, 1, 2, 1}, {OnnxBuilder::text("mode", "blurred")})).message,
              HasSubstr("mode 'blurred'"));
  EXPECT_THAT(refusal(resize({1, 1, 1e30f, 1}, {})).message, HasSubstr("Resize"));
}

TEST(OnnxConvolutions, TransposedWithStrideAndShape) {
  const auto transposed = [](const std::vector<OnnxBuilder::Attribute>& attributes) {
    OnnxBuilder builder;
    builder.input("x", {"1", "1", "3"})
        .floats("w", {1, 1, 2}, {1, 10})
        .floats("b", {1}, {100})
        .node("ConvTranspose", {"x", "w", "b"}, {"y"}, attributes)
        .output("y");
    return run(builder, {}, {{"x", {1, 2, 3}}});
  };
  EXPECT_THAT(transposed({}), ElementsAre(101, 112, 123, 130));
  EXPECT_THAT(transposed({OnnxBuilder::list("strides", {3}), OnnxBuilder::list("output_padding", {1})}),
              ElementsAre(101, 110, 100, 102, 120, 100, 103, 130, 100));
  EXPECT_THAT(transposed({OnnxBuilder::list("pads", {1, 1})}), ElementsAre(112, 123));
  EXPECT_THAT(transposed({OnnxBuilder::list("output_shape", {6})}),
              ElementsAre(100, 101, 112, 123, 130, 100));
  EXPECT_THAT(transposed({OnnxBuilder::list("output_shape", {3})}), ElementsAre(112, 123, 130));
  EXPECT_THAT(
      transposed({OnnxBuilder::list("output_shape", {3}), OnnxBuilder::text("auto_pad", "SAME_UPPER")}),
      ElementsAre(101, 112, 123));
  OnnxBuilder thin;
  thin.input("x", {"1", "1", "1"}).floats("w", {1, 1, 2}, {1, 10});
  thin.node("ConvTranspose", {"x", "w"}, {"y"}, {OnnxBuilder::list("pads", {1, 1})}).output("y");
  EXPECT_THAT(refusal(thin).message, HasSubstr("the pads leave nothing"));
}

TEST(OnnxConvolutions, MaxPoolTellsWhereItFound) {
  OnnxBuilder builder;
  builder.input("x", {"1", "2", "2", "3"})
      .node("MaxPool", {"x"}, {"y", "at"}, {OnnxBuilder::list("kernel_shape", {2, 2})})
      .node("MaxUnpool", {"y", "at"}, {"z"}, {OnnxBuilder::list("kernel_shape", {2, 2})})
      .output("at", {}, kInt64)
      .output("z");
  const reference::Bindings values{{"x", {1, 9, 2, 3, 4, 5, 6, 0, 0, 0, 0, 8}}};
  EXPECT_THAT(output(builder, 0, values), ElementsAre(1, 1, 6, 11));
  EXPECT_THAT(output(builder, 1, values), ElementsAre(0, 9, 0, 0, 0, 0, 6, 0, 0, 0, 0, 8));
}

// ---- indices ----

TEST(OnnxIndices, TopKInBothOrders) {
  OnnxBuilder builder;
  builder.input("x", {"5"}).longs("k", {1}, {2});
  builder.node("TopK", {"x", "k"}, {"v", "i"})
      .node("TopK", {"x", "k"}, {"w", "j"}, {OnnxBuilder::number("largest", 0)});
  builder.output("v").output("i", {}, kInt64).output("w").output("j", {}, kInt64);
  const reference::Bindings values{{"x", {3, 9, -1, 9, 2}}};
  EXPECT_THAT(output(builder, 0, values), ElementsAre(9, 9));
  EXPECT_THAT(output(builder, 1, values), ElementsAre(1, 3));
  EXPECT_THAT(output(builder, 2, values), ElementsAre(-1, 2));
  EXPECT_THAT(output(builder, 3, values), ElementsAre(2, 4));
  OnnxBuilder most;
  most.input("x", {"5"}).longs("k", {1}, {6}).node("TopK", {"x", "k"}, {"v", "i"}).output("v");
  EXPECT_THAT(refusal(most).message, HasSubstr("k: found 6, expected 0 to 5"));
}

TEST(OnnxIndices, GatherND) {
  const auto gathered = [](std::int64_t batch, const test::Extents& shape, const test::Extents& at) {
    OnnxBuilder builder;
    builder.input("x", {"2", "2", "2"})
        .longs("at", shape, at)
        .node("GatherND", {"x", "at"}, {"y"}, {OnnxBuilder::number("batch_dims", batch)})
        .output("y");
    return run(builder, {}, {{"x", {0, 1, 2, 3, 4, 5, 6, 7}}});
  };
  EXPECT_THAT(gathered(0, {2, 2}, {0, 1, 1, 0}), ElementsAre(2, 3, 4, 5));
  EXPECT_THAT(gathered(0, {1, 3}, {-1, 0, -1}), ElementsAre(5));
  EXPECT_THAT(gathered(1, {2, 1}, {1, 0}), ElementsAre(2, 3, 4, 5));
}

TEST(OnnxIndices, Scatters) {
  const auto scattered = [](const std::string& reduction) {
    OnnxBuilder builder;
    builder.input("x", {"4"})
        .longs("at", {3, 1}, {1, -1, 1})
        .floats("u", {3}, {10, 20, 30})
        .node("ScatterND", {"x", "at", "u"}, {"y"}, {OnnxBuilder::text("reduction", reduction)})
        .output("y");
    return run(builder, {}, {{"x", {1, 2, 3, 4}}});
  };
  EXPECT_THAT(scattered("add"), ElementsAre(1, 42, 3, 24));
  EXPECT_THAT(scattered("mul"), ElementsAre(1, 600, 3, 80));
  EXPECT_THAT(scattered("max"), ElementsAre(1, 30, 3, 20));
  EXPECT_THAT(scattered("none"), ElementsAre(1, 30, 3, 20));
  // Fewer indices than elements along the other axis.
  OnnxBuilder builder;
  builder.input("x", {"2", "3"})
      .longs("at", {1, 2}, {1, 0})
      .floats("u", {1, 2}, {7, 8})
      .node("ScatterElements", {"x", "at", "u"}, {"y"})
      .output("y");
  EXPECT_THAT(run(builder, {}, {{"x", {0, 0, 0, 0, 0, 0}}}), ElementsAre(0, 8, 0, 7, 0, 0));
}

TEST(OnnxIndices, ShapesThatFollowFromConstants) {
  OnnxBuilder builder;
  builder.input("x", {"3"})
      .floats("mask", {3}, {1, 0, 2})
      .node("NonZero", {"mask"}, {"at"})
      .raw("keep", {3}, kBool, std::string("\1\0\1", 3))
      .node("Compress", {"x", "keep"}, {"y"}, {OnnxBuilder::number("axis", 0)})
      .output("at", {}, kInt64)
      .output("y");
  EXPECT_THAT(output(builder, 0, {{"x", {5, 6, 7}}}), ElementsAre(0, 2));
  EXPECT_THAT(output(builder, 1, {{"x", {5, 6, 7}}}), ElementsAre(5, 7));
  EXPECT_THAT(
      refusal(OnnxBuilder().input("x", {"3"}).node("NonZero", {"x"}, {"y"}).output("y", {}, kInt64)).message,
      HasSubstr("computed at run time"));
}

TEST(OnnxIndices, EinsumWithOpenAxes) {
  const auto sum = [](const std::string& equation) {
    OnnxBuilder builder;
    builder.input("a", {"2", "1", "2"}).input("b", {"2", "2", "1"});
    builder.node("Einsum", {"a", "b"}, {"y"}, {OnnxBuilder::text("equation", equation)}).output("y");
    return run(builder, {}, {{"a", {1, 2, 3, 4}}, {"b", {10, 20, 30, 40}}});
  };
  EXPECT_THAT(sum("...ij, ...jk -> ...ik"), ElementsAre(50, 250));
  EXPECT_THAT(sum("bij,bjk"), ElementsAre(300));
}

// ---- recurrent ----

double logistic(double x) { return 1 / (1 + std::exp(-x)); }

// One cell with one input and one state, in double.
struct Scalar {
  double w[4], r[4], wb[4], rb[4];
};

TEST(OnnxRecurrent, LstmWithLengthsInBothDirections) {
  const Scalar p{{0.5, -1, 2, 0.3}, {1, 0.2, -0.4, 0.7}, {0.1, 0.2, 0.3, 0.4}, {0, -0.1, 0.2, 0.5}};
  OnnxBuilder builder;
  const auto twice = [](const double(&v)[4], const double(&more)[4]) {
    std::vector<float> out;
    for (int d = 0; d < 2; ++d) {
      for (const double value : v) out.push_back(static_cast<float>(value));
      if (&more != &v)
        for (const double value : more) out.push_back(static_cast<float>(value));
    }
    return out;
  };
  builder.input("x", {"3", "2", "1"})
      .floats("w", {2, 4, 1}, twice(p.w, p.w))
      .floats("r", {2, 4, 1}, twice(p.r, p.r))
      .floats("b", {2, 8}, twice(p.wb, p.rb))
      .raw("lengths", {2}, kInt32, std::string("\3\0\0\0\2\0\0\0", 8))
      .node("LSTM", {"x", "w", "r", "b", "lengths"}, {"y", "h", "c"},
            {OnnxBuilder::text("direction", "bidirectional"), OnnxBuilder::number("hidden_size", 1)})
      .output("y")
      .output("h")
      .output("c");
  const Doubles x{0.5, -1, 2, 0.25, -0.75, 9};  // [steps, batch]
  const int lengths[] = {3, 2};
  Doubles y(12), h(4), c(4);
  for (int direction = 0; direction < 2; ++direction)
    for (int batch = 0; batch < 2; ++batch) {
      double hidden = 0, cell = 0;
      for (int k = 0; k < lengths[batch]; ++k) {
        const int step = direction == 0 ? k : lengths[batch] - 1 - k;
        double g[4];
        for (int i = 0; i < 4; ++i)
          g[i] = p.w[i] * x[static_cast<std::size_t>(step * 2 + batch)] + p.r[i] * hidden + p.wb[i] + p.rb[i];
        cell = logistic(g[2]) * cell + logistic(g[0]) * std::tanh(g[3]);
        hidden = logistic(g[1]) * std::tanh(cell);
        y[static_cast<std::size_t>((step * 2 + direction) * 2 + batch)] = hidden;
      }
      h[static_cast<std::size_t>(direction * 2 + batch)] = hidden;
      c[static_cast<std::size_t>(direction * 2 + batch)] = cell;
    }
  EXPECT_THAT(output(builder, 0, {{"x", x}}), near(y));
  EXPECT_THAT(output(builder, 1, {{"x", x}}), near(h));
  EXPECT_THAT(output(builder, 2, {{"x", x}}), near(c));
}

TEST(OnnxRecurrent, GruInBothForms) {
  const Scalar p{{0.5, -1, 2}, {1, 0.2, -0.4}, {0.1, 0.2, 0.3}, {0.3, -0.1, 0.2}};
  for (const bool before : {false, true}) {
    OnnxBuilder builder;
    builder.input("x", {"1", "2", "1"})
        .floats("w", {1, 3, 1}, {0.5f, -1, 2})
        .floats("r", {1, 3, 1}, {1, 0.2f, -0.4f})
        .floats("b", {1, 6}, {0.1f, 0.2f, 0.3f, 0.3f, -0.1f, 0.2f})
        .floats("h0", {1, 1, 1}, {0.6f})
        .node("GRU", {"x", "w", "r", "b", "", "h0"}, {"", "h"},
              {OnnxBuilder::number("linear_before_reset", before), OnnxBuilder::number("layout", 1)})
        .output("h");
    double h = 0.6;
    for (const double x : {0.7, -0.2}) {
      const auto sum = [&](int i) { return p.w[i] * x + p.r[i] * h + p.wb[i] + p.rb[i]; };
      const double update = logistic(sum(0)), reset = logistic(sum(1));
      const double inner = before ? reset * (p.r[2] * h + p.rb[2]) : p.r[2] * (reset * h) + p.rb[2];
      h = (1 - update) * std::tanh(p.w[2] * x + p.wb[2] + inner) + update * h;
    }
    EXPECT_THAT(run(builder, {}, {{"x", {0.7, -0.2}}}), near({h})) << before;
  }
}

TEST(OnnxRecurrent, RefusesWhatDoesNotFit) {
  const auto refused = [](const std::vector<OnnxBuilder::Attribute>& attributes, const std::string& rows) {
    OnnxBuilder builder;
    builder.input("x", {"2", "1", "1"}).input("w", {"1", rows, "1"}).input("r", {"1", "1", "1"});
    return refusal(builder.node("RNN", {"x", "w", "r"}, {"y"}, attributes).output("y")).message;
  };
  EXPECT_THAT(refused({}, "2"), HasSubstr("W [1, 2, 1] and R [1, 1, 1] do not fit"));
  EXPECT_THAT(refused({OnnxBuilder::words("activations", {"Sine"})}, "1"), HasSubstr("activation 'Sine'"));
  EXPECT_THAT(refused({OnnxBuilder::text("direction", "up")}, "1"), HasSubstr("direction 'up'"));
}

// ---- attention ----

// softmax(scale query key^T) value, node by node: what weights of `axis`, times `bias` where it has numbers,
// are multiplied with.
OnnxBuilder spelled_attention(int axis, bool masked) {
  OnnxBuilder builder;
  builder.input("q", {"1", "2", "3", "4"}).input("k", {"1", "2", "3", "4"}).input("v", {"1", "2", "3", "4"});
  builder.floats("scale", {}, {0.25f}).floats("bias", {3, 3}, {0, 1, 0, 0, 0, 2, 1, 0, 0});
  builder.node("Transpose", {"k"}, {"kt"}, {OnnxBuilder::list("perm", {0, 1, 3, 2})})
      .node("MatMul", {"q", "kt"}, {"product"})
      .node("Mul", {"product", "scale"}, {"scores"});
  if (masked) builder.node("Add", {"scores", "bias"}, {"masked"});
  builder.node("Softmax", {masked ? "masked" : "scores"}, {"weights"}, {OnnxBuilder::number("axis", axis)})
      .node("MatMul", {"weights", "v"}, {"y"})
      .output("y");
  return builder;
}

bool is_attention_page(const OnnxBuilder& builder) {
  const ImportedModel model = must_import(builder);
  const tensor::Node& node = *model.outputs.at(0).tensor.node();
  return node.op == tensor::Op::page && node.page->name == "attention";
}

TEST(OnnxAttention, SpelledOutInNodesIsOnePage) {
  EXPECT_TRUE(is_attention_page(spelled_attention(-1, false)));
  EXPECT_FALSE(is_attention_page(spelled_attention(2, false)));
  EXPECT_FALSE(is_attention_page(spelled_attention(-1, true)));
  Doubles q, k, v;
  for (int i = 0; i < 24; ++i) {
    q.push_back(std::sin(i));
    k.push_back(std::cos(2 * i));
    v.push_back(std::sin(3 * i));
  }
  Doubles expected;
  for (int row = 0; row < 6; ++row) {
    const int head = row / 3;
    std::array<double, 3> weights{};
    double sum = 0;
    for (int key = 0; key < 3; ++key) {
      double score = 0;
      for (int i = 0; i < 4; ++i) score += q[row * 4 + i] * k[(head * 3 + key) * 4 + i];
      sum += weights[key] = std::exp(0.25 * score);
    }
    for (int i = 0; i < 4; ++i) {
      double value = 0;
      for (int key = 0; key < 3; ++key) value += weights[key] / sum * v[(head * 3 + key) * 4 + i];
      expected.push_back(value);
    }
  }
  EXPECT_THAT(run(spelled_attention(-1, false), {}, {{"q", q}, {"k", k}, {"v", v}}), near(expected));
}

TEST(OnnxAttention, CausalWithGroupedHeads) {
  OnnxBuilder builder(23);
  builder.input("q", {"1", "2", "2", "1"}).input("k", {"1", "1", "2", "1"}).input("v", {"1", "1", "2", "1"});
  builder
      .node("Attention", {"q", "k", "v"}, {"y"},
            {OnnxBuilder::number("is_causal", 1), OnnxBuilder::real("scale", 1)})
      .output("y");
  const auto mixed = [](double q) {
    const double first = std::exp(q * 1), second = std::exp(q * 2);
    return (first * 10 + second * 20) / (first + second);
  };
  EXPECT_THAT(run(builder, {}, {{"q", {0.5, 1, -1, 0.25}}, {"k", {1, 2}}, {"v", {10, 20}}}),
              near({10, mixed(1), 10, mixed(0.25)}));
}

TEST(OnnxAttention, AQueryThatSeesNothingGivesZeros) {
  OnnxBuilder builder(23);
  builder.input("q", {"1", "1", "2", "1"}).input("k", {"1", "1", "2", "1"}).input("v", {"1", "1", "2", "1"});
  builder.input("m", {"2", "2"}, kBool).node("Attention", {"q", "k", "v", "m"}, {"y"}).output("y");
  EXPECT_THAT(run(builder, {}, {{"q", {1, 1}}, {"k", {1, 2}}, {"v", {10, 20}}, {"m", {0, 0, 0, 1}}}),
              near({0, 20}));
}

TEST(OnnxAttention, RotaryPositions) {
  OnnxBuilder builder(23);
  builder.input("x", {"1", "1", "2", "2"})
      .floats("cos", {3, 1}, {1, 0, -1})
      .floats("sin", {3, 1}, {0, 1, 0})
      .longs("at", {1, 2}, {2, 1})
      .node("RotaryEmbedding", {"x", "cos", "sin", "at"}, {"y"})
      .output("y");
  EXPECT_THAT(run(builder, {}, {{"x", {1, 2, 3, 4}}}), ElementsAre(-1, -2, -4, 3));
}

TEST(OnnxAttention, FusedOperatorsOfExporters) {
  OnnxBuilder builder;
  builder.input("x", {"2", "2"})
      .floats("one", {2}, {1, 1})
      .node("FusedMatMul", {"x", "x"}, {"a"},
            {OnnxBuilder::number("transB", 1), OnnxBuilder::real("alpha", 0.5f)}, "", "com.microsoft")
      .node("SkipLayerNormalization", {"x", "x", "one", "one"}, {"b"}, {OnnxBuilder::real("epsilon", 0)}, "",
            "com.microsoft")
      .node("QuickGelu", {"x"}, {"c"}, {}, "", "com.microsoft")
      .output("a")
      .output("b")
      .output("c");
  const reference::Bindings values{{"x", {1, 3, 2, 0}}};
  EXPECT_THAT(output(builder, 0, values), ElementsAre(5, 1, 1, 2));
  EXPECT_THAT(output(builder, 1, values), near({0, 2, 2, 0}));
  EXPECT_THAT(output(builder, 2, values),
              near({logistic(1.702), 3 * logistic(5.106), 2 * logistic(3.404), 0}));
}

// ---- quantised ----

TEST(OnnxQuantised, RoundsHalvesToEvenAndSaturates) {
  OnnxBuilder builder;
  builder.input("x", {"5"})
      .floats("s", {}, {2})
      .raw("z", {}, kInt8, std::string("\1", 1))
      .node("QuantizeLinear", {"x", "s", "z"}, {"q"})
      .node("DequantizeLinear", {"q", "s", "z"}, {"y"})
      .output("q", {}, kInt8)
      .output("y");
  const reference::Bindings values{{"x", {1, 3, -3, 1000, -1000}}};
  EXPECT_THAT(output(builder, 0, values), ElementsAre(1, 3, -1, 127, -128));
  EXPECT_THAT(output(builder, 1, values), ElementsAre(0, 4, -4, 252, -258));
}

// 300 products of 255 * 255 are beyond float32's whole numbers.
TEST(OnnxQuantised, LongProductsAreExact) {
  OnnxBuilder builder;
  builder.input("a", {"1", "300"}, kUint8)
      .raw("b", {300, 1}, kUint8, std::string(300, '\xff'))
      .node("MatMulInteger", {"a", "b"}, {"y"})
      .output("y", {}, kInt32);
  Doubles a(300, 255);
  a[7] = 254;
  EXPECT_THAT(run(builder, {}, {{"a", a}}), ElementsAre(300 * 65025 - 255));
}

TEST(OnnxQuantised, ConvolutionPadsWithTheZeroPoint) {
  OnnxBuilder builder;
  builder.input("x", {"1", "1", "3"}, kUint8)
      .raw("w", {1, 1, 2}, kInt8, std::string("\1\2", 2))
      .raw("xz", {}, kUint8, std::string("\12", 1))
      .node("ConvInteger", {"x", "w", "xz"}, {"y"}, {OnnxBuilder::list("pads", {1, 0})})
      .output("y", {}, kInt32);
  EXPECT_THAT(run(builder, {}, {{"x", {11, 12, 9}}}), ElementsAre(2, 1 + 4, 2 - 2));
  OnnxBuilder linear;
  linear.input("x", {"1", "1", "2"}, kUint8)
      .floats("one", {}, {1})
      .floats("half", {}, {0.5f})
      .raw("z", {}, kUint8, std::string("\0", 1))
      .raw("w", {1, 1, 1}, kUint8, std::string("\3", 1))
      .raw("b", {1}, kInt32, std::string("\2\0\0\0", 4))
      .node("QLinearConv", {"x", "one", "z", "w", "half", "z", "one", "z", "b"}, {"y"})
      .output("y", {}, kUint8);
  EXPECT_THAT(run(linear, {}, {{"x", {4, 255}}}), ElementsAre(7, 255));
}

// ---- Cast ----

Doubles cast(int from, int to, const Doubles& values) {
  OnnxBuilder builder;
  builder.input("x", {std::to_string(values.size())}, from)
      .node("Cast", {"x"}, {"y"}, {OnnxBuilder::number("to", to)})
      .output("y", {}, to);
  return run(builder, {}, {{"x", values}});
}

// ---- reductions and products of whole numbers ----

Doubles without_axes(const std::string& op, const Doubles& values) {
  OnnxBuilder builder(18);
  builder.input("x", {"2"})
      .node(op, {"x"}, {"y"}, {OnnxBuilder::number("noop_with_empty_axes", 1)})
      .output("y");
  return run(builder, {}, {{"x", values}});
}

TEST(OnnxReductions, WithoutAxesReduceEachElementAlone) {
  EXPECT_THAT(without_axes("ReduceSum", {2, -3}), ElementsAre(2, -3));
  EXPECT_THAT(without_axes("ReduceL1", {2, -3}), ElementsAre(2, 3));
  EXPECT_THAT(without_axes("ReduceL2", {2, -3}), near({2, 3}));
  EXPECT_THAT(without_axes("ReduceSumSquare", {2, -3}), ElementsAre(4, 9));
  EXPECT_THAT(without_axes("ReduceLogSum", {1, 2}), near({0, std::log(2.0)}));
  EXPECT_THAT(without_axes("ReduceLogSumExp", {2, -3}), near({2, -3}));
}

TEST(OnnxReductions, AMeanOfWholeNumbersIsOne) {
  OnnxBuilder builder;
  builder.input("x", {"2", "3"}, kInt32)
      .node("ReduceMean", {"x"}, {"y"}, {OnnxBuilder::list("axes", {1}), OnnxBuilder::number("keepdims", 0)})
      .output("y", {}, kInt32);
  EXPECT_THAT(run(builder, {}, {{"x", {1, 2, 5, -1, -2, -5}}}), ElementsAre(2, -2));
}

TEST(OnnxProducts, OfWholeNumbersAreExact) {
  const auto product = [](const std::vector<std::string>& a, const std::vector<std::string>& b,
                          const Doubles& of_a, const Doubles& of_b) {
    OnnxBuilder builder;
    builder.input("a", a, kInt32)
        .input("b", b, kInt32)
        .node("MatMul", {"a", "b"}, {"y"})
        .output("y", {}, kInt32);
    return run(builder, {}, {{"a", of_a}, {"b", of_b}});
  };
  EXPECT_THAT(product({"2", "2"}, {"2", "1"}, {16777217, 1, 2, 3}, {1, 4}), ElementsAre(16777221, 14));
  EXPECT_THAT(product({"2"}, {"2"}, {3, 4}, {5, 6}), ElementsAre(39));
  EXPECT_THAT(product({"2"}, {"2", "2", "2"}, {1, 10}, {1, 2, 3, 4, 5, 6, 7, 8}),
              ElementsAre(31, 42, 75, 86));
}

TEST(OnnxQuantised, ZerosHaveAScaleThatDivides) {
  OnnxBuilder builder(11);
  builder.input("x", {"2"}).node("DynamicQuantizeLinear", {"x"}, {"y", "scale", "zero"});
  builder.output("y", {}, kUint8).output("scale").output("zero", {}, kUint8);
  const reference::Bindings zeros{{"x", {0, 0}}};
  EXPECT_THAT(output(builder, 0, zeros), ElementsAre(0, 0));
  EXPECT_THAT(output(builder, 1, zeros), ElementsAre(1));
  EXPECT_THAT(output(builder, 2, zeros), ElementsAre(0));
}

TEST(OnnxCast, WrapsAndRounds) {
  EXPECT_THAT(cast(kInt32, kUint8, {300, -1, 7}), ElementsAre(44, 255, 7));
  EXPECT_THAT(cast(kInt32, kInt8, {200, -129, 7}), ElementsAre(-56, 127, 7));
  EXPECT_THAT(cast(kFloat, kInt8, {-1.7, 1.7, 0}), ElementsAre(-1, 1, 0));
  EXPECT_THAT(cast(kFloat, kFloat16, {1.0001220703125, 2049, 2051, -0.1}),
              ElementsAre(1, 2048, 2052, static_cast<double>(-0.0999755859375f)));
  EXPECT_THAT(cast(kFloat, kBool, {0.1, 0, -2}), ElementsAre(1, 0, 1));
}

}  // namespace
}  // namespace imprint
