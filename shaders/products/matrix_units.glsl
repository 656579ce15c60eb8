// A product of float16 matrices on matrix units, with float32 sums. A workgroup computes TILE_ROWS x
// TILE_COLUMNS outputs, TILE_DEPTH terms at a time. Its invocations copy that part of both operands to shared
// memory, in its memory layout, while the loads of the next turn are in flight. Each subgroup multiplies
// SUBGROUP_ROWS x SUBGROUP_COLUMNS outputs in matrices of 16 x 16 (include/matrices_nv.glsl,
// matrices_khr.glsl).
//
// The kernel around this page defines what products/tiles.glsl lists, and
//   SUBGROUP_ROWS, SUBGROUP_COLUMNS
//     outputs of a subgroup
//   tile_memory
//     a shared uvec4 array: LEFT_ELEMENTS of the left operand, and then those of the right
//   SCRATCH_ROWS
//     rows of matrices whose sums pass through shared memory together
//   STORE_ROWS, STORE(batch, row, column, sums)
//     stores sums[i], four neighbouring outputs, at row + i * ROWS_APART
// Loads return eight neighbours as a uvec4. Where sums go to memory unchanged and tiles are whole, it defines
// STORE_MATRIX(sums, batch, row, column) for matrices.
// Indices are unsigned: 227 TFLOP/s instead of 210 with signed ones.

#define MATRIX_ROWS (SUBGROUP_ROWS / 16)
#define MATRIX_COLUMNS (SUBGROUP_COLUMNS / 16)
// Fours of a subgroup's row, and two more against bank conflicts.
#define SCRATCH_FOURS (SUBGROUP_COLUMNS / 4)
#define SCRATCH_STRIDE (SCRATCH_FOURS + 2)
#define ROWS_APART (32 / SCRATCH_FOURS)

// A line of shared memory holds eights that are contiguous in memory, and one more against bank conflicts.
#if LEFT_ALONG_TERMS
#define LEFT_LANES (TILE_DEPTH / 8)
#define LEFT_ROW(turn) (lane / LEFT_LANES + (turn) * (INVOCATIONS / LEFT_LANES))
#define LEFT_TERM(turn) (lane % LEFT_LANES * 8)
#define LEFT_STRIDE (TILE_DEPTH / 8 + 1)
#define LEFT_AT(row, term) ((row)*LEFT_STRIDE + (term) / 8)
#else
#define LEFT_LANES (TILE_ROWS / 8)
#define LEFT_ROW(turn) (lane % LEFT_LANES * 8)
#define LEFT_TERM(turn) (lane / LEFT_LANES * LEFT_TURNS + (turn))
#define LEFT_STRIDE (TILE_ROWS / 8 + 1)
#define LEFT_AT(row, term) ((term)*LEFT_STRIDE + (row) / 8)
#endif
#if RIGHT_ALONG_TERMS
#define RIGHT_LANES (TILE_DEPTH / 8)
#define RIGHT_COLUMN(turn) (lane / RIGHT_LANES + (turn) * (INVOCATIONS / RIGHT_LANES))
#define RIGHT_TERM(turn) (lane % RIGHT_LANES * 8)
#define RIGHT_STRIDE (TILE_DEPTH / 8 + 1)
#define RIGHT_AT(term, column) ((column)*RIGHT_STRIDE + (term) / 8)
#else
#define RIGHT_LANES (TILE_COLUMNS / 8)
#define RIGHT_COLUMN(turn) (lane % RIGHT_LANES * 8)
#define RIGHT_TERM(turn) (lane / RIGHT_LANES * RIGHT_TURNS + (turn))
#define RIGHT_STRIDE (TILE_COLUMNS / 8 + 1)
#define RIGHT_AT(term, column) ((term)*RIGHT_STRIDE + (column) / 8)
#endif

