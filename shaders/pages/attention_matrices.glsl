// Shared by the kernels of attention on matrix units. A subgroup has 16 rows of its own operands as matrices.
// The workgroup goes through BLOCK rows of the other operands at a time, in shared memory. Products are
// float16 with float32 sums; no kernel stores scores. Powers are of 2. Source: Dao, FlashAttention-2: Faster
// Attention with Better Parallelism and Work Partitioning, 2023.

const int kSubgroups = imp_group_size / 32;
const int kRows = 16 * kSubgroups;      // of a workgroup
const int kParts = (EXTENT + 15) / 16;  // matrices across a row
const int kEights = 2 * kParts;         // of a row
const int kStride = kEights + 1;        // one more, against bank conflicts
const int kTurns = (BLOCK * kEights + imp_group_size - 1) / imp_group_size;
const bool kWholeTurns = kTurns * imp_group_size == BLOCK * kEights;
const int kSecond = BLOCK * kStride;  // where the second operand lies in `tiles`
const int kScratch = 5;               // uvec4s of a row of a matrix of sums: one more, against bank conflicts
const int kQueryBlocks = (QUERIES + kRows - 1) / kRows;
const float kHidden = -3.0e38, kLog2E = 1.44269504, kLn2 = 0.693147181;

shared uvec4 tiles[2 * kSecond];
shared uvec4 scratch[kSubgroups * 16 * kScratch];
shared float steps_apart[16 * 16];  // column - row of a matrix

// Matrices of 16 numbers that all columns or all rows share.
#define LOAD_COLUMN(matrix, array, place) MATRIX_LOAD(matrix, array, place, 0, 1)
#define LOAD_ROW(matrix, array, place) MATRIX_LOAD(matrix, array, place, 0, 0)

// An invocation's elements of a matrix of sums. Those of an element of an array are copied first: drivers
// else keep the array in memory.
#define EACH(i) [[unroll]] for (int i = 0; i < MATRIX_SUMS(0.0).length(); ++i)

// Loads an invocation's share of BLOCK rows of input k, from row `first` of those that begin at row `base`.
// Outside of `count` rows they are 0. Early, since other work hides the latency.
#define FETCH(into, k, base, first, count)                                                      \
  {                                                                                             \
    int start = imp_row_##k(base), step = imp_row_##k((base) + 1) - start;                      \
    [[unroll]] for (int n = 0; n < kTurns; ++n) {                                               \
      int at = n * imp_group_size + thread, row = (first) + at / kEights, eight = at % kEights; \
      into[n] = (kWholeTurns || at < BLOCK * kEights) && row < (count) &&                       \
                        (8 * kEights == EXTENT || 8 * eight < EXTENT)                           \
                    ? imp_eight_##k(start + row * step + eight)                                 \
                    : uvec4(0u);                                                                \
    }                                                                                           \
  }

#define KEEP(place, from)                                               \
  [[unroll]] for (int n = 0; n < kTurns; ++n) {                         \
    int at = n * imp_group_size + thread;                               \
    if (kWholeTurns || at < BLOCK * kEights)                            \
      tiles[(place) + at / kEights * kStride + at % kEights] = from[n]; \
  }

