// Every truncation and every flipped byte of a real file: an error or an answer, never a crash, a hang or
// unbounded memory.

#include <gtest/gtest.h>

#include <chrono>

#include "compute/model/onnx/import.h"
#include "compute/model/policy.h"
#include "tests/unit/model_data.h"
#include "tests/unit/model_onnx_builder.h"

namespace imprint {
namespace {

struct Outcome {
  std::size_t refused = 0, imported = 0;
};

// Parses and imports. A result must be consistent.
void take(std::span<const std::byte> bytes, Outcome& outcome) {
  const auto model = onnx::parse(bytes);
  if (!model) {
    EXPECT_FALSE(model.error().message.empty());
    ++outcome.refused;
    return;
  }
  operators_of(*model);
  const auto shapes = shapes_with_free_dimensions(*model, 3);
  const auto imported = import_onnx(*model, shapes ? *shapes : std::map<std::string, Shape>());
  const auto policy = import_policy(*model, 2);
  EXPECT_TRUE(policy.ok() || !policy.error().message.empty());
  if (!imported) {
    EXPECT_FALSE(imported.error().message.empty());
    ++outcome.refused;
    return;
  }
  ++outcome.imported;
  for (const ImportedValue& output : imported->outputs) EXPECT_TRUE(output.tensor.ok());
}

void damage(const std::vector<std::byte>& bytes) {
  Outcome truncated, flipped;
  for (std::size_t length = 0; length < bytes.size(); ++length)
    take(std::span(bytes).first(length), truncated);
  // The end of a file may be optional fields. Any earlier truncation is an error.
  EXPECT_GT(truncated.refused, bytes.size() * 9 / 10);
  std::vector<std::byte> damaged = bytes;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    for (const int pattern : {0x01, 0x08, 0x40, 0x80, 0xFF}) {
      damaged[i] = bytes[i] ^ std::byte(pattern);
      take(damaged, flipped);
    }
    damaged[i] = std::byte{0};
    take(damaged, flipped);
    damaged[i] = bytes[i];
  }
  EXPECT_GT(flipped.refused, 0u);
  EXPECT_GT(flipped.imported, 0u) << "a flip inside a weight is not detected";
}

TEST(OnnxDamage, SineNetwork) { damage(test::must_read(test::model_path("small/sine.onnx"))); }

// Operators with shape arithmetic, attributes of each kind and several inputs, so that flips reach more
// handlers than the network above has.
TEST(OnnxDamage, ManyOperators) {
  using test::OnnxBuilder;
  OnnxBuilder builder(11);
  builder.input("x", {"batch", "2", "4"})
      .longs("zero", {1}, {0})
      .longs("one", {1}, {1})
      .longs("far", {1}, {100})
      .longs("tail", {1}, {-1})
      .longs("pads", {6}, {0, 0, 1, 0, 0, 2})
      .longs("repeats", {2}, {1, 3})
      .floats("kernel", {3, 2, 3}, std::vector<float>(18, 0.5f))
      .floats("matrix", {15, 2}, std::vector<float>(30, 0.25f))
      .node("Shape", {"x"}, {"shape"})
      .node("Slice", {"shape", "zero", "one"}, {"n"})
      .node("Concat", {"n", "tail"}, {"target"}, {OnnxBuilder::number("axis", 0)})
      .node("Pad", {"x", "pads"}, {"padded"}, {OnnxBuilder::text("mode", "reflect")})
      .node("Conv", {"padded", "kernel"}, {"seen"},
            {OnnxBuilder::list("strides", {1}), OnnxBuilder::list("pads", {0, 0})})
      .node("LeakyRelu", {"seen"}, {"active"}, {OnnxBuilder::real("alpha", 0.1f)})
      .node("Reshape", {"active", "target"}, {"flat"})
      .node("Gemm", {"flat", "matrix"}, {"mixed"})
      .node("Tile", {"mixed", "repeats"}, {"tiled"})
      .node("Split", {"tiled"}, {"left", "right"},
            {OnnxBuilder::number("axis", 1), OnnxBuilder::list("split", {2, 4})})
      .node("Slice", {"right", "zero", "far", "one", "one"}, {"part"})
      .node("ReduceMean", {"part"}, {"mean"}, {OnnxBuilder::list("axes", {1})})
      .node("Softmax", {"left"}, {"odds"})
      .node("Mul", {"odds", "mean"}, {"y"})
      .output("y");
  const auto bytes = builder.bytes();
  Outcome whole;
  take(bytes, whole);
  ASSERT_EQ(whole.imported, 1u);
  damage(bytes);
}

}  // namespace
}  // namespace imprint
