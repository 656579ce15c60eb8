// The ONNX writer: models that it writes are read back as they were.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compute/model/onnx/format/write.h"
#include "compute/model/onnx/import.h"

namespace imprint::onnx {
namespace {

using ::testing::ElementsAre;

// y = x * [2, 3] as a column, with every kind of attribute that is written.
Model column() {
  GraphWriter writer;
  const float factors[] = {2, 3};
  const std::string x = writer.input("x", {{.symbol = "batch"}, {2}});
  const std::string product = writer.node("Mul", {x, writer.floats("factors", {2}, factors)});
  const std::string column = writer.reshape(product, {-1, 1});
  writer.output("y", column, ElementType::float32, {{.symbol = "rows"}, {1}});
  Model model;
  model.ir_version = 8;
  model.producer = "a test";
  model.opsets = {{"", 17}, {"other", 2}};
  model.metadata = {{"key", "value"}, {"empty", ""}};
  model.graph = writer.graph();
  model.graph.name = "column";
  Node& node = model.graph.nodes[0];
  node.attributes = {GraphWriter::attribute("one", std::int64_t{-5}),
                     GraphWriter::attribute("some", std::vector<std::int64_t>{1, -2, 3})};
  Attribute& words = node.attributes.emplace_back();
  words.name = "words", words.kind = AttributeKind::strings, words.strings = {"a", ""};
  Attribute& number = node.attributes.emplace_back();
  number.name = "number", number.kind = AttributeKind::float_value, number.floats = {0.5f};
  return model;
}

// Wherever a large tensor stands in a file, it is read in place at a multiple of four.
TEST(OnnxWriter, LargeTensorsShareTheFile) {
  std::vector<float> values(5000);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i) * 0.25f;
  for (const std::string name : {"a", "ab", "abc", "abcd", "abcde"}) {
    GraphWriter writer;
    writer.floats(name, {5000}, values);
    writer.floats(name + name, {5000}, values);
    writer.output("y", name, ElementType::float32, {{5000}});
    Model model;
    model.ir_version = 8;
    model.opsets = {{"", 17}};
    model.graph = writer.graph();
    const std::vector<std::byte> file = serialize(model);
    const auto copied = parse(file), in_place = parse_in_place(file);
    ASSERT_TRUE(copied.ok() && in_place.ok()) << name;
    for (std::size_t i = 0; i < 2; ++i) {
      const TensorData& tensor = in_place->graph.initializers[i];
      EXPECT_EQ(tensor.name, copied->graph.initializers[i].name);
      EXPECT_EQ(tensor.bytes, copied->graph.initializers[i].bytes);
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(tensor.bytes.data()) % alignof(float), 0u);
    }
    const std::byte* first = in_place->graph.initializers[0].bytes.data();
    const std::byte* second = in_place->graph.initializers[1].bytes.data();
    EXPECT_LT(second - first, static_cast<std::ptrdiff_t>(file.size()));  // of one array
    EXPECT_GT(second - first, 0);
  }
}

TEST(OnnxWriter, IsReadBack) {
  const Model model = column();
  const auto read = parse(serialize(model));
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read->ir_version, 8);
  EXPECT_EQ(read->producer, "a test");
  EXPECT_EQ(read->opsets, model.opsets);
  EXPECT_EQ(read->metadata, model.metadata);
  EXPECT_EQ(read->graph.name, "column");
  ASSERT_EQ(read->graph.inputs.size(), 1u);
  EXPECT_EQ(read->graph.inputs[0].shape_text(), "[batch, 2]");
  ASSERT_EQ(read->graph.outputs.size(), 1u);
  EXPECT_EQ(read->graph.outputs[0].shape_text(), "[rows, 1]");
  ASSERT_EQ(read->graph.nodes.size(), 3u);
  const Node& node = read->graph.nodes[0];
  EXPECT_EQ(node.op_type, "Mul");
  EXPECT_THAT(node.inputs, ElementsAre("x", "factors"));
  EXPECT_THAT(node.outputs, ElementsAre("Mul_0"));
  ASSERT_EQ(node.attributes.size(), 4u);
  EXPECT_THAT(node.attributes[0].ints, ElementsAre(-5));
  EXPECT_THAT(node.attributes[1].ints, ElementsAre(1, -2, 3));
  EXPECT_THAT(node.attributes[2].strings, ElementsAre("a", ""));
  EXPECT_EQ(node.attributes[3].kind, AttributeKind::float_value);
  EXPECT_THAT(node.attributes[3].floats, ElementsAre(0.5f));
  ASSERT_EQ(read->graph.initializers.size(), 2u);
  EXPECT_EQ(read->graph.initializers[0].bytes, model.graph.initializers[0].bytes);
  EXPECT_THAT(read->graph.initializers[1].extents, ElementsAre(2));
  EXPECT_EQ(serialize(*read), serialize(model)) << "equal models give equal bytes";
}

