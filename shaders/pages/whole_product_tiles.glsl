// Rows of numbers of 8 bits times weights of 8 bits [COLUMNS, PADDED], in int32. A workgroup computes a tile
// of TILE x TILE sums. Its 256 invocations load kStep times 16 terms of each row and column at a time; each
// has kPer x kPer sums. If PLACES is 0, x is [ROWS, PADDED]. Otherwise a row is a place of a convolution's
// output, and its terms are those of its window: x is [images, HEIGHT, WIDTH, CHANNELS], the terms [KERNEL_Y,
// KERNEL_X, CHANNELS]. Places outside the image hold imp_load_2(0).

const int kQuads = PADDED / 16, kStep = 4, kPer = TILE / 16;
const int kLoads = max(1, kStep* TILE / imp_group_size);  // of x and weights, per invocation
const int kLine = TILE + 1;                               // neighbours of a load lie in other banks
const int kAcross = (COLUMNS + TILE - 1) / TILE;

shared uvec4 left[kStep * kLine], right[kStep * kLine];

uvec4 numbers_of(int row, int quad) {
#if PLACES == 0
  return imp_quad_0(row * kQuads + quad);
#else
  const int kWide = CHANNELS / 16;
  int tap = quad / kWide, place = row % PLACES;
  int y = place / OUT_WIDTH * STRIDE_Y - PAD_Y + tap / KERNEL_X * DILATION_Y;
  int x = place % OUT_WIDTH * STRIDE_X - PAD_X + tap % KERNEL_X * DILATION_X;
  if (y < 0 || y >= HEIGHT || x < 0 || x >= WIDTH) return uvec4(uint(imp_load_2(0) & 255) * 0x01010101u);
  return imp_quad_0(((row / PLACES * HEIGHT + y) * WIDTH + x) * kWide + quad % kWide);
#endif
}

int dot_of(uvec4 a, uvec4 b) {
  return imp_dot(a.x, b.x) + imp_dot(a.y, b.y) + imp_dot(a.z, b.z) + imp_dot(a.w, b.w);
}

void imp_page(int group) {
  int lane = int(gl_LocalInvocationID.x);
  int row_0 = group / kAcross * TILE, column_0 = group % kAcross * TILE;
#if PLACES == 0
  int row = lane / 16, column = lane % 16;  // neighbours in memory
#else
  int row = lane % 16, column = lane / 16;
#endif
  int found[kPer * kPer];
  [[unroll]] for (int i = 0; i < kPer * kPer; ++i) found[i] = 0;
  uvec4 next_left[kLoads], next_right[kLoads];

  for (int from = -kStep; from < kQuads; from += kStep) {
    int quad = from + kStep + lane % kStep;  // of the next turn
    [[unroll]] for (int n = 0; n < kLoads; ++n) {
      int line = (n * imp_group_size + lane) / kStep;
      next_left[n] = next_right[n] = uvec4(0);
      if (quad < kQuads && line < TILE && row_0 + line < ROWS) next_left[n] = numbers_of(row_0 + line, quad);
      if (quad < kQuads && line < TILE && column_0 + line < COLUMNS)
        next_right[n] = imp_quad_1((column_0 + line) * kQuads + quad);
    }
    if (from >= 0) {
      [[unroll]] for (int q = 0; q < kStep; ++q) {
        uvec4 x[kPer], w[kPer];
        [[unroll]] for (int i = 0; i < kPer; ++i) x[i] = left[q * kLine + row + 16 * i];
        [[unroll]] for (int j = 0; j < kPer; ++j) w[j] = right[q * kLine + column + 16 * j];
        [[unroll]] for (int i = 0; i < kPer; ++i) {
          [[unroll]] for (int j = 0; j < kPer; ++j) found[i * kPer + j] += dot_of(x[i], w[j]);
        }
      }
      barrier();
    }
    [[unroll]] for (int n = 0; n < kLoads; ++n) {
      int line = (n * imp_group_size + lane) / kStep;
      if (line < TILE) {
        left[lane % kStep * kLine + line] = next_left[n];
        right[lane % kStep * kLine + line] = next_right[n];
      }
    }
    barrier();
  }

  [[unroll]] for (int i = 0; i < kPer; ++i) {
    [[unroll]] for (int j = 0; j < kPer; ++j) {
      int r = row_0 + row + 16 * i, c = column_0 + column + 16 * j;
      if (r < ROWS && c < COLUMNS) {
#if PLACES == 0
        imp_store_0(r * COLUMNS + c, found[i * kPer + j]);
#else
        imp_store_0((r / PLACES * COLUMNS + c) * PLACES + r % PLACES, found[i * kPer + j]);
#endif
      }
    }
  }
}
