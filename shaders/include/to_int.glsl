// Truncates toward zero; clamps to the range of int; NaN is 0. GLSL leaves the last two undefined.
int imp_to_int(float x) {
  int whole = int(clamp(x, -2147483648.0, 2147483520.0));
  return isnan(x) ? 0 : x >= 2147483648.0 ? 2147483647 : whole;
}
