// Scans lines: combines the elements of each line from its first to its last, in a fixed order. The text
// before defines State, identity(), combine(before, after) and the kernel's ends:
//   TOTALS 1: keep_total(i, state): the combination of each chunk of a line.
//   TOTALS 0: keep(i, state), with chunk_total(i) where CHUNKS > 1.
//   FOURS 0: element(i). FOURS 1: four_elements(line, four), and keep_four(four, states) for keep().
// A line is LENGTH elements that are INNER apart; LINES lines. A workgroup takes a chunk of TILES tiles of
// COLUMNS lines; each invocation takes RUN elements of a tile: SLICES of them share a line. Elements that do
// not come in fours pass through shared memory, so that neighbours load neighbouring elements. SIDES parts of
// a tile lie one after the other, and each invocation has a slice of each.

const int kTileRows = SLICES * RUN, kEnds = SLICES * COLUMNS, kPart = RUN / SIDES;
const int kFew = min(16, SLICES);               // slices whose ends one invocation combines
const int kKnots = (SLICES + kFew - 1) / kFew;  // of a line's part
// Several parts are of sums: totals add up in any order, an invocation's own elements first.
const int kScanned = TOTALS == 1 ? 1 : SIDES;
const int kOfLine = kKnots * kScanned, kNear = min(8, kOfLine), kFar = (kOfLine + kNear - 1) / kNear;
#if FOURS == 0
shared State tile[kTileRows * COLUMNS + (kTileRows * COLUMNS) / 32 + 1];
#endif
const int kEndsApart = kEnds + kEnds / 16;  // of two parts
shared State ends[kEndsApart * kScanned + 1], knots[kOfLine * COLUMNS], far[kFar * COLUMNS];
#if TOTALS == 0 && CHUNKS > 1
// Each slice combines a share of the totals of the chunks before this one, and one invocation those of kFew.
shared State shares[kEndsApart + 1], share_knots[kKnots * COLUMNS], carries[COLUMNS];
#endif

// Neighbours of one invocation lie in different banks.
int padded(int i) { return i + i / 32; }
int end_of(int lane, int side) { return side * kEndsApart + lane + lane / 16; }

int element_of(int line, int step) {
  int position = REVERSE == 1 ? LENGTH - 1 - step : step;
  return line / INNER * (LENGTH * INNER) + position * INNER + line % INNER;
}

// Combines shared states in place: each becomes the combination of those before it among `count`. Gives that
// of all.
#define COMBINE_BEFORE(states, count, place, total)                      \
  {                                                                      \
    State found[count];                                                  \
    [[unroll]] for (int k = 0; k < count; ++k) found[k] = states[place]; \
    total = identity();                                                  \
    [[unroll]] for (int k = 0; k < count; ++k) {                         \
      states[place] = total;                                             \
      total = combine(total, found[k]);                                  \
    }                                                                    \
  }

#if TOTALS == 1
// `own` is the combination of an invocation's slice. Gives that of all to the line's first one.
State combine_all(int lane, int slice, int column, State own) {
  ends[end_of(lane, 0)] = own;
  barrier();
  if (lane < kEnds / kFew) {
    State sum = identity();
    [[unroll]] for (int k = 0; k < kFew; ++k) sum = combine(sum, ends[end_of(lane * kFew + k, 0)]);
    knots[lane] = sum;
  }
  barrier();
  State all = identity();
  if (slice == 0) {
    [[unroll]] for (int k = 0; k < kKnots; ++k) all = combine(all, knots[column * kKnots + k]);
  }
  return all;
}
#else
// `own` are the combinations of an invocation's slices, one of each part. Then ends[] has that of the slices
// before it among its kFew, knots[] that of the kFew before it among kNear, and far[] that of each kNear.
void combine_slices(int lane, State own[SIDES]) {
  [[unroll]] for (int side = 0; side < SIDES; ++side) ends[end_of(lane, side)] = own[side];
  barrier();
  const int kCombiners = kEnds / kFew * SIDES;
  if (lane < kCombiners) {
    int side = lane / (kEnds / kFew), knot = lane % (kEnds / kFew);  // knot: of all columns
    State sum;
    COMBINE_BEFORE(ends, kFew, end_of(knot * kFew + k, side), sum)
    knots[(knot / kKnots * SIDES + side) * kKnots + knot % kKnots] = sum;
  }
#if CHUNKS > 1
  int other = lane - kEnds / 2;  // other invocations at the same time
  if (other >= 0 && other < kEnds / kFew) {
    State sum = identity();
    [[unroll]] for (int k = 0; k < kFew; ++k) sum = combine(sum, shares[end_of(other * kFew + k, 0)]);
    share_knots[other] = sum;
  }
#endif
  barrier();
  if (lane < kFar * COLUMNS) {
    State sum;
    COMBINE_BEFORE(knots, kNear, lane * kNear + k, sum)
    far[lane] = sum;
  }
#if CHUNKS > 1
  if (other >= 0 && other < COLUMNS) {
    State sum = identity();
    [[unroll]] for (int k = 0; k < kKnots; ++k) sum = combine(sum, share_knots[other * kKnots + k]);
    carries[other] = sum;
  }
#endif
  barrier();
}
#endif

