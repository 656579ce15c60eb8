#include "compute/graph/passes/product_split.h"

#include <algorithm>

#include "compute/graph/schedule/cost.h"
#include "compute/graph/schedule/product.h"
#include "compute/graph/schedule/split_rewriter.h"

namespace imprint::graph {
namespace {

class ProductSplitter {
 public:
  ProductSplitter(Graph& graph, FusionRequest& request, RegionSplit& split, const FusionOptions& options)
      : graph_(graph), split_(split), options_(options), rewriter_(graph, request, split) {}

  void run() {
    for (NodeIndex i = 0; i < graph_.size(); ++i) stretches_.push_back(stretch_count(i));
    if (std::ranges::all_of(stretches_, [](std::int64_t count) { return count == 1; })) return;
    rewriter_.run([&](NodeIndex old, GraphNode node) {
      return stretches_[at(old)] > 1 ? add_split(old, node) : rewriter_.add(std::move(node), old);
    });
  }

 private:
  std::int64_t stretch_count(NodeIndex index) const {
    const GraphNode& node = graph_[index];
    if (split_.region_of[at(index)] >= 0 || node.blocks > 0 || !wants_tiles(graph_, index, options_) ||
        node.shape.rank() == Shape::kMaxRank)
      return 1;
    if (patches_are_faster(graph_, index, options_)) return 1;
    const bool halves = graph_[node.inputs[0]].dtype == DType::float16;
    const ProductShape shape = product_shape(graph_, index);
    const Stretched kind = is_narrow(shape)                    ? Stretched::narrow
                           : !options_.matrix_units || !halves ? Stretched::tiles
                           : node.stays_tiled                  ? Stretched::places
                                                               : Stretched::on_matrix_units;
    return product_stretches(shape, options_, kind);
  }

  bool is_narrow(const ProductShape& shape) const {
    return !fills_tiles(shape.rows, shape.columns, 1, options_);
  }

  // node: the product with renumbered inputs. Stretches become an outermost axis. A separate product handles
  // the terms after the last whole stretch.
  NodeIndex add_split(NodeIndex old, const GraphNode& node) {
    const auto made = [&](Op op, DType dtype, Shape shape, std::vector<NodeIndex> inputs,
                          std::vector<std::int64_t> ints) {
      return rewriter_.add({op, dtype, std::move(shape), std::move(inputs), std::move(ints), {}, node.source},
                           old);
    };
    const int rank = node.shape.rank();
    const std::int64_t terms = fold_length(graph_, old), count = stretches_[at(old)],
                       length = stretch_length(terms, count), rest = terms - count * length;
    const auto part = [&](std::size_t slot, std::int64_t start, std::int64_t extent) {
      const GraphNode& operand = graph_[graph_[old].inputs[slot]];
      if (extent == terms) return node.inputs[slot];
      Shape shape = operand.shape;
      std::vector<std::int64_t> ints;
      for (int axis = 0; axis < rank; ++axis) ints.insert(ints.end(), {0, 1});
      const int along = slot == 0 ? rank - 1 : rank - 2;
      shape[along] = extent;
      ints[2 * static_cast<std::size_t>(along)] = start;
      return made(Op::slice, operand.dtype, shape, {node.inputs[slot]}, ints);
    };
    const auto stretched = [&](std::size_t slot) {
      const GraphNode& operand = graph_[graph_[old].inputs[slot]];
      const int along = slot == 0 ? rank - 1 : rank - 2;
      Shape cut, moved{count};
      std::vector<std::int64_t> axes{along};  // moves the stretches to the front
      for (int axis = 0; axis < rank; ++axis) {
        if (axis == along) cut.append(count);
        cut.append(axis == along ? length : operand.shape[axis]);
        moved.append(axis == along ? length : operand.shape[axis]);
        axes.push_back(axis < along ? axis : axis + 1);
      }
      return made(Op::permute, operand.dtype, moved,
                  {made(Op::reshape, operand.dtype, cut, {part(slot, 0, count * length)}, {})}, axes);
    };
    Shape partial{count}, whole{1};
    for (const std::int64_t extent : node.shape.extents()) {
      partial.append(extent);
      whole.append(extent);
    }
    GraphNode parts{Op::matmul, node.dtype, partial, {stretched(0), stretched(1)}, {}, {}, node.source};
    parts.stays_tiled = is_narrow(product_shape(graph_, old));  // tiles are right for its parts too
    const NodeIndex products = rewriter_.add(std::move(parts), old);
    NodeIndex sum = made(Op::reduce_sum, node.dtype, whole, {products}, {0});
    if (rest > 0) {
      const NodeIndex last = made(Op::matmul, node.dtype, node.shape,
                                  {part(0, terms - rest, rest), part(1, terms - rest, rest)}, {});
      sum = made(Op::add, node.dtype, whole, {sum, made(Op::reshape, node.dtype, whole, {last}, {})}, {});
    }
    return made(Op::reshape, node.dtype, node.shape, {sum}, {});
  }

  const Graph& graph_;
  const RegionSplit& split_;
  const FusionOptions& options_;
  SplitRewriter rewriter_;
  std::vector<std::int64_t> stretches_;  // per old node; 1: no split
};

}  // namespace

void split_deep_products(Graph& graph, FusionRequest& request, RegionSplit& split,
                         const FusionOptions& options) {
  ProductSplitter(graph, request, split, options).run();
}

}  // namespace imprint::graph
