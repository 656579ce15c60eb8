// All gradients of attention on matrix units. Inputs: query, key, value, the result's gradient, the
// logarithms of the queries' sums, the result, and with masks the largest scores. The first KEY_GROUPS
// workgroups have keys and values, the others queries. PARTS: 3 where one output has all three beside each
// other, as a product of them reads it; else 1.

#if PARTS == 3
#define RESULT_OF(head, heads, steps, part) result_of(head, heads, steps, 3, part)
#define STORE_OF_KEYS imp_keep_four_0
#define STORE_OF_VALUES imp_keep_four_0
#else
#define RESULT_OF(head, heads, steps, part) result_of(head, heads, steps, 1, 0)
#define STORE_OF_KEYS imp_keep_four_1
#define STORE_OF_VALUES imp_keep_four_2
#endif

// Logarithms, the largest scores, and sums of gradient times result, of the queries that keys meet.
shared float of_block[3 * BLOCK];
shared float of_rows[kSubgroups * 48];      // of own queries, per subgroup: logarithms, sums, the largest
shared float products_of[BLOCK * kEights];  // of a gradient and a result: of each eight of a block's rows

float product_of(uvec4 a, uvec4 b) {
  vec2 sum = vec2(0.0);
  [[unroll]] for (int k = 0; k < 4; ++k) sum += unpackHalf2x16(a[k]) * unpackHalf2x16(b[k]);
  return sum.x + sum.y;
}
#define KEEP_PRODUCTS(gradient, result)                                                            \
  [[unroll]] for (int n = 0; n < kTurns; ++n) {                                                    \
    int at = n * imp_group_size + thread;                                                          \
    if (kWholeTurns || at < BLOCK * kEights) products_of[at] = product_of(gradient[n], result[n]); \
  }
float sum_of_products(int row) {
  float sum = 0.0;
  [[unroll]] for (int k = 0; k < kEights; ++k) sum += products_of[row * kEights + k];
  return sum;
}

#ifdef MASKED
#define OF_QUERIES 2
#else
#define OF_QUERIES 1
#endif
// Number i of a block's queries: logarithms, whose weights are 0 for queries that do not exist, and the
// largest scores.
float of_query(int base, int first_query, int i) {
  int query = first_query + i % BLOCK, row = base + min(query, QUERIES - 1);
#ifdef MASKED
  if (i >= BLOCK) return imp_load_6(row);
#endif
  return query < QUERIES ? imp_load_4(row) * kLog2E : -kHidden;
}

