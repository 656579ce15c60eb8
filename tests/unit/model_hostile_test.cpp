// Models whose parts do not fit each other in type or count, where known values are looked at on the host;
// and models with named extents that are made to cost time or memory.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ctime>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "compute/model/onnx/op.h"
#include "compute/program/program.h"
#include "compute/program/runtime.h"
#include "compute/tensor/made_nodes.h"
#include "compute/tensor/shape.h"
#include "tests/unit/model_heap.h"
#include "tests/unit/model_onnx_run.h"

namespace imprint {
namespace {

using test::OnnxBuilder;
using ::testing::HasSubstr;
using Words = std::vector<std::string>;

std::string refusal_text(const OnnxBuilder& builder, const std::map<std::string, Shape>& shapes = {}) {
  const auto imported = import_onnx(test::must_parse(builder), shapes);
  return imported ? "" : imported.error().message;
}

// ---- known values of other types than the operator computes with ----

OnnxBuilder quantised_parts() {
  OnnxBuilder b;
  b.input("x", {"1", "300"}, test::kUint8).raw("w", {300, 1}, test::kInt8, std::string(300, '\1'));
  b.raw("whole", {}, test::kInt32, std::string("\2\0\0\0", 4))
      .floats("one", {}, {1})
      .floats("half", {}, {0.5f});
  return b;
}

TEST(HostileTypes, ZeroPointsOfPairsAreNoFloats) {
  OnnxBuilder known = quantised_parts();
  known.node("DequantizeLinear", {"w", "half", "one"}, {"y"}).output("y");
  EXPECT_EQ(refusal_text(known), "");  // computed in each run
  OnnxBuilder product = quantised_parts();
  product.node("DequantizeLinear", {"x", "half"}, {"a"})
      .node("DequantizeLinear", {"w", "half", "one"}, {"b"});
  const ImportedModel model = test::must_import(product.node("MatMul", {"a", "b"}, {"y"}).output("y"));
  EXPECT_EQ(model.quantised.whole, 0u);
}

TEST(HostileTypes, ScalesOfPairsAreFloats) {
  OnnxBuilder product = quantised_parts();
  product.node("DequantizeLinear", {"x", "whole"}, {"a"}).node("DequantizeLinear", {"w", "half"}, {"b"});
  const ImportedModel model = test::must_import(product.node("MatMul", {"a", "b"}, {"y"}).output("y"));
  EXPECT_EQ(model.quantised.whole, 0u);
}

TEST(HostileTypes, ProductsOfWholeNumbersTakeEightBits) {
  for (const char* op : {"MatMulInteger", "ConvInteger"}) {
    OnnxBuilder b = quantised_parts();
    b.raw("least", {}, test::kInt64, std::string("\0\0\0\0\0\0\0\x80", 8));
    b.node(op, {"x", "w", "", "one"}, {"y"}).output("y");
    EXPECT_THAT(refusal_text(b), HasSubstr("input 3: found float32 [], expected numbers of 8 bits at most"));
    OnnxBuilder wide = quantised_parts();
    wide.raw("least", {}, test::kInt64, std::string("\0\0\0\0\0\0\0\x80", 8));
    wide.node(op, {"x", "w", "", "least"}, {"y"}).output("y");
    EXPECT_THAT(refusal_text(wide), HasSubstr("input 3: found int64 [], expected numbers of 8 bits at most"));
  }
}

// The body of a loop over "v" that also gives "o", which `inner` makes.
OnnxBuilder turn_with_output(OnnxBuilder inner) {
  inner.input("i", {}, test::kInt64).input("go", {}, test::kBool).input("v", {"1"});
  return std::move(inner.output("go", {}, test::kBool).output("v").output("o"));
}

OnnxBuilder in_a_loop(const OnnxBuilder& body) {
  OnnxBuilder b;
  b.input("x", {"1"}).longs("m", {}, {3});
  return std::move(b.node("Loop", {"m", "", "x"}, {"z", "y"}, {OnnxBuilder::body("body", body)}).output("y"));
}

TEST(HostileTypes, StringsAreNotJoined) {
  const auto word = OnnxBuilder::words("value_strings", {"ab"});
  EXPECT_THAT(refusal_text(in_a_loop(turn_with_output(OnnxBuilder().node("Constant", {}, {"o"}, {word})))),
              HasSubstr("found strings, expected numbers"));
  const OnnxBuilder each = OnnxBuilder().input("v", {"1"}).node("Constant", {}, {"o"}, {word}).output("o");
  OnnxBuilder b;
  b.input("x", {"1"}).node("SequenceConstruct", {"x", "x"}, {"parts"});
  b.node("SequenceMap", {"parts"}, {"words"}, {OnnxBuilder::body("body", each)});
  b.node("ConcatFromSequence", {"words"}, {"y"}, {OnnxBuilder::number("axis", 0)}).output("y");
  EXPECT_THAT(refusal_text(b), HasSubstr("found strings, expected numbers"));
}

// Each operator with too few inputs, and with inputs or outputs of the wrong kind: imported or refused.
TEST(HostileTypes, OperatorsMayHaveAnyInputs) {
  const std::vector<Words> lists{
      {}, {"x"}, {"n"}, {"", "x"}, {"x", "n"}, {"x", "x", "x"}, {"n", "n", "n", "n"}, Words(9, "x")};
  for (const auto family : onnx::all_ops())
    for (const onnx::OpHandler& handler : family) {
      const std::string name(handler.name);
      const std::size_t dot = name.rfind('.');
      const std::string domain = dot == std::string::npos ? "" : name.substr(0, dot);
      for (const Words& inputs : lists)
        for (const Words& outputs : {Words{"y"}, Words{}, Words{"", "z", "y"}}) {
          OnnxBuilder b(17);
          b.input("x", {"1", "2", "3", "4"}).longs("n", {2}, {1, 2});
          b.node(name.substr(dot + 1), inputs, outputs, {}, "", domain).output("x");
          SCOPED_TRACE(name);
          (void)import_onnx(test::must_parse(b), {});
        }
    }
}

TEST(HostileTypes, StringsAreNotRepeated) {
  OnnxBuilder b;
  b.longs("shape", {1}, {3});
  const OnnxBuilder::Attribute word{"value", [](protozero::pbf_writer& out) {
                                      protozero::pbf_writer tensor(out, 5);
                                      tensor.add_int64(1, 1);
                                      tensor.add_int32(2, 8);
                                      tensor.add_bytes(6, "abc");
                                      tensor.commit();
                                      out.add_int32(20, 4);
                                    }};
  b.node("ConstantOfShape", {"shape"}, {"y"}, {word}).output("y");
  EXPECT_THAT(refusal_text(b), HasSubstr("found strings, expected numbers"));
}

TEST(HostileTypes, StringsAreNoNumbers) {
  const auto word = OnnxBuilder::words("value_strings", {"7"});
  OnnxBuilder b;
  b.input("x", {"1"})
      .node("Constant", {}, {"words"}, {word})
      .node("SequenceConstruct", {"x", "x"}, {"parts"});
  for (const char* op : {"SequenceAt", "SequenceErase", "SplitToSequence"}) {
    OnnxBuilder one = b;
    const bool splits = op == std::string("SplitToSequence");
    one.node(op, {splits ? "x" : "parts", "words"}, {"y"}).output("y");
    EXPECT_THAT(refusal_text(one), HasSubstr("found string")) << op;
  }
}

TEST(HostileTypes, DigitsOfStringsAreCounted) {
  OnnxBuilder b;
  b.input("x", {"1"});
  b.node("Constant", {}, {"digits"}, {OnnxBuilder::words("value_strings", {std::string(100'000, '1')})});
  Words names;
  for (int i = 0; i < 2000; ++i)
    b.node("Cast", {"digits"}, {names.emplace_back("n" + std::to_string(i))}, {OnnxBuilder::number("to", 1)});
  b.node("Sum", names, {"y"}).output("y");
  EXPECT_THAT(refusal_text(b), HasSubstr("Cast"));
}

TEST(HostileTypes, ResultsOfALoopAreCounted) {
  OnnxBuilder inner;
  inner.input("i", {}, test::kInt64).input("go", {}, test::kBool).input("v", {"1"});
  inner.output("go", {}, test::kBool).output("v");
  Words names{"last"};
  for (int i = 0; i < 16'000; ++i) {
    inner.output("v");
    names.push_back("r" + std::to_string(i));
  }
  OnnxBuilder b;
  b.input("x", {"1"}).longs("m", {}, {1024});
  b.node("Loop", {"m", "", "x"}, names, {OnnxBuilder::body("body", inner)}).output("last");
  EXPECT_THAT(refusal_text(b), HasSubstr("more Loop nodes than one model may have"));
}

// One node of 176 bytes would be 98,306 operations.
TEST(HostileTypes, TapsOfAResizeAreCounted) {
  OnnxBuilder b(19);
  b.input("x", {"1", "1", "65536", "1"}).longs("sizes", {4}, {1, 1, 4, 1});
  b.node("Resize", {"x", "", "", "sizes"}, {"y"},
         {OnnxBuilder::text("mode", "linear"), OnnxBuilder::number("antialias", 1)})
      .output("y");
  EXPECT_THAT(refusal_text(b), HasSubstr("Resize"));
}

// Names that the innermost of 14 branches reads from outside pass through all of them.
TEST(HostileTypes, NamesThatBodiesReadAreFoundOnce) {
  constexpr int kNames = 6'000, kDepth = 14;
  OnnxBuilder b, inner;
  b.input("x", {"1"}).raw("c", {}, test::kBool, std::string(1, '\1'));
  Words names;
  for (int i = 0; i < kNames; ++i) b.node("Identity", {"x"}, {names.emplace_back("n" + std::to_string(i))});
  for (int i = 0; i + 100 <= kNames; i += 100)
    inner.node("Sum", Words(names.begin() + i, names.begin() + i + 100), {"s" + std::to_string(i)});
  inner.output("s0");
  for (int depth = 0; depth < kDepth; ++depth) {
    const std::string made = "d" + std::to_string(depth);
    OnnxBuilder outer;
    outer.node("If", {"c"}, {made},
               {OnnxBuilder::body("then_branch", inner),
                OnnxBuilder::body("else_branch", OnnxBuilder().output("x"))});
    inner = std::move(outer.output(made));
  }
  b.node(
      "If", {"c"}, {"y"},
      {OnnxBuilder::body("then_branch", inner), OnnxBuilder::body("else_branch", OnnxBuilder().output("x"))});
  const std::clock_t start = std::clock();
  EXPECT_EQ(refusal_text(b.output("y")), "");
  EXPECT_LT(std::clock() - start, 2 * CLOCKS_PER_SEC);  // less than a tenth of that on a quiet machine
}

TEST(HostileTypes, TurnsOfALoopMakeOneType) {
  const auto branch = [](OnnxBuilder b) { return b.node("Identity", {"c"}, {"b"}).output("b"); };
  // Shapes that grow, so that the turns are imported one after the other.
  OnnxBuilder inner;
  inner.longs("zero", {}, {0}).node("Equal", {"i", "zero"}, {"first"});
  inner.node("If", {"first"}, {"o"},
             {OnnxBuilder::body("then_branch", branch(std::move(OnnxBuilder().floats("c", {1}, {1})))),
              OnnxBuilder::body("else_branch", branch(std::move(OnnxBuilder().longs("c", {1}, {5}))))});
  inner.node("Concat", {"v", "v"}, {"twice"}, {OnnxBuilder::number("axis", 0)});
  inner.input("i", {}, test::kInt64).input("go", {}, test::kBool).input("v", {"1"});
  inner.output("go", {}, test::kBool).output("twice").output("o");
  EXPECT_THAT(refusal_text(in_a_loop(inner)), HasSubstr("concat: "));
}

TEST(HostileTypes, AConditionIsOneBool) {
  OnnxBuilder inner;
  inner.raw("none", {0}, test::kBool, "").input("i", {}, test::kInt64).input("go", {}, test::kBool);
  inner.input("v", {"1"}).output("none", {}, test::kBool).output("v");
  OnnxBuilder b;
  b.input("x", {"1"}).longs("m", {}, {3});
  b.node("Loop", {"m", "", "x"}, {"y"}, {OnnxBuilder::body("body", inner)}).output("y");
  const auto imported = import_onnx(test::must_parse(b), {});
  ASSERT_FALSE(imported.ok());
  EXPECT_NE(imported.error().code, ErrorCode::internal);
}

// ---- named extents ----

class ExtentCost {
 public:
  ~ExtentCost() {
    EXPECT_LT(std::clock() - start_, 5 * CLOCKS_PER_SEC);  // 25 times a bomb's limit
    EXPECT_LE(heap_.peak_bytes(), std::size_t{64} << 20);
  }

 private:
  test::HeapWatch heap_;
  std::clock_t start_ = std::clock();
};

// Imports for any extent of N up to the bound.
std::string import_named(const OnnxBuilder& builder, std::int64_t bound,
                         std::map<std::string, Shape> shapes) {
  const onnx::Model model = test::must_parse(builder);
  std::vector<DimensionBound> bounds{{"N", bound}};
  const Result<> bounded = bound_dimensions(model, bounds, shapes);
  EXPECT_TRUE(bounded.ok());
  const ExtentCost cost;
  const auto imported = import_onnx(model, shapes);
  return imported ? "" : imported.error().message;
}

std::string numbered_name(const char* prefix, int i) { return prefix + std::to_string(i); }

TEST(HostileExtents, TablesOfCountsAreCounted) {
  OnnxBuilder b;
  b.input("x", {"N", "4"});
  Words names;
  for (int i = 0; i < 4000; ++i)
    b.node("ReduceMean", {"x"}, {names.emplace_back(numbered_name("m", i))},
           {OnnxBuilder::list("axes", {0})});
  b.node("Sum", names, {"y"}).output("y");
  EXPECT_THAT(import_named(b, 60'000, {{"x", {2, 4}}}), HasSubstr("more operations before it than the "));
}

TEST(HostileExtents, ListsOfSumsAreCounted) {
  OnnxBuilder b;
  b.input("x", {"N", "N", "N", "N"}).node("Shape", {"x"}, {"s"});
  std::string last = "s";
  for (int i = 0; i < 4; ++i, last = numbered_name("s", i - 1))
    b.node("Concat", {last, last}, {numbered_name("s", i)}, {OnnxBuilder::number("axis", 0)});
  b.longs("one", {}, {1}).node("Add", {last, "one"}, {"p"}).node("Mul", {"p", "p"}, {"q"});
  Words names;
  for (int i = 0; i < 2000; ++i) b.node("Mul", {"q", "p"}, {names.emplace_back(numbered_name("z", i))});
  b.node("Sum", names, {"t"}).node("ReduceSum", {"t"}, {"y"}).output("y");
  EXPECT_THAT(import_named(b, 8, {{"x", {2, 2, 2, 2}}}), HasSubstr("than one model may have"));
}

TEST(HostileExtents, RowsOfSumsMeetOneRow) {
  OnnxBuilder b;
  b.input("x", {"N", "N"}).node("Shape", {"x"}, {"s"}).longs("square", {2}, {2, 2});
  b.node("Concat", {"s", "s"}, {"all"}, {OnnxBuilder::number("axis", 0)});
  b.node("Reshape", {"all", "square"}, {"rows"});
  for (const char* op : {"Add", "Mul", "Compress", "Equal"}) {
    OnnxBuilder one = b;
    one.node(op, {"rows", "s"}, {"y"})
        .output("y", {}, op == std::string("Equal") ? test::kBool : test::kInt64);
    const std::string refused = import_named(one, 8, {{"x", {2, 2}}});
    EXPECT_EQ(refused.empty(), op != std::string("Compress")) << refused;  // computed in each run
  }
}

TEST(HostileExtents, NamesOfAxesAreFewForOneModel) {
  OnnxBuilder b;
  b.input("x", {"N", "1"}).floats("one", {1, 1}, {1});
  std::string last = "x";
  for (int i = 0; i < 3000; ++i) {
    b.node("Concat", {"one", last}, {numbered_name("c", i)}, {OnnxBuilder::number("axis", 0)});
    last = numbered_name("c", i);
  }
  b.node("ReduceSum", {last}, {"y"}).output("y");
  const std::uint64_t before = tensor::made_axis_names();
  EXPECT_THAT(import_named(b, 64, {{"x", {2, 1}}}), HasSubstr("more than 1024 axes before it"));
  EXPECT_LE(tensor::made_axis_names() - before, 1100u);
}

// Foreign models have names of their own. A process has 65,535 at one time.
TEST(HostileExtents, NamesOfAxesAreGivenBack) {
  for (std::int64_t bound = 2; bound < 70'000; ++bound) ASSERT_TRUE(Extent("N", bound).axis_name()) << bound;
  OnnxBuilder b;
  b.input("x", {"N", "1"}).floats("one", {1, 1}, {1});
  std::string last = "x";
  for (int i = 0; i < 100; ++i) {
    b.node("Concat", {"one", last}, {numbered_name("c", i)}, {OnnxBuilder::number("axis", 0)});
    last = numbered_name("c", i);
  }
  b.node("ReduceSum", {last}, {"y"}).output("y");
  for (int turn = 0; turn < 2; ++turn) {
    const std::uint64_t before = tensor::made_axis_names();
    EXPECT_EQ(import_named(b, 100, {{"x", {2, 1}}}), "");
    EXPECT_GE(tensor::made_axis_names() - before, 100u) << "those of the model before are gone";
  }
}

TEST(HostileExtents, NamesOfAxesStayWhileAShapeHasThem) {
  const auto made = [](const char* name) {
    const std::uint64_t before = tensor::made_axis_names();
    const Extent extent(name, 8);
    return tensor::made_axis_names() - before;
  };
  Shape kept, copy;
  {
    const Extent extent("kept by a shape", 8);
    kept = {extent, 2};
  }
  EXPECT_EQ(kept.text(), "[kept by a shape <= 8, 2]");
  EXPECT_EQ(made("kept by a shape"), 0u);
  copy = kept;
  kept = Shape();
  EXPECT_EQ(copy.text(), "[kept by a shape <= 8, 2]");
  EXPECT_EQ(made("kept by a shape"), 0u);
  copy[0] = 3;  // the name belongs to one extent, and stays until the shape goes
  EXPECT_FALSE(copy.is_named());
  copy.clear_names();
  EXPECT_EQ(made("kept by a shape"), 1u);
  EXPECT_EQ(made("kept by a shape"), 1u);  // given back again
}

TEST(HostileExtents, NamesOfAxesAreSharedByThreads) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([] {
      for (int i = 0; i < 20'000; ++i) {
        const Extent extent(i % 2 ? "of threads" : "of other threads", 8);
        const Shape shape{extent, 2};
        ASSERT_EQ(shape.parts(0)[0].extent, i % 2 ? "of threads" : "of other threads");
      }
    });
  for (std::thread& thread : threads) thread.join();
}

// ---- work that limits count ----

std::uint64_t work_of(const OnnxBuilder& builder, const Shape& shape = {1, 1}) {
  const ImportedModel model = test::must_import(builder, {{"x", shape}});
  const auto runtime = Runtime::create_on_cpu();
  const ProgramDescription description{
      .name = "work", .inputs = model.input_tensors(), .outputs = model.output_tensors()};
  const auto program = Program::compile(*runtime, description);
  EXPECT_TRUE(program.ok()) << program.error().message;
  return program ? program->stats().work : 0;
}

// y = the sum of `op` of 10^6 numbers.
OnnxBuilder of_a_million(const char* op, int count,
                         const std::vector<OnnxBuilder::Attribute>& attributes = {}) {
  OnnxBuilder b;
  b.input("x", {"N", "1"}).longs("extents", {2}, {1000, 1000}).node("Expand", {"x", "extents"}, {"v0"});
  for (int i = 0; i < count; ++i) {
    auto own = attributes;
    if (op == std::string("Cast")) own.push_back(OnnxBuilder::number("to", i % 2 ? 1 : 6));
    b.node(op, {numbered_name("v", i)}, {numbered_name("v", i + 1)}, own);
  }
  b.node("ReduceSum", {numbered_name("v", count)}, {"y"}).output("y");
  return b;
}

TEST(HostileWork, CastsCount) { EXPECT_GE(work_of(of_a_million("Cast", 100)), 100'000'000u); }

TEST(HostileWork, AFunctionCountsSeveralTimes) {
  EXPECT_GE(work_of(of_a_million("Erf", 1)), 16'000'000u);
  EXPECT_LE(work_of(of_a_million("Abs", 1)), 4'000'000u);
}

TEST(HostileWork, FarReadsCount) {
  const auto transposed = [](const std::vector<std::int64_t>& axes) {
    OnnxBuilder b;
    b.input("x", {"A", "B", "C"}).node("Transpose", {"x"}, {"t"}, {OnnxBuilder::list("perm", axes)});
    return b.node("Neg", {"t"}, {"y"}).output("y");
  };
  EXPECT_GE(work_of(transposed({2, 1, 0}), {100, 100, 100}), 10'000'000u);
  EXPECT_LE(work_of(transposed({1, 0, 2}), {100, 100, 100}), 2'000'000u);
}

TEST(HostileWork, PlacesCount) { EXPECT_GE(work_of(of_a_million("Trilu", 1)), 4'000'000u); }

TEST(HostileExtents, ProductsBeyondAnyAxisAreRefused) {
  OnnxBuilder b;
  b.input("x", {"N", "1"}).longs("first", {1}, {0}).floats("one", {1}, {1});
  b.node("Shape", {"x"}, {"s"}).node("Gather", {"s", "first"}, {"n"});
  b.node("Mul", {"n", "n"}, {"n2"}).node("Mul", {"n2", "n2"}, {"n4"}).node("Expand", {"one", "n4"}, {"y"});
  b.output("y");
  EXPECT_THAT(import_named(b, 1 << 24, {{"x", {2, 1}}}), HasSubstr("found 1 and N * N * N * N"));
  // 2^96 places, of which 64 bits keep none
  EXPECT_FALSE(
      tensor::axis_name({{"N", 1 << 24, 1}, {"N", 1 << 24, 1}, {"N", 1 << 24, 1}, {"N", 1 << 24, 1}}));
  EXPECT_FALSE(tensor::axis_name({{"N", 1 << 24, 1}, {"", std::int64_t{1} << 62, 1}}));
}

}  // namespace
}  // namespace imprint
