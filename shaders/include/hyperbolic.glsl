// Hyperbolic functions and their inverses; needs expm1.glsl and log1p.glsl. min() may drop NaN.
float imp_expm1(float x);
float imp_log1p(float x);

float imp_sinh(float x) {
  float t = imp_expm1(min(abs(x), 88.0));
  float r = abs(x) > 88.0 ? 0.5 * exp(abs(x) * 0.5) * exp(abs(x) * 0.5) : 0.5 * (t + t / (t + 1.0));
  return imp_is_nan(x) ? x : x < 0.0 ? -r : r;
}
float imp_cosh(float x) {
  float h = exp(min(abs(x), 89.0) * 0.5);
  float r = abs(x) > 89.0 ? uintBitsToFloat(0x7f800000u) : 0.5 * h * h + 0.5 / (h * h);
  return imp_is_nan(x) ? x : r;
}
float imp_asinh(float x) {
  float a = abs(x);
  float r = a > 1e9 ? log(a) + 0.693147181 : imp_log1p(a + a * a / (1.0 + sqrt(a * a + 1.0)));
  return x < 0.0 ? -r : r;
}
float imp_acosh(float x) {
  return x > 1e9 ? log(x) + 0.693147181 : imp_log1p((x - 1.0) + sqrt((x - 1.0) * (x + 1.0)));
}
float imp_atanh(float x) { return 0.5 * imp_log1p(2.0 * x / (1.0 - x)); }
