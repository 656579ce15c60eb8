// Combines the updates of each row with its base, in the order of the updates, without sorting them: each
// workgroup looks through the rows of all updates. Inputs: base [ROWS, WIDTH], updates [UPDATES, WIDTH], and
// the row of each update; one outside is dropped. A workgroup takes HERE rows. It has SLICES >= HERE sets of
// LANES invocations, one for each row. All of them share a row of many updates. The text before defines
// VALUE, START and combine(before, after).

const int kMany = 24;   // updates of a row that all invocations share
const int kAtOnce = 8;  // columns of an invocation whose loads overlap
const int kWords = (UPDATES + 31) / 32;
const int kGroupsOfWords = (kWords + 31) / 32;

shared uint chosen[HERE * kWords];          // a bit per update, for each row
shared uint filled[HERE * kGroupsOfWords];  // a bit per word that is not 0
shared uint counts[HERE];
shared VALUE parts[SLICES * LANES * kAtOnce];

VALUE sums[kAtOnce];

// Loads of one update's columns, and of several updates' rows, are issued before any result is used. Columns
// outside load the last one, and are not stored.
const int kRowsAtOnce = 8;

// Combines the updates of words first .. end - 1 of a row.
void combine_updates(int row, int first, int end, int column) {
  [[unroll]] for (int k = 0; k < kAtOnce; ++k) sums[k] = START;
  for (int part = first / 32; part * 32 < end; ++part) {
    uint words = filled[row * kGroupsOfWords + part];
    while (words != 0u) {
      int word = part * 32 + findLSB(words);
      words &= words - 1u;
      if (word < first || word >= end) continue;
      uint bits = chosen[row * kWords + word];
      while (bits != 0u) {
        int at = (word * 32 + findLSB(bits)) * WIDTH;
        bits &= bits - 1u;
        VALUE loaded[kAtOnce];
        [[unroll]] for (int k = 0; k < kAtOnce; ++k) loaded[k] =
            imp_load_1(at + min(column + k * LANES, WIDTH - 1));
        [[unroll]] for (int k = 0; k < kAtOnce; ++k) sums[k] = combine(sums[k], loaded[k]);
      }
    }
  }
}

void imp_page(int group) {
  int thread = int(gl_LocalInvocationID.x), slice = thread / LANES, lane = thread % LANES;
  int first_row = group / COLUMN_BLOCKS * HERE;
  int column = group % COLUMN_BLOCKS * (LANES * kAtOnce) + lane;
  for (int k = thread; k < HERE * kWords; k += imp_group_size) chosen[k] = 0u;
  for (int k = thread; k < HERE * kGroupsOfWords; k += imp_group_size) filled[k] = 0u;
  if (thread < HERE) counts[thread] = 0u;
  barrier();
  for (int first = thread; first < UPDATES; first += kRowsAtOnce * imp_group_size) {
    int rows[kRowsAtOnce];
    [[unroll]] for (int k = 0; k < kRowsAtOnce; ++k) rows[k] =
        imp_load_2(min(first + k * imp_group_size, UPDATES - 1)) - first_row;
    [[unroll]] for (int k = 0; k < kRowsAtOnce; ++k) {
      int i = first + k * imp_group_size, row = rows[k];
      if (i >= UPDATES || row < 0 || row >= HERE) continue;
      atomicOr(chosen[row * kWords + i / 32], 1u << (i & 31));
      atomicOr(filled[row * kGroupsOfWords + i / 1024], 1u << ((i / 32) & 31));
      atomicAdd(counts[row], 1u);
    }
  }
  barrier();
  VALUE own[kAtOnce];
  [[unroll]] for (int k = 0; k < kAtOnce; ++k) own[k] = START;
  uint own_count = slice < HERE ? counts[min(slice, HERE - 1)] : 0u;
  if (own_count > 0u && own_count < uint(kMany)) {
    combine_updates(slice, 0, kWords, column);
    [[unroll]] for (int k = 0; k < kAtOnce; ++k) own[k] = sums[k];
  }
  for (int turn = 0; turn < HERE; ++turn) {
    if (counts[turn] < uint(kMany)) continue;  // the same for the whole workgroup
    int share = (kWords + SLICES - 1) / SLICES;
    combine_updates(turn, min(kWords, slice * share), min(kWords, (slice + 1) * share), column);
    [[unroll]] for (int k = 0; k < kAtOnce; ++k) parts[(slice * kAtOnce + k) * LANES + lane] = sums[k];
    barrier();
    if (slice == turn)
      for (int s = 0; s < SLICES; ++s)
        [[unroll]] for (int k = 0; k < kAtOnce; ++k) own[k] =
            combine(own[k], parts[(s * kAtOnce + k) * LANES + lane]);
    barrier();
  }
  int row = first_row + slice;
  [[unroll]] for (int k = 0; k < kAtOnce; ++k) {
    int at = row * WIDTH + column + k * LANES;
    if (slice < HERE && row < ROWS && column + k * LANES < WIDTH)
      imp_store_0(at, combine(imp_load_0(at), own[k]));
  }
}
