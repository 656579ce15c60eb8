#include "compute/graph/passes/set_apart.h"

#include <vector>

#include "compute/graph/number_set.h"

namespace imprint::graph {

std::size_t set_apart(const Graph& graph, const Schedule& schedule, std::span<const std::int32_t> tasks,
                      std::unordered_set<const Node*>& apart) {
  const std::size_t before = apart.size();
  for (std::int32_t t : tasks) {
    const Task& task = schedule.tasks[at(t)];
    std::vector<NodeIndex> stack;
    NumberSet own, seen;
    for (const std::vector<NodeIndex>* nodes : {&task.members, &task.tails, &task.folds})
      for (NodeIndex node : *nodes) {
        own.insert(node);
        stack.push_back(node);
      }
    while (!stack.empty()) {
      const NodeIndex node = stack.back();
      stack.pop_back();
      if (!seen.insert(node) || (schedule.materialized[at(node)] && !own.contains(node))) continue;
      const GraphNode& entry = graph[node];
      const bool is_literal = entry.op == Op::full || entry.op == Op::iota;
      if (entry.kind() != OpKind::view && entry.kind() != OpKind::leaf && !is_literal)
        apart.insert(entry.source.get());
      stack.insert(stack.end(), entry.inputs.begin(), entry.inputs.end());
    }
  }
  return apart.size() - before;
}

}  // namespace imprint::graph
