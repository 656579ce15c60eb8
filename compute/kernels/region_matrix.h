#pragma once
// Writes the kernel of a row-local region whose products run on matrix units (Region::matrix_groups): a
// network's forward pass over many rows. Weights are rounded once to float16 in shared memory. Each subgroup
// then takes 16 rows at a time through all stages, without barriers. Sums are float32. Elementwise work after
// a product runs on the matrices where it depends on features alone, else through shared memory.

#include <string>
#include <vector>

#include "compute/kernels/emitter.h"

namespace imprint::kernels {

class RegionMatrixEmitter : public Emitter {
 public:
  // Writes the function `void <name>(int group)`, the shared arrays that it needs, and its workgroups.
  // Returns false and writes nothing for regions that it does not support; RegionEmitter supports all.
  static bool write(const graph::Graph& graph, const graph::Schedule& schedule, const graph::Task& task,
                    MemoryNames& memory, std::set<std::string>& includes, int fold_terms,
                    const std::string& name, std::string& function, std::string& shared_arrays,
                    std::int64_t& groups);

 protected:
  std::string load(graph::NodeIndex node, const ElementIndex& index) override;

 private:
  using Emitter::Emitter;

  // A float16 operand of products: rows in shared memory, counted in elements of eight.
  struct Rows {
    graph::NodeIndex node;
    std::int64_t width, stride, offset;
    std::int32_t first, last;
  };
  struct Weights {
    graph::NodeIndex product;
    std::int64_t depth, columns, stride, offset;
  };
  struct Turn;
  // One float per feature, such as a bias.
  struct Column {
    graph::NodeIndex node;
    std::int64_t width, offset;
  };

  bool plan(bool keeps_scratch);
  bool plan_rows(bool keeps_scratch);
  bool only_feeds_products(const graph::RegionStage& stage) const;
  const Rows* rows_of(graph::NodeIndex node) const;
  std::string function(const std::string& name);
  std::string arrays() const;
  void load_weights();
  void load_columns();
  std::string eight_of(const Weights& weights, const std::string& k, const std::string& n);
  void stage(const graph::RegionStage& stage, std::size_t number);
  bool copies_rows(const graph::RegionStage& stage) const;
  void copy_rows(const graph::RegionStage& stage);
  void fetch_rows(const graph::RegionStage& stage, const std::string& first_row);
  void product(const graph::RegionStage& stage, std::size_t number);
  bool on_matrices(const graph::RegionStage& stage, std::string& body);
  void element_by_element(const graph::RegionStage& stage, const std::string& scratch,
                          const IndexExpression& first_column, std::int64_t columns);

  const graph::Region& region_ = schedule_.regions[at(task_.region)];
  std::vector<Rows> rows_;
  std::vector<Weights> weights_;
  std::vector<Column> columns_;
  std::vector<std::int64_t> scratch_;  // per stage: offset of sums that leave the matrices; -1: none
  std::int64_t rows_ahead_ = 0;        // from a subgroup's block to its next one
  std::int64_t weight_eights_ = 0, row_eights_ = 0, column_floats_ = 0;
  bool matrices_ = false;  // computing on matrices: rows and features have no number
};

}  // namespace imprint::kernels
