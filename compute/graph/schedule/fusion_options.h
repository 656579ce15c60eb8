#pragma once
// Limits and choices of fusion. program/device_profile.h sets them per device.

#include <cstdint>
#include <unordered_set>

#include "compute/graph/schedule/variants.h"
#include "compute/tensor/node.h"
#include "compute/tensor/pages/library_page.h"

namespace imprint::graph {

// Which pages become other operations first (page_expand.h).
enum class Expand : std::uint8_t {
  none,
  device,  // sorts, long scans, large scatters, recurrent layers: smaller pages
  compose  // those that device cpu runs as ordinary operations
};

struct FusionOptions {
  bool fuse = true;         // false: every operation except views gets memory and its own kernel
  bool writes_late = true;  // tasks that only store state come last (task_order.h)
  // A value gets memory if evaluating it again costs more operations than this.
  double recompute_limit = 300e3;
  // Most operations of one invocation. Beyond this, an earlier kernel computes the folded values in parallel.
  double serial_limit = 1024;
  // folds at least this long with few outputs use one workgroup per output
  std::int64_t group_fold_length = 32;
  std::int64_t group_fold_outputs = 16384;
  std::int64_t column_fold_length = 24;       // least length of a column fold (a fold over outermost axes)
  std::int64_t product_operations = 1 << 20;  // least multiply-adds of a tiled contraction
  bool matrix_units = false;                  // float16 products may run on matrix units
  bool matrix_tiles = false;                  // cost model uses GL_KHR_cooperative_matrix measurements
  bool matrix_workgroups = false;             // workgroup matrices are allowed
  bool narrow_products = false;               // mixed precision (narrow_products.h)
  bool channels_last = false;                 // images are rearranged for narrow products (channels_last.h)
  bool half_values = false;                   // values that narrow products read are float16 for all readers
  // In programs without updates: windows read a stored value, and what pads it is computed as they read.
  bool pads_inside = false;
  double product_turn_operations = 0;  // operations per invocation that one turn of a tile costs
  std::int32_t node_limit = 400;       // most nodes inlined into one value, which keeps shaders compilable
  // Most values that one value computes again at other indices, behind pad and concat (inlined_code.h).
  std::int64_t repeat_limit = 200;

  // Kernels that keep whole rows in registers (row_folds.h).
  bool row_folds = true;
  std::int64_t row_fold_least = 32;  // elements of a row
  std::int64_t row_fold_most = 16384;
  std::int64_t row_fold_elements = 1 << 14;  // least elements of all rows

  // Folds with too few outputs to fill the device are split.
  std::int64_t fill_groups = 1024;  // workgroups that fill the device
  std::int64_t fill_invocations = 1 << 18;

  // A scalar with fewer operations is always computed where it is used: it is never worth a dispatch.
  double cheap_combination = 256;
  bool tails = true;  // sums of partial results also leave partial results of the sums over them

  // Row-local regions. The defaults suit every Vulkan device.
  bool regions = true;
  std::int64_t region_groups = 128;  // workgroups that fill the device
  // The same for regions with partial results and shared weights, if each workgroup still has eight rows.
  std::int64_t region_fold_groups = 256;
  std::int64_t region_rows = 32;  // most rows per workgroup
  // least rows with partial results; half of it if there are few partial results
  std::int64_t region_fold_rows = 4;
  std::int64_t region_few_partials = 1 << 14;
  std::int64_t region_partial_bytes = 768ll << 20;  // most memory of partial results
  std::int32_t region_invocations = 128;
  std::int64_t region_shared_bytes = 16384;
  // shared memory per workgroup at which two fit a multiprocessor
  std::int64_t region_resident_bytes = 24576;
  // most rows for which weights are copied into shared memory first; 0: never
  std::int64_t region_load_rows = 16;
  std::int64_t region_narrow_rows = 4096;  // least rows of a region on matrix units
  // A product with more weights than this gets its own kernel where that is faster: by an estimate for GPUs
  // (product.h), on a software device with at least this many multiply-adds.
  std::int64_t region_weights = 1 << 15;
  std::int64_t region_operations = 1 << 30;
  std::size_t region_nodes = 4096;  // most nodes of a region, which keeps its shader compilable
  // Nodes per part of a region that is cut: its plan and its shader take more than linear time.
  std::size_t region_part_nodes = 256;
  bool region_vectors = true;  // loads and stores of four floats
  // Most operations of one invocation between two barriers. Beyond this, the folded values become their own
  // stage.
  double region_serial_limit = 48;

  // Workgroups (workgroups.h).
  std::int32_t fold_invocations = 64;   // per workgroup that shares folds
  std::int64_t row_lane_elements = 8;   // elements of a row per lane
  std::int32_t map_invocations = 64;    // per workgroup of a large map
  std::int32_t most_invocations = 128;  // per workgroup of any kernel

  Expand expand = Expand::device;
  bool arranges_constants = true;  // once, into new constants, instead of in each run
  tensor::PageLimits pages;

  // Measured on the device; overrides the cost model (variants.h). Null: none. Must outlive the call.
  const VariantTable* variants = nullptr;

  // Operations that get memory and a kernel of their own: a kernel that computes more would bind more than
  // the device can. Null: none. Must outlive the call.
  const std::unordered_set<const tensor::Node*>* apart = nullptr;

  // Adds up the nodes and edges that planning visits. Null: not counted. Must outlive the call.
  std::int64_t* steps = nullptr;
};

inline void count_steps(const FusionOptions& options, std::int64_t steps) {
  if (options.steps) *options.steps += steps;
}

}  // namespace imprint::graph
