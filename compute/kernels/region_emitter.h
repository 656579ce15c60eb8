#pragma once
// Writes the kernel of a row-local region: stages of one workgroup over a block of rows, with barriers where one reads what others wrote.

#include <string>
#include <unordered_map>

#include "compute/kernels/emitter.h"

namespace imprint {

class RegionEmitter : public Emitter {
 public:
  RegionEmitter(const Graph& graph, const Schedule& schedule, const Task& task, MemoryNames& memory, std::set<std::string>& includes, int fold_terms);

  std::string function(const std::string& name);
  std::string shared_arrays() const;

 protected:
  std::string load(NodeIndex node, const ElementIndex& index) override;

 private:
  // A row of the block as the stages name it: in the block, and in the batch (never past its end, so that loads stay inside).
  struct Row { std::string local; IndexExpression global; };

  void stage(const RegionStage& stage);
  void load_weights(const RegionStage& stage);
  void spread(const RegionStage& stage);
  void product(const RegionStage& stage);
  void product_parts(const RegionStage& stage);
  void outer_product(const RegionStage& stage);
  void row_fold(const RegionStage& stage);

  void invocations_take(std::int64_t count, const std::string& name);   // opens a loop, or a condition where one turn does
  Row row(const std::string& local);
  void open_rows_loop(const std::string& name);                         // over the rows that exist
  ElementIndex element(NodeIndex node, const IndexExpression& row, const IndexExpression& feature);
  void evaluate(const RegionStage& stage, const IndexExpression& feature, const Row& row);
  void keep(NodeIndex member, const ElementIndex& index, const Row& row);
  std::string shared_element(const RegionValue& value, const ElementIndex& index, const std::string& local_row);
  IndexExpression feature_of(const RegionValue& value, const ElementIndex& index);
  void store_partial(NodeIndex member, const std::string& value, const IndexExpression& element);

  const Region& region_;
  bool ragged_;                                             // the last block has fewer rows
  std::unordered_map<std::string, std::string> local_row_;  // of a global row's expression
};

}  // namespace imprint
