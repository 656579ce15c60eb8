// Models of many loops, bodies, functions and operators that become many operations, and tensors in a large
// file.

#include <cstdint>

#include "tests/fuzz/bombs.h"
#include "tests/unit/model_onnx_builder.h"

namespace imprint::fuzz {
namespace {

using test::Extents;
using test::OnnxBuilder;
using Words = std::vector<std::string>;
using Attributes = std::vector<OnnxBuilder::Attribute>;

std::string numbered(const char* prefix, int i) { return prefix + std::to_string(i); }

// x, and numbers of run time in the given shape.
OnnxBuilder widened(const Extents& extents) {
  OnnxBuilder builder(21);
  builder.input("x", {"N", "1"}).longs("rows", {1}, {0}).longs("one", {1}, {1});
  builder.longs("extents", {static_cast<std::int64_t>(extents.size())}, extents);
  builder.node("ReduceMax", {"x", "rows"}, {"most"}, {OnnxBuilder::number("keepdims", 1)});
  return std::move(
      builder.node("Reshape", {"most", "one"}, {"flat"}).node("Expand", {"flat", "extents"}, {"w"}));
}

// y = x + the sum of all of `result`.
FileBytes summed(OnnxBuilder& builder, const std::string& result) {
  builder.node("ReduceSum", {result}, {"total"}, {OnnxBuilder::number("keepdims", 0)});
  return builder.node("Add", {"x", "total"}, {"y"}).output("y").bytes();
}

// `count` nodes, each over numbers that depend on the one before. In `inputs` "w" stands for those numbers.
FileBytes behind_each_other(OnnxBuilder builder, const char* op, int count, const Words& inputs,
                            const Attributes& attributes = {}, const char* domain = "") {
  std::string last = "w";
  for (int i = 0; i < count; ++i) {
    Words given;
    for (const std::string& input : inputs) given.push_back(input == "w" ? last : input);
    builder.node(op, given, {numbered("o", i)}, attributes, "", domain);
    builder.node("ReduceSum", {numbered("o", i)}, {numbered("s", i)}, {OnnxBuilder::number("keepdims", 0)});
    last = numbered("w", i);
    builder.node("Add", {"w", numbered("s", i)}, {last});
  }
  return summed(builder, last);
}

// A body of Loop that makes "next" of "v".
OnnxBuilder one_turn(OnnxBuilder inner) {
  return std::move(
      inner.input("i", {}, 7).input("go", {}, 9).input("v", {"N", "1"}).output("go", {}, 9).output("next"));
}

FileBytes loops(int count, bool chained, const OnnxBuilder& body) {
  OnnxBuilder builder(21);
  builder.input("x", {"N", "1"}).longs("m", {}, {3});
  Words results;
  for (int i = 0; i < count; ++i) {
    const std::string from = chained && i > 0 ? results.back() : "x";
    builder.node("Loop", {"m", "", from}, {numbered("v", i)}, {OnnxBuilder::body("body", body)});
    results.push_back(numbered("v", i));
  }
  if (chained) return builder.node("Identity", {results.back()}, {"y"}).output("y").bytes();
  return builder.node("Sum", results, {"y"}).output("y").bytes();
}

// Rows of 4 MiB from each turn: 2 GB.
FileBytes stacked_rows() {
  OnnxBuilder body = one_turn(OnnxBuilder().node("Neg", {"v"}, {"next"}).longs("wide", {2}, {1, 1 << 20}));
  body.node("Expand", {"next", "wide"}, {"row"}).output("row");
  OnnxBuilder builder(21);
  builder.input("x", {"N", "1"}).longs("m", {}, {500});
  builder.node("Loop", {"m", "", "x"}, {"last", "rows"}, {OnnxBuilder::body("body", body)});
  return summed(builder, "rows");
}

FileBytes bodies_in_bodies() {
  const auto branch = [](const char* op) { return OnnxBuilder().node(op, {"v"}, {"b"}).output("b"); };
  OnnxBuilder chosen;
  chosen.node("ReduceMax", {"v"}, {"most"}, {OnnxBuilder::number("keepdims", 0)});
  chosen.node("Cast", {"most"}, {"c"}, {OnnxBuilder::number("to", 9)});
  chosen.node(
      "If", {"c"}, {"next"},
      {OnnxBuilder::body("then_branch", branch("Neg")), OnnxBuilder::body("else_branch", branch("Exp"))});
  OnnxBuilder turns;
  turns.longs("m", {}, {3})
      .node("Loop", {"m", "", "row"}, {"made"}, {OnnxBuilder::body("body", one_turn(std::move(chosen)))});
  turns.input("row", {"1"}).output("made");
  OnnxBuilder builder(21);
  builder.input("x", {"N", "1"});
  for (int i = 0; i < 1000; ++i)
    builder.node("Scan", {i == 0 ? "x" : numbered("v", i - 1)}, {numbered("v", i)},
                 {OnnxBuilder::body("body", turns), OnnxBuilder::number("num_scan_inputs", 1)});
  return builder.node("Identity", {"v999"}, {"y"}).output("y").bytes();
}

FileBytes calls() {
  OnnxBuilder builder(21), inner;
  for (int i = 0; i < 8000; ++i)
    inner.node(i % 2 ? "Exp" : "Neg", {i == 0 ? "a" : numbered("t", i - 1)}, {numbered("t", i)});
  builder.function("d", "f", {"a"}, {"c"}, inner.node("Identity", {"t7999"}, {"c"}));
  builder.input("x", {"N", "1"});
  for (int i = 0; i < 4000; ++i)
    builder.node("f", {i == 0 ? "x" : numbered("v", i - 1)}, {numbered("v", i)}, {}, "", "d");
  return builder.node("Identity", {"v3999"}, {"y"}).output("y").bytes();
}

FileBytes splits_and_joins() {
  constexpr int kParts = 256;
  OnnxBuilder builder = widened({1, kParts});
  std::string last = "w";
  for (int round = 0; round < 60; ++round) {
    Words parts, mixed;
    for (int i = 0; i < kParts; ++i) parts.push_back(numbered("p", round) + numbered("_", i));
    for (int i = 0; i < kParts; ++i) mixed.push_back(parts[static_cast<std::size_t>(37 * i + 5) % kParts]);
    builder.node("Split", {last}, parts,
                 {OnnxBuilder::number("axis", 1), OnnxBuilder::number("num_outputs", kParts)});
    last = numbered("j", round);
    builder.node("Concat", mixed, {last}, {OnnxBuilder::number("axis", 1)});
  }
  return summed(builder, last);
}

// A tensor of 1 GiB in the file that the program of the bombs makes beside the models.
FileBytes in_a_large_file(int type, std::int64_t elements) {
  OnnxBuilder builder(21);
  builder.input("x", {"N", "1"}).graph_field(5, [&](protozero::pbf_writer& tensor) {
    tensor.add_int64(1, elements);
    tensor.add_int32(2, type);
    tensor.add_string(8, "large");
    protozero::pbf_writer place(tensor, 13);
    place.add_string(1, "location");
    place.add_string(2, kLargeFile);
    place.commit();
    tensor.add_int32(14, 1);
  });
  return summed(builder.node("Cast", {"large"}, {"cast"}, {OnnxBuilder::number("to", 1)}), "cast");
}

void add_bodies(std::vector<Bomb>& bombs) {
  const auto add = [&](const char* title, std::function<FileBytes()> make) {
    bombs.push_back({title, BombKind::model, std::move(make)});
  };
  const auto negated = [] { return one_turn(OnnxBuilder().node("Neg", {"v"}, {"next"})); };
  add("a chain of loops", [=] { return loops(5000, true, negated()); });
  add("loops beside each other", [=] { return loops(5000, false, negated()); });
  add("loops, as many as may be", [=] { return loops(255, true, negated()); });
  add("If in Loop in Scan", bodies_in_bodies);
  add("calls of a long function", calls);
  add("rows of a loop", stacked_rows);
}

void add_operators(std::vector<Bomb>& bombs) {
  const auto add = [&](const char* title, std::function<FileBytes()> make) {
    bombs.push_back({std::string("operators: ") + title, BombKind::model, std::move(make)});
  };
  add("splits and joins", splits_and_joins);
  add("Mish", [] { return behind_each_other(widened({2, 4}), "Mish", 1200, {"w"}); });
  add("TopK", [] { return behind_each_other(widened({2, 8}), "TopK", 4300, {"w", "one"}); });
  add("Resize", [] {
    return behind_each_other(std::move(widened({1, 2, 8, 8}).longs("to", {4}, {1, 2, 13, 17})), "Resize", 600,
                             {"w", "", "", "to"}, {OnnxBuilder::text("mode", "cubic")});
  });
  add("LSTM", [] {
    OnnxBuilder builder = widened({3, 1, 2});
    builder.floats("W", {1, 16, 2}, std::vector<float>(32, 0.5f));
    builder.floats("R", {1, 16, 4}, std::vector<float>(64, 0.5f));
    return behind_each_other(std::move(builder), "LSTM", 230, {"w", "W", "R"},
                             {OnnxBuilder::number("hidden_size", 4)});
  });
  add("ReduceLogSumExp", [] {
    return behind_each_other(widened({2, 4}), "ReduceLogSumExp", 1800, {"w", "one"});
  });
  add("LayerNormalization", [] {
    return behind_each_other(std::move(widened({2, 4}).floats("scale", {4}, {1, 1, 1, 1})),
                             "LayerNormalization", 6000, {"w", "scale"});
  });
  add("HannWindow", [] {
    OnnxBuilder builder(21);
    builder.input("x", {"N", "1"}).longs("size", {}, {(1 << 20) - 1});
    Words windows;
    for (int i = 0; i < 8000; ++i)
      builder.node("HannWindow", {"size"}, {windows.emplace_back(numbered("w", i))});
    return summed(builder.node("Sum", windows, {"all"}), "all");
  });
  for (const int length : {9973, 65537, 1 << 20})
    add(length == 9973    ? "DFT of a prime length"
        : length == 65537 ? "DFT of a long prime length"
                          : "DFT of a long length",
        [length] {
          return behind_each_other(widened({1, length, 1}), "DFT", 400, {"w"},
                                   {OnnxBuilder::number("axis", 1)});
        });
  add("NonMaxSuppression", [] {
    constexpr int kBoxes = 8000;
    std::vector<float> boxes, scores;
    for (int i = 0; i < kBoxes; ++i) {
      const auto at = static_cast<float>(2 * i);
      boxes.insert(boxes.end(), {at, 0, at + 1, 1});
      scores.push_back(0.5f);
    }
    OnnxBuilder builder(21);
    builder.input("x", {"N", "1"})
        .floats("boxes", {1, kBoxes, 4}, boxes)
        .floats("scores", {1, 1, kBoxes}, scores);
    builder.longs("most", {}, {1 << 20}).floats("overlap", {}, {0.5f});
    Words kept;
    for (int i = 0; i < 2000; ++i)
      builder.node("NonMaxSuppression", {"boxes", "scores", "most", "overlap"},
                   {kept.emplace_back(numbered("k", i))});
    builder.node("Concat", kept, {"all"}, {OnnxBuilder::number("axis", 0)});
    builder.node("Cast", {"all"}, {"cast"}, {OnnxBuilder::number("to", 1)});
    return summed(builder, "cast");
  });
  add("RoiAlign", [] {
    OnnxBuilder builder = widened({1, 2, 8, 8});
    builder.floats("boxes", {1, 4}, {0, 0, 60, 60}).longs("batch", {1}, {0});
    return behind_each_other(
        std::move(builder), "RoiAlign", 1000, {"w", "boxes", "batch"},
        {OnnxBuilder::number("output_height", 1), OnnxBuilder::number("output_width", 1)});
  });
  add("GroupQueryAttention", [] {
    OnnxBuilder builder = widened({1, 1, 8});
    builder.raw("length", {1}, 6, std::string("\3\0\0\0", 4)).raw("all", {}, 6, std::string("\4\0\0\0", 4));
    builder.floats("past", {1, 2, 16, 4}, std::vector<float>(128, 0.5f));
    return behind_each_other(
        std::move(builder), "GroupQueryAttention", 3000, {"w", "w", "w", "past", "past", "length", "all"},
        {OnnxBuilder::number("num_heads", 2), OnnxBuilder::number("kv_num_heads", 2)}, "com.microsoft");
  });
}

// x [N, 1], and `count` nodes of it, whose results are added up.
FileBytes of_named(const char* op, int count, const Words& inputs, const Attributes& attributes = {},
                   bool chained = false) {
  OnnxBuilder builder(17);
  builder.input("x", {"N", "1"}).floats("row", {1, 1}, {1});
  Words results;
  for (int i = 0; i < count; ++i) {
    Words given = inputs;
    if (chained && i > 0) given.back() = results.back();
    builder.node(op, given, {results.emplace_back(numbered("n", i))}, attributes);
  }
  if (chained) return summed(builder, results.back());
  return summed(builder.node("Sum", results, {"all"}), "all");
}

// Lists of 64 sums of products of extents.
FileBytes sums_of_extents() {
  OnnxBuilder builder(17);
  builder.input("x", {"N", "1"}).node("Shape", {"x"}, {"s"});
  std::string last = "s";
  for (int i = 0; i < 5; ++i, last = numbered("s", i - 1))
    builder.node("Concat", {last, last}, {numbered("s", i)}, {OnnxBuilder::number("axis", 0)});
  builder.longs("one", {}, {1}).node("Add", {last, "one"}, {"p"}).node("Mul", {"p", "p"}, {"q"});
  Words results;
  for (int i = 0; i < 12'000; ++i) builder.node("Mul", {"q", "p"}, {results.emplace_back(numbered("z", i))});
  builder.node("Sum", results, {"t"}).node("Cast", {"t"}, {"cast"}, {OnnxBuilder::number("to", 1)});
  return summed(builder, "cast");
}

}  // namespace

std::vector<Bomb> named_bombs() {
  std::vector<Bomb> bombs;
  const auto add = [&](const char* title, std::function<FileBytes()> make) {
    bombs.push_back({title, BombKind::named, std::move(make)});
  };
  const Attributes first{OnnxBuilder::list("axes", {0})}, along{OnnxBuilder::number("axis", 0)};
  add(kHarmless, [] { return of_named("Neg", 1, {"x"}); });
  add("means over an extent", [=] { return of_named("ReduceMean", 12'000, {"x"}, first); });
  add("extents that grow", [=] { return of_named("Concat", 15'000, {"row", "x"}, along, true); });
  add("rows beside an extent", [=] { return of_named("Concat", 12'000, {"row", "x"}, along); });
  add("a chain of Softmax over an extent", [=] { return of_named("Softmax", 12'000, {"x"}, along, true); });
  add("sums of extents", sums_of_extents);
  add("a name of many terms", [] {
    std::string sum = "N";
    for (int i = 0; i < 200'000; ++i) sum += "+N";
    OnnxBuilder builder(17);
    return summed(builder.input("x", {"N", "1"}).input("z", {sum}), "z");
  });
  add("an input of 1 GiB", [] {
    OnnxBuilder builder(17);
    builder.input("x", {"N", "1"}).input("z", {"268435456"});
    return summed(builder, "z");
  });
  add("inputs named by sums", [] {
    OnnxBuilder builder(17);
    builder.input("x", {"N", "1"});
    for (int i = 0; i < 12'000; ++i) builder.input(numbered("z", i), {"N + " + std::to_string(i)});
    return summed(builder, "x");
  });
  return bombs;
}

std::vector<Bomb> operator_bombs() {
  std::vector<Bomb> bombs;
  add_bodies(bombs);
  add_operators(bombs);
  bombs.push_back({std::string("1 GiB of float32") + kInAnotherFile, BombKind::model,
                   [] { return in_a_large_file(1, 1 << 28); }});
  bombs.push_back({std::string("1 GiB of int8") + kInAnotherFile, BombKind::model,
                   [] { return in_a_large_file(3, 1 << 30); }});
  return bombs;
}

}  // namespace imprint::fuzz
