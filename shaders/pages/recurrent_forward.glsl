// The steps of a recurrent layer: a workgroup takes ROWS sequences of one network through all of them. GATES
// 3: a GRU; 4: an LSTM. Its invocations are LANES x SLICES: each multiplies a slice of the hidden state by
// the weights of RUN units, of which it keeps the first KEPT of its slice in registers. Outputs: the states
// after each step, and what the derivative needs of the gates.

const int kSlice = PADDED / SLICES;  // terms per invocation, a multiple of 4
const int kUnits = LANES * RUN;      // at least HIDDEN
const int kThreads = LANES * SLICES;
const int kOwned = (ROWS * kUnits + kThreads - 1) / kThreads;  // units whose gates an invocation computes
const int kBlocks = (LINES + ROWS - 1) / ROWS;

shared vec4 hidden[ROWS * PADDED / 4];
shared float parts[SLICES * ROWS * GATES * kUnits];

float weight(int brain, int k, int gate, int unit) {
  return (PADDED == HIDDEN || k < HIDDEN) && (kUnits == HIDDEN || unit < HIDDEN)
             ? imp_load_1((brain * HIDDEN + k) * (GATES * HIDDEN) + gate * HIDDEN + unit)
             : 0.0;
}

float sigmoid(float x) { return 1.0 / (1.0 + exp(-x)); }

int step_of(int turn) { return REVERSE == 1 ? STEPS - 1 - turn : turn; }

// The state that a sequence has before a step at which it begins.
float first_state(int sequence, int step, int at) {
  return imp_load_3((RESTARTS == 1 ? sequence * STEPS + step : sequence) * STATE + at);
}

// A step reads these from device memory. They are loaded two steps ahead where registers are free (AHEAD),
// since the products of one hide less than a latency; whatever is computed from it would wait.
struct Read {
  float given[GATES];
  float begins;  // above 0.5
};

Read read_step(int sequence, int turn, int unit) {
  Read one;
  int at = sequence * STEPS + step_of(min(turn, STEPS - 1));
  [[unroll]] for (int g = 0; g < GATES; ++g) one.given[g] = imp_load_0((at * GATES + g) * HIDDEN + unit);
#if RESTARTS == 1
  one.begins = imp_load_4(at);
#else
  one.begins = 0.0;
#endif
  return one;
}

