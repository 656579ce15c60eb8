// Images read at places that the graph computes.

#include <algorithm>
#include <cmath>

#include "compute/base/text.h"
#include "compute/tensor/build.h"
#include "compute/tensor/composites/image_parts.h"

namespace imprint {

using namespace tensor;

namespace {

// Mirrored into [low, high].
Tensor reflected(const Tensor& at, double low, double high) {
  const double span = high - low;
  if (span <= 0) return zeros_like(at);
  const Tensor distance = abs(at - low), turns = floor(distance / span), rest = distance - turns * span;
  const Tensor even = equal(turns - 2.0 * floor(turns / 2.0), 0.0f);
  return where(even, rest + low, high - rest);
}

// One of the places that a point reads along an axis.
struct SampledTap {
  Tensor place;   // int32, inside
  Tensor weight;  // empty: 1
  Tensor inside;  // empty: everywhere
};

// at: a whole number.
SampledTap sampled_tap(const SampleOptions& how, const Tensor& at, const Tensor& weight,
                       std::int64_t extent) {
  const double last = static_cast<double>(extent - 1);
  Tensor place = at;
  if (how.outside == PadMode::reflect)
    place = how.align_corners ? reflected(at, 0, last) : reflected(at, -0.5, last + 0.5);
  const Tensor inside = logical_and(at >= 0.0f, at <= Tensor(last));
  place = cast(clamp(round(place), 0, last), DType::int32);
  return {place, weight, how.outside == PadMode::constant ? inside : Tensor()};
}

// at: places of an axis, from 0 to extent - 1 inside.
std::vector<SampledTap> linear_taps(const SampleOptions& how, const Tensor& at, std::int64_t extent) {
  const Tensor low = floor(at), rest = at - low;
  return {sampled_tap(how, low, 1.0 - rest, extent), sampled_tap(how, low + 1.0, rest, extent)};
}

std::vector<SampledTap> grid_taps(const SampleOptions& how, const Tensor& grid, std::int64_t extent) {
  const double n = static_cast<double>(extent);
  Tensor at = how.align_corners ? (grid + 1.0) * ((n - 1) / 2) : ((grid + 1.0) * n - 1.0) / 2.0;
  if (how.mode != Resize::cubic && how.outside == PadMode::edge) at = clamp(at, 0, n - 1);
  if (how.mode != Resize::cubic && how.outside == PadMode::reflect) {
    at = how.align_corners ? reflected(at, 0, n - 1) : reflected(at, -0.5, n - 0.5);
    at = clamp(at, 0, n - 1);
  }
  if (how.mode == Resize::nearest) return {sampled_tap(how, round(at), Tensor(), extent)};
  if (how.mode == Resize::linear) return linear_taps(how, at, extent);
  const Tensor low = floor(at), rest = at - low;
  std::vector<SampledTap> taps;
  constexpr double a = -0.75;
  for (int k = -1; k <= 2; ++k) {
    const Tensor d = abs(rest - static_cast<double>(k));
    const Tensor weight =
        k == 0 || k == 1 ? ((a + 2) * d - (a + 3)) * d * d + 1.0 : ((a * d - 5 * a) * d + 8 * a) * d - 4 * a;
    taps.push_back(sampled_tap(how, low + static_cast<double>(k), weight, extent));
  }
  return taps;
}

// The taps of two axes together; places count row-major.
SampledTap joined(const SampledTap& outer, const SampledTap& inner, std::int64_t extent) {
  return {outer.place * static_cast<int>(extent) + inner.place,
          is_empty(outer.weight) ? Tensor() : outer.weight * inner.weight,
          is_empty(outer.inside) ? Tensor() : logical_and(outer.inside, inner.inside)};
}

// flat [lines, channels, plane] at taps [lines, 1, count], added: [lines, channels, count].
Tensor sampled(const Tensor& flat, std::span<const SampledTap> taps) {
  Tensor out;
  for (const SampledTap& tap : taps) {
    // -1 reads 0.
    const Tensor place = is_empty(tap.inside) ? tap.place : where(tap.inside, tap.place, -1);
    const Shape wide{flat.extent(0), flat.extent(1), place.extent(2)};
    Tensor term = gather(flat, 2, expand(place, wide));
    if (!is_empty(tap.weight)) term = term * tap.weight;
    out = is_empty(out) ? term : out + term;
  }
  return out;
}

}  // namespace

Tensor grid_sample(const Tensor& x, const Tensor& grid, const SampleOptions& options) {
  constexpr std::string_view op = "grid_sample";
  if (std::optional<Tensor> refused = refuse_image(op, x)) return *refused;
  if (!grid.ok()) return grid;
  const int places = places_of(x);
  if (grid.dtype() != DType::float32) return bad_dtype(op, grid, "float32");
  if (grid.rank() != x.rank() || grid.extent(0) != x.extent(0) || grid.extent(grid.rank() - 1) != places ||
      x.shape().element_count() == 0)
    return failure(ErrorCode::shape_mismatch, op,
                   text("found grid ", describe(grid), " for ", describe(x), ", expected [batch, places..., ",
                        places, "] and an image that is not empty"));
  if (options.outside == PadMode::wrap || (options.mode == Resize::cubic && places > 2))
    return failure(
        ErrorCode::invalid_argument, op,
        text("found ", options.outside == PadMode::wrap ? "outside wrap" : "cubic samples of volumes",
             ", expected constant, edge or reflect, and cubic for one or two axes"));
  const std::int64_t batch = x.extent(0), channels = x.extent(1);
  std::int64_t count = 1, plane = 1;
  Shape shape{batch, channels};
  for (int i = 0; i < places; ++i) {
    count *= grid.extent(1 + i);
    plane *= x.extent(2 + i);
    shape.append(grid.extent(1 + i));
  }
  const Tensor points = reshape(grid, {batch, count, places});
  // Outermost axis first; the grid names the innermost axis first.
  std::vector<SampledTap> all;
  for (int axis = 0; axis < places; ++axis) {
    const Tensor at = reshape(narrow(points, 2, places - 1 - axis, 1), {batch, 1, count});
    const std::vector<SampledTap> taps = grid_taps(options, at, x.extent(2 + axis));
    std::vector<SampledTap> next;
    if (axis == 0) next = taps;
    for (const SampledTap& outer : all)
      for (const SampledTap& tap : taps) next.push_back(joined(outer, tap, x.extent(2 + axis)));
    all = std::move(next);
  }
  return reshape(sampled(reshape(x, {batch, channels, plane}), all), shape);
}

Tensor affine_grid(const Tensor& theta, std::span<const std::int64_t> places, bool align_corners) {
  if (!theta.ok()) return theta;
  const int axes = static_cast<int>(places.size());
  const Shape grid(places.first(std::min<std::size_t>(places.size(), 3)));
  const bool fits = (axes == 2 || axes == 3) && theta.rank() == 3 && theta.extent(1) == axes &&
                    theta.extent(2) == axes + 1 && theta.dtype() == DType::float32;
  if (!fits || std::ranges::any_of(places, [](std::int64_t extent) { return extent < 1; }))
    return failure(ErrorCode::shape_mismatch, "affine_grid",
                   text("found theta ", describe(theta), " and places ", grid.text(),
                        ", expected float32 [batch, axes, axes + 1] and 2 or 3 axes of 1 or more"));
  const std::int64_t count = grid.element_count();
  Shape shape{theta.extent(0)};
  for (const std::int64_t extent : places) shape.append(extent);
  shape.append(axes);
  std::vector<Tensor> columns;
  for (int i = axes - 1; i >= 0; --i) {
    const double n = static_cast<double>(grid[i]);
    const Tensor index = cast(iota(grid, i), DType::float32);
    const Tensor at = align_corners ? (n > 1 ? index * (2 / (n - 1)) - 1.0 : zeros_like(index))
                                    : (index * 2.0 + 1.0) / n - 1.0;
    columns.push_back(reshape(at, {count, 1}));
  }
  columns.push_back(ones({count, 1}));
  return reshape(matmul(concat(columns, 1), transpose(theta)), shape);
}

Tensor affine_grid(const Tensor& theta, std::initializer_list<std::int64_t> places, bool align_corners) {
  return affine_grid(theta, std::span<const std::int64_t>(places.begin(), places.size()), align_corners);
}

namespace {

// Whether offsets [..., rows, columns] are one for each place of the kernel in the image.
bool covers_places(const Tensor& offsets, const Tensor& x, const Tensor& weight,
                   const ConvolutionOptions& options) {
  for (int axis = 0; axis < 2; ++axis) {
    const std::int64_t reach = options.dilation[axis] * (weight.extent(2 + axis) - 1),
                       room = x.extent(2 + axis) + 2 * options.padding[axis] - reach - 1;
    if (options.dilation[axis] < 1 || options.stride[axis] < 1 ||
        offsets.extent(2 + axis) != (room < 0 ? 0 : room / options.stride[axis] + 1))
      return false;
  }
  return true;
}

}  // namespace

Tensor deformable_convolution(const Tensor& x, const Tensor& weight, const Tensor& bias,
                              const Tensor& offsets, const Tensor& mask, const ConvolutionOptions& options) {
  constexpr std::string_view op = "deformable_convolution";
  if (std::optional<Tensor> refused = refuse_image(op, x)) return *refused;
  for (const Tensor* operand : {&weight, &offsets})
    if (!operand->ok()) return *operand;
  for (const Tensor* operand : {&bias, &mask})
    if (!operand->ok() && !is_empty(*operand)) return *operand;
  const std::int64_t groups = options.groups, channels = x.extent(1), out = weight.extent(0);
  const std::int64_t taps = weight.rank() == 4 ? weight.extent(2) * weight.extent(3) : 0;
  const std::int64_t parts = taps > 0 && offsets.rank() == 4 ? offsets.extent(1) / (2 * taps) : 0;
  const bool fits = x.rank() == 4 && channels * x.extent(2) * x.extent(3) > 0 && groups >= 1 && parts >= 1 &&
                    channels % groups == 0 && out % groups == 0 && weight.extent(1) == channels / groups &&
                    channels % parts == 0 && offsets.extent(0) == x.extent(0) &&
                    offsets.extent(1) == 2 * parts * taps && !options.same &&
                    covers_places(offsets, x, weight, options);
  const Shape masks{x.extent(0), parts * taps, offsets.extent(2), offsets.extent(3)};
  if (!fits || (!is_empty(mask) && mask.shape() != masks) || (!is_empty(bias) && bias.shape() != Shape{out}))
    return failure(ErrorCode::shape_mismatch, op,
                   text("found ", describe(x), ", weight ", describe(weight), ", offsets ", describe(offsets),
                        is_empty(mask) ? std::string() : ", mask " + describe(mask), " and ", groups,
                        " groups, expected images, kernels, offsets and masks that fit"));
  const std::int64_t batch = x.extent(0), rows = offsets.extent(2), columns = offsets.extent(3);
  if (batch == 0) return zeros({batch, out, rows, columns});
  // [batch * parts, 1, taps * places] along each axis: the tap's own place, plus its offset.
  const Shape taken{batch * parts, taps, rows, columns};
  const Tensor moved = reshape(offsets, {batch * parts, taps, 2, rows, columns});
  const Tensor tap = iota(taken, 1);
  const int wide = static_cast<int>(weight.extent(3));
  std::vector<std::vector<SampledTap>> along;
  for (int axis = 0; axis < 2; ++axis) {
    const Tensor step = axis == 0 ? div(tap, Tensor(wide)) : remainder(tap, Tensor(wide));
    const Tensor base = iota(taken, 2 + axis) * static_cast<int>(options.stride[axis]) +
                        step * static_cast<int>(options.dilation[axis]) -
                        static_cast<int>(options.padding[axis]);
    const Tensor at = reshape(cast(base, DType::float32) + squeeze(narrow(moved, 2, axis, 1), 2),
                              {batch * parts, 1, taps * rows * columns});
    // An infinite offset leads outside, as a long one.
    const std::int64_t extent = x.extent(2 + axis);
    along.push_back(linear_taps({}, clamp(at, -2, static_cast<double>(extent + 1)), extent));
  }
  std::vector<SampledTap> all;
  for (const SampledTap& row : along[0])
    for (const SampledTap& column : along[1]) all.push_back(joined(row, column, x.extent(3)));
  Tensor seen = sampled(reshape(x, {batch * parts, channels / parts, x.extent(2) * x.extent(3)}), all);
  if (!is_empty(mask)) seen = seen * reshape(mask, {batch * parts, 1, taps * rows * columns});
  const std::int64_t fan_in = channels / groups * taps;
  const Tensor result = reshape(matmul(reshape(weight, {1, groups, out / groups, fan_in}),
                                       reshape(seen, {batch, groups, fan_in, rows * columns})),
                                {batch, out, rows, columns});
  return is_empty(bias) ? result : result + reshape(bias, {out, 1, 1});
}

}  // namespace imprint
