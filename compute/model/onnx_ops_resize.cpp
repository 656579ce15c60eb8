// Resize and Upsample: weighted sums of a few places, axis by axis. GridSample and AffineGrid: places that
// the graph computes.

#include <algorithm>
#include <array>
#include <cmath>

#include "compute/base/quote.h"
#include "compute/base/text.h"
#include "compute/model/onnx_op.h"
#include "compute/tensor/composites.h"

namespace imprint::onnx {
namespace {

// Keys, Cubic Convolution Interpolation for Digital Image Processing, 1981.
double cubic_kernel(double distance, double a) {
  const double d = std::fabs(distance);
  if (d <= 1) return ((a + 2) * d - (a + 3)) * d * d + 1;
  return d < 2 ? ((a * d - 5 * a) * d + 8 * a) * d - 4 * a : 0;
}

struct ResizeForm {
  std::string mode, coordinates, nearest;
  double cubic_a = -0.75, extrapolated = 0;
  bool exclude_outside = false, antialias = false;
};

// How one axis is resized. `scale` is the model's, which may differ from places / extent.
struct ResizeAxis {
  int axis = 0;
  std::int64_t extent = 0, places = 0;
  float scale = 1, roi_start = 0, roi_end = 1;
};

// The place in the input of output place i, in float32 as exporters' tests expect of ties.
float original_place(const ResizeForm& form, const ResizeAxis& axis, std::int64_t i) {
  const float at = static_cast<float>(i), in = static_cast<float>(axis.extent), scale = axis.scale;
  // The specification's length, which a scale need not make whole.
  const float whole = static_cast<float>(axis.places), real = scale * in;
  const float out = std::fabs(real - whole) < 1e-3f ? whole : real;
  if (form.coordinates == "asymmetric") return at / scale;
  if (form.coordinates == "tf_half_pixel_for_nn") return (at + 0.5f) / scale;  // opset 11 only
  if (form.coordinates == "align_corners") return axis.places == 1 ? 0 : at * (in - 1) / (out - 1);
  if (form.coordinates == "pytorch_half_pixel" && axis.places == 1) return 0;
  if (form.coordinates == "half_pixel_symmetric")
    return in / 2 * (1 - out / (scale * in)) + (at + 0.5f) / scale - 0.5f;
  if (form.coordinates == "tf_crop_and_resize")
    return axis.places > 1
               ? axis.roi_start * (in - 1) + at * (axis.roi_end - axis.roi_start) * (in - 1) / (out - 1)
               : 0.5f * (axis.roi_start + axis.roi_end) * (in - 1);
  return (at + 0.5f) / scale - 0.5f;
}

std::int64_t nearest_place(const std::string& mode, float at) {
  if (mode == "floor") return static_cast<std::int64_t>(std::floor(at));
  if (mode == "ceil") return static_cast<std::int64_t>(std::ceil(at));
  return static_cast<std::int64_t>(mode == "round_prefer_ceil" ? std::floor(at + 0.5f)
                                                               : std::ceil(at - 0.5f));
}

// Output place i is the sum over k of weights[k][i] * input place places[k][i].
struct Taps {
  std::vector<std::vector<std::int32_t>> places;
  std::vector<std::vector<float>> weights;
};

// The reach of the filter to each side; an antialiased one grows as the image shrinks.
std::int64_t taps_of_side(const ResizeForm& form, const ResizeAxis& axis) {
  if (form.mode == "nearest") return 1;
  const double half = form.mode == "cubic" ? 2 : 1;
  const double shrink = form.antialias ? std::min(1.0, static_cast<double>(axis.scale)) : 1;
  return static_cast<std::int64_t>(std::min(std::ceil(half / shrink), 1e6));
}

Taps taps_of(const ResizeForm& form, const ResizeAxis& axis) {
  const bool nearest = form.mode == "nearest", cubic = form.mode == "cubic";
  const std::int64_t side = taps_of_side(form, axis), count = nearest ? 1 : 2 * side;
  const double shrink = form.antialias ? std::min(1.0, static_cast<double>(axis.scale)) : 1;
  Taps taps;
  taps.places.resize(static_cast<std::size_t>(count));
  taps.weights.resize(static_cast<std::size_t>(count));
  std::vector<double> weights(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < axis.places; ++i) {
    const float at = std::clamp(original_place(form, axis, i), -1e9f, 1e9f);
    const double floor = std::floor(static_cast<double>(at)), rest = static_cast<double>(at) - floor;
    const std::int64_t first =
        nearest ? nearest_place(form.nearest, at) : static_cast<std::int64_t>(floor) + 1 - side;
    double sum = 0;
    for (std::int64_t k = 0; k < count; ++k) {
      const double distance = (static_cast<double>(k + 1 - side) - rest) * shrink;
      double weight = nearest ? 1
                      : cubic ? cubic_kernel(distance, form.cubic_a)
                              : std::max(0.0, 1 - std::fabs(distance));
      const bool outside = first + k < 0 || first + k >= axis.extent;
      if (form.exclude_outside && outside && !nearest) weight = 0;
      weights[static_cast<std::size_t>(k)] = weight;
      sum += weight;
    }
    const bool scaled = sum != 0 && (form.exclude_outside || form.antialias);
    for (std::int64_t k = 0; k < count; ++k) {
      const auto at_k = static_cast<std::size_t>(k);
      taps.places[at_k].push_back(
          static_cast<std::int32_t>(std::clamp<std::int64_t>(first + k, 0, axis.extent - 1)));
      taps.weights[at_k].push_back(static_cast<float>(scaled ? weights[at_k] / sum : weights[at_k]));
    }
  }
  return taps;
}

Shape along(int rank, int axis, std::int64_t extent) {
  Shape shape;
  for (int i = 0; i < rank; ++i) shape.append(i == axis ? extent : 1);
  return shape;
}

// The extent of repeated elements, when each input place is repeated equally often.
std::int64_t repeats_of(const std::vector<std::int32_t>& places, std::int64_t extent) {
  const auto count = static_cast<std::int64_t>(places.size());
  if (count % extent != 0) return 0;
  for (std::int64_t i = 0; i < count; ++i)
    if (places[static_cast<std::size_t>(i)] != i / (count / extent)) return 0;
  return count / extent;
}

Tensor resized(OpContext& context, const Tensor& x, const ResizeForm& form, const ResizeAxis& axis) {
  const std::int64_t count = form.mode == "nearest" ? 1 : 2 * taps_of_side(form, axis);
  if (!context.may_make(2 * count) || !context.mover().may_fold(ElementType::float32, count * axis.places)) {
    context.unsupported("resizing of this size");
    return x;
  }
  const Taps taps = taps_of(form, axis);
  if (form.mode == "nearest")
    if (const std::int64_t times = repeats_of(taps.places[0], axis.extent); times > 0)
      return imprint::repeat_interleave(x, axis.axis, times);
  Tensor out;
  for (std::size_t k = 0; k < taps.places.size(); ++k) {
    Tensor term = imprint::take(x, axis.axis, Tensor::from_ints(taps.places[k], {axis.places}));
    if (form.mode == "nearest") return term;
    term = term * Tensor::from(taps.weights[k], along(x.rank(), axis.axis, axis.places));
    out = k == 0 ? term : out + term;
  }
  return out;
}

// Where the axis reaches beyond the input: there tf_crop_and_resize gives one value.
Tensor inside_of(const ResizeForm& form, const ResizeAxis& axis, int rank) {
  std::vector<float> flags;
  for (std::int64_t i = 0; i < axis.places; ++i) {
    const float at = original_place(form, axis, i);
    flags.push_back(at >= 0 && at <= static_cast<float>(axis.extent - 1) ? 1.0f : 0.0f);
  }
  return imprint::greater(Tensor::from(flags, along(rank, axis.axis, axis.places)), 0.5f);
}

void resize_by(OpContext& context, const ResizeForm& form, const std::vector<ResizeAxis>& axes) {
  const Value from = context.value(0);
  std::vector<std::int64_t> extents = extents_of(from.shape());
  for (const ResizeAxis& axis : axes) {
    if (!context.require(axis.extent > 0 && axis.places > 0 && axis.scale > 0 && std::isfinite(axis.scale),
                         text("axis ", axis.axis, " of ", from.shape().text(), ": found ", axis.places,
                              " places, expected at least 1")))
      return;
    extents[static_cast<std::size_t>(axis.axis)] = axis.places;
  }
  context.checked(extents);
  if (context.failure()) return;
  const bool crops = form.coordinates == "tf_crop_and_resize";
  Tensor x = from.tensor();
  if (form.mode != "nearest") x = imprint::cast(x, DType::float32);
  for (const ResizeAxis& axis : axes)
    if (crops || axis.places != axis.extent || axis.scale != 1) x = resized(context, x, form, axis);
  for (const ResizeAxis& axis : axes) {
    if (context.failure()) return;
    if (crops && !context.mover().may_fold(ElementType::float32, axis.places))
      return context.unsupported("resizing of this size");
    if (crops) x = imprint::where(inside_of(form, axis, x.rank()), x, form.extrapolated);
  }
  if (context.failure()) return;
  context.set(0, stored_as(context, from.type(), imprint::cast(x, run_time_dtype(from.type()))), from.type());
}

template <std::size_t Count>
bool is_one_of(OpContext& context, const char* name, const std::string& found,
               const std::array<std::string_view, Count>& known) {
  if (std::ranges::find(known, found) != known.end()) return true;
  context.unsupported(text(name, " ", quote(found)));
  return false;
}

ResizeForm resize_form(OpContext& context, bool old) {
  ResizeForm form;
  form.mode = context.string_attribute("mode", "nearest");
  if (form.mode == "bilinear" || form.mode == "trilinear") form.mode = "linear";
  form.coordinates =
      old ? "asymmetric" : context.string_attribute("coordinate_transformation_mode", "half_pixel");
  form.nearest = old ? "floor" : context.string_attribute("nearest_mode", "round_prefer_floor");
  form.cubic_a = context.float_attribute("cubic_coeff_a", -0.75);
  form.extrapolated = context.float_attribute("extrapolation_value", 0);
  form.exclude_outside = context.int_attribute("exclude_outside", 0) != 0;
  form.antialias = context.int_attribute("antialias", 0) != 0;
  using Names = std::array<std::string_view, 7>;
  is_one_of(context, "mode", form.mode, std::array<std::string_view, 3>{"nearest", "linear", "cubic"});
  is_one_of(context, "coordinate_transformation_mode", form.coordinates,
            Names{"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric",
                  "tf_crop_and_resize", "tf_half_pixel_for_nn"});
  is_one_of(context, "nearest_mode", form.nearest,
            std::array<std::string_view, 4>{"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"});
  return form;
}

void resize(OpContext& context) {
  const Value from = context.value(0);
  const bool upsample = context.node().op_type == "Upsample", old = upsample || context.opset() < 11;
  const ResizeForm form = resize_form(context, old);
  std::vector<std::int64_t> raw = context.ints_attribute("axes");
  if (raw.empty())
    for (int i = 0; i < from.rank(); ++i) raw.push_back(i);
  const Axes axes = context.axes(raw, from.rank());
  if (context.failure()) return;
  const int scale_input = old ? 1 : 2;
  const auto given = [&](int input) {
    return context.has(input) && context.shape(input).element_count() > 0;
  };
  const bool by_sizes = !old && given(3);
  std::vector<float> scales, roi;
  std::vector<std::int64_t> sizes;
  if (by_sizes)
    sizes = context.known_ints(3, "sizes");
  else if (upsample && context.opset() < 9)
    scales = context.floats_attribute("scales");
  else
    scales = context.known_floats(scale_input, "scales");
  if (form.coordinates == "tf_crop_and_resize") roi = context.known_floats(1, "roi", 2 * Shape::kMaxRank);
  const std::size_t count = axes.size();
  if (!context.require(
          (by_sizes ? sizes.size() : scales.size()) == count && (roi.empty() || roi.size() == 2 * count),
          text("sizes, scales or roi: expected one for each of ", count, " axes")))
    return;
  const std::string policy = context.string_attribute("keep_aspect_ratio_policy", "stretch");
  std::vector<ResizeAxis> along;
  for (std::size_t i = 0; i < count; ++i) {
    ResizeAxis axis{.axis = axes[i], .extent = from.shape()[axes[i]]};
    const float in = static_cast<float>(axis.extent);
    axis.scale = by_sizes ? static_cast<float>(sizes[i]) / in : scales[i];
    const double places = std::floor(static_cast<double>(in) * static_cast<double>(axis.scale));
    axis.places = by_sizes                         ? sizes[i]
                  : places >= 0 && places < 0x1p31 ? static_cast<std::int64_t>(places)
                                                   : 0;
    if (roi.size() == 2 * count) {
      axis.roi_start = roi[i];
      axis.roi_end = roi[i + count];
    }
    along.push_back(axis);
  }
  if (by_sizes && policy != "stretch" && !along.empty()) {
    float scale = along[0].scale;
    for (const ResizeAxis& axis : along)
      scale = policy == "not_larger" ? std::min(scale, axis.scale) : std::max(scale, axis.scale);
    for (ResizeAxis& axis : along) {
      axis.scale = scale;
      axis.places = std::llround(
          std::clamp(static_cast<double>(scale) * static_cast<double>(axis.extent), 0.0, 0x1p31));
    }
  }
  resize_by(context, form, along);
}

// ---- GridSample ----

struct Sampling {
  std::string mode, padding;
  bool corners = false;
};

// Mirrored into [low, high].
Tensor reflected(const Tensor& at, double low, double high) {
  const double span = high - low;
  if (span <= 0) return imprint::zeros_like(at);
  const Tensor distance = imprint::abs(at - low), turns = imprint::floor(distance / span),
               rest = distance - turns * span;
  const Tensor even = imprint::equal(turns - 2.0 * imprint::floor(turns / 2.0), 0.0f);
  return imprint::where(even, rest + low, high - rest);
}

// The places of one tap as whole numbers, and whether they are inside.
struct GridTap {
  Tensor place, weight, inside;
};

GridTap grid_tap(const Sampling& how, const Tensor& at, const Tensor& weight, std::int64_t extent) {
  const double last = static_cast<double>(extent - 1);
  Tensor place = at;
  if (how.padding == "reflection")
    place = how.corners ? reflected(at, 0, last) : reflected(at, -0.5, last + 0.5);
  const Tensor inside = imprint::logical_and(at >= 0.0f, at <= Tensor(last));
  place = imprint::cast(imprint::clamp(imprint::round(place), 0, last), DType::int32);
  return {place, weight, how.padding == "zeros" ? inside : Tensor()};
}

std::vector<GridTap> grid_taps(const Sampling& how, const Tensor& grid, std::int64_t extent) {
  const double n = static_cast<double>(extent);
  Tensor at = how.corners ? (grid + 1.0) * ((n - 1) / 2) : ((grid + 1.0) * n - 1.0) / 2.0;
  const bool cubic = how.mode == "bicubic" || how.mode == "cubic";
  if (!cubic && how.padding == "border") at = imprint::clamp(at, 0, n - 1);
  if (!cubic && how.padding == "reflection") {
    at = how.corners ? reflected(at, 0, n - 1) : reflected(at, -0.5, n - 0.5);
    at = imprint::clamp(at, 0, n - 1);
  }
  if (how.mode == "nearest") return {grid_tap(how, imprint::round(at), Tensor(), extent)};
  const Tensor floor = imprint::floor(at), rest = at - floor;
  if (!cubic) return {grid_tap(how, floor, 1.0 - rest, extent), grid_tap(how, floor + 1.0, rest, extent)};
  std::vector<GridTap> taps;
  constexpr double a = -0.75;
  for (int k = -1; k <= 2; ++k) {
    const Tensor d = imprint::abs(rest - static_cast<double>(k));
    const Tensor weight =
        k == 0 || k == 1 ? ((a + 2) * d - (a + 3)) * d * d + 1.0 : ((a * d - 5 * a) * d + 8 * a) * d - 4 * a;
    taps.push_back(grid_tap(how, floor + static_cast<double>(k), weight, extent));
  }
  return taps;
}

void grid_sample(OpContext& context) {
  const Tensor x = context.tensor(0), grid = context.tensor(1);
  const int places = x.rank() - 2;
  Sampling how{context.string_attribute("mode", "linear"), context.string_attribute("padding_mode", "zeros"),
               context.int_attribute("align_corners", 0) != 0};
  is_one_of(context, "mode", how.mode,
            std::array<std::string_view, 5>{"linear", "bilinear", "nearest", "cubic", "bicubic"});
  is_one_of(context, "padding_mode", how.padding,
            std::array<std::string_view, 3>{"zeros", "border", "reflection"});
  if (!context.require(places >= 1 && places <= 3 && grid.rank() == x.rank() &&
                           grid.extent(0) == x.extent(0) && grid.extent(grid.rank() - 1) == places &&
                           x.shape().element_count() > 0,
                       text("grid ", grid.shape().text(), " does not fit input ", x.shape().text())))
    return;
  const bool cubic = how.mode == "bicubic" || how.mode == "cubic";
  if (cubic && places > 2) return context.unsupported("cubic sampling of volumes");
  if (!context.may_make(cubic ? 512 : 128)) return;
  const std::int64_t batch = x.extent(0), channels = x.extent(1);
  std::int64_t count = 1, plane = 1;
  for (int i = 0; i < places; ++i) {
    count *= grid.extent(1 + i);
    plane *= x.extent(2 + i);
  }
  const Tensor flat = imprint::reshape(x, {batch, channels, plane}),
               points = imprint::reshape(grid, {batch, count, places});
  // One tap per axis at a time, outermost axis first; the grid names the innermost axis first.
  std::vector<GridTap> sum{{Tensor(), Tensor(), Tensor()}};
  for (int axis = 0; axis < places; ++axis) {
    const Tensor at = imprint::reshape(imprint::narrow(points, 2, places - 1 - axis, 1), {batch, 1, count});
    const std::int64_t extent = x.extent(2 + axis);
    std::vector<GridTap> next;
    for (const GridTap& outer : sum)
      for (const GridTap& tap : grid_taps(how, at, extent)) {
        if (axis == 0) {
          next.push_back(tap);
          continue;
        }
        next.push_back({outer.place * static_cast<int>(extent) + tap.place,
                        how.mode == "nearest" ? Tensor() : outer.weight * tap.weight,
                        how.padding == "zeros" ? imprint::logical_and(outer.inside, tap.inside) : Tensor()});
      }
    sum = std::move(next);
  }
  Tensor out;
  for (std::size_t k = 0; k < sum.size(); ++k) {
    Tensor place = sum[k].place;
    if (how.padding == "zeros") place = imprint::where(sum[k].inside, place, -1);  // which reads 0
    Tensor term = imprint::gather(flat, 2, imprint::expand(place, {batch, channels, count}));
    if (how.mode != "nearest") term = term * sum[k].weight;
    out = k == 0 ? term : out + term;
  }
  Shape shape{batch, channels};
  for (int i = 0; i < places; ++i) shape.append(grid.extent(1 + i));
  context.set(0, imprint::reshape(out, shape));
}

// A convolution whose taps are moved by offsets [batch, 2 * groups of offsets * taps, rows, columns], each
// times a mask.
void deform_conv(OpContext& context) {
  const Tensor x = context.tensor(0), weight = context.tensor(1), offset = context.tensor(2);
  const std::int64_t groups = context.int_attribute("group", 1),
                     parts = context.int_attribute("offset_group", 1);
  const Extents strides = context.ints_attribute("strides", {1, 1}),
                dilations = context.ints_attribute("dilations", {1, 1}),
                pads = context.ints_attribute("pads", {0, 0, 0, 0});
  const auto sane = [](std::int64_t value) { return value >= 0 && value < (1 << 20); };
  if (!context.require(x.rank() == 4 && weight.rank() == 4 && offset.rank() == 4 && groups >= 1 &&
                           parts >= 1 && x.extent(1) % parts == 0 && x.extent(1) % groups == 0 &&
                           weight.extent(0) % groups == 0 && weight.extent(1) == x.extent(1) / groups &&
                           strides.size() == 2 && dilations.size() == 2 && pads.size() == 4 &&
                           std::ranges::all_of(strides, sane) && std::ranges::all_of(dilations, sane) &&
                           std::ranges::all_of(pads, sane) && x.shape().element_count() > 0,
                       text("input ", x.shape().text(), ", weight ", weight.shape().text(), " and offsets ",
                            offset.shape().text(), ": expected images that fit")))
    return;
  const std::int64_t batch = x.extent(0), channels = x.extent(1), taps = weight.extent(2) * weight.extent(3),
                     rows = offset.extent(2), columns = offset.extent(3), places = rows * columns;
  context.checked(Extents{batch, channels, taps, places});
  if (!context.require(offset.extent(0) == batch && taps > 0 && offset.extent(1) == 2 * parts * taps,
                       "offsets " + offset.shape().text() + " do not fit the kernel") ||
      !context.may_make(128))
    return;
  // [batch * parts, 1, taps * places] along each axis: where the tap would be, plus its offset.
  const Shape taken{batch * parts, taps, rows, columns};
  const Tensor moved = imprint::reshape(offset, {batch * parts, taps, 2, rows, columns});
  const Tensor tap = imprint::iota(taken, 1);
  const int wide = static_cast<int>(weight.extent(3));
  std::vector<std::vector<GridTap>> along;
  for (int axis = 0; axis < 2; ++axis) {
    const auto a = static_cast<std::size_t>(axis);
    const Tensor step = axis == 0 ? imprint::div(tap, Tensor(wide)) : imprint::remainder(tap, Tensor(wide));
    const Tensor base = imprint::iota(taken, 2 + axis) * static_cast<int>(strides[a]) +
                        step * static_cast<int>(dilations[a]) - static_cast<int>(pads[a]);
    const Tensor at = imprint::reshape(
        imprint::cast(base, DType::float32) + imprint::squeeze(imprint::narrow(moved, 2, axis, 1), 2),
        {batch * parts, 1, taps * places});
    const Tensor floor = imprint::floor(at), rest = at - floor;
    const Sampling how{"linear", "zeros", true};
    along.push_back({grid_tap(how, floor, 1.0 - rest, x.extent(2 + axis)),
                     grid_tap(how, floor + 1.0, rest, x.extent(2 + axis))});
  }
  const std::int64_t each = channels / parts;
  const Tensor flat = imprint::reshape(x, {batch * parts, each, x.extent(2) * x.extent(3)});
  Tensor seen;
  for (const GridTap& row : along[0])
    for (const GridTap& column : along[1]) {
      const Tensor place = imprint::where(imprint::logical_and(row.inside, column.inside),
                                          row.place * static_cast<int>(x.extent(3)) + column.place, -1);
      const Tensor term =
          imprint::gather(flat, 2, imprint::expand(place, {batch * parts, each, taps * places})) *
          (row.weight * column.weight);
      seen = seen.ok() ? seen + term : term;
    }
  if (context.has(4)) {
    if (!context.require(context.shape(4) == Shape{batch, parts * taps, rows, columns},
                         "mask " + context.shape(4).text() + " does not fit the offsets"))
      return;
    seen = seen * imprint::reshape(context.tensor(4), {batch * parts, 1, taps * places});
  }
  const std::int64_t out = weight.extent(0);
  const Tensor kernels = imprint::reshape(weight, {1, groups, out / groups, channels / groups * taps});
  Tensor result =
      imprint::matmul(kernels, imprint::reshape(seen, {batch, groups, channels / groups * taps, places}));
  result = imprint::reshape(result, {batch, out, rows, columns});
  if (context.has(3)) result = result + imprint::reshape(context.tensor(3), {out, 1, 1});
  context.set(0, result);
}

// theta [n, 2, 3] or [n, 3, 4] -> [n, places..., 2 or 3].
void affine_grid(OpContext& context) {
  const Tensor theta = context.tensor(0);
  const std::vector<std::int64_t> size = context.known_ints(1, "size");
  const int places = static_cast<int>(size.size()) - 2;
  const bool corners = context.int_attribute("align_corners", 0) != 0;
  if (!context.require((places == 2 || places == 3) && theta.shape() == Shape{size[0], places, places + 1},
                       text("theta ", theta.shape().text(), " does not fit the size")))
    return;
  const Shape all = context.checked(size);
  if (context.failure()) return;
  std::int64_t count = 1;
  Shape grid, shape{size[0]};
  for (int i = 0; i < places; ++i) {
    count *= all[2 + i];
    grid.append(all[2 + i]);
    shape.append(all[2 + i]);
  }
  shape.append(places);
  std::vector<Tensor> columns;
  for (int i = places - 1; i >= 0; --i) {
    const double n = static_cast<double>(all[2 + i]);
    const Tensor index = imprint::cast(imprint::iota(grid, i), DType::float32);
    const Tensor at = corners ? (n > 1 ? index * (2 / (n - 1)) - 1.0 : imprint::zeros_like(index))
                              : (index * 2.0 + 1.0) / n - 1.0;
    columns.push_back(imprint::reshape(at, {count, 1}));
  }
  columns.push_back(imprint::ones({count, 1}));
  context.set(
      0, imprint::reshape(imprint::matmul(imprint::concat(columns, 1), imprint::transpose(theta)), shape));
}

constexpr std::array kResizeOps{
    OpHandler{"Resize", resize},          OpHandler{"Upsample", resize},
    OpHandler{"GridSample", grid_sample}, OpHandler{"DeformConv", deform_conv},
    OpHandler{"AffineGrid", affine_grid},
};

}  // namespace

std::span<const OpHandler> resize_ops() { return kResizeOps; }

}  // namespace imprint::onnx
