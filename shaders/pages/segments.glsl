// Combines the updates of each row with its base, in the order of the updates. Inputs: base [ROWS, WIDTH],
// updates [UPDATES, WIDTH], positions of the updates sorted by row, and where each row begins among them. A
// workgroup takes SLICES rows and COLUMNS columns. One invocation combines the updates of a short row; all
// slices share a long one. The text before defines VALUE, START and combine(before, after).

const int kLong = 24;  // updates of a row that slices share
shared VALUE parts[SLICES * COLUMNS];

VALUE updates_between(int begin, int end, int column) {
  VALUE sum = START;
  for (int k = begin; k < end; ++k) sum = combine(sum, imp_load_1(imp_load_2(k) * WIDTH + column));
  return sum;
}

void imp_page(int group) {
  int lane = int(gl_LocalInvocationID.x);
  int slice = lane / COLUMNS, local = lane % COLUMNS;
  int first_row = group / COLUMN_BLOCKS * SLICES, column = group % COLUMN_BLOCKS * COLUMNS + local;
  int row = first_row + slice;
  bool inside = row < ROWS && column < WIDTH;
  VALUE own = START;
  int begin = 0, end = 0;
  if (inside) {
    begin = imp_load_3(row);
    end = imp_load_3(row + 1);
    if (end - begin < kLong || SLICES == 1) own = updates_between(begin, end, column);
  }
#if SLICES > 1
  for (int turn = 0; turn < SLICES && first_row + turn < ROWS; ++turn) {
    int from = imp_load_3(first_row + turn), to = imp_load_3(first_row + turn + 1);
    if (to - from < kLong) continue;  // the same for the whole workgroup
    int share = (to - from + SLICES - 1) / SLICES;
    VALUE part = START;
    if (column < WIDTH)
      part = updates_between(min(to, from + slice * share), min(to, from + (slice + 1) * share), column);
    parts[lane] = part;
    barrier();
    for (int distance = 1; distance < SLICES; distance <<= 1) {  // neighbours first, in order
      if (slice % (2 * distance) == 0) parts[lane] = combine(parts[lane], parts[lane + distance * COLUMNS]);
      barrier();
    }
    if (slice == turn) own = parts[local];
    barrier();
  }
#endif
  if (inside) imp_store_0(row * WIDTH + column, combine(imp_load_0(row * WIDTH + column), own));
}
