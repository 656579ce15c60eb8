#pragma once
// Rewrites a graph whose folds are split after split_regions. The nodes that replace an old node keep its
// region, axes and phase.

#include <utility>
#include <vector>

#include "compute/graph/graph.h"
#include "compute/graph/schedule/fusion_request.h"
#include "compute/graph/schedule/region.h"

namespace imprint::graph {

class SplitRewriter {
 public:
  SplitRewriter(Graph& graph, FusionRequest& request, RegionSplit& split)
      : graph_(graph), request_(request), split_(split) {}

  // rewrite(old, node) returns the new index of an old node; `node` is the old node with renumbered inputs.
  // It calls add() once to keep the node, or several times to split it.
  template <class Rewrite>
  void run(const Rewrite& rewrite) {
    for (NodeIndex i = 0; i < graph_.size(); ++i) {
      GraphNode node = graph_[i];
      for (NodeIndex& input : node.inputs) input = new_index_[static_cast<std::size_t>(input)];
      new_index_.push_back(rewrite(i, std::move(node)));
    }
    for (NodeIndex& root : graph_.roots) root = new_index_[static_cast<std::size_t>(root)];
    request_.renumber(new_index_);
    graph_.nodes = std::move(nodes_);
    split_.region_of = std::move(result_.region_of);
    split_.row_axis = std::move(result_.row_axis);
    split_.group_axis = std::move(result_.group_axis);
    split_.phase = std::move(result_.phase);
  }

  NodeIndex add(GraphNode node, NodeIndex old) {
    nodes_.push_back(std::move(node));
    const auto copy = [&](const std::vector<std::int32_t>& from, std::vector<std::int32_t>& to) {
      if (!from.empty()) to.push_back(from[static_cast<std::size_t>(old)]);
    };
    copy(split_.region_of, result_.region_of);
    copy(split_.row_axis, result_.row_axis);
    copy(split_.group_axis, result_.group_axis);
    copy(split_.phase, result_.phase);
    return static_cast<NodeIndex>(nodes_.size()) - 1;
  }

 private:
  Graph& graph_;
  FusionRequest& request_;
  RegionSplit& split_;
  RegionSplit result_;
  std::vector<GraphNode> nodes_;
  std::vector<NodeIndex> new_index_;  // per old node
};

}  // namespace imprint::graph
