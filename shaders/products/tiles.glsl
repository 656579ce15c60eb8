// A product of matrices, tile by tile. A workgroup computes TILE_ROWS x TILE_COLUMNS outputs, TILE_DEPTH
// terms at a time. Its invocations copy that part of both operands to shared memory while the loads of the
// next turn are in flight. Each keeps the sums of THREAD_ROWS x THREAD_COLUMNS outputs in registers.
// If SLICES > 1, as many groups of invocations compute the whole tile, each from its share of every turn's
// terms. Their sums meet in shared memory at the end. A tile that has a multiprocessor for itself then has
// enough invocations to hide latencies, and each still loads little per multiply-add.
//
// The kernel around this page defines, for each product:
//   PRODUCT
//     the function's name
//   ROW_TILES, COLUMN_TILES, DEPTH, BAND
//     tiles along both axes, terms, and rows of tiles that run at the same time
//   LEFT(batch, row, term, loaded), RIGHT(batch, term, column, loaded)
//     load what the invocation copies in its LEFT_TURNS or RIGHT_TURNS; the arguments are the first
//     position; zero outside. A turn loads LEFT_WIDTH or RIGHT_WIDTH neighbours (1 or 4) as a LEFT_TYPE or
//     RIGHT_TYPE: along the terms where LEFT_ALONG_TERMS or RIGHT_ALONG_TERMS is 1, else along rows or
//     columns
//   STORE(batch, row, column, sums)
//     stores four neighbouring outputs of each of STORE_ROWS rows, except those outside
// and once per kernel the tile's extents, SLICES (1, 2 or 4; if not 1, it divides THREAD_ROWS, and
// THREAD_COLUMNS is 4 or 8), STORE_ROWS (1 or 2; it divides THREAD_ROWS / SLICES), INVOCATIONS (a multiple of
// 32, at least the tile's rows and columns), and the shared vec4 arrays tile_left and tile_right: term by
// term, four rows or columns per element.

#define LEFT_STRIDE (TILE_ROWS / 4 + 1)
#define RIGHT_STRIDE (TILE_COLUMNS / 4 + 1)
// What an invocation copies in its turns; LANES invocations are side by side. Along the terms, turns advance
// by whole lines; along rows or columns, from term to term. An invocation's addresses then differ by
// constants. At most SIDE_BY_SIDE terms of a line are side by side: more would lie in the same banks.
#define SIDE_BY_SIDE 16
#if LEFT_ALONG_TERMS
#define LEFT_LANES (TILE_DEPTH / LEFT_WIDTH)
#if TILE_DEPTH > SIDE_BY_SIDE
#define LEFT_NEAR (SIDE_BY_SIDE / LEFT_WIDTH)
#define LEFT_ROW(turn) (lane / LEFT_NEAR % (INVOCATIONS / LEFT_LANES) + (turn) * (INVOCATIONS / LEFT_LANES))
#define LEFT_TERM(turn) \
  ((lane % LEFT_NEAR + lane / (INVOCATIONS * SIDE_BY_SIDE / TILE_DEPTH) * LEFT_NEAR) * LEFT_WIDTH)
#else
#define LEFT_ROW(turn) (lane / LEFT_LANES + (turn) * (INVOCATIONS / LEFT_LANES))
#define LEFT_TERM(turn) (lane % LEFT_LANES * LEFT_WIDTH)
#endif
#else
#define LEFT_LANES (TILE_ROWS / LEFT_WIDTH)
#define LEFT_ROW(turn) (lane % LEFT_LANES * LEFT_WIDTH)
#define LEFT_TERM(turn) (lane / LEFT_LANES * LEFT_TURNS + (turn))
#endif
#if RIGHT_ALONG_TERMS
#define RIGHT_LANES (TILE_DEPTH / RIGHT_WIDTH)
#if TILE_DEPTH > SIDE_BY_SIDE
#define RIGHT_NEAR (SIDE_BY_SIDE / RIGHT_WIDTH)
#define RIGHT_COLUMN(turn) \
  (lane / RIGHT_NEAR % (INVOCATIONS / RIGHT_LANES) + (turn) * (INVOCATIONS / RIGHT_LANES))
#define RIGHT_TERM(turn) \
  ((lane % RIGHT_NEAR + lane / (INVOCATIONS * SIDE_BY_SIDE / TILE_DEPTH) * RIGHT_NEAR) * RIGHT_WIDTH)
