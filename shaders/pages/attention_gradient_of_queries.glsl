// The gradient of TILE queries of one head. Inputs: query, key, value, the result's gradient, the logarithms
// of the queries' sums, and the sums of gradient times result.

void imp_page(int group) {
  int thread = int(gl_LocalInvocationID.x), x = column_of(thread), y = row_of(thread);
  int result_column = result_column_of(thread), result_row = result_row_of(thread);
  int head = group % HEADS, block = CAUSAL == 1 ? kQueryBlocks - 1 - group / HEADS : group / HEADS;
  int first_query = block * TILE, key_base = head / SHARED * KEYS * EXTENT, base = head * QUERIES * EXTENT;
  float log_sums[kScores], products[kScores];
  [[unroll]] for (int i = 0; i < kScores; ++i) {
    int at = head * QUERIES + min(first_query + y + 16 * i, QUERIES - 1);
    log_sums[i] = imp_load_4(at);
    products[i] = imp_load_5(at);
  }
  vec4 result[kRows];
  [[unroll]] for (int i = 0; i < kRows; ++i) result[i] = vec4(0.0);
  float fetched[kFetched], further[kFetched];
  FETCH(fetched, imp_load_1, key_base, 0, KEYS)
  FETCH(further, imp_load_0, base, first_query, QUERIES)
  int blocks = blocks_seen(block);
  for (int n_block = 0; n_block < blocks; ++n_block) {
    int first_key = n_block * TILE;
    KEEP(tile_a, fetched)  // keys
    KEEP(tile_b, further)  // queries
    barrier();
    FETCH(fetched, imp_load_2, key_base, first_key, KEYS)
    FETCH(further, imp_load_3, base, first_query, QUERIES)
    float scores[kScores * kScores], slopes[kScores * kScores];
    [[unroll]] for (int i = 0; i < kScores * kScores; ++i) scores[i] = slopes[i] = 0.0;
    ROW_PRODUCTS(scores, tile_b, tile_a)
    [[unroll]] for (int i = 0; i < kScores; ++i) [[unroll]] for (int j = 0; j < kScores; ++j)
        scores[i * kScores + j] =
            sees(first_query + y + 16 * i, first_key + x + 16 * j)
                ? exp(scores[i * kScores + j] * intBitsToFloat(SCALE_BITS) - log_sums[i])
                : 0.0;
    barrier();
    KEEP(tile_c, fetched)  // values
    KEEP(tile_b, further)  // the result's gradient
    barrier();
    if (n_block + 1 < blocks) {
      FETCH(fetched, imp_load_1, key_base, first_key + TILE, KEYS)
      FETCH(further, imp_load_0, base, first_query, QUERIES)
    }
    ROW_PRODUCTS(slopes, tile_b, tile_c)
    barrier();
    [[unroll]] for (int i = 0; i < kScores; ++i) [[unroll]] for (int j = 0; j < kScores; ++j) {
      int row = y + 16 * i, key = x + 16 * j;
      tile_c[score_slot(row, key / 4)][key % 4] =
          scores[i * kScores + j] * (slopes[i * kScores + j] - products[i]);
    }
    barrier();
    SCORE_PRODUCTS(result, tile_a)
    barrier();
  }
  [[unroll]] for (int i = 0; i < kRows; ++i) {
    int row = result_row + i * kGroups;
    int at = (head * QUERIES + first_query + row) * EXTENT + 4 * result_column;
    if (first_query + row >= QUERIES) continue;
    vec4 found = result[i] * intBitsToFloat(SCALE_BITS);
    [[unroll]] for (int c = 0; c < 4; ++c) if (kRowElements == EXTENT || 4 * result_column + c < EXTENT)
        imp_store_0(at + c, found[c]);
  }
}
