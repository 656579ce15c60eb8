#pragma once
// The nodes that a program needs, as a table in topological order. Equal subexpressions are merged and dead
// ones dropped. No memory, no Vulkan.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "compute/base/at.h"
#include "compute/base/hash.h"
#include "compute/base/result.h"
#include "compute/tensor/node.h"
#include "compute/tensor/tensor.h"

namespace imprint::graph {

// Nodes use the operations of tensors.
using tensor::Node;
using tensor::NodeRef;
using tensor::Op;
using tensor::op_info;
using tensor::OpInfo;
using tensor::OpKind;
using tensor::VariableState;

using NodeIndex = std::int32_t;

// A Node that names its inputs by table index. Inputs always have smaller indices.
struct GraphNode {
  Op op = Op::constant;
  DType dtype = DType::float32;
  Shape shape;
  std::vector<NodeIndex> inputs;
  std::vector<std::int64_t> ints;
  std::vector<double> floats;
  NodeRef source;  // keeps constants, variables and labels alive
  // > 0: number of partial results in which the value is kept, along an extra outermost axis that the op does
  // not have. Each covers the rows of one workgroup's block in a region, or the elements of one workgroup in
  // a column fold. Only region.h makes such nodes; only regions and column folds compute them.
  std::int64_t blocks = 0;
  bool is_snapshot = false;  // an early copy of a variable's content from before the run
  bool has_tails = false;    // a sum whose workgroups also leave partial results of another sum
  // A product that no region takes, such as of places by channels; a pad that has memory (channels_last.h).
  bool stays_tiled = false;

  OpKind kind() const { return op_info(op).kind; }
  std::int64_t element_count() const { return shape.element_count(); }
};

struct Graph {
  std::vector<GraphNode> nodes;
  std::vector<NodeIndex> roots;  // of the tensors given to build_graph, in order

  const GraphNode& operator[](NodeIndex index) const { return nodes[static_cast<std::size_t>(index)]; }
  NodeIndex size() const { return static_cast<NodeIndex>(nodes.size()); }
  std::vector<std::vector<NodeIndex>> consumers() const;
  // The node behind reshapes, which keep the order of elements, so both can share one store.
  NodeIndex without_reshape(NodeIndex index) const;
  NodeIndex without_views(NodeIndex index) const;
  // Per node: whether it shows the program's own memory (variables and constants), through views and casts.
  std::vector<std::uint8_t> own_memory() const;

  // Hash of the structure: ops, shapes, attributes, edges, and which node each root is. Constants count by
  // content, inputs by name, variables by identity.
  Hash128 hash() const;
};

// lifted: if not null, constants become inputs (op `input`, source->constant set) and are listed here in node
// order. Their content then counts neither for merging nor for the hash. A root of int64 is int32 [..., 2]:
// the words of its elements. Errors: the first error that any of the tensors carries.
Result<Graph> build_graph(std::span<const Tensor> roots, std::vector<NodeRef>* lifted = nullptr);

// The node's name in messages and dumps, on one line: its label, or "op#index".
std::string node_text(const Graph& graph, NodeIndex index);

}  // namespace imprint::graph
