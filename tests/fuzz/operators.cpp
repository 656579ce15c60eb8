// Bytes as calls of ONNX's operators: which one, which inputs, which attributes. Known values of every type
// meet every operator, which changed files seldom reach.

#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "compute/model/onnx/import.h"
#include "compute/model/onnx/op.h"
#include "tests/fuzz/harness.h"
#include "tests/fuzz/run_model.h"

namespace imprint::fuzz {
namespace {

using imprint::onnx::Attribute;
using imprint::onnx::AttributeKind;
using imprint::onnx::ElementType;
using imprint::onnx::Extents;
using imprint::onnx::Graph;
using imprint::onnx::Node;
using imprint::onnx::TensorData;

constexpr std::size_t kMostNodes = 6, kMostInputs = 8, kMostAttributes = 6;

// The bytes, and zeros behind them.
class Choices {
 public:
  explicit Choices(Bytes bytes) : left_(bytes) {}
  bool empty() const { return left_.empty(); }
  std::size_t below(std::size_t count) {
    std::size_t value = 0;
    for (std::size_t reach = 1; reach < count && !left_.empty(); reach <<= 8, left_ = left_.subspan(1))
      value = value << 8 | std::to_integer<std::size_t>(left_[0]);
    return value % count;
  }
  template <class List>
  const auto& of(const List& list) {
    return list[below(std::size(list))];
  }

