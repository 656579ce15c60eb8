#include "compute/graph/passes/page_expand.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <set>

#include "compute/base/text.h"
#include "compute/graph/passes/window_products.h"
#include "compute/graph/schedule/cost.h"
#include "compute/graph/strides.h"
#include "compute/tensor/build.h"
#include "compute/tensor/composites/composites.h"
#include "compute/tensor/pages/library_page.h"
#include "compute/tensor/pages/scan_page.h"
#include "compute/tensor/pages/scatter_page.h"

namespace imprint::graph {
namespace {

// Nodes without which a graph stays as it is, so that it is not copied.
bool may_expand(const GraphNode& node) {
  return node.op == Op::page || node.op == Op::cumsum || node.op == Op::linear_recurrence ||
         node.op == Op::scatter_add || node.op == Op::unwindow || node.op == Op::window;
}

class PageExpansion {
 public:
  PageExpansion(Graph& graph, const FusionOptions& options) : graph_(graph), options_(options) {
    if (std::ranges::any_of(graph.nodes, [](const GraphNode& node) {
          return node.op == Op::unwindow || node.op == Op::window;
        }))
      consumers_ = graph.consumers();
    for (const GraphNode& node : graph.nodes)
      if (node.op == Op::page_output && node.ints[0] > 0) of_several_.insert(node.inputs[0]);
  }

  // new_index: receives the new index of each node.
  Result<> run(std::vector<NodeIndex>& new_index) {
    for (NodeIndex i = 0; i < graph_.size(); ++i) {
      GraphNode node = graph_[i];
      if (const auto outputs = outputs_.find(node.inputs.empty() ? -1 : node.inputs[0]);
          node.op == Op::page_output && outputs != outputs_.end()) {
        new_index.push_back(outputs->second[static_cast<std::size_t>(node.ints[0])]);
        continue;
      }
      if (const auto product = window_product_at(i)) {
        const NodeIndex operands[] = {new_index[at(product->left)], new_index[at(product->right)]};
        const Tensor sums =
            sums_over_windows(*product, placeholder(product->left, 0), placeholder(product->right, 1));
        IMPRINT_ASSIGN(const std::vector<NodeIndex> root, splice(std::span(&sums, 1), operands));
        new_index.push_back(root[0]);
        leaves_dead_nodes_ = true;
        continue;
      }
      if (const NodeIndex product = narrow_product_at(i); product >= 0) {
        const GraphNode& old = graph_[product];
        const NodeIndex operands[] = {new_index[at(old.inputs[0])], new_index[at(old.inputs[1])]};
        const Tensor sum = product_over_batches(i, product);
        IMPRINT_ASSIGN(const std::vector<NodeIndex> root, splice(std::span(&sum, 1), operands));
        new_index.push_back(root[0]);
        leaves_dead_nodes_ = true;
        continue;
      }
      for (NodeIndex& input : node.inputs) input = new_index[at(input)];
      const std::vector<Tensor> parts = expansion_of(i);
      if (parts.empty()) {
        nodes_.push_back(std::move(node));
        new_index.push_back(static_cast<NodeIndex>(nodes_.size()) - 1);
        continue;
      }
      if (node.op == Op::scatter_add)  // a further placeholder
        if (const NodeIndex ids = ids_of(graph_[i]); ids >= 0) node.inputs.push_back(new_index[at(ids)]);
      IMPRINT_ASSIGN(std::vector<NodeIndex> roots, splice(parts, node.inputs));
      new_index.push_back(roots[0]);
      if (node.op == Op::page) {
        leaves_dead_nodes_ = leaves_dead_nodes_ || graph_[i].source->page->spares_outputs;
        outputs_.emplace(i, std::move(roots));
      }
    }
    for (NodeIndex& root : graph_.roots) root = new_index[at(root)];
    graph_.nodes = std::move(nodes_);
    return {};
  }
  bool leaves_dead_nodes() const { return leaves_dead_nodes_; }

 private:
  std::optional<WindowProduct> window_product_at(NodeIndex index) const {
    return consumers_.empty() ? std::nullopt : find_window_product(graph_, consumers_, index, options_);
  }

  // Empty: the node stays.
  std::vector<Tensor> expansion_of(NodeIndex index) const {
    const GraphNode& node = graph_[index];
    tensor::PageLimits limits = options_.pages;
    limits.first_output_only = !of_several_.contains(index);
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
      case Op::unwindow:
        return beside_each_other(node);
      default:
        return {};
    }
  }