#else
#define RIGHT_COLUMN(turn) (lane / RIGHT_LANES + (turn) * (INVOCATIONS / RIGHT_LANES))
#define RIGHT_TERM(turn) (lane % RIGHT_LANES * RIGHT_WIDTH)
#endif
#else
#define RIGHT_LANES (TILE_COLUMNS / RIGHT_WIDTH)
#define RIGHT_COLUMN(turn) (lane % RIGHT_LANES * RIGHT_WIDTH)
#define RIGHT_TERM(turn) (lane / RIGHT_LANES * RIGHT_TURNS + (turn))
#endif

// Where a line of a term lies in shared memory. Those of terms 8 to 15 of 16 are turned by eight, so that a
// subgroup that copies along the terms meets each bank once: a step of a GPT 6 x 384 takes 15,450 instead of
// 15,680 us on an H200. With 128 sums an invocation has no register for a second address (matmul 4096: 2,973
// instead of 2,952 us).
#define TURNED(term) (THREAD_COLUMNS < 16 ? (term) >> 2 & 2 : 0)
#define PLACE(stride, line, term) ((term) * (stride) + ((line) / 4 ^ TURNED(term)))
// To shared memory: four lines of one term at once, four terms of one line one by one, or a single one.
#define KEEP_LINES(tile, stride, line, term, loaded) tile[PLACE(stride, line, term)] = loaded;
#define KEEP_TERMS(tile, stride, line, term, loaded) \
  [[unroll]] for (int next = 0; next < 4; next++)    \
      tile[PLACE(stride, line, term) + next * (stride)][(line) % 4] = loaded[next];
#define KEEP_ONE(tile, stride, line, term, loaded) tile[PLACE(stride, line, term)][(line) % 4] = loaded;

#define OWN_ROWS (THREAD_ROWS / SLICES)
#define OTHER_SUMS(other, r) (((other)*OWN_ROWS + (r)) * (INVOCATIONS / SLICES) + member)
#define OTHER_COLUMN(c) ((c) == 0 ? tile_left[at] : tile_right[at])
#define MEET(owner)                                                                                         \
  barrier();                                                                                                \
  if (slice != owner) {                                                                                     \
    [[unroll]] for (int r = 0; r < OWN_ROWS; r++) {                                                         \
      int at = OTHER_SUMS(slice - int(slice > owner), r);                                                   \
      tile_left[at] = sums[owner * OWN_ROWS + r][0];                                                        \
      if (THREAD_COLUMNS == 8) tile_right[at] = sums[owner * OWN_ROWS + r][THREAD_COLUMNS / 4 - 1];         \
    }                                                                                                       \
  }                                                                                                         \
  barrier();                                                                                                \
  if (slice == owner) {                                                                                     \
    [[unroll]] for (int r = 0; r < OWN_ROWS; r++) [[unroll]] for (int c = 0; c < THREAD_COLUMNS / 4; c++) { \
      own[r][c] = sums[owner * OWN_ROWS + r][c];                                                            \
      [[unroll]] for (int other = 0; other < SLICES - 1; other++) {                                         \
        int at = OTHER_SUMS(other, r);                                                                      \
        own[r][c] += OTHER_COLUMN(c);                                                                       \
      }                                                                                                     \
    }                                                                                                       \
  }

// The code of a store stands once, in a loop: a step of a GPT 6 x 384 takes 15,664 instead of 15,854 us on an
// H200, other networks as long as before.
#define STORE_SUMS(sums, row_count, column_count)                                                          \
  [[dont_unroll]] for (int turn = 0; turn < row_count / STORE_ROWS * (column_count); turn++) {             \
    vec4 found[STORE_ROWS];                                                                                \
    [[unroll]] for (int r = 0; r < row_count; r += STORE_ROWS)                                             \
        [[unroll]] for (int c = 0; c < column_count; c++) if (turn == r / STORE_ROWS * (column_count) + c) \
            [[unroll]] for (int i = 0; i < STORE_ROWS; i++) found[i] = sums[r + i][c];                     \
    int row = first_row + turn / (column_count)*STORE_ROWS, c = turn % (column_count);                     \
    STORE(batch, row_0 + (row / 4 * LANE_ROWS + lane_row) * 4 + row % 4,                                   \
          column_0 + (c * LANE_COLUMNS + lane_column) * 4, found);                                         \
  }

