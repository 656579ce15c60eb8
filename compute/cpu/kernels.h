#pragma once
// The CPU's inner loops, over contiguous elements of four bytes (bool as 0 or 1), vectorised by the compiler.
// One source gives one set per instruction set. All sets give the same bits: Imprint's own functions instead
// of a library's, and an order of sums that does not depend on the vector width. Only atan2, fmod, remainder
// and pow call the C library. Fused multiply-adds are used where the caller allows them: sets that have them
// give equal bits there, the others agree within rounding.

#include <cstdint>

#include "compute/tensor/dtype.h"
#include "compute/tensor/op.h"

namespace imprint::cpu {

using tensor::Op;

// result[i] = op(a[i], b[i], c[i]). Missing operands are null. The result may be one of the operands.
using Elementwise = void (*)(const void* a, const void* b, const void* c, void* result, std::int64_t count);

// *accumulator = the fold of *accumulator and count elements: sixteen partial results, combined in pairs.
using FoldRun = void (*)(const void* elements, std::int64_t count, void* accumulator);

// c[m, n] = sum over k of a[m, k] * b[k, n]. Terms are added in order within blocks of kMatmulDepth, and the
// blocks in order. Strides in elements. scratch: kMatmulScratch floats.
struct Matmul {
  const float* a = nullptr;
  const float* b = nullptr;
  float* c = nullptr;
  std::int64_t rows = 0, depth = 0, columns = 0;
  std::int64_t a_row = 0, a_depth = 0, b_depth = 0, b_column = 0, c_row = 0;
  float* scratch = nullptr;
  // From the first of tile_rows rows of a to the next first; 0: they are a_row apart. The rows of a tile side
  // by side are one stream.
  std::int64_t a_tile = 0;
  // b in panels of KernelSet::constant_panel columns, each row-major: from one to the next. All columns are
  // in whole panels. 0: rows b_depth apart.
  std::int64_t b_panel = 0;
  // Windows of images: row k of b starts at b_rows[k], and its columns are runs of b_run, whose offsets in
  // the row are b_runs. The first column is first_column of those. Null: rows b_depth apart, of one run.
  const std::int64_t* b_rows = nullptr;
  const std::int64_t* b_runs = nullptr;
  std::int64_t b_run = 0, first_column = 0;
  // Terms may be added by fused multiply-adds, if the set has them.
  bool fuses = false;
};
inline constexpr std::int64_t kMatmulDepth = 512;
inline constexpr std::int64_t kMatmulScratch = kMatmulDepth * 128;  // half of a small second cache

// c[r, i] = the sum over pairs k of both products of a[r, k] and b[k, i], as float. A pair is two whole
// numbers of 16 bits, the first in the lower half; sums must stay below 2^31. b: a panel, kWholeColumns pairs
// per row.
inline constexpr std::int64_t kWholeColumns = 32;
struct WholeProduct {
  const std::int32_t* a = nullptr;  // [rows, pairs]
  const std::int32_t* b = nullptr;
  float* c = nullptr;
  std::int64_t rows = 0, pairs = 0, columns = 0, c_row = 0;  // columns: of the panel inside c
};
// Floats as pairs: count of one row, or all rows of m's panel at column n. False: one of them is no whole
// number, or beyond the limit.
struct WholeKernels {
  void (*product)(const WholeProduct& arguments) = nullptr;  // null: this set has none
  bool (*pack_row)(const float* from, std::int32_t* to, std::int64_t count, float limit) = nullptr;
  bool (*pack_panel)(const Matmul& m, std::int64_t n, std::int32_t* to, float limit) = nullptr;
};

// to[i] = from[i * stride], elements of any type.
using CopyRun = void (*)(const void* from, std::int64_t stride, void* to, std::int64_t count);

// Rows, whose starts are from_row and to_row elements apart: to[i] = from[i * stride] in each.
struct CopyRows {
  const void* from = nullptr;
  std::int64_t from_row = 0, stride = 1;
  void* to = nullptr;
  std::int64_t to_row = 0, rows = 0, columns = 0;
};

// result[i] = the sum over t of elements[offsets[t] + i] * factors[t], or the largest element. Terms are
// added in order to zero.
struct WindowFold {
  const float* elements = nullptr;
  const std::int64_t* offsets = nullptr;
  const float* factors = nullptr;  // null: 1
  std::int64_t terms = 0;
  float* result = nullptr;
  std::int64_t count = 0;
  std::int64_t rows = 1, row = 0, result_row = 0;  // of `count` elements, and from one to the next
  bool largest = false;                            // without factors
  bool fuses = false;                              // as Matmul::fuses
};

// Patches of 4 x 4 elements, two columns apart, from four rows of an image (graph/schedule/winograd.h): 16
// transformed values each, `plane` apart. Both kernels work on whole vectors of 16 patches: values and
// scratch have room for them.
inline constexpr std::int64_t patch_scratch(std::int64_t patches) {  // elements
  return 4 * (2 * ((patches + 15) / 16 * 16) + 16);
}
struct PatchRow {
  const float* rows[4] = {};
  std::int64_t columns = 0;  // of the rows; zeros follow
  std::int64_t patches = 0;
  float* values = nullptr;
  std::int64_t plane = 0;
  float* scratch = nullptr;
};
// The results of such patches, after the products of their values: two rows, or one and null.
struct PlaceRow {
  const float* values = nullptr;
  std::int64_t plane = 0, patches = 0;
  float* rows[2] = {};
  std::int64_t columns = 0;  // of the rows
};

// An operation on a sum in the same pass. clamp: between numbers, neither of which is NaN, as
// minimum(maximum(x, low), high) has it.
struct AfterSum {
  enum class Kind : std::uint8_t { none, relu, clamp };
  Kind kind = Kind::none;
  float low = 0, high = 0;
};

struct KernelSet {
  const char* name;  // of the instruction set
  bool fuses;        // has fused multiply-adds
  // operand: the dtype of the first operand; for where, of the branches. Null: no such kernel.
  Elementwise (*elementwise)(Op op, DType operand, DType result);
  FoldRun (*fold_run)(Op op, DType operand);  // of IMPRINT_FOLD_OPS
  void (*matmul)(const Matmul& arguments);
  std::int64_t tile_rows;       // of matmul: a divisor of 24
  std::int64_t panel_columns;   // of matmul: a divisor of 32
  std::int64_t constant_panel;  // columns of a panel in Matmul::b_panel: a divisor of 32
  Elementwise relu;             // of floats: x <= 0 ? 0 : x, in one pass
  // result[i] = x[i] + number, and what is after it. The result may be x.
  void (*add_number)(const float* x, float number, const AfterSum& after, float* result, std::int64_t count);
  CopyRun copy_run;
  void (*copy_rows)(const CopyRows& arguments);
  void (*window_fold)(const WindowFold& arguments);
  WholeKernels whole;
  void (*read_patches)(const PatchRow& arguments);
  void (*write_places)(const PlaceRow& arguments);
};

// The set for the widest vectors of this CPU. Any thread.
const KernelSet& kernels();

// ---- the sets, for kernels() ----
extern const KernelSet kBaselineKernels;
extern const KernelSet kAvx2Kernels;
extern const KernelSet kAvx512Kernels;
extern const KernelSet kNeonKernels;

}  // namespace imprint::cpu
