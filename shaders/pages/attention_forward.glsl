// softmax(query key^T) value of TILE queries of one head, by blocks of keys: the largest score and the sum of
// exponentials so far are corrected with each block. Outputs: the result; the logarithm of each query's sum,
// with masks without its largest score, which is the third.

// One number of each of the eight invocations that share a row, and all of them.
#define SHARE(i, number) tile_c[2 * (4 * y + (i)) + x / 4][x % 4] = number;
vec4 shared_half(int row, int half_of_row) { return tile_c[2 * row + half_of_row]; }

void imp_page(int group) {
  int thread = int(gl_LocalInvocationID.x), x = column_of(thread), y = row_of(thread);
  // The longest rows first.
  int head = group % HEADS, block = CAUSAL == 1 ? kQueryBlocks - 1 - group / HEADS : group / HEADS;
  int first_query = block * TILE, base = head * QUERIES, key_base = head / SHARED * KEYS;
  vec4 fetched[kFetched];
  FETCH(fetched, 0, base, first_query, QUERIES)
  KEEP(tile_a, fetched)
  FETCH(fetched, 1, key_base, 0, KEYS)

  vec4 result[4 * kParts];
  [[unroll]] for (int i = 0; i < 4 * kParts; ++i) result[i] = vec4(0.0);
  float largest[4], total[4];  // of rows 4 y + i; the sums are of this invocation's keys
  [[unroll]] for (int i = 0; i < 4; ++i) {
    largest[i] = kHidden;
    total[i] = 0.0;
  }
  int blocks = blocks_seen(block);
  for (int n_block = 0; n_block < blocks; ++n_block) {
    int first_key = n_block * TILE;
    KEEP(tile_b, fetched)
    barrier();
    FETCH(fetched, 2, key_base, first_key, KEYS)
    float scores[4 * kKeys];
    [[unroll]] for (int i = 0; i < 4 * kKeys; ++i) scores[i] = 0.0;
    ROW_PRODUCTS(scores, tile_a, tile_b)
    [[unroll]] for (int i = 0; i < 4 * kKeys; ++i) scores[i] *= intBitsToFloat(SCALE_BITS);
#ifdef MASKED
    [[unroll]] for (int i = 0; i < 4; ++i) [[unroll]] for (int j = 0; j < kKeys; ++j) scores[i * kKeys + j] =
        with_masks(scores[i * kKeys + j], head, first_query + 4 * y + i, first_key + KEY(j));
#endif
    if (!sees_all(first_query, first_key)) {
      [[unroll]] for (int i = 0; i < 4; ++i) [[unroll]] for (int j = 0; j < kKeys; ++j) {
        int key = first_key + KEY(j);
        if (key >= KEYS || (CAUSAL == 1 && key > first_query + 4 * y + i + KEYS - QUERIES))
          scores[i * kKeys + j] = kHidden;
      }
    }
    [[unroll]] for (int i = 0; i < 4; ++i) {
      float most = scores[i * kKeys];
      [[unroll]] for (int j = 1; j < kKeys; ++j) most = max(most, scores[i * kKeys + j]);
      SHARE(i, most)
    }
    barrier();
    KEEP(tile_b, fetched)
    [[unroll]] for (int i = 0; i < 4; ++i) {
      vec4 most = max(shared_half(4 * y + i, 0), shared_half(4 * y + i, 1));
      float now = max(largest[i], max(max(most.x, most.y), max(most.z, most.w)));
      float correction = exp(largest[i] - now);
      largest[i] = now;
      total[i] *= correction;
      [[unroll]] for (int p = 0; p < kParts; ++p) result[i * kParts + p] *= correction;
      [[unroll]] for (int j = 0; j < kKeys; ++j) {
        scores[i * kKeys + j] = exp(scores[i * kKeys + j] - now);
#ifdef MASKED  // all keys so far may be hidden
        if (!sees(first_query + 4 * y + i, first_key + KEY(j))) scores[i * kKeys + j] = 0.0;
#endif
        total[i] += scores[i * kKeys + j];
#ifdef FACTORS
        scores[i * kKeys + j] *= FACTOR(i, j);
#endif
      }
    }
    barrier();
    KEEP_SCORES(scores)
    barrier();
    if (n_block + 1 < blocks) FETCH(fetched, 1, key_base, first_key + TILE, KEYS)
    SCORE_PRODUCTS(result, tile_b)
    barrier();
  }

  [[unroll]] for (int i = 0; i < 4; ++i) SHARE(i, total[i]) barrier();
  [[unroll]] for (int i = 0; i < 4; ++i) {
    vec4 sums = shared_half(4 * y + i, 0) + shared_half(4 * y + i, 1);
    total[i] = (sums.x + sums.y) + (sums.z + sums.w);
    int query = first_query + 4 * y + i;
#ifdef MASKED
    if (x == 0 && query < QUERIES) {
      imp_store_1(base + query, log(total[i]));
      imp_store_2(base + query, largest[i]);
    }
#else
    if (x == 0 && query < QUERIES) imp_store_1(base + query, largest[i] + log(total[i]));
#endif
    total[i] = 1.0 / total[i];
  }
  STORE_ROWS(imp_store_0, base, first_query, QUERIES, total[i], result)
}
