// An import counts the values that it makes without a node of the file: of bodies, texts, narrow weights.

#include <gmock/gmock.h>

#include <filesystem>
#include <random>

#include "compute/model/files/file.h"
#include "compute/model/quantise.h"
#include "tests/unit/model_cost.h"
#include "tests/unit/model_onnx_builder.h"

namespace imprint {
namespace {

using test::Cost;
using test::OnnxBuilder;
using test::taken;
using testing::HasSubstr;

TEST(CountedImports, OutputsOfABodyWithoutNodes) {
  OnnxBuilder body;
  body.input("i", {}, 7).input("go", {}, 9).output("go", {}, 9);
  for (int i = 0; i < 1000; ++i) body.output("i", {}, 7);
  OnnxBuilder builder;
  builder.node("Loop", {"", ""}, {"y"}, {OnnxBuilder::body("body", body)}).output("y");
  const auto bytes = builder.bytes();
  const Cost cost;
  const auto error = taken(bytes);
  ASSERT_TRUE(error);
  EXPECT_THAT(error->message, HasSubstr("Loop -> 'y': more repetitions of its body"));
}

TEST(CountedImports, TurnsOfALoop) {
  OnnxBuilder body;
  body.input("i", {}, 7).input("go", {}, 9).input("v", {"n"});
  body.node("Neg", {"v"}, {"next"}).output("go", {}, 9).output("next");
  for (const std::int64_t turns : {1'000, 1'000'000}) {
    OnnxBuilder builder;
    builder.longs("m", {}, {turns}).input("x", {"2"});
    builder.node("Loop", {"m", "", "x"}, {"y"}, {OnnxBuilder::body("body", body)}).output("y");
    const auto bytes = builder.bytes();
    const Cost cost;
    const auto error = taken(bytes);
    ASSERT_EQ(error.has_value(), turns > 1'000);
    if (error) EXPECT_THAT(error->message, HasSubstr("a loop of 1000000 turns, expected at most 524288"));
  }
}

TEST(CountedImports, OutputsOfAFunction) {
  for (const std::size_t count : {10'000u, 20'000u}) {
    OnnxBuilder builder;
    builder.function("d", "f", {"a"}, std::vector<std::string>(count, "a"), OnnxBuilder()).input("x", {"1"});
    for (int i = 0; i < 2000; ++i) builder.node("f", {"x"}, {"y" + std::to_string(i)}, {}, "", "d");
    const auto bytes = builder.node("Neg", {"y0"}, {"z"}).output("y1999").output("z").bytes();
    const Cost cost;
    const auto error = taken(bytes);
    ASSERT_TRUE(error || count < 16'384);
    if (count > 16'384)
      EXPECT_THAT(error->message, HasSubstr("found a body of 20000 outputs, expected at most 16384"));
  }
}

TEST(CountedImports, ResultsOfTurns) {
  // Each part of a sequence gives 300 results.
  OnnxBuilder body;
  body.input("a", {"n"});
  std::vector<std::string> names;
  for (int i = 0; i < 300; ++i) {
    body.output("a");
    names.push_back("o" + std::to_string(i));
  }
  OnnxBuilder builder;
  builder.input("x", {"4000"}).node("SplitToSequence", {"x"}, {"s"});
  builder.node("SequenceMap", {"s"}, names, {OnnxBuilder::body("body", body)});
  builder.node("ConcatFromSequence", {"o0"}, {"y"}, {OnnxBuilder::number("axis", 0)}).output("y");
  const auto bytes = builder.bytes();
  const Cost cost;
  const auto error = taken(bytes);
  ASSERT_TRUE(error);
  EXPECT_THAT(error->message, HasSubstr("more repetitions of its body"));
}

TEST(CountedImports, TextsOfNumbers) {
  OnnxBuilder builder;
  builder.longs("from", {}, {1'000'000'000'000'000'000}).longs("to", {}, {1'000'000'000'000'950'000});
  builder.longs("step", {}, {1}).node("Range", {"from", "to", "step"}, {"r"});
  builder.node("Cast", {"r"}, {"t"}, {OnnxBuilder::number("to", 8)});
  builder.node("Cast", {"t"}, {"y"}, {OnnxBuilder::number("to", 1)}).output("y");
  const auto bytes = builder.bytes();
  const Cost cost;
  EXPECT_TRUE(taken(bytes));
}

TEST(CountedImports, FoldsOfNarrowWeights) {
  // Four bits become eight bytes.
  constexpr std::int64_t kElements = 700'000;
  OnnxBuilder builder(21);
  builder.raw("w", {kElements}, 22, std::string(kElements / 2, '\x21'));
  for (int i = 0; i < 10; ++i) {
    const std::string out = "y" + std::to_string(i);
    builder.node("Neg", {"w"}, {out}).output(out);
  }
  const auto bytes = builder.bytes();
  const Cost cost;
  (void)taken(bytes);
}

TEST(CountedImports, KnownRegions) {
  OnnxBuilder builder;
  builder.input("x", {"1", "1", "2", "2"}).longs("extents", {2}, {250'000, 4}).longs("count", {1}, {250'000});
  builder.node("ConstantOfShape", {"extents"}, {"r"}).node("ConstantOfShape", {"count"}, {"zeros"});
  builder.node("Cast", {"zeros"}, {"b"}, {OnnxBuilder::number("to", 7)});
  for (int i = 0; i < 500; ++i) {
    const std::string out = "y" + std::to_string(i);
    builder.node("RoiAlign", {"x", "r", "b"}, {out}).output(out);
  }
  const auto bytes = builder.bytes();
  const std::clock_t begin = std::clock();
  const Cost cost;
  const auto error = taken(bytes);
  EXPECT_LT(std::clock() - begin, 2 * CLOCKS_PER_SEC);
  ASSERT_TRUE(error);
  EXPECT_THAT(error->message, HasSubstr("as many known regions in one model"));
}

// As quantise.h states.
void expect_bounded_quantise(const OnnxBuilder& builder) {
  const auto bytes = builder.bytes();
  const auto model = onnx::parse(bytes);
  ASSERT_TRUE(model.ok()) << model.error().message;
  std::size_t tensors = 0;
  for (const onnx::TensorData& tensor : model->graph.initializers) tensors += tensor.bytes.size();
  const test::HeapWatch heap;
  const auto made = quantise_onnx(bytes, *model);
  ASSERT_TRUE(made.ok()) << made.error().message;
  EXPECT_LE(heap.peak_bytes(), 32 * bytes.size() + 4 * tensors + (64 << 10));
}

TEST(CountedImports, QuantisingKeepsItsBounds) {
  OnnxBuilder weights, names;
  weights.input("x", {"1", "512"}).floats("w", {512, 1024}, std::vector<float>(512 * 1024, 0.5f));
  weights.node("MatMul", {"x", "w"}, {"y"}).output("y");
  expect_bounded_quantise(weights);
  names.input("x", {"1"});
  for (int i = 0; i < 5000; ++i)
    names.node("Neg", {i == 0 ? "x" : "v" + std::to_string(i - 1)}, {"v" + std::to_string(i)});
  expect_bounded_quantise(names.output("v4999"));
  OnnxBuilder many;
  many.input("x", {"1", "32"});
  for (int i = 0; i < 200; ++i) {
    const std::string number = std::to_string(i);
    many.floats("w" + number, {32, 32}, std::vector<float>(1024, 0.25f));
    many.node("MatMul", {i == 0 ? "x" : "m" + std::to_string(i - 1), "w" + number}, {"m" + number});
  }
  expect_bounded_quantise(many.output("m199"));
}

TEST(CountedImports, ExternalNumbersOfFourBits) {
  const auto folder =
      std::filesystem::temp_directory_path() / ("imprint-counted-" + std::to_string(std::random_device{}()));
  std::filesystem::create_directories(folder);
  ASSERT_TRUE(write_file_atomic((folder / "w.bin").string(), std::vector<std::byte>(1000)).ok());
  OnnxBuilder builder(21);
  builder.graph_field(5, [&](protozero::pbf_writer& tensor) {
    tensor.add_int64(1, 2000);
    tensor.add_int32(2, 21);
    tensor.add_string(8, "w");
    protozero::pbf_writer entry(tensor, 13);
    entry.add_string(1, "location");
    entry.add_string(2, "w.bin");
    entry.commit();
    tensor.add_int32(14, 1);
  });
  const std::string path = (folder / "m.onnx").string();
  ASSERT_TRUE(write_file_atomic(path, builder.node("Neg", {"w"}, {"y"}).output("y").bytes()).ok());
  EXPECT_TRUE(onnx::load(path, 2000).ok());
  const auto limited = onnx::load(path, 1999);  // a byte for each, though the file has half
  ASSERT_FALSE(limited.ok());
  EXPECT_EQ(limited.error().code, ErrorCode::out_of_host_memory);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace imprint
