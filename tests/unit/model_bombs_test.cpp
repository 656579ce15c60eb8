// Small files made to cost a reader much time or memory. Each is refused or read at a bounded cost.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <random>

#include "compute/base/json.h"
#include "compute/model/files/file.h"
#include "compute/model/files/safetensors.h"
#include "compute/model/onnx/import.h"
#include "compute/tensor/loop.h"
#include "tests/unit/model_cost.h"
#include "tests/unit/model_onnx_builder.h"

namespace imprint {
namespace {

using test::Cost;
using test::OnnxBuilder;
using test::taken;
using testing::AllOf;
using testing::HasSubstr;

constexpr std::size_t kMebibyte = 1 << 20;

std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

std::string name(int i) { return "v" + std::to_string(i); }

test::Extents ramp(std::int64_t count) {
  test::Extents values(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) values[static_cast<std::size_t>(i)] = i;
  return values;
}

// A field of `tag` with `content`, in protobuf's wire format.
std::string field(std::uint32_t tag, const std::string& content) {
  std::string out;
  protozero::pbf_writer(out).add_message(tag, content);
  return out;
}

// ---- what crashed ----

TEST(OnnxBombs, AFirstInputThatIsLeftOut) {
  const unsigned char smallest[] = {0x08, 0x07, 0x3a, 0x11, 0x0a, 0x0a, 0x0a, 0x00, 0x12,
                                    0x01, 0x79, 0x22, 0x03, 0x41, 0x62, 0x73, 0x62, 0x03,
                                    0x0a, 0x01, 0x79, 0x42, 0x02, 0x10, 0x0d};
  EXPECT_EQ(taken(std::as_bytes(std::span(smallest)))->code, ErrorCode::corrupt_file);
  for (const char* op :
       {"Abs", "Neg", "Sign", "Ceil", "Floor", "Round", "Sqrt", "Reciprocal", "Not", "ReduceSum",
        "ReduceProd", "ReduceMax", "ReduceMin", "Add", "Where", "Cast", "Tile", "Gather"})
    for (const std::size_t count : {1u, 2u, 3u}) {
      const OnnxBuilder builder = OnnxBuilder().node(op, std::vector<std::string>(count), {"y"}).output("y");
      const auto error = taken(builder.bytes());
      ASSERT_TRUE(error) << op;
      EXPECT_FALSE(error->message.empty());
    }
}

TEST(OnnxBombs, BlockSizesBeyondSixtyFourBits) {
  for (const std::int64_t block : {std::int64_t{1} << 62, std::int64_t{1} << 32, std::int64_t{1} << 31})
    for (const char* op : {"SpaceToDepth", "DepthToSpace"}) {
      const auto error = taken(OnnxBuilder()
                                   .input("x", {"1", "4", "0", "0"})
                                   .node(op, {"x"}, {"y"}, {OnnxBuilder::number("blocksize", block)})
                                   .output("y")
                                   .bytes());
      ASSERT_TRUE(error);
      EXPECT_THAT(error->message, HasSubstr("does not fit blocks of"));
    }
}

// ---- time ----

TEST(OnnxBombs, TilesOfNothing) {
  OnnxBuilder builder;
  builder.longs("w", {0}, {}).longs("r", {1}, {1 << 20});
  std::vector<std::string> names;
  for (int i = 0; i < 400; ++i) builder.node("Tile", {"w", "r"}, {names.emplace_back(name(i))});
  const auto bytes =
      builder.node("Concat", names, {"y"}, {OnnxBuilder::number("axis", 0)}).output("y").bytes();
  const Cost cost;
  taken(bytes);
}

TEST(OnnxBombs, LongConstantsAsShortLists) {
  constexpr std::int64_t kLong = 1 << 17;
  for (const char* op : {"Slice", "Reshape", "Expand", "Pad", "Squeeze", "ReduceSum"}) {
    OnnxBuilder builder;
    builder.input("x", {"4"}).longs("long", {kLong}, ramp(kLong));
    std::vector<std::string> names;
    for (int i = 0; i < 2000; ++i) builder.node(op, {"x", "long", "long"}, {names.emplace_back(name(i))});
    const auto bytes = builder.node("Sum", names, {"y"}).output("y").bytes();
    const Cost cost;
    const auto error = taken(bytes);
    ASSERT_TRUE(error) << op;
    EXPECT_THAT(error->message, HasSubstr("expected at most ")) << op;
  }
}

TEST(OnnxBombs, ManyFoldsOfOneConstant) {
  constexpr std::int64_t kLong = 1 << 17;
  for (const char* op : {"Neg", "Gather", "Add", "Cast", "Transpose", "ReduceSum"}) {
    OnnxBuilder builder;
    builder.longs("long", {kLong}, ramp(kLong));
    std::vector<std::string> names;
    for (int i = 0; i < 400; ++i) {
      std::vector<std::string> inputs{"long"};
      if (op == std::string("Gather") || op == std::string("Add")) inputs.push_back("long");
      builder.node(op, inputs, {names.emplace_back(name(i))},
                   op == std::string("Cast") ? std::vector{OnnxBuilder::number("to", 6)}
                                             : std::vector<OnnxBuilder::Attribute>());
    }
    const auto bytes =
        builder.node("Concat", names, {"y"}, {OnnxBuilder::number("axis", 0)}).output("y").bytes();
    const Cost cost;
    taken(bytes);
  }
}

// The body of a loop: its condition as it is, and `inner` makes "next" of "v".
OnnxBuilder turn(OnnxBuilder inner) {
  return std::move(
      inner.input("i", {}, 7).input("go", {}, 9).input("v", {"n"}).output("go", {}, 9).output("next"));
}

TEST(OnnxBombs, LoopsThatAreUnrolled) {
  // Shapes that grow need one import of the body per turn; four loops inside of each other make 1000^4.
  OnnxBuilder body =
      turn(OnnxBuilder().node("Concat", {"v", "v"}, {"next"}, {OnnxBuilder::number("axis", 0)}));
  for (int depth = 0; depth < 3; ++depth)
    body = turn(OnnxBuilder().node("Loop", {"m", "", "v"}, {"next"}, {OnnxBuilder::body("body", body)}));
  OnnxBuilder builder;
  builder.longs("m", {}, {1000})
      .input("x", {"0"})
      .node("Loop", {"m", "", "x"}, {"y"}, {OnnxBuilder::body("body", body)})
      .output("y");
  const auto bytes = builder.bytes();
  const Cost cost;
  EXPECT_THAT(taken(bytes)->message, HasSubstr("more Loop nodes than one model may have"));
}

TEST(OnnxBombs, LoopsAreFew) {
  // Each is a program of its own, with memory of its own.
  const OnnxBuilder body = turn(OnnxBuilder().node("Neg", {"v"}, {"next"}));
  OnnxBuilder builder;
  builder.longs("m", {}, {3}).input("x", {"1"});
  for (int i = 0; i < 300; ++i)
    builder.node("Loop", {"m", "", i == 0 ? "x" : name(i - 1)}, {name(i)}, {OnnxBuilder::body("body", body)});
  const auto bytes = builder.output(name(299)).bytes();
  const Cost cost;
  EXPECT_THAT(taken(bytes)->message, HasSubstr("'v256': more Loop nodes than one model may have"));
}

TEST(OnnxBombs, OperationsOfOneModel) {
  // An operator that becomes many operations, in a file of few bytes.
  OnnxBuilder builder;
  builder.input("x", {"8", "8"});
  for (int i = 0; i < 8000; ++i) builder.node("Mish", {i == 0 ? "x" : name(i - 1)}, {name(i)});
  const auto bytes = builder.output(name(7999)).bytes();
  const Cost cost;
  EXPECT_THAT(taken(bytes)->message, HasSubstr("more operations before it than the 40768"));
}

TEST(OnnxBombs, ALoopThatNeverEnds) {
  const OnnxBuilder body = turn(OnnxBuilder().node("Identity", {"v"}, {"next"}));
  OnnxBuilder builder;
  builder.input("x", {"1"}).node("Loop", {"", "", "x"}, {"y"}, {OnnxBuilder::body("body", body)}).output("y");
  const auto bytes = builder.bytes();
  const Cost cost;
  EXPECT_THAT(taken(bytes)->message, HasSubstr("more repetitions"));
}

TEST(OnnxBombs, FunctionsThatDouble) {
  OnnxBuilder builder;
  for (int i = 0; i < 30; ++i) {
    const std::string inner = i == 0 ? "Neg" : name(i - 1), domain = i == 0 ? "" : "d";
    builder.function(
        "d", name(i), {"a"}, {"c"},
        OnnxBuilder().node(inner, {"a"}, {"b"}, {}, "", domain).node(inner, {"b"}, {"c"}, {}, "", domain));
  }
  const auto bytes = builder.input("x", {"1"}).node(name(29), {"x"}, {"y"}, {}, "", "d").output("y").bytes();
  const Cost cost;
  EXPECT_THAT(taken(bytes)->message, HasSubstr("more repetitions"));
}

// x through `count` calls of d.f, which has an input a and an output c.
std::vector<std::byte> calls_of(OnnxBuilder builder, int count) {
  builder.input("x", {"1"});
  for (int i = 0; i < count; ++i) builder.node("f", {i == 0 ? "x" : name(i - 1)}, {name(i)}, {}, "", "d");
  return builder.output(name(count - 1)).bytes();
}

TEST(OnnxBombs, AListThatEachCallReads) {
  const auto list = OnnxBuilder::list("value_ints", ramp(20'000));
  OnnxBuilder nodes;
  nodes.node("Constant", {}, {"list"}, {list}).node("Shape", {"list"}, {"count"});
  nodes.node("Cast", {"count"}, {"one"}, {OnnxBuilder::number("to", 1)}).node("Add", {"a", "one"}, {"c"});
  const auto bytes = calls_of(OnnxBuilder().function("d", "f", {"a"}, {"c"}, nodes), 2000);
  const Cost cost;
  const auto error = taken(bytes);
  EXPECT_FALSE(error) << error->message;
}

TEST(OnnxBombs, ALongTextThatManyNodesRead) {
  OnnxBuilder nodes;
  for (int i = 0; i < 3000; ++i)
    nodes.node("StringNormalizer", {i == 0 ? "a" : name(i - 1)}, {i == 2999 ? "c" : name(i)},
               {OnnxBuilder::reference("stopwords", "long", 8)});
  OnnxBuilder builder;
  builder.function("d", "f", {"a"}, {"c"}, nodes)
      .node("Constant", {}, {"w"}, {OnnxBuilder::words("value_strings", {"b"})});
  builder.node("f", {"w"}, {"y"}, {OnnxBuilder::words("long", std::vector<std::string>(50'000, "word"))}, "",
               "d");
  const auto bytes = builder.output("y").bytes();
  const Cost cost;
  const auto error = taken(bytes);
  ASSERT_TRUE(error);
  EXPECT_THAT(error->message, HasSubstr("attribute 'long': longer lists")) << error->message;
}

TEST(OnnxBombs, DefaultsOfAFunctionThatIsCalledOften) {
  std::vector<OnnxBuilder::Attribute> defaults;
  for (int i = 0; i < 20'000; ++i) defaults.push_back(OnnxBuilder::number(name(i), i));
  OnnxBuilder nodes;
  nodes.node("Neg", {"a"}, {"c"});
  const auto bytes = calls_of(OnnxBuilder().function("d", "f", {"a"}, {"c"}, nodes, defaults), 5000);
  const Cost cost;
  EXPECT_FALSE(taken(bytes));
}

TEST(OnnxBombs, LongNamesOfABodyThatIsRepeated) {
  const std::string longest(100'000, 'n');
  OnnxBuilder nodes;
  nodes.node("Neg", {"a"}, {longest}).node("Neg", {longest}, {"c"});
  const auto bytes = calls_of(OnnxBuilder().function("d", "f", {"a"}, {"c"}, nodes), 5000);
  const Cost cost;
  const auto error = taken(bytes);
  ASSERT_TRUE(error);
  EXPECT_THAT(error->message, HasSubstr("more repetitions"));
}

TEST(OnnxBombs, LoopsBehindEachOther) {
  const Cost cost;
  Tensor x = input("x", {1});
  for (int i = 0; i < 4000; ++i) {
    const auto body = [](std::span<const Tensor> carry, std::span<const Tensor>) {
      return ScanStep{{carry[0] + Tensor(1.0f)}, {}};
    };
    const auto scanned = scan(body, std::span<const Tensor>(&x, 1), {}, {.steps = 2});
    ASSERT_TRUE(scanned.ok());
    x = scanned->carry[0];
  }
}

TEST(OnnxBombs, RoundingAndPowersAreCounted) {
  for (const int type : {10, 16, 7}) {  // float16, bfloat16, int64
    OnnxBuilder builder;
    builder.input("x", {"1"}).node("Cast", {"x"}, {"v"}, {OnnxBuilder::number("to", type)});
    builder.longs("n", {}, {type == 7 ? 1023 : 2})
        .node("Cast", {"n"}, {"two"}, {OnnxBuilder::number("to", type)});
    for (int i = 0; i < 4000; ++i) builder.node("Pow", {i == 0 ? "v" : name(i - 1), "two"}, {name(i)});
    const auto bytes = builder.output(name(3999)).bytes();
    const Cost cost;
    const auto error = taken(bytes);
    ASSERT_TRUE(error) << type;
    EXPECT_THAT(error->message, testing::AnyOf(HasSubstr("more Pow nodes than one model may have"),
                                               HasSubstr("more operations before it than the 36770")))
        << type;
  }
}

TEST(OnnxBombs, CropsOfManyPlaces) {
  for (const float scale : {2e9f, 3e6f}) {
    OnnxBuilder builder(13);
    builder.input("x", {"1"}).floats("roi", {2}, {0, 1}).floats("scales", {1}, {scale});
    builder.node("Resize", {"x", "roi", "scales"}, {"y"},
                 {OnnxBuilder::text("coordinate_transformation_mode", "tf_crop_and_resize")});
    const auto bytes = builder.output("y").bytes();
    const Cost cost;
    const auto error = taken(bytes);
    ASSERT_TRUE(error);
    EXPECT_THAT(error->message, HasSubstr("resizing of this size"));
  }
}

TEST(OnnxBombs, OperatorsThatMakeManyOperations) {
  for (const char* op :
       {"LSTM", "Resize", "Einsum", "DeformConv", "GridSample", "Attention", "MatMulInteger"}) {
    OnnxBuilder builder(23);
    builder.input("x", {"1", "1", "1"}).floats("w", {1, 4, 1}, {1, 1, 1, 1}).floats("s", {3}, {1, 1, 1000});
    std::vector<std::string> names;
    for (int i = 0; i < 20'000; ++i) {
      const bool resizes = op == std::string("Resize");
      builder.node(
          op, resizes ? std::vector<std::string>{"x", "", "s"} : std::vector<std::string>{"x", "w", "w", "x"},
          {names.emplace_back(name(i))},
          {OnnxBuilder::text("mode", "linear"), OnnxBuilder::text("equation", "abc,abc,abc,abc->a")});
    }
    const auto bytes = builder.node("Sum", names, {"y"}).output("y").bytes();
    const Cost cost;
    EXPECT_TRUE(taken(bytes)) << op;
  }
}

// ---- memory ----

TEST(OnnxBombs, ManyEmptyMessages) {
  // Initializers, inputs, values and nodes of two bytes each.
  for (const std::uint32_t tag : {5u, 11u, 12u, 13u}) {
    std::string graph;
    for (int i = 0; i < 500'000; ++i) graph += field(tag, {});
    const std::string file = field(7, graph);
    const Cost cost;
    const auto model = onnx::parse(bytes_of(file));
    ASSERT_FALSE(model.ok());
    EXPECT_EQ(model.error().code, ErrorCode::unsupported);
    EXPECT_THAT(model.error().message, HasSubstr("32 bytes of memory per byte"));
  }
  std::string node;
  for (int i = 0; i < 500'000; ++i) node += field(1, {});
  const std::string file = field(7, field(1, node + field(4, "Sum")));
  const Cost cost;
  EXPECT_LE(onnx::parse(bytes_of(file)).ok(), true) << "either way, at this cost";
}

TEST(OnnxBombs, ManyGraphs) {
  std::string file;
  for (int i = 0; i < 2000; ++i) file += field(7, field(1, field(4, "Neg")));
  EXPECT_THAT(taken(bytes_of(file))->message, HasSubstr("a second graph"));
}

TEST(OnnxBombs, OneExternalFileForManyTensors) {
  const auto folder =
      std::filesystem::temp_directory_path() / ("imprint-bombs-" + std::to_string(std::random_device{}()));
  std::filesystem::create_directories(folder);
  const std::vector<std::byte> weights(kMebibyte);
  ASSERT_TRUE(write_file_atomic((folder / "w.bin").string(), weights).ok());
  OnnxBuilder builder;
  for (int i = 0; i < 100; ++i)
    builder.graph_field(5, [&](protozero::pbf_writer& tensor) {
      tensor.add_int64(1, kMebibyte / 4);
      tensor.add_int32(2, 1);
      tensor.add_string(8, name(i));
      // Other spellings of the same path do not help.
      const std::pair<const char*, std::string> location{"location", i % 2 ? "w.bin" : "./w.bin"};
      protozero::pbf_writer entry(tensor, 13);
      entry.add_string(1, location.first);
      entry.add_string(2, location.second);
      entry.commit();
      tensor.add_int32(14, 1);
    });
  const std::string path = (folder / "m.onnx").string();
  ASSERT_TRUE(write_file_atomic(path, builder.node("Neg", {name(0)}, {"y"}).output("y").bytes()).ok());
  {
    const Cost cost;
    const auto model = onnx::load(path);
    ASSERT_FALSE(model.ok());
    EXPECT_THAT(model.error().message, HasSubstr("more than 2 times the bytes of"));
    const auto limited = onnx::load(path, 1000);
    ASSERT_FALSE(limited.ok());
    EXPECT_EQ(limited.error().code, ErrorCode::out_of_host_memory);
    EXPECT_THAT(limited.error().message, AllOf(HasSubstr("'v0'"), HasSubstr("more than 1000 bytes")));
  }
  std::filesystem::remove_all(folder);
}

TEST(OnnxFiles, AFunctionHasExternalTensors) {
  const auto folder = std::filesystem::temp_directory_path() / "imprint_function_test";
  std::filesystem::create_directories(folder);
  const std::vector<std::byte> weights(8);
  ASSERT_TRUE(write_file_atomic((folder / "w.bin").string(), weights).ok());
  const OnnxBuilder::Attribute value{"value", [](protozero::pbf_writer& out) {
                                       {
                                         protozero::pbf_writer tensor(out, 5);
                                         tensor.add_int64(1, 2);
                                         tensor.add_int32(2, 1);
                                         protozero::pbf_writer entry(tensor, 13);
                                         entry.add_string(1, "location");
                                         entry.add_string(2, "w.bin");
                                         entry.commit();
                                         tensor.add_int32(14, 1);
                                       }
                                       out.add_int32(20, 4);
                                     }};
  OnnxBuilder nodes;
  nodes.node("Constant", {}, {"w"}, {value}).node("Add", {"a", "w"}, {"c"});
  const std::string path = (folder / "m.onnx").string();
  ASSERT_TRUE(
      write_file_atomic(path, calls_of(OnnxBuilder().function("d", "f", {"a"}, {"c"}, nodes), 1)).ok());
  const auto model = onnx::load(path);
  ASSERT_TRUE(model.ok()) << model.error().message;
  const auto imported = import_onnx(*model, {});
  EXPECT_TRUE(imported.ok()) << imported.error().message;
  std::filesystem::remove_all(folder);
}

TEST(OnnxBombs, TheHostLimitsConstants) {
  OnnxBuilder builder;
  builder.floats("w", {1000}, std::vector<float>(1000, 1)).node("Neg", {"w"}, {"y"}).output("y");
  const auto model = onnx::parse(builder.bytes());
  ASSERT_TRUE(model.ok());
  EXPECT_TRUE(import_onnx(*model, {}, {.constant_limit_bytes = 100'000}).ok());
  const auto imported = import_onnx(*model, {}, {.constant_limit_bytes = 1000});
  ASSERT_FALSE(imported.ok());
  EXPECT_EQ(imported.error().code, ErrorCode::out_of_host_memory);
  EXPECT_THAT(imported.error().message, AllOf(HasSubstr("'w'"), HasSubstr("more than 1000 bytes")));
}

// ---- sequences, strings and boxes ----

TEST(OnnxBombs, BodiesThatAreMissing) {
  for (const char* op : {"If", "Loop", "Scan", "SequenceMap"})
    for (const std::int64_t opset : {8, 17}) {
      OnnxBuilder builder(opset);
      builder.input("x", {"2"}).node(op, {"x", "x"}, {"y"}, {OnnxBuilder::number("num_scan_inputs", 1)});
      const auto error = taken(builder.output("y").bytes());
      ASSERT_TRUE(error) << op;
      EXPECT_THAT(error->message, HasSubstr(op));
    }
}

TEST(OnnxBombs, SequencesThatGrow) {
  OnnxBuilder builder;
  builder.input("x", {"2"}).node("SequenceConstruct", {"x"}, {name(0)});
  for (int i = 0; i < 20'000; ++i) builder.node("SequenceInsert", {name(i), "x"}, {name(i + 1)});
  const auto bytes =
      builder.node("SequenceLength", {name(20'000)}, {"y"}).output("y", {}, test::kInt64).bytes();
  const Cost cost;
  EXPECT_THAT(taken(bytes)->message, HasSubstr("than one model may have"));
}

TEST(OnnxBombs, PartsOfAWideTensor) {
  OnnxBuilder builder;
  builder.longs("extents", {1}, {1 << 30}).input("x", {"1"}).node("Expand", {"x", "extents"}, {"w"});
  builder.node("SplitToSequence", {"w"}, {"s"}).node("SequenceLength", {"s"}, {"y"});
  const auto bytes = builder.output("y", {}, test::kInt64).bytes();
  const Cost cost;
  EXPECT_THAT(taken(bytes)->message, HasSubstr("than one model may have"));
}

TEST(OnnxBombs, StringsThatDouble) {
  OnnxBuilder builder;
  builder.graph_field(5, [&](protozero::pbf_writer& tensor) {
    tensor.add_int64(1, 1);
    tensor.add_int32(2, 8);
    tensor.add_string(6, "letters");
    tensor.add_string(8, name(0));
  });
  for (int i = 0; i < 60; ++i) builder.node("StringConcat", {name(i), name(i)}, {name(i + 1)});
  const auto bytes =
      builder.node("Cast", {name(60)}, {"y"}, {OnnxBuilder::number("to", 1)}).output("y").bytes();
  const Cost cost;
  EXPECT_THAT(taken(bytes)->message, HasSubstr("strings of this size"));
}

TEST(OnnxBombs, BoxesThatAllOverlapALittle) {
  constexpr std::int64_t kBoxes = 10'000;
  std::vector<float> boxes, scores(kBoxes, 0.5f);
  for (int i = 0; i < kBoxes; ++i)
    for (const int corner : {2 * i, 0, 2 * i + 1, 1}) boxes.push_back(static_cast<float>(corner));
  OnnxBuilder builder;
  builder.floats("boxes", {1, kBoxes, 4}, boxes).floats("scores", {1, 1, kBoxes}, scores);
  builder.longs("most", {}, {kBoxes});
  std::vector<std::string> names;
  for (int i = 0; i < 200; ++i)
    builder.node("NonMaxSuppression", {"boxes", "scores", "most"}, {names.emplace_back(name(i))});
  const auto bytes = builder.node("Concat", names, {"y"}, {OnnxBuilder::number("axis", 0)})
                         .output("y", {}, test::kInt64)
                         .bytes();
  const Cost cost;
  EXPECT_THAT(taken(bytes)->message, HasSubstr("NonMaxSuppression"));
}

TEST(OnnxBombs, RowsOfNothing) {
  for (const char* op : {"Unique", "NonMaxSuppression"}) {
    OnnxBuilder builder;
    builder.floats("boxes", {0, 1 << 30, 4}, {}).floats("scores", {0, 1, 1 << 30}, {});
    builder.floats("rows", {1 << 30, 0}, {});
    if (op == std::string("Unique"))
      builder.node(op, {"rows"}, {"y"}, {OnnxBuilder::number("axis", 0)});
    else
      builder.node(op, {"boxes", "scores"}, {"y"});
    const auto bytes = builder.output("y").bytes();
    const Cost cost;
    EXPECT_TRUE(taken(bytes)) << op;
  }
}

TEST(OnnxBombs, RegionsOfManyBins) {
  OnnxBuilder builder(16);
  builder.input("x", {"1", "1", "65536", "8192"}).longs("batch", {1 << 12}, test::Extents(1 << 12));
  builder.input("regions", {"4096", "4"});
  builder.node("RoiAlign", {"x", "regions", "batch"}, {"y"},
               {OnnxBuilder::number("output_height", 1024), OnnxBuilder::number("output_width", 1024),
                OnnxBuilder::number("sampling_ratio", 64)});
  const auto bytes = builder.output("y").bytes();
  const Cost cost;
  EXPECT_THAT(taken(bytes)->message, HasSubstr("found a tensor of more than"));
}

// ---- long names ----

TEST(OnnxBombs, NamesInMessagesAreShort) {
  const std::string longest(kMebibyte, 'n');
  const auto error = taken(OnnxBuilder().node("Neg", {longest}, {"y"}, {}, longest).output("y").bytes());
  ASSERT_TRUE(error);
  EXPECT_LT(error->message.size(), 1000u);
}

TEST(OnnxBombs, TextsInMessagesAreShort) {
  const std::string longest = "\n\x1b" + std::string(kMebibyte, 'n');
  const std::pair<const char*, const char*> texts[] = {
      {"Gelu", "approximate"}, {"BitShift", "direction"}, {"Resize", "mode"},   {"Pad", "mode"},
      {"RNN", "direction"},    {"GRU", "direction"},      {"Conv", "auto_pad"}, {"ScatterND", "reduction"}};
  for (const auto& [op, attribute] : texts) {
    OnnxBuilder builder(20);
    builder.input("x", {"1", "1", "1"}).longs("at", {1, 1}, {0});
    const std::string second = op == std::string("ScatterND") ? "at" : "x";
    builder.node(op, {"x", second, "x"}, {"y"}, {OnnxBuilder::text(attribute, longest)});
    const auto error = taken(builder.output("y").bytes());
    ASSERT_TRUE(error) << op;
    EXPECT_LT(error->message.size(), 1000u) << op;
    EXPECT_EQ(error->message.find_first_of("\n\x1b"), std::string::npos) << op;
  }
}

// ---- JSON ----

std::vector<std::byte> safetensors_of(const std::string& header) {
  std::vector<std::byte> out(8 + header.size());
  const std::uint64_t length = header.size();
  std::memcpy(out.data(), &length, 8);
  std::memcpy(out.data() + 8, header.data(), header.size());
  return out;
}

TEST(JsonBombs, ManyTensors) {
  std::string header = "{";
  for (int i = 0; i < 40'000; ++i)
    header += (i ? ",\"" : "\"") + name(i) + R"(":{"dtype":"F32","shape":[0],"data_offsets":[0,0]})";
  const auto bytes = safetensors_of(header + "}");
  const Cost cost;
  const auto file = safetensors::parse(bytes);
  ASSERT_TRUE(file.ok()) << file.error().message;
  EXPECT_EQ(file->arrays.size(), 40'000u);
}

TEST(JsonBombs, DenseLists) {
  std::string lists = "[";
  for (int i = 0; i < 300'000; ++i) lists += "{},";
  lists += "{}]";
  const Cost cost;
  EXPECT_THAT(parse_json(lists).error().message, HasSubstr("32 bytes of memory per byte"));
}

TEST(JsonBombs, NestingAndNames) {
  const Cost cost;
  EXPECT_THAT(parse_json(std::string(kMebibyte, '[')).error().message, HasSubstr("nested deeper than 8"));
  EXPECT_THAT(parse_json(R"({"a":1,"b":{"a":1},"a":2})").error().message, HasSubstr("found 'a' twice"));
  EXPECT_THAT(parse_json("{\"a\":1").error().message, HasSubstr("no JSON at byte"));
  EXPECT_THAT(parse_json("\"" + std::string(kMebibyte, 'x')).error().message.size(), testing::Lt(200u));
  EXPECT_TRUE(parse_json(R"({"a":[[[[[[[1]]]]]]]})").ok());
  std::string many = "{\"n\":0";
  for (int i = 0; i < 80'000; ++i) many += ",\"" + name(i) + "\":0";
  EXPECT_EQ(parse_json(many + "}")->size(), 80'001u);
}

}  // namespace
}  // namespace imprint