TEST(OnnxReader, SparseInitializersAreDense) {
  OnnxBuilder builder;
  builder.sparse("a", {2, 3}, {1, 2, 3}, {3}, {0, 4, 2}).sparse("b", {2, 3}, {10, 20}, {2, 2}, {1, 0, 0, 2});
  builder.node("Add", {"a", "b"}, {"y"}).output("y");
  EXPECT_THAT(test::run(builder), testing::ElementsAre(1, 0, 23, 10, 2, 0));
  // In a body too.
  OnnxBuilder then, outer;
  then.sparse("c", {2}, {7}, {1}, {1}).node("Add", {"x", "c"}, {"z"}).output("z");
  outer.input("x", {"2"}).raw("yes", {}, test::kBool, std::string(1, '\1'));
  outer.node("If", {"yes"}, {"y"},
             {OnnxBuilder::body("then_branch", then), OnnxBuilder::body("else_branch", then)});
  EXPECT_THAT(test::run(outer.output("y"), {}, {{"x", {1, 2}}}), testing::ElementsAre(1, 9));
}

TEST(OnnxReader, DamagedSparseInitializersAreRefused) {
  const auto refused = [](const test::Extents& extents, const test::Extents& place_extents,
                          const test::Extents& places) {
    const auto model = onnx::parse(OnnxBuilder().sparse("w", extents, {1, 2}, place_extents, places).bytes());
    EXPECT_FALSE(model.ok());
    return model ? std::string() : model.error().message;
  };
  using testing::HasSubstr;
  EXPECT_THAT(refused({2, 3}, {2}, {0, 6}), HasSubstr("tensor 'w': sparse value 1: found a place outside"));
  EXPECT_THAT(refused({2, 3}, {2}, {-1, 0}), HasSubstr("sparse value 0"));
  EXPECT_THAT(refused({2, 3}, {2, 2}, {0, 3, 0, 0}), HasSubstr("sparse value 0"));
  EXPECT_THAT(refused({2, 3}, {1}, {0}), HasSubstr("sparse indices of another form"));
  EXPECT_THAT(refused({2, -3}, {2}, {0, 1}), HasSubstr("expected at least 0"));
  EXPECT_THAT(refused({1 << 20, 1 << 20}, {2}, {0, 1}), HasSubstr("a file of this size may take"));
  EXPECT_THAT(refused({0, 1LL << 40, 1LL << 40}, {2}, {0, 1}), HasSubstr("sparse value 0: found a place"));
}

TEST(OnnxWriter, EqualConstantsAreOne) {
  GraphWriter writer;
  EXPECT_EQ(writer.longs({1, 2}), writer.longs({1, 2}));
  EXPECT_NE(writer.longs({1, 2}), writer.longs({2, 1}));
  EXPECT_EQ(writer.number(0.5f), writer.number(0.5f));
  EXPECT_NE(writer.number(0.5f), writer.number(0.25f));
  EXPECT_EQ(writer.whole(7), writer.whole(7));
  EXPECT_NE(writer.whole(7), writer.whole(-7));
  EXPECT_EQ(writer.concat({"only"}, 1), "only");
  EXPECT_EQ(writer.graph().initializers.size(), 6u);
}

}  // namespace
}  // namespace imprint::onnx