void imp_page(int group) {
  int thread = int(gl_LocalInvocationID.x), lane = thread % LANES, slice = thread / LANES;
  int brain = group / kBlocks, first_line = group % kBlocks * ROWS;
#if KEPT > 0
  float kept[RUN * GATES * KEPT];
  [[unroll]] for (int u = 0; u < RUN; ++u) [[unroll]] for (int g = 0; g < GATES; ++g)
      [[unroll]] for (int k = 0; k < KEPT; ++k) kept[(u * GATES + g) * KEPT + k] =
          weight(brain, slice * kSlice + k, g, u * LANES + lane);
#endif
  for (int k = thread; k < ROWS * PADDED / 4; k += kThreads) hidden[k] = vec4(0.0);
  barrier();

  float own_hidden[kOwned], own_cell[kOwned], bias[kOwned * GATES];
  Read now[kOwned], next[kOwned];
  [[unroll]] for (int n = 0; n < kOwned; ++n) {
    int pair = thread + n * kThreads, row = pair / kUnits, unit = pair % kUnits, line = first_line + row;
    own_hidden[n] = own_cell[n] = 0.0;
    if (row >= ROWS || line >= LINES || unit >= HIDDEN) continue;
    int sequence = brain * LINES + line;
    now[n] = read_step(sequence, 0, unit);
    next[n] = read_step(sequence, 1, unit);
    own_hidden[n] = first_state(sequence, step_of(0), unit);
#if GATES == 4
    own_cell[n] = first_state(sequence, step_of(0), HIDDEN + unit);
#endif
    [[unroll]] for (int g = 0; g < GATES; ++g) bias[n * GATES + g] =
        imp_load_2((brain * GATES + g) * HIDDEN + unit);
    int to = row * PADDED + unit;
    hidden[to / 4][to % 4] = own_hidden[n];
  }
  barrier();

  for (int turn = 0; turn < STEPS; ++turn) {
    int step = step_of(turn);
    Read then[kOwned];
    [[unroll]] for (int n = 0; n < kOwned; ++n) {
      int pair = thread + n * kThreads, row = pair / kUnits, unit = pair % kUnits, line = first_line + row;
      if (row >= ROWS || line >= LINES || unit >= HIDDEN) continue;
#if AHEAD == 1
      then[n] = read_step(brain * LINES + line, turn + 2, unit);
#else
      now[n] = read_step(brain * LINES + line, turn, unit);
      next[n].begins = read_step(brain * LINES + line, turn + 1, unit).begins;
#endif
    }

    float sums[RUN * GATES * ROWS];
    [[unroll]] for (int k = 0; k < RUN * GATES * ROWS; ++k) sums[k] = 0.0;
    vec4 h[ROWS];
#if KEPT > 0
    [[unroll]] for (int k = 0; k < KEPT; k += 4) {
      [[unroll]] for (int r = 0; r < ROWS; ++r) h[r] = hidden[(r * PADDED + slice * kSlice + k) / 4];
      [[unroll]] for (int u = 0; u < RUN * GATES; ++u) {
        vec4 w =
            vec4(kept[u * KEPT + k], kept[u * KEPT + k + 1], kept[u * KEPT + k + 2], kept[u * KEPT + k + 3]);
        [[unroll]] for (int r = 0; r < ROWS; ++r) sums[u * ROWS + r] += dot(w, h[r]);
      }
    }
#endif
    for (int k = KEPT; k < kSlice; k += 4) {
      int first = slice * kSlice + k;
      [[unroll]] for (int r = 0; r < ROWS; ++r) h[r] = hidden[(r * PADDED + first) / 4];
      [[unroll]] for (int u = 0; u < RUN * GATES; ++u) {
        int unit = u / GATES * LANES + lane, g = u % GATES;
        vec4 w = vec4(weight(brain, first, g, unit), weight(brain, first + 1, g, unit),
                      weight(brain, first + 2, g, unit), weight(brain, first + 3, g, unit));
        [[unroll]] for (int r = 0; r < ROWS; ++r) sums[u * ROWS + r] += dot(w, h[r]);
      }
    }
    [[unroll]] for (int u = 0; u < RUN * GATES; ++u) [[unroll]] for (int r = 0; r < ROWS; ++r)
        parts[((slice * ROWS + r) * GATES + u % GATES) * kUnits + u / GATES * LANES + lane] =
            sums[u * ROWS + r];
    barrier();

    [[unroll]] for (int n = 0; n < kOwned; ++n) {
      int pair = thread + n * kThreads, row = pair / kUnits, unit = pair % kUnits, line = first_line + row;
      if (row >= ROWS || line >= LINES || unit >= HIDDEN) continue;
      int sequence = brain * LINES + line, at = sequence * STEPS + step;
      float a[GATES];
      [[unroll]] for (int g = 0; g < GATES; ++g) {
        a[g] = bias[n * GATES + g];
        [[unroll]] for (int s = 0; s < SLICES; ++s) a[g] +=
            parts[((s * ROWS + row) * GATES + g) * kUnits + unit];
      }
#if GATES == 3
      float reset = sigmoid(now[n].given[0] + a[0]), update = sigmoid(now[n].given[1] + a[1]);
      float fresh = imp_tanh(now[n].given[2] + reset * a[2]);
      own_hidden[n] = fresh + update * (own_hidden[n] - fresh);
      float saved[4] = float[4](reset, update, fresh, a[2]);
#else
      float saved[4] = float[4](sigmoid(now[n].given[0] + a[0]), sigmoid(now[n].given[1] + a[1]),
                                imp_tanh(now[n].given[2] + a[2]), sigmoid(now[n].given[3] + a[3]));
      own_cell[n] = saved[1] * own_cell[n] + saved[0] * saved[2];
      own_hidden[n] = saved[3] * imp_tanh(own_cell[n]);
      imp_store_0(at * STATE + HIDDEN + unit, own_cell[n]);
#endif
      imp_store_0(at * STATE + unit, own_hidden[n]);
      [[unroll]] for (int g = 0; g < 4; ++g) imp_store_1((at * 4 + g) * HIDDEN + unit, saved[g]);
      if (next[n].begins > 0.5 && turn + 1 < STEPS) {
        own_hidden[n] = first_state(sequence, step_of(turn + 1), unit);
#if GATES == 4
        own_cell[n] = first_state(sequence, step_of(turn + 1), HIDDEN + unit);
#endif
      }
      int to = row * PADDED + unit;
      hidden[to / 4][to % 4] = own_hidden[n];
#if AHEAD == 1
      now[n] = next[n];
      next[n] = then[n];
#endif
    }
    barrier();
  }
}
