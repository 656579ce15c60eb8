// Scans lines: combines the elements of each line from its first to its last, in a fixed order. The text
// before defines State, identity(), combine(before, after) and the kernel's ends:
//   TOTALS 1: keep_total(i, state): the combination of each chunk of a line.
//   TOTALS 0: keep(i, state), with chunk_total(i) where CHUNKS > 1.
//   FOURS 0: element(i). FOURS 1: four_elements(line, four), and keep_four(four, states) for keep().
// A line is LENGTH elements that are INNER apart; LINES lines. A workgroup takes a chunk of TILES tiles of
// COLUMNS lines; each invocation takes RUN elements of a tile: SLICES of them share a line. Elements that do
// not come in fours pass through shared memory, so that neighbours load neighbouring elements.

const int kTileRows = SLICES * RUN, kEnds = SLICES * COLUMNS;
const int kFew = min(16, SLICES);               // slices whose ends one invocation combines
const int kKnots = (SLICES + kFew - 1) / kFew;  // of a line
#if FOURS == 0
shared State tile[kTileRows * COLUMNS + (kTileRows * COLUMNS) / 32 + 1];
#endif
shared State ends[kEnds + kEnds / 16 + 1], knots[kKnots * COLUMNS];

// Neighbours of one invocation lie in different banks.
int padded(int i) { return i + i / 32; }
int end_of(int lane) { return lane + lane / 16; }

int element_of(int line, int step) {
  int position = REVERSE == 1 ? LENGTH - 1 - step : step;
  return line / INNER * (LENGTH * INNER) + position * INNER + line % INNER;
}

// `own` is a slice's combination. Then ends[] has that of the slices before it among its kFew, and knots[]
// that of each kFew.
void combine_slices(int lane, State own) {
  ends[end_of(lane)] = own;
  barrier();
  if (lane < kEnds / kFew) {
    State few[kFew], sum = identity();
    [[unroll]] for (int k = 0; k < kFew; ++k) few[k] = ends[end_of(lane * kFew + k)];
    [[unroll]] for (int k = 0; k < kFew; ++k) {
      ends[end_of(lane * kFew + k)] = sum;
      sum = combine(sum, few[k]);
    }
    knots[lane] = sum;
  }
  barrier();
}

// The combination of a line's first `count` knots.
State combined_knots(int column, int count) {
  State sum = identity();
  [[unroll]] for (int k = 0; k < kKnots; ++k) {
    State next = knots[column * kKnots + k];
    if (k < count) sum = combine(sum, next);
  }
  return sum;
}

// TOGETHER loads wait at the same time.
#if FOURS == 1
void load_run(out State run[RUN], int first, int line, int slice, int lane) {
  [[unroll]] for (int k = 0; k < RUN; k += 4) {
    int step = first + slice * RUN + k;
    State four[4] = State[4](identity(), identity(), identity(), identity());
    if (step < LENGTH && line < LINES)
      four = four_elements(line, (REVERSE == 1 ? LENGTH - 4 - step : step) / 4);
    [[unroll]] for (int c = 0; c < 4; ++c) run[k + c] = four[REVERSE == 1 ? 3 - c : c];
  }
}
#else
void load_run(out State run[RUN], int first, int line, int slice, int lane) {
  int first_line = line - lane / SLICES;
  for (int n = 0; n < RUN; n += TOGETHER) {
    State loaded[TOGETHER];
    [[unroll]] for (int j = 0; j < TOGETHER; ++j) {
      int k = (n + j) * imp_group_size + lane;
      int row = INNER == 1 ? k % kTileRows : k / COLUMNS;
      int column = INNER == 1 ? k / kTileRows : k % COLUMNS;
      loaded[j] = identity();
      if (first + row < LENGTH && first_line + column < LINES)
        loaded[j] = element(element_of(first_line + column, first + row));
    }
    [[unroll]] for (int j = 0; j < TOGETHER; ++j) {
      int k = (n + j) * imp_group_size + lane;
      int row = INNER == 1 ? k % kTileRows : k / COLUMNS;
      int column = INNER == 1 ? k / kTileRows : k % COLUMNS;
      tile[padded(column * kTileRows + row)] = loaded[j];
    }
  }
  barrier();
  [[unroll]] for (int k = 0; k < RUN; ++k) run[k] = tile[padded(lane * RUN + k)];
}
#endif

#if TOTALS == 0 && FOURS == 1
void keep_run(State run[RUN], int first, int line, int slice, int lane) {
  [[unroll]] for (int k = 0; k < RUN; k += 4) {
    int step = first + slice * RUN + k;
    State four[4];
    [[unroll]] for (int c = 0; c < 4; ++c) four[c] = run[k + (REVERSE == 1 ? 3 - c : c)];
    if (step < LENGTH && line < LINES)
      keep_four((line * LENGTH + (REVERSE == 1 ? LENGTH - 4 - step : step)) / 4, four);
  }
}
#elif TOTALS == 0
void keep_run(State run[RUN], int first, int line, int slice, int lane) {
  int first_line = line - lane / SLICES;
  [[unroll]] for (int k = 0; k < RUN; ++k) tile[padded(lane * RUN + k)] = run[k];
  barrier();
  for (int k = lane; k < kTileRows * COLUMNS; k += imp_group_size) {
    int row = INNER == 1 ? k % kTileRows : k / COLUMNS;
    int column = INNER == 1 ? k / kTileRows : k % COLUMNS;
    if (first + row < LENGTH && first_line + column < LINES)
      keep(element_of(first_line + column, first + row), tile[padded(column * kTileRows + row)]);
  }
}
#endif

#if TOTALS == 0 && CHUNKS > 1
// The combination of the chunks before this one.
State combined_chunks(int chunk, int line, int slice, int lane) {
  const int kShare = (CHUNKS + SLICES - 1) / SLICES;
  State own = identity();
  [[unroll]] for (int n = 0; n < kShare; ++n) {
    int k = slice * kShare + n;
    if (k < chunk) own = combine(own, chunk_total(min(line, LINES - 1) * CHUNKS + k));
  }
  combine_slices(lane, own);
  State sum = combined_knots(lane / SLICES, kKnots);
  barrier();
  return sum;
}
#endif

void imp_page(int group) {
  int lane = int(gl_LocalInvocationID.x), slice = lane % SLICES, column = lane / SLICES;
  int chunk = group % CHUNKS, line = group / CHUNKS * COLUMNS + column;
  State carry = identity();
  for (int turn = 0; turn < TILES; ++turn) {
    int first = (chunk * TILES + turn) * kTileRows;
    State run[RUN], sum = identity();
    load_run(run, first, line, slice, lane);
#if TOTALS == 0 && CHUNKS > 1
    if (turn == 0) carry = combined_chunks(chunk, line, slice, lane);
#endif
    [[unroll]] for (int k = 0; k < RUN; ++k) sum = combine(sum, run[k]);
    combine_slices(lane, sum);
#if TOTALS == 0
    State before = combine(carry, combine(combined_knots(column, slice / kFew), ends[end_of(lane)]));
    [[unroll]] for (int k = 0; k < RUN; ++k) {
      State after = combine(before, run[k]);
      run[k] = EXCLUSIVE == 1 ? before : after;
      before = after;
    }
    keep_run(run, first, line, slice, lane);
#endif
    if (TOTALS == 1 || turn + 1 < TILES) carry = combine(carry, combined_knots(column, kKnots));
    barrier();
  }
#if TOTALS == 1
  if (slice == 0 && line < LINES) keep_total(line * CHUNKS + chunk, carry);
#endif
}
