// Moves each element to its place by the digit of eight bits at SHIFT: one pass of a stable radix sort. FIRST
// 1: no positions are stored yet. SCANNED 1: input 2 has, for each count of input 1, the sum of those of the
// digit in earlier chunks. Each invocation takes RUN neighbours of a tile; a chunk is CHUNK elements. A tile
// is sorted in shared memory by four bits, then by the other four, so that neighbours go to neighbours.
// Source of the counting by rows of pairs: Satish, Harris, Garland, Designing Efficient Sorting Algorithms
// for Manycore GPUs, 2009.

#if SCANNED == 1
#define imp_load_positions imp_load_3
#else
#define imp_load_positions imp_load_2
#endif

const int kTile = imp_group_size * RUN;
const int kPieces = imp_group_size / 8;  // invocations per row of counts

// Counts of two digits per word, [8][imp_group_size]; or elements in order.
shared uint pool[kTile + kTile / 32];
shared uint sums[imp_group_size];
shared uint firsts[256];  // of each digit: its first place in the tile
shared int bases[256];    // the place in the line of its next element
shared uint part_counts[16];

uint keys[RUN], values[RUN];  // of this invocation
int places[RUN];              // in the tile

int padded(int i) { return i + i / 32; }  // neighbours of one invocation lie in different banks

// bases[] becomes the place in the line of the chunk's first element of each digit.
void find_bases(int lane, int line, int chunk) {
  for (int digit = lane; digit < 256; digit += imp_group_size) {
    int first = line * CHUNKS * 256 + digit;
#if SCANNED == 1
    int last = first + (CHUNKS - 1) * 256;
    firsts[digit] = uint(imp_load_1(last) + imp_load_2(last));
    bases[digit] = imp_load_2(first + chunk * 256);
#else
    int all = 0, before = 0;
    for (int k = 0; k < CHUNKS; ++k) {
      int count = imp_load_1(first + k * 256);
      all += count;
      if (k < chunk) before += count;
    }
    firsts[digit] = uint(all);
    bases[digit] = before;
#endif
  }
  barrier();
  if (lane < 16) {
    uint sum = 0u;
    for (int k = 0; k < 16; ++k) sum += firsts[lane * 16 + k];
    part_counts[lane] = sum;
  }
  barrier();
  for (int digit = lane; digit < 256; digit += imp_group_size) {
    uint sum = 0u;
    for (int k = 0; k < digit / 16; ++k) sum += part_counts[k];
    for (int k = digit / 16 * 16; k < digit; ++k) sum += firsts[k];
    bases[digit] += int(sum);
  }
  barrier();
}

// places[] becomes the place of each key in the tile by its four bits at `shift`, stable.
void rank(int lane, int shift) {
  for (int row = 0; row < 8; ++row) pool[row * imp_group_size + lane] = 0u;
  for (int k = 0; k < RUN; ++k) {
    int digit = int(keys[k] >> shift) & 15;
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
  if (lane < 16) {
    uint total = 0u;
    for (int k = 0; k < lane; ++k) total += (sums[k / 2 * kPieces + kPieces - 1] >> (k % 2 * 16)) & 0xffffu;
    part_counts[lane] = total;
  }
  barrier();
  for (int k = 0; k < RUN; ++k) {
    int digit = int(keys[k] >> shift) & 15;
    places[k] +=
        int(part_counts[digit]) + (int(pool[digit / 2 * imp_group_size + lane] >> (digit % 2 * 16)) & 0xffff);
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
    for (int k = 0; k < RUN; ++k) {
      int i = first + lane * RUN + k;
      keys[k] = i < end ? sort_key(imp_load_0(start + i)) : 0xffffffffu;  // those outside are last
#if FIRST == 1
      values[k] = uint(i);
#else
      values[k] = i < end ? uint(imp_load_positions(start + i)) : 0u;
#endif
    }
    rank(lane, SHIFT);
    for (int k = 0; k < RUN; ++k) pool[padded(places[k])] = keys[k];
    barrier();
    for (int k = 0; k < RUN; ++k) keys[k] = pool[padded(lane * RUN + k)];
    barrier();
    for (int k = 0; k < RUN; ++k) pool[padded(places[k])] = values[k];
    barrier();
    for (int k = 0; k < RUN; ++k) values[k] = pool[padded(lane * RUN + k)];
    barrier();
    rank(lane, SHIFT + 4);
    for (int k = 0; k < RUN; ++k) pool[padded(places[k])] = keys[k];
    barrier();
    for (int k = 0; k < RUN; ++k) {
      int at = k * imp_group_size + lane, digit = int(pool[padded(at)] >> SHIFT) & 255;
      if (at == 0 || (int(pool[padded(at - 1)] >> SHIFT) & 255) != digit) firsts[digit] = uint(at);
    }
    barrier();
    int targets[RUN];  // of the elements that this invocation writes
    int counts[RUN];   // of a digit up to its last element; -1: not the last
    for (int k = 0; k < RUN; ++k) {
      int at = k * imp_group_size + lane;
      uint key = pool[padded(at)];
      int digit = int(key >> SHIFT) & 255, before = at - int(firsts[digit]);
      targets[k] = first + at < end ? start + bases[digit] + before : -1;
      counts[k] = -1;
      if (at == kTile - 1 || (int(pool[padded(at + 1)] >> SHIFT) & 255) != digit) counts[k] = before + 1;
      keys[k] = key;
      if (targets[k] >= 0) imp_store_1(targets[k], int(key));
    }
    barrier();
    for (int k = 0; k < RUN; ++k) {
      pool[padded(places[k])] = values[k];
      if (counts[k] > 0) bases[int(keys[k] >> SHIFT) & 255] += counts[k];
    }
    barrier();
    for (int k = 0; k < RUN; ++k)
      if (targets[k] >= 0) imp_store_0(targets[k], int(pool[padded(k * imp_group_size + lane)]));
    barrier();
  }
}
