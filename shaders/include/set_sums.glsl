// The sums of a workgroup's sets are added up over the invocations of each set, in one order, and stored: OWN
// columns of each set from column `first`, BATCH rows from `row`. `found` has an invocation's own, of type
// `Number`; `sums` and `pieces` are shared.
#define STORE_SET_SUMS(Number)                                                                     \
  int sum_of = lane / kPieces, piece = lane % kPieces; /* sum_of: a column of all sets */          \
  [[unroll]] for (int r = 0; r < BATCH; ++r) {                                                     \
    [[unroll]] for (int c = 0; c < OWN; ++c) sums[c * imp_group_size + lane] = found[r * OWN + c]; \
    barrier();                                                                                     \
    Number sum = Number(0);                                                                        \
    int from = sum_of % OWN * imp_group_size + sum_of / OWN * LANES + piece;                       \
    [[unroll]] for (int j = 0; j < OWN; ++j) sum += sums[from + j * kPieces];                      \
    pieces[lane] = sum;                                                                            \
    barrier();                                                                                     \
    if (piece == 0 && first + sum_of < COLUMNS && row + r < ROWS) {                                \
      for (int j = 1; j < kPieces; ++j) sum += pieces[lane + j];                                   \
      imp_store_0((row + r) * COLUMNS + first + sum_of, sum);                                      \
    }                                                                                              \
  }
