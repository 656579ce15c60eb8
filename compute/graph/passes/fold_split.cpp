#include "compute/graph/passes/fold_split.h"

#include <algorithm>

#include "compute/graph/schedule/cost.h"
#include "compute/graph/schedule/split_rewriter.h"

namespace imprint::graph {
namespace {

// Terms of all outputs together that make a second kernel worth its dispatch.
constexpr std::int64_t kLeastTerms = 1 << 16;
constexpr std::int64_t kLeastRun = 4096;      // of contiguous terms, which a workgroup folds
constexpr std::int64_t kLeastColumn = 32;     // of terms of a column, which one invocation folds
constexpr std::int64_t kInnermostFirst = -1;  // instead of a length: two folds, of the innermost axes first

// Views the shape as three axes: elements in front, folded terms, elements after.
struct Extents {
  std::int64_t before = 1, terms = 1, behind = 1;
};

class FoldSplitter {
 public:
  FoldSplitter(Graph& graph, FusionRequest& request, RegionSplit& split, const FusionOptions& options)
      : graph_(graph), split_(split), options_(options), rewriter_(graph, request, split) {}

  void run() {
    for (NodeIndex i = 0; i < graph_.size(); ++i) lengths_.push_back(stretch_length(i));
    if (std::ranges::all_of(lengths_, [](std::int64_t length) { return length == 0; })) return;
    rewriter_.run([&](NodeIndex old, GraphNode node) {
      if (lengths_[at(old)] == kInnermostFirst) return add_innermost_first(old, std::move(node));
      return lengths_[at(old)] > 0 ? add_split(old, node) : rewriter_.add(std::move(node), old);
    });
  }

 private:
  static Extents extents_of(const Shape& shape, const GraphNode& fold) {
    Extents extents;
    for (int axis = 0; axis < shape.rank(); ++axis) {
      if (axis < fold.ints.front())
        extents.before *= shape[axis];
      else
        (axis > fold.ints.back() ? extents.behind : extents.terms) *= shape[axis];
    }
    return extents;
  }

  // Terms per partial result, or kInnermostFirst; 0: the node stays as it is.
  std::int64_t stretch_length(NodeIndex index) const {
    const GraphNode& node = graph_[index];
    if (!tensor::is_plain_fold(node.op)) return 0;
    if (split_.region_of[at(index)] >= 0 || node.blocks > 0 || node.has_tails ||
        graph_[node.inputs[0]].blocks > 0)
      return 0;
    if (node.dtype == DType::boolean || graph_[node.inputs[0]].dtype != node.dtype) return 0;
    if (node.ints.back() - node.ints.front() + 1 != static_cast<std::int64_t>(node.ints.size()))
      return folds_innermost_first(index) ? kInnermostFirst : 0;
    const auto [before, terms, behind] = extents_of(graph_[node.inputs[0]].shape, node);
    const std::int64_t outputs = before * behind;
    if (outputs * terms < kLeastTerms) return 0;
    // One invocation folds a column; a workgroup folds contiguous terms.
    const std::int64_t wanted = behind >= kFoldColumns ? options_.fill_invocations : options_.fill_groups;
    const std::int64_t least = behind >= kFoldColumns ? kLeastColumn : kLeastRun;
    const std::int64_t stretches = wanted / std::max<std::int64_t>(1, outputs);
    if (stretches < 2 || terms < 2 * least) return 0;
    return without_rest(terms, std::max(least, (terms / stretches + 3) / 4 * 4), least);
  }

  // A length not much shorter that leaves no rest, if there is one: the rest has a fold of its own.
  static std::int64_t without_rest(std::int64_t terms, std::int64_t length, std::int64_t least) {
    for (std::int64_t shorter = length; shorter >= std::max(least, length * 5 / 8); shorter -= 4)
      if (terms % shorter == 0) return shorter;
    return length;
  }

  // First of the last folded axes that lie side by side; it is not the first of all.
  static std::size_t innermost_of(const GraphNode& fold) {
    std::size_t first = fold.ints.size() - 1;
    while (fold.ints[first - 1] + 1 == fold.ints[first]) --first;
    return first;
  }