 private:
  Bytes left_;
};

template <class T>
TensorData known_tensor(const std::string& name, ElementType type, Extents extents, std::vector<T> values) {
  const auto bytes = std::as_bytes(std::span<const T>(values));
  TensorData out;
  out.name = name;
  out.type = type;
  out.extents = std::move(extents);
  out.bytes = SharedBytes(std::vector<std::byte>(bytes.begin(), bytes.end()));
  return out;
}

TensorData words_of(const std::string& name, Extents extents, std::vector<std::string> words) {
  TensorData out;
  out.name = name;
  out.type = ElementType::string;
  out.extents = std::move(extents);
  out.strings = std::move(words);
  return out;
}

template <class T>
std::vector<T> ramp_of(std::size_t count, T step) {
  std::vector<T> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<T>(static_cast<T>(i) * step);
  return values;
}

std::vector<TensorData> known_values() {
  using enum ElementType;
  using Longs = std::vector<std::int64_t>;
  constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min(), k40 = std::int64_t{1} << 40;
  const float nan = std::numeric_limits<float>::quiet_NaN();
  return {known_tensor<float>("f", float32, {}, {0.5f}),
          known_tensor<float>("f1", float32, {1}, {1}),
          known_tensor<float>("f4", float32, {4}, {1, 2, 3, 4}),
          known_tensor<float>("f44", float32, {4, 4}, ramp_of(16, 0.25f)),
          known_tensor<float>("f2422", float32, {2, 4, 2, 2}, ramp_of(32, 0.25f)),
          known_tensor<float>("fn", float32, {2}, {nan, std::numeric_limits<float>::infinity()}),
          known_tensor<float>("f0", float32, {0}, {}),
          known_tensor<double>("d2", float64, {2}, {1e300, 2}),
          known_tensor<std::uint16_t>("h4", float16, {4}, {0x3c00, 0, 0x7c00, 0xc000}),
          known_tensor<std::int64_t>("i", int64, {}, {2}),
          known_tensor<std::int64_t>("i1", int64, {1}, {1}),
          known_tensor<std::int64_t>("i4", int64, {4}, Longs{1, 0, 2, 3}),
          known_tensor<std::int64_t>("i22", int64, {2, 2}, Longs{1, 0, -1, 1}),
          known_tensor<std::int64_t>("i0", int64, {0}, {}),
          known_tensor<std::int64_t>("wide", int64, {1}, Longs{k40}),
          known_tensor<std::int64_t>("least", int64, {}, Longs{kLeast}),
          known_tensor<std::int64_t>("wide3", int64, {3}, Longs{k40, kLeast, -(kLeast + 1)}),
          known_tensor<std::int32_t>("n4", int32, {4}, {1, 2, 3, -4}),
          known_tensor<std::int16_t>("s2", int16, {2}, {-32768, 3}),
          known_tensor<std::uint64_t>("u64", uint64, {2}, {~std::uint64_t{0}, 5}),
          known_tensor<std::uint8_t>("u8", uint8, {}, {3}),
          known_tensor<std::uint8_t>("u84", uint8, {4}, {1, 2, 3, 255}),
          known_tensor<std::uint8_t>("u844", uint8, {4, 4}, ramp_of<std::uint8_t>(16, 7)),
          known_tensor<std::int8_t>("i8", int8, {}, {-3}),
          known_tensor<std::int8_t>("i84", int8, {4}, {1, -2, 3, 4}),
          known_tensor<std::int8_t>("i8w", int8, {300, 4}, ramp_of<std::int8_t>(1200, 3)),
          known_tensor<std::uint8_t>("b", boolean, {}, {0}),
          known_tensor<std::uint8_t>("b1", boolean, {1}, {1}),
          known_tensor<std::uint8_t>("b4", boolean, {4}, {1, 0, 1, 1}),
          known_tensor<std::uint8_t>("b0", boolean, {0}, {}),
          words_of("w", {}, {"7"}),
          words_of("w2", {2}, {"ab", "1.5"})};
}

void add_input(Graph& graph, const std::string& name, ElementType type, const Extents& extents) {
  imprint::onnx::ValueInfo info;
  info.name = name;
  info.is_tensor = true;
  info.type = type;
  info.shape.emplace();
  for (const std::int64_t extent : extents)
    info.shape->push_back(extent < 0 ? imprint::onnx::Dimension{{}, "N"}
                                     : imprint::onnx::Dimension{extent, {}});
  graph.inputs.push_back(std::move(info));
}

void add_output(Graph& graph, const std::string& name) {
  imprint::onnx::ValueInfo info;
  info.name = name;
  graph.outputs.push_back(std::move(info));
}

struct Operator {
  std::string domain, name;
};
const std::vector<Operator>& operators_known() {
  static const std::vector<Operator> all = [] {
    std::vector<Operator> out;
    for (const auto family : imprint::onnx::all_ops())
      for (const imprint::onnx::OpHandler& handler : family) {
        const std::size_t dot = handler.name.rfind('.');
        const bool own = dot == std::string_view::npos;
        out.push_back({std::string(own ? "" : handler.name.substr(0, dot)),
                       std::string(own ? handler.name : handler.name.substr(dot + 1))});
      }
    return out;
  }();
  return all;
}

constexpr const char* kNames[] = {"axis",
                                  "axes",
                                  "keepdims",
                                  "kernel_shape",
                                  "pads",
                                  "strides",
                                  "dilations",
                                  "group",
                                  "mode",
                                  "to",
                                  "perm",
                                  "split",
                                  "alpha",
                                  "num_outputs",
                                  "epsilon",
                                  "hidden_size",
                                  "direction",
                                  "blocksize",
                                  "k",
                                  "K",
                                  "N",
                                  "block_size",
                                  "bits",
                                  "transA",
                                  "transB",
                                  "num_heads",
                                  "kv_num_heads",
                                  "q_num_heads",
                                  "shape",
                                  "value_ints",
                                  "value_float",
                                  "value_strings",
                                  "batch_dims",
                                  "reduction",
                                  "largest",
                                  "sorted",
                                  "exclusive",
                                  "reverse",
                                  "output_shape",
                                  "scales",
                                  "sizes",
                                  "dtype",
                                  "sample_size",
                                  "seed",
                                  "size",
                                  "align_corners",
                                  "num_scan_inputs",
                                  "scan_input_axes",
                                  "scan_output_axes",
                                  "starts",
                                  "ends",
                                  "upper",
                                  "select_last_index",
                                  "is_causal",
                                  "training_mode",
                                  "new_axis",
                                  "output_dtype",
                                  "sampling_ratio",
                                  "output_height",
                                  "output_width",
                                  "pooled_shape",
                                  "ngram_counts",
                                  "ngram_indexes",
                                  "pool_int64s",
                                  "pool_strings",
                                  "min_gram_length",
                                  "max_gram_length",
                                  "max_skip_count",
                                  "noop_with_empty_axes",
                                  "allowzero",
                                  "center_point_box",
                                  "equation",
                                  "coordinate_transformation_mode",
                                  "nearest_mode",
                                  "ceil_mode",
                                  "count_include_pad",
                                  "storage_order",
                                  "p",
                                  "fmod",
                                  "beta",
                                  "gamma",
                                  "case_change_action",
                                  "stopwords",
                                  "activation",
                                  "activations",
                                  "output_padding",
                                  "auto_pad",
                                  "linear_before_reset",
                                  "layout",
                                  "value"};

constexpr std::int64_t kNumbers[] = {0,
                                     1,
                                     -1,
                                     2,
                                     3,
                                     4,
                                     7,
                                     -2,
                                     16,
                                     300,
                                     std::int64_t{1} << 31,
                                     std::int64_t{1} << 40,
                                     -(std::int64_t{1} << 62),
                                     std::numeric_limits<std::int64_t>::max()};
constexpr float kReals[] = {0, 1, -1, 0.5f, 3e38f, -3e38f, 1e-30f};
constexpr const char* kWords[] = {
    "linear",   "add",  "nearest", "bidirectional", "ij,jk->ik",     "SAME_UPPER", "max",
    "constant", "Relu", "UPPER",   "cubic",         "align_corners", "reflect",    ""};

Attribute attribute_of(Choices& choices) {
  Attribute out;
  out.name = choices.of(kNames);
  constexpr AttributeKind kKinds[] = {
      AttributeKind::int_value,    AttributeKind::ints,    AttributeKind::float_value, AttributeKind::floats,
      AttributeKind::string_value, AttributeKind::strings, AttributeKind::tensor};
  out.kind = choices.of(kKinds);
  const bool list = out.kind == AttributeKind::ints || out.kind == AttributeKind::floats ||
                    out.kind == AttributeKind::strings;
  const std::size_t count = list ? choices.below(7) : 1;
  static const std::vector<TensorData> values = known_values();
  for (std::size_t i = 0; i < count; ++i) {
    if (out.kind == AttributeKind::int_value || out.kind == AttributeKind::ints)
      out.ints.push_back(choices.of(kNumbers));
    else if (out.kind == AttributeKind::float_value || out.kind == AttributeKind::floats)
      out.floats.push_back(choices.of(kReals));
    else if (out.kind == AttributeKind::tensor)
      out.tensors.push_back(choices.of(values));
    else
      out.strings.emplace_back(choices.of(kWords));
  }
  return out;
}

Node simple(const char* op, std::vector<std::string> inputs, std::string output) {
  Node node;
  node.op_type = op;
  node.inputs = std::move(inputs);
  node.outputs = {std::move(output)};
  return node;
}

// A body with the inputs of a loop, of a scan or of none, whose outputs are any values.
Attribute body_of(Choices& choices, const char* name, int inputs, int outputs,
                  const std::vector<std::string>& outer) {
  Attribute out;
  out.name = name;
  out.kind = AttributeKind::graph;
  Graph& body = out.graphs.emplace_back();
  std::vector<std::string> names = outer;
  for (int i = 0; i < inputs; ++i) {
    body.inputs.emplace_back().name = std::string(name) + std::to_string(i);
    names.push_back(body.inputs.back().name);
  }
  const std::string doubled = std::string(name) + "doubled";
  Node twice = simple("Concat", {choices.of(names), choices.of(names)}, doubled);
  Attribute& axis = twice.attributes.emplace_back();
  axis.name = "axis";
  axis.kind = AttributeKind::int_value;
  axis.ints = {0};
  if (choices.below(2)) {
    body.nodes.push_back(twice);
    names.push_back(doubled);
  }
  for (int i = 0; i < outputs; ++i) {
    const std::string result = std::string(name) + "result" + std::to_string(i);
    body.nodes.push_back(simple("Identity", {choices.of(names)}, result));
    add_output(body, result);
  }
  return out;
}

void add_bodies(Choices& choices, Node& node, const std::vector<std::string>& names) {
  const int more = static_cast<int>(choices.below(4)), given = static_cast<int>(node.inputs.size());
  if (node.op_type == "Loop") node.attributes.push_back(body_of(choices, "body", given, 1 + more, names));
  if (node.op_type == "Scan" || node.op_type == "SequenceMap")
    node.attributes.push_back(body_of(choices, "body", given, more, names));
  if (node.op_type == "If")
    for (const char* branch : {"then_branch", "else_branch"})
      node.attributes.push_back(body_of(choices, branch, 0, static_cast<int>(node.outputs.size()), names));
}

// Values that only other operators make: sequences, shapes, pairs of quantised numbers.
void add_made(Graph& graph, std::vector<std::string>& names) {
  graph.nodes.push_back(simple("Shape", {"x"}, "shape"));
  graph.nodes.push_back(simple("SequenceConstruct", {"v", "v"}, "parts"));
  graph.nodes.push_back(simple("Optional", {"v"}, "held"));
  graph.nodes.push_back(simple("DequantizeLinear", {"q", "f", "u8"}, "pair"));
  graph.nodes.push_back(simple("DequantizeLinear", {"i8w", "f", "i8"}, "weights"));
  for (const char* name : {"shape", "parts", "held", "pair", "weights"}) names.emplace_back(name);
}

imprint::onnx::Model model_of(Choices& choices) {
  imprint::onnx::Model model;
  model.ir_version = 8;
  constexpr std::int64_t kVersions[] = {21, 18, 17, 13, 9, 8};
  model.opsets = {{"", choices.of(kVersions)}, {"com.microsoft", 1}, {"ai.onnx.preview.training", 1}};
  Graph& graph = model.graph;
  graph.initializers = known_values();
  add_input(graph, "x", ElementType::float32, {-1, 4, 4, 4});
  add_input(graph, "v", ElementType::float32, {4});
  add_input(graph, "m", ElementType::float32, {4, 4});
  add_input(graph, "n", ElementType::int64, {4});
  add_input(graph, "q", ElementType::uint8, {1, 300});
  add_input(graph, "c", ElementType::boolean, {});
  std::vector<std::string> names{"x", "v", "m", "n", "q", "c", ""};
  for (const TensorData& value : graph.initializers) names.push_back(value.name);
  add_made(graph, names);
  for (std::size_t i = 0; i < kMostNodes && (i == 0 || !choices.empty()); ++i) {
    Node node;
    const Operator& chosen = choices.of(operators_known());
    node.domain = chosen.domain;
    node.op_type = chosen.name;
    const std::size_t inputs = choices.below(kMostInputs), outputs = 1 + choices.below(3);
    for (std::size_t k = 0; k < inputs; ++k) node.inputs.push_back(choices.of(names));
    for (std::size_t k = 0; k < outputs; ++k)
      node.outputs.push_back("o" + std::to_string(i) + "_" + std::to_string(k));
    std::vector<std::string> outer(names);
    std::erase(outer, std::string());
    add_bodies(choices, node, outer);
    for (std::size_t k = choices.below(kMostAttributes); k > 0; --k)
      if (Attribute one = attribute_of(choices); !node.find_attribute(one.name))
        node.attributes.push_back(std::move(one));
    names.push_back(node.outputs[0]);
    add_output(graph, node.outputs[0]);
    graph.nodes.push_back(std::move(node));
  }
  return model;
}

}  // namespace

void operators(Bytes bytes) {
  Choices choices(bytes);
  const bool named = choices.below(2) != 0;
  import_and_run(model_of(choices), named);
}

}  // namespace imprint::fuzz
