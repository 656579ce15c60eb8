#pragma once
// The result of fusion: which nodes get memory, which kernels compute them, and at which level each kernel
// runs. Plain data.

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "compute/graph/graph.h"
#include "compute/graph/schedule/variants.h"

namespace imprint::graph {

// Neighbouring outputs per workgroup of a column fold.
inline constexpr int kFoldColumns = 16;

// Maps with at least this many elements process four per invocation.
inline constexpr std::int64_t kLargeMap = 1 << 16;

// Where a value lies between kernels. index by kind: temporary and constant: node, or a page that has marks;
// input and output: position in the program's description; variable: position in Schedule::variables.
enum class PlaceKind : std::uint8_t { none, temporary, input, output, variable, constant };
// Alignment of stored values (16 bytes), in elements. Kernels load and store four at a time.
inline constexpr std::int64_t kPlaceAlignment = 4;  // elements of four bytes

struct Place {
  PlaceKind kind = PlaceKind::none;
  std::int32_t index = -1;
  std::int32_t part = 0;  // of a value that is longer than a descriptor binds (program/program_memory.cpp)
  bool operator==(const Place&) const = default;
};

// A value that a kernel writes. row_indices >= 0: the node with the row numbers of `place` to write to
// (scatter_rows).
struct Store {
  NodeIndex node = -1;
  Place place;
  NodeIndex row_indices = -1;
};

// A value that a kernel reads. `aligned`: read only at the linear index of the computed element, so the
// kernel may overwrite it in place.
struct Read {
  NodeIndex node = -1;
  bool aligned = true;
};

enum class TaskKind : std::uint8_t {
  map,  // one invocation per output element; folds and contractions inside run as loops
  // one workgroup per output element of `anchor`, a reduction or contraction too long for one invocation
  group_fold,
  // one workgroup per kFoldColumns neighbouring outputs of `anchor`, a reduction over outermost axes; its
  // lanes take terms in turn
  column_fold,
  scan,     // one invocation per line of `anchor`
  product,  // one workgroup per tile of `anchor`, a large contraction
  region,   // one workgroup per block of rows, through everything that is independent for each row
  // one invocation per row of `anchor`: the caller's source text, then values that depend on its result for
  // that row
  custom,
  // a few lanes per row of the input of `anchor`, which is folded; registers hold values of the row's length
  row_fold,
  page  // the workgroups of `anchor`, a page; the other members are its other outputs
};

// One step of a region's workgroup. A barrier precedes it if it needs what other invocations wrote.
struct RegionStage {
  enum class Kind : std::uint8_t {
    load,     // copies weights into shared memory, all at once
    spread,   // invocations take elements in turn; folds inside run as loops
    product,  // `anchor`: a contraction with the rows on its left or right side; register tiles
    // `anchor`: a contraction over the rows: a partial weight gradient; other members are sums over the rows
    // of one of its operands
    outer_product,
    row_fold  // `anchor`: a reduction over the rows: a partial sum
  };
  Kind kind = Kind::spread;
  NodeIndex anchor = -1;
  std::vector<NodeIndex> beside;  // of a product: others with the same weights, which are read once for all
  // with equal features per row, in the same order, computed at the same feature
  std::vector<NodeIndex> members;
  bool barrier_before = false;
  bool barrier_within = false;  // for a product that overwrites its own operands
  bool joins_before = false;    // its sums meet at the same barrier as those of the stage before it
  // For products and outer products: the outputs that one invocation keeps in registers. If tiles are fewer
  // than invocations, `parts` invocations share a tile's terms. Their sums meet at `scratch` in the float
  // array.
  std::int32_t tile_rows = 1, tile_columns = 1, parts = 1;
  // Whether the columns of a tile are adjacent. Otherwise their distance is the number of invocations that
  // share them.
  bool columns_beside = false;
  std::int64_t scratch = -1;

  std::int64_t products() const { return 1 + static_cast<std::int64_t>(beside.size()); }
  bool is_anchor(NodeIndex node) const {
    return node == anchor || std::ranges::find(beside, node) != beside.end();
  }
};

// Where a value of a region lies while the workgroup runs.
struct RegionValue {
  NodeIndex node = -1;
  std::int32_t row_axis = -1;    // -1: a partial result, or weights
  std::int32_t group_axis = -1;  // -1: none
  std::int64_t width = 1;        // elements per row
  std::int64_t offset = -1;      // in the workgroup's float or int array; -1: only in registers of its stage
  std::int64_t stride = 0;       // elements between rows
  std::int64_t height = 0;       // rows kept: of the block, or of a weight matrix
};

inline constexpr std::int64_t kMatrixExtent = 16;          // rows and columns of a matrix on matrix units
inline constexpr std::int64_t kMatrixSharedBytes = 49152;  // per workgroup of such a region

// A row-local region: values that depend, for each row of a batch, on that row and on values without rows. A
// workgroup takes `row_block` rows through all stages, possibly in several turns of that many rows. Each fold
// over its rows leaves one partial result. `groups` networks of equal shape run in parallel.
struct Region {
  std::string kernel;  // its signature
  std::int64_t rows = 0, groups = 1;
  std::int32_t row_block = 0;  // a power of two
  // Blocks of rows that a workgroup processes in sequence; registers keep its sums across them.
  std::int32_t turns = 1;
  std::int64_t blocks = 0;  // blocks of all turns per group: the number of partial results
  std::int32_t invocations = 0;
  std::int64_t shared_floats = 0, shared_ints = 0;
  bool vectors = false;  // loads and stores four contiguous floats at a time
  // > 0: products read float16, and a kernel on matrix units runs with this many workgroups
  // (kernels/region_matrix.h).
  std::int64_t matrix_groups = 0;
  std::vector<RegionStage> stages;
  std::vector<RegionValue> values;  // by node