  // A page that a mixed program computes faster by products of float16; else empty.
  std::vector<Tensor> narrow_products_of(const GraphNode& node) const {
    constexpr std::ptrdiff_t kFew = 8;  // as many products as there are steps are no gain
    const tensor::LibraryPage& page = *node.source->page;
    if (!options_.narrow_products || !page.compose) return {};
    if (page.on_matrix_units && options_.pages.matrix_units) return {};  // by its own kernel
    std::vector<Tensor> parts = page.compose(placeholders(node));
    const Result<Graph> graph = build_graph(parts);
    if (!graph) return {};
    return std::ranges::count(graph->nodes, Op::matmul, &GraphNode::op) <= kFew ? parts
                                                                                : std::vector<Tensor>();
  }

  // The product of which the node is the sum over all batches, if nothing else reads it and it is too narrow
  // for tiles, such as the gradient of a first convolution's weights; else -1.
  NodeIndex narrow_product_at(NodeIndex index) const {
    constexpr std::int64_t kNarrow = 16;  // rows or columns
    const GraphNode& sum = graph_[index];
    if (sum.op != Op::reduce_sum) return -1;
    const NodeIndex product = sum.inputs[0];
    const GraphNode& node = graph_[product];
    const int rank = node.shape.rank();
    if (node.op != Op::matmul || rank < 3 || consumers_.empty() || consumers_[at(product)].size() != 1)
      return -1;
    for (int axis = 0; axis < rank; ++axis) {
      const bool is_folded = std::ranges::find(sum.ints, axis) != sum.ints.end();
      if (axis < rank - 2 ? !is_folded && node.shape[axis] > 1 : is_folded) return -1;
    }
    const std::int64_t rows = node.shape[rank - 2], columns = node.shape[rank - 1];
    return std::min(rows, columns) < kNarrow && rows * columns <= options_.group_fold_outputs &&
                   node.element_count() * fold_length(graph_, product) >= options_.product_operations
               ? product
               : -1;
  }

  // Products whose terms are those of several batches, one after the other, and their sum: as many as
  // workgroups fill the device. One that suits tiles is split later (product_split.h).
  Tensor product_over_batches(NodeIndex index, NodeIndex product) const {
    const GraphNode& node = graph_[product];
    const int rank = node.shape.rank();
    const std::int64_t rows = node.shape[rank - 2], columns = node.shape[rank - 1],
                       terms = fold_length(graph_, product), batch = node.element_count() / (rows * columns);
    std::int64_t parts = 1;
    const bool suits_tiles = fills_tiles(rows, columns, batch * terms, options_);
    while (!suits_tiles && batch % (2 * parts) == 0 && 2 * parts * rows * columns <= 4 * options_.fill_groups)
      parts *= 2;
    const std::int64_t own = batch / parts;
    const Tensor left = permute(reshape(placeholder(node.inputs[0], 0), {parts, own, rows, terms}),
                                {0, 2, 1, 3}),
                 right = reshape(placeholder(node.inputs[1], 1), {parts, own * terms, columns});
    return reshape(sum(matmul(reshape(left, {parts, rows, own * terms}), right), {0}), graph_[index].shape);
  }

