// A product of float16 matrices on matrix units, with float32 sums, by GL_NV_cooperative_matrix2. A workgroup
// computes TILE_ROWS x TILE_COLUMNS outputs as one matrix, TILE_DEPTH terms at a time, loaded directly from
// memory. The driver distributes elements over invocations and uses shared memory as it likes.
//
// The kernel around this page defines, for each product, what products/tiles.glsl lists except loads, and:
//   ROWS, COLUMNS
//     extents of the product
//   LEFT_ARRAY, RIGHT_ARRAY
//     arrays of float16_t
//   LEFT_PLACE(batch), RIGHT_PLACE(batch)
//     the first element of an operand
//   LEFT_STRIDE, RIGHT_STRIDE
//     elements from line to line; a line is along the terms where LEFT_ALONG_TERMS or RIGHT_ALONG_TERMS is 1
//   LEFT_CLAMP, RIGHT_CLAMP
//     how elements outside load: as zero where tiles are incomplete
//   STORE(row, column, sum, batch, row_0, column_0)
//     stores one output, at row and column of the tile, and returns the sum
//   STORE_ARRAY, STORE_PLACE(batch), STORE_CLAMP
//     instead of STORE, where sums go to memory unchanged

void PRODUCT(int group) {
  // Bands as in products/tiles.glsl.
  int batch = group / (ROW_TILES * COLUMN_TILES);
  int tile = group % (ROW_TILES * COLUMN_TILES);
  int band = tile / (BAND * COLUMN_TILES);
  int band_rows = min(BAND, ROW_TILES - band * BAND);
  int in_band = tile - band * BAND * COLUMN_TILES;
  uint row_0 = uint(band * BAND + in_band % band_rows) * TILE_ROWS;
  uint column_0 = uint(in_band / band_rows * TILE_COLUMNS);

  tensorViewNV<2, false, 1, 0> turned = createTensorViewNV(2, false, 1, 0);
  tensorLayoutNV<2, LEFT_CLAMP> left_layout = createTensorLayoutNV(2, LEFT_CLAMP);
  tensorLayoutNV<2, RIGHT_CLAMP> right_layout = createTensorLayoutNV(2, RIGHT_CLAMP);
#if LEFT_ALONG_TERMS
  left_layout = setTensorLayoutDimensionNV(left_layout, ROWS, DEPTH);
#define LEFT_SLICE sliceTensorLayoutNV(left_layout, row_0, TILE_ROWS, term, TILE_DEPTH)
#else
  left_layout = setTensorLayoutDimensionNV(left_layout, DEPTH, ROWS);
#define LEFT_SLICE sliceTensorLayoutNV(left_layout, term, TILE_DEPTH, row_0, TILE_ROWS), turned
#endif
#if RIGHT_ALONG_TERMS
  right_layout = setTensorLayoutDimensionNV(right_layout, COLUMNS, DEPTH);
#define RIGHT_SLICE sliceTensorLayoutNV(right_layout, column_0, TILE_COLUMNS, term, TILE_DEPTH), turned
#else
  right_layout = setTensorLayoutDimensionNV(right_layout, DEPTH, COLUMNS);
#define RIGHT_SLICE sliceTensorLayoutNV(right_layout, term, TILE_DEPTH, column_0, TILE_COLUMNS)
#endif
  left_layout = setTensorLayoutStrideNV(left_layout, LEFT_STRIDE, 1);
  right_layout = setTensorLayoutStrideNV(right_layout, RIGHT_STRIDE, 1);

  coopmat<float, gl_ScopeWorkgroup, TILE_ROWS, TILE_COLUMNS, gl_MatrixUseAccumulator> sums =
      coopmat<float, gl_ScopeWorkgroup, TILE_ROWS, TILE_COLUMNS, gl_MatrixUseAccumulator>(0.0);
  // No unroll hint: with one, 194 instead of 281 TFLOP/s.
  for (uint term = 0; term < DEPTH; term += TILE_DEPTH) {
    coopmat<float16_t, gl_ScopeWorkgroup, TILE_ROWS, TILE_DEPTH, gl_MatrixUseA> left;
    coopmat<float16_t, gl_ScopeWorkgroup, TILE_DEPTH, TILE_COLUMNS, gl_MatrixUseB> right;
    coopMatLoadTensorNV(left, LEFT_ARRAY, LEFT_PLACE(batch), LEFT_SLICE);
    coopMatLoadTensorNV(right, RIGHT_ARRAY, RIGHT_PLACE(batch), RIGHT_SLICE);
    sums = coopMatMulAdd(left, right, sums);
  }

#ifdef STORE_ARRAY
  tensorLayoutNV<2, STORE_CLAMP> store_layout = createTensorLayoutNV(2, STORE_CLAMP);
  store_layout = setTensorLayoutDimensionNV(store_layout, ROWS, COLUMNS);
  coopMatStoreTensorNV(sums, STORE_ARRAY, STORE_PLACE(batch),
                       sliceTensorLayoutNV(store_layout, row_0, TILE_ROWS, column_0, TILE_COLUMNS));
#else
  coopMatPerElementNV(sums, sums, STORE, batch, int(row_0), int(column_0));
#endif
}

#undef LEFT_SLICE
#undef RIGHT_SLICE
