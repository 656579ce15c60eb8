// A convolution of 3 x 3 with stride 1 by 16 instead of 36 multiply-adds per channel of a patch
// (graph/schedule/winograd.h). A workgroup computes TILE_ROWS channels of TILE_PATCHES patches, each of 2 x 2
// places, TILE_DEPTH channels of the image at a time. Its invocations transform patches and kernels into
// shared memory while the loads of the next turn are in flight. 16 groups of invocations have one of the 16
// values each, and the sums of 8 x 8 products of it in registers. At the end sums meet in shared memory, some
// of them at a time, where invocations transform those of two neighbouring patches back.
//
// The kernel around this page defines, for each product:
//   PRODUCT
//     the function's name
//   ROW_TILES, CHANNELS, PATCHES_PER_ROW, PATCHES_PER_IMAGE, PATCHES
//     tiles of channels, channels of the image, and patches
//   KERNEL(row, channel, loaded), PATCH(patch, channel, loaded)
//     load the 9 elements of a kernel and the 16 of a patch; zero outside
//   STORE(image, row, y, x, found)
//     stores four neighbouring outputs of a row of an image, except those outside
// and once per kernel the tile's extents, INVOCATIONS (256 or 512), and the shared vec4 array tile_memory.

#define VALUES 16
#define PATCH_FOURS (TILE_PATCHES / 4)
#define ROW_FOURS (TILE_ROWS / 4)
// Invocations with the same value.
#define MEMBERS (INVOCATIONS / VALUES)
// The first invocations load patches, the last ones kernels.
#define PATCH_LANES (TILE_PATCHES * TILE_DEPTH)
#define KERNEL_LANES (TILE_ROWS * TILE_DEPTH)
#define HAS_PATCH (PATCH_LANES == INVOCATIONS || lane < PATCH_LANES)
#define HAS_KERNEL (KERNEL_LANES == INVOCATIONS || lane >= INVOCATIONS - KERNEL_LANES)
#define PATCH_AT(term, value, four) (((term)*VALUES + (value)) * PATCH_FOURS + (four))
// Kernels of neighbouring channels are written together, to different banks.
#define KERNEL_AT(term, value, four)                                           \
  (TILE_DEPTH * VALUES * PATCH_FOURS + ((term)*VALUES + (value)) * ROW_FOURS + \
   ((four) ^ ((term) % ROW_FOURS)))
// Sums of how many rows and patches meet at a time. 512 invocations have two turns for each half of the rows.
#define MEET_ROWS (TILE_ROWS / 2)
#define MEET_TURNS (INVOCATIONS / 256)
#define MEET_PATCHES (TILE_PATCHES / MEET_TURNS)
#define MEET_AT(value, row, four) (((value)*MEET_ROWS + (row)) * (MEET_PATCHES / 4) + (four))

#ifndef HAS_PATCH_VALUES
#define HAS_PATCH_VALUES
// The values of four elements of a row or column of a patch: 0 - 2, 1 + 2, 2 - 1, 1 - 3.
vec4 patch_values(vec4 seen) {
  return vec4(seen.x - seen.z, seen.y + seen.z, seen.z - seen.y, seen.y - seen.w);
}

// The values of three elements of a row or column of a kernel.
vec4 kernel_values(vec3 seen) {
  float outer = 0.5 * (seen.x + seen.z), inner = 0.5 * seen.y;
  return vec4(seen.x, outer + inner, outer - inner, seen.z);
}
#endif

