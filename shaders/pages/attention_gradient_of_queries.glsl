// The gradient of TILE queries of one head. Inputs: query, key, value, the result's gradient, the logarithms
// of the queries' sums, the sums of gradient times result, and with masks the largest scores.

#ifdef FACTORS
#define SLOPE_OF_WEIGHT(i, j) slopes[i * kKeys + j] * FACTOR(i, j)
#else
#define SLOPE_OF_WEIGHT(i, j) slopes[i * kKeys + j]
#endif

void imp_page(int group) {
  int thread = int(gl_LocalInvocationID.x), x = column_of(thread), y = row_of(thread);
  int head = group % HEADS, block = CAUSAL == 1 ? kQueryBlocks - 1 - group / HEADS : group / HEADS;
  int first_query = block * TILE, base = head * QUERIES, key_base = head / SHARED * KEYS;
  LOAD_ROWS(base, first_query)
  vec4 result[4 * kParts];
  [[unroll]] for (int i = 0; i < 4 * kParts; ++i) result[i] = vec4(0.0);
  vec4 fetched[kFetched], further[kFetched];
  FETCH(fetched, 1, key_base, 0, KEYS)
  FETCH(further, 0, base, first_query, QUERIES)
  int blocks = blocks_seen(block);
  for (int n_block = 0; n_block < blocks; ++n_block) {
    int first_key = n_block * TILE;
    KEEP(tile_a, fetched)  // keys
    KEEP(tile_b, further)  // queries
    barrier();
    FETCH(fetched, 2, key_base, first_key, KEYS)
    FETCH(further, 3, base, first_query, QUERIES)
    float scores[4 * kKeys], slopes[4 * kKeys];
    [[unroll]] for (int i = 0; i < 4 * kKeys; ++i) scores[i] = slopes[i] = 0.0;
    ROW_PRODUCTS(scores, tile_b, tile_a)
    [[unroll]] for (int i = 0; i < 4; ++i) [[unroll]] for (int j = 0; j < kKeys; ++j) scores[i * kKeys + j] =
        WEIGHT(scores[i * kKeys + j], i, j);
    if (!sees_all(first_query, first_key)) {
      [[unroll]] for (int i = 0; i < 4; ++i)
          [[unroll]] for (int j = 0; j < kKeys; ++j) if (!sees(first_query + 4 * y + i, first_key + KEY(j)))
              scores[i * kKeys + j] = 0.0;
    }
    barrier();
    KEEP(tile_c, fetched)  // values
    KEEP(tile_b, further)  // the result's gradient
    barrier();
    if (n_block + 1 < blocks) FETCH(fetched, 1, key_base, first_key + TILE, KEYS)
    ROW_PRODUCTS(slopes, tile_b, tile_c)
    [[unroll]] for (int i = 0; i < 4; ++i) [[unroll]] for (int j = 0; j < kKeys; ++j) slopes[i * kKeys + j] =
        scores[i * kKeys + j] * (SLOPE_OF_WEIGHT(i, j) - products[i]);
    HIDE_SLOPES(slopes)
    barrier();
    KEEP_SCORES(slopes)
    barrier();
    if (n_block + 1 < blocks) FETCH(further, 0, base, first_query, QUERIES)
    SCORE_PRODUCTS(result, tile_a)
    barrier();
  }
  STORE_ROWS(imp_store_0, base, first_query, QUERIES, intBitsToFloat(SCALE_BITS), result)
}
