#include <numbers>

#include "compute/tensor/build.h"

namespace imprint {

using namespace tensor;

Tensor square(const Tensor& x) { return x * x; }
Tensor rsqrt(const Tensor& x) { return recip(sqrt(x)); }
// Base 2 keeps whole exponents exact; exp(x ln 2) would not.
Tensor exp2(const Tensor& x) { return pow(Tensor(2.0f), x); }
Tensor log2(const Tensor& x) { return log(x) * Tensor(std::numbers::log2e); }
Tensor log10(const Tensor& x) { return log(x) * Tensor(std::numbers::log10e); }

// 1 - erf(x) loses all digits where erf nears 1. There, with t = 2 / (2 + x), erfc(x) = t exp(p(t) - x^2),
// where p is the Chebyshev interpolant of log(erfc(x) / t) + x^2 on x in [0.5, 12], good to 7e-8.
Tensor erfc(const Tensor& x) {
  constexpr double kCoefficients[] = {-1.2655316117, 1.0006009129, 0.3670039602,  0.1437109759,
                                      -0.3715629471, 0.7344035738, -1.8381187847, 2.1497800365,
                                      -1.1685829834, 0.2483242757};
  const Tensor is_small = x < 0.5f;
  const Tensor large = where(is_small, 0.5f, x);
  const Tensor t = 2.0f / (2.0f + large);
  Tensor exponent = Tensor(kCoefficients[9]);
  for (int i = 8; i >= 0; --i) exponent = exponent * t + Tensor(kCoefficients[i]);
  return where(is_small, 1.0f - erf(x), t * exp(exponent - large * large));
}

Tensor deg2rad(const Tensor& x) { return x * Tensor(std::numbers::pi / 180); }
Tensor rad2deg(const Tensor& x) { return x * Tensor(180 / std::numbers::pi); }

Tensor is_finite(const Tensor& x) { return logical_not(logical_or(is_nan(x), is_inf(x))); }

Tensor hypot(const Tensor& a, const Tensor& b) {
  if (!a.ok()) return a;
  if (!b.ok()) return b;
  // Scaled by the larger side, so that neither square overflows. The scale cancels out of value and
  // derivative.
  const Tensor larger = maximum(abs(a), abs(b));
  const Tensor scale = stop_gradient(where(logical_or(equal(larger, 0.0f), is_inf(larger)), 1.0f, larger));
  return sqrt(square(a / scale) + square(b / scale)) * scale;
}

// Equality is tested as well, for infinities: their difference is NaN, or below an infinite bound.
Tensor is_close(const Tensor& a, const Tensor& b, double relative, double absolute) {
  const Tensor bound = Tensor(absolute) + Tensor(relative) * abs(b);
  return logical_or(equal(a, b), logical_and(is_finite(b), abs(a - b) <= bound));
}

// where instead of minimum and maximum: a value on the bound keeps its whole gradient, and NaN stays NaN, as
// in PyTorch.
Tensor clamp_min(const Tensor& x, double low) {
  return x.ok() ? where(x < number(low, x), number(low, x), x) : x;
}
Tensor clamp_max(const Tensor& x, double high) {
  return x.ok() ? where(x > number(high, x), number(high, x), x) : x;
}
Tensor clamp(const Tensor& x, double low, double high) { return clamp_max(clamp_min(x, low), high); }

Tensor lerp(const Tensor& a, const Tensor& b, const Tensor& t) { return a + t * (b - a); }
Tensor masked_fill(const Tensor& x, const Tensor& mask, double value) {
  return x.ok() ? where(mask, number(value, x), x) : x;
}

// Below a half by reflection; then six steps of the recurrence and the asymptotic series.
Tensor trigamma(const Tensor& x) {
  if (!x.ok()) return x;
  const Tensor reflects = x < 0.5f;
  const Tensor z = where(reflects, 1.0f - x, x);
  Tensor sum = square(recip(z));
  for (int step = 1; step < 6; ++step) sum = sum + square(recip(z + static_cast<float>(step)));
  const Tensor r = recip(z + 6.0f), s = square(r);
  const Tensor series = r * (1.0f + r * 0.5f + s * (1.0f / 6 - s * (1.0f / 30 - s * (1.0f / 42))));
  const Tensor inverse = Tensor(std::numbers::pi) / sin(Tensor(std::numbers::pi) * (x - floor(x)));
  return where(reflects, square(inverse) - (sum + series), sum + series);
}

}  // namespace imprint
