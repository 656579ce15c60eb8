// The derivative of recurrent_forward: a workgroup takes ROWS sequences of one network from the last step to
// the first. Its invocations are LANES x SLICES: each multiplies a slice of the gates' gradients by the
// weights of RUN units, of which it keeps the first KEPT of its slice in registers. Inputs: the gradients of
// the states after each step; the weights transposed, [GATES HIDDEN, HIDDEN]; the gates; the states; the
// first states; where sequences begin. Outputs: the gradients of the gates' recurrent part; those of the
// projected inputs, where a GRU's differ; of the first states; the hidden states before each step.

const int kTerms = GATES * HIDDEN;
const int kSlice = PADDED / SLICES;  // terms per invocation, a multiple of 4
const int kUnits = LANES * RUN;      // at least HIDDEN
const int kThreads = LANES * SLICES;
const int kOwned = (ROWS * kUnits + kThreads - 1) / kThreads;  // units whose gates an invocation computes
const int kBlocks = (LINES + ROWS - 1) / ROWS;

#if GATES == 3
#define store_first_gradient imp_store_2
#define store_hidden_before imp_store_3
#else
#define store_first_gradient imp_store_1
#define store_hidden_before imp_store_2
#endif

shared vec4 gradients[ROWS * PADDED / 4];
shared float parts[SLICES * ROWS * kUnits];

float weight(int brain, int k, int unit) {
  return (PADDED == kTerms || k < kTerms) && (kUnits == HIDDEN || unit < HIDDEN)
             ? imp_load_1((brain * kTerms + k) * HIDDEN + unit)
             : 0.0;
}

int step_of(int turn) { return REVERSE == 1 ? STEPS - 1 - turn : turn; }

// Values of one unit that a step reads. Loaded two steps ahead where registers are free (AHEAD), else one,
// since the products of one hide less than a latency; whatever is computed from them would wait.
struct Read {
  float gates[4];
  float gradient, hidden_before, first_hidden;         // the states before the step, and if it is a first
  float cell_gradient, cell, cell_before, first_cell;  // of an LSTM
  float begins;                                        // above 0.5
};

Read read_step(int sequence, int turn, int unit) {
  Read one;
  turn = max(turn, 0);
  int at = sequence * STEPS + step_of(turn);
  [[unroll]] for (int g = 0; g < 4; ++g) one.gates[g] = imp_load_2((at * 4 + g) * HIDDEN + unit);
  one.gradient = imp_load_0(at * STATE + unit);
#if RESTARTS == 1
  one.begins = imp_load_5(at);
  int first = at * STATE;
#else
  one.begins = 0.0;
  int first = sequence * STATE;
#endif
  int before = (sequence * STEPS + step_of(max(turn - 1, 0))) * STATE;
  one.first_hidden = imp_load_4(first + unit);
  one.hidden_before = imp_load_3(before + unit);
#if GATES == 4
  one.cell_gradient = imp_load_0(at * STATE + HIDDEN + unit);
  one.cell = imp_load_3(at * STATE + HIDDEN + unit);
  one.first_cell = imp_load_4(first + HIDDEN + unit);
  one.cell_before = imp_load_3(before + HIDDEN + unit);
#endif
  return one;
}