  const RegionValue* find(NodeIndex node) const;
};

// Which matrix units compute a product, if any: those of its subgroups (shaders/products/matrix_units.glsl),
// or those of its workgroup (shaders/products/workgroup_matrices.glsl).
enum class MatrixUnits : std::uint8_t { none, subgroup, workgroup };

// The outputs of a large contraction that a workgroup and its invocations compute, and the terms per turn
// (shaders/products/tiles.glsl).
struct ProductTile {
  std::int32_t rows = 0, columns = 0, depth = 0;
  std::int32_t thread_rows = 0, thread_columns = 0;
  MatrixUnits units = MatrixUnits::none;
  std::int32_t slices = 1;  // groups of invocations that share the terms of each turn
  bool of_patches = false;  // of a convolution (winograd.h)

  std::int32_t invocations() const { return rows / thread_rows * (columns / thread_columns) * slices; }
  bool operator==(const ProductTile&) const = default;
};

// One kernel. It computes all `members` at the same linear index, in order.
struct Task {
  TaskKind kind = TaskKind::map;
  NodeIndex anchor = -1;     // group_fold, column_fold, scan, product, custom, row_fold, page
  std::int32_t region = -1;  // position in Schedule::regions
  ProductTile tile;          // of a product
  // Per workgroup, for shared folds and for large maps that run alone. A power of two.
  std::int32_t invocations = 0;
  std::int32_t row_lanes = 1;      // row_fold: lanes that share a row, a power of two, at most `invocations`
  std::vector<NodeIndex> members;  // ascending; the anchor, if any, first
  std::vector<NodeIndex> tails;    // column_fold: sums over the elements of each workgroup
  std::vector<NodeIndex> folds;    // row_fold: the folds over each row, ascending
  std::vector<Store> stores;
  std::vector<Read> reads;             // memory that it reads, each node once
  std::vector<std::int32_t> after;     // tasks that must have finished
  std::int64_t element_count = 0;      // per member; for a region, the workgroups; for a row fold, the rows
  std::int32_t level = 0;              // tasks of one level are independent of each other
  std::vector<VariantChoice> choices;  // choices that shaped this task
};

// A named extent (Extent) that runs set: an int32 in the input at this position.
struct RunExtent {
  std::string name;
  std::int32_t input = -1;
  std::int64_t bound = 1;
};

struct Schedule {
  std::vector<std::uint8_t> materialized;  // per node: has memory (leaves, and what tasks store or keep)
  std::vector<Place> place;                // per node: where consumers read it
  std::vector<std::uint8_t> exact;         // per node: equal bits in every kernel (exact_values.h)
  std::vector<Task> tasks;                 // in order of level
  std::vector<Region> regions;
  std::vector<std::string> notes;  // what could not be fused as requested, and why
  bool takes_from_table() const;   // whether a variant table decided anything
  std::vector<std::shared_ptr<VariableState>> variables;
  std::vector<RunExtent> extents;
  std::int32_t level_count = 0;
  std::int64_t planning_steps = 0;  // nodes and edges that planning visited
};

// Whether the invocations of a workgroup share the task's folds.
inline bool shares_folds(TaskKind kind) {
  return kind == TaskKind::group_fold || kind == TaskKind::column_fold || kind == TaskKind::row_fold;
}

inline constexpr std::int64_t kFoldBytes = 8;  // of a fold's invocation: a number and a whole number

// Whether the task may be in a region's dispatch, which fixes the number of invocations: a small map, or a
// fold of few workgroups with as many invocations for whose arrays shared memory has room.
bool goes_beside_region(const Region& region, const Task& task, std::int32_t fold_invocations,
                        std::int64_t shared_bytes);

// The extent of which the axis has a prefix of its places in use, or its outermost part has; null: none.
const RunExtent* extent_of_axis(const Schedule& schedule, const Shape& shape, int axis);
// That of the first axis with more than one place. The elements that a run uses come first then.
const RunExtent* leading_extent(const Schedule& schedule, const Shape& shape);

// That of all that the task stores, in the elements' order. Those that a run does not use need no workgroups.
// Null: none, or it stores what other runs' or workgroups' elements share.
const RunExtent* leading_task_extent(const Graph& graph, const Schedule& schedule, const Task& task);

// The node's shape, with the names that a mask took away: of a fold's or product's operand, what comes after
// the used places is the fold's start.
Shape shape_behind_mask(const Graph& graph, NodeIndex node);

std::string_view task_kind_name(TaskKind kind);
std::string task_text(const Graph& graph, const Task& task);   // kind, elements, stores and reads
std::string store_text(const Graph& graph, const Task& task);  // only stores and reads
std::string stage_text(const Graph& graph, const RegionStage& stage, bool on_matrix_units = false);

}  // namespace imprint::graph
