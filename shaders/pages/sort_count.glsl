// Counts the digits of four bits at SHIFT in each chunk of a line: output [line, digit, chunk]. A chunk is
// CHUNK elements; a line has CHUNKS chunks. Integer sums: the order of the atomic additions does not matter.

const int kCopies = 32;  // neighbours count in different banks
shared uint counts[16 * kCopies];

void imp_page(int group) {
  int lane = int(gl_LocalInvocationID.x);
  int line = group / CHUNKS, chunk = group % CHUNKS;
  for (int k = lane; k < 16 * kCopies; k += imp_group_size) counts[k] = 0u;
  barrier();
  int end = min(LENGTH, (chunk + 1) * CHUNK);
  for (int i = chunk * CHUNK + lane; i < end; i += imp_group_size) {
    uint digit = (sort_key(imp_load_0(line * LENGTH + i)) >> SHIFT) & 15u;
    atomicAdd(counts[int(digit) * kCopies + lane % kCopies], 1u);
  }
  barrier();
  if (lane < 16) {
    uint sum = 0u;
    for (int k = 0; k < kCopies; ++k) sum += counts[lane * kCopies + (k + lane) % kCopies];
    imp_store_0((line * 16 + lane) * CHUNKS + chunk, int(sum));
  }
}