void imp_page(int group) {
  int thread = int(gl_LocalInvocationID.x), lane = thread % LANES, slice = thread / LANES;
  int brain = group / kBlocks, first_line = group % kBlocks * ROWS;
#if KEPT > 0
  float kept[RUN * KEPT];
  [[unroll]] for (int u = 0; u < RUN; ++u) [[unroll]] for (int k = 0; k < KEPT; ++k) kept[u * KEPT + k] =
      weight(brain, slice * kSlice + k, u * LANES + lane);
#endif
  for (int k = thread; k < ROWS * PADDED / 4; k += kThreads) gradients[k] = vec4(0.0);
  barrier();

  float carried[kOwned], carried_cell[kOwned];  // the gradient of the state after the step
  Read now[kOwned], next[kOwned];
  [[unroll]] for (int n = 0; n < kOwned; ++n) {
    int pair = thread + n * kThreads, row = pair / kUnits, unit = pair % kUnits, line = first_line + row;
    carried[n] = carried_cell[n] = 0.0;
    if (row >= ROWS || line >= LINES || unit >= HIDDEN) continue;
    now[n] = read_step(brain * LINES + line, STEPS - 1, unit);
    next[n] = read_step(brain * LINES + line, STEPS - 2, unit);
  }

  for (int turn = STEPS - 1; turn >= 0; --turn) {
    int step = step_of(turn);
    bool is_first[kOwned];
    [[unroll]] for (int n = 0; n < kOwned; ++n) {
      int pair = thread + n * kThreads, row = pair / kUnits, unit = pair % kUnits, line = first_line + row;
      if (row >= ROWS || line >= LINES || unit >= HIDDEN) continue;
      int at = (brain * LINES + line) * STEPS + step;
      Read one = now[n];
#if AHEAD == 1
      now[n] = next[n];
      next[n] = read_step(brain * LINES + line, turn - 2, unit);
#endif
      is_first[n] = turn == 0 || one.begins > 0.5;
      float before = is_first[n] ? one.first_hidden : one.hidden_before;
      float gradient = one.gradient + carried[n];
      float of_gates[GATES];
#if GATES == 3
      float reset = one.gates[0], update = one.gates[1], fresh = one.gates[2], recurrent = one.gates[3];
      float of_fresh = gradient * (1.0 - update) * (1.0 - fresh * fresh);
      of_gates[0] = of_fresh * recurrent * reset * (1.0 - reset);
      of_gates[1] = gradient * (before - fresh) * update * (1.0 - update);
      of_gates[2] = of_fresh * reset;
      carried[n] = gradient * update;
      [[unroll]] for (int g = 0; g < GATES; ++g)
          imp_store_1((at * GATES + g) * HIDDEN + unit, g == 2 ? of_fresh : of_gates[g]);
#else
      float out_cell = imp_tanh(one.cell), out_gate = one.gates[3];
      float of_cell = one.cell_gradient + carried_cell[n] + gradient * out_gate * (1.0 - out_cell * out_cell);
      of_gates[0] = of_cell * one.gates[2] * one.gates[0] * (1.0 - one.gates[0]);
      of_gates[1] =
          of_cell * (is_first[n] ? one.first_cell : one.cell_before) * one.gates[1] * (1.0 - one.gates[1]);
      of_gates[2] = of_cell * one.gates[0] * (1.0 - one.gates[2] * one.gates[2]);
      of_gates[3] = gradient * out_cell * out_gate * (1.0 - out_gate);
      carried[n] = 0.0;
      carried_cell[n] = of_cell * one.gates[1];
#endif
      [[unroll]] for (int g = 0; g < GATES; ++g) {
        imp_store_0((at * GATES + g) * HIDDEN + unit, of_gates[g]);
        int to = row * PADDED + g * HIDDEN + unit;
        gradients[to / 4][to % 4] = of_gates[g];
      }
      store_hidden_before(at * HIDDEN + unit, before);
#if AHEAD == 0
      now[n] = read_step(brain * LINES + line, turn - 1, unit);
#endif
    }
    barrier();

    float sums[RUN * ROWS];
    [[unroll]] for (int k = 0; k < RUN * ROWS; ++k) sums[k] = 0.0;
    vec4 d[ROWS];
#if KEPT > 0
    [[unroll]] for (int k = 0; k < KEPT; k += 4) {
      [[unroll]] for (int r = 0; r < ROWS; ++r) d[r] = gradients[(r * PADDED + slice * kSlice + k) / 4];
      [[unroll]] for (int u = 0; u < RUN; ++u) {
        vec4 w =
            vec4(kept[u * KEPT + k], kept[u * KEPT + k + 1], kept[u * KEPT + k + 2], kept[u * KEPT + k + 3]);
        [[unroll]] for (int r = 0; r < ROWS; ++r) sums[u * ROWS + r] += dot(w, d[r]);
      }
    }
#endif
    for (int k = KEPT; k < kSlice; k += 4) {
      int first = slice * kSlice + k;
      [[unroll]] for (int r = 0; r < ROWS; ++r) d[r] = gradients[(r * PADDED + first) / 4];
      [[unroll]] for (int u = 0; u < RUN; ++u) {
        int unit = u * LANES + lane;
        vec4 w = vec4(weight(brain, first, unit), weight(brain, first + 1, unit),
                      weight(brain, first + 2, unit), weight(brain, first + 3, unit));
        [[unroll]] for (int r = 0; r < ROWS; ++r) sums[u * ROWS + r] += dot(w, d[r]);
      }
    }
    [[unroll]] for (int u = 0; u < RUN; ++u) [[unroll]] for (int r = 0; r < ROWS; ++r)
        parts[(slice * ROWS + r) * kUnits + u * LANES + lane] = sums[u * ROWS + r];
    barrier();

    [[unroll]] for (int n = 0; n < kOwned; ++n) {
      int pair = thread + n * kThreads, row = pair / kUnits, unit = pair % kUnits, line = first_line + row;
      if (row >= ROWS || line >= LINES || unit >= HIDDEN) continue;
      int sequence = brain * LINES + line;
      [[unroll]] for (int s = 0; s < SLICES; ++s) carried[n] += parts[(s * ROWS + row) * kUnits + unit];
#if RESTARTS == 1
      int first = (sequence * STEPS + step) * STATE;
      store_first_gradient(first + unit, is_first[n] ? carried[n] : 0.0);
#if GATES == 4
      store_first_gradient(first + HIDDEN + unit, is_first[n] ? carried_cell[n] : 0.0);
#endif
#else
      if (turn == 0) {
        store_first_gradient(sequence * STATE + unit, carried[n]);
#if GATES == 4
        store_first_gradient(sequence * STATE + HIDDEN + unit, carried_cell[n]);
#endif
      }
#endif
      if (is_first[n]) carried[n] = carried_cell[n] = 0.0;
    }
  }
}
