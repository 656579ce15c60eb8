// tanh: accurate near zero and saturated far out, where a quotient of exponentials cancels or overflows.
// Computes both forms without a branch: neighbouring invocations seldom agree, and independent evaluations
// overlap. NaN is not far, so the polynomial passes it on.
float imp_tanh(float x) {
  float a = abs(x), s = x * x, t = exp(-2.0 * min(a, 15.0));
  float near =
      x * (1.0 + s * (-0.333333333 +
                      s * (0.133333333 + s * (-0.0539682540 + s * (0.0218694885 - s * 0.00886323553)))));
  float far = sign(x) * ((1.0 - t) / (1.0 + t));
  return mix(near, far, a >= 0.3);
}
