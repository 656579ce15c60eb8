// Shared by the kernels of attention: tiles of TILE rows of an operand in shared memory, and products of two
// tiles. Each of 2 TILE invocations computes 4 rows by TILE / 8 scores, or by COLUMNS / 2 elements of a
// result. No kernel stores scores. Source: Dao, Fu, Ermon, Rudra, Re, FlashAttention: Fast and
// Memory-Efficient Exact Attention with IO-Awareness, 2022.

const int kInvocations = 2 * TILE;
const int kAcross = TILE / 32;   // fours of scores across a row, per invocation
const int kKeys = 4 * kAcross;   // scores across a row
const int kParts = COLUMNS / 8;  // fours of a row of a result; COLUMNS: a row's fours, rounded up
const int kFetched = TILE * COLUMNS / kInvocations;
const int kQueryBlocks = (QUERIES + TILE - 1) / TILE;
const int kKeyBlocks = (KEYS + TILE - 1) / TILE;
const float kHidden = -3.40282347e38, kUnseen = -1.0e30;

shared vec4 tile_a[TILE * COLUMNS], tile_b[TILE * COLUMNS];
shared vec4 tile_c[TILE * max(COLUMNS, TILE / 4)];

// Every fourth row of a column lies in other banks.
int slot(int row, int column) { return row * COLUMNS + (column ^ (row >> 2 & 7)); }
int score_slot(int row, int column) { return row * (TILE / 4) + (column ^ (row >> 2 & 7)); }

// Invocations form TILE / 4 x 8. A subgroup's 32 form 4 x 8: neighbours share a column, and others a row, so
// that it reads few different elements of either tile at once. Invocation y x has rows 4 y + i, i < 4, and
// the fours x + 8 j of scores or of a result.
int column_of(int thread) { return thread >> 1 & 7; }
int row_of(int thread) { return (thread & 1) | (thread >> 3 & 2) | (thread >> 5 << 2); }

#if EXTENT % 4 == 0
#define LOAD_FOUR(k, base, row, column) imp_four_##k(start + (row)*step + (column))
#define PLACE_ROWS(k, base) int start = imp_row_##k(base), step = imp_row_##k((base) + 1) - start;
#else
#define PLACE_ROWS(k, base)
#define LOAD_FOUR(k, base, row, column)                                                          \
  vec4(imp_load_##k(((base) + (row)) * EXTENT + 4 * (column)), ELEMENT(k, base, row, column, 1), \
       ELEMENT(k, base, row, column, 2), ELEMENT(k, base, row, column, 3))
