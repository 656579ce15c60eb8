// softmax(query key^T) value of TILE queries of one head, by blocks of keys: the largest score and the sum of
// exponentials so far are corrected with each block. Outputs: the result; the logarithm of each query's sum.

const int kParts = kInvocations / TILE;  // invocations that share a row's softmax

void imp_page(int group) {
  int thread = int(gl_LocalInvocationID.x), x = column_of(thread), y = row_of(thread);
  int result_column = result_column_of(thread), result_row = result_row_of(thread);
  // The longest rows first.
  int head = group % HEADS, block = CAUSAL == 1 ? kQueryBlocks - 1 - group / HEADS : group / HEADS;
  int first_query = block * TILE, key_base = head / SHARED * KEYS * EXTENT;
  int soft_row = thread / kParts, part = thread % kParts;
  float fetched[kFetched];
  FETCH(fetched, imp_load_0, head * QUERIES * EXTENT, first_query, QUERIES)
  KEEP(tile_a, fetched)
  FETCH(fetched, imp_load_1, key_base, 0, KEYS)

  vec4 result[kRows];
  [[unroll]] for (int i = 0; i < kRows; ++i) result[i] = vec4(0.0);
  float largest = -3.0e38, total = 0.0;  // of soft_row; the sum is of this invocation's part
  int blocks = blocks_seen(block);
  for (int n_block = 0; n_block < blocks; ++n_block) {
    int first_key = n_block * TILE;
    KEEP(tile_b, fetched)
    barrier();
    FETCH(fetched, imp_load_2, key_base, first_key, KEYS)
    float scores[kScores * kScores];
    [[unroll]] for (int i = 0; i < kScores * kScores; ++i) scores[i] = 0.0;
    ROW_PRODUCTS(scores, tile_a, tile_b)
    [[unroll]] for (int i = 0; i < kScores; ++i) [[unroll]] for (int j = 0; j < kScores; ++j) {
      int row = y + 16 * i, key = x + 16 * j;
      bool seen =
          first_key + key < KEYS && (CAUSAL == 0 || first_key + key <= first_query + row + KEYS - QUERIES);
      tile_c[score_slot(row, key / 4)][key % 4] =
          seen ? scores[i * kScores + j] * intBitsToFloat(SCALE_BITS) : -3.0e38;
    }
    barrier();

    float most = largest;
    for (int k = part; k < TILE / 4; k += kParts) {
      vec4 s = tile_c[score_slot(soft_row, k)];
      most = max(max(max(s.x, s.y), max(s.z, s.w)), most);
    }
    tile_b[thread].x = most;  // the keys are done with
    barrier();
    for (int k = 0; k < kParts; ++k) most = max(most, tile_b[soft_row * kParts + k].x);
    float correction = exp(largest - most);
    largest = most;
    total *= correction;
    for (int k = part; k < TILE / 4; k += kParts) {
      vec4 p = exp(tile_c[score_slot(soft_row, k)] - most);
      total += (p.x + p.y) + (p.z + p.w);
      tile_c[score_slot(soft_row, k)] = p;
    }
    if (part == 0) tile_b[kInvocations + soft_row].x = correction;
    barrier();
    [[unroll]] for (int i = 0; i < kRows; ++i) result[i] *= tile_b[kInvocations + result_row + i * kGroups].x;
    barrier();
    KEEP(tile_b, fetched)
    barrier();
    if (n_block + 1 < blocks) FETCH(fetched, imp_load_1, key_base, first_key + TILE, KEYS)
    SCORE_PRODUCTS(result, tile_b)
    barrier();
  }

  tile_b[thread].x = total;
  barrier();
  total = 0.0;
  for (int k = 0; k < kParts; ++k) total += tile_b[soft_row * kParts + k].x;
  if (part == 0) {
    tile_b[kInvocations + soft_row].x = 1.0 / total;
    if (first_query + soft_row < QUERIES)
      imp_store_1(head * QUERIES + first_query + soft_row, largest + log(total));
  }
  barrier();
  [[unroll]] for (int i = 0; i < kRows; ++i) {
    int row = result_row + i * kGroups;
    int at = (head * QUERIES + first_query + row) * EXTENT + 4 * result_column;
    if (first_query + row >= QUERIES) continue;
    vec4 found = result[i] * tile_b[kInvocations + row].x;
    [[unroll]] for (int c = 0; c < 4; ++c) if (kRowElements == EXTENT || 4 * result_column + c < EXTENT)
        imp_store_0(at + c, found[c]);
  }
}
