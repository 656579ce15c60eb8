#include "compute/training/augment.h"

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
