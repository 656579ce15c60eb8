// Remainders with the sign of the divisor (Python's %) and of the dividend (C's fmod), and int division that
// is defined for all operands.
float imp_fmod(float a, float b) { return imp_is_inf(b) && !imp_is_inf(a) ? a : a - b * trunc(a / b); }
float imp_remainder(float a, float b) {
  float r = imp_fmod(a, b);
  return r != 0.0 && (r < 0.0) != (b < 0.0) ? r + b : r;
}
int imp_div(int a, int b) { return b == 0 ? 0 : (b == -1 ? -a : a / b); }
int imp_fmod(int a, int b) { return b == 0 || b == -1 ? 0 : a - b * (a / b); }
int imp_remainder(int a, int b) {
  int r = imp_fmod(a, b);
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}
