#pragma once
// Writes the kernel of a row-local region: stages of one workgroup over a block of rows, with barriers where
// one reads what others wrote.

#include <array>
#include <functional>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "compute/kernels/emitter.h"

namespace imprint::kernels {

class RegionEmitter : public Emitter {
 public:
  RegionEmitter(const graph::Graph& graph, const graph::Schedule& schedule, const graph::Task& task,
                MemoryNames& memory, std::set<std::string>& includes, int fold_terms);

  std::string function(const std::string& name);
  std::string shared_arrays() const;

 protected:
  std::string load(graph::NodeIndex node, const ElementIndex& index) override;
  void write(const graph::Store& store, const IndexExpression& linear) override;
  bool in_memory(graph::NodeIndex node) const override;

 private:
  // A row of the block as the stages name it: in the block, and in the batch (never past its end, so that
  // loads stay inside).
  struct Row {
    IndexExpression local, global;
  };

  struct Tiling;
  struct OuterTile;

  void write_rows_here();
  void write_turns();
  void stage(const graph::RegionStage& stage);
  void barrier();
  void load_weights(const graph::RegionStage& stage);
  void spread(const graph::RegionStage& stage);

  // ---- products (region_products.cpp) ----
  void product(const graph::RegionStage& stage);
  std::int64_t unrolled_terms(const graph::RegionStage& stage, std::int64_t terms) const;
  void evaluate_tile(const graph::RegionStage& stage, const Tiling& tiling, const std::vector<Row>& rows,
                     const std::vector<IndexExpression>& columns, const IndexExpression& lane,
                     const std::vector<std::string>& sums);
  void add_parts(const graph::RegionStage& stage, const Tiling& tiling);
  Tiling tiling_of(const graph::RegionStage& stage) const;
  graph::NodeIndex side(graph::NodeIndex product,
                        bool of_rows) const;  // the operand that has the rows, or the other, behind its views

  // ---- folds over the rows (region_folds.cpp) ----
  void outer_product(const graph::RegionStage& stage);
  OuterTile outer_tile(const graph::RegionStage& stage, const std::string& tile);
  std::vector<IndexExpression> tile_positions(const IndexExpression& lane, std::int64_t lanes,
                                              std::int32_t count, std::int64_t extent, bool beside);
  void store_outer(const graph::RegionStage& stage, const OuterTile& tile,
                   const std::vector<std::string>& names, const std::vector<std::vector<std::string>>& sides);
  void row_fold(const graph::RegionStage& stage);
  bool folds_beside(const graph::RegionStage& stage) const;
  void fold_beside(const graph::RegionStage& stage);
  void add_rows_beside();
  void store_partial(graph::NodeIndex member, const std::string& name, const IndexExpression& feature);

  // ---- rows and elements ----
  void invocations_take(std::int64_t count,
                        const std::string& name);  // opens a loop, or a condition where one turn does
  void take_from(std::int64_t first, std::int64_t count, const std::string& name);
  std::string declare_sum(DType dtype, const std::string& start);
  std::string declare_lasting(DType dtype, const std::string& start);
  Row row(const IndexExpression& local);
  std::vector<Row> open_rows_loop(const std::string& name, std::int64_t most);  // over the rows that exist
  ElementIndex element(graph::NodeIndex node, const IndexExpression& row, const IndexExpression& feature);
  void evaluate(const graph::RegionStage& stage, const IndexExpression& feature, const Row& row);
  void keep(graph::NodeIndex member, const ElementIndex& index, const Row& row);
  IndexExpression shared_position(const graph::RegionValue& value, const ElementIndex& index,
                                  const IndexExpression& local_row);
  IndexExpression feature_of(const graph::RegionValue& value, const ElementIndex& index);

  // ---- memory: as vectors of four where positions are known to be beside each other ----
  bool is_shared(graph::NodeIndex node) const;
  bool has_vectors(graph::NodeIndex node) const;  // in the device's memory
  std::string cell(const std::string& array, const IndexExpression& position);
  std::string load_float(const std::string& array, const IndexExpression& position);
  void store_float(const std::string& array, const IndexExpression& position, const std::string& value);
  void store_vectors();  // what store_float has put together, before its scope closes

  using Vector = std::array<std::string, 4>;

  const graph::Region& region_;
  bool ragged_;  // the last block has fewer rows
  std::int64_t taken_ = 0,
               first_ =
                   0;  // invocations with work since the last barrier; the first of the last that took some
  std::string sums_;   // declarations of what lasts through all turns
  struct Beside {
    graph::NodeIndex fold;
    std::string sum;
    std::int64_t first, offset;
  };
  std::vector<Beside> beside_;      // folds of which each row has an invocation, added at the end
  std::int64_t beside_floats_ = 0;  // of shared memory, that they then take
  std::vector<std::function<void()>> partial_stores_;           // what is left of it behind them
  std::unordered_map<std::string, IndexExpression> local_row_;  // by the name of the global one
  std::map<std::string, Vector> vectors_;                       // by place
};

}  // namespace imprint::kernels
