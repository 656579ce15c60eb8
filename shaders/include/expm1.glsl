// exp(x) - 1 without cancellation near zero (Taylor below 0.35, where seven terms reach float precision).
float imp_expm1(float x) {
  if (abs(x) < 0.35)
    return x * (1.0 + x * (0.5 + x * (0.166666667 +
                                      x * (0.0416666667 +
                                           x * (0.00833333333 + x * (0.00138888889 + x * 0.000198412698))))));
  return exp(x) - 1.0;
}