// The gradients of a workgroup's keys and values of one head, by blocks of the queries that see them.
// Matrices of scores have keys for rows.
void gradients_of_keys(int group) {
  int thread = int(gl_LocalInvocationID.x), own = int(gl_SubgroupInvocationID), subgroup = int(gl_SubgroupID);
  int key_head = group % (HEADS / SHARED), first_key = group / (HEADS / SHARED) * kRows;  // the longest first
  int own_key = first_key + 16 * subgroup, key_base = key_head * KEYS, mine = subgroup * 16 * kScratch;
  fill_steps_apart(thread);
  MATRIX_LEFT keys[kParts], values[kParts];
  float scale = intBitsToFloat(SCALE_BITS) * kLog2E;
  int first_block = CAUSAL == 0 ? 0 : max(0, first_key - (KEYS - QUERIES)) / BLOCK;
  uvec4 queries[kTurns], arrived[kTurns], results[kTurns];
  float of_one = 0.0;
  FETCH_OWN(all_keys, 1, key_base, first_key, KEYS)
  FETCH_OWN(all_values, 2, key_base, first_key, KEYS)
  FETCH(queries, 0, key_head * SHARED * QUERIES, first_block * BLOCK, QUERIES)
  FETCH(arrived, 3, key_head * SHARED * QUERIES, first_block * BLOCK, QUERIES)
  FETCH(results, 5, key_head * SHARED * QUERIES, first_block * BLOCK, QUERIES)
  TAKE_OWN(keys, all_keys)
  TAKE_OWN(values, all_values)
  MATRIX_SUMS of_keys[kParts], of_values[kParts];
  [[unroll]] for (int part = 0; part < kParts; ++part) of_keys[part] = of_values[part] = MATRIX_SUMS(0.0);
  for (int head = key_head * SHARED; head < (key_head + 1) * SHARED; ++head) {
    int base = head * QUERIES;
    if (head > key_head * SHARED) {
      FETCH(queries, 0, base, first_block * BLOCK, QUERIES)
      FETCH(arrived, 3, base, first_block * BLOCK, QUERIES)
      FETCH(results, 5, base, first_block * BLOCK, QUERIES)
    }
    if (thread < OF_QUERIES * BLOCK) of_one = of_query(base, first_block * BLOCK, thread);
    for (int first_query = first_block * BLOCK; first_query < QUERIES; first_query += BLOCK) {
      barrier();
      KEEP(0, queries)
      KEEP(kSecond, arrived)
      KEEP_PRODUCTS(arrived, results)
      if (thread < OF_QUERIES * BLOCK) of_block[thread] = of_one;
      barrier();
      if (thread < BLOCK) of_block[2 * BLOCK + thread] = sum_of_products(thread);
      barrier();
      if (first_query + BLOCK < QUERIES) {
        FETCH(queries, 0, base, first_query + BLOCK, QUERIES)
        FETCH(arrived, 3, base, first_query + BLOCK, QUERIES)
        FETCH(results, 5, base, first_query + BLOCK, QUERIES)
        if (thread < OF_QUERIES * BLOCK) of_one = of_query(base, first_query + BLOCK, thread);
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
        LOAD_ROW(products, of_block, 2 * BLOCK + 16 * c);
#ifdef MASKED
        MATRIX_SUMS largest, terms, factors;
        LOAD_ROW(largest, of_block, BLOCK + 16 * c);
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
  const int heads = HEADS_OF_ONE / SHARED;
  STORE_OWN(STORE_OF_KEYS, of_keys, RESULT_OF(key_head, heads, KEYS, 1), ROWS_APART(heads, PARTS), own_key,
            KEYS)
  STORE_OWN(STORE_OF_VALUES, of_values, RESULT_OF(key_head, heads, KEYS, 2), ROWS_APART(heads, PARTS),
            own_key, KEYS)
}

// The gradient of a workgroup's queries of one head, by blocks of keys.
void gradient_of_queries(int group) {
  int thread = int(gl_LocalInvocationID.x), own = int(gl_SubgroupInvocationID), subgroup = int(gl_SubgroupID);
  int head = group % HEADS, block = CAUSAL == 1 ? kQueryBlocks - 1 - group / HEADS : group / HEADS;
  int first_query = block * kRows, own_query = first_query + 16 * subgroup;
  int base = head * QUERIES, key_base = head / SHARED * KEYS, mine = subgroup * 16 * kScratch;
  fill_steps_apart(thread);
  int own_row = base + min(own_query + own % 16, QUERIES - 1);
  if (own < 16) of_rows[subgroup * 48 + own] = imp_load_4(own_row) * kLog2E;
#ifdef MASKED
  of_rows[subgroup * 48 + 32 + own % 16] = imp_load_6(own_row);
#endif
  MATRIX_LEFT queries[kParts], arrived[kParts];
  FETCH_OWN(all_queries, 0, base, first_query, QUERIES)
  FETCH_OWN(all_arrived, 3, base, first_query, QUERIES)
  FETCH_OWN(all_results, 5, base, first_query, QUERIES)
  uvec4 keys[kTurns], values[kTurns];
  FETCH(keys, 1, key_base, 0, KEYS)
  FETCH(values, 2, key_base, 0, KEYS)
  TAKE_OWN(queries, all_queries)
  KEEP_PRODUCTS(all_arrived_0, all_results_0)
  TAKE_OWN(arrived, all_arrived)
  [[unroll]] for (int part = 0; part < 2; ++part) {
    if (part == 1) {
      KEEP_PRODUCTS(all_arrived_1, all_results_1)
      barrier();
    }
    int row = part * BLOCK + thread;
    if (thread < BLOCK) of_rows[row / 16 * 48 + 16 + row % 16] = sum_of_products(thread);
    barrier();
  }
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
  STORE_OWN(imp_keep_four_0, result, RESULT_OF(head, HEADS_OF_ONE, QUERIES, 0),
            ROWS_APART(HEADS_OF_ONE, PARTS), own_query, QUERIES)
}

void imp_page(int group) {
  if (group < KEY_GROUPS)
    gradients_of_keys(group);
  else
    gradient_of_queries(group - KEY_GROUPS);
}