  // Whether a fold of axes that lie apart has too few outputs to fill the device, and its innermost axes
  // alone are long: the gradient of a convolution's bias, or the mean of a batch norm.
  bool folds_innermost_first(NodeIndex index) const {
    const GraphNode& node = graph_[index];
    const Shape& source = graph_[node.inputs[0]].shape;
    std::int64_t inner = 1, outer = 1;
    const std::size_t first = innermost_of(node);
    for (std::size_t i = 0; i < node.ints.size(); ++i)
      (i < first ? outer : inner) *= source[static_cast<int>(node.ints[i])];
    const std::int64_t outputs = node.element_count();
    return outputs * inner * outer >= kLeastTerms && 2 * outputs <= options_.fill_groups && outer >= 2 &&
           inner >= options_.group_fold_length;
  }

  NodeIndex add_innermost_first(NodeIndex old, GraphNode node) {
    const auto first = node.ints.begin() + static_cast<std::ptrdiff_t>(innermost_of(node));
    GraphNode inner = node;
    inner.ints.assign(first, node.ints.end());
    inner.shape = graph_[graph_[old].inputs[0]].shape;
    for (const std::int64_t axis : inner.ints) inner.shape[static_cast<int>(axis)] = 1;
    node.ints.erase(first, node.ints.end());
    node.inputs = {rewriter_.add(std::move(inner), old)};
    return rewriter_.add(std::move(node), old);
  }

  // node: the fold with renumbered inputs. A separate fold handles the terms after the last whole stretch, in
  // parallel with the stretches.
  NodeIndex add_split(NodeIndex old, const GraphNode& node) {
    const DType source = graph_[graph_[old].inputs[0]].dtype;
    const auto made = [&](Op op, DType dtype, Shape shape, std::vector<NodeIndex> inputs,
                          std::vector<std::int64_t> ints) {
      return rewriter_.add({op, dtype, std::move(shape), std::move(inputs), std::move(ints), {}, node.source},
                           old);
    };
    const auto [before, terms, behind] = extents_of(graph_[graph_[old].inputs[0]].shape, graph_[old]);
    const std::int64_t length = lengths_[at(old)], stretches = terms / length, rest = terms % length;
    const NodeIndex line = made(Op::reshape, source, {before, terms, behind}, {node.inputs[0]}, {});
    const auto part = [&](std::int64_t start, std::int64_t count) {
      return count == terms
                 ? line
                 : made(Op::slice, source, {before, count, behind}, {line}, {0, 1, start, 1, 0, 1});
    };
    const NodeIndex all = part(0, stretches * length);
    // If there are no elements in front, there is no axis for them: the folded axes are then outermost.
    const int axis = before == 1 ? 0 : 1;
    const Shape partial = before == 1 ? Shape{stretches, 1, behind} : Shape{before, stretches, 1, behind};
    Shape whole = partial;
    whole[axis] = 1;
    // Columns take every stretches-th term: neighbours are often alike, and their sums grow and lose digits.
    const bool interleaved = behind >= kFoldColumns;
    const int folded = interleaved ? 1 : axis + 1;
    Shape stretched = partial;
    stretched[axis + 1] = length;
    if (interleaved) stretched = {before, length, stretches, behind};
    Shape sums = stretched;
    sums[folded] = 1;
    const NodeIndex cut = made(Op::reshape, source, stretched, {all}, {});
    NodeIndex parts = made(node.op, node.dtype, sums, {cut}, {folded});
    if (interleaved) parts = made(Op::reshape, node.dtype, partial, {parts}, {});
    NodeIndex result = made(node.op, node.dtype, whole, {parts}, {axis});
    if (rest > 0) {
      const NodeIndex last =
          made(node.op, node.dtype, {before, 1, behind}, {part(stretches * length, rest)}, {1});
      result = made(tensor::fold_of(node.op)->combination, node.dtype, whole,
                    {result, made(Op::reshape, node.dtype, whole, {last}, {})}, {});
    }
    return made(Op::reshape, node.dtype, node.shape, {result}, {});
  }

  const Graph& graph_;
  const RegionSplit& split_;
  const FusionOptions& options_;
  SplitRewriter rewriter_;
  std::vector<std::int64_t> lengths_;  // per old node: what stretch_length() returns
};

}  // namespace

void split_long_folds(Graph& graph, FusionRequest& request, RegionSplit& split,
                      const FusionOptions& options) {
  FoldSplitter(graph, request, split, options).run();
}

}  // namespace imprint::graph
