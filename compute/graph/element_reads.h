#pragma once
// Which memory the evaluation of one element of a value reads.

#include <algorithm>
#include <utility>
#include <vector>

#include "compute/graph/graph.h"
#include "compute/graph/schedule.h"

namespace imprint::graph {

// Walks from the inputs of `index` back to the nodes for which ends(node) is true: those are read, all others
// are evaluated. keeps(node): whether an element of the node reads its inputs only at its own linear index. A
// read is aligned if every node on every path to it keeps the index. Returns each node once, in unspecified
// order.
template <class Keeps, class Ends>
std::vector<Read> reads_by_element(const Graph& graph, NodeIndex index, const Keeps& keeps,
                                   const Ends& ends) {
  std::vector<Read> reads;
  std::vector<std::pair<NodeIndex, bool>> stack, seen;
  const auto visit_inputs = [&](NodeIndex node, bool aligned) {
    const bool stays = aligned && keeps(node);
    for (NodeIndex input : graph[node].inputs) stack.emplace_back(input, stays);
  };
  visit_inputs(index, true);
  while (!stack.empty()) {
    const auto [node, aligned] = stack.back();
    stack.pop_back();
    if (std::ranges::find(seen, std::pair(node, aligned)) != seen.end()) continue;
    seen.emplace_back(node, aligned);
    if (!ends(node)) {
      visit_inputs(node, aligned);
      continue;
    }
    const auto known = std::ranges::find(reads, node, &Read::node);
    if (known == reads.end())
      reads.push_back({node, aligned});
    else
      known->aligned = known->aligned && aligned;
  }
  return reads;
}

}  // namespace imprint::graph
