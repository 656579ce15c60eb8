#include "compute/graph/graph.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

namespace imprint {
namespace {

// Everything that makes two nodes compute the same value, given merged inputs.
Hash128 node_key(const GraphNode& node, std::int64_t lifted_position) {
  Hasher hasher;
  hasher.number(node.op).number(node.dtype).number(node.shape.rank());
  for (std::int64_t extent : node.shape.extents()) hasher.number(extent);
  hasher.number(node.inputs.size());
  for (NodeIndex input : node.inputs) hasher.number(input);
  hasher.number(node.ints.size());
  for (std::int64_t value : node.ints) hasher.number(value);
  hasher.number(node.floats.size());
  for (double value : node.floats) hasher.number(value);
  if ((node.op == Op::constant || node.op == Op::custom) && node.source->constant) hasher.bytes(node.source->constant->bytes);
  if (node.op == Op::variable) hasher.number(reinterpret_cast<std::uintptr_t>(node.source->variable.get()));
  if (node.op == Op::input) hasher.text(node.source->label).number(node.source->constant ? lifted_position : -1);
  return hasher.digest();
}

std::vector<const NodeRef*> reachable_in_order(std::span<const Tensor> roots) {
  std::vector<const NodeRef*> found;
  std::unordered_set<const Node*> seen;
  std::vector<const NodeRef*> stack;
  for (const Tensor& root : roots) stack.push_back(&root.node());
  while (!stack.empty()) {
    const NodeRef* node = stack.back();
    stack.pop_back();
    if (!seen.insert(node->get()).second) continue;
    found.push_back(node);
    for (const NodeRef& input : (*node)->inputs) stack.push_back(&input);
  }
  // Creation order is a topological order: a node is made after its inputs.
  std::ranges::sort(found, {}, [](const NodeRef* node) { return (*node)->id; });
  return found;
}

}  // namespace

Result<Graph> build_graph(std::span<const Tensor> roots, std::vector<NodeRef>* lifted) {
  for (const Tensor& root : roots)
    if (!root.ok()) return root.error();

  Graph graph;
  std::unordered_map<const Node*, NodeIndex> index_of;
  std::unordered_map<Hash128, NodeIndex, Hash128Hasher> known;
  for (const NodeRef* reference : reachable_in_order(roots)) {
    const Node& node = **reference;
    GraphNode entry{node.op, node.dtype, node.shape, {}, node.ints, node.floats, *reference};
    if (node.op == Op::stop_gradient) {  // has done its work in autodiff
      index_of.emplace(&node, index_of.at(node.inputs[0].get()));
      continue;
    }
    for (const NodeRef& input : node.inputs) entry.inputs.push_back(index_of.at(input.get()));
    if (lifted && node.op == Op::constant) {
      entry.op = Op::input;
      lifted->push_back(*reference);
    }
    const auto [position, fresh] = known.try_emplace(node_key(entry, lifted ? static_cast<std::int64_t>(lifted->size()) : 0), graph.size());
    if (fresh) graph.nodes.push_back(std::move(entry));
    index_of.emplace(&node, position->second);
  }
  for (const Tensor& root : roots) graph.roots.push_back(index_of.at(root.node().get()));
  return graph;
}

std::vector<std::vector<NodeIndex>> Graph::consumers() const {
  std::vector<std::vector<NodeIndex>> result(nodes.size());
  for (NodeIndex index = 0; index < size(); ++index)
    for (NodeIndex input : (*this)[index].inputs) result[static_cast<std::size_t>(input)].push_back(index);
  return result;
}

Hash128 Graph::hash() const {
  Hasher hasher;
  std::int64_t lifted = 0;
  for (const GraphNode& node : nodes) {
    const Hash128 key = node_key(node, node.op == Op::input && node.source->constant ? ++lifted : 0);
    hasher.number(key.low).number(key.high);
  }
  for (NodeIndex root : roots) hasher.number(root);
  return hasher.digest();
}

std::string node_text(const Graph& graph, NodeIndex index) {
  const GraphNode& node = graph[index];
  std::string text = node.source && !node.source->label.empty() ? node.source->label
                                                               : std::string(op_info(node.op).name) + "#" + std::to_string(index);
  return text + " " + std::string(dtype_name(node.dtype)) + node.shape.text();
}

}  // namespace imprint
