// Shared by the kernels of attention: tiles of an operand in shared memory, and products of two tiles. A
// workgroup owns TILE rows and meets the other operands by blocks of BLOCK rows. Each of 2 TILE invocations,
// a party, computes 4 rows by BLOCK / 8 scores, or by COLUMNS / 2 elements of a result. No kernel stores
// scores. Source: Dao, Fu, Ermon, Rudra, Re, FlashAttention: Fast and Memory-Efficient Exact Attention with
// IO-Awareness, 2022.
// KERNEL: 0 forward, 1 gradient of queries, 2 gradients of all or of keys and values, with two parties.
// NARROW: 1 where a row has at most 16 fours.

const int kParties = KERNEL == 2 ? 2 : 1;
const int kParty = 2 * TILE, kInvocations = kParty * kParties;
const int kAcross = BLOCK / 32;  // fours of scores across a row, per invocation
const int kParts = COLUMNS / 8;  // fours of a row of a result; COLUMNS: a row's fours, rounded up
const int kOwnFetched = TILE * COLUMNS / kInvocations, kFetched = BLOCK * COLUMNS / kInvocations;
const int kQueryRows = KERNEL == 2 ? BLOCK : TILE, kKeyRows = KERNEL == 2 ? TILE : BLOCK;
const int kQueryBlocks = (QUERIES + kQueryRows - 1) / kQueryRows;
const int kKeyBlocks = (KEYS + kKeyRows - 1) / kKeyRows;
const float kHidden = -3.40282347e38, kUnseen = -1.0e30;
const float kBits = 1.44269504;  // the logarithm of e to base 2
#define SCALE intBitsToFloat(SCALE_BITS)

// Elements of shared memory: of tiles of own rows, of blocks, and of scores of own rows by a block.
const int kOwn = TILE * COLUMNS, kBlock = BLOCK * COLUMNS, kScores = TILE * BLOCK / 4;
#if KERNEL == 0
const int kShared = kOwn + max(kBlock, kScores) + kBlock;
#elif KERNEL == 1
const int kShared = (1 + NARROW) * kOwn + max(kBlock, kScores) + kBlock;
#else
const int kShared = max(kOwn, 2 * kScores) + kOwn + 2 * kBlock;
#endif
shared vec4 tiles[kShared];

// A party's invocations form TILE / 4 x 8. A subgroup's 32 form 4 x 8: neighbours share a column, and others
// a row, so that it reads few different elements of either tile at once. Invocation y x has rows 4 y + i, i <
// 4, and the fours x + 8 j of scores or of a result.
int column_of(int thread) { return thread >> 1 & 7; }
int row_of(int thread) { return (thread & 1) | (thread >> 3 & 2) | (thread >> 5 << 2); }

// Rows of fours. Those of operands of scores are turned, so that rows that are read at once lie in other
// banks.
#define ROW_AT(row, column) ((row)*COLUMNS + ((column) ^ (row) / 4 & 7))
const int kTurned = 7;  // the low bits of a column that are turned; 0: none
// Scores lie term by term, four own rows per element, turned likewise.
const int kTurns = min(TILE / 4, 8) - 1;

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

// Loads an invocation's share of `rows` rows of input k, from row `first`, a multiple of `rows`, of those
// that begin at row `base`. Outside of `count` rows they are 0. Early, since other work hides the latency.
#define FETCH(into, k, base, first, count, rows)                                                           \
  {                                                                                                        \
    PLACE_ROWS(k, base)                                                                                    \
    [[unroll]] for (int n = 0; n < (rows)*COLUMNS / kInvocations; ++n) {                                   \
      int at = n * kInvocations + thread, row = (first) + at / COLUMNS, column = at % COLUMNS;             \
      into[n] = ((count) % (rows) == 0 || row < (count)) && (4 * COLUMNS == EXTENT || 4 * column < EXTENT) \
                    ? LOAD_FOUR(k, base, row, column)                                                      \
                    : vec4(0.0);                                                                           \
    }                                                                                                      \
  }

#define KEEP(tile, from, rows)                                       \
  [[unroll]] for (int n = 0; n < (rows)*COLUMNS / kInvocations; ++n) \
      tiles[(tile) + n * kInvocations + thread] = from[n];

#define KEEP_TURNED(tile, from, rows)                                  \
  [[unroll]] for (int n = 0; n < (rows)*COLUMNS / kInvocations; ++n) { \
    int at = n * kInvocations + thread;                                \
    tiles[(tile) + ROW_AT(at / COLUMNS, at % COLUMNS)] = from[n];      \
  }

// Loops over fours of terms, a few at once: loads of later ones hide behind products of earlier ones.
const int kAtOnce = 4;
#define IN_FOURS(count)                                            \
  [[dont_unroll]] for (int k_0 = 0; k_0 < (count); k_0 += kAtOnce) \
      [[unroll]] for (int u = 0, k = k_0; u < kAtOnce; ++u, ++k)

// Products add one term at a time, so that each is one multiply-add.
// sums[i][j] += row 4 y + i of `left`, of own rows, times rows 4 (x + 8 j) + c of `right`, of a block.
#define ROW_PRODUCTS(sums, left, right)                                                                      \
  IN_FOURS(COLUMNS) {                                                                                        \
    int left_at = (left) + 4 * y * COLUMNS + (k ^ y & 7), right_at = (right) + 4 * x * COLUMNS + (k ^ x);    \
    vec4 a[4];                                                                                               \
    [[unroll]] for (int i = 0; i < 4; ++i) a[i] = tiles[left_at + i * COLUMNS];                              \
    [[unroll]] for (int j = 0; j < kAcross; ++j) {                                                           \
      vec4 b[4];                                                                                             \
      [[unroll]] for (int c = 0; c < 4; ++c) b[c] = tiles[right_at + (32 * j + c) * COLUMNS];                \
      [[unroll]] for (int i = 0; i < 4; ++i) [[unroll]] for (int t = 0; t < 4; ++t) sums[i * kAcross + j] += \
          a[i][t] * vec4(b[0][t], b[1][t], b[2][t], b[3][t]);                                                \
    }                                                                                                        \
  }

