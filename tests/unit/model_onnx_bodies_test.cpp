// If, Loop, Scan and model-local functions: bodies, what they read from outside, and what is refused.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/model_onnx_run.h"

namespace imprint {

using namespace tensor;

namespace {

using test::kBool;
using test::kInt64;
using test::must_import;
using test::must_parse;
using test::OnnxBuilder;
using test::refusal;
using test::run;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

OnnxBuilder branch(const std::string& op) { return OnnxBuilder().node(op, {"x"}, {"r"}).output("r"); }

OnnxBuilder choice(const OnnxBuilder& one, const OnnxBuilder& other) {
  OnnxBuilder builder;
  builder.input("x", {"2"})
      .input("c", {}, kBool)
      .node("If", {"c"}, {"y"},
            {OnnxBuilder::body("then_branch", one), OnnxBuilder::body("else_branch", other)}, "choice")
      .output("y");
  return builder;
}

TEST(OnnxBodies, AConditionOfRunTimeChoosesAnOutput) {
  const OnnxBuilder builder = choice(branch("Neg"), branch("Abs"));
  const std::map<std::string, Shape> shapes{{"c", {}}};
  EXPECT_THAT(run(builder, shapes, {{"x", {-1, 2}}, {"c", {1}}}), ElementsAre(1, -2));
  EXPECT_THAT(run(builder, shapes, {{"x", {-1, 2}}, {"c", {0}}}), ElementsAre(1, 2));
}

TEST(OnnxBodies, AKnownConditionLeavesTheOtherBranchOut) {
  OnnxBuilder builder;
  builder.input("x", {"2"})
      .node("Size", {"x"}, {"n"})
      .longs("two", {}, {2})
      .node("Equal", {"n", "two"}, {"c"})
      .node("If", {"c"}, {"y"},
            {OnnxBuilder::body("then_branch", branch("Neg")),
             OnnxBuilder::body("else_branch", branch("ImageDecoder"))})
      .output("y");
  EXPECT_THAT(run(builder, {}, {{"x", {3, 4}}}), ElementsAre(-3, -4));
}

TEST(OnnxBodies, WhatABodyLacksIsNamed) {
  const Error missing = refusal(choice(branch("ImageDecoder"), branch("RegexFullMatch")), {{"c", {}}});
  EXPECT_THAT(missing.message, AllOf(HasSubstr("ImageDecoder"), HasSubstr("RegexFullMatch")));
  const OnnxBuilder wide =
      OnnxBuilder().node("Concat", {"x", "x"}, {"r"}, {OnnxBuilder::number("axis", 0)}).output("r");
  EXPECT_THAT(refusal(choice(branch("Neg"), wide), {{"c", {}}}).message,
              HasSubstr("If 'choice': output 0: found branches of shapes [2] and [4]"));
  const OnnxBuilder lost = OnnxBuilder().node("Add", {"x", "lost"}, {"r"}).output("r");
  EXPECT_THAT(refusal(choice(branch("Neg"), lost), {{"c", {}}}).message, HasSubstr("nothing makes 'lost'"));
}

// A Loop whose body has an If whose branch lacks an operator.
OnnxBuilder nested(bool known_trips) {
  OnnxBuilder inner = branch("ImageDecoder");
  OnnxBuilder body;
  body.input("i", {}, kInt64).input("go", {}, kBool).input("now", {"2"}).node("Identity", {"go"}, {"on"});
  body.node("If", {"c"}, {"next"},
            {OnnxBuilder::body("then_branch", inner), OnnxBuilder::body("else_branch", branch("Neg"))},
            "pick")
      .node("RegexFullMatch", {"now"}, {"odd"})
      .node("Add", {"next", "odd"}, {"sum"})
      .output("on", {}, kBool)
      .output("sum");
  OnnxBuilder builder;
  builder.input("x", {"2"}).input("c", {}, kBool).longs("three", {}, {3}).input("n", {}, kInt64);
  builder
      .node("Loop", {known_trips ? "three" : "n", "", "x"}, {"y"}, {OnnxBuilder::body("body", body)},
            "decode")
      .output("y");
  return builder;
}

TEST(OnnxBodies, RefusalsNameThePathOfTheirBody) {
  const std::map<std::string, Shape> shapes{{"c", {}}, {"n", {}}};
  const auto both =
      AllOf(HasSubstr("Loop 'decode', body: If 'pick', then_branch: operator ImageDecoder -> 'r'"),
            HasSubstr("Loop 'decode', body: operator RegexFullMatch -> 'odd'"));
  EXPECT_THAT(refusal(nested(true), shapes).message, both);
  // The body is named although the loop itself is refused.
  EXPECT_THAT(refusal(nested(false), shapes).message,
              AllOf(HasSubstr("Loop 'decode': a trip count that is computed at run time"), both));
  const OnnxBuilder bad =
      OnnxBuilder().node("Concat", {"x", "x"}, {"r"}, {OnnxBuilder::number("axis", 7)}).output("r");
  EXPECT_THAT(refusal(choice(branch("Neg"), bad), {{"c", {}}}).message,
              HasSubstr("onnx: If 'choice', else_branch: Concat -> 'r': axis 7"));
}

TEST(OnnxBodies, AreListedWithWhatTheyLack) {
  const std::vector<onnx::BodyUse> bodies = onnx::bodies_of(must_parse(nested(true)));
  ASSERT_EQ(bodies.size(), 3u);
  EXPECT_EQ(bodies[0].path, "Loop 'decode', body");
  EXPECT_EQ(bodies[0].nodes, 4u);
  EXPECT_THAT(bodies[0].missing, ElementsAre("RegexFullMatch"));
  EXPECT_EQ(bodies[1].path, "Loop 'decode', body: If 'pick', then_branch");
  EXPECT_THAT(bodies[1].missing, ElementsAre("ImageDecoder"));
  EXPECT_EQ(bodies[2].path, "Loop 'decode', body: If 'pick', else_branch");
  EXPECT_TRUE(bodies[2].missing.empty());
  EXPECT_EQ(onnx::bodies_of(must_parse(nested(true)), 2).size(), 2u);
}

// Adds `step`, which stands outside, to what it carries, and gives the turn's number as a result.
OnnxBuilder adding() {
  OnnxBuilder body;
  body.input("i", {}, kInt64)
      .input("go", {}, kBool)
      .input("sum", {"2"})
      .node("Identity", {"go"}, {"on"})
      .node("Add", {"sum", "step"}, {"next"})
      .node("Cast", {"i"}, {"turn"}, {OnnxBuilder::number("to", 1)})
      .output("on", {}, kBool)
      .output("next")
      .output("turn");
  return body;
}

OnnxBuilder counted(std::int64_t turns) {
  OnnxBuilder builder;
  builder.longs("m", {}, {turns})
      .input("x", {"2"})
      .input("step", {"2"})
      .node("Loop", {"m", "", "x"}, {"y", "turns"}, {OnnxBuilder::body("body", adding())})
      .output("y")
      .output("turns");
  return builder;
}

TEST(OnnxBodies, ACountedLoopIsALoopOfTheGraph) {
  const reference::Bindings values{{"x", {1, 2}}, {"step", {10, 20}}};
  const ImportedModel model = must_import(counted(1000));
  ASSERT_EQ(model.outputs.size(), 2u);
  EXPECT_EQ(model.outputs[0].tensor.node()->op, Op::loop_output);
  EXPECT_THAT(reference::evaluate(model.outputs[0].tensor, values), ElementsAre(10001, 20002));
  EXPECT_EQ(model.outputs[1].tensor.shape(), (Shape{1000}));
  EXPECT_THAT(reference::evaluate(must_import(counted(3)).outputs[1].tensor, values), ElementsAre(0, 1, 2));
  EXPECT_EQ(must_import(counted(1)).outputs[0].tensor.node()->op, Op::add) << "one turn needs no loop";
}

TEST(OnnxBodies, ALoopWhoseShapesGrowIsUnrolled) {
  OnnxBuilder body;
  body.input("i", {}, kInt64)
      .input("go", {}, kBool)
      .input("list", {"n"})
      .node("Identity", {"go"}, {"on"})
      .node("Concat", {"list", "x"}, {"next"}, {OnnxBuilder::number("axis", 0)})
      .output("on", {}, kBool)
      .output("next");
  OnnxBuilder builder;
  builder.longs("m", {}, {3})
      .input("x", {"1"})
      .node("Loop", {"m", "", "x"}, {"y"}, {OnnxBuilder::body("body", body)})
      .output("y");
  EXPECT_THAT(run(builder, {}, {{"x", {7}}}), ElementsAre(7, 7, 7, 7));
}

// Doubles while the sum is below a limit.
OnnxBuilder doubling(bool with_most) {
  OnnxBuilder body;
  body.input("i", {}, kInt64)
      .input("go", {}, kBool)
      .input("v", {"1"})
      .node("Add", {"v", "v"}, {"next"})
      .node("ReduceSum", {"next"}, {"s"}, {OnnxBuilder::number("keepdims", 0)})
      .node("Less", {"s", "limit"}, {"on"})
      .output("on", {}, kBool)
      .output("next");
  OnnxBuilder builder;
  builder.longs("m", {}, {20})
      .input("x", {"1"})
      .floats("limit", {}, {100})
      .node("Loop", {with_most ? "m" : "", "", "x"}, {"y"}, {OnnxBuilder::body("body", body)}, "doubling")
      .output("y");
  return builder;
}

TEST(OnnxBodies, AConditionOfRunTimeEndsALoop) {
  EXPECT_THAT(run(doubling(true), {}, {{"x", {3}}}), ElementsAre(192));
  EXPECT_THAT(refusal(doubling(false)).message,
              HasSubstr("Loop 'doubling': a loop that only its condition ends"));
}

TEST(OnnxBodies, ALoopWithoutTurnsGivesWhatItCarries) {
  OnnxBuilder builder;
  builder.longs("m", {}, {0})
      .input("x", {"2"})
      .input("step", {"2"})
      .node("Loop", {"m", "", "x"}, {"y"},
            {OnnxBuilder::body("body", OnnxBuilder()
                                           .input("i", {}, kInt64)
                                           .input("go", {}, kBool)
                                           .input("v", {"2"})
                                           .node("Neg", {"v"}, {"next"})
                                           .output("go", {}, kBool)
                                           .output("next"))})
      .output("y");
  EXPECT_THAT(run(builder, {}, {{"x", {5, 6}}, {"step", {0, 0}}}), ElementsAre(5, 6));
}

TEST(OnnxBodies, ALoopWithoutTurnsStacksNoRows) {
  OnnxBuilder builder;
  builder.longs("m", {}, {0})
      .input("x", {"2"})
      .node("Loop", {"m", "", "x"}, {"y", "rows"},
            {OnnxBuilder::body("body", OnnxBuilder()
                                           .input("i", {}, kInt64)
                                           .input("go", {}, kBool)
                                           .input("v", {"2"})
                                           .node("Neg", {"v"}, {"next"})
                                           .output("go", {}, kBool)
                                           .output("next")
                                           .output("next"))})
      .output("y")
      .output("rows");
  const ImportedModel model = must_import(builder);
  ASSERT_EQ(model.outputs.size(), 2u);
  EXPECT_THAT(reference::evaluate(model.outputs[0].tensor, {{"x", {5, 6}}}), ElementsAre(5, 6));
  EXPECT_EQ(model.outputs[1].tensor.shape(), (Shape{0, 2}));
}

// The body of a loop that carries "v" [2] and stacks a row per turn. It ends when a sum, which only a run
// knows, reaches 100, or, by turns, after turn `last`.
OnnxBuilder doubling_rows(std::optional<std::int64_t> last, bool stacks) {
  OnnxBuilder body;
  body.input("i", {}, kInt64).input("go", {}, kBool).input("v", {"2"}).node("Add", {"v", "v"}, {"next"});
  if (last)
    body.longs("last", {}, {*last}).node("Less", {"i", "last"}, {"on"});
  else
    body.floats("limit", {}, {100})
        .node("ReduceSum", {"next"}, {"s"}, {OnnxBuilder::number("keepdims", 0)})
        .node("Less", {"s", "limit"}, {"on"});
  body.output("on", {}, kBool).output("next");
  if (stacks) body.output("next");
  return body;
}

TEST(OnnxBodies, ALoopWithoutTurnsMayComputeItsCondition) {
  for (const bool by_count : {true, false}) {
    OnnxBuilder builder;
    builder.longs("m", {}, {by_count ? 0 : 4})
        .raw("begins", {}, kBool, std::string(1, by_count ? 1 : 0))
        .input("x", {"2"})
        .node("Loop", {"m", "begins", "x"}, {"y", "rows"},
              {OnnxBuilder::body("body", doubling_rows(std::nullopt, true))})
        .output("y")
        .output("rows");
    const ImportedModel model = must_import(builder);
    ASSERT_EQ(model.outputs.size(), 2u);
    EXPECT_THAT(reference::evaluate(model.outputs[0].tensor, {{"x", {5, 6}}}), ElementsAre(5, 6));
    EXPECT_EQ(model.outputs[1].tensor.shape(), (Shape{0, 2}));
    EXPECT_EQ(model.outputs[1].tensor.dtype(), DType::float32);
  }
}

// A loop whose trip count is an input. begins: its first condition, if given.
OnnxBuilder counted_by_a_run(std::optional<std::int64_t> last, std::optional<bool> begins) {
  OnnxBuilder builder;
  if (begins) builder.raw("begins", {}, kBool, std::string(1, *begins ? 1 : 0));
  builder.input("m", {}, kInt64)
      .input("x", {"2"})
      .node("Loop", {"m", begins ? "begins" : "", "x"}, {"y"},
            {OnnxBuilder::body("body", doubling_rows(last, false))})
      .output("y");
  return builder;
}

TEST(OnnxBodies, ATripCountOfRunTimeNeedsACondition) {
  const std::map<std::string, Shape> shapes{{"m", {}}};
  for (const auto& [turns, y] :
       {std::pair(-1.0, 3.0), {0.0, 3.0}, {1.0, 6.0}, {2.0, 12.0}, {3.0, 24.0}, {9.0, 24.0}})
    EXPECT_THAT(run(counted_by_a_run(2, true), shapes, {{"m", {turns}}, {"x", {3, 0}}}), ElementsAre(y, 0))
        << turns;
  EXPECT_THAT(run(counted_by_a_run(std::nullopt, false), shapes, {{"m", {7}}, {"x", {3, 0}}}),
              ElementsAre(3, 0));
  for (const auto& last : {std::optional<std::int64_t>(), std::optional<std::int64_t>(1000)})
    EXPECT_THAT(refusal(counted_by_a_run(last, std::nullopt), shapes).message,
                HasSubstr("a trip count that is computed at run time, and no condition that bounds it"));
}

TEST(OnnxBodies, AScanOfNoStepsGivesNoRows) {
  OnnxBuilder body;
  body.input("sum", {"2"}).input("row", {"2"}).node("Add", {"sum", "row"}, {"next"});
  body.node("Identity", {"next"}, {"result"}).output("next").output("result");
  OnnxBuilder builder;
  builder.input("start", {"2"})
      .input("x", {"2", "0"})
      .node("Scan", {"start", "x"}, {"end", "sums"},
            {OnnxBuilder::body("body", body), OnnxBuilder::number("num_scan_inputs", 1),
             OnnxBuilder::list("scan_input_axes", {1}), OnnxBuilder::list("scan_input_directions", {1}),
             OnnxBuilder::list("scan_output_axes", {1})})
      .output("end")
      .output("sums");
  const ImportedModel model = must_import(builder);
  ASSERT_EQ(model.outputs.size(), 2u);
  EXPECT_THAT(reference::evaluate(model.outputs[0].tensor, {{"start", {1, 2}}, {"x", {}}}),
              ElementsAre(1, 2));
  EXPECT_EQ(model.outputs[1].tensor.shape(), (Shape{2, 0}));
}

std::vector<double> scanned(std::int64_t reverse, std::int64_t axis, std::size_t output) {
  OnnxBuilder body;
  body.input("sum", {"2"})
      .input("row", {"2"})
      .node("Add", {"sum", "row"}, {"next"})
      .node("Identity", {"next"}, {"result"})
      .output("next")
      .output("result");
  OnnxBuilder builder;
  builder.input("start", {"2"})
      .input("x", axis == 0 ? std::vector<std::string>{"3", "2"} : std::vector<std::string>{"2", "3"})
      .node("Scan", {"start", "x"}, {"end", "sums"},
            {OnnxBuilder::body("body", body), OnnxBuilder::number("num_scan_inputs", 1),
             OnnxBuilder::list("scan_input_directions", {reverse}),
             OnnxBuilder::list("scan_input_axes", {axis}), OnnxBuilder::list("scan_output_axes", {axis})})
      .output("end")
      .output("sums");
  const ImportedModel model = must_import(builder);
  return model.outputs.size() == 2 ? reference::evaluate(model.outputs[output].tensor,
                                                         {{"start", {100, 0}}, {"x", {1, 2, 3, 4, 5, 6}}})
                                   : std::vector<double>();
}

TEST(OnnxBodies, ScanGoesAlongAnyAxisInBothDirections) {
  EXPECT_THAT(scanned(0, 0, 0), ElementsAre(109, 12));
  EXPECT_THAT(scanned(0, 0, 1), ElementsAre(101, 2, 104, 6, 109, 12));
  EXPECT_THAT(scanned(1, 0, 1), ElementsAre(105, 6, 108, 10, 109, 12)) << "results in the order of the steps";
  EXPECT_THAT(scanned(0, 1, 1), ElementsAre(101, 103, 106, 4, 9, 15));
}

TEST(OnnxBodies, ANodeWithoutItsBodyIsRefusedByName) {
  for (const auto& [operation, body] :
       {std::pair("If", "then_branch"), std::pair("Loop", "body"), std::pair("Scan", "body")}) {
    OnnxBuilder builder;
    builder.input("x", {"3", "2"})
        .node(operation, {"x"}, {"y"}, {OnnxBuilder::number("num_scan_inputs", 1)})
        .output("y");
    EXPECT_THAT(refusal(builder).message, HasSubstr(body)) << operation;
  }
}

// scale * x + x, where the scale is the function's attribute.
TEST(OnnxBodies, AFunctionOfTheModel) {
  OnnxBuilder nodes;
  nodes.node("Constant", {}, {"s"}, {OnnxBuilder::reference("value_float", "scale", 1)})
      .node("Mul", {"in", "s"}, {"scaled"})
      .node("Add", {"scaled", "in"}, {"out"});
  OnnxBuilder builder;
  builder.function("game", "Grow", {"in"}, {"out"}, nodes)
      .input("x", {"2"})
      .node("Grow", {"x"}, {"a"}, {OnnxBuilder::real("scale", 3)}, "", "game")
      .node("Grow", {"a"}, {"y"}, {OnnxBuilder::real("scale", 1)}, "", "game")
      .output("y");
  EXPECT_THAT(run(builder, {}, {{"x", {1, 10}}}), ElementsAre(8, 80));
  EXPECT_TRUE(operators_of(must_parse(builder)).at(3).supported);

  OnnxBuilder endless;
  endless
      .function("game", "Grow", {"in"}, {"out"}, OnnxBuilder().node("Grow", {"in"}, {"out"}, {}, "", "game"))
      .input("x", {"2"})
      .node("Grow", {"x"}, {"y"}, {}, "", "game")
      .output("y");
  EXPECT_THAT(refusal(endless).message, HasSubstr("bodies and calls inside of each other"));
}

TEST(OnnxBodies, KnownInputsGiveShapes) {
  OnnxBuilder builder;
  builder.input("x", {"1"}).input("shape", {"2"}, kInt64).node("Expand", {"x", "shape"}, {"y"}).output("y");
  const onnx::Model model = must_parse(builder);
  EXPECT_FALSE(import_onnx(model, {}).ok());
  ImportOptions options;
  std::vector<std::byte> elements(16);
  elements[0] = std::byte{2};
  elements[8] = std::byte{3};
  onnx::TensorData& shape = options.known_inputs["shape"];
  shape = {.name = "shape",
           .type = onnx::ElementType::int64,
           .extents = {2},
           .bytes = SharedBytes(std::move(elements)),
           .strings = {},
           .external = {}};
  const auto imported = import_onnx(model, {}, options);
  ASSERT_TRUE(imported.ok()) << imported.error().message;
  EXPECT_EQ(imported->inputs.size(), 1u);
  EXPECT_EQ(imported->outputs[0].tensor.shape(), (Shape{2, 3}));
  options.known_inputs["lost"] = shape;
  EXPECT_EQ(import_onnx(model, {}, options).error().code, ErrorCode::not_found);
}

}  // namespace
}  // namespace imprint
