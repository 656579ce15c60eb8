// Shared by the kernels of attention: 256 invocations, tiles of TILE rows of an operand in shared memory,
// and products of two tiles. No kernel stores scores. Source: Dao, Fu, Ermon, Rudra, Re, FlashAttention: Fast
// and Memory-Efficient Exact Attention with IO-Awareness, 2022.

const int kInvocations = 256;
const int kRowElements = 4 * COLUMNS;        // EXTENT, rounded up
const int kScores = TILE / 16;               // rows and columns of scores per invocation
const int kGroups = kInvocations / COLUMNS;  // invocations that share a column of a result
const int kRows = TILE / kGroups;            // rows of a result per invocation
const int kFetched = TILE * kRowElements / kInvocations;
const int kQueryBlocks = (QUERIES + TILE - 1) / TILE;
const int kKeyBlocks = (KEYS + TILE - 1) / TILE;

shared vec4 tile_a[TILE * COLUMNS], tile_b[TILE * COLUMNS];
shared vec4 tile_c[TILE * max(COLUMNS, TILE / 4)];

// Neighbouring rows of a column lie in different banks.
int slot(int row, int column) { return row * COLUMNS + (column ^ (row & 7)); }
int score_slot(int row, int column) { return row * (TILE / 4) + (column ^ (row & 7)); }

// Invocations form 16 x 16. A subgroup's 32 form 4 x 8: neighbours share a column, and others a row, so that
// it reads few different elements of either tile at once.
int column_of(int thread) { return (thread >> 1 & 7) | (thread >> 2 & 8); }
int row_of(int thread) { return (thread & 1) | (thread >> 3 & 2) | (thread >> 6 << 2); }
int result_column_of(int thread) { return COLUMNS == 16 ? column_of(thread) : thread % COLUMNS; }
int result_row_of(int thread) { return COLUMNS == 16 ? row_of(thread) : thread / COLUMNS; }

// Loads a tile's share of an invocation; rows outside are 0. Early, since other work hides the latency.
#define FETCH(into, load, base, first, count)                              \
  [[unroll]] for (int n = 0; n < kFetched; ++n) {                          \
    int at = n * kInvocations + thread, row = (first) + at / kRowElements; \
    int column = at % kRowElements;                                        \
    into[n] = row < (count) && (kRowElements == EXTENT || column < EXTENT) \
                  ? load((base) + row * EXTENT + column)                   \
                  : 0.0;                                                   \
  }

#define KEEP(tile, from)                                                                     \
  [[unroll]] for (int n = 0; n < kFetched; ++n) {                                            \
    int at = n * kInvocations + thread, row = at / kRowElements, column = at % kRowElements; \
    tile[slot(row, column / 4)][column % 4] = from[n];                                       \
  }

// Products add one term at a time, so that each is one multiply-add.
// sums[i][j] += row (y + 16 i) of `left` times row (x + 16 j) of `right`. 16 rows on, columns lie alike.
#define ROW_PRODUCTS(sums, left, right)                                                       \
  for (int k = 0; k < COLUMNS; ++k) {                                                         \
    int left_at = slot(y, k), right_at = slot(x, k);                                          \
    vec4 a[kScores], b[kScores];                                                              \
    [[unroll]] for (int i = 0; i < kScores; ++i) {                                            \
      a[i] = left[left_at + i * 16 * COLUMNS];                                                \
      b[i] = right[right_at + i * 16 * COLUMNS];                                              \
    }                                                                                         \
    [[unroll]] for (int i = 0; i < kScores; ++i) [[unroll]] for (int j = 0; j < kScores; ++j) \
        [[unroll]] for (int c = 0; c < 4; ++c) sums[i * kScores + j] += a[i][c] * b[j][c];    \
  }

// sums[i] += row (result_row + i kGroups) of the scores in tile_c times column `result_column` of `right`.
// kGroups is a multiple of 8.
#define SCORE_PRODUCTS(sums, right)                                                            \
  for (int k = 0; k < TILE / 4; ++k) {                                                         \
    int scores_at = score_slot(result_row, k), column = result_column ^ (4 * k & 7);           \
    vec4 b[4];                                                                                 \
    [[unroll]] for (int j = 0; j < 4; ++j) b[j] = right[(4 * k + j) * COLUMNS + (column ^ j)]; \
    [[unroll]] for (int i = 0; i < kRows; ++i) {                                               \
      vec4 a = tile_c[scores_at + i * kGroups * (TILE / 4)];                                   \
      [[unroll]] for (int j = 0; j < 4; ++j) sums[i] += a[j] * b[j];                           \
    }                                                                                          \
  }

bool sees(int query, int key) {
  return key < KEYS && query < QUERIES && (CAUSAL == 0 || key <= query + KEYS - QUERIES);
}

// Blocks of keys that some query of a block sees.
int blocks_seen(int query_block) {
  if (CAUSAL == 0) return kKeyBlocks;
  return min(kKeyBlocks, (min(QUERIES, (query_block + 1) * TILE) - 1 + KEYS - QUERIES) / TILE + 1);
}
