// Resize and Upsample: weighted sums of a few places, axis by axis. GridSample and AffineGrid: places that
// the graph computes.

#include <algorithm>
#include <array>
#include <cmath>

#include "compute/base/quote.h"
#include "compute/base/text.h"
#include "compute/model/onnx/op.h"
#include "compute/tensor/composites/composites.h"
#include "compute/tensor/composites/images.h"

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
    return in / 2 * (1 - whole / real) + (at + 0.5f) / scale - 0.5f;
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
  constexpr std::int64_t kOperationsOfTap = 6;
  const std::int64_t count = form.mode == "nearest" ? 1 : 2 * taps_of_side(form, axis);
  if (!context.may_make(kOperationsOfTap * count) ||
      !context.mover().may_fold(ElementType::float32, count * axis.places)) {
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

constexpr std::int64_t kMostNamedPlaces = 1 << 20;  // looked at before they are counted

// Along an axis whose extent each run chooses, places may be repeated.
bool fits_named(const ResizeForm& form, const ResizeAxis& axis) {
  return axis.places <= kMostNamedPlaces && form.mode == "nearest" && form.coordinates != "align_corners" &&
         form.coordinates != "tf_crop_and_resize" && axis.places % axis.extent == 0 &&
         axis.scale == static_cast<float>(axis.places / axis.extent) &&
         repeats_of(taps_of(form, axis).places[0], axis.extent) > 0;
}

void resize_by(OpContext& context, const ResizeForm& form, const std::vector<ResizeAxis>& axes) {
  const Value from = context.value(0);
  std::vector<std::int64_t> extents = extents_of(from.shape());
  if (!context.require(std::isfinite(form.cubic_a), "cubic_coeff_a: expected a finite number")) return;
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
  for (const ResizeAxis& axis : axes) {
    const bool changes = crops || axis.places != axis.extent || axis.scale != 1;
    if (from.shape().is_named(axis.axis) && changes && !fits_named(form, axis))
      return context.unsupported(text("axis ", axis.axis, ": found input ", from.shape().text(),
                                      ", expected a fixed extent, or repeated places (nearest). Give it a "
                                      "number."));
  }
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

// The sizes; where the extent of a run decides, of the bound.
std::vector<std::int64_t> sizes_along(OpContext& context, const Shape& from, const Axes& axes) {
  const auto wanted = symbolic_list(context, 3, "sizes");
  std::vector<std::int64_t> sizes;
  for (std::size_t i = 0; wanted && i < std::min(wanted->size(), axes.size()); ++i) {
    const auto times = quotient((*wanted)[i], SymbolicInt::of(from, axes[i]));
    const bool is_named = from.is_named(axes[i]);
    const auto fixed = !is_named ? (*wanted)[i].number() : times ? times->number() : std::nullopt;
    if (!fixed) {
      context.unsupported(text("axis ", axes[i], " of ", from.text(), ": found size ", (*wanted)[i].text(),
                               ", expected a multiple. Give these extents numbers instead of bounds."));
      return {};
    }
    sizes.push_back(is_named ? *fixed * from[axes[i]] : *fixed);
  }
  return sizes;
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
    sizes = sizes_along(context, from.shape(), axes);
  else if (upsample && context.opset() < 9)
    scales = context.floats_attribute("scales");
  else
    scales = context.known_floats(scale_input, "scales");
  if (form.coordinates == "tf_crop_and_resize") roi = context.known_floats(1, "roi", 2 * Shape::kMaxRank);
  const auto finite = [](float number) { return std::isfinite(number); };
  if (!context.require(std::ranges::all_of(roi, finite) && std::ranges::all_of(scales, finite),
                       "scales or roi: expected finite numbers"))
    return;
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
    if (from.shape().is_named())
      return context.unsupported("input " + from.shape().text() +
                                 ": expected fixed extents to keep their ratio");
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

// ---- sampling at computed places ----

void grid_sample_op(OpContext& context) {
  const Tensor x = context.tensor(0), grid = context.tensor(1);
  const std::string mode = context.string_attribute("mode", "linear"),
                    padding = context.string_attribute("padding_mode", "zeros");
  is_one_of(context, "mode", mode,
            std::array<std::string_view, 5>{"linear", "bilinear", "nearest", "cubic", "bicubic"});
  is_one_of(context, "padding_mode", padding,
            std::array<std::string_view, 3>{"zeros", "border", "reflection"});
  const bool cubic = mode == "bicubic" || mode == "cubic";
  if (cubic && x.rank() > 4) return context.unsupported("cubic sampling of volumes");
  if (!context.may_make(cubic ? 512 : 128)) return;
  SampleOptions how;
  how.mode = cubic               ? imprint::Resize::cubic
             : mode == "nearest" ? imprint::Resize::nearest
                                 : imprint::Resize::linear;
  how.outside = padding == "zeros"    ? PadMode::constant
                : padding == "border" ? PadMode::edge
                                      : PadMode::reflect;
  how.align_corners = context.int_attribute("align_corners", 0) != 0;
  context.set(0, imprint::grid_sample(x, grid, how));
}

void deform_conv(OpContext& context) {
  const Tensor x = context.tensor(0), weight = context.tensor(1), offsets = context.tensor(2);
  const std::int64_t groups = context.int_attribute("group", 1),
                     parts = context.int_attribute("offset_group", 1);
  const Extents strides = context.ints_attribute("strides", {1, 1}),
                dilations = context.ints_attribute("dilations", {1, 1}),
                pads = context.ints_attribute("pads", {0, 0, 0, 0});
  const auto sane = [](std::int64_t value) { return value >= 0 && value < (1 << 20); };
  if (!context.require(x.rank() == 4 && weight.rank() == 4 && offsets.rank() == 4 && groups >= 1 &&
                           parts >= 1 && strides.size() == 2 && dilations.size() == 2 && pads.size() == 4 &&
                           std::ranges::all_of(strides, sane) && std::ranges::all_of(dilations, sane) &&
                           std::ranges::all_of(pads, sane),
                       text("input ", x.shape().text(), ", weight ", weight.shape().text(), " and offsets ",
                            offsets.shape().text(), ": expected images that fit")))
    return;
  const Extents kernel = context.ints_attribute("kernel_shape", {weight.extent(2), weight.extent(3)});
  if (!context.require(kernel == Extents{weight.extent(2), weight.extent(3)},
                       "kernel_shape does not fit weight " + weight.shape().text()))
    return;
  const std::int64_t taps = weight.extent(2) * weight.extent(3);
  context.checked(Extents{x.extent(0), x.extent(1), taps, offsets.extent(2) * offsets.extent(3)});
  context.checked(
      Extents{x.extent(0), x.extent(1), x.extent(2) + pads[0] + pads[2], x.extent(3) + pads[1] + pads[3]});
  if (!context.require(
          taps > 0 && parts <= kMaxElements / (2 * taps) && offsets.extent(1) == 2 * parts * taps,
          "offsets " + offsets.shape().text() + " do not fit the kernel") ||
      !context.may_make(128))
    return;
  // Zeros around the image are what lies outside of it.
  const std::vector<std::pair<std::int64_t, std::int64_t>> sides{
      {0, 0}, {0, 0}, {pads[0], pads[2]}, {pads[1], pads[3]}};
  context.set(
      0,
      imprint::deformable_convolution(
          imprint::pad(x, sides), weight, context.has(3) ? context.tensor(3) : Tensor(), offsets,
          context.has(4) ? context.tensor(4) : Tensor(),
          {.stride = {strides[0], strides[1]}, .dilation = {dilations[0], dilations[1]}, .groups = groups}));
}

void affine_grid_op(OpContext& context) {
  const Tensor theta = context.tensor(0);
  const std::vector<std::int64_t> size = context.known_ints(1, "size");
  if (!context.require(size.size() >= 4 && theta.rank() == 3 && theta.extent(0) == size[0],
                       text("theta ", theta.shape().text(), " does not fit the size")))
    return;
  context.checked(size);
  if (context.failure()) return;
  context.set(0, imprint::affine_grid(theta, std::span(size).subspan(2),
                                      context.int_attribute("align_corners", 0) != 0));
}

constexpr std::array kResizeOps{
    OpHandler{"Resize", resize},
    OpHandler{"Upsample", resize},
    OpHandler{"GridSample", grid_sample_op},
    OpHandler{"DeformConv", deform_conv},
    OpHandler{"AffineGrid", affine_grid_op},
};

}  // namespace

std::span<const OpHandler> resize_ops() { return kResizeOps; }

}  // namespace imprint::onnx
