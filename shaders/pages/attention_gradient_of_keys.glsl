// The gradients of TILE keys and values of one head, by blocks of the queries that see them. Inputs: query,
// key, value, the result's gradient, the logarithms of the queries' sums, and the sums of gradient times
// result.

void imp_page(int group) {
  int thread = int(gl_LocalInvocationID.x), x = column_of(thread), y = row_of(thread);
  int result_column = result_column_of(thread), result_row = result_row_of(thread);
  int key_head = group % (HEADS / SHARED), first_key = group / (HEADS / SHARED) * TILE;  // the longest first
  int key_base = key_head * KEYS * EXTENT;
  vec4 of_keys[kRows], of_values[kRows];
  [[unroll]] for (int i = 0; i < kRows; ++i) of_keys[i] = of_values[i] = vec4(0.0);
  int first_block = CAUSAL == 0 ? 0 : max(0, first_key - (KEYS - QUERIES)) / TILE;
  float fetched[kFetched], further[kFetched];
  for (int head = key_head * SHARED; head < (key_head + 1) * SHARED; ++head) {
    int base = head * QUERIES * EXTENT;
    FETCH(fetched, imp_load_0, base, first_block * TILE, QUERIES)
    FETCH(further, imp_load_1, key_base, first_key, KEYS)
    for (int block = first_block; block < kQueryBlocks; ++block) {
      int first_query = block * TILE;
      KEEP(tile_a, fetched)  // queries
      KEEP(tile_b, further)  // keys
      barrier();
      FETCH(fetched, imp_load_3, base, first_query, QUERIES)
      FETCH(further, imp_load_2, key_base, first_key, KEYS)
      float products[kScores];
      float scores[kScores * kScores], slopes[kScores * kScores];
      [[unroll]] for (int i = 0; i < kScores * kScores; ++i) scores[i] = slopes[i] = 0.0;
      ROW_PRODUCTS(scores, tile_a, tile_b)
      barrier();
      KEEP(tile_b, fetched)  // the result's gradient
      [[unroll]] for (int i = 0; i < kScores; ++i) {
        int row = y + 16 * i, at = head * QUERIES + min(first_query + row, QUERIES - 1);
        float log_sum = imp_load_4(at);
        products[i] = imp_load_5(at);
        [[unroll]] for (int j = 0; j < kScores; ++j) {
          int key = x + 16 * j;
          float p = sees(first_query + row, first_key + key)
                        ? exp(scores[i * kScores + j] * intBitsToFloat(SCALE_BITS) - log_sum)
                        : 0.0;
          scores[i * kScores + j] = p;
          tile_c[score_slot(key, row / 4)][row % 4] = p;
        }
      }
      barrier();
      if (block + 1 < kQueryBlocks) FETCH(fetched, imp_load_0, base, first_query + TILE, QUERIES)
      SCORE_PRODUCTS(of_values, tile_b)
      barrier();
      KEEP(tile_c, further)  // values
      barrier();
      if (block + 1 < kQueryBlocks) FETCH(further, imp_load_1, key_base, first_key, KEYS)
      ROW_PRODUCTS(slopes, tile_b, tile_c)
      barrier();
      [[unroll]] for (int i = 0; i < kScores; ++i) [[unroll]] for (int j = 0; j < kScores; ++j) {
        int row = y + 16 * i, key = x + 16 * j;
        tile_c[score_slot(key, row / 4)][row % 4] =
            scores[i * kScores + j] * (slopes[i * kScores + j] - products[i]);
      }
      barrier();
      SCORE_PRODUCTS(of_keys, tile_a)
      barrier();
    }
  }
  [[unroll]] for (int i = 0; i < kRows; ++i) {
    int row = result_row + i * kGroups;
    int at = (key_head * KEYS + first_key + row) * EXTENT + 4 * result_column;
    if (first_key + row >= KEYS) continue;
    vec4 of_key = of_keys[i] * intBitsToFloat(SCALE_BITS);
    [[unroll]] for (int c = 0; c < 4; ++c) {
      if (kRowElements != EXTENT && 4 * result_column + c >= EXTENT) continue;
      imp_store_0(at + c, of_key[c]);
      imp_store_1(at + c, of_values[i][c]);
    }
  }
}
