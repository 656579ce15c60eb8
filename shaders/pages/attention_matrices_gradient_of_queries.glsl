// The gradient of a workgroup's queries of one head, by blocks of keys. Inputs: query, key, value, the
// result's gradient, the logarithms of the queries' sums, the sums of gradient times result, and with masks
// the largest scores.

shared float of_rows[kSubgroups * 48];  // per subgroup: the last inputs

void imp_page(int group) {
  int thread = int(gl_LocalInvocationID.x), own = int(gl_SubgroupInvocationID), subgroup = int(gl_SubgroupID);
  int head = group % HEADS, block = CAUSAL == 1 ? kQueryBlocks - 1 - group / HEADS : group / HEADS;
  int first_query = block * kRows, own_query = first_query + 16 * subgroup;
  int base = head * QUERIES, key_base = head / SHARED * KEYS, mine = subgroup * 16 * kScratch;
  fill_steps_apart(thread);
  int own_row = base + min(own_query + own % 16, QUERIES - 1);
  of_rows[subgroup * 48 + own] = own < 16 ? imp_load_4(own_row) * kLog2E : imp_load_5(own_row);
#ifdef MASKED
  of_rows[subgroup * 48 + 32 + own % 16] = imp_load_6(own_row);
#endif
  MATRIX_LEFT queries[kParts], arrived[kParts];
  LOAD_OWN(queries, 0, base, first_query, QUERIES)
  LOAD_OWN(arrived, 3, base, first_query, QUERIES)
  uvec4 keys[kTurns], values[kTurns];
  FETCH(keys, 1, key_base, 0, KEYS)
  FETCH(values, 2, key_base, 0, KEYS)
  MATRIX_SUMS log_sums, products;
  LOAD_COLUMN(log_sums, of_rows, subgroup * 48);
  LOAD_COLUMN(products, of_rows, subgroup * 48 + 16);
#ifdef MASKED
  MATRIX_SUMS largest;
  LOAD_COLUMN(largest, of_rows, subgroup * 48 + 32);
#endif

  MATRIX_SUMS result[kParts];
  [[unroll]] for (int part = 0; part < kParts; ++part) result[part] = MATRIX_SUMS(0.0);
  float scale = intBitsToFloat(SCALE_BITS) * kLog2E;
  int blocks = blocks_seen(block);
  for (int n_block = 0; n_block < blocks; ++n_block) {
    int first_key = n_block * BLOCK;
    barrier();
    KEEP(0, keys)
    KEEP(kSecond, values)
    barrier();
    if (n_block + 1 < blocks) {
      FETCH(keys, 1, key_base, first_key + BLOCK, KEYS)
      FETCH(values, 2, key_base, first_key + BLOCK, KEYS)
    }
    [[unroll]] for (int c = 0; c < BLOCK / 16; ++c) {
      int key = first_key + 16 * c;
      if (most_apart(own_query, key) < -15) continue;
      MATRIX_SUMS scores = MATRIX_SUMS(0.0), slopes = MATRIX_SUMS(0.0);
      MATRIX_RIGHT right;
      [[unroll]] for (int part = 0; part < kParts; ++part) {
        MATRIX_LOAD(right, tiles, 16 * c * kStride + 2 * part, kStride, 1);
        scores = MATRIX_MULTIPLY_ADD(queries[part], right, scores);
        MATRIX_LOAD(right, tiles, kSecond + 16 * c * kStride + 2 * part, kStride, 1);
        slopes = MATRIX_MULTIPLY_ADD(arrived[part], right, slopes);
      }
#ifdef MASKED
      MATRIX_SUMS terms, factors;
      FILL(terms, term_of(head, own_query + row, key + column))
      FILL(factors, factor_of(head, own_query + row, key + column))
      ADD_TERMS(scores, terms)
      HIDE(scores, own_query, key)
      EACH(i) scores[i] = exp2((scores[i] - largest[i]) * kLog2E - log_sums[i]);
      EACH(i) slopes[i] = terms[i] == kReplaced ? 0.0 : scores[i] * (slopes[i] * factors[i] - products[i]);
#else
      HIDE(scores, own_query, key)
      EACH(i) slopes[i] = exp2(scores[i] * scale - log_sums[i]) * (slopes[i] - products[i]);
#endif
      MATRIX_LEFT left;
      AS_LEFT(left, slopes)
      [[unroll]] for (int part = 0; part < kParts; ++part) {
        MATRIX_LOAD(right, tiles, 16 * c * kStride + 2 * part, kStride, 0);
        result[part] = MATRIX_MULTIPLY_ADD(left, right, result[part]);
      }
    }
  }
  [[unroll]] for (int part = 0; part < kParts; ++part) result[part] =
      result[part] * intBitsToFloat(SCALE_BITS);
  STORE_OWN(imp_store_0, result, base, own_query, QUERIES)
}
