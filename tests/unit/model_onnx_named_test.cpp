// Models with named extents on the CPU: one import and one program for all extents up to the bounds, with the
// bits of an import for exactly these extents.

#include <gmock/gmock.h>

#include <cmath>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "compute/program/run.h"
#include "tests/unit/model_onnx_run.h"

namespace imprint {
namespace {

using test::OnnxBuilder;
using ::testing::HasSubstr;

std::vector<float> wave(std::int64_t count, double step) {
  std::vector<float> values;
  for (std::int64_t i = 0; i < count; ++i)
    values.push_back(static_cast<float>(std::sin(step * static_cast<double>(i + 1))));
  return values;
}

HostTensor wave_tensor(const Shape& shape, double step) {
  return HostTensor::from(wave(shape.element_count(), step), shape);
}

template <class T>
T found(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().message);
  return std::move(*result);
}

class NamedOnnx : public ::testing::Test {
 protected:
  Program compile(const ImportedModel& model) {
    return found(
        Program::compile(*runtime_, {.inputs = model.input_tensors(), .outputs = model.output_tensors()}));
  }
  std::vector<HostTensor> run(Program& program, const std::vector<HostTensor>& inputs) {
    return found(session_.run(program, inputs));
  }
  ImportedModel import(const OnnxBuilder& builder, std::map<std::string, Shape> shapes,
                       const std::vector<DimensionBound>& bounds) {
    const onnx::Model model = test::must_parse(builder);
    const Result<> bounded = bound_dimensions(model, bounds, shapes);
    EXPECT_TRUE(bounded.ok()) << (bounded ? "" : bounded.error().message);
    return found(import_onnx(model, shapes));
  }
  // The message with which the import of a model for these bounds ends.
  std::string refused(const OnnxBuilder& builder, std::map<std::string, Shape> shapes,
                      const std::vector<DimensionBound>& bounds) {
    const onnx::Model model = test::must_parse(builder);
    if (const Result<> bounded = bound_dimensions(model, bounds, shapes); !bounded)
      return bounded.error().message;
    const auto imported = import_onnx(model, shapes);
    EXPECT_FALSE(imported.ok());
    return imported ? "" : imported.error().message;
  }
  // Every case beside an import for its own extents. All cases are runs of one program.
  void compare(const OnnxBuilder& builder, const std::vector<DimensionBound>& bounds,
               const std::vector<std::map<std::string, Shape>>& cases) {
    std::map<std::string, Shape> least = cases[0];
    const ImportedModel named = import(builder, least, bounds);
    Program program = compile(named);
    for (const auto& shapes : cases) {
      const ImportedModel exact = test::must_import(builder, shapes);
      std::vector<HostTensor> inputs;
      for (const ImportedValue& input : exact.inputs)
        inputs.push_back(wave_tensor(input.tensor.shape(), 0.37 + 0.1 * static_cast<double>(inputs.size())));
      Program once = compile(exact);
      const std::vector<HostTensor> expected = run(once, inputs), results = run(program, inputs);
      ASSERT_EQ(results.size(), expected.size());
      for (std::size_t i = 0; i < results.size(); ++i) {
        EXPECT_EQ(results[i].shape, expected[i].shape) << exact.outputs[i].name;
        EXPECT_EQ(results[i].floats, expected[i].floats) << exact.outputs[i].name;
        EXPECT_EQ(results[i].ints, expected[i].ints) << exact.outputs[i].name;
      }
    }
  }

