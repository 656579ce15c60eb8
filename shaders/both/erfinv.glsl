// The inverse of the error function: two polynomials of -log(1 - x * x). Source: Giles, Approximating the
// erfinv function, GPU Computing Gems, 2010.
float imp_erfinv(float x) {
  float w = -log((1.0f - x) * (1.0f + x));
  bool near = w < 5.0f;
  float t = near ? w - 2.5f : sqrt(w) - 3.0f;
  float p = near ? 2.81022636e-08f : -2.00214257e-4f;
  p = p * t + (near ? 3.43273939e-07f : 1.00950558e-4f);
  p = p * t + (near ? -3.5233877e-06f : 1.34934322e-3f);
  p = p * t + (near ? -4.39150654e-06f : -3.67342844e-3f);
  p = p * t + (near ? 2.1858087e-4f : 5.73950773e-3f);
  p = p * t + (near ? -1.25372503e-3f : -7.6224613e-3f);
  p = p * t + (near ? -4.17768164e-3f : 9.43887047e-3f);
  p = p * t + (near ? 0.246640727f : 1.00167406f);
  p = p * t + (near ? 1.50140941f : 2.83297682f);
  return abs(x) == 1.0f ? x * uintBitsToFloat(0x7f800000u) : p * x;
}