#if FOURS == 1
bool is_within(int step, int line) {
  return (CHUNKS * TILES * kTileRows == LENGTH || step < LENGTH) && (LINES % COLUMNS == 0 || line < LINES);
}

// TOGETHER loads wait at the same time.
void load_run(out State run[RUN], int first, int line, int slice, int lane) {
  [[unroll]] for (int k = 0; k < RUN; k += 4) {
    int step = first + (k / 4 * SLICES + slice) * 4;
    State four[4] = State[4](identity(), identity(), identity(), identity());
    if (is_within(step, line)) four = four_elements(line, (REVERSE == 1 ? LENGTH - 4 - step : step) / 4);
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
    int step = first + (k / 4 * SLICES + slice) * 4;
    State four[4];
    [[unroll]] for (int c = 0; c < 4; ++c) four[c] = run[k + (REVERSE == 1 ? 3 - c : c)];
    if (is_within(step, line))
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
// The combination of a slice's share of the totals before.
State share_of(int chunk, int line, int slice) {
  const int kShare = (CHUNKS + SLICES - 1) / SLICES;
  State own = identity();
  [[unroll]] for (int n = 0; n < kShare; ++n) {
    int k = slice * kShare + n;
    if (k < chunk) own = combine(own, chunk_total(min(line, LINES - 1) * CHUNKS + k));
  }
  return own;
}
#endif

void imp_page(int group) {
  int lane = int(gl_LocalInvocationID.x), slice = lane % SLICES, column = lane / SLICES;
  int chunk = group % CHUNKS, line = group / CHUNKS * COLUMNS + column;
  State carry = identity();
  for (int turn = 0; turn < TILES; ++turn) {
    int first = (chunk * TILES + turn) * kTileRows;
    State run[RUN];
    load_run(run, first, line, slice, lane);
#if TOTALS == 1
    State own = identity();
    [[unroll]] for (int k = 0; k < RUN; ++k) own = combine(own, run[k]);
    carry = combine(carry, combine_all(lane, slice, column, own));
#else
#if CHUNKS > 1
    if (turn == 0) shares[end_of(lane, 0)] = share_of(chunk, line, slice);
#endif
    State sums[SIDES];
    [[unroll]] for (int side = 0; side < SIDES; ++side) {
      sums[side] = identity();
      [[unroll]] for (int k = 0; k < kPart; ++k) sums[side] = combine(sums[side], run[side * kPart + k]);
    }
    combine_slices(lane, sums);
#if CHUNKS > 1
    if (turn == 0) carry = carries[column];
#endif
    State before_far[kFar];
    [[unroll]] for (int k = 0; k < kFar; ++k) {
      before_far[k] = carry;
      carry = combine(carry, far[column * kFar + k]);
    }
    [[unroll]] for (int side = 0; side < SIDES; ++side) {
      int knot = side * kKnots + slice / kFew;
      State before = before_far[side * kKnots / kNear];
      [[unroll]] for (int k = 1; k < kKnots / kNear; ++k) if (slice / (kFew * kNear) == k) before =
          before_far[side * kKnots / kNear + k];
      before = combine(before, combine(knots[column * kOfLine + knot], ends[end_of(lane, side)]));
      [[unroll]] for (int k = side * kPart; k < (side + 1) * kPart; ++k) {
        State after = combine(before, run[k]);
        run[k] = EXCLUSIVE == 1 ? before : after;
        before = after;
      }
    }
    keep_run(run, first, line, slice, lane);
#endif
    if (turn + 1 < TILES) barrier();
  }
#if TOTALS == 1
  if (slice == 0 && line < LINES) keep_total(line * CHUNKS + chunk, carry);
#endif
}
