#include "compute/graph/page_expand.h"

#include <algorithm>
#include <charconv>
#include <map>

#include "compute/base/text.h"
#include "compute/tensor/build.h"
#include "compute/tensor/library_page.h"
#include "compute/tensor/scan_page.h"
#include "compute/tensor/scatter_page.h"

namespace imprint::graph {
namespace {

class PageExpansion {
 public:
  PageExpansion(Graph& graph, const FusionOptions& options) : graph_(graph), options_(options) {}

  // new_index: receives the new index of each node.
  Result<> run(std::vector<NodeIndex>& new_index) {
    for (NodeIndex i = 0; i < graph_.size(); ++i) {
      GraphNode node = graph_[i];
      if (const auto outputs = outputs_.find(node.inputs.empty() ? -1 : node.inputs[0]);
          node.op == Op::page_output && outputs != outputs_.end()) {
        new_index.push_back(outputs->second[static_cast<std::size_t>(node.ints[0])]);
        continue;
      }
      for (NodeIndex& input : node.inputs) input = new_index[at(input)];
      const std::vector<Tensor> parts = expansion_of(graph_[i]);
      if (parts.empty()) {
        nodes_.push_back(std::move(node));
        new_index.push_back(static_cast<NodeIndex>(nodes_.size()) - 1);
        continue;
      }
      if (node.op == Op::scatter_add)  // a further placeholder
        if (const NodeIndex ids = ids_of(graph_[i]); ids >= 0) node.inputs.push_back(new_index[at(ids)]);
      IMPRINT_ASSIGN(std::vector<NodeIndex> roots, splice(parts, node.inputs));
      new_index.push_back(roots[0]);
      if (node.op == Op::page) outputs_.emplace(i, std::move(roots));
    }
    for (NodeIndex& root : graph_.roots) root = new_index[at(root)];
    graph_.nodes = std::move(nodes_);
    return {};
  }

 private:
  // Empty: the node stays.
  std::vector<Tensor> expansion_of(const GraphNode& node) const {
    const tensor::PageLimits& limits = options_.pages;
    if (options_.expand == Expand::compose) {
      const bool composes = node.op == Op::page && node.source->page->compose;
      return composes ? node.source->page->compose(placeholders(node)) : std::vector<Tensor>();
    }
    switch (node.op) {
      case Op::page:
        if (!node.source->page->expand) return {};
        if (std::vector<Tensor> narrow = narrow_products_of(node); !narrow.empty()) return narrow;
        return node.source->page->expand(placeholders(node), limits);
      case Op::cumsum:
      case Op::linear_recurrence: {
        const tensor::ScanOptions scan{static_cast<int>(node.ints[0]), node.ints[1] != 0, node.ints[2] != 0};
        if (!tensor::is_long_scan(node.shape, scan.axis, limits)) return {};
        return tensor::scan_on_device(
            node.op == Op::cumsum ? tensor::ScanKind::sum : tensor::ScanKind::recurrence, placeholders(node),
            scan, limits);
      }
      case Op::scatter_add: {
        const int axis = static_cast<int>(node.ints[0]);
        if (!tensor::is_large_scatter(node.shape, graph_[node.inputs[1]].shape, axis)) return {};
        const std::vector<Tensor> inputs = placeholders(node);
        const NodeIndex ids = ids_of(node);
        const Tensor along =
            ids < 0
                ? Tensor()
                : reshape(imprint::input(std::to_string(node.inputs.size()), graph_[ids].shape, DType::int32),
                          {graph_[ids].element_count()});
        return {
            tensor::scatter_on_device(Scatter::add, inputs[0], axis, inputs[1], along, inputs[2], limits)};
      }
      default:
        return {};
    }
  }

  // A page that a mixed program computes faster by products of float16; else empty.
  std::vector<Tensor> narrow_products_of(const GraphNode& node) const {
    constexpr std::ptrdiff_t kFew = 8;  // as many products as there are steps are no gain
    if (!options_.narrow_products || !node.source->page->compose) return {};
    std::vector<Tensor> parts = node.source->page->compose(placeholders(node));
    const Result<Graph> graph = build_graph(parts);
    if (!graph) return {};
    return std::ranges::count(graph->nodes, Op::matmul, &GraphNode::op) <= kFew ? parts
                                                                                : std::vector<Tensor>();
  }

  // The value that a scatter's indices are along the axis, if they repeat along all others, as in the
  // gradient of take; else -1.
  NodeIndex ids_of(const GraphNode& scatter) const {
    const int axis = static_cast<int>(scatter.ints[0]);
    NodeIndex index = scatter.inputs[1];
    if (graph_[index].op == Op::expand) index = graph_[index].inputs[0];
    const Shape& shape = graph_[index].shape;
    return shape[axis] == graph_[scatter.inputs[1]].shape[axis] && shape.element_count() == shape[axis]
               ? index
               : -1;
  }

  // Stand for the node's inputs; their labels are the inputs' positions.
  std::vector<Tensor> placeholders(const GraphNode& node) const {
    std::vector<Tensor> inputs;
    for (std::size_t slot = 0; slot < node.inputs.size(); ++slot) {
      const GraphNode& input = graph_[node.inputs[slot]];
      inputs.push_back(imprint::input(text(slot), input.shape, input.dtype));
    }
    return inputs;
  }

  // Adds the nodes of an expansion and returns those of its roots. inputs: what the placeholders stand for.
  Result<std::vector<NodeIndex>> splice(std::span<const Tensor> roots, std::span<const NodeIndex> inputs) {
    IMPRINT_ASSIGN(Graph part, build_graph(roots));
    std::vector<NodeIndex> renumbered;
    IMPRINT_CHECK(PageExpansion(part, options_).run(renumbered));
    std::vector<NodeIndex> index;
    for (GraphNode& node : part.nodes) {
      if (node.op == Op::input) {
        std::size_t slot = 0;
        const std::string& label = node.source->label;
        std::from_chars(label.data(), label.data() + label.size(), slot);
        index.push_back(inputs[slot]);
        continue;
      }
      for (NodeIndex& input : node.inputs) input = index[at(input)];
      nodes_.push_back(std::move(node));
      index.push_back(static_cast<NodeIndex>(nodes_.size()) - 1);
    }
    std::vector<NodeIndex> result;
    for (NodeIndex root : part.roots) result.push_back(index[at(root)]);
    return result;
  }

  Graph& graph_;
  const FusionOptions& options_;
  std::vector<GraphNode> nodes_;
  std::map<NodeIndex, std::vector<NodeIndex>> outputs_;  // of replaced pages, by their old index
};

}  // namespace

Result<> expand_pages(Graph& graph, FusionRequest& request, const FusionOptions& options) {
  std::vector<NodeIndex> new_index;
  IMPRINT_CHECK(PageExpansion(graph, options).run(new_index));
  request.renumber(new_index);
  return {};
}

}  // namespace imprint::graph
