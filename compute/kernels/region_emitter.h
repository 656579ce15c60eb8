#pragma once
// Writes the kernel of a row-local region: the stages of one workgroup for a block of rows, with barriers
// between stages that share data.

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "compute/kernels/emitter.h"

namespace imprint::kernels {

// The shared arrays of a workgroup. Regions of one shader use the same ones, since a workgroup runs one
// region.
struct RegionArrays {
  std::int64_t floats = 0, ints = 0;
  bool vectors = false;  // Region::vectors, equal for all regions of a shader

  bool operator==(const RegionArrays&) const = default;
  std::int64_t bytes() const { return 4 * (floats + ints); }
  // Arrays with room for both.
  RegionArrays with(const RegionArrays& other) const {
    return {std::max(floats, other.floats), std::max(ints, other.ints), vectors || other.vectors};
  }
  std::string declarations() const;
};

class RegionEmitter : public Emitter {
 public:
  RegionEmitter(const graph::Graph& graph, const graph::Schedule& schedule, const graph::Task& task,
                MemoryNames& memory, std::set<std::string>& includes, int fold_terms);

  std::string function(const std::string& name);

 protected:
  std::string load(graph::NodeIndex node, const ElementIndex& index) override;
  void write(const graph::Store& store, const IndexExpression& linear) override;
  bool in_memory(graph::NodeIndex node) const override;

 private:
  // A row in two numberings: in the block, and in the batch, where it is clamped so that loads stay inside.
  struct Row {
    IndexExpression local, global;
  };

  // The outputs of a product that one invocation computes, and the names of their sums.
  struct OwnTile {
    std::vector<graph::NodeIndex> products;  // with the same weights
    std::vector<Row> rows;
    std::vector<IndexExpression> columns;
    std::vector<std::string> sums;  // product by product, row by row

    const std::string& sum(std::size_t product, std::size_t row, std::size_t column) const {
      return sums[(product * rows.size() + row) * columns.size() + column];
    }
  };

  struct Tiling;
  struct OuterTile;

  void write_rows_here();
  void write_turns();
  void stages_from(std::size_t first);
  void stage(const graph::RegionStage& stage);
  void barrier();
  void load_weights(const graph::RegionStage& stage);
  void spread(const graph::RegionStage& stage);

  // ---- products (region_products.cpp) ----
  void product(const graph::RegionStage& stage);
  std::int64_t unrolled_terms(const graph::RegionStage& stage, std::int64_t terms) const;
  std::string operand(graph::NodeIndex product, bool of_rows, const IndexExpression& position,
                      const IndexExpression& term);
  std::vector<std::string> column_operands(const OwnTile& tile, const IndexExpression& term);
  void multiply(const OwnTile& tile, const IndexExpression& term,
                const std::vector<std::string>& column_values);
  void open_terms_ahead(const OwnTile& tile, const std::string& k, std::int64_t terms, std::int64_t unroll);
  void evaluate_tile(const graph::RegionStage& stage, const Tiling& tiling, const OwnTile& tile,
                     const IndexExpression& lane);
  void add_parts(const graph::RegionStage& stage);
  Tiling tiling_of(const graph::RegionStage& stage) const;
  // The operand that has the rows, or the other one; views are skipped.
  graph::NodeIndex side(graph::NodeIndex product, bool of_rows) const;

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
  // Opens a loop over `count` items shared by the invocations, or a condition where one turn suffices.
  void invocations_take(std::int64_t count, const std::string& name);
  void take_from(std::int64_t first, std::int64_t count, const std::string& name);
  std::string declare_sum(DType dtype, const std::string& start);
  std::string declare_lasting(DType dtype, const std::string& start);
  Row row(const IndexExpression& local);
  std::vector<Row> open_rows_loop(const std::string& name,
                                  std::int64_t most);  // over the rows inside the batch
  ElementIndex element(graph::NodeIndex node, const IndexExpression& row, const IndexExpression& feature);
  void evaluate(const graph::RegionStage& stage, const IndexExpression& feature, const Row& row);
  void keep(graph::NodeIndex member, const ElementIndex& index, const Row& row);
  IndexExpression shared_position(const graph::RegionValue& value, const ElementIndex& index,
                                  const IndexExpression& local_row);
  IndexExpression feature_of(const graph::RegionValue& value, const ElementIndex& index);

  // ---- memory: vectors of four where positions are known to be neighbours ----
  bool is_shared(graph::NodeIndex node) const;
  bool has_vectors(graph::NodeIndex node) const;  // in the device's memory
  std::string cell(const std::string& array, const IndexExpression& position);
  std::string load_float(const std::string& array, const IndexExpression& position);
  void store_float(const std::string& array, const IndexExpression& position, const std::string& value);
  void store_vectors();  // writes what store_float has collected; call before the scope closes

  using Vector = std::array<std::string, 4>;

  const graph::Region& region_;
  bool ragged_;             // the last block has fewer rows
  std::int64_t taken_ = 0;  // invocations with work since the last barrier
  std::int64_t first_ = 0;  // the first invocation of the last stage that took some
  std::string sums_;        // declarations that last through all turns
  struct Beside {
    graph::NodeIndex fold;
    std::string sum;
    std::int64_t first, offset;
  };
  std::vector<Beside> beside_;                         // folds with one invocation per row; added at the end
  std::int64_t beside_floats_ = 0;                     // of shared memory that they use at the end
  std::vector<std::function<void()>> partial_stores_;  // stores after the last turn
  std::unordered_map<std::string, IndexExpression> local_row_;  // by the name of the global row
  std::map<std::string, Vector> vectors_;                       // by position
};

}  // namespace imprint::kernels
