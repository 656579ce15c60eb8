// Random numbers of further distributions.

#include <cmath>
#include <limits>

#include "compute/base/text.h"
#include "compute/tensor/build.h"
#include "compute/tensor/composites/composites.h"
#include "compute/tensor/functions.h"
#include "compute/tensor/pages/library_page.h"

namespace imprint {

using namespace tensor;

namespace {

constexpr double kLeastUniform = 0x1p-25;  // half a step of random_uniform
constexpr int kGammaTries = 6;             // each accepts more than 95 %; all fail for one of 60 million

double digamma_of(double x) {
  double steps = 0;
  for (; x < 30; ++x) steps += 1 / x;
  const double r = 1 / (x * x);
  return std::log(x) - 0.5 / x - r * (1.0 / 12 - r * (1.0 / 120 - r * (1.0 / 252 - r / 240))) - steps;
}

// As shaders/pages/gamma_slope.glsl says, by its series alone; for large shapes by the cube root's deviate.
double gamma_slope_of(double a, double x) {
  if (!(a > 0) || !(x > 0)) return x == 0 ? 0 : std::nan("");
  if (a > 1000) {
    const double root = std::sqrt(a), cube = std::cbrt(x / a), u = 3 * root * (cube - 1 + 1 / (9 * a));
    return cube * cube * (cube + 3 * a * (1 / (9 * a * a) - u / (6 * a * root)));
  }
  double term = 1, weight = digamma_of(a) + 1 / a - std::log(x), sum = weight;
  for (int n = 1; term > 1e-12 || a + n < x; ++n) {
    term *= x / (a + n);
    weight += 1 / (a + n);
    sum += term * weight;
  }
  return x / a * sum;
}

// The slope of each value x by its shape alpha, both [n].
Tensor gamma_slope(const Tensor& alpha, const Tensor& x) {
  constexpr int kGroupSize = 64;
  const std::int64_t count = alpha.extent(0);
  LibraryPage page;
  page.name = "gamma slope";
  page.includes = {"gamma"};
  page.shader = "pages/gamma_slope";
  page.constants = {{"COUNT", count}};
  page.outputs = {{alpha.shape(), DType::float32}};
  page.group_size = kGroupSize;
  page.groups = (count + kGroupSize - 1) / kGroupSize;
  page.cpu = [](std::span<const PageArray> in, std::span<const PageArray> out) {
    const auto *a = static_cast<const float*>(in[0].data), *value = static_cast<const float*>(in[1].data);
    auto* slope = static_cast<float*>(out[0].data);
    for (std::int64_t i = 0; i < in[0].shape.element_count(); ++i)
      slope[i] = static_cast<float>(gamma_slope_of(a[i], value[i]));
  };
  const Tensor both[] = {alpha, x};
  return run_page(std::move(page), both)[0];
}

}  // namespace

// Marsaglia, Tsang, A Simple Method for Generating Gamma Variables, 2000.
Tensor random_gamma(const Tensor& generator, const Tensor& alpha, std::uint32_t stream) {
  if (!alpha.ok()) return alpha;
  if (alpha.dtype() != DType::float32) return bad_dtype("random_gamma", alpha, "float32");
  const std::int64_t count = alpha.shape().element_count();
  const Tensor uniform = random_uniform(generator, {3 * kGammaTries + 1, count}, stream);
  if (!uniform.ok()) return uniform;
  int drawn = 0;
  const auto next = [&] {
    return clamp_min(reshape(narrow(uniform, 0, drawn++, 1), {count}), kLeastUniform);
  };
  const auto draw = [&](const Tensor& shape) {
    const Tensor d = where(shape < 1.0f, shape + 1.0f, shape) - 1.0 / 3, c = rsqrt(9.0f * d);
    std::vector<Tensor> cubes, accepted;
    for (int i = 0; i < kGammaTries; ++i) {
      const Tensor radius = sqrt(-2.0f * log(next()));
      const Tensor normal = radius * cos(Tensor(6.283185307179586) * next());
      const Tensor base = 1.0f + c * normal, cube = base * base * base;
      const Tensor bound = 0.5f * square(normal) + d * (1.0f - cube + log(where(base > 0.0f, cube, 1.0f)));
      accepted.push_back(logical_and(base > 0.0f, log(next()) < bound));
      cubes.push_back(cube);
    }
    Tensor out = ones({count});
    for (int i = kGammaTries; i-- > 0;) {
      const auto k = static_cast<std::size_t>(i);
      out = where(accepted[k], cubes[k], out);
    }
    const Tensor smaller = exp(log(next()) / shape);  // a variable of alpha + 1, times u^(1 / alpha)
    out = d * out * where(shape < 1.0f, smaller, 1.0f);
    return where(shape > 0.0f, out, Tensor(std::nanf("")));
  };
  if (count == 0) return alpha;
  const auto backward = [](std::span<const Tensor> in, std::span<const Tensor> out,
                           std::span<const Tensor> slopes) {
    return std::vector{slopes[0] * gamma_slope(in[0], out[0])};
  };
  const Tensor shape = reshape(alpha, {count});
  const auto forward = [&](std::span<const Tensor> in) { return std::vector{draw(in[0])}; };
  return reshape(with_gradient(forward, backward, std::span(&shape, 1))[0], alpha.shape());
}

Tensor random_multinomial(const Tensor& generator, const Tensor& logits, std::int64_t samples,
                          std::uint32_t stream, bool replacement) {
  if (!logits.ok()) return logits;
  const std::int64_t classes = logits.rank() > 0 ? logits.extent(logits.rank() - 1) : 0;
  if (logits.dtype() != DType::float32 || classes < 1 || samples < 1 || (!replacement && samples > classes))
    return failure(ErrorCode::shape_mismatch, "random_multinomial",
                   text("found ", dtype_name(logits.dtype()), " logits ", describe(logits), " and ", samples,
                        " samples, expected float32 [..., classes], and 1 or more samples",
                        replacement ? "" : ", at most one per class"));
  if (!replacement) {
    const Tensor uniform = clamp_min(random_uniform(generator, logits.shape(), stream), kLeastUniform);
    return topk(stop_gradient(logits) - log(-log(uniform)), samples).indices;
  }
  Shape wide = logits.shape();
  wide[wide.rank() - 1] = samples;
  if (wide.rank() == Shape::kMaxRank)
    return failure(
        ErrorCode::shape_mismatch, "random_multinomial",
        text("found logits ", describe(logits), ", expected at most ", Shape::kMaxRank - 1, " axes"));
  wide.append(classes);
  return random_categorical(generator, expand(unsqueeze(logits, -2), wide), stream);
}

}  // namespace imprint
