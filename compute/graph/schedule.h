#pragma once
// What the fusion pass decides: which nodes get memory, which kernels compute them, and at which level each
// kernel runs. Plain data.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "compute/graph/graph.h"
#include "compute/graph/variants.h"

namespace imprint::graph {

// Neighbouring outputs that a workgroup of a column fold takes.
inline constexpr int kFoldColumns = 16;

// Elements of a map from which on invocations take four at a time.
inline constexpr std::int64_t kLargeMap = 1 << 16;

// Where a value lies between kernels. index: temporary -> node, input / output -> position in the program's
// description, variable -> position in Schedule::variables, constant -> node.
enum class PlaceKind : std::uint8_t { none, temporary, input, output, variable, constant };
// What has memory starts at a multiple of so many elements (16 bytes), since kernels load and store four at
// once.
inline constexpr std::int64_t kPlaceAlignment = 4;  // of four bytes

struct Place {
  PlaceKind kind = PlaceKind::none;
  std::int32_t index = -1;
  bool operator==(const Place&) const = default;
};

// A value written by a kernel. row_indices >= 0: the value's rows go to the rows of `place` that this node
// names (scatter_rows).
struct Store {
  NodeIndex node = -1;
  Place place;
  NodeIndex row_indices = -1;
};

// A value read by a kernel. `aligned`: only at the linear index of the element being computed, so that it may
// be overwritten in place.
struct Read {
  NodeIndex node = -1;
  bool aligned = true;
};

enum class TaskKind : std::uint8_t {
  map,          // one invocation an output element; folds and contractions inside run as loops
  group_fold,   // one workgroup an output element of `anchor`, a reduction or contraction too long for one
                // invocation
  column_fold,  // a few neighbouring outputs of `anchor`, a reduction over outermost axes, a workgroup; its
                // lanes take the terms in turns
  scan,         // one invocation a line of `anchor`
  product,      // one workgroup a tile of `anchor`, a large contraction
  region,       // one workgroup a block of rows, through everything that is independent for each row
  custom,  // one invocation a row of `anchor`: a caller's text, and what follows from its result for that row
  row_fold  // a few lanes a row of the input of `anchor`, which is folded over it; what lies in registers
            // meanwhile is as long as the row
};

// One step of a region's workgroup, between barriers where it needs what others wrote.
struct RegionStage {
  enum class Kind : std::uint8_t {
    load,           // weights are copied into shared memory, all at once
    spread,         // invocations take elements in turns; folds inside run as loops
    product,        // `anchor`: a contraction whose left or right side has the rows; register tiles
    outer_product,  // `anchor`: a contraction over the rows: a partial weight gradient; the other members are
                    // sums over the rows of what it multiplies by
    row_fold        // `anchor`: a reduction over the rows: a partial sum
  };
  Kind kind = Kind::spread;
  NodeIndex anchor = -1;
  std::vector<NodeIndex> members;  // of as many features a row, in one order, computed at the same feature
  bool barrier_before = false;
  bool barrier_within = false;  // of a product that overwrites what it has read
  // Of a product or an outer product: the outputs that one invocation keeps in registers. `parts` invocations
  // share the terms of a product's tile where tiles are fewer than invocations; their sums meet in `scratch`
  // of the float array.
  std::int32_t tile_rows = 1, tile_columns = 1, parts = 1;
  bool columns_beside =
      false;  // the columns of a tile lie beside each other, else as far apart as invocations share them
  std::int64_t scratch = -1;
};

// Where a value of a region lies while its workgroup runs.
struct RegionValue {
  NodeIndex node = -1;
  std::int32_t row_axis = -1;    // -1: a partial result, or weights
  std::int32_t group_axis = -1;  // -1: none
  std::int64_t width = 1;        // elements a row
  std::int64_t offset = -1;      // in the workgroup's float or int array; -1: registers of its stage alone
  std::int64_t stride = 0;       // from row to row
  std::int64_t height = 0;       // rows kept: of the block, or of a matrix of weights
};

inline constexpr std::int64_t kMatrixExtent = 16;          // rows and columns of what matrix units take
inline constexpr std::int64_t kMatrixSharedBytes = 49152;  // of a workgroup of such a region

// A row-local region: what depends, for each row of a batch, on that row and on values without rows. A
// workgroup takes `row_block` rows through all stages, in several turns of as many rows each where there are
// some, and folds over its rows leave a partial result each; `groups` networks of equal shape go side by
// side.
struct Region {
  std::string kernel;  // its signature
  std::int64_t rows = 0, groups = 1;
  std::int32_t row_block = 0;  // a power of two
  std::int32_t turns =
      1;  // blocks of rows that a workgroup takes one after the other, its sums over them in registers
  std::int64_t blocks = 0;  // of rows of all turns, a group: partial results
  std::int32_t invocations = 0;
  std::int64_t shared_floats = 0, shared_ints = 0;
  bool vectors = false;  // floats are loaded and stored four at a time where they lie beside each other
  std::int64_t matrix_groups = 0;  // > 0: products read float16, for a kernel on matrix units in so many
                                   // workgroups (kernels/region_matrix.h)
  std::vector<RegionStage> stages;
  std::vector<RegionValue> values;  // by node

