// Counts the digits of eight bits at SHIFT in each chunk of a line: output [line, chunk, digit]. A chunk is
// CHUNK elements; a line has CHUNKS chunks. Integer sums: the order of the atomic additions does not matter.

const int kCopies = 8;  // neighbours count in different banks
shared uint counts[256 * kCopies];

void imp_page(int group) {
  int lane = int(gl_LocalInvocationID.x);
  int line = group / CHUNKS, chunk = group % CHUNKS;
  for (int k = lane; k < 256 * kCopies; k += imp_group_size) counts[k] = 0u;
  barrier();
  int end = min(LENGTH, (chunk + 1) * CHUNK);
  for (int i = chunk * CHUNK + lane; i < end; i += imp_group_size) {
    uint digit = (sort_key(imp_load_0(line * LENGTH + i)) >> SHIFT) & 255u;
    atomicAdd(counts[int(digit) * kCopies + lane % kCopies], 1u);
  }
  barrier();
  for (int digit = lane; digit < 256; digit += imp_group_size) {
    uint sum = 0u;
    for (int k = 0; k < kCopies; ++k) sum += counts[digit * kCopies + (k + lane) % kCopies];
    imp_store_0(group * 256 + digit, int(sum));
  }
}
