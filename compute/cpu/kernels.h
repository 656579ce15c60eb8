#pragma once
// The loops that everything on the processor is made of, over contiguous elements of four bytes (bool as 0 or
// 1), vectorised by the compiler. Each instruction set has a set of its own from one source; all give the
// same bits: no fused multiply-add, own functions in place of a library's, and sums in an order that does not
// depend on how wide a vector is. (atan2, fmod, remainder and pow alone ask the C library.)

#include <cstdint>

#include "compute/tensor/dtype.h"
#include "compute/tensor/op.h"

namespace imprint::cpu {

using tensor::Op;

// result[i] = op(a[i], b[i], c[i]); operands that the op does not have are null. The result may be an
// operand.
using Elementwise = void (*)(const void* a, const void* b, const void* c, void* result, std::int64_t count);

// *accumulator = the fold of *accumulator and count elements: sixteen sums side by side, and those in pairs.
using FoldRun = void (*)(const void* elements, std::int64_t count, void* accumulator);

// c[m, n] = sum over k of a[m, k] * b[k, n], terms in order within blocks of kMatmulDepth, those in order
// too. Strides in elements; c is row-major. scratch: kMatmulScratch floats.
struct Matmul {
  const float* a = nullptr;
  const float* b = nullptr;
  float* c = nullptr;
  std::int64_t rows = 0, depth = 0, columns = 0;
  std::int64_t a_row = 0, a_depth = 0, b_depth = 0, b_column = 0;
  float* scratch = nullptr;
};
inline constexpr std::int64_t kMatmulDepth = 512;
inline constexpr std::int64_t kMatmulScratch = kMatmulDepth * 64;

struct KernelSet {
  const char* name;  // of the instruction set
  Elementwise (*elementwise)(
      Op op, DType operand,
      DType result);  // of an elementwise op, by its first operand but where's condition
  FoldRun (*fold_run)(Op op, DType operand);  // of reduce_sum, reduce_prod, reduce_max, reduce_min
  void (*matmul)(const Matmul& arguments);
};

// The widest that this processor has. Safe from any thread.
const KernelSet& kernels();

// ---- the sets, for kernels() ----
extern const KernelSet kBaselineKernels;
extern const KernelSet kAvx2Kernels;
extern const KernelSet kAvx512Kernels;

}  // namespace imprint::cpu