  const RegionValue* find(NodeIndex node) const;
};

// Which matrices a product is computed with, if any: those of its subgroups
// (shaders/products/matrix_units.glsl), or one of its workgroup (shaders/products/workgroup_matrices.glsl).
enum class MatrixUnits : std::uint8_t { none, subgroup, workgroup };

// What a workgroup and its invocations take of a large contraction's outputs and, in one turn, of its terms
// (shaders/products/tiles.glsl).
struct ProductTile {
  std::int32_t rows = 0, columns = 0, depth = 0;
  std::int32_t thread_rows = 0, thread_columns = 0;
  MatrixUnits units = MatrixUnits::none;

  std::int32_t invocations() const { return rows / thread_rows * (columns / thread_columns); }
  bool operator==(const ProductTile&) const = default;
};

// One kernel: everything in `members` is computed at the same linear index, in order.
struct Task {
  TaskKind kind = TaskKind::map;
  NodeIndex anchor = -1;     // group_fold, column_fold, scan, product, custom, row_fold
  std::int32_t region = -1;  // position in Schedule::regions
  ProductTile tile;          // of a product
  std::int32_t invocations =
      0;  // of a workgroup, of folds that it shares and of large maps that run alone; a power of two
  std::int32_t row_lanes = 1;      // row_fold: that share a row, a power of two up to the invocations
  std::vector<NodeIndex> members;  // ascending; the anchor first where there is one
  std::vector<NodeIndex> tails;    // column_fold: sums over the elements of each workgroup
  std::vector<NodeIndex> folds;    // row_fold: the folds over each row, ascending
  std::vector<Store> stores;
  std::vector<Read> reads;             // memory read, each node once
  std::vector<std::int32_t> after;     // tasks that must have finished
  std::int64_t element_count = 0;      // of each member; of a region, the workgroups; of a row fold, the rows
  std::int32_t level = 0;              // tasks of one level are independent of each other
  std::vector<VariantChoice> choices;  // that made it what it is
};

struct Schedule {
  std::vector<std::uint8_t> materialized;  // per node: has memory (leaves, and what tasks store or keep)
  std::vector<Place> place;                // per node: where consumers read it
  std::vector<Task> tasks;                 // in order of level
  std::vector<Region> regions;
  std::vector<std::string> notes;  // what could not be fused as asked, and why
  bool takes_from_table() const;   // whether a table of variants decided anything
  std::vector<std::shared_ptr<VariableState>> variables;
  std::int32_t level_count = 0;
};

// Whether the task has folds that the invocations of a workgroup share.
inline bool shares_folds(TaskKind kind) {
  return kind == TaskKind::group_fold || kind == TaskKind::column_fold || kind == TaskKind::row_fold;
}

std::string_view task_kind_name(TaskKind kind);
std::string task_text(const Graph& graph, const Task& task);   // kind, elements, stores and reads
std::string store_text(const Graph& graph, const Task& task);  // stores and reads alone
std::string stage_text(const Graph& graph, const RegionStage& stage, bool on_matrix_units = false);

}  // namespace imprint::graph
