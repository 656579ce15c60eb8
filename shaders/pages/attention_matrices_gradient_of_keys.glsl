// The gradients of a workgroup's keys and values of one head, by blocks of the queries that see them.
// Matrices of scores have keys for rows. Inputs: query, key, value, the result's gradient, the logarithms of
// the queries' sums, the sums of gradient times result, and with masks the largest scores.

shared float of_block[3 * BLOCK];  // the last inputs

void imp_page(int group) {
  int thread = int(gl_LocalInvocationID.x), own = int(gl_SubgroupInvocationID), subgroup = int(gl_SubgroupID);
  int key_head = group % (HEADS / SHARED), first_key = group / (HEADS / SHARED) * kRows;  // the longest first
  int own_key = first_key + 16 * subgroup, key_base = key_head * KEYS, mine = subgroup * 16 * kScratch;
  fill_steps_apart(thread);
  MATRIX_LEFT keys[kParts], values[kParts];
  LOAD_OWN(keys, 1, key_base, first_key, KEYS)
  LOAD_OWN(values, 2, key_base, first_key, KEYS)
  MATRIX_SUMS of_keys[kParts], of_values[kParts];
  [[unroll]] for (int part = 0; part < kParts; ++part) of_keys[part] = of_values[part] = MATRIX_SUMS(0.0);
  float scale = intBitsToFloat(SCALE_BITS) * kLog2E;
  int first_block = CAUSAL == 0 ? 0 : max(0, first_key - (KEYS - QUERIES)) / BLOCK;
  uvec4 queries[kTurns], arrived[kTurns];
  for (int head = key_head * SHARED; head < (key_head + 1) * SHARED; ++head) {
    int base = head * QUERIES;
    FETCH(queries, 0, base, first_block * BLOCK, QUERIES)
    FETCH(arrived, 3, base, first_block * BLOCK, QUERIES)
    for (int first_query = first_block * BLOCK; first_query < QUERIES; first_query += BLOCK) {
      barrier();
      KEEP(0, queries)
      KEEP(kSecond, arrived)
#ifdef MASKED
      for (int i = thread; i < BLOCK; i += imp_group_size)
        of_block[2 * BLOCK + i] = imp_load_6(base + min(first_query + i, QUERIES - 1));
#endif
      for (int i = thread; i < 2 * BLOCK; i += imp_group_size) {
        int query = first_query + i % BLOCK, row = base + min(query, QUERIES - 1);
        // The weights of queries that do not exist are 0.
        of_block[i] = i >= BLOCK ? imp_load_5(row) : query < QUERIES ? imp_load_4(row) * kLog2E : -kHidden;
      }
      barrier();
      if (first_query + BLOCK < QUERIES) {
        FETCH(queries, 0, base, first_query + BLOCK, QUERIES)
        FETCH(arrived, 3, base, first_query + BLOCK, QUERIES)
      }
      [[unroll]] for (int c = 0; c < BLOCK / 16; ++c) {
        int query = first_query + 16 * c;
        if (most_apart(query, own_key) < -15) continue;
        MATRIX_SUMS scores = MATRIX_SUMS(0.0), slopes = MATRIX_SUMS(0.0), log_sums, products;
        MATRIX_RIGHT right;
        [[unroll]] for (int part = 0; part < kParts; ++part) {
          MATRIX_LOAD(right, tiles, 16 * c * kStride + 2 * part, kStride, 1);
          scores = MATRIX_MULTIPLY_ADD(keys[part], right, scores);
          MATRIX_LOAD(right, tiles, kSecond + 16 * c * kStride + 2 * part, kStride, 1);
          slopes = MATRIX_MULTIPLY_ADD(values[part], right, slopes);
        }
        LOAD_ROW(log_sums, of_block, 16 * c);
        LOAD_ROW(products, of_block, BLOCK + 16 * c);
#ifdef MASKED
        MATRIX_SUMS largest, terms, factors;
        LOAD_ROW(largest, of_block, 2 * BLOCK + 16 * c);
        FILL(terms, term_of(head, query + column, own_key + row))
        FILL(factors, factor_of(head, query + column, own_key + row))
        ADD_TERMS(scores, terms)
        HIDE_TURNED(scores, query, own_key)
        EACH(i) scores[i] = exp2((scores[i] - largest[i]) * kLog2E - log_sums[i]);
        EACH(i) slopes[i] = terms[i] == kReplaced ? 0.0 : scores[i] * (slopes[i] * factors[i] - products[i]);
        EACH(i) scores[i] *= factors[i];
#else
        HIDE_TURNED(scores, query, own_key)
        EACH(i) scores[i] = exp2(scores[i] * scale - log_sums[i]);
        EACH(i) slopes[i] = scores[i] * (slopes[i] - products[i]);
#endif
        MATRIX_LEFT weights, left;
        AS_LEFT(weights, scores)
        AS_LEFT(left, slopes)
        [[unroll]] for (int part = 0; part < kParts; ++part) {
          MATRIX_LOAD(right, tiles, kSecond + 16 * c * kStride + 2 * part, kStride, 0);
          of_values[part] = MATRIX_MULTIPLY_ADD(weights, right, of_values[part]);
          MATRIX_LOAD(right, tiles, 16 * c * kStride + 2 * part, kStride, 0);
          of_keys[part] = MATRIX_MULTIPLY_ADD(left, right, of_keys[part]);
        }
      }
    }
  }
  [[unroll]] for (int part = 0; part < kParts; ++part) of_keys[part] =
      of_keys[part] * intBitsToFloat(SCALE_BITS);
  STORE_OWN(imp_store_0, of_keys, key_base, own_key, KEYS)
  STORE_OWN(imp_store_1, of_values, key_base, own_key, KEYS)
}
