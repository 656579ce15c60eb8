// Scans lines: combines the elements of each line from its first to its last, in a fixed order. The text
// before defines State, identity(), combine(before, after), element(i) and the kernel's end:
//   TOTALS 1: keep_total(i, state): the combination of each chunk of a line.
//   TOTALS 0: keep(i, state), with chunk_total(i) where CHUNKS > 1.
// A line is LENGTH elements that are INNER apart; LINES lines. A workgroup takes a chunk of TILES tiles of
// COLUMNS lines; each invocation takes RUN elements of a tile: SLICES of them share a line.

const int kTileRows = SLICES * RUN;
shared State tile[kTileRows * COLUMNS + (kTileRows * COLUMNS) / 32 + 1];
const int kEnds = SLICES * COLUMNS;
shared State ends[2 * kEnds];  // the first half; the other is for scan_ends

int padded(int i) { return i + i / 32; }  // neighbours of one invocation lie in different banks

int element_of(int line, int step) {
  int position = REVERSE == 1 ? LENGTH - 1 - step : step;
  return line / INNER * (LENGTH * INNER) + position * INNER + line % INNER;
}

// Scans the slices of each line. Returns where in ends[] the result starts: the combination of the slices up
// to each. The halves take turns, so that each step needs one barrier.
int scan_ends(int lane, int slice) {
  int from = 0;
  for (int distance = 1; distance < SLICES; distance <<= 1) {
    State own = ends[from + lane];
    if (slice >= distance) own = combine(ends[from + lane - distance], own);
    from = kEnds - from;
    ends[from + lane] = own;
    barrier();
  }
  return from;
}

// ends[] of a line's last slice becomes the combination of all its slices.
void combine_ends(int lane, int slice) {
  for (int distance = 1; distance < SLICES; distance <<= 1) {
    if ((slice & (2 * distance - 1)) == 2 * distance - 1)
      ends[lane] = combine(ends[lane - distance], ends[lane]);
    barrier();
  }
}

// TOGETHER loads wait at the same time.
void load_tile(int first, int first_line, int lane) {
  for (int n = 0; n < RUN; n += TOGETHER) {
    State loaded[TOGETHER];
    [[unroll]] for (int j = 0; j < TOGETHER; ++j) {
      int k = (n + j) * imp_group_size + lane;
      int row = INNER == 1 ? k % kTileRows : k / COLUMNS;
      int line = INNER == 1 ? k / kTileRows : k % COLUMNS;
      loaded[j] = identity();
      if (first + row < LENGTH && first_line + line < LINES)
        loaded[j] = element(element_of(first_line + line, first + row));
    }
    [[unroll]] for (int j = 0; j < TOGETHER; ++j) {
      int k = (n + j) * imp_group_size + lane;
      int row = INNER == 1 ? k % kTileRows : k / COLUMNS;
      int line = INNER == 1 ? k / kTileRows : k % COLUMNS;
      tile[padded(line * kTileRows + row)] = loaded[j];
    }
  }
}

void imp_page(int group) {
  int lane = int(gl_LocalInvocationID.x);
  int slice = lane % SLICES, column = lane / SLICES;
  int chunk = group % CHUNKS, first_line = group / CHUNKS * COLUMNS;
  int last = column * SLICES + SLICES - 1;
  State carry = identity();
#if TOTALS == 0 && CHUNKS > 1
  {
    int line = min(first_line + column, LINES - 1);
    int share = (chunk + SLICES - 1) / SLICES;
    State own = identity();
    for (int k = slice * share; k < min(chunk, (slice + 1) * share); ++k)
      own = combine(own, chunk_total(line * CHUNKS + k));
    ends[lane] = own;
    barrier();
    combine_ends(lane, slice);
    carry = ends[last];
    barrier();
  }
#endif
  for (int turn = 0; turn < TILES; ++turn) {
    int first = (chunk * TILES + turn) * kTileRows;
    load_tile(first, first_line, lane);
    barrier();
    int run = column * kTileRows + slice * RUN;
    State sum = identity();
    for (int k = 0; k < RUN; ++k) sum = combine(sum, tile[padded(run + k)]);
    ends[lane] = sum;
    barrier();
#if TOTALS == 1
    combine_ends(lane, slice);
    carry = combine(carry, ends[last]);
#else
    int from = scan_ends(lane, slice);
    State before = carry;
    if (slice > 0) before = combine(carry, ends[from + lane - 1]);
    for (int k = 0; k < RUN; ++k) {
      State after = combine(before, tile[padded(run + k)]);
      tile[padded(run + k)] = EXCLUSIVE == 1 ? before : after;
      before = after;
    }
    carry = combine(carry, ends[from + last]);
#endif
    barrier();
#if TOTALS == 0
    for (int k = lane; k < kTileRows * COLUMNS; k += imp_group_size) {
      int row = INNER == 1 ? k % kTileRows : k / COLUMNS;
      int line = INNER == 1 ? k / kTileRows : k % COLUMNS;
      if (first + row < LENGTH && first_line + line < LINES)
        keep(element_of(first_line + line, first + row), tile[padded(line * kTileRows + row)]);
    }
    barrier();
#endif
  }
#if TOTALS == 1
  if (slice == 0 && first_line + column < LINES) keep_total((first_line + column) * CHUNKS + chunk, carry);
#endif
}
