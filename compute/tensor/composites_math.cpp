#include <numbers>

#include "compute/tensor/build.h"

namespace imprint {

Tensor square(const Tensor& x) { return x * x; }
Tensor rsqrt(const Tensor& x) { return recip(sqrt(x)); }
// Base 2 keeps whole exponents exact, which exp(x ln 2) would not.
Tensor exp2(const Tensor& x) { return pow(Tensor(2.0f), x); }
Tensor log2(const Tensor& x) { return log(x) * Tensor(std::numbers::log2e); }
Tensor log10(const Tensor& x) { return log(x) * Tensor(std::numbers::log10e); }

Tensor erfc(const Tensor& x) { return 1.0f - erf(x); }

Tensor is_finite(const Tensor& x) { return logical_not(logical_or(is_nan(x), is_inf(x))); }

Tensor hypot(const Tensor& a, const Tensor& b) {
  if (!a.ok()) return a;
  if (!b.ok()) return b;
  // Scaled by the larger side, so that neither square overflows; what the scale is does not change the value, nor the derivative.
  const Tensor larger = maximum(abs(a), abs(b));
  const Tensor scale = stop_gradient(where(logical_or(equal(larger, 0.0f), is_inf(larger)), 1.0f, larger));
  return sqrt(square(a / scale) + square(b / scale)) * scale;
}

// Written with where rather than minimum and maximum: a value on the boundary keeps its whole gradient and NaN stays NaN, as in PyTorch.
Tensor clamp_min(const Tensor& x, double low) { return x.ok() ? where(x < number(low, x), number(low, x), x) : x; }
Tensor clamp_max(const Tensor& x, double high) { return x.ok() ? where(x > number(high, x), number(high, x), x) : x; }
Tensor clamp(const Tensor& x, double low, double high) { return clamp_max(clamp_min(x, low), high); }

Tensor lerp(const Tensor& a, const Tensor& b, const Tensor& t) { return a + t * (b - a); }
Tensor masked_fill(const Tensor& x, const Tensor& mask, double value) { return x.ok() ? where(mask, number(value, x), x) : x; }

}  // namespace imprint
