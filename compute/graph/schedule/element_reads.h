#pragma once
// Which memory the evaluation of one element of a value reads.

#include <cstdint>
#include <utility>
#include <vector>

#include "compute/graph/graph.h"
#include "compute/graph/number_set.h"
#include "compute/graph/schedule/schedule.h"

namespace imprint::graph {

// Walks from the inputs of `index` back to the nodes for which ends(node) is true: those are read, all others
// are evaluated. keeps(node): whether an element of the node reads its inputs only at its own linear index. A
// read is aligned if every node on every path to it keeps the index. Returns each node once, in unspecified
// order. Linear in the nodes and edges of the walk: each node is visited at most twice, as aligned and not.
template <class Keeps, class Ends>
std::vector<Read> reads_by_element(const Graph& graph, NodeIndex index, const Keeps& keeps, const Ends& ends,
                                   std::int64_t* steps = nullptr) {
  const auto key = [](NodeIndex node, bool aligned) { return 2 * std::int64_t{node} + (aligned ? 1 : 0); };
  std::vector<Read> reads;
  std::vector<std::pair<NodeIndex, bool>> stack;
  NumberSet seen;
  const auto visit_inputs = [&](NodeIndex node, bool aligned) {
    const bool stays = aligned && keeps(node);
    for (NodeIndex input : graph[node].inputs) stack.emplace_back(input, stays);
    if (steps) *steps += static_cast<std::int64_t>(graph[node].inputs.size());
  };
  visit_inputs(index, true);
  while (!stack.empty()) {
    const auto [node, aligned] = stack.back();
    stack.pop_back();
    if (!seen.insert(key(node, aligned))) continue;
    if (!ends(node))
      visit_inputs(node, aligned);
    else if (!seen.contains(key(node, !aligned)))
      reads.push_back({node, true});
  }
  for (Read& read : reads) read.aligned = !seen.contains(key(read.node, false));
  return reads;
}

}  // namespace imprint::graph
