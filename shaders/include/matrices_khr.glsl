// As matrices_nv.glsl, with GL_KHR_cooperative_matrix.
#define MATRIX_LEFT coopmat<float16_t, gl_ScopeSubgroup, 16, 16, gl_MatrixUseA>
#define MATRIX_RIGHT coopmat<float16_t, gl_ScopeSubgroup, 16, 16, gl_MatrixUseB>
#define MATRIX_SUMS coopmat<float, gl_ScopeSubgroup, 16, 16, gl_MatrixUseAccumulator>
#define MATRIX_ROUNDED coopmat<float16_t, gl_ScopeSubgroup, 16, 16, gl_MatrixUseAccumulator>
#define MATRIX_LOAD(matrix, array, place, stride, by_columns) \
  coopMatLoad(                                                \
      matrix, array, place, stride,                           \
      (by_columns) == 1 ? gl_CooperativeMatrixLayoutColumnMajor : gl_CooperativeMatrixLayoutRowMajor)
#define MATRIX_STORE(matrix, array, place, stride) \
  coopMatStore(matrix, array, place, stride, gl_CooperativeMatrixLayoutRowMajor)
#define MATRIX_MULTIPLY_ADD(left, right, sums) coopMatMulAdd(left, right, sums)
// An accumulator is no operand: it passes through 48 uvec4s of the subgroup in shared memory.
#define MATRIX_AS_LEFT(left, rounded, scratch, place)                     \
  MATRIX_ROUNDED held = rounded; /* commas of its type end no argument */ \
  subgroupBarrier();                                                      \
  MATRIX_STORE(held, scratch, place, 3);                                  \
  subgroupBarrier();                                                      \
  MATRIX_LOAD(left, scratch, place, 3, 0);