// sums[i][p] += scores of own row 4 y + i times columns x + 8 p of rows of a block. turned: kTurned or 0.
#define SCORE_PRODUCTS(sums, scores, right, turned)                              \
  IN_FOURS(BLOCK / 4) {                                                          \
    int scores_at = (scores) + k * TILE + (y ^ k & kTurns);                      \
    int right_at = (right) + 4 * k * COLUMNS + (x ^ k & (turned));               \
    [[unroll]] for (int t = 0; t < 4; ++t) {                                     \
      vec4 a = tiles[scores_at + t * (TILE / 4)];                                \
      [[unroll]] for (int p = 0; p < kParts; ++p) {                              \
        vec4 b = tiles[right_at + t * COLUMNS + 8 * p];                          \
        [[unroll]] for (int i = 0; i < 4; ++i) sums[i * kParts + p] += a[i] * b; \
      }                                                                          \
    }                                                                            \
  }

// A block's line of scores j of an invocation, component c.
#define LINE(j, c) (4 * x + 32 * (j) + (c))
// Scores term by term for the next product: own lines, four per element.
#define SCORE_PLACE(j, c) (LINE(j, c) * (TILE / 4) + (y ^ x & kTurns))
#define KEEP_SCORES(place, scores)                                                                       \
  [[unroll]] for (int j = 0; j < kAcross; ++j) [[unroll]] for (int c = 0; c < 4;                         \
                                                               ++c) tiles[(place) + SCORE_PLACE(j, c)] = \
      vec4(scores[j][c], scores[kAcross + j][c], scores[2 * kAcross + j][c], scores[3 * kAcross + j][c]);
#define EACH_SCORE                                                                    \
  [[unroll]] for (int i = 0; i < 4; ++i) [[unroll]] for (int j = 0; j < kAcross; ++j) \
      [[unroll]] for (int c = 0; c < 4; ++c)

// Where row 0 of a head's results begins, and elements between two rows. Results are [batch, heads, steps,
// extent], or BY_STEPS [batch, steps, heads, extent], as products read them.
#if BY_STEPS == 1
int result_of(int head, int heads, int steps) {
  return (head / heads * steps * heads + head % heads) * EXTENT;
}
#define ROWS_APART(heads) ((heads)*EXTENT)
#else
int result_of(int head, int heads, int steps) { return head * steps * EXTENT; }
#define ROWS_APART(heads) EXTENT
#endif
// Results of `heads` heads, of output k.
#define STORE_ROWS(k, head, heads, first, count, factors, sums)                             \
  [[unroll]] for (int i = 0; i < 4; ++i) if ((first) + 4 * y + i < (count)) {               \
    int row_at = result_of(head, heads, count) + ((first) + 4 * y + i) * ROWS_APART(heads); \
    [[unroll]] for (int p = 0; p < kParts; ++p) {                                           \
      vec4 found = sums[i * kParts + p] * factors;                                          \
      STORE_FOUR(k, row_at, 4 * (x + 8 * p), found)                                         \
    }                                                                                       \
  }
#if EXTENT % 4 == 0
#define STORE_FOUR(k, row_at, column, found) \
  if (4 * COLUMNS == EXTENT || (column) < EXTENT) imp_keep_four_##k(((row_at) + (column)) / 4, found);
#else
#define STORE_FOUR(k, row_at, column, found)                        \
  [[unroll]] for (int c = 0; c < 4; ++c) if ((column) + c < EXTENT) \
      imp_store_##k((row_at) + (column) + c, found[c]);
#endif

bool sees(int query, int key) {
  return key < KEYS && query < QUERIES && (CAUSAL == 0 || key <= query + KEYS - QUERIES);
}
// Whether all queries of a tile see all keys of a tile.
bool sees_all(int query, int key) {
  return (KEYS % kKeyRows == 0 || key + kKeyRows <= KEYS) &&
         (QUERIES % kQueryRows == 0 || query + kQueryRows <= QUERIES) &&
         (CAUSAL == 0 || key + kKeyRows - 1 <= query + KEYS - QUERIES);
}

// Blocks of keys that some query of a block sees.
int blocks_seen(int query_block) {
  if (CAUSAL == 0) return kKeyBlocks;
  return min(kKeyBlocks, (min(QUERIES, (query_block + 1) * kQueryRows) - 1 + KEYS - QUERIES) / kKeyRows + 1);
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

#endif

// The weight of a product, of a query with that logarithm of its sum and, with masks, that largest score.
#ifdef MASKED
#define WEIGHT(product, query, key, most, logarithm) \
  exp((with_masks((product)*SCALE, head, query, key) - (most)) - (logarithm))
#define LARGEST(at) imp_load_6(at)
#else
#define WEIGHT(product, query, key, most, logarithm) exp2(fma(product, SCALE* kBits, -kBits*(logarithm)))
#define LARGEST(at) 0.0
#endif
#ifdef FACTORS
#define FACTOR(query, key) MASK(FACTORS, head, query, key)
#else
#define FACTOR(query, key) 1.0
#endif
// Nothing flows back through a score that a mask replaced.
#ifdef HIDDEN
#define IS_HIDDEN(query, key) (MASK(HIDDEN, head, query, key) != 0)
#else
#define IS_HIDDEN(query, key) false
#endif
