// Scans lines: combines the elements of each line from its first to its last, in a fixed order. The text
// before defines State, identity(), combine(before, after) and the kernel's ends:
//   TOTALS 1: keep_total(i, state): the combination of each chunk of a line.
//   TOTALS 0: keep(i, state), with chunk_total(i) where CHUNKS > 1 and ONE_PASS 0.
//   ONE_PASS 1: words_of(state) and of_words(words), WORDS words each, and combine() is precise.
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
#if CHUNKS > 1 && ONE_PASS == 0
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
#if CHUNKS > 1 && ONE_PASS == 0
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

#if TOTALS == 0
// Scans a tile after `start`, or, where is_first, after the chunks before. before: what comes before each of
// the invocation's slices. Gives the combination of all.
State scan_tile(State start, bool is_first, State run[RUN], int lane, int slice, int column,
                out State before[SIDES]) {
  State sums[SIDES];
  [[unroll]] for (int side = 0; side < SIDES; ++side) {
    sums[side] = identity();
    [[unroll]] for (int k = 0; k < kPart; ++k) sums[side] = combine(sums[side], run[side * kPart + k]);
  }
  combine_slices(lane, sums);
#if CHUNKS > 1 && ONE_PASS == 0
  if (is_first) start = carries[column];
#endif
  State before_far[kFar];
  [[unroll]] for (int k = 0; k < kFar; ++k) {
    before_far[k] = start;
    start = combine(start, far[column * kFar + k]);
  }
  [[unroll]] for (int side = 0; side < SIDES; ++side) {
    int knot = side * kKnots + slice / kFew;
    before[side] = before_far[side * kKnots / kNear];
    [[unroll]] for (int k = 1; k < kKnots / kNear; ++k) if (slice / (kFew * kNear) == k) before[side] =
        before_far[side * kKnots / kNear + k];
    before[side] = combine(before[side], combine(knots[column * kOfLine + knot], ends[end_of(lane, side)]));
  }
  return start;
}
#endif

#if ONE_PASS == 1
// Workgroups tell each other the combinations of their chunks, so that one kernel reads each element once.
//
// Each chunk of a line has two marks per word of its State: half of the word, and the number of the run
// modulo 2^16. So a reader knows of each mark by itself whether it is of this run, in whatever order marks
// become visible, and needs no memory barrier. The number is that of the chunk's own mark and 1, since every
// run writes every mark once. Vulkan 1.1 (access types): atomic operations are coherent with each other and
// with variables decorated with Coherent. GLSL 4.60 (4.10): a volatile variable is read again each time.
//
// A mark that is not there after TRIES reads is only late: the workgroup combines that chunk's elements
// itself. So nothing depends on how a device orders its workgroups, and since scan_tile() combines all chunks
// in one order without fused multiply-adds, the bits do not either.
shared uint run_numbers[COLUMNS];
shared int late[kEnds], late_count;

int mark_of(int line, int chunk) { return (line * CHUNKS + chunk) * 2 * WORDS; }

// Before any barrier of the kernel. Only the invocation that writes a mark reads it here.
void begin_run(int lane, int slice, int column, int line, int chunk) {
  if (lane == 0) late_count = 0;
  if (slice == 0) run_numbers[column] = (imp_mark(mark_of(min(line, LINES - 1), chunk)) + 1u) & 0xffffu;
}

void publish(int mark, uint run_number, State state) {
  uint words[WORDS] = words_of(state);
  [[unroll]] for (int w = 0; w < WORDS; ++w) {
    atomicExchange(imp_mark(mark + 2 * w), (words[w] & 0xffff0000u) | run_number);
    atomicExchange(imp_mark(mark + 2 * w + 1), (words[w] << 16) | run_number);
  }
}

bool is_published(int mark, uint run_number, out State state) {
  bool is_there = true;
  uint words[WORDS];
  [[unroll]] for (int w = 0; w < WORDS; ++w) {
    uint high = imp_mark(mark + 2 * w), low = imp_mark(mark + 2 * w + 1);
    is_there = is_there && (high & 0xffffu) == run_number && (low & 0xffffu) == run_number;
    words[w] = (high & 0xffff0000u) | (low >> 16);
  }
  state = of_words(words);
  return is_there;
}

// Combines the elements of the chunks that are late. All invocations call it.
void combine_late(int chunk, int line, int slice, int lane, int column) {
  [[dont_unroll]] for (int other = 0; other < chunk; ++other) {
    bool is_late = false;
    for (int k = 0; k < COLUMNS; ++k) is_late = is_late || late[k * SLICES + other] == 1;
    if (!is_late) continue;
    State run[RUN], unused[SIDES];
    load_run(run, other * kTileRows, line, slice, lane);
    State total = scan_tile(identity(), false, run, lane, slice, column, unused);
    if (slice == 0) shares[end_of(column * SLICES + other, 0)] = total;
    barrier();
  }
}

// total: of the workgroup's own chunk. Gives the combination of the chunks before it.
State combination_before(State total, int chunk, int line, int slice, int lane, int column) {
  uint run_number = run_numbers[column];
  if (slice == 0 && line < LINES) publish(mark_of(line, chunk), run_number, total);
  State found = identity();
  bool is_late = slice < chunk && line < LINES;  // CHUNKS <= SLICES
  [[dont_unroll]] for (int k = 0; k < TRIES && is_late; ++k) is_late =
      !is_published(mark_of(line, slice), run_number, found);
  if (is_late) atomicAdd(late_count, 1);
  late[lane] = is_late ? 1 : 0;
  shares[end_of(lane, 0)] = found;
  barrier();
  if (late_count > 0) combine_late(chunk, line, slice, lane, column);
  if (lane < kEnds / kFew) {
    State sum = identity();
    [[unroll]] for (int k = 0; k < kFew; ++k) sum = combine(sum, shares[end_of(lane * kFew + k, 0)]);
    share_knots[lane] = sum;
  }
  barrier();
  State before = identity();
  [[unroll]] for (int k = 0; k < kKnots; ++k) before = combine(before, share_knots[column * kKnots + k]);
  return before;
}
#endif

#if TOTALS == 0 && CHUNKS > 1 && ONE_PASS == 0
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
#if ONE_PASS == 1
  begin_run(lane, slice, column, line, chunk);
#endif
  for (int turn = 0; turn < TILES; ++turn) {
    int first = (chunk * TILES + turn) * kTileRows;
    State run[RUN];
    load_run(run, first, line, slice, lane);
#if TOTALS == 1
    State own = identity();
    [[unroll]] for (int k = 0; k < RUN; ++k) own = combine(own, run[k]);
    carry = combine(carry, combine_all(lane, slice, column, own));
#else
#if CHUNKS > 1 && ONE_PASS == 0
    if (turn == 0) shares[end_of(lane, 0)] = share_of(chunk, line, slice);
#endif
    State befores[SIDES];
    carry = scan_tile(carry, turn == 0, run, lane, slice, column, befores);
#if ONE_PASS == 1
    carry = combination_before(carry, chunk, line, slice, lane, column);
#endif
    [[unroll]] for (int side = 0; side < SIDES; ++side) {
      State before = befores[side];
#if ONE_PASS == 1
      before = combine(carry, before);
#endif
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
