#include <cstdint>
#include <limits>

#include "tests/fuzz/bombs.h"
#include "tests/unit/model_onnx_builder.h"

namespace imprint::fuzz {
namespace {

using test::Extents;
using test::OnnxBuilder;
using Names = std::vector<std::string>;

constexpr std::int64_t k31 = std::int64_t{1} << 31, k47 = std::int64_t{1} << 47, k62 = std::int64_t{1} << 62;
constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();

std::string name(std::int64_t i) { return "v" + std::to_string(i); }

// A field of `tag` with `content`, in protobuf's wire format.
std::string field(std::uint32_t tag, const std::string& content) {
  std::string out;
  protozero::pbf_writer(out).add_message(tag, content);
  return out;
}

OnnxBuilder begin() { return std::move(OnnxBuilder().input("x", {"N", "1"})); }
FileBytes end(OnnxBuilder& builder, const std::string& result) {
  return builder.node("Identity", {result}, {"y"}).output("y").bytes();
}

// x, then `count` nodes that each read the one before; further inputs and attributes as given.
FileBytes chain(const char* op, int count, const Names& further = {},
                const std::vector<OnnxBuilder::Attribute>& attributes = {}) {
  OnnxBuilder builder = begin();
  builder.longs("one", {1}, {1}).floats("half", {1}, {0.5f});
  std::string last = "x";
  for (int i = 0; i < count; ++i) {
    Names inputs{last};
    for (const std::string& input : further) inputs.push_back(input == "same" ? last : input);
    builder.node(op, inputs, {name(i)}, attributes);
    last = name(i);
  }
  return end(builder, last);
}

Extents ramp(std::int64_t count) {
  Extents values;
  for (std::int64_t i = 0; i < count; ++i) values.push_back(i);
  return values;
}

// `count` nodes that each compute from the constants "long" (2^16 numbers), "short" [1] and "none" (empty),
// and x plus a joint result, if they have one.
FileBytes many(const char* op, int count, const Names& inputs,
               const std::vector<OnnxBuilder::Attribute>& attributes = {}, bool float_long = false) {
  constexpr std::int64_t kLong = 1 << 16;
  OnnxBuilder builder = begin();
  if (float_long)
    builder.floats("long", {kLong}, std::vector<float>(kLong, 1.5f));
  else
    builder.longs("long", {kLong}, ramp(kLong));
  builder.longs("short", {1}, {1 << 20}).longs("none", {0}, {}).longs("zero", {1}, {0});
  builder.longs("scalar", {}, {1 << 20}).longs("step", {}, {1}).longs("start", {}, {0});
  Names results;
  for (int i = 0; i < count; ++i) {
    builder.node(op, inputs, {name(i)}, attributes);
    results.push_back(name(i));
  }
  builder.node("Concat", results, {"all"}, {OnnxBuilder::number("axis", 0)});
  return end(builder, "all");
}

// One node over x, widened to `extents` first.
FileBytes wide(const Extents& extents, const char* op, const Names& further = {},
               const std::vector<OnnxBuilder::Attribute>& attributes = {}) {
  OnnxBuilder builder = begin();
  builder.longs("extents", {static_cast<std::int64_t>(extents.size())}, extents).longs("axes", {1}, {1});
  builder.longs("axis", {}, {1}).node("Expand", {"x", "extents"}, {"w"});
  Names inputs{"w"};
  for (const std::string& input : further) inputs.push_back(input);
  builder.node(op, inputs, {"o"}, attributes);
  return end(builder, "o");
}

void add_structure(std::vector<Bomb>& bombs) {
  const auto add = [&](const char* title, std::function<FileBytes()> make) {
    bombs.push_back({title, BombKind::model, std::move(make)});
  };
  add("nested subgraphs", [] {
    std::string graph = field(1, field(4, "Neg"));
    for (int depth = 0; depth < 2000; ++depth)
      graph = field(1, field(4, "If") + field(5, field(1, "then_branch") + field(6, graph)));
    return bytes_of(field(7, graph) + field(8, ""));
  });
  for (const std::uint32_t tag : {1u, 5u, 11u, 12u, 13u, 15u})
    bombs.push_back({"empty messages in field " + std::to_string(tag), BombKind::model, [tag] {
                       std::string graph;
                       for (int i = 0; i < 450'000; ++i) graph += field(tag, {});
                       return bytes_of(field(7, graph) + field(8, ""));
                     }});
  add("attributes of one node", [] {
    std::vector<OnnxBuilder::Attribute> attributes;
    for (int i = 0; i < 50'000; ++i) attributes.push_back(OnnxBuilder::number("a" + std::to_string(i), i));
    OnnxBuilder builder = begin();
    builder.node("Softmax", {"x"}, {"s"}, attributes);
    return end(builder, "s");
  });
  add("metadata", [] {
    OnnxBuilder builder = begin();
    const FileBytes model = end(builder, "x");
    std::string file(reinterpret_cast<const char*>(model.data()), model.size());
    for (int i = 0; i < 70'000; ++i) file += field(14, field(1, std::to_string(i)) + field(2, ""));
    return bytes_of(file);
  });
  add("operator sets", [] {
    OnnxBuilder builder = begin();
    const FileBytes model = end(builder, "x");
    std::string file(reinterpret_cast<const char*>(model.data()), model.size());
    for (int i = 0; i < 80'000; ++i) file += field(8, field(1, std::to_string(i)));
    return bytes_of(file);
  });
}

void add_names(std::vector<Bomb>& bombs) {
  const auto add = [&](const char* title, std::function<FileBytes()> make) {
    bombs.push_back({title, BombKind::model, std::move(make)});
  };
  add("unknown operators", [] {
    OnnxBuilder builder = begin();
    for (int i = 0; i < 25'000; ++i) builder.node("Op" + name(i), {"x"}, {name(i)});
    return end(builder, name(0));
  });
  add("outputs of one name", [] {
    OnnxBuilder builder = begin();
    for (int i = 0; i < 50'000; ++i) builder.node("Neg", {"x"}, {"same"});
    return end(builder, "same");
  });
  add("initializers of one name", [] {
    OnnxBuilder builder = begin();
    for (int i = 0; i < 40'000; ++i) builder.floats("w", {0}, {});
    return end(builder, "x");
  });
  add("a long name everywhere", [] {
    const std::string longest(200'000, 'n');
    OnnxBuilder builder = begin();
    builder.node("Reshape", {"x", "x"}, {longest}, {}, longest).node(longest, {longest}, {"o"}, {}, longest);
    return end(builder, "o");
  });
  add("inputs", many_inputs);
  add("outputs", [] {
    OnnxBuilder builder = begin();
    for (int i = 0; i < 16'000; ++i) builder.node("Identity", {"x"}, {name(i)}).output(name(i));
    return end(builder, "x");
  });
  add("outputs of known numbers", [] {
    OnnxBuilder builder = begin();
    for (int i = 0; i < 16'000; ++i)
      builder.node(i % 2 ? "Shape" : "Size", {"x"}, {name(i)}).output(name(i), {}, test::kInt64);
    return end(builder, "x");
  });
  add("a cycle of all nodes", [] {
    OnnxBuilder builder = begin();
    for (int i = 0; i < 30'000; ++i) builder.node("Neg", {name((i + 1) % 30'000)}, {name(i)});
    return end(builder, name(7));
  });
  add("nodes in reverse order", [] {
    OnnxBuilder builder = begin();
    for (int i = 30'000; i > 0; --i) builder.node("Neg", {i == 1 ? "x" : name(i - 1)}, {name(i)});
    return end(builder, name(30'000));
  });
  for (const char* location :
       {"../../../../../../etc/passwd", "/etc/passwd", "/dev/zero", "m.onnx", "..", ""})
    bombs.push_back({"tensors in file '" + std::string(location) + "'", BombKind::model, [location] {
                       OnnxBuilder builder = begin();
                       for (int i = 0; i < 5'000; ++i)
                         builder.graph_field(5, [&](protozero::pbf_writer& tensor) {
                           tensor.add_int64(1, 1 << 20);
                           tensor.add_int32(2, 1);
                           tensor.add_string(8, name(i));
                           for (const auto& [key, value] : {std::pair{"location", std::string(location)},
                                                            {"offset", std::to_string(i * k62)},
                                                            {"length", std::to_string(4 << 20)}}) {
                             protozero::pbf_writer entry(tensor, 13);
                             entry.add_string(1, key);
                             entry.add_string(2, value);
                           }
                           tensor.add_int32(14, 1);
                         });
                       return end(builder, name(0));
                     }});
}

void add_graphs(std::vector<Bomb>& bombs) {
  const auto add = [&](std::string title, std::function<FileBytes()> make) {
    bombs.push_back({std::move(title), BombKind::model, std::move(make)});
  };
  for (const char* op : {"Neg", "Exp", "Softmax", "Identity", "CumSum", "ReduceMax", "Transpose"})
    add("a chain of " + std::string(op),
        [op] { return chain(op, 20'000, op == std::string("CumSum") ? Names{"one"} : Names()); });
  add("a chain that doubles", [] { return chain("Add", 20'000, {"same"}); });
  add("a chain of products", [] { return chain("MatMul", 20'000, {"same"}); });
  add("a chain of joins", [] { return chain("Concat", 30, {"same"}, {OnnxBuilder::number("axis", 1)}); });
  add("a join of one value", [] {
    OnnxBuilder builder = begin();
    for (int i = 0; i < 14; ++i)
      builder.node("Concat", Names(16'384, i == 0 ? "x" : "v0"), {name(i)}, {OnnxBuilder::number("axis", 0)});
    return end(builder, name(13));
  });
  add("a join of many values", [] {
    OnnxBuilder builder = begin();
    Names values;
    for (int i = 0; i < 16'000; ++i) builder.node("Exp", {"x"}, {values.emplace_back(name(i))});
    builder.node("Concat", values, {"o"}, {OnnxBuilder::number("axis", 1)});
    return end(builder, "o");
  });
  add("a sum of many values", [] {
    OnnxBuilder builder = begin();
    Names values;
    for (int i = 0; i < 16'000; ++i) builder.node("Exp", {"x"}, {values.emplace_back(name(i))});
    return end(builder.node("Sum", values, {"o"}), "o");
  });
  add("a split into many", [] {
    OnnxBuilder builder = begin();
    builder.longs("extents", {2}, {1, 16'000}).node("Expand", {"x", "extents"}, {"w"});
    Names values;
    for (int i = 0; i < 16'000; ++i) values.push_back(name(i));
    builder.node("Split", {"w"}, values, {OnnxBuilder::number("axis", 1)});
    return end(builder.node("Sum", values, {"o"}), "o");
  });
  add("reductions beside each other", [] {
    OnnxBuilder builder = begin();
    builder.longs("extents", {2}, {1, 1000}).node("Expand", {"x", "extents"}, {"w"});
    Names values;
    for (int i = 0; i < 12'000; ++i)
      builder.node(i % 2 ? "ReduceMax" : "ReduceSum", {"w"}, {values.emplace_back(name(i))});
    return end(builder.node("Sum", values, {"o"}), "o");
  });
  add("states of a policy", [] {
    OnnxBuilder builder = begin();
    std::string last = "x";
    for (int i = 0; i < 4'000; ++i) builder.input("s" + std::to_string(i), {"N", "1"});
    for (int i = 0; i < 4'000; ++i) {
      builder.node("Add", {last, "s" + std::to_string(i)}, {name(i)});
      last = name(i);
    }
    builder.output(last);
    for (int i = 0; i < 4'000; ++i) {
      builder.node("Neg", {last}, {"n" + std::to_string(i)}).output("n" + std::to_string(i));
    }
    return builder.bytes();
  });
}

void add_values(std::vector<Bomb>& bombs, const std::string& size, const Extents& e) {
  const auto add = [&](std::string title, std::function<FileBytes()> make) {
    bombs.push_back({std::move(title), BombKind::model, std::move(make)});
  };
  add("an input of " + size, [e] {
    OnnxBuilder builder;
    builder.input("x", {std::to_string(e[0]), std::to_string(e[1])});
    return end(builder, "x");
  });
  add("an initializer of " + size, [e] {
    OnnxBuilder builder = begin();
    return end(builder.floats("w", e, {}), "w");
  });
  add("x expanded to " + size, [e] { return wide(e, "Neg"); });
  add("a sum over " + size, [e] { return wide(e, "ReduceSum", {"axes"}); });
  add("running sums over " + size, [e] { return wide(e, "CumSum", {"axis"}); });
  add("softmax over " + size, [e] { return wide(e, "Softmax"); });
  add("a matrix product over " + size, [e] {
    OnnxBuilder builder = begin();
    builder.longs("extents", {2}, e).node("Expand", {"x", "extents"}, {"w"});
    builder.node("Transpose", {"w"}, {"t"}).node("MatMul", {"t", "w"}, {"o"});
    return end(builder, "o");
  });
  add("a constant of shape " + size, [e] {
    OnnxBuilder builder = begin();
    builder.longs("extents", {2}, e).node("ConstantOfShape", {"extents"}, {"c"});
    return end(builder, "c");
  });
  add("repeats of " + size, [e] {
    OnnxBuilder builder = begin();
    builder.longs("repeats", {2}, e).longs("none", {0, 1}, {});
    builder.node("Tile", {"none", "repeats"}, {"a"}).node("Tile", {"x", "repeats"}, {"b"});
    return end(builder.node("Concat", {"a", "b"}, {"o"}, {OnnxBuilder::number("axis", 0)}), "o");
  });
  add("a reshape to " + size, [e] {
    OnnxBuilder builder = begin();
    builder.longs("target", {3}, {e[0], -1, e[1]}).node("Reshape", {"x", "target"}, {"o"});
    return end(builder, "o");
  });
}

void add_moves(std::vector<Bomb>& bombs, const std::string& size, const Extents& e) {
  const auto add = [&](std::string title, std::function<FileBytes()> make) {
    bombs.push_back({std::move(title), BombKind::model, std::move(make)});
  };
  for (const char* mode : {"constant", "reflect", "edge", "wrap"})
    add("padding of " + size + " by " + mode, [e, mode] {
      OnnxBuilder builder = begin();
      builder.longs("pads", {4}, {0, e[1], 0, e[1]});
      builder.node("Pad", {"x", "pads"}, {"o"}, {OnnxBuilder::text("mode", mode)});
      return end(builder, "o");
    });
  add("a range to " + size, [e] {
    OnnxBuilder builder = begin();
    builder.longs("a", {}, {0}).longs("b", {}, {e[1]}).longs("c", {}, {1});
    builder.node("Range", {"a", "b", "c"}, {"r"}).node("Cast", {"r"}, {"o"}, {OnnxBuilder::number("to", 1)});
    return end(builder, "o");
  });
  add("one hot of " + size, [e] {
    OnnxBuilder builder = begin();
    builder.longs("depth", {}, {e[1]}).floats("values", {2}, {0, 1});
    builder.node("Cast", {"x"}, {"i"}, {OnnxBuilder::number("to", 7)});
    return end(builder.node("OneHot", {"i", "depth", "values"}, {"o"}), "o");
  });
  add("a triangle of " + size, [e] {
    OnnxBuilder builder = begin();
    builder.longs("extents", {2}, {e[1], e[1]}).longs("k", {}, {kLeast});
    builder.node("Expand", {"x", "extents"}, {"w"}).node("Trilu", {"w", "k"}, {"o"});
    return end(builder, "o");
  });
}

void add_images(std::vector<Bomb>& bombs, const std::string& size, const Extents& e) {
  const auto add = [&](std::string title, std::function<FileBytes()> make) {
    bombs.push_back({std::move(title), BombKind::model, std::move(make)});
  };
  add("a slice of " + size, [e] {
    OnnxBuilder builder = begin();
    builder.longs("a", {2}, {kLeast, e[0]}).longs("b", {2}, {e[1], kLeast});
    builder.longs("c", {2}, {0, 1}).longs("d", {2}, {e[1], kLeast + 1});
    return end(builder.node("Slice", {"x", "a", "b", "c", "d"}, {"o"}), "o");
  });
  add("an image of " + size, [e] {
    OnnxBuilder builder = begin();
    builder.longs("extents", {4}, {1, 1, e[0], e[1]}).node("Expand", {"x", "extents"}, {"w"});
    const std::int64_t most = (1 << 24) - 1;
    builder.node(
        "AveragePool", {"w"}, {"p"},
        {OnnxBuilder::list("kernel_shape", {most, most}), OnnxBuilder::list("pads", {most, most, most, most}),
         OnnxBuilder::list("dilations", {most, most})});
    builder.node("MaxPool", {"p"}, {"o"}, {OnnxBuilder::list("kernel_shape", {1, most})});
    return end(builder, "o");
  });
  add("groups of " + size, [e] {
    OnnxBuilder builder = begin();
    builder.longs("extents", {4}, {1, e[1], 1, 1}).longs("kernel", {4}, {e[1], 1, 1, 1});
    builder.node("Expand", {"x", "extents"}, {"w"}).node("ConstantOfShape", {"kernel"}, {"k"});
    builder.node("Conv", {"w", "k"}, {"o"},
                 {OnnxBuilder::number("group", e[1]), OnnxBuilder::list("strides", {1, 2})});
    return end(builder, "o");
  });
  add("blocks of " + size, [e] {
    OnnxBuilder builder = begin();
    builder.longs("extents", {4}, {1, 4, 0, 0}).node("Expand", {"x", "extents"}, {"w"});
    builder.node("SpaceToDepth", {"w"}, {"s"}, {OnnxBuilder::number("blocksize", e[1])});
    return end(builder.node("DepthToSpace", {"s"}, {"o"}, {OnnxBuilder::number("blocksize", e[1])}), "o");
  });
}

void add_sizes(std::vector<Bomb>& bombs) {
  const std::pair<const char*, Extents> kSizes[] = {{"2^24", {1, 1 << 24}},
                                                    {"2^31", {1, k31}},
                                                    {"2^47", {1, k47}},
                                                    {"2^62", {1, k62}},
                                                    {"2^32 x 2^32", {2 * k31, 2 * k31}},
                                                    {"0 x 2^62", {0, k62}}};
  for (const auto& [size, extents] : kSizes) {
    add_values(bombs, size, extents);
    add_moves(bombs, size, extents);
    add_images(bombs, size, extents);
  }
}

void add_folds(std::vector<Bomb>& bombs) {
  const auto add = [&](std::string title, std::function<FileBytes()> make) {
    bombs.push_back({"folds of " + std::move(title), BombKind::model, std::move(make)});
  };
  constexpr int kCount = 8'000;
  const auto axis = OnnxBuilder::number("axis", 0);
  for (const char* op : {"Neg", "Sqrt", "Transpose", "ReduceSum", "Shape", "Size", "Squeeze"})
    add(op, [op] { return many(op, kCount, {"long"}, {}, op == std::string("Sqrt")); });
  for (const char* op : {"Add", "Mul", "Pow", "Less", "Min", "Gather"})
    add(op, [op, axis] {
      return many(op, kCount, {"long", "long"},
                  op == std::string("Gather") ? std::vector{axis} : std::vector<OnnxBuilder::Attribute>());
    });
  add("Pow of floats", [] { return many("Pow", kCount, {"long", "long"}, {}, true); });
  add("Tile of nothing", [] { return many("Tile", kCount, {"none", "short"}); });
  add("Tile", [] { return many("Tile", kCount, {"zero", "short"}); });
  add("Expand", [] { return many("Expand", kCount, {"zero", "short"}); });
  add("ConstantOfShape", [] { return many("ConstantOfShape", kCount, {"short"}); });
  add("Range", [] { return many("Range", kCount, {"start", "scalar", "step"}); });
  add("Concat", [axis] { return many("Concat", 2'000, Names(24, "long"), {axis}); });
  add("Cast", [] { return many("Cast", kCount, {"long"}, {OnnxBuilder::number("to", 1)}); });
  add("Where", [] { return many("Where", kCount, {"long", "long", "long"}); });
  add("reflecting Pad", [] {
    OnnxBuilder builder = begin();
    builder.longs("two", {2}, {1, 2}).longs("pads", {2}, {1 << 19, 1 << 18});
    Names results;
    for (int i = 0; i < kCount; ++i)
      builder.node("Pad", {"two", "pads"}, {results.emplace_back(name(i))},
                   {OnnxBuilder::text("mode", "reflect")});
    builder.node("Concat", results, {"all"}, {OnnxBuilder::number("axis", 0)});
    return end(builder, "all");
  });
  add("outer sums", [] {
    OnnxBuilder builder = begin();
    builder.longs("a", {1000, 1}, ramp(1000)).longs("b", {1, 1000}, ramp(1000));
    Names results;
    for (int i = 0; i < kCount; ++i) builder.node("Add", {"a", "b"}, {results.emplace_back(name(i))});
    builder.node("Concat", results, {"all"}, {OnnxBuilder::number("axis", 0)});
    return end(builder, "all");
  });
  add("constants in nodes", [] {
    OnnxBuilder builder = begin();
    Names results;
    for (int i = 0; i < 12'000; ++i)
      builder.node("Constant", {}, {results.emplace_back(name(i))},
                   {OnnxBuilder::list("value_ints", ramp(16))});
    builder.node("Concat", results, {"all"}, {OnnxBuilder::number("axis", 0)});
    return end(builder, "all");
  });
}

}  // namespace

FileBytes many_inputs() {
  OnnxBuilder builder = begin();
  for (int i = 0; i < 25'000; ++i) builder.input(name(i), {"N", "1"});
  return end(builder, "x");
}

std::vector<Bomb> model_bombs() {
  std::vector<Bomb> bombs = {{kHarmless, BombKind::model, [] {
                                OnnxBuilder builder = begin();
                                return end(builder, "x");
                              }}};
  add_structure(bombs);
  add_names(bombs);
  add_graphs(bombs);
  add_sizes(bombs);
  add_folds(bombs);
  return bombs;
}

}  // namespace imprint::fuzz
