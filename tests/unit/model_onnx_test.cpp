// The ONNX reader on files made by the test: shapes, folding, semantics that changed between operator sets,
// and everything that it refuses.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <random>

#include "compute/model/files/file.h"
#include "compute/model/files/stored_size.h"
#include "compute/model/onnx/format/tensor_data.h"
#include "compute/model/onnx/import.h"
#include "tests/unit/model_onnx_run.h"

namespace imprint {

using namespace tensor;

namespace {

using test::kInt64;
using test::kInt8;
using test::kUint8;
using test::OnnxBuilder;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

using test::must_import;
using test::must_parse;
using test::refusal;
using test::run;

// ---- shapes ----

TEST(OnnxShapes, FreeDimensionsTakeTheirValueFromGivenShapes) {
  OnnxBuilder builder;
  builder.input("a", {"batch", "2"}).input("b", {"batch", "2"}).node("Add", {"a", "b"}, {"y"}).output("y");
  const ImportedModel model = must_import(builder, {{"a", {7, 2}}});
  EXPECT_EQ(model.inputs[1].tensor.shape(), (Shape{7, 2}));
  EXPECT_EQ(model.outputs[0].tensor.shape(), (Shape{7, 2}));

  EXPECT_THAT(refusal(builder).message, HasSubstr("free dimension"));
  EXPECT_EQ(refusal(builder, {{"a", {7, 3}}}).code, ErrorCode::shape_mismatch);
  EXPECT_EQ(refusal(builder, {{"a", {7}}}).code, ErrorCode::shape_mismatch);
  EXPECT_THAT(refusal(builder, {{"a", {7, 2}}, {"b", {8, 2}}}).message, HasSubstr("'batch' is 7 elsewhere"));
  const Error unknown = refusal(builder, {{"c", {1}}});
  EXPECT_EQ(unknown.code, ErrorCode::not_found);
  EXPECT_THAT(unknown.message, HasSubstr("the inputs are 'a', 'b'"));
}

TEST(OnnxShapes, ShapesWithFreeDimensions) {
  OnnxBuilder builder;
  builder.input("a", {"batch", "2"})
      .input("w", {"2"})
      .floats("w", {2}, {1, 2})
      .node("Add", {"a", "w"}, {"y"})
      .output("y");
  const auto shapes = shapes_with_free_dimensions(must_parse(builder), 9);
  ASSERT_TRUE(shapes.ok());
  EXPECT_EQ(shapes->size(), 1u) << "an initializer that is listed as an input needs no feeding";
  EXPECT_EQ(shapes->at("a"), (Shape{9, 2}));
}

TEST(OnnxShapes, InitializerListedAsInputIsAConstantUnlessFed) {
  OnnxBuilder builder(17, 3);
  builder.input("a", {"2"})
      .input("w", {"2"})
      .floats("w", {2}, {10, 20})
      .node("Add", {"a", "w"}, {"y"})
      .output("y");
  EXPECT_THAT(run(builder, {}, {{"a", {1, 2}}}), ElementsAre(11, 22));
  const ImportedModel fed = must_import(builder, {{"w", {2}}});
  EXPECT_EQ(fed.inputs.size(), 2u);
  EXPECT_THAT(reference::evaluate(fed.outputs[0].tensor, {{"a", {1, 2}}, {"w", {5, 5}}}), ElementsAre(6, 7));
}

// The exporters' form of "batch, rest": everything in it is known during import, so none of it reaches the
// graph.
TEST(OnnxShapes, ShapeArithmeticIsFolded) {
  OnnxBuilder builder;
  builder.input("x", {"batch", "2", "3"})
      .longs("zero", {}, {0})
      .longs("axis", {1}, {0})
      .longs("rest", {1}, {-1})
      .node("Shape", {"x"}, {"s"})
      .node("Gather", {"s", "zero"}, {"n"})
      .node("Unsqueeze", {"n", "axis"}, {"n1"})
      .node("Concat", {"n1", "rest"}, {"target"}, {OnnxBuilder::number("axis", 0)})
      .node("Reshape", {"x", "target"}, {"y"})
      .output("y");
  const ImportedModel model = must_import(builder, {{"x", {5, 2, 3}}});
  const Tensor& y = model.outputs[0].tensor;
  EXPECT_EQ(y.shape(), (Shape{5, 6}));
  EXPECT_EQ(y.node()->op, Op::reshape);
  EXPECT_EQ(y.node()->inputs[0], model.inputs[0].tensor.node());
}

TEST(OnnxShapes, HostArithmeticAgreesWithTheOperators) {
  OnnxBuilder builder;
  builder.longs("a", {2, 1}, {7, -7})
      .longs("b", {3}, {2, -3, 5})
      .node("Div", {"a", "b"}, {"quotient"})
      .node("Mod", {"a", "b"}, {"rest"})
      .node("Mul", {"quotient", "b"}, {"product"})
      .node("Sub", {"product", "rest"}, {"difference"})
      .node("Cast", {"difference"}, {"y"}, {OnnxBuilder::number("to", 1)})
      .output("y");
  // 7 / (2, -3, 5) = (3, -2, 1), modulo (1, -2, 2); -7: (-3, 2, -1) and (1, -1, 3).
  EXPECT_THAT(run(builder), ElementsAre(6 - 1, 6 + 2, 5 - 2, -6 - 1, -6 + 1, -5 - 3));
}

TEST(OnnxShapes, DivisionByZeroDuringImportIsAnError) {
  OnnxBuilder builder;
  builder.longs("a", {1}, {1}).longs("b", {1}, {0}).node("Div", {"a", "b"}, {"y"}).output("y", {}, 7);
  EXPECT_EQ(refusal(builder).code, ErrorCode::invalid_argument);
}

TEST(OnnxShapes, RunTimeShapesAreRefusedByName) {
  OnnxBuilder builder;
  builder.input("x", {"6"})
      .input("target", {"2"}, 7)
      .node("Reshape", {"x", "target"}, {"y"}, {}, "late")
      .output("y");
  const Error error = refusal(builder);
  EXPECT_EQ(error.code, ErrorCode::unsupported);
  EXPECT_THAT(error.message, AllOf(HasSubstr("Reshape 'late'"), HasSubstr("computed at run time")));
}

TEST(OnnxShapes, LongConstantsMustFitAtRunTime) {
  OnnxBuilder builder;
  builder.input("x", {"1"}, 7)
      .longs("big", {1}, {std::int64_t{1} << 40})
      .node("Add", {"x", "big"}, {"y"})
      .output("y", {}, 7);
  EXPECT_THAT(refusal(builder).message, HasSubstr("does not fit"));
}

// ---- semantics ----

// A wrong node does not hide unsupported ones.
TEST(OnnxOperators, OneMessageTellsAll) {
  OnnxBuilder builder;
  builder.input("a", {"2"})
      .input("b", {"3"})
      .node("Add", {"a", "b"}, {"c"}, {}, "sums")
      .node("Frobnicate", {"a"}, {"d"})
      .node("Mystify", {"b"}, {"e"});
  builder.output("c").output("d").output("e");
  const Error error = refusal(builder);
  EXPECT_EQ(error.code, ErrorCode::shape_mismatch);
  for (const char* part : {"sums", "Frobnicate", "Mystify"}) EXPECT_THAT(error.message, HasSubstr(part));
}

// 3^19 has more digits than float32, and 8 bits wrap in 8 bits.
TEST(OnnxOperators, WholeNumbersStayWhole) {
  const auto power = [](std::int64_t exponent) {
    OnnxBuilder builder;
    builder.input("x", {"4"}, kInt64)
        .longs("e", {}, {exponent})
        .node("Pow", {"x", "e"}, {"y"})
        .output("y", {}, kInt64);
    return run(builder, {}, {{"x", {3, -3, 1, 0}}});
  };
  EXPECT_THAT(power(19), ElementsAre(1162261467, -1162261467, 1, 0));
  EXPECT_THAT(power(2), ElementsAre(9, 9, 1, 0));
  EXPECT_THAT(power(0), ElementsAre(1, 1, 1, 1));
  OnnxBuilder late;
  late.input("x", {"7"}, kInt64)
      .input("e", {"7"}, kInt64)
      .node("Pow", {"x", "e"}, {"y"})
      .output("y", {}, kInt64);
  EXPECT_THAT(run(late, {}, {{"x", {3, 3, 2, -1, -1, 1, 5}}, {"e", {19, 0, 30, -3, -4, -9, -1}}}),
              ElementsAre(1162261467, 1, 1 << 30, -1, 1, 1, 0));
  ASSERT_EQ(must_import(late).notes.size(), 2u);
  EXPECT_THAT(must_import(late).notes[0], HasSubstr("wraps at 32 bits"));

  const auto sum = [](int type, double a, double b) {
    OnnxBuilder builder;
    builder.input("a", {"1"}, type)
        .input("b", {"1"}, type)
        .node("Add", {"a", "b"}, {"y"})
        .output("y", {}, type);
    return run(builder, {}, {{"a", {a}}, {"b", {b}}})[0];
  };
  EXPECT_EQ(sum(kUint8, 200, 100), 44);
  EXPECT_EQ(sum(kInt8, 100, 100), -56);
  EXPECT_EQ(sum(kInt8, -100, 27), -73);
}

TEST(OnnxOperators, SliceByTheRules) {
  const auto sliced = [](std::int64_t start, std::int64_t end, std::int64_t step) {
    OnnxBuilder builder;
    builder.input("x", {"5"})
        .longs("start", {1}, {start})
        .longs("end", {1}, {end})
        .longs("axis", {1}, {-1})
        .longs("step", {1}, {step})
        .node("Slice", {"x", "start", "end", "axis", "step"}, {"y"})
        .output("y");
    return run(builder, {}, {{"x", {0, 1, 2, 3, 4}}});
  };
  constexpr std::int64_t kFar = std::numeric_limits<std::int64_t>::max(),
                         kBefore = std::numeric_limits<std::int64_t>::min();
  EXPECT_THAT(sliced(1, kFar, 2), ElementsAre(1, 3));
  EXPECT_THAT(sliced(-2, kFar, 1), ElementsAre(3, 4));
  EXPECT_THAT(sliced(kFar, kBefore, -1), ElementsAre(4, 3, 2, 1, 0));
  EXPECT_THAT(sliced(3, 0, -2), ElementsAre(3, 1));
  EXPECT_THAT(sliced(kBefore, 2, 1), ElementsAre(0, 1));
  EXPECT_THAT(sliced(4, 1, 1), ElementsAre());
  EXPECT_THAT(sliced(0, 5, kFar), ElementsAre(0));
}

TEST(OnnxOperators, SoftmaxFlattenedBeforeOpset13) {
  const auto rows = [](std::int64_t opset) {
    OnnxBuilder builder(opset);
    builder.input("x", {"1", "2", "2"})
        .node("Softmax", {"x"}, {"y"}, {OnnxBuilder::number("axis", 1)})
        .output("y");
    return run(builder, {}, {{"x", {0, 0, 0, 0}}});
  };
  EXPECT_THAT(rows(11), ElementsAre(0.25, 0.25, 0.25, 0.25));
  EXPECT_THAT(rows(13), ElementsAre(0.5, 0.5, 0.5, 0.5));
}

TEST(OnnxOperators, ClipTakesBoundsAsAttributesThenAsInputs) {
  OnnxBuilder old(10);
  old.input("x", {"3"})
      .node("Clip", {"x"}, {"y"}, {OnnxBuilder::real("min", -1), OnnxBuilder::real("max", 2)})
      .output("y");
  EXPECT_THAT(run(old, {}, {{"x", {-5, 0, 5}}}), ElementsAre(-1, 0, 2));
  OnnxBuilder now(13);
  now.input("x", {"3"}).floats("high", {}, {2}).node("Clip", {"x", "", "high"}, {"y"}).output("y");
  EXPECT_THAT(run(now, {}, {{"x", {-5, 0, 5}}}), ElementsAre(-5, 0, 2));
}

TEST(OnnxOperators, GemmWithEverything) {
  OnnxBuilder builder;
  builder.input("a", {"2", "1"}).floats("b", {3, 2}, {1, 2, 3, 4, 5, 6}).floats("c", {3}, {1, 1, 1});
  builder.node("Gemm", {"a", "b", "c"}, {"y"},
               {OnnxBuilder::number("transA", 1), OnnxBuilder::number("transB", 1),
                OnnxBuilder::real("alpha", 2), OnnxBuilder::real("beta", 3)});
  builder.output("y");
  EXPECT_THAT(run(builder, {}, {{"a", {1, 10}}}), ElementsAre(2 * 21 + 3, 2 * 43 + 3, 2 * 65 + 3));
}

TEST(OnnxOperators, GatherCountsFromTheEnd) {
  OnnxBuilder known;
  known.input("x", {"3"}).longs("at", {2}, {-1, 0}).node("Gather", {"x", "at"}, {"y"}).output("y");
  EXPECT_THAT(run(known, {}, {{"x", {5, 6, 7}}}), ElementsAre(7, 5));
  OnnxBuilder late;
  late.input("x", {"3"}).input("at", {"2"}, 7).node("Gather", {"x", "at"}, {"y"}).output("y");
  EXPECT_THAT(run(late, {}, {{"x", {5, 6, 7}}, {"at", {-1, 0}}}), ElementsAre(7, 5));
  OnnxBuilder outside;
  outside.input("x", {"3"}).longs("at", {1}, {3}).node("Gather", {"x", "at"}, {"y"}).output("y");
  EXPECT_EQ(refusal(outside).code, ErrorCode::invalid_argument);
}

TEST(OnnxOperators, MaxPoolWithCeilMode) {
  OnnxBuilder builder;
  builder.input("x", {"1", "1", "5"});
  builder.node("MaxPool", {"x"}, {"y"},
               {OnnxBuilder::list("kernel_shape", {2}), OnnxBuilder::list("strides", {2}),
                OnnxBuilder::number("ceil_mode", 1)});
  builder.output("y");
  EXPECT_THAT(run(builder, {}, {{"x", {1, 2, 3, 4, -5}}}), ElementsAre(2, 4, -5));
}

TEST(OnnxOperators, AveragePoolLeavesPaddingOut) {
  OnnxBuilder builder;
  builder.input("x", {"1", "1", "3"});
  builder
      .node("AveragePool", {"x"}, {"y"},
            {OnnxBuilder::list("kernel_shape", {3}), OnnxBuilder::list("pads", {1, 1})})
      .output("y");
  EXPECT_THAT(run(builder, {}, {{"x", {2, 4, 6}}}), ElementsAre(3, 4, 5));
}

TEST(OnnxOperators, ConvWithStridesThatDiffer) {
  OnnxBuilder builder;
  builder.input("x", {"1", "2", "3", "4"})
      .floats("w", {2, 1, 1, 2}, {1, 1, 1, -1})
      .floats("b", {2}, {0, 100});
  builder
      .node("Conv", {"x", "w", "b"}, {"y"},
            {OnnxBuilder::list("strides", {2, 1}), OnnxBuilder::number("group", 2)})
      .output("y");
  std::vector<double> x(24);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<double>(i * i);
  const auto square_sum = [](double i, double sign) { return i * i + sign * (i + 1) * (i + 1); };
  std::vector<double> expected;
  for (const double row : {0.0, 8.0})
    for (double column = 0; column < 3; ++column) expected.push_back(square_sum(row + column, 1));
  for (const double row : {12.0, 20.0})
    for (double column = 0; column < 3; ++column) expected.push_back(square_sum(row + column, -1) + 100);
  EXPECT_EQ(run(builder, {}, {{"x", x}}), expected);
}

// ---- refusals ----

TEST(OnnxRefusals, AllUnsupportedNodesAreReportedAtOnce) {
  OnnxBuilder builder;
  builder.input("x", {"4"})
      .node("ImageDecoder", {"x"}, {"a"}, {}, "picture")
      .node("Blend", {"x"}, {"b"}, {}, "", "com.example")
      .node("Dropout", {"a"}, {"c"})
      .node("RegexFullMatch", {"c"}, {"d"}, {}, "best")
      .node("BatchNormalization", {"x", "x", "x", "x", "x"}, {"e"}, {OnnxBuilder::number("spatial", 0)},
            "norm")
      .node("Sum", {"b", "d", "e"}, {"y"})
      .output("y");
  const Error error = refusal(builder);
  EXPECT_EQ(error.code, ErrorCode::unsupported);
  EXPECT_THAT(error.message, AllOf(HasSubstr("ImageDecoder 'picture'"), HasSubstr("com.example.Blend -> 'b'"),
                                   HasSubstr("RegexFullMatch 'best'"),
                                   HasSubstr("BatchNormalization 'norm': statistics of each place")));

  const auto uses = operators_of(must_parse(builder));
  ASSERT_EQ(uses.size(), 6u);
  EXPECT_EQ(uses[0].name, "BatchNormalization");
  EXPECT_TRUE(uses[0].supported);
  EXPECT_EQ(uses[5].name, "com.example.Blend");
  EXPECT_FALSE(uses[5].supported);
}

TEST(OnnxRefusals, NodesThatNoOutputNeedsAreLeftOut) {
  OnnxBuilder builder;
  builder.input("x", {"1"}).node("RoiAlign", {"x"}, {"unused"}).node("Neg", {"x"}, {"y"}).output("y");
  EXPECT_THAT(run(builder, {}, {{"x", {3}}}), ElementsAre(-3));
}

TEST(OnnxRefusals, DamagedGraphs) {
  const auto expect = [](const OnnxBuilder& builder, const std::string& reason) {
    const Error error = refusal(builder);
    EXPECT_EQ(error.code, ErrorCode::corrupt_file) << error.message;
    EXPECT_THAT(error.message, HasSubstr(reason));
  };
  expect(OnnxBuilder().input("x", {"1"}).node("Add", {"x", "b"}, {"a"}).node("Neg", {"a"}, {"b"}).output("b"),
         "cycle");
  expect(OnnxBuilder().input("x", {"1"}).node("Add", {"x", "y"}, {"y"}).output("y"), "cycle");
  expect(OnnxBuilder().input("x", {"1"}).node("Add", {"x", "lost"}, {"y"}, {}, "sum").output("y"),
         "nothing makes 'lost' (Add 'sum')");
  expect(OnnxBuilder().input("x", {"1"}).output("y"), "nothing makes 'y'");
  expect(OnnxBuilder().input("x", {"1"}).node("Neg", {"x"}, {"y"}).node("Abs", {"x"}, {"y"}).output("y"),
         "made twice");
  expect(OnnxBuilder().input("x", {"1"}).node("Neg", {"x"}, {"x"}).output("x"), "made twice");
  expect(OnnxBuilder().input("x", {"1"}).input("x", {"1"}).node("Neg", {"x"}, {"y"}).output("y"),
         "two inputs");
  expect(OnnxBuilder().floats("x", {1}, {1}).floats("x", {1}, {1}).node("Neg", {"x"}, {"y"}).output("y"),
         "two initializers");
  expect(OnnxBuilder().input("x", {"1"}).node("Neg", {"x"}, {"y"}), "no outputs");
  expect(OnnxBuilder().input("x", {"1"}).node("Neg", {}, {"y"}).output("y"), "input 0 is missing");
  expect(OnnxBuilder()
             .input("x", {"1"})
             .node("Flatten", {"x"}, {"y"}, {OnnxBuilder::real("axis", 1)})
             .output("y"),
         "of another kind");
}

TEST(OnnxRefusals, WrongTypesAndShapes) {
  EXPECT_EQ(
      refusal(
          OnnxBuilder().input("x", {"2"}).longs("k", {2}, {1, 2}).node("Add", {"x", "k"}, {"y"}).output("y"))
          .code,
      ErrorCode::dtype_mismatch);
  EXPECT_EQ(refusal(OnnxBuilder().input("x", {"2"}).node("Not", {"x"}, {"y"}).output("y")).code,
            ErrorCode::dtype_mismatch);
  EXPECT_EQ(refusal(OnnxBuilder().input("x", {"2"}).node("Neg", {"x"}, {"y"}).output("y", {}, 9)).code,
            ErrorCode::dtype_mismatch);
  EXPECT_EQ(refusal(OnnxBuilder()
                        .input("x", {"2"})
                        .input("z", {"3"})
                        .node("Add", {"x", "z"}, {"y"}, {}, "sum")
                        .output("y"))
                .code,
            ErrorCode::shape_mismatch);
  EXPECT_EQ(
      refusal(OnnxBuilder().input("x", {"2"}).node("Neg", {"x"}, {"y"}).output("y"), {{"x", Shape{3}}}).code,
      ErrorCode::shape_mismatch);
  EXPECT_EQ(
      refusal(OnnxBuilder().input("x", {"2"}, 8).node("Identity", {"x"}, {"y"}).output("y", {}, 8)).code,
      ErrorCode::unsupported);
}

// Numbers chosen to overflow, to allocate or to loop forever.
TEST(OnnxRefusals, HostileSizes) {
  constexpr std::int64_t kHuge = std::int64_t{1} << 62;
  const auto refused = [](const OnnxBuilder& builder) {
    auto model = onnx::parse(builder.bytes());
    if (!model) return;
    const auto imported = import_onnx(*model, {});
    EXPECT_FALSE(imported.ok());
  };
  refused(OnnxBuilder().longs("s", {2}, {kHuge, kHuge}).node("ConstantOfShape", {"s"}, {"y"}).output("y"));
  refused(OnnxBuilder().longs("s", {3}, {kHuge, kHuge, 0}).node("ConstantOfShape", {"s"}, {"y"}).output("y"));
  refused(OnnxBuilder().longs("s", {1}, {-1}).node("ConstantOfShape", {"s"}, {"y"}).output("y"));
  refused(
      OnnxBuilder().input("x", {"1"}).longs("s", {1}, {kHuge}).node("Expand", {"x", "s"}, {"y"}).output("y"));
  refused(
      OnnxBuilder().input("x", {"4"}).longs("s", {1}, {kHuge}).node("Tile", {"x", "s"}, {"y"}).output("y"));
  refused(OnnxBuilder()
              .input("x", {"4"})
              .longs("s", {2}, {kHuge, kHuge})
              .node("Pad", {"x", "s"}, {"y"})
              .output("y"));
  refused(OnnxBuilder()
              .input("x", {"4"})
              .longs("s", {2}, {kHuge, 4})
              .node("Reshape", {"x", "s"}, {"y"})
              .output("y"));
  refused(OnnxBuilder()
              .longs("a", {}, {0})
              .longs("b", {}, {kHuge})
              .longs("c", {}, {1})
              .node("Range", {"a", "b", "c"}, {"y"})
              .output("y", {}, 7));
  refused(OnnxBuilder().input("x", {std::to_string(kHuge), "4"}).node("Neg", {"x"}, {"y"}).output("y"));
  refused(OnnxBuilder()
              .input("x", {"1", "1", "4"})
              .node("MaxPool", {"x"}, {"y"}, {OnnxBuilder::list("kernel_shape", {kHuge})})
              .output("y"));
  refused(OnnxBuilder()
              .input("x", {"1", "1", "4"})
              .node("MaxPool", {"x"}, {"y"},
                    {OnnxBuilder::list("kernel_shape", {2}), OnnxBuilder::list("pads", {kHuge, kHuge})})
              .output("y"));
  refused(OnnxBuilder()
              .input("x", {"1", "4", "4", "4"})
              .node("DepthToSpace", {"x"}, {"y"}, {OnnxBuilder::number("blocksize", kHuge)})
              .output("y"));
  refused(OnnxBuilder().floats("w", {kHuge, 8}, {1}).node("Neg", {"w"}, {"y"}).output("y"));
  refused(OnnxBuilder().floats("w", {1, 1, 1, 1, 1, 1, 1, 1, 1}, {1}).node("Neg", {"w"}, {"y"}).output("y"));

  // Each constant is small enough, but together they are too many to keep on the host.
  OnnxBuilder many;
  many.longs("s", {1}, {1 << 20});
  std::vector<std::string> names;
  for (int i = 0; i < 200; ++i) {
    names.push_back(std::string("c").append(std::to_string(i)));
    many.node("ConstantOfShape", {"s"}, {names.back()});
  }
  const auto imported = import_onnx(must_parse(many.node("Sum", names, {"y"}).output("y")), {});
  EXPECT_TRUE(imported.ok()) << imported.error().message;
}

TEST(OnnxRefusals, NestedSubgraphs) {
  std::string graph;
  for (int depth = 0; depth < 40; ++depth) {
    std::string attribute, node, outer;
    protozero::pbf_writer(attribute).add_message(6, graph);
    protozero::pbf_writer writer(node);
    writer.add_string(4, "If");
    writer.add_message(5, attribute);
    protozero::pbf_writer(outer).add_message(1, node);
    graph = outer;
  }
  std::string file;
  protozero::pbf_writer(file).add_message(7, graph);
  const auto model = onnx::parse(std::as_bytes(std::span(file)));
  ASSERT_FALSE(model.ok());
  EXPECT_EQ(model.error().code, ErrorCode::unsupported);
}

// ---- weights outside the file ----

class External : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() /
              ("imprint-external-" + std::to_string(std::random_device{}()));
    std::filesystem::create_directories(folder_ / "model");
    const std::vector<float> weights{0, 0, 10, 20};
    ASSERT_TRUE(
        write_file_atomic((folder_ / "model" / "w.bin").string(), std::as_bytes(std::span(weights))).ok());
    ASSERT_TRUE(
        write_file_atomic((folder_ / "outside.bin").string(), std::as_bytes(std::span(weights))).ok());
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  static OnnxBuilder builder(const std::string& location, const std::string& length = "8",
                             const std::string& read = "w") {
    OnnxBuilder out;
    out.graph_field(5, [&](protozero::pbf_writer& tensor) {
      tensor.add_int64(1, 2);
      tensor.add_int32(2, 1);
      tensor.add_string(8, "w");
      for (const auto& [key, value] :
           {std::pair<std::string, std::string>{"location", location}, {"offset", "8"}, {"length", length}}) {
        protozero::pbf_writer entry(tensor, 13);
        entry.add_string(1, key);
        entry.add_string(2, value);
      }
      tensor.add_int32(14, 1);
    });
    return out.node("Neg", {read}, {"y"}).output("y");
  }
  Result<onnx::Model> load(const OnnxBuilder& from) {
    const std::string path = (folder_ / "model" / "m.onnx").string();
    EXPECT_TRUE(write_file_atomic(path, from.bytes()).ok());
    return onnx::load(path);
  }
  std::filesystem::path folder_;
};

TEST_F(External, IsReadFromTheModelsFolder) {
  const auto model = load(builder("w.bin"));
  ASSERT_TRUE(model.ok()) << model.error().message;
  const auto imported = import_onnx(*model, {});
  ASSERT_TRUE(imported.ok()) << imported.error().message;
  EXPECT_THAT(reference::evaluate(imported->outputs[0].tensor), ElementsAre(-10, -20));
}

TEST_F(External, IsNotCopied) {
  OnnxBuilder from = builder("w.bin").node("Identity", {"w"}, {"z"}).output("z");
  const auto model = load(from);
  ASSERT_TRUE(model.ok()) << model.error().message;
  const auto imported = import_onnx(*model, {});
  ASSERT_TRUE(imported.ok()) << imported.error().message;
  EXPECT_EQ(imported->outputs[1].tensor.node()->constant->bytes.data(),
            model->graph.initializers[0].bytes.data());
}

TEST_F(External, StaysInsideTheFolder) {
  std::filesystem::create_symlink(folder_ / "outside.bin", folder_ / "model" / "link.bin");
  for (const std::string location :
       {"../outside.bin", "a/../../outside.bin", "link.bin", "/etc/hostname", "", "."}) {
    const auto model = load(builder(location));
    ASSERT_FALSE(model.ok()) << location;
    EXPECT_EQ(model.error().code, ErrorCode::corrupt_file) << model.error().message;
  }
  EXPECT_EQ(load(builder("none.bin")).error().code, ErrorCode::not_found);
  EXPECT_EQ(load(builder("w.bin", "12")).error().code, ErrorCode::corrupt_file);
  EXPECT_EQ(load(builder("w.bin", "x")).error().code, ErrorCode::corrupt_file);
}

// A sparse file takes no room on the disk or in an archive.
TEST_F(External, LimitsFollowFromTheBytesOnTheDisk) {
  const auto counted = [&](const OnnxBuilder& from) {
    EXPECT_TRUE(load(from).ok());
    std::uint64_t found = 0;
    const auto limit = [&](std::uint64_t stored) { return found = stored, 0; };
    const auto model = onnx::load_with_limit((folder_ / "model" / "m.onnx").string(), limit);
    EXPECT_EQ(model.ok() ? ErrorCode::internal : model.error().code, ErrorCode::out_of_host_memory);
    return found;
  };
  const auto on_disk = [&](const char* name) {
    const auto stored = stored_size((folder_ / "model" / name).string());
    EXPECT_TRUE(stored.ok());
    return std::min<std::uint64_t>(8, stored ? *stored : 0);  // of a tensor of 8 bytes
  };
  std::ofstream(folder_ / "model" / "sparse.bin").close();
  std::filesystem::resize_file(folder_ / "model" / "sparse.bin", 1 << 20);
  EXPECT_EQ(counted(builder("w.bin")), on_disk("w.bin"));
  EXPECT_EQ(counted(builder("sparse.bin")), on_disk("sparse.bin"));
  EXPECT_EQ(counted(builder("w.bin", "8", "x").input("x", {"1"})), 0u) << "no node reads it";
}

TEST_F(External, CannotBeReadFromBytesAlone) {
  const auto imported = import_onnx(must_parse(builder("w.bin")), {});
  ASSERT_FALSE(imported.ok());
  EXPECT_THAT(imported.error().message, HasSubstr("load the model by its path"));
}

}  // namespace
}  // namespace imprint
