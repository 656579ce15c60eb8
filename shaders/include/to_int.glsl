// Truncates toward zero; clamps to the range of int; NaN is 0. GLSL leaves the last two undefined.
int imp_to_int(float x) {
  int whole = int(clamp(x, -2147483648.0, 2147483520.0));
  return imp_is_nan(x) ? 0 : x >= 2147483648.0 ? 2147483647 : whole;
}
uint imp_to_uint_bits(float x) {
  uint whole = uint(clamp(x, 0.0, 4294967040.0));
  return imp_is_nan(x) ? 0u : x >= 4294967296.0 ? 4294967295u : whole;
}
// The bits of the result, of 0 .. 2^32 - 1.
int imp_to_uint(float x) { return int(imp_to_uint_bits(x)); }
