// The gradients of keys and values of one head, and sums of the gradient of queries, by tiles of keys and by
// blocks of the queries that see them. Inputs: query, key, value, the result's gradient, the logarithms of
// the queries' sums, the sums of gradient times result, and with masks the largest scores.
// A workgroup has every PIECES-th tile of keys, and turns back after each PIECES, so that all have as many
// scores of a causal head. Output 2 has one sum per piece: the workgroup adds to what it stored before.
// Two parties halve the work, so that each has one result in its registers. The first multiplies keys by
// queries, and the weights by the result's gradient. The second multiplies values by the result's gradient,
// and the slopes of scores by queries. Then both multiply the slopes by keys.

// Keys come first. Weights and slopes of scores take the place of values.
const int kValues = kOwn, kWeights = kValues, kSlopes = kWeights + kScores;
const int kQueries = kValues + max(kOwn, 2 * kScores), kGradient = kQueries + kBlock;

// Rows of the gradient of a block's queries, per invocation, each one four of the row. Those that are read at
// once lie in other banks.
const int kSumRows = BLOCK * COLUMNS / kInvocations, kRowsAtOnce = kInvocations / COLUMNS;
#define SUM_ROW(i) (4 * ((sum_row + (i)*kRowsAtOnce) % 8) + (sum_row + (i)*kRowsAtOnce) / 8)
const int kFours = (EXTENT + 3) / 4;
#define HAS_SUM(i) (sum_four < kFours && first_query + SUM_ROW(i) < QUERIES)
#define SUM_AT(i) (((piece * HEADS + head) * QUERIES + first_query + SUM_ROW(i)) * kFours + sum_four)

