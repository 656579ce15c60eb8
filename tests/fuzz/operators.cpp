// Bytes as calls of ONNX's operators: which one, which inputs, which attributes. Known values of every type
// meet every operator, which changed files seldom reach.

#include <algorithm>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "compute/model/onnx/import.h"
#include "compute/model/onnx/op.h"
#include "tests/fuzz/choices.h"
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

std::vector<TensorData> make_known_values() {
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
const std::vector<TensorData>& known_values() {
  static const std::vector<TensorData> all = make_known_values();
  return all;
}

imprint::onnx::ValueInfo input_of(const std::string& name, ElementType type, const Extents& extents) {
  imprint::onnx::ValueInfo info;
  info.name = name;
  info.is_tensor = true;
  info.type = type;
  info.shape.emplace();
  for (const std::int64_t extent : extents) info.shape->push_back({extent, {}});
  return info;
}

// "x" is [N, 4, 4, 4], whose extents may have names: of rows, of one axis that windows move along, of both.
const std::vector<std::vector<DimensionBound>>& bounds_known() {
  static const DimensionBound rows{"N", 3}, height{"H", 4}, steps{"H", 4, {}, 1, 2}, width{"W", 4, {}, 0};
  static const std::vector<std::vector<DimensionBound>> all{{}, {rows}, {height, width}, {rows, steps}};
  return all;
}
void free_dimensions(imprint::onnx::ValueInfo& x, const std::vector<DimensionBound>& bounds) {
  const auto is_bounded = [&](const char* name) {
    return std::ranges::find(bounds, name, &DimensionBound::name) != bounds.end();
  };
  constexpr std::pair<std::size_t, const char*> kAxes[] = {{0, "N"}, {2, "H"}, {3, "W"}};
  for (const auto& [axis, name] : kAxes)
    if (axis == 0 || is_bounded(name)) (*x.shape)[axis] = {{}, name};
}

const std::vector<imprint::onnx::ValueInfo>& fed_values() {
  using enum ElementType;
  static const std::vector<imprint::onnx::ValueInfo> all{
      input_of("x", float32, {3, 4, 4, 4}), input_of("v", float32, {4}),
      input_of("m", float32, {4, 4}),       input_of("n", int64, {4}),
      input_of("q", uint8, {1, 300}),       input_of("c", boolean, {})};
  return all;
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
  for (std::size_t i = 0; i < count; ++i) {
    if (out.kind == AttributeKind::int_value || out.kind == AttributeKind::ints)
      out.ints.push_back(choices.of(kNumbers));
    else if (out.kind == AttributeKind::float_value || out.kind == AttributeKind::floats)
      out.floats.push_back(choices.of(kReals));
    else if (out.kind == AttributeKind::tensor)
      out.tensors.push_back(choices.of(known_values()));
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
  const std::size_t form = choices.below(4);
  const bool has_nodes = form != 2;
  if (form % 2 == 1) {
    body.nodes.push_back(twice);
    names.push_back(doubled);
  }
  for (int i = 0; i < outputs; ++i) {
    const std::string result = std::string(name) + "result" + std::to_string(i);
    const std::string& given = choices.of(names);
    if (has_nodes) body.nodes.push_back(simple("Identity", {given}, result));
    add_output(body, has_nodes ? result : given);
  }
  return out;
}

void add_bodies(Choices& choices, Node& node, const std::vector<std::string>& names) {
  const int more = static_cast<int>(choices.below(4)), given = static_cast<int>(node.inputs.size());
  const bool loop = node.op_type == "Loop", branch = node.op_type == "If",
             scan = node.op_type == "Scan" || node.op_type == "SequenceMap";
  if (!loop && !scan && !branch) return;
  std::vector<std::string> outer(names);
  std::erase(outer, std::string());
  if (loop) node.attributes.push_back(body_of(choices, "body", given, 1 + more, outer));
  if (scan) node.attributes.push_back(body_of(choices, "body", given, more, outer));
  if (branch)
    for (const char* name : {"then_branch", "else_branch"})
      node.attributes.push_back(body_of(choices, name, 0, static_cast<int>(node.outputs.size()), outer));
}

// Values that only other operators make: sequences, shapes, pairs of quantised numbers.
const std::vector<Node>& makers() {
  static const std::vector<Node> all{
      simple("Shape", {"x"}, "shape"), simple("SequenceConstruct", {"v", "v"}, "parts"),
      simple("Optional", {"v"}, "held"), simple("DequantizeLinear", {"q", "f", "u8"}, "pair"),
      simple("DequantizeLinear", {"i8w", "f", "i8"}, "weights")};
  return all;
}

// All values that nodes may take; "" leaves an input out.
std::vector<std::string> value_names() {
  std::vector<std::string> names;
  for (const imprint::onnx::ValueInfo& fed : fed_values()) names.push_back(fed.name);
  names.emplace_back();
  for (const TensorData& value : known_values()) names.push_back(value.name);
  for (const Node& maker : makers()) names.push_back(maker.outputs[0]);
  return names;
}

void note_used(const Graph& graph, std::set<std::string>& used) {
  for (const Node& node : graph.nodes) {
    used.insert(node.inputs.begin(), node.inputs.end());
    for (const Attribute& attribute : node.attributes)
      for (const Graph& body : attribute.graphs) {
        note_used(body, used);
        for (const imprint::onnx::ValueInfo& output : body.outputs) used.insert(output.name);
      }
  }
}

// Gives the graph what its nodes take, and no more: each value costs time in each execution.
void add_used_values(Graph& graph, const std::vector<DimensionBound>& bounds) {
  std::set<std::string> used;
  note_used(graph, used);
  std::vector<Node> made;
  for (const Node& maker : makers()) {
    if (!used.contains(maker.outputs[0])) continue;
    used.insert(maker.inputs.begin(), maker.inputs.end());
    made.push_back(maker);
  }
  graph.nodes.insert(graph.nodes.begin(), made.begin(), made.end());
  for (const imprint::onnx::ValueInfo& fed : fed_values())
    if (used.contains(fed.name)) graph.inputs.push_back(fed);
  if (used.contains("x")) free_dimensions(graph.inputs[0], bounds);
  for (const TensorData& value : known_values())
    if (used.contains(value.name)) graph.initializers.push_back(value);
}

imprint::onnx::Model model_of(Choices& choices, const std::vector<DimensionBound>& bounds) {
  imprint::onnx::Model model;
  model.ir_version = 8;
  constexpr std::int64_t kVersions[] = {21, 18, 17, 13, 9, 8};
  model.opsets = {{"", choices.of(kVersions)}, {"com.microsoft", 1}, {"ai.onnx.preview.training", 1}};
  Graph& graph = model.graph;
  static const std::vector<std::string> all_names = value_names();
  std::vector<std::string> names = all_names;
  for (std::size_t i = 0; i < kMostNodes && (i == 0 || !choices.empty()); ++i) {
    Node node;
    const Operator& chosen = choices.of(operators_known());
    node.domain = chosen.domain;
    node.op_type = chosen.name;
    const std::size_t inputs = choices.below(kMostInputs), outputs = 1 + choices.below(3);
    for (std::size_t k = 0; k < inputs; ++k) node.inputs.push_back(choices.of(names));
    for (std::size_t k = 0; k < outputs; ++k)
      node.outputs.push_back("o" + std::to_string(i) + "_" + std::to_string(k));
    add_bodies(choices, node, names);
    for (std::size_t k = choices.below(kMostAttributes); k > 0; --k)
      if (Attribute one = attribute_of(choices); !node.find_attribute(one.name))
        node.attributes.push_back(std::move(one));
    names.push_back(node.outputs[0]);
    add_output(graph, node.outputs[0]);
    graph.nodes.push_back(std::move(node));
  }
  add_used_values(graph, bounds);
  return model;
}

}  // namespace

void operators(Bytes bytes) {
  Choices choices(bytes);
  const std::vector<DimensionBound>& bounds = choices.of(bounds_known());
  import_and_run(model_of(choices, bounds), bounds);
}

}  // namespace imprint::fuzz
