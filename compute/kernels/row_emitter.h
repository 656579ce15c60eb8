#pragma once
// Writes the kernel of folds over rows. A few lanes take a row, read it once and fold it as often as the task
// needs.

#include <string>
#include <vector>

#include "compute/graph/number_set.h"
#include "compute/kernels/emitter.h"

namespace imprint::kernels {

class RowEmitter : public Emitter {
 public:
  RowEmitter(const graph::Graph& graph, const graph::Schedule& schedule, const graph::Task& task,
             MemoryNames& memory, std::set<std::string>& includes, int fold_terms);

  // As Emitter::function; workgroup_size is a power of two.
  std::string function(const std::string& name, int workgroup_size, bool wide);

 protected:
  std::string load(graph::NodeIndex node, const ElementIndex& index) override;

 private:
  // A value that stays in registers after the pass that computes it, one register per turn.
  struct Kept {
    graph::NodeIndex node;
    std::string array;
    bool is_there = false;
  };

  // Each fold is one pass of the workgroup over its rows; the last pass stores.
  std::vector<graph::NodeIndex> pass_roots(std::size_t pass) const;
  std::vector<std::vector<graph::NodeIndex>> visits() const;  // per pass: the row-long values that it visits
  void choose_kept();
  void fold_row(std::size_t pass);
  void store_row();
  template <class Body>
  void take_turns(const Body& body);
  // One per row, ascending, each with the last fold that it depends on; -1: none.
  std::vector<std::pair<graph::NodeIndex, graph::NodeIndex>> find_numbers() const;
  void compute_numbers(graph::NodeIndex last_fold);  // those that depend on no later fold
  ElementIndex number_index() const;
  bool is_member(graph::NodeIndex node) const { return own_.contains(node); }
  bool is_read(graph::NodeIndex node) const;  // from memory
  bool is_loaded(graph::NodeIndex node) const;
  bool is_row(graph::NodeIndex node) const { return graph_[node].shape == shape_; }

  const Shape shape_;
  const int first_folded_;
  const std::int64_t length_, rows_;
  int width_ = 1, lanes_ = 1, turns_ = 1;  // elements at a time; lanes per row; turns per lane
  bool ragged_ = false;                    // some lanes have no last turn
  std::vector<IndexExpression> row_axes_;
  std::vector<Kept> kept_;
  graph::NumberSet own_;  // members
  std::vector<std::pair<graph::NodeIndex, graph::NodeIndex>> numbers_;
};

}  // namespace imprint::kernels
