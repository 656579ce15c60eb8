// The gradients of TILE keys and values of one head, by blocks of the queries that see them. Inputs: query,
// key, value, the result's gradient, the logarithms of the queries' sums, the sums of gradient times result,
// and with masks the largest scores.

#ifdef FACTORS
#define SLOPE_OF_WEIGHT(i, j) slopes[i * kKeys + j] * factors[i * kKeys + j]
#else
#define SLOPE_OF_WEIGHT(i, j) slopes[i * kKeys + j]
#endif

void imp_page(int group) {
  int thread = int(gl_LocalInvocationID.x), x = column_of(thread), y = row_of(thread);
  int key_head = group % (HEADS / SHARED), first_key = group / (HEADS / SHARED) * TILE;  // the longest first
  int key_base = key_head * KEYS;
  vec4 of_keys[4 * kParts], of_values[4 * kParts];
  [[unroll]] for (int i = 0; i < 4 * kParts; ++i) of_keys[i] = of_values[i] = vec4(0.0);
  int first_block = CAUSAL == 0 ? 0 : max(0, first_key - (KEYS - QUERIES)) / TILE;
  vec4 fetched[kFetched], further[kFetched];
  for (int head = key_head * SHARED; head < (key_head + 1) * SHARED; ++head) {
    int base = head * QUERIES;
    FETCH(fetched, 0, base, first_block * TILE, QUERIES)
    FETCH(further, 1, key_base, first_key, KEYS)
    for (int block = first_block; block < kQueryBlocks; ++block) {
      int first_query = block * TILE;
      KEEP(tile_a, fetched)  // queries
      KEEP(tile_b, further)  // keys
      barrier();
      FETCH(fetched, 3, base, first_query, QUERIES)
      LOAD_ROWS(base, first_query)
      float scores[4 * kKeys], slopes[4 * kKeys];
      [[unroll]] for (int i = 0; i < 4 * kKeys; ++i) scores[i] = slopes[i] = 0.0;
      ROW_PRODUCTS(scores, tile_a, tile_b)
      [[unroll]] for (int i = 0; i < 4; ++i) [[unroll]] for (int j = 0; j < kKeys; ++j)
          scores[i * kKeys + j] = WEIGHT(scores[i * kKeys + j], i, j);
      if (!sees_all(first_query, first_key)) {
        [[unroll]] for (int i = 0; i < 4; ++i)
            [[unroll]] for (int j = 0; j < kKeys; ++j) if (!sees(first_query + 4 * y + i, first_key + KEY(j)))
                scores[i * kKeys + j] = 0.0;
      }
#ifdef FACTORS
      float factors[4 * kKeys], used[4 * kKeys];
      [[unroll]] for (int i = 0; i < 4; ++i) [[unroll]] for (int j = 0; j < kKeys; ++j) {
        factors[i * kKeys + j] = FACTOR(i, j);
        used[i * kKeys + j] = scores[i * kKeys + j] * factors[i * kKeys + j];
      }
      KEEP_TURNED(used)
#else
      KEEP_TURNED(scores)
#endif
      barrier();
      KEEP(tile_b, fetched)  // the result's gradient
      barrier();
      FETCH(fetched, 2, key_base, first_key, KEYS)
      SCORE_PRODUCTS(of_values, tile_b)
      barrier();
      KEEP(tile_c, fetched)  // values
      barrier();
      if (block + 1 < kQueryBlocks) FETCH(fetched, 0, base, first_query + TILE, QUERIES)
      ROW_PRODUCTS(slopes, tile_b, tile_c)
      [[unroll]] for (int i = 0; i < 4; ++i) [[unroll]] for (int j = 0; j < kKeys; ++j)
          slopes[i * kKeys + j] = scores[i * kKeys + j] * (SLOPE_OF_WEIGHT(i, j) - products[i]);
      HIDE_SLOPES(slopes)
      barrier();
      KEEP_TURNED(slopes)
      barrier();
      if (block + 1 < kQueryBlocks) FETCH(further, 1, key_base, first_key, KEYS)
      SCORE_PRODUCTS(of_keys, tile_a)
      barrier();
    }
  }
  STORE_ROWS(imp_store_0, key_base, first_key, KEYS, intBitsToFloat(SCALE_BITS), of_keys)
  STORE_ROWS(imp_store_1, key_base, first_key, KEYS, 1.0, of_values)
}
