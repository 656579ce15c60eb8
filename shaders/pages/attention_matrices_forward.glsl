// softmax(query key^T) value of a workgroup's queries of one head, by blocks of keys: the largest score and
// the sum of powers so far are corrected with each block. Outputs: the result; the logarithm of each query's
// sum, with masks without its largest score, which is the third.

// Scores count powers of 2, with masks of e.
#ifdef MASKED
#define POWER(x) exp2((x)*kLog2E)
#else
#define POWER(x) exp2(x)
#endif

shared float of_rows[kSubgroups * 32];  // per subgroup: the rows' largest scores, and their corrections

void imp_page(int group) {
  int thread = int(gl_LocalInvocationID.x), own = int(gl_SubgroupInvocationID), subgroup = int(gl_SubgroupID);
  // The longest rows first.
  int head = group % HEADS, block = CAUSAL == 1 ? kQueryBlocks - 1 - group / HEADS : group / HEADS;
  int first_query = block * kRows, own_query = first_query + 16 * subgroup;
  int base = head * QUERIES, key_base = head / SHARED * KEYS, mine = subgroup * 16 * kScratch;
  fill_steps_apart(thread);
  MATRIX_LEFT queries[kParts];
  FETCH_OWN(all_queries, 0, base, first_query, QUERIES)
  uvec4 keys[kTurns], values[kTurns];
  FETCH(keys, 1, key_base, 0, KEYS)
  FETCH(values, 2, key_base, 0, KEYS)
  TAKE_OWN(queries, all_queries)

  MATRIX_SUMS result[kParts], total = MATRIX_SUMS(0.0);
  [[unroll]] for (int part = 0; part < kParts; ++part) result[part] = MATRIX_SUMS(0.0);
  MATRIX_RIGHT ones = MATRIX_RIGHT(1.0);
  float largest = kHidden;  // of row own % 16
#ifdef MASKED
  const float scale = 1.0;
#else
  float scale = intBitsToFloat(SCALE_BITS) * kLog2E;
#endif
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
    if (most_apart(own_query, first_key) < -15) continue;  // the subgroup sees none
    MATRIX_SUMS scores[BLOCK / 16];
    [[unroll]] for (int c = 0; c < BLOCK / 16; ++c) {
      scores[c] = MATRIX_SUMS(0.0);
      [[unroll]] for (int part = 0; part < kParts; ++part) {
        MATRIX_RIGHT right;
        MATRIX_LOAD(right, tiles, 16 * c * kStride + 2 * part, kStride, 1);
        scores[c] = MATRIX_MULTIPLY_ADD(queries[part], right, scores[c]);
      }
#ifdef MASKED
      MATRIX_SUMS terms;
      FILL(terms, term_of(head, own_query + row, first_key + 16 * c + column))
      ADD_TERMS(scores[c], terms)
#endif
      HIDE(scores[c], own_query, first_key + 16 * c)
    }
    MATRIX_SUMS most = scores[0], maxima, corrections;
    [[unroll]] for (int c = 1; c < BLOCK / 16; ++c) {
      MATRIX_SUMS score = scores[c];
      EACH(i) most[i] = max(most[i], score[i]);
    }
    // The driver decides which invocation holds which element: rows pass through shared memory.
    subgroup_fence();
    MATRIX_STORE(most, scratch, mine, kScratch);
    subgroup_fence();
    float next = largest;
    [[unroll]] for (int n = 0; n < 4; ++n) {
      vec4 four = uintBitsToFloat(scratch[mine + own % 16 * kScratch + n]) * scale;
      next = max(next, max(max(four.x, four.y), max(four.z, four.w)));
    }
    of_rows[subgroup * 32 + own] = own < 16 ? next : POWER(largest - next);
    largest = next;
    subgroup_fence();
    LOAD_COLUMN(maxima, of_rows, subgroup * 32);
    LOAD_COLUMN(corrections, of_rows, subgroup * 32 + 16);
    EACH(i) total[i] *= corrections[i];
    [[unroll]] for (int part = 0; part < kParts; ++part) {
      MATRIX_SUMS found = result[part];
      EACH(i) found[i] *= corrections[i];
      result[part] = found;
    }
    [[unroll]] for (int c = 0; c < BLOCK / 16; ++c) {
      MATRIX_SUMS powers = scores[c];
      EACH(i) powers[i] = POWER(powers[i] * scale - maxima[i]);
      MATRIX_LEFT weights;
      AS_LEFT(weights, powers)
      total = MATRIX_MULTIPLY_ADD(weights, ones, total);
#ifdef FACTORS
      MATRIX_SUMS factors;
      FILL(factors, factor_of(head, own_query + row, first_key + 16 * c + column))
      EACH(i) powers[i] *= factors[i];
      AS_LEFT(weights, powers)
#endif
      [[unroll]] for (int part = 0; part < kParts; ++part) {
        MATRIX_RIGHT right;
        MATRIX_LOAD(right, tiles, kSecond + 16 * c * kStride + 2 * part, kStride, 0);
        result[part] = MATRIX_MULTIPLY_ADD(weights, right, result[part]);
      }
    }
  }

  subgroup_fence();
  MATRIX_STORE(total, scratch, mine, kScratch);
  subgroup_fence();
  if (own < 16 && own_query + own < QUERIES) {
    float all = uintBitsToFloat(scratch[mine + own * kScratch].x);
#ifdef MASKED
    imp_store_1(base + own_query + own, log(all));
    imp_store_2(base + own_query + own, largest);
#else
    imp_store_1(base + own_query + own, (largest + log2(all)) * kLn2);
#endif
  }
  [[unroll]] for (int part = 0; part < kParts; ++part) {
    MATRIX_SUMS found = result[part];
    EACH(i) found[i] /= total[i];
    result[part] = found;
  }
  int start = result_of(head, HEADS_OF_ONE, QUERIES, 1, 0);
  STORE_OWN(imp_keep_four_0, result, start, ROWS_APART(HEADS_OF_ONE, 1), own_query, QUERIES)
}
