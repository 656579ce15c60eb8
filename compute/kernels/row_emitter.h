#pragma once
// Writes the kernel of folds over rows: a few lanes take a row, read it once, and fold it as often as the
// task asks.

#include <string>
#include <vector>

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
  // A value that lies in registers from the pass that computes it on, one register a turn.
  struct Kept {
    graph::NodeIndex node;
    std::string array;
    bool is_there = false;
  };

  // Between two folds, the workgroup passes over its rows: the first passes fold, the last one stores.
  std::vector<graph::NodeIndex> pass_roots(std::size_t pass) const;
  std::vector<std::vector<graph::NodeIndex>> visits()
      const;  // by each pass, of the values as long as the rows
  void choose_kept();
  void fold_row(std::size_t pass);
  void store_row();
  template <class Body>
  void take_turns(const Body& body);
  void compute_numbers(graph::NodeIndex behind);  // one a row, that wait for no fold after this one
  ElementIndex number_index() const;
  bool is_member(graph::NodeIndex node) const;
  bool is_read(graph::NodeIndex node) const;  // from memory
  bool is_row(graph::NodeIndex node) const { return graph_[node].shape == shape_; }

  const Shape shape_;
  const int first_folded_;
  const std::int64_t length_, rows_;
  int width_ = 1, lanes_ = 1, turns_ = 1;  // elements at a time; lanes of a row; turns of a lane
  bool ragged_ = false;                    // the last turn is not for all lanes
  std::vector<IndexExpression> row_axes_;
  std::vector<Kept> kept_;
};

}  // namespace imprint::kernels