  std::unique_ptr<Runtime> runtime_ = Runtime::create_on_cpu();
  Session session_{*runtime_};
};

// Attention over [batch, length, 8] as exporters write it: reshapes by computed shapes, positions cut from a
// table, a causal mask made of ranges, an expanded start token, and the last step picked from the back.
OnnxBuilder transformer() {
  OnnxBuilder b;
  const auto scalar = [&](const std::string& name, std::int64_t value) { b.longs(name, {}, {value}); };
  const auto list = [&](const std::string& name, const test::Extents& values) {
    b.longs(name, {static_cast<std::int64_t>(values.size())}, values);
  };
  b.input("x", {"batch", "length", "8"})
      .floats("w", {8, 24}, wave(192, 0.7))
      .floats("table", {1, 16, 8}, wave(128, 0.3));
  b.floats("token", {1, 1, 8}, wave(8, 0.9)).floats("hidden", {}, {-1e9f}).floats("none", {}, {0});
  list("zero", {0}), list("one", {1}), list("two", {2}), list("heads", {2, 4}), list("eight", {8}),
      list("minus", {-1, -1, -1});
  scalar("index0", 0), scalar("index1", 1), scalar("last", -1);
  b.node("Shape", {"x"}, {"shape"});
  b.node("Gather", {"shape", "index0"}, {"batch"}).node("Gather", {"shape", "index1"}, {"length"});
  b.node("Unsqueeze", {"batch", "zero"}, {"batch1"}).node("Unsqueeze", {"length", "zero"}, {"length1"});
  b.node("Slice", {"table", "zero", "length1", "one"}, {"places"}).node("Add", {"x", "places"}, {"placed"});
  b.node("MatMul", {"placed", "w"}, {"all"});
  b.node("Split", {"all"}, {"q", "k", "v"}, {OnnxBuilder::number("axis", 2)});
  b.node("Concat", {"batch1", "length1", "heads"}, {"split"}, {OnnxBuilder::number("axis", 0)});
  for (const std::string part : {"q", "k", "v"})
    b.node("Reshape", {part, "split"}, {part + "4"})
        .node(
            "Transpose", {part + "4"}, {part + "t"},
            {OnnxBuilder::list("perm", part == "k" ? test::Extents{0, 2, 3, 1} : test::Extents{0, 2, 1, 3})});
  b.node("MatMul", {"qt", "kt"}, {"scores"});
  b.node("Range", {"index0", "length", "index1"}, {"steps"});
  b.node("Unsqueeze", {"steps", "one"}, {"rows"}).node("LessOrEqual", {"steps", "rows"}, {"seen"});
  b.node("Where", {"seen", "none", "hidden"}, {"mask"}).node("Add", {"scores", "mask"}, {"masked"});
  b.node("Softmax", {"masked"}, {"weights"}).node("MatMul", {"weights", "vt"}, {"mixed"});
  b.node("Transpose", {"mixed"}, {"mixedt"}, {OnnxBuilder::list("perm", {0, 2, 1, 3})});
  b.node("Mul", {"batch1", "length1"}, {"rows1"});
  b.node("Concat", {"rows1", "eight"}, {"flatshape"}, {OnnxBuilder::number("axis", 0)});
  b.node("Reshape", {"mixedt", "flatshape"}, {"flat"});
  b.node("Concat", {"batch1", "one", "eight"}, {"asked"}, {OnnxBuilder::number("axis", 0)});
  // As torch.expand is exported: -1 keeps an extent.
  b.node("Equal", {"asked", "minus"}, {"keeps"}).node("Where", {"keeps", "minus", "asked"}, {"target"});
  b.node("Expand", {"token", "target"}, {"tokens"});
  b.node("Gather", {"placed", "last"}, {"final"}, {OnnxBuilder::number("axis", 1)});
  b.node("ReduceMean", {"placed"}, {"mean"},
         {OnnxBuilder::list("axes", {1}), OnnxBuilder::number("keepdims", 1)});
  b.node("Mul", {"tokens", "mean"}, {"pooled"});
  return b.output("flat")
      .output("final")
      .output("pooled")
      .output("rows1", {"1"}, test::kInt64)
      .output("steps", {"length"}, test::kInt64);
}

TEST_F(NamedOnnx, ATransformerHasTheBitsOfExactImports) {
  compare(
      transformer(), {{"batch", 6}, {"length", 16}},
      {{{"x", {2, 5, 8}}}, {{"x", {6, 16, 8}}}, {{"x", {1, 1, 8}}}, {{"x", {3, 16, 8}}}, {{"x", {6, 7, 8}}}});
}

// A decoder as optimum exports it: keys and values of a named length, joined with those of the new steps,
// under the mask of a batch with padding on the left.
OnnxBuilder decoder() {
  OnnxBuilder b;
  b.input("x", {"batch", "length", "8"}).input("mask", {"batch", "past + length"});
  for (const std::string part : {"k", "v"}) b.input("past_" + part, {"batch", "2", "past", "4"});
  for (const std::string part : {"q", "k", "v"})
    b.floats("w" + part, {8, 8}, wave(64, part == "q" ? 0.31 : part == "k" ? 0.57 : 0.83));
  b.longs("heads", {4}, {0, 0, 2, 4}).longs("flat", {3}, {0, 0, -1}).longs("index", {}, {2});
  b.longs("zero", {}, {0}).longs("one", {}, {1}).longs("lift", {2}, {1, 2}).longs("row", {1}, {1});
  b.floats("hidden", {}, {-1e9f}).floats("none", {}, {0}).floats("unit", {}, {1});
  for (const std::string part : {"q", "k", "v"})
    b.node("MatMul", {"x", "w" + part}, {part + "f"})
        .node("Reshape", {part + "f", "heads"}, {part + "h"})
        .node("Transpose", {part + "h"}, {part + "t"}, {OnnxBuilder::list("perm", {0, 2, 1, 3})});
  for (const std::string part : {"k", "v"})
    b.node("Concat", {"past_" + part, part + "t"}, {part + "all"}, {OnnxBuilder::number("axis", -2)});
  b.node("Shape", {"kall"}, {"allshape"}).node("Gather", {"allshape", "index"}, {"total"});
  b.node("Shape", {"past_k"}, {"pastshape"}).node("Gather", {"pastshape", "index"}, {"past"});
  b.node("Range", {"zero", "total", "one"}, {"columns"}).node("Range", {"past", "total", "one"}, {"steps"});
  b.node("Unsqueeze", {"steps", "row"}, {"rows"}).node("LessOrEqual", {"columns", "rows"}, {"seen"});
  b.node("Where", {"seen", "none", "hidden"}, {"causal"});
  b.node("Unsqueeze", {"mask", "lift"}, {"mask4"}).node("Sub", {"unit", "mask4"}, {"unseen"});
  b.node("Mul", {"unseen", "hidden"}, {"padding"});
  b.node("Transpose", {"kall"}, {"kallt"}, {OnnxBuilder::list("perm", {0, 1, 3, 2})});
  b.node("MatMul", {"qt", "kallt"}, {"scores"}).node("Add", {"scores", "causal"}, {"scores1"});
  b.node("Add", {"scores1", "padding"}, {"scores2"}).node("Softmax", {"scores2"}, {"weights"});
  b.node("MatMul", {"weights", "vall"}, {"mixed"});
  b.node("Transpose", {"mixed"}, {"mixedt"}, {OnnxBuilder::list("perm", {0, 2, 1, 3})});
  b.node("Reshape", {"mixedt", "flat"}, {"joined"}).node("Add", {"joined", "x"}, {"y"});
  return b.output("y").output("kall").output("vall");
}

std::map<std::string, Shape> decoder_shapes(std::int64_t batch, std::int64_t past, std::int64_t length) {
  return {{"x", {batch, length, 8}},
          {"mask", {batch, past + length}},
          {"past_k", {batch, 2, past, 4}},
          {"past_v", {batch, 2, past, 4}}};
}

TEST_F(NamedOnnx, ADecoderJoinsPastAndNewSteps) {
  compare(
      decoder(), {{"batch", 3}, {"past", 9}, {"length", 4}},
      {decoder_shapes(2, 5, 1), decoder_shapes(3, 9, 4), decoder_shapes(1, 1, 1), decoder_shapes(1, 2, 3)});
  // One step each: the length is a number in the sum.
  compare(decoder(), {{"past", 9}},
          {decoder_shapes(1, 3, 1), decoder_shapes(1, 4, 1), decoder_shapes(1, 9, 1)});
}

// Token by token in one program, from an empty past: its keys and values go in again. All steps at once give
// the same.
TEST_F(NamedOnnx, ADecoderGoesOnWithItsOwnPast) {
  constexpr std::int64_t kSteps = 12, kMost = 11;
  const HostTensor all = wave_tensor({1, kSteps, 8}, 0.43), none = HostTensor::from({}, {1, 2, 0, 4});
  const auto mask = [](std::int64_t places) {
    return HostTensor::from(std::vector<float>(static_cast<std::size_t>(places), 1), {1, places});
  };
  Program whole = compile(test::must_import(decoder(), decoder_shapes(1, 0, kSteps)));
  const std::vector<HostTensor> expected = run(whole, {all, mask(kSteps), none, none});
  Program program =
      compile(import(decoder(), decoder_shapes(1, 0, 1), {{.name = "past", .most = kMost, .least = 0}}));
  HostTensor keys = none, values = none;
  for (std::int64_t step = 0; step < kSteps; ++step) {
    const std::vector<float> x(all.floats.begin() + step * 8, all.floats.begin() + (step + 1) * 8);
    const auto results = run(program, {HostTensor::from(x, {1, 1, 8}), mask(step + 1), keys, values});
    for (std::size_t i = 0; i < 8; ++i)
      EXPECT_NEAR(results[0].floats[i], expected[0].floats[static_cast<std::size_t>(step) * 8 + i], 1e-6);
    keys = results[1];
    values = results[2];
    EXPECT_EQ(keys.shape, Shape({1, 2, step + 1, 4}));
  }
  EXPECT_EQ(keys.floats, expected[1].floats);
  // One place too many, and a mask that does not fit the past.
  const HostTensor x = wave_tensor({1, 1, 8}, 1);
  EXPECT_THAT(session_.run(program, std::vector<HostTensor>{x, mask(13), keys, values}).error().message,
              HasSubstr("for [1, past + 1 <= 12], expected axis 1 to have 1 .. 12 places"));
  EXPECT_THAT(session_.run(program, std::vector<HostTensor>{x, mask(4), none, none}).error().message,
              HasSubstr("found shape [1, 4]"));
}

// The operator joins the past itself. Where a run's past is shorter than the bound, its queries see no more.
TEST_F(NamedOnnx, AttentionSeesTheStepsOfItsPast) {
  OnnxBuilder b(23);
  for (const std::string part : {"q", "k", "v"}) b.input(part, {"1", "2", "length", "4"});
  for (const std::string part : {"past_k", "past_v"}) b.input(part, {"1", "2", "past", "4"});
  b.node("Attention", {"q", "k", "v", "", "past_k", "past_v"}, {"y", "keys", "values"},
         {OnnxBuilder::number("is_causal", 1)});
  const auto shapes = [](std::int64_t past, std::int64_t length) {
    std::map<std::string, Shape> made;
    for (const std::string part : {"q", "k", "v"}) made[part] = {1, 2, length, 4};
    for (const std::string part : {"past_k", "past_v"}) made[part] = {1, 2, past, 4};
    return made;
  };
  compare(b.output("y").output("keys").output("values"), {{"past", 9}, {"length", 3}},
          {shapes(4, 2), shapes(9, 3), shapes(1, 1), shapes(2, 3)});
}

// A detection head: images in a named batch, grown by a number, and by sizes that follow from the shape.
// Grouped queries with a cache that grows: the total is arithmetic on the extents, as exporters write it.
TEST_F(NamedOnnx, GroupedQueriesGoOnWithTheirCache) {
  OnnxBuilder b;
  b.input("q", {"n", "steps", "8"}).input("k", {"n", "steps", "4"}).input("v", {"n", "steps", "4"});
  b.input("pk", {"n", "2", "past", "2"}).input("pv", {"n", "2", "past", "2"});
  b.longs("one", {}, {1}).longs("two", {}, {2}).longs("first", {}, {0});
  b.floats("cos", {16, 1}, wave(16, 0.9)).floats("sin", {16, 1}, wave(16, 0.4));
  b.node("Shape", {"q"}, {"of_q"}).node("Shape", {"pk"}, {"of_past"});
  b.node("Gather", {"of_q", "one"}, {"steps"}).node("Gather", {"of_past", "two"}, {"past"});
  b.node("Gather", {"of_q", "first"}, {"batch"}).node("Add", {"steps", "past"}, {"all"});
  b.node("Cast", {"all"}, {"total"}, {OnnxBuilder::number("to", 6)});
  b.node("Sub", {"total", "one32"}, {"last_one"});
  b.raw("one32", {}, test::kInt32, std::string("\1\0\0\0", 4)).longs("axis", {1}, {0});
  b.node("Unsqueeze", {"batch", "axis"}, {"batches"}).node("Expand", {"last_one", "batches"}, {"last"});
  b.node("GroupQueryAttention", {"q", "k", "v", "pk", "pv", "last", "total", "cos", "sin"}, {"y", "nk", "nv"},
         {OnnxBuilder::number("num_heads", 4), OnnxBuilder::number("kv_num_heads", 2),
          OnnxBuilder::number("do_rotary", 1)},
         "", "com.microsoft");
  b.output("y").output("nk").output("nv");
  const auto shapes = [](std::int64_t n, std::int64_t steps, std::int64_t past) {
    return std::map<std::string, Shape>{{"q", {n, steps, 8}},
                                        {"k", {n, steps, 4}},
                                        {"v", {n, steps, 4}},
                                        {"pk", {n, 2, past, 2}},
                                        {"pv", {n, 2, past, 2}}};
  };
  compare(b, {{"n", 3}, {"steps", 4}, {.name = "past", .most = 9, .least = 0}},
          {shapes(2, 3, 5), shapes(3, 4, 9), shapes(1, 1, 1), shapes(3, 1, 6), shapes(2, 4, 0)});
}

TEST_F(NamedOnnx, ResizeLeavesANamedBatchAndRepeatsNamedPlaces) {
  OnnxBuilder b;
  b.input("x", {"n", "2", "height", "3"}).floats("scales", {4}, {1, 1, 2, 2}).longs("two", {1}, {2});
  b.longs("zero", {1}, {0}).longs("wide", {1}, {7}).longs("end", {1}, {3});
  b.node("Resize", {"x", "", "scales"}, {"up"}, {OnnxBuilder::text("mode", "nearest")});
  b.node("Shape", {"x"}, {"shape"}).node("Slice", {"shape", "zero", "end"}, {"kept"});
  b.node("Concat", {"kept", "wide"}, {"sizes"}, {OnnxBuilder::number("axis", 0)});
  b.node("Resize", {"x", "", "", "sizes"}, {"wider"}, {OnnxBuilder::text("mode", "linear")});
  b.node("ArgMax", {"x"}, {"last"},
         {OnnxBuilder::number("axis", 2), OnnxBuilder::number("select_last_index", 1)});
  const auto shapes = [](std::int64_t n, std::int64_t height) {
    return std::map<std::string, Shape>{{"x", {n, 2, height, 3}}};
  };
  compare(b.output("up").output("wider").output("last", {}, test::kInt64), {{"n", 4}, {"height", 5}},
          {shapes(2, 3), shapes(4, 5), shapes(1, 1)});
  OnnxBuilder linear;
  linear.input("x", {"n", "2", "height", "3"}).floats("scales", {4}, {1, 1, 2, 2});
  linear.node("Resize", {"x", "", "scales"}, {"y"}, {OnnxBuilder::text("mode", "linear")}).output("y");
  EXPECT_THAT(refused(linear, shapes(2, 3), {{"height", 5}}),
              HasSubstr("axis 2: found input [2, 2, height <= 5, 3], expected a fixed extent, or repeated"));
}

TEST_F(NamedOnnx, BoundsAreReadFromText) {
  const DimensionBound batch = found(parse_bound("batch=64")), past = found(parse_bound("past=0..128")),
                       total = found(parse_bound("x:1=past + 1"));
  EXPECT_EQ(batch.most, 64);
  EXPECT_EQ(batch.least, 1);
  EXPECT_EQ(past.name, "past");
  EXPECT_EQ(past.most, 128);
  EXPECT_EQ(past.least, 0);
  EXPECT_EQ(total.name, "x:1");
  EXPECT_EQ(total.sum, "past + 1");
  for (const char* wrong : {"batch", "=4", "batch="}) EXPECT_FALSE(parse_bound(wrong).ok()) << wrong;
}

TEST_F(NamedOnnx, SumsOfDimensionsFollowFromTheirTerms) {
  OnnxBuilder b;
  b.input("a", {"n", "2"}).input("b", {"total", "2"}).input("c", {"m", "2"});
  b.longs("pads", {4}, {1, 0, 2, 0}).floats("fill", {}, {7});
  b.node("Concat", {"a", "c", "a"}, {"aca"}, {OnnxBuilder::number("axis", 0)});
  b.node("Pad", {"c", "pads", "fill"}, {"p"}).node("ReduceSum", {"p"}, {"s"});
  b.node("Concat", {"a", "c"}, {"ac"}, {OnnxBuilder::number("axis", 0)}).node("Add", {"ac", "b"}, {"y"});
  b.output("aca").output("p").output("s").output("y");
  const auto shapes = [](std::int64_t n, std::int64_t m) {
    return std::map<std::string, Shape>{{"a", {n, 2}}, {"b", {n + m, 2}}, {"c", {m, 2}}};
  };
  compare(b, {{"n", 5}, {"m", 6}, {"total", 0, "n + m"}},
          {shapes(2, 3), shapes(5, 6), shapes(1, 1), shapes(4, 1)});
  EXPECT_THAT(refused(b, shapes(2, 3), {{"n", 5}, {"m", 6}, {"total", 0, "n + k"}}),
              HasSubstr("extent 'total': found 'n + k', expected a sum of bounded dimensions"));
  const std::string least = "n + -9223372036854775808 + -9223372036854775808";  // a file may say so too
  EXPECT_THAT(refused(b, shapes(2, 3), {{"n", 5}, {"m", 6}, {"total", 0, least}}),
              HasSubstr("expected a sum of bounded dimensions"));
  EXPECT_THAT(refused(b, shapes(2, 3), {{"n", 5}, {"m", 6}, {"total", 11}}),
              HasSubstr("named 'm + n <= 11' and 'total <= 11'"));
}

TEST_F(NamedOnnx, ConvolutionsAndRecurrencesTakeANamedBatch) {
  OnnxBuilder conv;
  conv.input("x", {"n", "2", "6", "6"}).floats("w", {4, 2, 3, 3}, wave(72, 0.5)).longs("flat", {2}, {0, -1});
  conv.node("Conv", {"x", "w"}, {"c"}, {OnnxBuilder::list("pads", {1, 1, 1, 1})}).node("Relu", {"c"}, {"r"});
  conv.node("MaxPool", {"r"}, {"p"},
            {OnnxBuilder::list("kernel_shape", {2, 2}), OnnxBuilder::list("strides", {2, 2})});
  conv.node("Reshape", {"p", "flat"}, {"y"}).output("y");
  compare(conv, {{"n", 9}}, {{{"x", {4, 2, 6, 6}}}, {{"x", {1, 2, 6, 6}}}, {{"x", {9, 2, 6, 6}}}});
  OnnxBuilder lstm;
  lstm.input("x", {"t", "n", "3"})
      .floats("w", {2, 16, 3}, wave(96, 0.5))
      .floats("r", {2, 16, 4}, wave(128, 0.8));
  lstm.node("LSTM", {"x", "w", "r"}, {"y", "h", "c"},
            {OnnxBuilder::number("hidden_size", 4), OnnxBuilder::text("direction", "bidirectional")});
  lstm.output("y").output("h").output("c");
  compare(lstm, {{"n", 5}, {"t", 7}}, {{{"x", {4, 2, 3}}}, {{"x", {7, 5, 3}}}, {{"x", {2, 1, 3}}}});
}

// A small picture network: each picture of up to 13 x 9 places is a run.
TEST_F(NamedOnnx, ConvolutionsAndPoolsTakePicturesOfAnySize) {
  OnnxBuilder b;
  b.input("x", {"1", "2", "height", "width"});
  b.floats("w", {4, 2, 3, 3}, wave(72, 0.5)).floats("deep", {4, 1, 3, 3}, wave(36, 0.7));
  b.floats("up", {4, 2, 2, 2}, wave(32, 0.3));
  const auto pads = OnnxBuilder::list("pads", {1, 1, 1, 1}), twos = OnnxBuilder::list("strides", {2, 2});
  const auto threes = OnnxBuilder::list("kernel_shape", {3, 3});
  b.node("Conv", {"x", "w"}, {"c"}, {pads, twos});
  b.node("Conv", {"c", "deep"}, {"d"}, {pads, OnnxBuilder::number("group", 4)});
  b.node("Add", {"c", "d"}, {"e"});
  b.node("MaxPool", {"e"}, {"p"}, {threes, twos, pads, OnnxBuilder::number("ceil_mode", 1)});
  b.node("MaxPool", {"x"}, {"largest", "places"}, {threes, twos, pads});
  b.node("AveragePool", {"p"}, {"a"}, {threes, pads});
  b.node("ConvTranspose", {"e", "up"}, {"t"}, {twos});
  b.node("LpPool", {"p"}, {"l"}, {threes, pads});
  b.node("GlobalAveragePool", {"a"}, {"g"});
  for (const char* name : {"e", "a", "t", "l", "g", "largest"}) b.output(name);
  b.output("places", {}, test::kInt64);
  const auto size = [](std::int64_t height, std::int64_t width) {
    return std::map<std::string, Shape>{{"x", {1, 2, height, width}}};
  };
  compare(b, {{"height", 13}, {"width", 9}}, {size(6, 7), size(13, 9), size(1, 1), size(8, 2), size(9, 9)});
  // Halves of halves that are doubled again fit beside the first halves if the places are multiples of four.
  OnnxBuilder net;
  net.input("x", {"1", "2", "height"}).floats("w", {2, 2, 3}, wave(12, 0.5)).floats("scales", {3}, {1, 1, 2});
  const std::vector<OnnxBuilder::Attribute> halves{OnnxBuilder::list("pads", {1, 1}),
                                                   OnnxBuilder::list("strides", {2})};
  net.node("Conv", {"x", "w"}, {"half"}, halves).node("Conv", {"half", "w"}, {"quarter"}, halves);
  net.node("Resize", {"quarter", "", "scales"}, {"up"}, {OnnxBuilder::text("mode", "nearest")});
  net.node("Add", {"half", "up"}, {"y"}).output("y");
  const auto length = [](std::int64_t count) { return std::map<std::string, Shape>{{"x", {1, 2, count}}}; };
  compare(net, {found(parse_bound("height=16/4"))}, {length(8), length(16), length(4)});
  EXPECT_THAT(refused(net, length(8), {{"height", 16}}), HasSubstr("expected one name"));
  // Shape arithmetic on quotients: half of the height, rounded up.
  OnnxBuilder half;
  half.input("x", {"1", "2", "height"}).floats("w", {3, 2, 3}, wave(18, 0.5)).longs("one", {}, {1});
  half.longs("two", {}, {2}).longs("at", {}, {2}).longs("axis", {1}, {0}).longs("minus", {1}, {-1});
  half.node("Conv", {"x", "w"}, {"c"},
            {OnnxBuilder::list("pads", {1, 1}), OnnxBuilder::list("strides", {2})});
  half.node("Shape", {"x"}, {"shape"}).node("Gather", {"shape", "at"}, {"height"});
  half.node("Add", {"height", "one"}, {"more"}).node("Div", {"more", "two"}, {"half"});
  half.node("Unsqueeze", {"half", "axis"}, {"last"});
  half.node("Concat", {"minus", "last"}, {"target"}, {OnnxBuilder::number("axis", 0)});
  half.node("Reshape", {"c", "target"}, {"y"}).output("y");
  compare(half, {{"height", 9}}, {length(4), length(9), length(1), length(8)});
}

TEST_F(NamedOnnx, NamesThatDoNotFitAreRefused) {
  const auto net = [](const std::string& op, const std::vector<OnnxBuilder::Attribute>& attributes,
                      const std::vector<std::string>& more = {}) {
    OnnxBuilder b;
    b.longs("two", {2}, {2, -1})
        .longs("zero", {1}, {0})
        .longs("five", {1}, {5})
        .floats("w", {1, 4, 3}, wave(12, 1));
    std::vector<std::string> inputs{"x"};
    inputs.insert(inputs.end(), more.begin(), more.end());
    return b.input("x", {"n", "4", "length"}).node(op, inputs, {"y"}, attributes).output("y");
  };
  const std::map<std::string, Shape> shapes{{"x", {2, 4, 6}}};
  const auto fails = [&](const OnnxBuilder& builder, const std::vector<DimensionBound>& bounds,
                         const std::string& part) {
    EXPECT_THAT(refused(builder, shapes, bounds), HasSubstr(part));
  };
  const OnnxBuilder relu = net("Relu", {});
  fails(relu, {{"m", 4}}, "extent: found 'm', expected a free dimension: 'length', 'n'");
  fails(relu, {{"n", 0}}, "extent 'n': found 0, expected a bound of 1 to 16777216");
  fails(relu, {{"n<=5 + 2", 4}}, "in its name, expected neither");
  fails(relu, {{"n from 0", 4}}, "in its name, expected neither");
  fails(relu, {{"n by 2", 4}}, "in its name, expected neither");
  fails(relu, {found(parse_bound("length=20/8"))},
        "found steps of 8 up to 20, expected a bound that is a multiple");
  fails(relu, {{"n", 4}, {"n", 5}}, "extent 'n': found it again, expected each once");
  fails(relu, {{"length", 5}}, "input 'x': axis 2: found 6, expected at most 5 for 'length'");
  fails(net("Reshape", {}, {"two"}), {{"n", 4}},
        "found x [n <= 4, 4, 6] and target [2, 48], expected a target that keeps");
  fails(net("Slice", {}, {"zero", "five"}), {{"n", 9}},
        "axis 0: found n from 0 to 5, expected ends that lie inside");
  fails(net("Conv", {OnnxBuilder::text("auto_pad", "SAME_UPPER"), OnnxBuilder::list("strides", {2})}, {"w"}),
        {{"length", 9}}, "axis 2: found auto_pad for input [2, 4, length <= 9], expected pads that fit");
  fails(net("MaxPool", {OnnxBuilder::list("kernel_shape", {2}), OnnxBuilder::list("strides", {3}),
                        OnnxBuilder::number("ceil_mode", 1)}),
        {{"length", 9}}, "axis 2: found ceil_mode for input [2, 4, length <= 9], expected pads that fit");
  fails(net("ReverseSequence", {}, {"two"}), {{"n", 9}},
        "input 0: found float32 [n <= 9, 4, 6], expected fixed extents");
}

TEST_F(NamedOnnx, AnExtentAboveItsBoundIsAnErrorAndLosesNothing) {
  OnnxBuilder builder;
  builder.input("x", {"n", "2"}).node("Neg", {"x"}, {"y"}).output("y");
  Program program = compile(import(builder, {{"x", {1, 2}}}, {{"n", 3}}));
  const auto above = session_.run(program, std::vector<HostTensor>{wave_tensor({4, 2}, 1)});
  ASSERT_FALSE(above.ok());
  EXPECT_THAT(above.error().message, HasSubstr("expected axis 0 to have 1 .. 3 places"));
  EXPECT_EQ(run(program, {wave_tensor({2, 2}, 1)})[0].shape, Shape({2, 2}));
}

// Merged axes are written part by part: places that a run does not use lie between them.
TEST_F(NamedOnnx, MergedAxesAreReadWithoutGaps) {
  OnnxBuilder builder;
  builder.input("x", {"2", "n", "m"}).node("Flatten", {"x"}, {"y"}, {OnnxBuilder::number("axis", 2)});
  builder.longs("all", {1}, {-1}).node("Reshape", {"x", "all"}, {"z"}).output("y").output("z");
  compare(builder, {{"n", 4}, {"m", 5}}, {{{"x", {2, 3, 2}}}, {{"x", {2, 4, 5}}}, {{"x", {2, 1, 4}}}});
}

// The third element of a run is not the third place of the bounds.
TEST_F(NamedOnnx, MergedAxesHaveNoIndices) {
  OnnxBuilder builder;
  builder.input("x", {"n", "m"}).longs("all", {1}, {-1}).longs("at", {2}, {2, -1});
  builder.node("Reshape", {"x", "all"}, {"flat"}).node("Gather", {"flat", "at"}, {"y"}).output("y");
  EXPECT_THAT(refused(builder, {{"x", {2, 3}}}, {{"n", 4}, {"m", 5}}),
              HasSubstr("axis 0: found [n <= 4 * m <= 5], expected at most one named extent"));
  compare(builder, {{"n", 4}}, {{{"x", {2, 3}}}, {{"x", {4, 3}}}, {{"x", {1, 3}}}});
}

}  // namespace
}  // namespace imprint
