// Splits a region's folds over rows.

#include <algorithm>

#include "compute/graph/regions/region_find.h"

namespace imprint::graph {
namespace {

// Rewrites the graph, with each fold over rows as partial results and their sum.
class Splitter {
 public:
  Splitter(Graph& graph, FusionRequest& request, const RowRegions& found)
      : graph_(graph), request_(request), found_(found) {}

  RegionSplit run() {
    split_.regions = found_.regions;
    split_.notes = found_.notes;
    for (NodeIndex i = 0; i < graph_.size(); ++i) {
      GraphNode node = graph_[i];
      for (NodeIndex& input : node.inputs) input = new_index_[at(input)];
      if (found_.role[at(i)] == RowRole::fold)
        new_index_.push_back(split_fold(i, std::move(node)));
      else
        new_index_.push_back(add(std::move(node), found_.region_of[at(i)], found_.row_axis[at(i)],
                                 found_.group_axis[at(i)], found_.phase[at(i)]));
    }
    for (NodeIndex& root : graph_.roots) root = new_index_[at(root)];
    request_.renumber(new_index_);
    graph_.nodes = std::move(nodes_);
    return std::move(split_);
  }

 private:
  NodeIndex add(GraphNode node, std::int32_t region, int row, int group, std::int32_t phase) {
    nodes_.push_back(std::move(node));
    split_.region_of.push_back(region);
    split_.row_axis.push_back(row);
    split_.group_axis.push_back(group);
    split_.phase.push_back(phase);
    return static_cast<NodeIndex>(nodes_.size()) - 1;
  }

  // node: the fold with renumbered inputs.
  NodeIndex split_fold(NodeIndex index, GraphNode node) {
    const std::int32_t region_index = found_.region_of[at(index)];
    const RegionNodes& region = found_.regions[at(region_index)];
    const std::int32_t phase = found_.phase[at(index)];
    const Shape whole = node.shape;
    const Op combine = node.op == Op::matmul ? Op::reduce_sum : node.op;
    std::vector<std::int64_t> last_axes{0};  // of the partial results, folded last
    int group = -1;
    if (node.op == Op::matmul) {
      group = region.group_class >= 0 ? 0 : -1;
    } else {
      const NodeIndex input = graph_[index].inputs[0];
      const int row = found_.row_axis[at(input)], group_in = found_.group_axis[at(input)];
      const bool folds_groups = group_in >= 0 && std::ranges::find(node.ints, group_in) != node.ints.end();
      group = group_in;
      std::vector<std::int64_t> features;
      for (std::int64_t axis : node.ints)
        if (axis != row && axis != group_in) features.push_back(axis);
      if (!features.empty()) {  // folds each row by itself first
        GraphNode rows = node;
        rows.ints = features;
        rows.shape = nodes_[at(node.inputs[0])].shape;
        for (std::int64_t axis : features) rows.shape[static_cast<int>(axis)] = 1;
        node.inputs = {add(std::move(rows), region_index, row, group_in, phase)};
      }
      node.ints = {row};
      node.shape = nodes_[at(node.inputs[0])].shape;
      node.shape[row] = 1;
      if (folds_groups) last_axes.push_back(group_in + 1);
    }
    Shape partial_shape{region.blocks};
    for (std::int64_t extent : node.shape.extents()) partial_shape.append(extent);
    const DType dtype = node.dtype;
    const NodeRef source = node.source;
    node.shape = partial_shape;
    node.blocks = region.blocks;
    NodeIndex result = add(std::move(node), region_index, -1, group >= 0 ? group + 1 : -1, phase);
    if (region.blocks > 1 || last_axes.size() > 1) {
      GraphNode sum{combine, dtype, partial_shape, {result}, last_axes, {}, source};
      for (std::int64_t axis : last_axes) sum.shape[static_cast<int>(axis)] = 1;
      result = add(std::move(sum), -1, -1, -1, phase + 1);
    }
    return add({Op::reshape, dtype, whole, {result}, {}, {}, source}, -1, -1, -1, phase + 1);
  }

  Graph& graph_;
  FusionRequest& request_;
  const RowRegions& found_;
  RegionSplit split_;
  std::vector<GraphNode> nodes_;
  std::vector<NodeIndex> new_index_;  // per old node
};

}  // namespace

RegionSplit split_regions(Graph& graph, FusionRequest& request, const FusionOptions& options,
                          const RegionLimits& limits) {
  return Splitter(graph, request, find_row_regions(graph, request, options, limits)).run();
}

}  // namespace imprint::graph
