#pragma once
// Writes ONNX files: a model as bytes, and a graph node by node.

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "compute/model/onnx/format/proto.h"

namespace imprint::onnx {

// The file of `model`, which parse() reads back. Equal models give equal bytes. Not written: functions,
// attributes of tensors and graphs, `values`, external data.
std::vector<std::byte> serialize(const Model& model);

// Appends nodes to a graph and names what they make.
class GraphWriter {
 public:
  using Extents = std::vector<std::int64_t>;

  // Nodes and constants get no name of these: inputs and outputs to come.
  void reserve(const std::string& name) { reserved_.insert(name); }

  // An axis is a number, or a symbol of a free dimension.
  struct Axis {
    std::int64_t extent = 0;
    std::string symbol = {};
  };
  std::string input(const std::string& name, const std::vector<Axis>& axes,
                    ElementType type = ElementType::float32);
  // `value`, which a node has made or an input is, becomes the output `name`.
  void output(const std::string& name, const std::string& value, ElementType type,
              const std::vector<Axis>& axes);

  // Constants. Each returns its name. Equal lists and numbers are one.
  std::string floats(const std::string& name, const Extents& extents, std::span<const float> values);
  std::string constant(ElementType type, const Extents& extents, std::span<const std::byte> bytes);
  std::string number(float value);
  std::string whole(std::int32_t value);
  std::string longs(const std::vector<std::int64_t>& values);

  // One output, which the call returns the name of.
  std::string node(const std::string& op, const std::vector<std::string>& inputs,
                   std::vector<Attribute> attributes = {});
  static Attribute attribute(const std::string& name, std::int64_t value);
  static Attribute attribute(const std::string& name, const std::vector<std::int64_t>& values);
  static Attribute attribute(const std::string& name, const char* value);

  // ---- shorter forms ----
  std::string reshape(const std::string& x, const std::vector<std::int64_t>& extents);  // 0: as in x
  std::string slice(const std::string& x, std::int64_t axis, std::int64_t begin, std::int64_t count);
  std::string concat(const std::vector<std::string>& parts, std::int64_t axis);  // of one: that one

  const Graph& graph() const& { return graph_; }
  Graph graph() && { return std::move(graph_); }

 private:
  std::string new_name(const std::string& stem);

  Graph graph_;
  std::set<std::string> reserved_;
  std::map<std::string, std::uint64_t> uses_;  // of each stem, for names
  std::map<std::vector<std::int64_t>, std::string> lists_;
  std::map<float, std::string> numbers_;
  std::map<std::int32_t, std::string> wholes_;
};

}  // namespace imprint::onnx
