#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "compute/graph/graph.h"

namespace imprint::graph {

// The consumers of each node and the slots where they read it: ascending by consumer and slot.
class Uses {
 public:
  struct Use {
    NodeIndex consumer;
    std::int32_t slot;
  };

  explicit Uses(const Graph& graph) : first_(graph.nodes.size() + 1, 0) {
    for (const GraphNode& node : graph.nodes)
      for (NodeIndex input : node.inputs) ++first_[at(input) + 1];
    for (std::size_t i = 1; i < first_.size(); ++i) first_[i] += first_[i - 1];
    uses_.resize(first_.back());
    std::vector<std::size_t> next(first_.begin(), first_.end() - 1);
    for (NodeIndex i = 0; i < graph.size(); ++i)
      for (std::size_t slot = 0; slot < graph[i].inputs.size(); ++slot)
        uses_[next[at(graph[i].inputs[slot])]++] = {i, static_cast<std::int32_t>(slot)};
  }

  std::span<const Use> operator[](NodeIndex node) const {
    return std::span(uses_).subspan(first_[at(node)], first_[at(node) + 1] - first_[at(node)]);
  }

 private:
  std::vector<std::size_t> first_;  // per node: position of its first use
  std::vector<Use> uses_;
};

}  // namespace imprint::graph
