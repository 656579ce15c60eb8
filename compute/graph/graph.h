#pragma once
// The nodes that a program needs, as a table in topological order: equal subexpressions merged, dead ones
// gone. No memory, no Vulkan.

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

// The operations of tensors, which nodes are made of.
using tensor::Node;
using tensor::NodeRef;
using tensor::Op;
using tensor::op_info;
using tensor::OpInfo;
using tensor::OpKind;
using tensor::VariableState;

using NodeIndex = std::int32_t;

// A Node with its inputs named by table index. Inputs always have smaller indices.
struct GraphNode {
  Op op = Op::constant;
  DType dtype = DType::float32;
  Shape shape;
  std::vector<NodeIndex> inputs;
  std::vector<std::int64_t> ints;
  std::vector<double> floats;
  NodeRef source;  // keeps constants, variables and labels alive
  // > 0: the value is kept as this many partial results, along an outermost axis that the op itself does not
  // have: its fold ends at the borders of the blocks of rows that a region's workgroups take, or of the
  // elements of a column fold's. Made by region.h alone, computed by those alone.
  std::int64_t blocks = 0;
  bool is_snapshot = false;  // a copy of a variable's content from before the run, taken early
  bool has_tails = false;    // a sum whose workgroups leave partial results of another sum

  OpKind kind() const { return op_info(op).kind; }
  std::int64_t element_count() const { return shape.element_count(); }
};

struct Graph {
  std::vector<GraphNode> nodes;
  std::vector<NodeIndex> roots;  // of the tensors given to build_graph, in order

  const GraphNode& operator[](NodeIndex index) const { return nodes[static_cast<std::size_t>(index)]; }
  NodeIndex size() const { return static_cast<NodeIndex>(nodes.size()); }
  std::vector<std::vector<NodeIndex>> consumers() const;

  // Of the structure: ops, shapes, attributes, edges and which node each root is; constants count by content,
  // inputs by name, variables by identity.
  Hash128 hash() const;
};

// lifted: where given, constants become inputs (op `input`, source->constant set) and are listed here in the
// order of their nodes; their content then counts neither for merging nor for the hash. Errors: the first
// error that any of the tensors carries.
Result<Graph> build_graph(std::span<const Tensor> roots, std::vector<NodeRef>* lifted = nullptr);

// The element's name in messages and dumps: its label, or "op#index"; on one line.
std::string node_text(const Graph& graph, NodeIndex index);

}  // namespace imprint::graph
