// Matrices of a subgroup: 16 x 16 float16, with float32 sums, by GL_NV_cooperative_matrix. Positions and
// strides count elements of the array.
// Right operands have a type of their own, which in_newer_matrices() recognises by the constant.
layout(constant_id = 0) const int kRightRows = 16;
#define MATRIX_LEFT fcoopmatNV<16, gl_ScopeSubgroup, 16, 16>
#define MATRIX_RIGHT fcoopmatNV<16, gl_ScopeSubgroup, kRightRows, 16>
#define MATRIX_SUMS fcoopmatNV<32, gl_ScopeSubgroup, 16, 16>
#define MATRIX_ROUNDED fcoopmatNV<16, gl_ScopeSubgroup, 16, 16>
#define MATRIX_LOAD(matrix, array, place, stride, by_columns) \
  coopMatLoadNV(matrix, array, place, stride, (by_columns) == 1)
#define MATRIX_STORE(matrix, array, place, stride) coopMatStoreNV(matrix, array, place, stride, false)
#define MATRIX_MULTIPLY_ADD(left, right, sums) coopMatMulAddNV(left, right, sums)
// Rounded sums as the left operand of a further product.
#define MATRIX_AS_LEFT(left, rounded, scratch, place) left = rounded;