#define ELEMENT(k, base, row, column, c) \
  (4 * (column) + c < EXTENT ? imp_load_##k(((base) + (row)) * EXTENT + 4 * (column) + c) : 0.0)
#endif

// Loads an invocation's share of a tile of input k, from row `first` of those that begin at row `base`.
// Outside of `count` rows they are 0. Early, since other work hides the latency.
#define FETCH(into, k, base, first, count)                                                     \
  {                                                                                            \
    PLACE_ROWS(k, base)                                                                        \
    [[unroll]] for (int n = 0; n < kFetched; ++n) {                                            \
      int at = n * kInvocations + thread, row = (first) + at / COLUMNS, column = at % COLUMNS; \
      into[n] = row < (count) && (4 * COLUMNS == EXTENT || 4 * column < EXTENT)                \
                    ? LOAD_FOUR(k, base, row, column)                                          \
                    : vec4(0.0);                                                               \
    }                                                                                          \
  }

#define KEEP(tile, from)                              \
  [[unroll]] for (int n = 0; n < kFetched; ++n) {     \
    int at = n * kInvocations + thread;               \
    tile[slot(at / COLUMNS, at % COLUMNS)] = from[n]; \
  }

// Products add one term at a time, so that each is one multiply-add.
// sums[i][4 j + c] += row 4 y + i of `left` times row 4 (x + 8 j) + c of `right`.
#define ROW_PRODUCTS(sums, left, right)                                                                 \
  for (int k = 0; k < COLUMNS; ++k) {                                                                   \
    int left_at = 4 * y * COLUMNS + (k ^ y & 7), right_at = 4 * x * COLUMNS + (k ^ x);                  \
    vec4 a[4], b[kKeys];                                                                                \
    [[unroll]] for (int i = 0; i < 4; ++i) a[i] = left[left_at + i * COLUMNS];                          \
    [[unroll]] for (int j = 0; j < kKeys; ++j) b[j] = right[right_at + (j / 4 * 32 + j % 4) * COLUMNS]; \
    [[unroll]] for (int t = 0; t < 4; ++t) [[unroll]] for (int i = 0; i < 4; ++i)                       \
        [[unroll]] for (int j = 0; j < kKeys; ++j) sums[i * kKeys + j] += a[i][t] * b[j][t];            \
  }

// sums[i][p] += row 4 y + i of the scores in tile_c times column x + 8 p of `right`.
#define SCORE_PRODUCTS(sums, right)                                                      \
  for (int k = 0; k < TILE / 4; ++k) {                                                   \
    int scores_at = 4 * y * (TILE / 4) + (k ^ y & 7), column = x ^ (k & 7);              \
    vec4 a[4];                                                                           \
    [[unroll]] for (int i = 0; i < 4; ++i) a[i] = tile_c[scores_at + i * (TILE / 4)];    \
    [[unroll]] for (int t = 0; t < 4; ++t) [[unroll]] for (int p = 0; p < kParts; ++p) { \
      vec4 b = right[(4 * k + t) * COLUMNS + 8 * p + column];                            \
      [[unroll]] for (int i = 0; i < 4; ++i) sums[i * kParts + p] += a[i][t] * b;        \
    }                                                                                    \
  }

// Key j of an invocation, of those of a tile.
#define KEY(j) (4 * x + (j) / 4 * 32 + (j) % 4)

// Scores as rows of keys, and of queries, in tile_c.
#define KEEP_SCORES(scores)                                                                             \
  [[unroll]] for (int i = 0; i < 4; ++i) [[unroll]] for (int j = 0; j < kAcross; ++j)                   \
      tile_c[score_slot(4 * y + i, x + 8 * j)] =                                                        \
          vec4(scores[i * kKeys + 4 * j], scores[i * kKeys + 4 * j + 1], scores[i * kKeys + 4 * j + 2], \
               scores[i * kKeys + 4 * j + 3]);
#define KEEP_TURNED(scores)                                                  \
  [[unroll]] for (int j = 0; j < kKeys; ++j) tile_c[score_slot(KEY(j), y)] = \
      vec4(scores[j], scores[kKeys + j], scores[2 * kKeys + j], scores[3 * kKeys + j]);

#define STORE_ROWS(store, base, first, count, factors, sums)                                            \
  [[unroll]] for (int i = 0; i < 4; ++i) if ((first) + 4 * y + i < (count)) {                           \
    int row_at = ((base) + (first) + 4 * y + i) * EXTENT;                                               \
    [[unroll]] for (int p = 0; p < kParts; ++p) {                                                       \
      vec4 found = sums[i * kParts + p] * factors;                                                      \
      [[unroll]] for (int c = 0; c < 4; ++c) if (4 * COLUMNS == EXTENT || 4 * (x + 8 * p) + c < EXTENT) \
          store(row_at + 4 * (x + 8 * p) + c, found[c]);                                                \
    }                                                                                                   \
  }

bool sees(int query, int key) {
  return key < KEYS && query < QUERIES && (CAUSAL == 0 || key <= query + KEYS - QUERIES);
}
// Whether all queries of a tile see all keys of a tile.
bool sees_all(int query, int key) {
  return key + TILE <= KEYS && query + TILE <= QUERIES &&
         (CAUSAL == 0 || key + TILE - 1 <= query + KEYS - QUERIES);
}

// Blocks of keys that some query of a block sees.
int blocks_seen(int query_block) {
  if (CAUSAL == 0) return kKeyBlocks;
  return min(kKeyBlocks, (min(QUERIES, (query_block + 1) * TILE) - 1 + KEYS - QUERIES) / TILE + 1);
}

// Masks are inputs of [batch, heads, queries, keys], or of 1 where they broadcast: BIAS is added to scores,
// keys where HIDDEN is not 0 are not seen, and FACTORS multiply weights. Each is the number of its input.
#if defined(BIAS) || defined(HIDDEN) || defined(FACTORS)
#define MASKED
#define LOAD_OF(k, place) imp_load_##k(place)
#define LOAD(k, place) LOAD_OF(k, place)
#define MASK(mask, head, query, key)                                                      \
  LOAD(mask, (head) / HEADS_OF_ONE * mask##_BATCH + (head) % HEADS_OF_ONE * mask##_HEAD + \
                 min(query, QUERIES - 1) * mask##_QUERY + min(key, KEYS - 1) * mask##_KEY)

float with_masks(float score, int head, int query, int key) {
#ifdef BIAS
  score += MASK(BIAS, head, query, key);
#endif
#ifdef HIDDEN
  if (MASK(HIDDEN, head, query, key) != 0) score = kUnseen;
#endif
  return score;
}

// The weight of an invocation's row i and key j, from a product.
#define WEIGHT(product, i, j)                                                            \
  exp((with_masks((product)*intBitsToFloat(SCALE_BITS), head, first_query + 4 * y + (i), \
                  first_key + KEY(j)) -                                                  \
       largest[i]) -                                                                     \
      log_sums[i])
#else
#define WEIGHT(product, i, j) exp((product)*intBitsToFloat(SCALE_BITS) - log_sums[i])
#endif

// For gradients, of rows 4 y + i of a block of queries: logarithms, products and, with masks, largest scores.
#ifdef MASKED
#define LOAD_LARGEST(i, at) largest[i] = imp_load_6(at);
#else
#define LOAD_LARGEST(i, at)
#endif
#define LOAD_ROWS(base, first)                               \
  float log_sums[4], products[4], largest[4];                \
  [[unroll]] for (int i = 0; i < 4; ++i) {                   \
    int at = (base) + min((first) + 4 * y + i, QUERIES - 1); \
    log_sums[i] = imp_load_4(at);                            \
    products[i] = imp_load_5(at);                            \
    LOAD_LARGEST(i, at)                                      \
  }

#ifdef FACTORS
#define FACTOR(i, j) MASK(FACTORS, head, first_query + 4 * y + (i), first_key + KEY(j))
#endif

// Nothing flows back through a score that a mask replaced.
#ifdef HIDDEN
#define HIDE_SLOPES(slopes)                                                                          \
  [[unroll]] for (int i = 0; i < 4; ++i)                                                             \
      [[unroll]] for (int j = 0; j < kKeys;                                                          \
                      ++j) if (MASK(HIDDEN, head, first_query + 4 * y + i, first_key + KEY(j)) != 0) \
          slopes[i * kKeys + j] = 0.0;
#else
#define HIDE_SLOPES(slopes)
#endif
