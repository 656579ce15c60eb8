// The gradients of TILE keys and values of one head, by blocks of the queries that see them. Inputs: query,
// key, value, the result's gradient, the logarithms of the queries' sums, the sums of gradient times result,
// and with masks the largest scores.
// Two parties halve the work, so that each has one result in its registers. The first multiplies keys by
// queries, and the weights by the result's gradient. The second multiplies values by the result's gradient,
// and the slopes of scores by queries.

// Keys come first, and then the weights and the slopes of scores in their place.
const int kWeights = 0, kSlopes = kScores, kValues = max(kOwn, 2 * kScores);
const int kQueries = kValues + kOwn, kGradient = kQueries + kBlock;

// Wide rows have no room in registers beside products.
#define FETCH_BLOCK(first)                          \
  {                                                 \
    FETCH(own, 1, key_base, first_key, KEYS, TILE)  \
    FETCH(queries, 0, base, first, QUERIES, BLOCK)  \
    FETCH(gradient, 3, base, first, QUERIES, BLOCK) \
  }

void imp_page(int group) {
  int thread = int(gl_LocalInvocationID.x), of_party = thread % kParty;
  int x = column_of(of_party), y = row_of(of_party);
  bool of_values = thread < kParty;
  int key_head = group % (HEADS / SHARED), first_key = group / (HEADS / SHARED) * TILE;  // the longest first
  int key_base = key_head * KEYS;
  vec4 own[kOwnFetched], queries[kFetched], gradient[kFetched];
  FETCH(own, 2, key_base, first_key, KEYS, TILE)
  KEEP_TERMS(kValues, own, TILE, kTurns)
  vec4 result[4 * kParts];
  [[unroll]] for (int i = 0; i < 4 * kParts; ++i) result[i] = vec4(0.0);
  int first_block = CAUSAL == 0 ? 0 : max(0, first_key - (KEYS - QUERIES)) / BLOCK;
  for (int head = key_head * SHARED; head < (key_head + 1) * SHARED; ++head) {
    int base = head * QUERIES;
    if (NARROW == 1) FETCH_BLOCK(first_block * BLOCK)
    for (int block = first_block; block < kQueryBlocks; ++block) {
      int first_query = block * BLOCK;
      if (NARROW == 0) FETCH_BLOCK(first_query)
      KEEP_TERMS(0, own, TILE, kTurns)
      KEEP_TERMS(kQueries, queries, BLOCK, 7)
      KEEP_TERMS(kGradient, gradient, BLOCK, 7)
      barrier();
      vec4 of_queries[kAcross];  // logarithms of sums, or products
      [[unroll]] for (int j = 0; j < kAcross; ++j) [[unroll]] for (int c = 0; c < 4; ++c) {
        int at = base + min(first_query + LINE(j, c), QUERIES - 1);
        if (of_values)
          of_queries[j][c] = imp_load_4(at);
        else
          of_queries[j][c] = imp_load_5(at);
      }
      vec4 scores[4 * kAcross];
      [[unroll]] for (int i = 0; i < 4 * kAcross; ++i) scores[i] = vec4(0.0);
      int left = of_values ? 0 : kValues, right = of_values ? kQueries : kGradient;
      TERM_PRODUCTS(scores, left, right)
      barrier();
      if (of_values) {
        EACH_SCORE {
          int query = first_query + LINE(j, c);
          float most = LARGEST(base + min(query, QUERIES - 1));
          scores[i * kAcross + j][c] =
              WEIGHT(scores[i * kAcross + j][c], query, first_key + 4 * y + i, most, of_queries[j][c]);
        }
        if (!sees_all(first_query, first_key)) {
          EACH_SCORE if (!sees(first_query + LINE(j, c), first_key + 4 * y + i)) scores[i * kAcross + j][c] =
              0.0;
        }
#ifdef FACTORS
        KEEP_SCORES(kSlopes, scores)
        EACH_SCORE scores[i * kAcross + j][c] *= FACTOR(first_query + LINE(j, c), first_key + 4 * y + i);
#endif
        KEEP_SCORES(kWeights, scores)
      }
      if (NARROW == 0) {
        FETCH(queries, 0, base, first_query, QUERIES, BLOCK)
        FETCH(gradient, 3, base, first_query, QUERIES, BLOCK)
      }
      KEEP(kQueries, queries, BLOCK)
      KEEP(kGradient, gradient, BLOCK)
      barrier();
      if (!of_values) {
        [[unroll]] for (int j = 0; j < kAcross; ++j) [[unroll]] for (int c = 0; c < 4; ++c) {
#ifdef FACTORS
          vec4 weights = tiles[kSlopes + SCORE_PLACE(j, c)];
#else
          vec4 weights = tiles[kWeights + SCORE_PLACE(j, c)];
#endif
          int query = first_query + LINE(j, c);
          [[unroll]] for (int i = 0; i < 4; ++i) {
            int key = first_key + 4 * y + i;
            float slope = scores[i * kAcross + j][c] * FACTOR(query, key);
            slope = weights[i] * (slope - of_queries[j][c]);
            scores[i * kAcross + j][c] = IS_HIDDEN(query, key) ? 0.0 : slope;
          }
        }
        KEEP_SCORES(kSlopes, scores)
      }
      barrier();
      if (NARROW == 1 && block + 1 < kQueryBlocks) FETCH_BLOCK(first_query + BLOCK)
      int weights_at = of_values ? kWeights : kSlopes, rows_at = of_values ? kGradient : kQueries;
      SCORE_PRODUCTS(result, weights_at, rows_at)
      barrier();
    }
  }
  if (of_values) {
    STORE_ROWS(imp_store_1, key_base, first_key, KEYS, 1.0, result)
  } else {
    STORE_ROWS(imp_store_0, key_base, first_key, KEYS, SCALE, result)
  }
}