void PRODUCT(int group) {
  int lane = int(gl_LocalInvocationID.x), kernel_lane = lane - (INVOCATIONS - KERNEL_LANES);
  int row_0 = group % ROW_TILES * TILE_ROWS, patch_0 = group / ROW_TILES * TILE_PATCHES;
  int patch_own = lane % TILE_PATCHES, patch_term = lane / TILE_PATCHES;
  int kernel_own = kernel_lane / TILE_DEPTH, kernel_term = kernel_lane % TILE_DEPTH;
  int own_value = lane / MEMBERS, member = lane % MEMBERS;
  int patch_four = member % (PATCH_FOURS / 2), row_four = member / (PATCH_FOURS / 2);

  vec4 sums[8][2];
  [[unroll]] for (int r = 0; r < 8; r++) [[unroll]] for (int c = 0; c < 2; c++) sums[r][c] = vec4(0.0);
  float patch_loaded[16];
  float kernel_loaded[9];

#define LOAD(term_0)                                                             \
  if (HAS_PATCH) PATCH(patch_0 + patch_own, (term_0) + patch_term, patch_loaded) \
  if (HAS_KERNEL) KERNEL(row_0 + kernel_own, (term_0) + kernel_term, kernel_loaded)
  LOAD(0)
  // No turn count that a compiler could unroll by: this keeps the loads ahead of the products.
  for (int term_0 = TILE_DEPTH;; term_0 += TILE_DEPTH) {
    if (HAS_PATCH) {
      vec4 seen[4];
      [[unroll]] for (int j = 0; j < 4; j++) seen[j] =
          patch_values(vec4(patch_loaded[j], patch_loaded[4 + j], patch_loaded[8 + j], patch_loaded[12 + j]));
      [[unroll]] for (int i = 0; i < 4; i++) {
        vec4 found = patch_values(vec4(seen[0][i], seen[1][i], seen[2][i], seen[3][i]));
        [[unroll]] for (int j = 0; j < 4; j++)
            tile_memory[PATCH_AT(patch_term, 4 * i + j, patch_own / 4)][patch_own % 4] = found[j];
      }
    }
    if (HAS_KERNEL) {
      vec4 seen[3];
      [[unroll]] for (int j = 0; j < 3; j++) seen[j] =
          kernel_values(vec3(kernel_loaded[j], kernel_loaded[3 + j], kernel_loaded[6 + j]));
      [[unroll]] for (int i = 0; i < 4; i++) {
        vec4 found = kernel_values(vec3(seen[0][i], seen[1][i], seen[2][i]));
        [[unroll]] for (int j = 0; j < 4; j++)
            tile_memory[KERNEL_AT(kernel_term, 4 * i + j, kernel_own / 4)][kernel_own % 4] = found[j];
      }
    }
    barrier();
    if (term_0 < CHANNELS) {
      LOAD(term_0)
    }
    [[unroll]] for (int term = 0; term < TILE_DEPTH; term++) {
      vec4 left[2], right[2];
      [[unroll]] for (int r = 0; r < 2; r++) left[r] =
          tile_memory[KERNEL_AT(term, own_value, r * (ROW_FOURS / 2) + row_four)];
      [[unroll]] for (int c = 0; c < 2; c++) right[c] =
          tile_memory[PATCH_AT(term, own_value, c * (PATCH_FOURS / 2) + patch_four)];
      [[unroll]] for (int r = 0; r < 8; r++) [[unroll]] for (int c = 0; c < 2; c++) sums[r][c] +=
          left[r / 4][r % 4] * right[c];
    }
    if (term_0 >= CHANNELS) break;
    barrier();
  }

  int pair = lane % (MEET_PATCHES / 2), row = lane / (MEET_PATCHES / 2);
  [[unroll]] for (int meet = 0; meet < 2 * MEET_TURNS; meet++) {
    int half_rows = meet / MEET_TURNS, turn = meet % MEET_TURNS;
    barrier();
    [[unroll]] for (int r = 0; r < 4; r++) [[unroll]] for (int c = 0; c < 2 / MEET_TURNS; c++)
        tile_memory[MEET_AT(own_value, row_four * 4 + r, c * (PATCH_FOURS / 2) + patch_four)] =
            sums[half_rows * 4 + r][turn + c];
    barrier();
    int first = patch_0 + turn * MEET_PATCHES + 2 * pair;
    if (first < PATCHES && (MEET_TURNS == 1 || row < MEET_ROWS)) {
      vec2 upper[4], lower[4];
      [[unroll]] for (int j = 0; j < 4; j++) {
        vec2 seen[4];
        [[unroll]] for (int i = 0; i < 4; i++) {
          vec4 found = tile_memory[MEET_AT(4 * i + j, row, pair / 2)];
          seen[i] = pair % 2 == 0 ? found.xy : found.zw;
        }
        upper[j] = seen[0] + seen[1] + seen[2];
        lower[j] = seen[1] - seen[2] - seen[3];
      }
      int image = first / PATCHES_PER_IMAGE, in_image = first % PATCHES_PER_IMAGE;
      int y = in_image / PATCHES_PER_ROW * 2, x = in_image % PATCHES_PER_ROW * 2;
      vec2 even = upper[0] + upper[1] + upper[2], odd = upper[1] - upper[2] - upper[3];
      STORE(image, row_0 + half_rows * MEET_ROWS + row, y, x, vec4(even.x, odd.x, even.y, odd.y));
      even = lower[0] + lower[1] + lower[2];
      odd = lower[1] - lower[2] - lower[3];
      STORE(image, row_0 + half_rows * MEET_ROWS + row, y + 1, x, vec4(even.x, odd.x, even.y, odd.y));
    }
  }
}

#undef VALUES
#undef PATCH_FOURS
#undef ROW_FOURS
#undef MEMBERS
#undef PATCH_LANES
#undef KERNEL_LANES
#undef HAS_PATCH
#undef HAS_KERNEL
#undef PATCH_AT
#undef KERNEL_AT
#undef MEET_ROWS
#undef MEET_TURNS
#undef MEET_PATCHES
#undef MEET_AT
#undef LOAD
