// Rows x [ROWS, DEPTH] of whole numbers, minus SHIFT of 8 bits, times weights of 8 bits [COLUMNS, PADDED], in
// int32. A set of LANES invocations takes OWN columns. Each invocation has 16 weights of every column at a
// time, a slice, and multiplies them with the packed numbers that they meet. STAGE slices of x lie in shared
// memory.

const int kSlices = PADDED / 16;
const int kSets = imp_group_size / LANES, kChunks = (ROWS + BATCH - 1) / BATCH;
const int kPieces = LANES / OWN;  // invocations that add up one sum

shared uvec4 staged[BATCH * STAGE];
shared int sums[imp_group_size * OWN], pieces[imp_group_size];

uint packed_numbers(int row, int term) {
  ivec4 numbers = ivec4(0);
  [[unroll]] for (int j = 0; j < 4; ++j) {
    if (row < ROWS && term + j < DEPTH) numbers[j] = int(imp_load_0(row * DEPTH + term + j)) - SHIFT;
  }
  return uint(imp_pack_8(numbers));
}

int dot_of(uvec4 a, uvec4 b) {
  return imp_dot(a.x, b.x) + imp_dot(a.y, b.y) + imp_dot(a.z, b.z) + imp_dot(a.w, b.w);
}

void imp_page(int group) {
  int lane = int(gl_LocalInvocationID.x), row = group % kChunks * BATCH;
  int first = group / kChunks * kSets * OWN, column = first + lane / LANES * OWN;
  int found[BATCH * OWN];
  [[unroll]] for (int i = 0; i < BATCH * OWN; ++i) found[i] = 0;

  for (int from = 0; from < kSlices; from += STAGE) {
    if (from > 0) barrier();
    for (int i = lane; i < BATCH * STAGE * 4; i += imp_group_size) {
      int slice = i / 4 % STAGE;
      staged[i / 4][i & 3] = packed_numbers(row + i / (4 * STAGE), ((from + slice) * 4 + (i & 3)) * 4);
    }
    barrier();
    int end = min(from + STAGE, kSlices);
    for (int slice = from + lane % LANES; slice < end; slice += LANES) {
      uvec4 words[OWN];
      [[unroll]] for (int c = 0; c < OWN; ++c) {
        words[c] = imp_quad_1(min(column + c, COLUMNS - 1) * kSlices + slice);
      }
      [[unroll]] for (int r = 0; r < BATCH; ++r) {
        uvec4 x = staged[r * STAGE + slice - from];
        [[unroll]] for (int c = 0; c < OWN; ++c) found[r * OWN + c] += dot_of(x, words[c]);
      }
    }
  }

  STORE_SET_SUMS(int)
}
