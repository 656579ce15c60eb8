// The logarithm of |gamma(x)| and its derivative. Below a half by reflection; at 0, -1, -2, ... lgamma is
// infinite and digamma is NaN. lgamma: Lanczos, A Precision Approximation of the Gamma Function, 1964, with
// the coefficients of Press et al., Numerical Recipes, gammln. digamma: six steps of its recurrence, then the
// asymptotic series.
float imp_lgamma(float x) {
  bool reflects = x < 0.5f;
  float z = reflects ? 1.0f - x : x;
  float series = 1.000000000190015f + 76.18009172947146f / (z + 1.0f) - 86.50532032941677f / (z + 2.0f) +
                 24.01409824083091f / (z + 3.0f) - 1.231739572450155f / (z + 4.0f) +
                 1.208650973866179e-3f / (z + 5.0f) - 5.395239384953e-6f / (z + 6.0f);
  float most = min(z, 1e7f);
  float usual = (most + 0.5f) * log(most + 5.5f) - (most + 5.5f) + log(2.5066282746310005f * series / most);
  float result = z > 1e7f ? z * (log(z) - 1.0f) : usual;
  float angle = 3.14159265f * (x - floor(x));
  return reflects ? log(3.14159265f / abs(sin(angle))) - result : result;
}

float imp_digamma(float x) {
  bool reflects = x < 0.5f;
  float z = reflects ? 1.0f - x : x;
  float steps = 1.0f / z + 1.0f / (z + 1.0f) + 1.0f / (z + 2.0f) + 1.0f / (z + 3.0f) + 1.0f / (z + 4.0f) +
                1.0f / (z + 5.0f);
  float y = z + 6.0f;
  float r = 1.0f / (y * y);
  float result = log(y) - 0.5f / y - r * (0.0833333333f - r * (0.00833333333f - r * 0.00396825397f)) - steps;
  float part = x - floor(x);
  float angle = 3.14159265f * part;
  float reflected = result - 3.14159265f * cos(angle) / sin(angle);
  return !reflects ? result : part == 0.0f ? uintBitsToFloat(0x7fc00000u) : reflected;
}