void PRODUCT(int group) {
  int lane = int(gl_LocalInvocationID.x);
  // Neighbouring workgroups take a band of tile rows, column by column: together they read few rows and
  // columns, which stay in the cache.
  int batch = group / (ROW_TILES * COLUMN_TILES);
  int tile = group % (ROW_TILES * COLUMN_TILES);
  int band = tile / (BAND * COLUMN_TILES);
  int band_rows = min(BAND, ROW_TILES - band * BAND);
  int in_band = tile - band * BAND * COLUMN_TILES;
  int row_0 = (band * BAND + in_band % band_rows) * TILE_ROWS;
  int column_0 = in_band / band_rows * TILE_COLUMNS;
  // A subgroup's 32 lanes form 4 x 8, so that they read few different elements of either tile at once. Two
  // neighbours share a column, and lanes two apart a row: shared memory serves half a subgroup at a time.
  int member = lane % (INVOCATIONS / SLICES), slice = lane / (INVOCATIONS / SLICES);
  int block = member / 32;
  int lane_row = block / (LANE_COLUMNS / 8) * 4 + lane % 32 / 16 * 2 + lane % 2;
  int lane_column = block % (LANE_COLUMNS / 8) * 8 + lane % 16 / 2;

  vec4 sums[THREAD_ROWS][THREAD_COLUMNS / 4];
  [[unroll]] for (int r = 0; r < THREAD_ROWS; r++) [[unroll]] for (int c = 0; c < THREAD_COLUMNS / 4; c++)
      sums[r][c] = vec4(0.0);
  const int kTerms = TILE_DEPTH / SLICES;
  int first_term = slice * kTerms;
  int left_at[2], right_at[2];  // of each eight terms
  [[unroll]] for (int eight = 0; eight < 2; eight++) {
    left_at[eight] = first_term * LEFT_STRIDE + (lane_row ^ TURNED(first_term + 8 * eight));
    right_at[eight] = first_term * RIGHT_STRIDE + (lane_column ^ TURNED(first_term + 8 * eight));
  }
  LEFT_TYPE left_loaded[LEFT_TURNS];
  RIGHT_TYPE right_loaded[RIGHT_TURNS];

#define LOAD(term_0)                                                    \
  LEFT(batch, row_0 + LEFT_ROW(0), term_0 + LEFT_TERM(0), left_loaded); \
  RIGHT(batch, term_0 + RIGHT_TERM(0), column_0 + RIGHT_COLUMN(0), right_loaded);
  LOAD(0)
  // No turn count that a compiler could unroll by: this keeps the loads ahead of the products.
  for (int term_0 = TILE_DEPTH;; term_0 += TILE_DEPTH) {
    [[unroll]] for (int turn = 0; turn < LEFT_TURNS; turn++) {
      LEFT_KEEP(tile_left, LEFT_STRIDE, LEFT_ROW(turn), LEFT_TERM(turn), left_loaded[turn])
    }
    [[unroll]] for (int turn = 0; turn < RIGHT_TURNS; turn++){RIGHT_KEEP(
        tile_right, RIGHT_STRIDE, RIGHT_COLUMN(turn), RIGHT_TERM(turn), right_loaded[turn])} barrier();
    if (term_0 < DEPTH) {
      LOAD(term_0)
    }
    [[unroll]] for (int term = 0; term < kTerms; term++) {
      vec4 left[THREAD_ROWS / 4];
      vec4 right[THREAD_COLUMNS / 4];
      [[unroll]] for (int r = 0; r < THREAD_ROWS / 4; r++) left[r] =
          tile_left[term * LEFT_STRIDE + r * LANE_ROWS + left_at[term / 8 % 2]];
      [[unroll]] for (int c = 0; c < THREAD_COLUMNS / 4; c++) right[c] =
          tile_right[term * RIGHT_STRIDE + c * LANE_COLUMNS + right_at[term / 8 % 2]];
      [[unroll]] for (int r = 0; r < THREAD_ROWS; r++) [[unroll]] for (int c = 0; c < THREAD_COLUMNS / 4; c++)
          sums[r][c] += left[r / 4][r % 4] * right[c];
    }
    if (term_0 >= DEPTH) break;
    barrier();
  }

#if SLICES > 1
  // Each slice adds up the sums of its own rows, and stores them. No loop over slices: with barriers inside,
  // a driver may keep it, and then the sums in memory.
  vec4 own[OWN_ROWS][THREAD_COLUMNS / 4];
  MEET(0)
  MEET(1)
#if SLICES == 4
  MEET(2)
  MEET(3)
#endif
  int first_row = slice * OWN_ROWS;
  STORE_SUMS(own, OWN_ROWS, THREAD_COLUMNS / 4)
#else
  const int first_row = 0;
  STORE_SUMS(sums, THREAD_ROWS, THREAD_COLUMNS / 4)
#endif
}

#undef LEFT_LANES
#undef LEFT_ROW
#undef LEFT_TERM
#undef LEFT_NEAR
#undef RIGHT_LANES
#undef RIGHT_COLUMN
#undef RIGHT_TERM
#undef RIGHT_NEAR
#undef SIDE_BY_SIDE
#undef STORE_SUMS
#undef OWN_ROWS
#undef OTHER_SUMS
#undef OTHER_COLUMN
#undef MEET
