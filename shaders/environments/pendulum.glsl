// A pendulum to swing up and balance. State: angle from upright, its rate. Observation: cosine, sine, rate.
// Number: the torque, clipped to [-2, 2].
void start(out float state[2]) {
  state[0] = draw(-3.14159265, 3.14159265);
  state[1] = draw(-1.0, 1.0);
}

void observe(in float state[2], out float observation[3]) {
  observation[0] = cos(state[0]);
  observation[1] = sin(state[0]);
  observation[2] = state[1];
}

float advance(inout float state[2], in float number[1], out bool terminated) {
  float torque = clamp(number[0], -2.0, 2.0);
  float angle = mod(state[0] + 3.14159265, 6.28318531) - 3.14159265;
  float cost = angle * angle + 0.1 * state[1] * state[1] + 0.001 * torque * torque;
  state[1] = clamp(state[1] + (15.0 * sin(state[0]) + 3.0 * torque) * 0.05, -8.0, 8.0);
  state[0] += state[1] * 0.05;
  terminated = false;
  return -cost;
}
