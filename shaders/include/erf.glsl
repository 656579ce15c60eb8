// The error function by two minimax polynomials: of erf(x) / x in x * x below 1, of log2(erfc(x)) from 1 to
// 4. Above 4 erf is 1. Relative error below 2e-7. Selects coefficients instead of branching, so that
// neighbouring invocations do not diverge.
float imp_erf(float x) {
  float a = abs(x);
  bool is_small = a < 1.0;
  float t = is_small ? x * x : (a > 4.0 ? 4.0 : a);
  float p = is_small ? 7.853840965e-5 : 2.67733965e-4;
  p = p * t + (is_small ? -8.010187449e-4 : -4.241026193e-3);
  p = p * t + (is_small ? 5.188326983e-3 : 3.145869448e-2);
  p = p * t + (is_small ? -2.685381157e-2 : -0.1486520498);
  p = p * t + (is_small ? 0.1128358514 : -0.9207644039);
  p = p * t + (is_small ? -0.3761262582 : -1.625975432);
  p = p * t + (is_small ? 1.128379166 : -5.102225387e-4);
  float r = 1.0 - exp2(p);
  return is_small ? x * p : (x < 0.0 ? -r : r);
}