void PRODUCT(int group) {
  uint lane = gl_LocalInvocationID.x;
  // Neighbouring workgroups take a band of tile rows, column by column: together they read few rows and
  // columns, which stay in the cache.
  int batch = group / (ROW_TILES * COLUMN_TILES);
  int tile = group % (ROW_TILES * COLUMN_TILES);
  int band = tile / (BAND * COLUMN_TILES);
  int band_rows = min(BAND, ROW_TILES - band * BAND);
  int in_band = tile - band * BAND * COLUMN_TILES;
  uint row_0 = uint(band * BAND + in_band % band_rows) * TILE_ROWS;
  uint column_0 = uint(in_band / band_rows * TILE_COLUMNS);
  uint subgroup = gl_SubgroupID;
  uint subgroup_row = subgroup / (TILE_COLUMNS / SUBGROUP_COLUMNS) * SUBGROUP_ROWS;
  uint subgroup_column = subgroup % (TILE_COLUMNS / SUBGROUP_COLUMNS) * SUBGROUP_COLUMNS;

  MATRIX_SUMS sums[MATRIX_ROWS][MATRIX_COLUMNS];
  [[unroll]] for (int r = 0; r < MATRIX_ROWS; r++) [[unroll]] for (int c = 0; c < MATRIX_COLUMNS; c++)
      sums[r][c] = MATRIX_SUMS(0.0);
  uvec4 left_loaded[LEFT_TURNS];
  uvec4 right_loaded[RIGHT_TURNS];

#define LOAD(term_0)                                                    \
  LEFT(batch, row_0 + LEFT_ROW(0), term_0 + LEFT_TERM(0), left_loaded); \
  RIGHT(batch, term_0 + RIGHT_TERM(0), column_0 + RIGHT_COLUMN(0), right_loaded);
  LOAD(0u)
  // No turn count, for the reason in products/tiles.glsl.
  for (uint term_0 = TILE_DEPTH;; term_0 += TILE_DEPTH) {
    [[unroll]] for (int turn = 0; turn < LEFT_TURNS; turn++)
        tile_memory[LEFT_AT(LEFT_ROW(turn), LEFT_TERM(turn))] = left_loaded[turn];
    [[unroll]] for (int turn = 0; turn < RIGHT_TURNS; turn++)
        tile_memory[LEFT_ELEMENTS + RIGHT_AT(RIGHT_TERM(turn), RIGHT_COLUMN(turn))] = right_loaded[turn];
    barrier();
    if (term_0 < DEPTH) {
      LOAD(term_0)
    }
#if TILE_DEPTH > 32
    // Matrices of a few terms at a time: all of them would need too many registers.
    [[unroll]] for (int k = 0; k < TILE_DEPTH; k += 16) {
      MATRIX_LEFT left[MATRIX_ROWS];
      MATRIX_RIGHT right[MATRIX_COLUMNS];
      [[unroll]] for (int r = 0; r < MATRIX_ROWS; r++) MATRIX_LOAD(
          left[r], tile_memory, LEFT_AT(subgroup_row + r * 16, k), LEFT_STRIDE, 1 - LEFT_ALONG_TERMS);
      [[unroll]] for (int c = 0; c < MATRIX_COLUMNS; c++)
          MATRIX_LOAD(right[c], tile_memory, LEFT_ELEMENTS + RIGHT_AT(k, subgroup_column + c * 16),
                      RIGHT_STRIDE, RIGHT_ALONG_TERMS);
      [[unroll]] for (int r = 0; r < MATRIX_ROWS; r++) [[unroll]] for (int c = 0; c < MATRIX_COLUMNS; c++)
          sums[r][c] = MATRIX_MULTIPLY_ADD(left[r], right[c], sums[r][c]);
    }
#else
    MATRIX_LEFT left[TILE_DEPTH / 16][MATRIX_ROWS];
    MATRIX_RIGHT right[TILE_DEPTH / 16][MATRIX_COLUMNS];
    [[unroll]] for (int k = 0; k < TILE_DEPTH / 16; k++) {
      [[unroll]] for (int r = 0; r < MATRIX_ROWS; r++) MATRIX_LOAD(
          left[k][r], tile_memory, LEFT_AT(subgroup_row + r * 16, k * 16), LEFT_STRIDE, 1 - LEFT_ALONG_TERMS);
      [[unroll]] for (int c = 0; c < MATRIX_COLUMNS; c++)
          MATRIX_LOAD(right[k][c], tile_memory, LEFT_ELEMENTS + RIGHT_AT(k * 16, subgroup_column + c * 16),
                      RIGHT_STRIDE, RIGHT_ALONG_TERMS);
    }
    [[unroll]] for (int k = 0; k < TILE_DEPTH / 16; k++) [[unroll]] for (int r = 0; r < MATRIX_ROWS; r++)
        [[unroll]] for (int c = 0; c < MATRIX_COLUMNS; c++) sums[r][c] =
            MATRIX_MULTIPLY_ADD(left[k][r], right[k][c], sums[r][c]);
#endif
    if (term_0 >= DEPTH) break;
    barrier();
  }

#ifdef STORE_MATRIX
  // The sums go to memory unchanged.
  [[unroll]] for (int r = 0; r < MATRIX_ROWS; r++) [[unroll]] for (int c = 0; c < MATRIX_COLUMNS; c++)
      STORE_MATRIX(sums[r][c], batch, row_0 + subgroup_row + r * 16, column_0 + subgroup_column + c * 16);
#else
  // The driver decides which invocation holds which element. The sums pass through shared memory, which is
  // free by now, to get known positions. An invocation takes STORE_ROWS parts of rows at once, so that what
  // they are combined with is loaded together.
  barrier();
  uint own = gl_SubgroupInvocationID;
  uint scratch = subgroup * (SCRATCH_ROWS * 16 * SCRATCH_STRIDE);
  uint own_row = own / SCRATCH_FOURS, own_four = own % SCRATCH_FOURS;
  [[unroll]] for (int r_0 = 0; r_0 < MATRIX_ROWS; r_0 += SCRATCH_ROWS) {
    [[unroll]] for (int r = 0; r < SCRATCH_ROWS; r++) [[unroll]] for (int c = 0; c < MATRIX_COLUMNS; c++)
        MATRIX_STORE(sums[r_0 + r][c], tile_memory, scratch + r * 16 * SCRATCH_STRIDE + c * 4,
                     SCRATCH_STRIDE);
    subgroupBarrier();
    [[dont_unroll]] for (uint row = own_row; row < SCRATCH_ROWS * 16; row += STORE_ROWS * ROWS_APART) {
      vec4 parts[STORE_ROWS];
      [[unroll]] for (int part = 0; part < STORE_ROWS; part++) parts[part] =
          uintBitsToFloat(tile_memory[scratch + (row + part * ROWS_APART) * SCRATCH_STRIDE + own_four]);
      STORE(batch, int(row_0 + subgroup_row + r_0 * 16 + row), int(column_0 + subgroup_column + own_four * 4),
            parts);
    }
    subgroupBarrier();
  }
#endif
}

#undef LEFT_LANES
#undef LEFT_ROW
#undef LEFT_TERM
#undef LEFT_STRIDE
#undef LEFT_AT
#undef RIGHT_LANES
#undef RIGHT_COLUMN
#undef RIGHT_TERM
#undef RIGHT_STRIDE
#undef RIGHT_AT
