// pow, defined for all operands. GLSL leaves negative bases, zero bases and exponent zero undefined; here a
// negative base with an exponent that is not integral gives NaN.
float imp_pow(float x, float y) {
  if (y == 0.0) return 1.0;
  if (y == 1.0) return x;
  if (y == 2.0) return x * x;
  bool integral = floor(y) == y;
  bool odd = integral && abs(y) < 16777216.0 && mod(abs(y), 2.0) == 1.0;
  float a = abs(x);
  float r;
  if (a == 1.0)  // with an infinity or NaN too
    r = 1.0;
  else if (a == 0.0)
    r = y > 0.0 ? 0.0 : y < 0.0 ? uintBitsToFloat(0x7f800000u) : y;
  else if (integral && abs(y) <= 16.0) {
    r = 1.0;
    int n = int(abs(y));
    for (int k = 0; k < n; ++k) r *= a;
    if (y < 0.0) r = 1.0 / r;
  } else
    r = exp2(y * log2(a));
  if (x < 0.0) return integral ? (odd ? -r : r) : uintBitsToFloat(0x7fc00000u);
  return r;
}
