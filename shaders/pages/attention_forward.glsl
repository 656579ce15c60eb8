// softmax(query key^T) value of TILE queries of one head, by blocks of keys: the largest score and the sum of
// exponentials so far are corrected with each block. Outputs: the result; the logarithm of each query's sum,
// with masks without its largest score, which is the third.

// Queries come first. kFirst: keys, then scores.
const int kFirst = kOwn, kValues = kOwn + max(kBlock, kScores);

// Scores count this many powers of 2. Without masks they are products still.
#ifdef MASKED
#define POWERS kBits
#else
#define POWERS (SCALE * kBits)
#endif

// One number of each of the eight invocations that share a row, and all of them.
#define SHARE(i, number) tiles[kValues + 2 * (4 * y + (i)) + x / 4][x % 4] = number;
vec4 shared_half(int row, int half_of_row) { return tiles[kValues + 2 * row + half_of_row]; }

void imp_page(int group) {
  int thread = int(gl_LocalInvocationID.x), x = column_of(thread), y = row_of(thread);
  // The longest rows first.
  int head = group % HEADS, block = CAUSAL == 1 ? kQueryBlocks - 1 - group / HEADS : group / HEADS;
  int first_query = block * TILE, base = head * QUERIES, key_base = head / SHARED * KEYS;
  vec4 queries[kOwnFetched], keys[kFetched], values[kFetched];
  FETCH(queries, 0, base, first_query, QUERIES, TILE)
  KEEP_TURNED(0, queries, TILE)
  FETCH(keys, 1, key_base, 0, KEYS, BLOCK)

  vec4 result[4 * kParts];
  [[unroll]] for (int i = 0; i < 4 * kParts; ++i) result[i] = vec4(0.0);
  float largest[4], total[4];  // of rows 4 y + i; the sums are of this invocation's keys
  [[unroll]] for (int i = 0; i < 4; ++i) {
    largest[i] = kHidden;
    total[i] = 0.0;
  }
  int blocks = blocks_seen(block);
  for (int n_block = 0; n_block < blocks; ++n_block) {
    int first_key = n_block * BLOCK;
    KEEP_TURNED(kFirst, keys, BLOCK)
    barrier();
    FETCH(values, 2, key_base, first_key, KEYS, BLOCK)
    vec4 scores[4 * kAcross];
    [[unroll]] for (int i = 0; i < 4 * kAcross; ++i) scores[i] = vec4(0.0);
    ROW_PRODUCTS(scores, 0, kFirst)
#ifdef MASKED
    EACH_SCORE scores[i * kAcross + j][c] =
        with_masks(scores[i * kAcross + j][c] * SCALE, head, first_query + 4 * y + i, first_key + LINE(j, c));
#endif
    if (!sees_all(first_query, first_key)) {
      EACH_SCORE {
        int key = first_key + LINE(j, c);
        if (key >= KEYS || (CAUSAL == 1 && key > first_query + 4 * y + i + KEYS - QUERIES))
          scores[i * kAcross + j][c] = kHidden;
      }
    }
    vec4 own_most[4];
    [[unroll]] for (int i = 0; i < 4; ++i) {
      own_most[i] = scores[i * kAcross];
      [[unroll]] for (int j = 1; j < kAcross; ++j) own_most[i] = max(own_most[i], scores[i * kAcross + j]);
    }
    [[unroll]] for (int i = 0; i < 4; ++i)
        SHARE(i, max(max(own_most[i].x, own_most[i].y), max(own_most[i].z, own_most[i].w))) barrier();
    [[unroll]] for (int i = 0; i < 4; ++i) {
      vec4 most = max(shared_half(4 * y + i, 0), shared_half(4 * y + i, 1));
      float now = max(largest[i], max(max(most.x, most.y), max(most.z, most.w)));
      float correction = exp2((largest[i] - now) * POWERS);
      largest[i] = now;
      total[i] *= correction;
      [[unroll]] for (int p = 0; p < kParts; ++p) result[i * kParts + p] *= correction;
      [[unroll]] for (int j = 0; j < kAcross; ++j) {
#ifndef MASKED
        vec4 weights = exp2(fma(scores[i * kAcross + j], vec4(POWERS), vec4(-POWERS * now)));
#else
        // All keys so far may be hidden, and kUnseen fused differs from `POWERS * now` by its rounding.
        vec4 weights = exp2((scores[i * kAcross + j] - now) * POWERS);
        [[unroll]] for (int c = 0; c < 4; ++c) if (!sees(first_query + 4 * y + i, first_key + LINE(j, c)))
            weights[c] = 0.0;
#endif
        total[i] += (weights.x + weights.y) + (weights.z + weights.w);
        [[unroll]] for (int c = 0; c < 4; ++c) weights[c] *=
            FACTOR(first_query + 4 * y + i, first_key + LINE(j, c));
        scores[i * kAcross + j] = weights;
      }
    }
    KEEP_SCORES(kFirst, scores)
    barrier();
    KEEP(kValues, values, BLOCK)
    barrier();
    if (n_block + 1 < blocks) FETCH(keys, 1, key_base, first_key + BLOCK, KEYS, BLOCK)
    SCORE_PRODUCTS(result, kFirst, kValues, 0)
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
    if (x == 0 && query < QUERIES) imp_store_1(base + query, largest[i] * SCALE + log(total[i]));
#endif
    total[i] = 1.0 / total[i];
  }
  STORE_ROWS(0, head, HEADS_OF_ONE, first_query, QUERIES, total[i], result)
}
