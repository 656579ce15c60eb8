// Resizing: each axis by itself, as weighted sums of a few places.

#include <algorithm>
#include <cmath>

#include "compute/base/text.h"
#include "compute/tensor/build.h"
#include "compute/tensor/composites/image_parts.h"

namespace imprint {

using namespace tensor;

namespace {

// Output place i reads place first[k][i] with weight[k][i], for each tap k.
struct Taps {
  std::vector<std::vector<std::int32_t>> places;
  std::vector<std::vector<float>> weights;
};

// Keys' kernel for the taps at distances 1 + t, t, 1 - t and 2 - t.
std::array<double, 4> cubic_weights(double t) {
  constexpr double a = -0.75;
  const auto near = [](double d) { return ((a + 2) * d - (a + 3)) * d * d + 1; };
  const auto far = [](double d) { return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a; };
  return {far(1 + t), near(t), near(1 - t), far(2 - t)};
}

Taps taps_of(std::int64_t extent, std::int64_t places, const ResizeOptions& options) {
  const int count = options.mode == Resize::nearest ? 1 : options.mode == Resize::linear ? 2 : 4;
  Taps taps{std::vector<std::vector<std::int32_t>>(static_cast<std::size_t>(count)),
            std::vector<std::vector<float>>(static_cast<std::size_t>(count))};
  const auto add = [&](std::size_t k, std::int64_t place, double weight) {
    taps.places[k].push_back(static_cast<std::int32_t>(std::clamp<std::int64_t>(place, 0, extent - 1)));
    taps.weights[k].push_back(static_cast<float>(weight));
  };
  const double in = static_cast<double>(extent), out = static_cast<double>(places);
  for (std::int64_t i = 0; i < places; ++i) {
    if (options.mode == Resize::nearest) {
      add(0, i * extent / places, 1);
      continue;
    }
    double at = 0;
    if (options.align_corners)
      at = places > 1 ? static_cast<double>(i) * (in - 1) / (out - 1) : 0;
    else
      at = in / out * (static_cast<double>(i) + 0.5) - 0.5;
    if (options.mode == Resize::linear) {
      at = std::max(at, 0.0);
      const double floor = std::floor(at);
      const auto place = static_cast<std::int64_t>(floor);
      add(0, place, 1 - (at - floor));
      add(1, place + 1, at - floor);
    } else {
      const double floor = std::floor(at);
      const auto place = static_cast<std::int64_t>(floor);
      const std::array<double, 4> weights = cubic_weights(at - floor);
      for (std::size_t k = 0; k < 4; ++k) add(k, place - 1 + static_cast<std::int64_t>(k), weights[k]);
    }
  }
  return taps;
}

Tensor resize_axis(const Tensor& x, int axis, std::int64_t places, const ResizeOptions& options) {
  const std::int64_t extent = x.extent(axis);
  if (extent == places) return x;
  if (options.mode == Resize::nearest && places % extent == 0) {
    Shape wide, shape = x.shape();
    for (int k = 0; k < x.rank(); ++k) {
      wide.append(x.extent(k));
      if (k == axis) wide.append(places / extent);
    }
    shape[axis] = places;
    return reshape(expand(unsqueeze(x, axis + 1), wide), shape);
  }
  const Taps taps = taps_of(extent, places, options);
  Shape beside;
  for (int k = 0; k < x.rank(); ++k) beside.append(k == axis ? places : 1);
  Tensor out;
  for (std::size_t k = 0; k < taps.places.size(); ++k) {
    Tensor term = take(x, axis, Tensor::from_ints(taps.places[k], {places}));
    if (options.mode == Resize::nearest) return term;
    term = term * reshape(Tensor::from(taps.weights[k], {places}), beside);
    out = k == 0 ? term : out + term;
  }
  return out;
}

}  // namespace

Tensor interpolate(const Tensor& x, const PerAxis& places, const ResizeOptions& options) {
  if (std::optional<Tensor> refused = refuse_image("interpolate", x)) return *refused;
  Tensor out = x;
  for (int i = 0; i < places_of(x); ++i) {
    if (places[i] < 1 || x.extent(2 + i) < 1)
      return failure(ErrorCode::shape_mismatch, "interpolate",
                     text("found ", describe(x), " and ", places[i], " places, expected 1 or more of both"));
    out = resize_axis(out, 2 + i, places[i], options);
  }
  return out;
}

Tensor pixel_shuffle(const Tensor& x, std::int64_t factor) {
  if (!x.ok()) return x;
  if (x.rank() != 4 || factor < 1 || x.extent(1) % (factor * factor) != 0)
    return failure(ErrorCode::shape_mismatch, "pixel_shuffle",
                   text("found ", describe(x), " and factor ", factor,
                        ", expected [batch, channels * factor^2, height, width]"));
  const std::int64_t batch = x.extent(0), channels = x.extent(1) / (factor * factor), rows = x.extent(2),
                     columns = x.extent(3);
  const Tensor split = reshape(x, {batch, channels, factor, factor, rows, columns});
  return reshape(permute(split, {0, 1, 4, 2, 5, 3}), {batch, channels, rows * factor, columns * factor});
}

Tensor pixel_unshuffle(const Tensor& x, std::int64_t factor) {
  if (!x.ok()) return x;
  if (x.rank() != 4 || factor < 1 || x.extent(2) % factor != 0 || x.extent(3) % factor != 0)
    return failure(ErrorCode::shape_mismatch, "pixel_unshuffle",
                   text("found ", describe(x), " and factor ", factor,
                        ", expected [batch, channels, height * factor, width * factor]"));
  const std::int64_t batch = x.extent(0), channels = x.extent(1), rows = x.extent(2) / factor,
                     columns = x.extent(3) / factor;
  const Tensor split = reshape(x, {batch, channels, rows, factor, columns, factor});
  return reshape(permute(split, {0, 1, 3, 5, 2, 4}), {batch, channels * factor * factor, rows, columns});
}

}  // namespace imprint
