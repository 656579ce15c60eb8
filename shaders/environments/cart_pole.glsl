// A pole on a cart. State and observation: position, its rate, angle, its rate. Choice: push left or right.
// Barto, Sutton, Anderson, Neuronlike Adaptive Elements That Can Solve Difficult Learning Control Problems,
// 1983.
void start(out float state[4]) {
  for (int k = 0; k < 4; ++k) state[k] = draw(-0.05, 0.05);
}

void observe(in float state[4], out float observation[4]) { observation = state; }

float advance(inout float state[4], in int choice[1], out bool terminated) {
  float force = choice[0] == 1 ? 10.0 : -10.0, sine = sin(state[2]), cosine = cos(state[2]);
  float pushed = (force + 0.05 * state[3] * state[3] * sine) / 1.1;
  float angle_acceleration =
      (9.8 * sine - cosine * pushed) / (0.5 * (4.0 / 3.0 - 0.1 * cosine * cosine / 1.1));
  float acceleration = pushed - 0.05 * angle_acceleration * cosine / 1.1;
  state[0] += 0.02 * state[1];
  state[1] += 0.02 * acceleration;
  state[2] += 0.02 * state[3];
  state[3] += 0.02 * angle_acceleration;
  terminated = abs(state[0]) > 2.4 || abs(state[2]) > 0.20943951;
  return 1.0;
}
