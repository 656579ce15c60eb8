// Accurate near zero, saturated far out, where a plain quotient of exponentials cancels or overflows. Both
// ways are taken, without a branch: neighbours seldom agree on one, and evaluations beside each other
// overlap. NaN is not far, and the polynomial keeps it.
float imp_tanh(float x) {
  float a = abs(x), s = x * x, t = exp(-2.0 * min(a, 15.0));
  float near =
      x * (1.0 + s * (-0.333333333 +
                      s * (0.133333333 + s * (-0.0539682540 + s * (0.0218694885 - s * 0.00886323553)))));
  float far = sign(x) * ((1.0 - t) / (1.0 + t));
  return mix(near, far, a >= 0.3);
}
