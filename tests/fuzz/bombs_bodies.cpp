// Models whose bodies and functions have no nodes and many outputs, values that are cast often, regions of
// images, weights of 4 bits, parts of long constants, and what only `imprint convert` and `quantise` make.

#include <cstdint>

#include "tests/fuzz/bombs.h"
#include "tests/unit/model_onnx_builder.h"

namespace imprint::fuzz {
namespace {

using test::Extents;
using test::OnnxBuilder;
using Names = std::vector<std::string>;
using Attributes = std::vector<OnnxBuilder::Attribute>;

constexpr int kInt4 = 22;

Names numbered_names(const char* prefix, int count) {
  Names names;
  for (int i = 0; i < count; ++i) names.push_back(prefix + std::to_string(i));
  return names;
}

OnnxBuilder of_x(std::int64_t opset = 21) { return std::move(OnnxBuilder(opset).input("x", {"N", "1"})); }
FileBytes given_as_y(OnnxBuilder& builder, const std::string& result) {
  return builder.node("Identity", {result}, {"y"}).output("y").bytes();
}
// x + the sum of all of `result`.
FileBytes added_to_x(OnnxBuilder& builder, const std::string& result) {
  builder.node("ReduceSum", {result}, {"total"}, {OnnxBuilder::number("keepdims", 0)});
  return builder.node("Add", {"x", "total"}, {"y"}).output("y").bytes();
}

// A body that only gives values from outside, one of them very often.
OnnxBuilder without_nodes(const std::string& value, int outputs) {
  OnnxBuilder body;
  for (int i = 0; i < outputs; ++i) body.output(value);
  return body;
}

FileBytes branches_without_nodes(int outputs, int count) {
  OnnxBuilder builder = of_x();
  builder.node("ReduceMax", {"x"}, {"most"}, {OnnxBuilder::number("keepdims", 0)});
  builder.node("Cast", {"most"}, {"c"}, {OnnxBuilder::number("to", 9)});
  for (int i = 0; i < count; ++i)
    builder.node("If", {"c"}, numbered_names(("v" + std::to_string(i) + "_").c_str(), outputs),
                 {OnnxBuilder::body("then_branch", without_nodes("x", outputs)),
                  OnnxBuilder::body("else_branch", without_nodes("most", outputs))});
  return given_as_y(builder, "v0_0");
}

FileBytes loops_without_nodes(int outputs, int count, std::int64_t turns) {
  OnnxBuilder body;
  body.input("i", {}, test::kInt64).input("go", {}, test::kBool).input("v", {"N", "1"});
  body.output("go", {}, test::kBool).output("v");
  for (int i = 0; i < outputs; ++i) body.output("x");
  OnnxBuilder builder = of_x();
  builder.longs("m", {}, {turns});
  for (int i = 0; i < count; ++i)
    builder.node("Loop", {"m", "", "x"}, numbered_names(("v" + std::to_string(i) + "_").c_str(), outputs + 1),
                 {OnnxBuilder::body("body", body)});
  return given_as_y(builder, "v0_0");
}

FileBytes scans_without_nodes(int outputs) {
  OnnxBuilder body;
  body.input("row", {"1"});
  for (int i = 0; i < outputs; ++i) body.output("row");
  OnnxBuilder builder = of_x();
  builder.node("Scan", {"x"}, numbered_names("v", outputs),
               {OnnxBuilder::body("body", body), OnnxBuilder::number("num_scan_inputs", 1)});
  return given_as_y(builder, "v0");
}

// Calls of a function that has no nodes and gives its input often.
FileBytes functions_without_nodes(int outputs, int count) {
  OnnxBuilder builder = of_x();
  builder.function("d", "f", {"a"}, Names(static_cast<std::size_t>(outputs), "a"), OnnxBuilder());
  for (int i = 0; i < count; ++i)
    builder.node("f", {"x"}, numbered_names(("v" + std::to_string(i) + "_").c_str(), outputs), {}, "", "d");
  return given_as_y(builder, "v0_0");
}

void add_empty_bodies(std::vector<Bomb>& bombs) {
  const auto add = [&](const char* title, std::function<FileBytes()> make) {
    bombs.push_back({std::string("without nodes: ") + title, BombKind::model, std::move(make)});
  };
  add("an If of many outputs", [] { return branches_without_nodes(14'000, 1); });
  add("many If", [] { return branches_without_nodes(2, 8'000); });
  add("a Loop of many outputs", [] { return loops_without_nodes(16'000, 1, 1 << 20); });
  add("many Loop", [] { return loops_without_nodes(1, 6'000, 1 << 20); });
  add("a Scan of many outputs", [] { return scans_without_nodes(16'000); });
  add("a call of many outputs", [] { return functions_without_nodes(16'000, 1); });
  add("many calls", [] { return functions_without_nodes(60, 1'000); });
  add("outputs of a function", [] { return functions_without_nodes(60'000, 1); });
}

// Nodes over numbers of this shape in a chain.
FileBytes chained(const Extents& extents, int count, const std::function<void(OnnxBuilder&, int)>& add_node) {
  OnnxBuilder builder = of_x();
  builder.longs("extents", {static_cast<std::int64_t>(extents.size())}, extents);
  builder.longs("one", {1}, {1}).node("ReduceMax", {"x"}, {"most"}, {OnnxBuilder::number("keepdims", 0)});
  builder.node("Expand", {"most", "extents"}, {"v0"});
  for (int i = 0; i < count; ++i) add_node(builder, i);
  return added_to_x(builder, "v" + std::to_string(count));
}

std::string value(int i) { return "v" + std::to_string(i); }

void add_wide_work(std::vector<Bomb>& bombs) {
  const auto add = [&](const std::string& title, std::function<FileBytes()> make) {
    bombs.push_back({title, BombKind::model, std::move(make)});
  };
  for (const std::int64_t side : {700, 7'800, 14'000, 31'000}) {
    const std::string size = std::to_string(side) + "^2 numbers";
    add("casts of " + size, [side] {
      return chained({side, side}, 200, [](OnnxBuilder& builder, int i) {
        builder.node("Cast", {value(i)}, {value(i + 1)}, {OnnxBuilder::number("to", i % 2 ? 1 : 6)});
      });
    });
    add("a triangle of " + size, [side] {
      return chained({side, side}, 1,
                     [](OnnxBuilder& builder, int i) { builder.node("Trilu", {value(i)}, {value(i + 1)}); });
    });
    add("remainders of " + size, [side] {
      return chained({side, side}, 1, [](OnnxBuilder& builder, int i) {
        builder.floats("huge", {}, {3e38f}).floats("tiny", {}, {1e-38f});
        builder.node("Add", {value(i), "huge"}, {"high"}).node("Mul", {value(i), "tiny"}, {"low"});
        builder.node("Mod", {"high", "low"}, {value(i + 1)}, {OnnxBuilder::number("fmod", 1)});
      });
    });
    for (const char* op : {"Pow", "Erf", "EyeLike", "Gelu"})
      add(std::string(op) + " of " + size, [side, op] {
        return chained({side, side}, 1, [op](OnnxBuilder& builder, int i) {
          const bool is_pair = op == std::string("Pow");
          builder.node(op, is_pair ? Names{value(i), value(i)} : Names{value(i)}, {value(i + 1)});
        });
      });
  }
  for (const std::int64_t side : {1'500, 2'400, 3'000})
    add("an output of " + std::to_string(side) + "^2 numbers", [side] {
      OnnxBuilder builder = of_x();
      builder.longs("extents", {2}, {side, side}).node("Expand", {"x", "extents"}, {"w"});
      return given_as_y(builder, "w");
    });
  for (const std::int64_t length : {1 << 16, 1 << 20, 1 << 22})
    for (const char* op : {"TopK", "CumSum", "ArgMax"})
      add(std::string(op) + " of " + std::to_string(length), [length, op] {
        return chained({length}, 1, [op, length](OnnxBuilder& builder, int i) {
          builder.longs("k", {1}, {op == std::string("TopK") ? length : 0});
          const Names inputs = op == std::string("ArgMax") ? Names{value(i)} : Names{value(i), "k"};
          builder.node(op, inputs, {op == std::string("ArgMax") ? "places" : value(i + 1)});
          if (op == std::string("ArgMax"))
            builder.node("Cast", {"places"}, {value(i + 1)}, {OnnxBuilder::number("to", 1)});
        });
      });
}

// Numbers in no order, which take a sort by comparisons ten times as long as equal ones.
void add_scattered(std::vector<Bomb>& bombs) {
  for (const std::int64_t length : {1 << 16, 1 << 20, 1 << 21, 1 << 22})
    bombs.push_back(
        {"TopK of " + std::to_string(length) + " scattered numbers", BombKind::model, [length] {
           return chained({length}, 1, [length](OnnxBuilder& builder, int i) {
             builder.floats("zero", {}, {0}).floats("step", {}, {1}).longs("k", {1}, {length});
             builder.floats("length", {}, {static_cast<float>(length)});
             builder.node("Range", {"zero", "length", "step"}, {"row"});
             builder.node("Mul", {value(i), "row"}, {"wide"}).node("Sin", {"wide"}, {"scattered"});
             builder.node("TopK", {"scattered", "k"}, {value(i + 1)});
           });
         }});
}

FileBytes regions(std::int64_t count, std::int64_t bins, std::int64_t samples) {
  OnnxBuilder builder = of_x();
  std::string places;
  std::vector<float> boxes;
  for (std::int64_t i = 0; i < count; ++i) {
    boxes.insert(boxes.end(), {0, 0, 60, 60});
    places += std::string(8, '\0');
  }
  builder.longs("extents", {4}, {1, 1, 64, 64}).floats("boxes", {count, 4}, boxes);
  builder.raw("batch", {count}, test::kInt64, places);
  builder.node("ReduceMax", {"x"}, {"most"}, {OnnxBuilder::number("keepdims", 0)});
  builder.node("Expand", {"most", "extents"}, {"image"});
  builder.node("RoiAlign", {"image", "boxes", "batch"}, {"o"},
               {OnnxBuilder::number("output_height", bins), OnnxBuilder::number("output_width", bins),
                OnnxBuilder::number("sampling_ratio", samples)});
  return added_to_x(builder, "o");
}

void add_regions(std::vector<Bomb>& bombs) {
  const auto add = [&](const char* title, std::function<FileBytes()> make) {
    bombs.push_back({std::string("RoiAlign: ") + title, BombKind::model, std::move(make)});
  };
  add("many regions", [] { return regions(30'000, 1, 1); });
  add("many bins", [] { return regions(1, 2'000, 1); });
  add("many samples", [] { return regions(1, 100, 64); });
  add("regions, bins and samples", [] { return regions(1'000, 16, 8); });
}

// `count` nodes that each compute from the weights "w", [rows, 64] of 4 bits.
FileBytes of_four_bits(std::int64_t rows, int count, const char* op, const Names& inputs,
                       const Attributes& attributes = {}) {
  OnnxBuilder builder = of_x();
  builder.raw("w", {rows, 64}, kInt4, std::string(static_cast<std::size_t>(rows * 32), '\x71'));
  builder.floats("scale", {}, {0.5f}).longs("order", {2}, {1, 0}).longs("rows", {1}, {0});
  Names results;
  for (int i = 0; i < count; ++i) {
    builder.node(op, inputs, {"d" + std::to_string(i)}, attributes);
    builder.node("ReduceMax", {"d" + std::to_string(i)}, {results.emplace_back("m" + std::to_string(i))},
                 {OnnxBuilder::number("keepdims", 0)});
  }
  builder.node("Sum", results, {"all"}).node("Cast", {"all"}, {"cast"}, {OnnxBuilder::number("to", 1)});
  return added_to_x(builder, "cast");
}

void add_four_bits(std::vector<Bomb>& bombs) {
  const auto add = [&](const char* title, std::function<FileBytes()> make) {
    bombs.push_back({std::string("4 bits: ") + title, BombKind::model, std::move(make)});
  };
  const Attributes to_float{OnnxBuilder::number("to", 1)}, to_long{OnnxBuilder::number("to", 7)};
  add("one DequantizeLinear", [] { return of_four_bits(30'000, 1, "DequantizeLinear", {"w", "scale"}); });
  add("many DequantizeLinear", [] {
    return of_four_bits(15'000, 3'000, "DequantizeLinear", {"w", "scale"});
  });
  add("one Cast", [=] { return of_four_bits(30'000, 1, "Cast", {"w"}, to_float); });
  add("many Cast", [=] { return of_four_bits(15'000, 3'000, "Cast", {"w"}, to_float); });
  add("many Cast to long numbers", [=] { return of_four_bits(15'000, 3'000, "Cast", {"w"}, to_long); });
  add("many Transpose of numbers", [] { return of_four_bits(15'000, 3'000, "Transpose", {"w"}); });
}

// `count` nodes that each take a part of "long", or move it, by lists that fit it.
FileBytes parts_of_long(const char* op, int count, const Names& inputs, int outputs = 1) {
  constexpr std::int64_t kLong = 1 << 16;
  OnnxBuilder builder = of_x(17);
  Extents values;
  for (std::int64_t i = 0; i < kLong; ++i) values.push_back(i);
  builder.longs("long", {kLong}, values).longs("begin", {1}, {1}).longs("end", {1}, {kLong - 1});
  builder.longs("square", {2}, {256, 256})
      .longs("halves", {2}, {kLong / 2, kLong / 2})
      .longs("two", {1}, {2});
  builder.longs("pads", {2}, {1, 1}).longs("rows", {2}, {2, kLong}).longs("zero", {1}, {0});
  Names results;
  for (int i = 0; i < count; ++i) {
    const std::string made = "v" + std::to_string(i);
    Names names{made};
    for (int k = 1; k < outputs; ++k) names.push_back(made + "_" + std::to_string(k));
    builder.node(op, inputs, names);
    builder.node("ReduceMax", {made}, {results.emplace_back("m" + std::to_string(i))},
                 {OnnxBuilder::number("keepdims", 0)});
  }
  builder.node("Sum", results, {"all"}).node("Cast", {"all"}, {"cast"}, {OnnxBuilder::number("to", 1)});
  return added_to_x(builder, "cast");
}

void add_long_constants(std::vector<Bomb>& bombs) {
  const auto add = [&](const char* op, const Names& inputs, int outputs = 1) {
    bombs.push_back({std::string("parts of a long constant by ") + op, BombKind::model,
                     [=] { return parts_of_long(op, 4'000, inputs, outputs); }});
  };
  add("Slice", {"long", "begin", "end"});
  add("Reshape", {"long", "square"});
  add("Expand", {"long", "rows"});
  add("Pad", {"long", "pads"});
  add("Unsqueeze", {"long", "zero"});
  add("Tile", {"long", "two"});
  add("Split", {"long", "halves"}, 2);
  add("Gather", {"long", "long"});
  add("GatherElements", {"long", "long"});
  add("Add", {"long", "two"});
}

// Windows, which imprint convert writes as lists of indices.
FileBytes windows_of_sound(int count, std::int64_t length, std::int64_t step) {
  OnnxBuilder builder = of_x();
  builder.longs("extents", {3}, {1, 1 << 15, 1}).longs("step", {}, {step}).longs("length", {}, {length});
  builder.longs("far", {1}, {1 << 20}).longs("along", {1}, {1});
  builder.node("ReduceMax", {"x"}, {"most"}, {OnnxBuilder::number("keepdims", 0)});
  builder.node("Expand", {"most", "extents"}, {"sound"});
  for (int i = 0; i < count; ++i) {
    const std::string end = std::to_string(i);
    builder.longs("from" + end, {1}, {i})
        .node("Slice", {"sound", "from" + end, "far", "along"}, {"part" + end});
    builder.node("STFT", {"part" + end, "step", "", "length"}, {"o" + end});
    builder.output("o" + end);
  }
  return given_as_y(builder, "x");
}

void add_conversions(std::vector<Bomb>& bombs) {
  bombs.push_back({"windows of sound", BombKind::model, [] { return windows_of_sound(20, 512, 1); }});
  bombs.push_back({"wide windows of sound", BombKind::model, [] { return windows_of_sound(8, 8192, 16); }});
  bombs.push_back({"weights of many products", BombKind::model, [] {
                     OnnxBuilder builder = of_x();
                     std::string last = "x";
                     for (int i = 0; i < 7'000; ++i) {
                       builder.floats("w" + std::to_string(i), {1, 1}, {0.5f});
                       builder.node("MatMul", {last, "w" + std::to_string(i)}, {"p" + std::to_string(i)});
                       last = "p" + std::to_string(i);
                     }
                     return given_as_y(builder, last);
                   }});
  bombs.push_back({"one weight of many products", BombKind::model, [] {
                     OnnxBuilder builder = of_x();
                     builder.floats("w", {1, 200'000}, std::vector<float>(200'000, 0.25f));
                     for (int i = 0; i < 3'000; ++i) {
                       builder.node("MatMul", {"x", "w"}, {"p" + std::to_string(i)});
                       builder.output("p" + std::to_string(i));
                     }
                     return given_as_y(builder, "x");
                   }});
}

}  // namespace

std::vector<Bomb> body_bombs() {
  std::vector<Bomb> bombs;
  add_empty_bodies(bombs);
  add_wide_work(bombs);
  add_scattered(bombs);
  add_regions(bombs);
  add_four_bits(bombs);
  add_long_constants(bombs);
  add_conversions(bombs);
  return bombs;
}

}  // namespace imprint::fuzz
