// The gradient of TILE queries of one head, by blocks of keys. Inputs: query, key, value, the result's
// gradient, the logarithms of the queries' sums, the sums of gradient times result, and with masks the
// largest scores.

// Queries come first, in narrow rows beside their gradient, in wide ones in turns with it. kSecond: values,
// then slopes of scores.
const int kGradient = NARROW * kOwn, kFirst = kGradient + kOwn, kSecond = kFirst + kBlock;

#define FETCH_BLOCK(first)                         \
  {                                                \
    FETCH(keys, 1, key_base, first, KEYS, BLOCK)   \
    FETCH(values, 2, key_base, first, KEYS, BLOCK) \
  }

void imp_page(int group) {
  int thread = int(gl_LocalInvocationID.x), x = column_of(thread), y = row_of(thread);
  int head = group % HEADS, block = CAUSAL == 1 ? kQueryBlocks - 1 - group / HEADS : group / HEADS;
  int first_query = block * TILE, base = head * QUERIES, key_base = head / SHARED * KEYS;
  vec4 own[kOwnFetched], keys[kFetched], values[kFetched];
  FETCH(own, 0, base, first_query, QUERIES, TILE)
  KEEP_TURNED(0, own, TILE)
  if (NARROW == 1) {
    FETCH(own, 3, base, first_query, QUERIES, TILE)
    KEEP_TURNED(kGradient, own, TILE)
  }
  float log_sums[4], products[4], largest[4];
  [[unroll]] for (int i = 0; i < 4; ++i) {
    int at = base + min(first_query + 4 * y + i, QUERIES - 1);
    log_sums[i] = imp_load_4(at);
    products[i] = imp_load_5(at);
    largest[i] = LARGEST(at);
  }
  vec4 result[4 * kParts];
  [[unroll]] for (int i = 0; i < 4 * kParts; ++i) result[i] = vec4(0.0);
  if (NARROW == 1) FETCH_BLOCK(0)
  int blocks = blocks_seen(block);
  for (int n_block = 0; n_block < blocks; ++n_block) {
    int first_key = n_block * BLOCK;
    if (NARROW == 0) FETCH_BLOCK(first_key)
    KEEP_TURNED(kFirst, keys, BLOCK)
    KEEP_TURNED(kSecond, values, BLOCK)
    barrier();
    vec4 scores[4 * kAcross], slopes[4 * kAcross];
    [[unroll]] for (int i = 0; i < 4 * kAcross; ++i) scores[i] = slopes[i] = vec4(0.0);
    ROW_PRODUCTS(scores, 0, kFirst)
    EACH_SCORE scores[i * kAcross + j][c] = WEIGHT(scores[i * kAcross + j][c], first_query + 4 * y + i,
                                                   first_key + LINE(j, c), largest[i], log_sums[i]);
    if (!sees_all(first_query, first_key)) {
      EACH_SCORE if (!sees(first_query + 4 * y + i, first_key + LINE(j, c))) scores[i * kAcross + j][c] = 0.0;
    }
    if (NARROW == 0) {
      barrier();
      FETCH(own, 3, base, first_query, QUERIES, TILE)
      KEEP_TURNED(kGradient, own, TILE)
      barrier();
    }
    ROW_PRODUCTS(slopes, kGradient, kSecond)
    EACH_SCORE {
      int query = first_query + 4 * y + i, key = first_key + LINE(j, c), at = i * kAcross + j;
      slopes[at][c] = scores[at][c] * (slopes[at][c] * FACTOR(query, key) - products[i]);
      if (IS_HIDDEN(query, key)) slopes[at][c] = 0.0;
    }
    barrier();
    KEEP_SCORES(kSecond, slopes)
    if (NARROW == 0) {
      FETCH(own, 0, base, first_query, QUERIES, TILE)
      KEEP_TURNED(0, own, TILE)
    }
    barrier();
    if (NARROW == 1 && n_block + 1 < blocks) FETCH_BLOCK(first_key + BLOCK)
    SCORE_PRODUCTS(result, kSecond, kFirst, kTurned)
    barrier();
  }
  STORE_ROWS(0, head, HEADS_OF_ONE, first_query, QUERIES, SCALE, result)
}
