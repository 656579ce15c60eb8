#include "compute/training/augment.h"

#include <numbers>

#include "compute/base/text.h"

namespace imprint::training {
namespace {

bool are_pictures(const Tensor& x) { return x.ok() && x.rank() == 4; }

Tensor no_pictures(const char* name, const Tensor& x) {
  if (!x.ok()) return x;
  return Tensor(make_error(ErrorCode::shape_mismatch, text(name, ": found ", x.shape().text(),
                                                           ", expected [batch, channels, height, width]")));
}

// Whole numbers from 0 to bound - 1, one per picture: int32 [batch, 1, 1, 1].
Tensor draw_place(const Tensor& x, nn::Pass& pass, std::int64_t bound) {
  const Tensor drawn = pass.uniform({x.extent(0), 1, 1, 1}) * static_cast<float>(bound);
  return minimum(cast(drawn, DType::int32), static_cast<std::int32_t>(bound - 1));
}

}  // namespace

Tensor normalise(const Tensor& x, const std::vector<float>& mean, const std::vector<float>& deviation) {
  if (!are_pictures(x)) return no_pictures("normalise", x);
  const auto channels = static_cast<std::int64_t>(mean.size());
  if (mean.size() != deviation.size() || channels != x.extent(1))
    return Tensor(
        make_error(ErrorCode::shape_mismatch, text("normalise: found ", mean.size(), " means and ",
                                                   deviation.size(), " deviations, expected ", x.extent(1))));
  return (x - Tensor::from(mean, {1, channels, 1, 1})) / Tensor::from(deviation, {1, channels, 1, 1});
}

Tensor random_flip(const Tensor& x, nn::Pass& pass, double p) {
  if (!are_pictures(x)) return no_pictures("random_flip", x);
  if (!pass.trains()) return x;
  return where(pass.uniform({x.extent(0), 1, 1, 1}) < static_cast<float>(p), flip(x, 3), x);
}

Tensor random_shift(const Tensor& x, nn::Pass& pass, std::int64_t most) {
  if (!are_pictures(x)) return no_pictures("random_shift", x);
  if (!pass.trains() || most < 1) return x;
  Tensor moved = x;
  for (const int axis : {2, 3}) {
    // An index outside the axis reads 0.
    const Tensor shift = draw_place(x, pass, 2 * most + 1) - static_cast<std::int32_t>(most);
    moved = gather(moved, axis, iota(x.shape(), axis) + shift);
  }
  return moved;
}

Tensor random_affine(const Tensor& x, nn::Pass& pass, const AffineRange& range) {
  if (!are_pictures(x)) return no_pictures("random_affine", x);
  if (!(range.least > 0 && range.most >= range.least))
    return Tensor(
        make_error(ErrorCode::invalid_argument, text("random_affine: found sizes ", range.least, " .. ",
                                                     range.most, ", expected numbers above 0 in order")));
  if (!pass.trains()) return x;
  const auto drawn = [&](double low, double high) {
    return Tensor(low) + pass.uniform({x.extent(0)}) * Tensor(high - low);
  };
  const Tensor angle = drawn(-range.turn, range.turn) * Tensor(std::numbers::pi / 180);
  const Tensor size = drawn(range.least, range.most);
  // Places are from -1 to 1 on both sides: a turn in pixels scales by the ratio of the sides.
  const double ratio = static_cast<double>(x.extent(2)) / static_cast<double>(x.extent(3));
  const Tensor c = cos(angle) / size, s = sin(angle) / size;
  const Tensor across = drawn(-2 * range.shift, 2 * range.shift),
               down = drawn(-2 * range.shift, 2 * range.shift);
  const Tensor rows[] = {stack({c, -s * Tensor(ratio), across}, 1),
                         stack({s * Tensor(1 / ratio), c, down}, 1)};
  const Tensor grid = affine_grid(stack(rows, 1), {x.extent(2), x.extent(3)});
  return grid_sample(x, grid, {.outside = range.outside});
}

Tensor random_colour(const Tensor& x, nn::Pass& pass, const ColourRange& range) {
  if (!are_pictures(x) || (range.saturation > 0 && x.extent(1) != 3)) return no_pictures("random_colour", x);
  if (!pass.trains()) return x;
  const auto factor = [&](double spread) {
    return Tensor(1 - spread) + pass.uniform({x.extent(0), 1, 1, 1}) * Tensor(2 * spread);
  };
  const auto held = [](const Tensor& pixels) { return clamp(pixels, 0, 1); };
  const auto grey = [](const Tensor& pixels) {  // the luma of ITU-R BT.601
    if (pixels.extent(1) != 3) return mean(pixels, {1}, true);
    return sum(pixels * Tensor::from(std::vector{0.299f, 0.587f, 0.114f}, {1, 3, 1, 1}), {1}, true);
  };
  Tensor y = x;
  if (range.brightness > 0) y = held(y * factor(range.brightness));
  if (range.contrast > 0) {
    const Tensor middle = mean(grey(y), {1, 2, 3}, true);
    y = held(middle + (y - middle) * factor(range.contrast));
  }
  if (range.saturation > 0) {
    const Tensor plain = grey(y);
    y = held(plain + (y - plain) * factor(range.saturation));
  }
  return y;
}

Tensor random_cutout(const Tensor& x, nn::Pass& pass, std::int64_t side) {
  if (!are_pictures(x)) return no_pictures("random_cutout", x);
  if (!pass.trains() || side < 1) return x;
  Tensor inside;
  for (const int axis : {2, 3}) {
    const Tensor first = draw_place(x, pass, x.extent(axis) + side - 1) - static_cast<std::int32_t>(side - 1);
    const Tensor place = iota(x.shape(), axis);
    const Tensor covered = logical_and(place >= first, place < first + static_cast<std::int32_t>(side));
    inside = axis == 2 ? covered : logical_and(inside, covered);
  }
  return where(inside, zeros_like(x), x);
}

}  // namespace imprint::training
