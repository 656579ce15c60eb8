#pragma once
// float32 functions without branches, for loops that the compiler vectorises. Private to each file that
// includes them: the files are compiled for different instruction sets, and the linker would keep one copy of
// a shared function. exp, log and atan: the polynomials of Moshier, Methods and Programs for Mathematical
// Functions (Cephes), 1989. Sine and cosine: Taylor, in double.

#include <math.h>

#include <cstdint>

namespace imprint::cpu {
namespace {

constexpr float kInfinity = __builtin_inff();
constexpr float kNaN = __builtin_nanf("");

inline std::int32_t bits_of(float x) { return __builtin_bit_cast(std::int32_t, x); }
inline float float_of(std::int32_t bits) { return __builtin_bit_cast(float, bits); }
inline float magnitude(float x) { return __builtin_fabsf(x); }
inline float copy_sign(float x, float sign) { return __builtin_copysignf(x, sign); }

// To the nearest integer, half to even; |x| < 2^22.
inline float nearest(float x) { return (x + 12582912.0f) - 12582912.0f; }

// A NaN operand gives NaN.
inline float larger(float a, float b) { return a >= b || a != a ? a : b; }
inline float smaller(float a, float b) { return a <= b || a != a ? a : b; }

// A NaN in a gives b.
inline float at_most(float a, float b) { return a < b ? a : b; }

// A NaN in a gives b.
inline float at_least(float a, float b) { return a > b ? a : b; }

// 2^n for -126 <= n <= 127, n integral.
inline float power_of_two(float n) { return float_of((static_cast<std::int32_t>(n) + 127) << 23); }

// e^x / 2^n, where n is nearest to x / log(2).
inline float exp_fraction(float x, float n) {
  const float r = (x - n * 0.693359375f) - n * -2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  return p * r * r + r + 1.0f;
}

// e^x for -104 <= x <= 89; no NaN.
inline float bounded_exp(float x) {
  const float n = nearest(x * 1.44269504f);
  const float half = nearest(n * 0.5f);  // in two steps, so that subnormal and overflowing results are right
  return exp_fraction(x, n) * power_of_two(half) * power_of_two(n - half);
}

// The same bits for -87 <= x <= 88.
inline float normal_exp(float x) {
  const float n = nearest(x * 1.44269504f);
  return exp_fraction(x, n) * power_of_two(n);
}

inline float exp_of(float x) {
  const float result = bounded_exp(x > 89.0f ? 89.0f : x < -104.0f ? -104.0f : x != x ? 0.0f : x);
  return x != x ? x : result;
}

inline float log_of(float x) {
  const bool subnormal = x < 1.17549435e-38f;
  const std::int32_t bits = bits_of(subnormal ? x * 8388608.0f : x);
  // x = m * 2^e with m in [sqrt(1/2), sqrt(2))
  const std::int32_t shifted = bits - 0x3f3504f3;
  const float e = static_cast<float>((shifted >> 23) - (subnormal ? 23 : 0));
  const float m = float_of((shifted & 0x007fffff) + 0x3f3504f3) - 1.0f;
  float p = 7.0376836292e-2f;
  p = p * m - 1.1514610310e-1f;
  p = p * m + 1.1676998740e-1f;
  p = p * m - 1.2420140846e-1f;
  p = p * m + 1.4249322787e-1f;
  p = p * m - 1.6668057665e-1f;
  p = p * m + 2.0000714765e-1f;
  p = p * m - 2.4999993993e-1f;
  p = p * m + 3.3333331174e-1f;
  const float square = m * m;
  const float low = p * m * square + e * -2.12194440e-4f - 0.5f * square;
  const float result = (m + low) + e * 0.693359375f;
  return x > 0.0f ? (x == kInfinity ? x : result) : x == 0.0f ? -kInfinity : kNaN;
}

inline float near_expm1(float x) {
  return x *
         (1.0f + x * (0.5f + x * (0.166666667f +
                                  x * (0.0416666667f +
                                       x * (0.00833333333f + x * (0.00138888889f + x * 0.000198412698f))))));
}

inline float expm1_of(float x) { return magnitude(x) < 0.35f ? near_expm1(x) : exp_of(x) - 1.0f; }

// Corrects the rounding of 1 + x (Goldberg, What Every Computer Scientist Should Know, 1991, theorem 4).
inline float log1p_of(float x) {
  const float u = 1.0f + x;
  const float d = u - 1.0f;
  const float result = log_of(u) * (x / (d == 0.0f ? 1.0f : d));
  return d == 0.0f ? x : u == kInfinity ? u : result;
}

// One clamp around bounded_exp: GCC 12 turns two into branches, and does not vectorise them.
inline float tanh_of(float x) {
  const float a = magnitude(x), s = x * x;
  const float near =
      x * (1.0f + s * (-0.333333333f +
                       s * (0.133333333f + s * (-0.0539682540f + s * (0.0218694885f - s * 0.00886323553f)))));
  const float t = normal_exp(-2.0f * at_most(a, 15.0f));
  return a >= 0.3f ? copy_sign((1.0f - t) / (1.0f + t), x) : near;
}

inline float sigmoid_of(float x) { return 1.0f / (1.0f + exp_of(-x)); }

inline float sinh_of(float x) {
  const float a = magnitude(x), low = at_most(a, 88.0f);
  const float t = low < 0.35f ? near_expm1(low) : bounded_exp(low) - 1.0f;
  const float h = bounded_exp(at_most(a, 178.0f) * 0.5f);
  const float result = copy_sign(a > 88.0f ? 0.5f * h * h : 0.5f * (t + t / (t + 1.0f)), x);
  return x != x ? x : result;
}

inline float cosh_of(float x) {
  const float h = bounded_exp(at_most(magnitude(x), 89.0f) * 0.5f);
  const float result = magnitude(x) > 89.0f ? kInfinity : 0.5f * h * h + 0.5f / (h * h);
  return x != x ? x : result;
}

inline float asinh_of(float x) {
  const float a = magnitude(x);
  const float near = smaller(a, 1e9f);
  return copy_sign(a > 1e9f ? log_of(a) + 0.693147181f
                            : log1p_of(near + near * near / (1.0f + __builtin_sqrtf(near * near + 1.0f))),
                   x);
}

inline float acosh_of(float x) {
  return x > 1e9f ? log_of(x) + 0.693147181f
                  : log1p_of((x - 1.0f) + __builtin_sqrtf((x - 1.0f) * (x + 1.0f)));
}

inline float atanh_of(float x) { return 0.5f * log1p_of(2.0f * x / (1.0f - x)); }

// Maclaurin series below 1; above, 1 - erfc with the coefficients of Press et al., Numerical Recipes, erfcc.
inline float erf_of(float x) {
  const float s = x * x;
  const float near =
      x * 1.128379167f *
      (1.0f +
       s * (-0.333333333f +
            s * (0.1f +
                 s * (-0.0238095238f +
                      s * (0.00462962963f +
                           s * (-0.000757575758f +
                                s * (0.000106837607f +
                                     s * (-1.32275132e-5f + s * (1.45891690e-6f - s * 1.45038522e-7f)))))))));
  const float a = magnitude(x);
  const float t = 1.0f / (1.0f + 0.5f * a);
  const float rest =
      t *
      normal_exp(at_least(
          -a * a - 1.26551223f +
              t * (1.00002368f +
                   t * (0.37409196f +
                        t * (0.09678418f +
                             t * (-0.18628806f +
                                  t * (0.27886807f +
                                       t * (-1.13520398f +
                                            t * (1.48851587f + t * (-0.82215223f + t * 0.17087277f)))))))),
          -87.0f));
  return a < 1.0f ? near : copy_sign(1.0f - rest, x);
}

inline double nearest_wide(double x) { return (x + 6755399441055744.0) - 6755399441055744.0; }

// sin(x + quarters * pi / 2); |x| < 1e9. A larger float32 does not determine an angle.
inline double turned_sine(float x, double quarters) {
  const double wide = static_cast<double>(x);
  const double n = nearest_wide(wide * 0.636619772367581343);
  const double r = (wide - n * 1.57079632679489656) - n * 6.12323399573676604e-17;
  const double s = r * r;
  const double sine =
      r * (1.0 +
           s * (-1.0 / 6 + s * (1.0 / 120 + s * (-1.0 / 5040 + s * (1.0 / 362880 - s * (1.0 / 39916800))))));
  const double cosine =
      1.0 +
      s * (-0.5 + s * (1.0 / 24 +
                       s * (-1.0 / 720 + s * (1.0 / 40320 + s * (-1.0 / 3628800 + s * (1.0 / 479001600))))));
  const double turn = n + quarters;
  const double quarter = turn - 4.0 * nearest_wide(turn * 0.25 - 0.375);  // 0 .. 3
  const double value = quarter == 1.0 || quarter == 3.0 ? cosine : sine;
  return quarter >= 2.0 ? -value : value;
}

inline float sin_of(float x) { return static_cast<float>(turned_sine(x, 0)); }
inline float cos_of(float x) { return static_cast<float>(turned_sine(x, 1)); }
inline float tan_of(float x) { return static_cast<float>(turned_sine(x, 0) / turned_sine(x, 1)); }

inline float atan_of(float x) {
  const float a = magnitude(x);
  const bool far = a > 2.414213562f, middle = a > 0.4142135624f;
  const float start = far ? 1.5707963268f : middle ? 0.7853981634f : 0.0f;
  const float r = far ? -1.0f / a : middle ? (a - 1.0f) / (a + 1.0f) : a;
  const float s = r * r;
  const float p =
      ((8.05374449538e-2f * s - 1.38776856032e-1f) * s + 1.99777106478e-1f) * s - 3.33329491539e-1f;
  return copy_sign(start + (p * s * r + r), x);
}

inline float atan2_of(float y, float x) { return atan2f(y, x); }

inline float asin_of(float x) { return atan_of(x / __builtin_sqrtf((1.0f - x) * (1.0f + x))); }
inline float acos_of(float x) { return 2.0f * atan_of(__builtin_sqrtf((1.0f - x) / (1.0f + x))); }

inline float float_remainder(float a, float b) {
  const float rest = fmodf(a, b);
  return rest != 0.0f && (rest < 0.0f) != (b < 0.0f) ? rest + b : rest;
}

inline float pow_of(float x, float y) { return y == 2.0f ? x * x : powf(x, y); }

// ---- functions of shaders/both, with GLSL's names for what they call ----
inline float abs(float x) { return magnitude(x); }
inline float min(float a, float b) { return smaller(a, b); }
inline float exp(float x) { return exp_of(x); }
inline float log(float x) { return log_of(x); }
inline float sqrt(float x) { return __builtin_sqrtf(x); }
inline float floor(float x) { return __builtin_floorf(x); }
inline float sin(float x) { return sin_of(x); }
inline float cos(float x) { return cos_of(x); }
inline float uintBitsToFloat(std::uint32_t bits) { return __builtin_bit_cast(float, bits); }
inline float imp_log1p(float x) { return log1p_of(x); }

#include "shared_functions.inc"

// ---- int32: wraps; division by 0 is 0 ----
inline std::int32_t wrapped(std::uint32_t bits) { return static_cast<std::int32_t>(bits); }
inline std::uint32_t unsigned_of(std::int32_t x) { return static_cast<std::uint32_t>(x); }
inline std::int32_t negated(std::int32_t x) { return wrapped(0u - unsigned_of(x)); }
inline std::int32_t quotient(std::int32_t a, std::int32_t b) {
  return b == 0 ? 0 : b == -1 ? negated(a) : a / b;
}
inline std::int32_t rest_of(std::int32_t a, std::int32_t b) { return b == 0 || b == -1 ? 0 : a % b; }
inline std::int32_t remainder_of(std::int32_t a, std::int32_t b) {
  const std::int32_t rest = rest_of(a, b);
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

// Truncates toward zero; clamps to the range of int32; NaN is 0.
inline std::int32_t truncated(float x) {
  const float bounded = x > -2147483648.0f ? x : -2147483648.0f;
  return x != x ? 0 : x >= 2147483648.0f ? 2147483647 : static_cast<std::int32_t>(bounded);
}

// The bits of a number of 0 .. 2^32 - 1; clamps, and NaN is 0.
inline std::int32_t truncated_unsigned(float x) {
  const float bounded = x > 0.0f ? (x < 4294967040.0f ? x : 4294967040.0f) : 0.0f;
  const bool is_high = bounded >= 2147483648.0f;
  const std::int32_t low = static_cast<std::int32_t>(is_high ? bounded - 2147483648.0f : bounded);
  return x >= 4294967296.0f ? -1 : is_high ? wrapped(unsigned_of(low) + 0x80000000u) : low;
}

// The nearest value of float16, halves to even.
inline float rounded_to_half(float x) {
  const std::int32_t size = bits_of(x) & 0x7fffffff;
  const float whole = float_of((size + 0xfff + ((size >> 13) & 1)) & ~0x1fff);
  // Below 2^-14: a multiple of 2^-24, the last bit of a sum with 1/2.
  const float subnormal = (magnitude(x) + 0.5f) - 0.5f;
  const float rounded = size < 0x38800000 ? subnormal : whole > 65504.0f ? kInfinity : whole;
  return x != x ? x : copy_sign(rounded, x);
}

inline float rounded_to_bfloat16(float x) {
  const std::uint32_t bits = unsigned_of(bits_of(x));
  return x != x ? x : float_of(wrapped((bits + 0x7fffu + ((bits >> 16) & 1u)) & 0xffff0000u));
}

}  // namespace
}  // namespace imprint::cpu