void imp_page(int group) {
  int thread = int(gl_LocalInvocationID.x), of_party = thread % kParty;
  int x = column_of(of_party), y = row_of(of_party);
  bool of_values = thread < kParty;
  int key_head = group % (HEADS / SHARED), piece = group / (HEADS / SHARED);  // the longest first
  int key_base = key_head * KEYS;
#if QUERY_SUMS == 1
  int sum_row = (thread >> 3) % kRowsAtOnce, sum_four = (thread & 7) + 8 * ((thread >> 3) / kRowsAtOnce);
#endif
  for (int turn = 0; turn * PIECES < kKeyBlocks; ++turn) {
    int tile = turn * PIECES + ((turn & 1) == 0 ? piece : PIECES - 1 - piece), first_key = tile * TILE;
    if (tile >= kKeyBlocks) break;
    vec4 own[kOwnFetched], queries[kFetched], gradient[kFetched];
    FETCH(own, 1, key_base, first_key, KEYS, TILE)
    KEEP_TURNED(0, own, TILE)
    vec4 result[4 * kParts];
    [[unroll]] for (int i = 0; i < 4 * kParts; ++i) result[i] = vec4(0.0);
    int first_block = CAUSAL == 0 ? 0 : max(0, first_key - (KEYS - QUERIES)) / BLOCK;
    for (int head = key_head * SHARED; head < (key_head + 1) * SHARED; ++head) {
      int base = head * QUERIES;
#if QUERY_SUMS == 1
      if (turn == 0) {
        int from = (piece * HEADS + head) * QUERIES * kFours;
        for (int i = thread; i < min(first_block * BLOCK, QUERIES) * kFours; i += kInvocations)
          imp_keep_four_2(from + i, vec4(0.0));
      }
#endif
      for (int block = first_block; block < kQueryBlocks; ++block) {
        int first_query = block * BLOCK;
        // Not before the products: they need the registers.
        FETCH(own, 2, key_base, first_key, KEYS, TILE)
        FETCH(queries, 0, base, first_query, QUERIES, BLOCK)
        FETCH(gradient, 3, base, first_query, QUERIES, BLOCK)
        KEEP_TURNED(kValues, own, TILE)
        KEEP_TURNED(kQueries, queries, BLOCK)
        KEEP_TURNED(kGradient, gradient, BLOCK)
        barrier();
        vec4 of_queries;  // logarithms of sums, or products
        [[unroll]] for (int c = 0; c < 4; ++c) {
          int at = base + min(first_query + LINE(0, c), QUERIES - 1);
          if (of_values)
            of_queries[c] = imp_load_4(at);
          else
            of_queries[c] = imp_load_5(at);
        }
        vec4 scores[4];
        [[unroll]] for (int i = 0; i < 4; ++i) scores[i] = vec4(0.0);
        int left = of_values ? 0 : kValues, right = of_values ? kQueries : kGradient;
        ROW_PRODUCTS(scores, left, right)
        barrier();
        if (of_values) {
          EACH_SCORE {
            int query = first_query + LINE(0, c);
            float most = LARGEST(base + min(query, QUERIES - 1));
            scores[i][c] = WEIGHT(scores[i][c], query, first_key + 4 * y + i, most, of_queries[c]);
          }
          if (!sees_all(first_query, first_key)) {
            EACH_SCORE if (!sees(first_query + LINE(0, c), first_key + 4 * y + i)) scores[i][c] = 0.0;
          }
#ifdef FACTORS
          KEEP_SCORES(kSlopes, scores)
          EACH_SCORE scores[i][c] *= FACTOR(first_query + LINE(0, c), first_key + 4 * y + i);
#endif
          KEEP_SCORES(kWeights, scores)
        }
        barrier();
        if (!of_values) {
          [[unroll]] for (int c = 0; c < 4; ++c) {
#ifdef FACTORS
            vec4 weights = tiles[kSlopes + SCORE_PLACE(0, c)];
#else
            vec4 weights = tiles[kWeights + SCORE_PLACE(0, c)];
#endif
            int query = first_query + LINE(0, c);
            [[unroll]] for (int i = 0; i < 4; ++i) {
              int key = first_key + 4 * y + i;
              float slope = weights[i] * (scores[i][c] * FACTOR(query, key) - of_queries[c]);
              scores[i][c] = IS_HIDDEN(query, key) ? 0.0 : slope;
            }
          }
          KEEP_SCORES(kSlopes, scores)
        }
        barrier();
        int weights_at = of_values ? kWeights : kSlopes, rows_at = of_values ? kGradient : kQueries;
        SCORE_PRODUCTS(result, weights_at, rows_at, kTurned)
#if QUERY_SUMS == 1
        vec4 sums[kSumRows], before[kSumRows];
        [[unroll]] for (int i = 0; i < kSumRows; ++i) {
          sums[i] = before[i] = vec4(0.0);
          if (turn > 0 && HAS_SUM(i)) before[i] = imp_kept_four_2(SUM_AT(i));
        }
        IN_FOURS(TILE / 4) {
          int keys_at = 4 * k * COLUMNS + (sum_four ^ k & 7);
          vec4 b[4];
          [[unroll]] for (int t = 0; t < 4; ++t) b[t] = tiles[keys_at + t * COLUMNS];
          [[unroll]] for (int i = 0; i < kSumRows; ++i) {
            vec4 a = tiles[kSlopes + SUM_ROW(i) * (TILE / 4) + (k ^ SUM_ROW(i) / 4 & kTurns)];
            [[unroll]] for (int t = 0; t < 4; ++t) sums[i] += a[t] * b[t];
          }
        }
        [[unroll]] for (int i = 0; i < kSumRows; ++i) if (HAS_SUM(i))
            imp_keep_four_2(SUM_AT(i), before[i] + sums[i] * SCALE);
#endif
        barrier();
      }
    }
    if (of_values) {
      STORE_ROWS(1, key_head, HEADS_OF_ONE / SHARED, first_key, KEYS, 1.0, result)
    } else {
      STORE_ROWS(0, key_head, HEADS_OF_ONE / SHARED, first_key, KEYS, SCALE, result)
    }
  }
}
