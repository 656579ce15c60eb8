#pragma once
// The size of the code that evaluates a value inside of a kernel.

#include <cstdint>
#include <optional>
#include <unordered_set>
#include <vector>

#include "compute/base/at.h"
#include "compute/graph/graph.h"
#include "compute/graph/number_set.h"

namespace imprint::graph {

// Counts as the emitter shares: a value is computed once per index and scope. A node behind concat and pad
// has many indices, one per path to it. Indices are hashes: equal text has equal hashes.
class InlinedCode {
 public:
  InlinedCode(const Graph& graph, const std::vector<std::uint8_t>& memory) : graph_(graph), memory_(memory) {}

  // Values that evaluating one element of the node computes or loads; at most `most` + 1. Linear in the
  // result.
  std::int64_t values(NodeIndex node, std::int64_t most);

  // The same for values that it computes again at another index; at most `most` + 1. Linear in the nodes
  // inside it and the result.
  std::int64_t repeats(NodeIndex node, std::int64_t most);

  // The different nodes with inputs that the newest walk computed, with its root.
  std::int64_t nodes() const { return static_cast<std::int64_t>(computed_.size()); }
  std::int64_t steps() const { return steps_; }  // values visited by all calls

 private:
  struct Position {
    std::uint64_t name = 0;  // 0: only the constant
    std::int64_t constant = 0;
  };
  struct Index {  // as ElementIndex of the kernels
    std::optional<Position> linear;
    std::vector<Position> axes;
  };

  static Position position_named(std::uint64_t name) { return {name, 0}; }
  bool is_loaded(NodeIndex node) const { return memory_[at(node)] || graph_[node].inputs.empty(); }
  void start(NodeIndex node);
  void visit(NodeIndex node, const Index& index);
  void visit_within_scope(NodeIndex node, const Index& index);
  std::vector<Position> axes_of(const Index& index, const Shape& shape) const;
  Index through_view(NodeIndex node, const Index& index) const;
  Index reshaped(const Index& index, const Shape& from, const Shape& to) const;

  const Graph& graph_;
  const std::vector<std::uint8_t>& memory_;
  bool counts_loads_ = true;  // for values(); what is loaded repeats nothing
  std::int64_t values_left_ = 0, repeats_left_ = 0, steps_ = 0;
  NumberSet computed_;                       // nodes, at any index
  NumberSet joins_of_loads_;                 // of which each input is loaded: it stays so
  std::unordered_set<std::uint64_t> known_;  // values at an index, of the open scopes
  std::vector<std::uint64_t> order_;         // the same, in the order of their evaluation
};

// Per node: whether it is elementwise, generated or a view, and only computed inputs of pages
// (LibraryPage::computed) read it, through others of its kind. forced: per node, whether it needs memory.
std::vector<std::uint8_t> computed_inputs(const Graph& graph, const std::vector<std::uint8_t>& forced);

}  // namespace imprint::graph
