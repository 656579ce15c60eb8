// Moves each element to its place by the digit of four bits at SHIFT: one pass of a stable radix sort. FIRST
// 1: no positions are stored yet. Each invocation takes RUN neighbours of a tile; a chunk is CHUNK elements.
// Source of the counting by rows of pairs: Satish, Harris, Garland, Designing Efficient Sorting Algorithms
// for Manycore GPUs, 2009.

const int kTile = imp_group_size * RUN;
const int kPieces = imp_group_size / 8;  // invocations per row of counts

shared uint pool[kTile];  // counts of two digits per word, [8][imp_group_size]; then elements in order
shared uint sums[imp_group_size];
shared uint firsts[16];  // of each digit: its first place in the tile
shared int bases[16];    // the place in the line of its next element
shared uint tile_counts[16];

// bases[] becomes the number of the line's elements that come before the chunk's first of each digit.
void find_bases(int lane, int line, int chunk) {
  const int kShare = imp_group_size / 16;
  int digit = lane / kShare, part = lane % kShare;
  uint all = 0u, before = 0u;
  for (int k = part; k < CHUNKS; k += kShare) {
    uint count = uint(imp_load_1((line * 16 + digit) * CHUNKS + k));
    all += count;
    if (k < chunk) before += count;
  }
  sums[lane] = all;
  pool[lane] = before;
  barrier();
  if (part == 0) {
    for (int k = 1; k < kShare; ++k) {
      all += sums[lane + k];
      before += pool[lane + k];
    }
    tile_counts[digit] = all;
    bases[digit] = int(before);
  }
  barrier();
  if (lane < 16) {
    int sum = bases[lane];
    for (int k = 0; k < lane; ++k) sum += int(tile_counts[k]);
    bases[lane] = sum;
  }
  barrier();
}

void imp_page(int group) {
  int lane = int(gl_LocalInvocationID.x);
  int line = group / CHUNKS, chunk = group % CHUNKS;
  int start = line * LENGTH;
  find_bases(lane, line, chunk);
  int end = min(LENGTH, (chunk + 1) * CHUNK);
  for (int first = chunk * CHUNK; first < end; first += kTile) {
    uint keys[RUN];
    int places[RUN];
    for (int k = 0; k < RUN; ++k) {
      int i = first + lane * RUN + k;
      keys[k] = i < end ? sort_key(imp_load_0(start + i)) : 0xffffffffu;  // those outside are last
    }
    for (int row = 0; row < 8; ++row) pool[row * imp_group_size + lane] = 0u;
    for (int k = 0; k < RUN; ++k) {
      int digit = int(keys[k] >> SHIFT) & 15;
      int word = digit / 2 * imp_group_size + lane, half_bits = digit % 2 * 16;
      places[k] = int(pool[word] >> half_bits) & 0xffff;
      pool[word] += 1u << half_bits;
    }
    barrier();
    // Both halves of each row are summed over the invocations at once.
    int piece = lane / kPieces * imp_group_size + lane % kPieces * 8;
    uint sum = 0u;
    for (int k = 0; k < 8; ++k) {
      uint own = pool[piece + k];
      pool[piece + k] = sum;
      sum += own;
    }
    sums[lane] = sum;
    barrier();
    for (int distance = 1; distance < kPieces; distance <<= 1) {
      uint before = 0u;
      if (lane % kPieces >= distance) before = sums[lane - distance];
      barrier();
      sums[lane] += before;
      barrier();
    }
    uint before = 0u;
    if (lane % kPieces > 0) before = sums[lane - 1];
    for (int k = 0; k < 8; ++k) pool[piece + k] += before;
    if (lane < 16) tile_counts[lane] = (sums[lane / 2 * kPieces + kPieces - 1] >> (lane % 2 * 16)) & 0xffffu;
    barrier();
    if (lane < 16) {
      uint total = 0u;
      for (int k = 0; k < lane; ++k) total += tile_counts[k];
      firsts[lane] = total;
    }
    barrier();
    for (int k = 0; k < RUN; ++k) {
      int digit = int(keys[k] >> SHIFT) & 15;
      places[k] +=
          int(firsts[digit]) + (int(pool[digit / 2 * imp_group_size + lane] >> (digit % 2 * 16)) & 0xffff);
    }
    barrier();
    for (int k = 0; k < RUN; ++k) pool[places[k]] = keys[k];
    barrier();
    int targets[RUN];  // of the elements that this invocation writes
    for (int k = 0; k < RUN; ++k) {
      int at = k * imp_group_size + lane;
      uint key = pool[at];
      int digit = int(key >> SHIFT) & 15;
      targets[k] = first + at < end ? start + bases[digit] + at - int(firsts[digit]) : -1;
      if (targets[k] >= 0) imp_store_1(targets[k], int(key));
    }
    barrier();
    for (int k = 0; k < RUN; ++k) {
      int i = first + lane * RUN + k;
#if FIRST == 1
      pool[places[k]] = uint(i);
#else
      pool[places[k]] = i < end ? uint(imp_load_2(start + i)) : 0u;
#endif
    }
    barrier();
    for (int k = 0; k < RUN; ++k)
      if (targets[k] >= 0) imp_store_0(targets[k], int(pool[k * imp_group_size + lane]));
    if (lane < 16) bases[lane] += int(tile_counts[lane]);
    barrier();
  }
}
