#pragma once
// Limits and choices of fusion. program/device_profile.h sets them for a device.

#include <cstdint>

#include "compute/graph/variants.h"

namespace imprint::graph {

struct FusionOptions {
  bool fuse = true;  // false: every operation except views gets memory and its own kernel
  // Operations that evaluating a value again may cost; beyond that it gets memory.
  double recompute_limit = 300e3;
  // Operations of one invocation; beyond that the values that it folds are computed before, in parallel.
  double serial_limit = 1024;
  std::int64_t group_fold_length = 32;  // folds at least this long with few outputs: one workgroup per output
  std::int64_t group_fold_outputs = 16384;
  std::int64_t column_fold_length = 24;       // least length of folds over outermost axes by columns
  std::int64_t product_operations = 1 << 20;  // least multiply-adds of a contraction by tiles
  bool matrix_units = false;                  // float16 products may run on matrix units
  bool matrix_tiles = false;       // these choose tiles; costs were measured with GL_KHR_cooperative_matrix
  bool matrix_workgroups = false;  // these may use workgroup matrices
  bool narrow_products = false;    // mixed precision (narrow_products.h)
  double product_turn_operations = 0;  // cost of a tile's turn per invocation, in operations
  std::int32_t node_limit = 400;       // nodes computed inside one value, so that shaders stay compilable

  // Kernels that keep whole rows in registers (row_folds.h).
  bool row_folds = true;
  std::int64_t row_fold_least = 32;  // elements of a row
  std::int64_t row_fold_most = 16384;
  std::int64_t row_fold_elements = 1 << 14;  // least elements of all rows

  // Folds with fewer outputs than the device has room for are split.
  std::int64_t fill_groups = 1024;  // workgroups that fill the device
  std::int64_t fill_invocations = 1 << 18;

  // A scalar of fewer operations is never worth a dispatch: it is computed where it is used.
  double cheap_combination = 256;
  bool tails = true;  // sums of partial results leave partial results of the sums over them

  // Row-local regions. The defaults suit every Vulkan device.
  bool regions = true;
  std::int64_t region_groups = 128;  // workgroups that fill the device
  // The same for regions with partial results and shared weights, if each still has eight rows.
  std::int64_t region_fold_groups = 256;
  std::int64_t region_rows = 32;      // most rows of a workgroup
  std::int64_t region_fold_rows = 4;  // least rows with partial results; half of it with few of them
  std::int64_t region_few_partials = 1 << 14;
  std::int64_t region_partial_bytes = 768ll << 20;  // most memory of partial results
  std::int32_t region_invocations = 128;
  std::int64_t region_shared_bytes = 16384;
  std::int64_t region_resident_bytes = 24576;  // shared memory with which two workgroups fit a multiprocessor
  std::int64_t region_load_rows = 16;      // most rows with weights copied into shared memory first; 0: never
  std::int64_t region_narrow_rows = 4096;  // least rows of a region on matrix units
  // A product with more weights and at least as many multiply-adds gets a kernel of its own.
  std::int64_t region_weights = 1 << 15;
  std::int64_t region_operations = 1 << 30;
  bool region_vectors = true;  // loads and stores of four floats
  // Operations of one invocation between two barriers; beyond that what it folds is a stage of its own.
  double region_serial_limit = 48;

  // Workgroups (workgroups.h).
  std::int32_t fold_invocations = 64;   // of a workgroup that shares folds
  std::int64_t row_lane_elements = 8;   // elements of a row per lane
  std::int32_t map_invocations = 64;    // of a workgroup of a large map
  std::int32_t most_invocations = 128;  // of any workgroup

  // Measured on the device; overrides the cost model (variants.h). Null: none. Lives as long as the call.
  const VariantTable* variants = nullptr;
};

}  // namespace imprint::graph
