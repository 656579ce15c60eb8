// Rows x [ROWS, DEPTH] times weights of BITS bits: values [COLUMNS, DEPTH] and scales
// [COLUMNS, DEPTH / BLOCK]. A set of LANES invocations takes OWN columns. Each invocation has 16 bytes of
// weights of every column, a slice, and keeps the elements of x that they meet in registers. Sums are added
// in one order.

const int kSlice = BITS == 8 ? 16 : 32;  // weights
const int kVectors = kSlice / 4;         // of x that a slice meets
const int kSlices = DEPTH / kSlice, kTurns = (kSlices + LANES - 1) / LANES;
const int kPerScale = min(BLOCK, kSlice), kScales = kSlice / kPerScale;  // of a slice
const int kSets = imp_group_size / LANES, kChunks = (ROWS + BATCH - 1) / BATCH;
const int kPieces = LANES / OWN;  // invocations that add up one sum

shared vec4 slices[BATCH * LANES * kVectors];  // of x, in this turn
shared float sums[imp_group_size * OWN], pieces[imp_group_size];

// Spreads the vectors that neighbouring invocations load together over the banks of shared memory.
int spread(int vector) { return vector ^ ((vector >> 3) & (kVectors - 1)); }

// Four weights of a word. Their bits become the low ones of the float 2^23, from which they lie 4 or 8 bits
// apart: each weight is 16 or 256 times the one before. x is divided by the same powers.
vec4 weights_of(uint word, int part) {
#if BITS == 4
  uvec4 bits = uvec4(word >> (16 * part)) & uvec4(0xfu, 0xf0u, 0xf00u, 0xf000u);
  return uintBitsToFloat(bits | 0x4b000000u) - vec4(8388616.0, 8388736.0, 8390656.0, 8421376.0);
#else
  uint low = word ^ 0x80808080u, high = low >> 16;
  uvec4 bits = uvec4(low, low, high, high) & uvec4(0xffu, 0xff00u, 0xffu, 0xff00u);
  return uintBitsToFloat(bits | 0x4b000000u) - vec4(8388736.0, 8421376.0, 8388736.0, 8421376.0);
#endif
}

float unscaled(float x, int element) {
  int power = BITS == 4 ? 4 * (element & 3) : 8 * (element & 1);
  return x * intBitsToFloat((127 - power) << 23);
}

// TOGETHER loads wait at the same time.
void load_slices(int turn, int row, int lane) {
  for (int n = 0; n < BATCH * LANES * kSlice / imp_group_size; n += TOGETHER) {
    float x[TOGETHER];
    [[unroll]] for (int j = 0; j < TOGETHER; ++j) {
      int i = (n + j) * imp_group_size + lane, element = i % (LANES * kSlice);
      int own_row = row + i / (LANES * kSlice), term = turn * LANES * kSlice + element;
      x[j] = 0.0;
      if (term < DEPTH && own_row < ROWS) x[j] = imp_load_0(own_row * DEPTH + term);
    }
    [[unroll]] for (int j = 0; j < TOGETHER; ++j) {
      int i = (n + j) * imp_group_size + lane, element = i % (LANES * kSlice);
      int vector = i / (LANES * kSlice) * LANES * kVectors + spread(element / 4);
      slices[vector][element & 3] = unscaled(x[j], element);
    }
  }
}

void imp_page(int group) {
  int lane = int(gl_LocalInvocationID.x), own = lane % LANES, row = group % kChunks * BATCH;
  int first = group / kChunks * kSets * OWN, column = first + lane / LANES * OWN;
  float found[BATCH * OWN];
  [[unroll]] for (int i = 0; i < BATCH * OWN; ++i) found[i] = 0.0;

  for (int turn = 0; turn < kTurns; ++turn) {
    int slice = min(turn * LANES + own, kSlices - 1);  // those after the last meet zeros
    uvec4 words[OWN];
    float scales[OWN * kScales];
    [[unroll]] for (int c = 0; c < OWN; ++c) {
      int own_column = min(column + c, COLUMNS - 1);
      words[c] = imp_quad_1(own_column * kSlices + slice);
      [[unroll]] for (int s = 0; s < kScales; ++s) {
        int block = (slice * kSlice + s * kPerScale) / BLOCK;
        scales[c * kScales + s] = imp_load_2(own_column * (DEPTH / BLOCK) + block);
      }
    }
    if (turn > 0) barrier();
    load_slices(turn, row, lane);
    barrier();
    [[unroll]] for (int r = 0; r < BATCH; ++r) {
      vec4 x[kVectors];
      [[unroll]] for (int v = 0; v < kVectors; ++v) {
        x[v] = slices[r * LANES * kVectors + spread(own * kVectors + v)];
      }
      [[unroll]] for (int c = 0; c < OWN; ++c) {
        [[unroll]] for (int s = 0; s < kScales; ++s) {
          vec4 sum = vec4(0.0);
          [[unroll]] for (int v = s * kPerScale / 4; v < (s + 1) * kPerScale / 4; ++v) {
            sum += weights_of(words[c][v * 4 / kVectors], v % (kVectors / 4)) * x[v];
          }
          found[r * OWN + c] += scales[c * kScales + s] * (sum.x + sum.y + sum.z + sum.w);
        }
      }
    }
  }

  STORE_SET_SUMS(float)
}
