#include "compute/model/onnx/format/write.h"

#include <protozero/pbf_writer.hpp>
#include <utility>

#include "compute/model/onnx/format/fields.h"

namespace imprint::onnx {
namespace {

using namespace field;
using protozero::pbf_writer;

void write(const TensorData& tensor, pbf_writer& out) {
  for (const std::int64_t extent : tensor.extents) out.add_int64(kExtents, extent);
  out.add_int32(kElementType, static_cast<std::int32_t>(tensor.type));
  out.add_string(kTensorName, tensor.name);
  out.add_bytes(kRaw, reinterpret_cast<const char*>(tensor.bytes.data()), tensor.bytes.size());
}

void write(const Attribute& attribute, pbf_writer& out) {
  out.add_string(kAttributeName, attribute.name);
  const bool single = attribute.kind < AttributeKind::floats;
  for (const float value : attribute.floats) out.add_float(single ? kFloat : kFloats, value);
  for (const std::int64_t value : attribute.ints) out.add_int64(single ? kInt : kInts, value);
  for (const std::string& value : attribute.strings) out.add_string(single ? kString : kStrings, value);
  out.add_enum(kKind, static_cast<std::int32_t>(attribute.kind));
}

void write(const Node& node, pbf_writer& out) {
  for (const std::string& name : node.inputs) out.add_string(kNodeInput, name);
  for (const std::string& name : node.outputs) out.add_string(kNodeOutput, name);
  if (!node.name.empty()) out.add_string(kNodeName, node.name);
  out.add_string(kOpType, node.op_type);
  for (const Attribute& attribute : node.attributes) {
    pbf_writer part(out, kAttribute);
    write(attribute, part);
  }
  if (!node.domain.empty()) out.add_string(kDomain, node.domain);
}

void write(const ValueInfo& value, pbf_writer& out) {
  out.add_string(1, value.name);
  if (!value.is_tensor) return;
  pbf_writer type(out, 2);
  pbf_writer tensor(type, 1);
  tensor.add_int32(1, static_cast<std::int32_t>(value.type));
  if (!value.shape) return;
  pbf_writer shape(tensor, 2);
  for (const Dimension& dimension : *value.shape) {
    pbf_writer part(shape, 1);
    if (dimension.value)
      part.add_int64(1, *dimension.value);
    else if (!dimension.symbol.empty())
      part.add_string(2, dimension.symbol);
  }
}

template <class T>
void write_each(const std::vector<T>& parts, protozero::pbf_tag_type tag, pbf_writer& out) {
  for (const T& part : parts) {
    pbf_writer message(out, tag);
    write(part, message);
  }
}

void write(const Graph& graph, pbf_writer& out) {
  write_each(graph.nodes, kNode, out);
  out.add_string(kGraphName, graph.name);
  write_each(graph.initializers, kInitializer, out);
  write_each(graph.inputs, kInput, out);
  write_each(graph.outputs, kOutput, out);
}

std::vector<Dimension> dimensions_of(const std::vector<GraphWriter::Axis>& axes) {
  std::vector<Dimension> dimensions;
  for (const GraphWriter::Axis& axis : axes) {
    Dimension& dimension = dimensions.emplace_back();
    if (axis.symbol.empty())
      dimension.value = axis.extent;
    else
      dimension.symbol = axis.symbol;
  }
  return dimensions;
}

template <class T>
TensorData tensor_of(std::string name, ElementType type, std::vector<std::int64_t> extents,
                     std::span<const T> values) {
  const auto bytes = std::as_bytes(values);
  return {.name = std::move(name),
          .type = type,
          .extents = std::move(extents),
          .bytes = SharedBytes(std::vector<std::byte>(bytes.begin(), bytes.end())),
          .strings = {},
          .external = {}};
}

}  // namespace

std::vector<std::byte> serialize(const Model& model) {
  std::string file;
  pbf_writer out(file);
  out.add_int64(kIrVersion, model.ir_version);
  if (!model.producer.empty()) out.add_string(kProducer, model.producer);
  {
    pbf_writer graph(out, kGraph);
    write(model.graph, graph);
  }
  for (const auto& [domain, version] : model.opsets) {
    pbf_writer set(out, kOpset);
    if (!domain.empty()) set.add_string(kKey, domain);
    set.add_int64(kValue, version);
  }
  for (const auto& [key, value] : model.metadata) {
    pbf_writer entry(out, kMetadata);
    entry.add_string(kKey, key);
    entry.add_string(kValue, value);
  }
  const auto bytes = std::as_bytes(std::span<const char>(file));
  return {bytes.begin(), bytes.end()};
}

std::string GraphWriter::input(const std::string& name, const std::vector<Axis>& axes, ElementType type) {
  graph_.inputs.push_back({.name = name, .is_tensor = true, .type = type, .shape = dimensions_of(axes)});
  return name;
}

void GraphWriter::output(const std::string& name, const std::string& value, ElementType type,
                         const std::vector<Axis>& axes) {
  graph_.nodes.push_back({.name = name,
                          .op_type = "Identity",
                          .domain = {},
                          .inputs = {value},
                          .outputs = {name},
                          .attributes = {}});
  graph_.outputs.push_back({.name = name, .is_tensor = true, .type = type, .shape = dimensions_of(axes)});
}

std::string GraphWriter::floats(const std::string& name, const Extents& extents,
                                std::span<const float> values) {
  graph_.initializers.push_back(tensor_of(name, ElementType::float32, extents, values));
  return name;
}

std::string GraphWriter::new_name(const std::string& stem) {
  std::string name;
  do name = stem + "_" + std::to_string(uses_[stem]++);
  while (reserved_.contains(name));
  return name;
}

std::string GraphWriter::constant(ElementType type, const Extents& extents,
                                  std::span<const std::byte> bytes) {
  return graph_.initializers.emplace_back(tensor_of(new_name("constant"), type, extents, bytes)).name;
}

std::string GraphWriter::number(float value) {
  const auto found = numbers_.find(value);
  if (found != numbers_.end()) return found->second;
  return numbers_[value] = floats(new_name("number"), {}, std::span(&value, 1));
}

std::string GraphWriter::whole(std::int32_t value) {
  const auto [found, is_new] = wholes_.try_emplace(value);
  if (is_new) found->second = constant(ElementType::int32, {}, std::as_bytes(std::span(&value, 1)));
  return found->second;
}

std::string GraphWriter::longs(const std::vector<std::int64_t>& values) {
  const auto [found, is_new] = lists_.try_emplace(values);
  if (is_new) {
    found->second = new_name("list");
    graph_.initializers.push_back(tensor_of(found->second, ElementType::int64,
                                            {static_cast<std::int64_t>(values.size())},
                                            std::span<const std::int64_t>(values)));
  }
  return found->second;
}

std::string GraphWriter::node(const std::string& op, const std::vector<std::string>& inputs,
                              std::vector<Attribute> attributes) {
  const std::string name = new_name(op);
  graph_.nodes.push_back({.name = name,
                          .op_type = op,
                          .domain = {},
                          .inputs = inputs,
                          .outputs = {name},
                          .attributes = std::move(attributes)});
  return name;
}

Attribute GraphWriter::attribute(const std::string& name, std::int64_t value) {
  Attribute made{.name = name, .kind = AttributeKind::int_value};
  made.ints = {value};
  return made;
}

Attribute GraphWriter::attribute(const std::string& name, const std::vector<std::int64_t>& values) {
  Attribute made{.name = name, .kind = AttributeKind::ints};
  made.ints = values;
  return made;
}

Attribute GraphWriter::attribute(const std::string& name, const char* value) {
  Attribute made{.name = name, .kind = AttributeKind::string_value};
  made.strings = {value};
  return made;
}

std::string GraphWriter::reshape(const std::string& x, const std::vector<std::int64_t>& extents) {
  return node("Reshape", {x, longs(extents)});
}

std::string GraphWriter::slice(const std::string& x, std::int64_t axis, std::int64_t begin,
                               std::int64_t count) {
  return node("Slice", {x, longs({begin}), longs({begin + count}), longs({axis})});
}

std::string GraphWriter::concat(const std::vector<std::string>& parts, std::int64_t axis) {
  return parts.size() == 1 ? parts[0] : node("Concat", parts, {attribute("axis", axis)});
}

}  // namespace imprint::onnx