  // Windows that touch but do not overlap, as those of most pools: a view, and zeros after the last.
  std::vector<Tensor> beside_each_other(const GraphNode& node) const {
    const auto axis = static_cast<int>(node.ints[0]);
    const std::int64_t size = node.ints[1], stride = node.ints[2], dilation = node.ints[3];
    if (size != stride || dilation != 1 || node.element_count() == 0) return {};
    const Tensor windows = placeholders(node)[0];
    Shape joined = node.shape;
    joined[axis] = windows.extent(axis) * size;
    std::vector<std::pair<std::int64_t, std::int64_t>> rest(at(joined.rank()));
    rest[at(axis)].second = node.shape[axis] - joined[axis];
    const Tensor side_by_side = reshape(movedim(windows, -1, axis + 1), joined);
    return {rest[at(axis)].second > 0 ? pad(side_by_side, rest, 0) : side_by_side};
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
    for (std::size_t slot = 0; slot < node.inputs.size(); ++slot)
      inputs.push_back(placeholder(node.inputs[slot], slot));
    return inputs;
  }
  Tensor placeholder(NodeIndex index, std::size_t slot) const {
    return imprint::input(text(slot), graph_[index].shape, graph_[index].dtype);
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
  std::set<NodeIndex> of_several_;                       // pages of which more than the first output is read
  std::map<NodeIndex, std::vector<NodeIndex>> outputs_;  // of replaced pages, by their old index
  std::vector<std::vector<NodeIndex>> consumers_;        // none: the graph has no windows
  bool leaves_dead_nodes_ = false;
};

// The pads that a sum adds up, if it adds up nothing else; else empty.
std::vector<NodeIndex> pads_of(const Graph& graph, NodeIndex sum) {
  constexpr std::size_t kMost = 8;
  std::vector<NodeIndex> pads, rest{sum};
  while (!rest.empty()) {
    const GraphNode& node = graph[rest.back()];
    if (node.op == Op::pad && node.floats[0] == 0)
      pads.push_back(rest.back());
    else if (node.op != Op::add || pads.size() + rest.size() > kMost)
      return {};
    rest.pop_back();
    if (node.op == Op::add) rest.insert(rest.end(), node.inputs.begin(), node.inputs.end());
  }
  return pads;
}

// The value of which pads place parts beside each other again where they were, such as the gradients of
// query, key and value that one kernel leaves as rows of one matrix; else -1. stored: nodes that are no
// views.
NodeIndex whole_of(const Graph& graph, const std::vector<std::uint8_t>& stored, NodeIndex sum) {
  const Shape& shape = graph[sum].shape;
  std::vector<NodeIndex> pads = pads_of(graph, sum);
  if (pads.size() < 2) return -1;
  const auto places = [&](int axis) {
    return graph[pads[0]].ints[2 * at(axis)] + graph[pads[0]].ints[2 * at(axis) + 1] > 0;
  };
  int axis = 0;
  while (axis < shape.rank() && !places(axis)) ++axis;
  if (axis == shape.rank()) return -1;
  const auto before = [&](NodeIndex pad) { return graph[pad].ints[2 * at(axis)]; };
  std::ranges::sort(pads, {}, before);
  const auto whole = row_major_strides(shape);
  NodeIndex memory = -1;
  std::int64_t end = 0;
  for (const NodeIndex pad : pads) {
    const NodeIndex part = graph[pad].inputs[0];
    const std::optional<Strides> strides = strides_of(graph, stored, part);
    if (!strides || (memory >= 0 && strides->memory != memory) || before(pad) != end ||
        strides->start != end * whole[at(axis)])
      return -1;
    memory = strides->memory;
    for (int other = 0; other < shape.rank(); ++other) {
      const std::int64_t extent = graph[part].shape[other];
      if ((other != axis && extent != shape[other]) ||
          (extent > 1 && strides->axis[at(other)] != whole[at(other)]))
        return -1;
    }
    end += graph[part].shape[axis];
  }
  const bool is_all = end == shape[axis] && graph[memory].element_count() == graph[sum].element_count();
  return is_all && graph[memory].dtype == graph[sum].dtype ? memory : -1;
}

// Whether there were such values. Those that nothing reads any more stay.
bool take_whole_values(Graph& graph) {
  std::vector<std::uint8_t> stored;
  for (const GraphNode& node : graph.nodes) stored.push_back(node.kind() != OpKind::view);
  bool found = false;
  for (NodeIndex i = 0; i < graph.size(); ++i) {
    GraphNode& node = graph.nodes[at(i)];
    if (node.op != Op::add) continue;
    const NodeIndex whole = whole_of(graph, stored, i);
    if (whole < 0) continue;
    found = true;
    stored[at(i)] = 0;
    node = {Op::reshape, node.dtype, node.shape, {whole}, {}, {}, node.source};
  }
  return found;
}

// Drops what neither roots nor the request need.
void drop_dead_nodes(Graph& graph, FusionRequest& request) {
  std::vector<std::uint8_t> alive(graph.nodes.size(), 0);
  const auto keep = [&](NodeIndex node) {
    if (node >= 0) alive[at(node)] = 1;
  };
  for (NodeIndex root : graph.roots) keep(root);
  for (NodeIndex input : request.inputs) keep(input);
  for (const GraphOutput& output : request.outputs) keep(output.node);
  for (const GraphUpdate& update : request.updates)
    for (NodeIndex node : {update.value, update.rows, update.own_rows}) keep(node);
  for (NodeIndex i = graph.size() - 1; i >= 0; --i)
    if (alive[at(i)]) std::ranges::for_each(graph[i].inputs, keep);
  std::vector<NodeIndex> new_index(graph.nodes.size(), -1);
  std::vector<GraphNode> nodes;
  for (NodeIndex i = 0; i < graph.size(); ++i) {
    if (!alive[at(i)]) continue;
    GraphNode node = std::move(graph.nodes[at(i)]);
    for (NodeIndex& input : node.inputs) input = new_index[at(input)];
    new_index[at(i)] = static_cast<NodeIndex>(nodes.size());
    nodes.push_back(std::move(node));
  }
  graph.nodes = std::move(nodes);
  for (NodeIndex& root : graph.roots) root = new_index[at(root)];
  request.renumber(new_index);
}

}  // namespace

Result<> expand_pages(Graph& graph, FusionRequest& request, const FusionOptions& options) {
  if (std::ranges::none_of(graph.nodes, may_expand)) return {};
  std::vector<NodeIndex> new_index;
  PageExpansion expansion(graph, options);
  IMPRINT_CHECK(expansion.run(new_index));
  request.renumber(new_index);
  const bool has_whole = take_whole_values(graph);
  if (has_whole || expansion.leaves_dead_nodes()) drop_dead_nodes(graph, request);
  return {};
}

}  // namespace imprint::graph
