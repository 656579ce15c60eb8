// One step of LAMB: optimiser.h has its formula. A parameter per workgroup.

float mean_of(int p, int i) { return kBeta1 * first_moment(p, i) + kFresh1 * gradient(p, i); }
float squares_of(int p, int i) {
  float g = gradient(p, i);
  return kBeta2 * second_moment(p, i) + kFresh2 * (g * g);
}
// corrections: of the biases of both moments.
float direction_of(int p, int i, vec2 corrections, float mean, float squares) {
  float direction = mean * corrections.x / (sqrt(squares) * corrections.y + kEpsilon);
  return kDecay == 0.0 ? direction : direction + kDecay * value(p, i);
}

void imp_page(int p) {
  int lane = int(gl_LocalInvocationID.x), count = size_of(p);
  float size = 0.0, change = 0.0;
  vec2 corrections = vec2(-1.0 / imp_expm1(steps() * kLog1), inversesqrt(-imp_expm1(steps() * kLog2)));
  for (int i = lane; i < count; i += imp_group_size) {
    float mean = mean_of(p, i), squares = squares_of(p, i), old = value(p, i);
    float direction = direction_of(p, i, corrections, mean, squares);
    size += old * old;
    change += direction * direction;
    store_first_moment(p, i, mean);
    store_second_moment(p, i, squares);
  }
  size = sum_of_group(size);
  change = sum_of_group(change);
  float trust = size > 0.0 && change > 0.0 ? sqrt(size / change) : 1.0;
  for (int i = lane; i < count; i += imp_group_size) {
    float direction = direction_of(p, i, corrections, mean_of(p, i), squares_of(p, i));
    store_value(p, i, value(p, i) - rate() * trust * direction);
  }
}
