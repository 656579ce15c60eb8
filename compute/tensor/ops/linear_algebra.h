#pragma once
// Linear algebra of small and batched matrices: the last two axes, float32. Names and meanings of NumPy and
// PyTorch. Each factorisation is a page: one workgroup per matrix, in shared memory. Everything is
// differentiable, to any order. Errors as in tensor.h: shape_mismatch, dtype_mismatch.

#include <cstdint>

#include "compute/tensor/tensor.h"

namespace imprint {

// [..., n, n] -> the lower triangular L with L L^T = a. Reads the lower triangle of a. NaN from the first
// column on where the matrix is not positive definite. Any n: larger ones go in blocks of 64.
Tensor cholesky(const Tensor& a);

// x with a x = b, for triangular a [..., n, n] and b [..., n, k]. Reads one triangle of a; unit_diagonal:
// takes its diagonal for 1. Any n.
Tensor solve_triangular(const Tensor& a, const Tensor& b, bool upper = false, bool unit_diagonal = false);

// a: [..., n, n], n <= 64. With partial pivoting: row i of L U is row pivots[i] of a.
struct LuFactors {
  Tensor factors;      // U with its diagonal, below it L without its diagonal of 1
  Tensor pivots;       // int32 [..., n]
  Tensor permutation;  // float32 [...]: the determinant of the row exchanges, 1 or -1
};
LuFactors lu(const Tensor& a);

// a: [..., m, n], m >= n, m (n + 1) + n n <= 4096: q [..., m, n] has orthonormal columns, r [..., n, n] is
// upper triangular with a positive diagonal. NaN where columns depend on each other.
struct QrFactors {
  Tensor q, r;
};
QrFactors qr(const Tensor& a);

// a: [..., n, n], n <= 64. A singular matrix gives infinities or NaN; its determinant is 0, without a finite
// gradient.
Tensor solve(const Tensor& a, const Tensor& b);  // b [..., n, k]
Tensor inverse(const Tensor& a);
Tensor det(const Tensor& a);  // [..., n, n] -> [...]
struct SignAndLog {
  Tensor sign, log;  // of the determinant, of its magnitude
};
SignAndLog slogdet(const Tensor& a);

}  // namespace imprint