// The workgroup's rows of an input, which are 2 BLOCK: an invocation's share, as FETCH loads it. Those of
// several inputs wait for memory at the same time.
#define FETCH_OWN(into, k, base, first, count) \
  uvec4 into##_0[kTurns], into##_1[kTurns];    \
  FETCH(into##_0, k, base, first, count)       \
  FETCH(into##_1, k, base, (first) + BLOCK, count)
// The subgroup's rows of them, through shared memory.
#define TAKE_OWN(own_rows, from)                       \
  barrier();                                           \
  KEEP(0, from##_0)                                    \
  KEEP(kSecond, from##_1)                              \
  barrier();                                           \
  [[unroll]] for (int part = 0; part < kParts; ++part) \
      MATRIX_LOAD(own_rows[part], tiles, 16 * subgroup * kStride + 2 * part, kStride, 0);

// Sums, rounded, as the left operand of a further product.
#define AS_LEFT(left, sums) \
  { MATRIX_AS_LEFT(left, MATRIX_ROUNDED(sums), scratch, mine) }

void subgroup_fence() {
  controlBarrier(gl_ScopeSubgroup, gl_ScopeSubgroup, gl_StorageSemanticsShared, gl_SemanticsAcquireRelease);
}

// Where row 0 of a head's results begins, and elements between two rows. Results are [batch, heads, steps,
// extent], or BY_STEPS [batch, steps, parts, heads, extent], as products read them.
#if BY_STEPS == 1
int result_of(int head, int heads, int steps, int parts, int part) {
  return ((head / heads * steps * parts + part) * heads + head % heads) * EXTENT;
}
#define ROWS_APART(heads, parts) ((heads) * (parts)*EXTENT)
#else
int result_of(int head, int heads, int steps, int parts, int part) { return head * steps * EXTENT; }
#define ROWS_APART(heads, parts) EXTENT
#endif
// Stores the subgroup's rows from `first`, of `count`, four elements at a time. apart: elements between two
// rows.
#define STORE_OWN(store_four, sums, start, apart, first, count)                      \
  [[unroll]] for (int part = 0; part < kParts; ++part) {                             \
    subgroup_fence();                                                                \
    MATRIX_STORE(sums[part], scratch, mine, kScratch);                               \
    subgroup_fence();                                                                \
    [[unroll]] for (int n = 0; n < 2; ++n) {                                         \
      int at = n * 32 + own, row = (first) + at / 4, four = at % 4;                  \
      if (row < (count) && (16 * kParts == EXTENT || 16 * part + 4 * four < EXTENT)) \
        store_four(((start) + row * (apart)) / 4 + 4 * part + four,                  \
                   uintBitsToFloat(scratch[mine + at / 4 * kScratch + four]));       \
    }                                                                                \
  }

// Blocks of keys that some query of a workgroup sees.
int blocks_seen(int query_block) {
  if (CAUSAL == 0) return (KEYS + BLOCK - 1) / BLOCK;
  return (min(KEYS, min(QUERIES, (query_block + 1) * kRows) + KEYS - QUERIES) + BLOCK - 1) / BLOCK;
}
// Whether query i of 16 from `query` sees key j of 16 from `key`: j - i is at most this.
int most_apart(int query, int key) { return CAUSAL == 1 ? query + KEYS - QUERIES - key : 15; }

void fill_steps_apart(int thread) {
  for (int i = thread; i < 16 * 16; i += imp_group_size) steps_apart[i] = float(i % 16 - i / 16);
}

#define HIDE_ABOVE(scores, steps, most)                             \
  {                                                                 \
    MATRIX_SUMS found = scores;                                     \
    EACH(i) found[i] = steps[i] > float(most) ? kHidden : found[i]; \
    scores = found;                                                 \
  }
// Hides scores of 16 queries, the rows, and 16 keys: later keys, and those that do not exist.
#define HIDE(scores, query, key)                                 \
  {                                                              \
    int apart = most_apart(query, key), last = KEYS - 1 - (key); \
    MATRIX_SUMS steps;                                           \
    if (apart < 15) {                                            \
      MATRIX_LOAD(steps, steps_apart, 0, 16, 0);                 \
      HIDE_ABOVE(scores, steps, apart)                           \
    }                                                            \
    if (KEYS % BLOCK != 0 && last < 15) {                        \
      LOAD_ROW(steps, steps_apart, 0);                           \
      HIDE_ABOVE(scores, steps, last)                            \
    }                                                            \
  }
// The same of 16 keys, the rows, and 16 queries. Keys that do not exist are not stored.
#define HIDE_TURNED(scores, query, key)          \
  {                                              \
    int apart = most_apart(query, key);          \
    if (apart < 15) {                            \
      MATRIX_SUMS steps;                         \
      MATRIX_LOAD(steps, steps_apart, 0, 16, 1); \
      HIDE_ABOVE(scores, steps, apart)           \
    }                                            \
  }

// Masks, as in attention_tiles.glsl: with them scores are no products but what softmax takes.
#if defined(BIAS) || defined(HIDDEN) || defined(FACTORS)
#define MASKED
#define LOAD_OF(k, place) imp_load_##k(place)
#define LOAD(k, place) LOAD_OF(k, place)
#define MASK(mask, head, query, key)                                                      \
  LOAD(mask, (head) / HEADS_OF_ONE * mask##_BATCH + (head) % HEADS_OF_ONE * mask##_HEAD + \
                 min(query, QUERIES - 1) * mask##_QUERY + min(key, KEYS - 1) * mask##_KEY)
const float kUnseen = -1.0e30, kReplaced = -2.0e38;  // a score that is not seen; its term

// The term that is added to a score.
float term_of(int head, int query, int key) {
#ifdef HIDDEN
  if (MASK(HIDDEN, head, query, key) != 0) return kReplaced;
#endif
#ifdef BIAS
  return MASK(BIAS, head, query, key);
#else
  return 0.0;
#endif
}
float factor_of(int head, int query, int key) {
#ifdef FACTORS
  return MASK(FACTORS, head, query, key);
#else
  return 1.0;
#endif
}

// number: an expression of the matrix's `row` and `column`.
#define FILL(matrix, number)                                                             \
  {                                                                                      \
    subgroup_fence();                                                                    \
    [[unroll]] for (int n = 0; n < 8; ++n) {                                             \
      int at = n * 32 + own, row = at / 16, column = at % 16;                            \
      scratch[mine + row * kScratch + column / 4][column % 4] = floatBitsToUint(number); \
    }                                                                                    \
    subgroup_fence();                                                                    \
    MATRIX_LOAD(matrix, scratch, mine, kScratch, 0);                                     \
  }
#define ADD_TERMS(scores, terms)                                                                           \
  {                                                                                                        \
    MATRIX_SUMS found = scores;                                                                            \
    EACH(i) found[i] = terms[i] == kReplaced ? kUnseen : found[i] * intBitsToFloat(SCALE_BITS) + terms[i]; \
    scores = found;                                                                                        \
  }
#endif
