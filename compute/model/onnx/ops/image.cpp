// Convolution and pooling over one to three spatial axes: [batch, channels, spatial...].

#include <algorithm>
#include <array>
#include <limits>

#include "compute/base/quote.h"
#include "compute/model/onnx/ops/whole_products.h"
#include "compute/tensor/composites/composites.h"
#include "compute/tensor/composites/images.h"
#include "compute/tensor/extent_sums.h"

namespace imprint::onnx {
namespace {

// How a kernel slides along one axis.
struct Slide {
  std::int64_t extent = 0;  // of the input, or its bound
  bool is_named = false;
  std::int64_t size = 1, stride = 1, dilation = 1;
  std::int64_t before = 0, after = 0;  // padding of the model
  std::int64_t overhang = 0;           // more after it, for ceil_mode's last window
  std::int64_t positions = 0;
  std::int64_t reach() const { return (size - 1) * dilation + 1; }
};

Extents sized(OpContext& context, std::string_view name, std::size_t count, std::int64_t otherwise) {
  Extents values = context.ints_attribute(name);
  if (values.empty()) values.assign(count, otherwise);
  context.require(values.size() == count, std::string(name) + " has " + std::to_string(values.size()) +
                                              " numbers for " + std::to_string(count) + " axes");
  values.resize(count, otherwise);
  return values;
}

// Padding may follow from the extent, which a named axis has in each run alone.
void refuse_named(OpContext& context, const Shape& input, int axis, const std::string& what) {
  context.unsupported("axis " + std::to_string(axis) + ": found " + what + " for input " + input.text() +
                      ", expected pads that fit all extents. Give the axis a number.");
}

// One more window where a part of one is left, unless it begins in the padding after the input.
void round_up(OpContext& context, const Shape& input, int axis, Slide& slide) {
  const std::int64_t room = slide.extent + slide.before + slide.after - slide.reach();
  if (slide.is_named) {
    if (slide.stride + slide.after > slide.reach()) return refuse_named(context, input, axis, "ceil_mode");
    slide.overhang = slide.stride - 1;
    slide.positions = (room + slide.overhang) / slide.stride + 1;
  } else if (room >= 0 && room % slide.stride != 0) {
    if (slide.positions * slide.stride < slide.extent + slide.before) ++slide.positions;
    slide.overhang = std::max<std::int64_t>(0, (slide.positions - 1) * slide.stride + slide.reach() -
                                                   (slide.extent + slide.before + slide.after));
  }
}

// Reads strides, dilations, pads, auto_pad and ceil_mode. Empty after a failure.
std::vector<Slide> slides(OpContext& context, const Shape& input, const Extents& kernel) {
  const std::size_t count = kernel.size();
  const Extents strides = sized(context, "strides", count, 1),
                dilations = sized(context, "dilations", count, 1);
  const Extents pads = sized(context, "pads", 2 * count, 0);
  const std::string automatic = context.string_attribute("auto_pad", "NOTSET");
  const bool ceil_mode = context.int_attribute("ceil_mode", 0) != 0;
  const bool same = automatic == "SAME_UPPER" || automatic == "SAME_LOWER";
  if (!same && automatic != "NOTSET" && automatic != "VALID" && !automatic.empty())
    context.unsupported("auto_pad " + quote(automatic));
  const auto sane = [](std::int64_t value, std::int64_t least) {
    return value >= least && value < (1 << 24);
  };
  std::vector<Slide> out(count);
  for (std::size_t i = 0; i < count; ++i) {
    Slide& slide = out[i];
    const int axis = static_cast<int>(i) + 2;
    slide.extent = input[axis];
    slide.is_named = input.is_named(axis);
    slide.size = kernel[i];
    slide.stride = strides[i];
    slide.dilation = dilations[i];
    if (!context.require(sane(slide.size, 1) && sane(slide.stride, 1) && sane(slide.dilation, 1) &&
                             sane(pads[i], 0) && sane(pads[i + count], 0),
                         "kernel, strides, dilations or pads are out of range"))
      return {};
    if (same) {
      if (slide.is_named && slide.stride > 1) refuse_named(context, input, axis, "auto_pad");
      slide.positions = (slide.extent + slide.stride - 1) / slide.stride;
      const std::int64_t missing =
          std::max<std::int64_t>(0, (slide.positions - 1) * slide.stride + slide.reach() - slide.extent);
      slide.before = automatic == "SAME_UPPER" ? missing / 2 : missing - missing / 2;
      slide.after = missing - slide.before;
      continue;
    }
    if (automatic != "VALID") {
      slide.before = pads[i];
      slide.after = pads[i + count];
    }
    const std::int64_t room = slide.extent + slide.before + slide.after - slide.reach();
    if (!context.require(
            room >= 0 || (ceil_mode && room > -slide.stride),
            "a kernel that reaches " + std::to_string(slide.reach()) + " does not fit input " + input.text()))
      return {};
    slide.positions = room / slide.stride + 1;
    if (ceil_mode && slide.stride > 1) round_up(context, input, axis, slide);
  }
  if (context.failure()) return {};
  Extents windows(input.extents().begin(), input.extents().begin() + 2);
  for (const Slide& slide : out) windows.push_back(slide.positions);
  for (const Slide& slide : out) windows.push_back(slide.size);
  context.checked(windows);
  return out;
}

// [batch, channels, positions..., sizes...]
Tensor windows_of(const Tensor& x, const std::vector<Slide>& slides, double fill) {
  std::vector<std::pair<std::int64_t, std::int64_t>> pads(2);
  bool padded = false;
  for (const Slide& slide : slides) {
    pads.emplace_back(slide.before, slide.after + slide.overhang);
    padded = padded || pads.back() != std::pair<std::int64_t, std::int64_t>();
  }
  Tensor out = padded ? imprint::pad(x, pads, fill) : x;
  for (std::size_t i = 0; i < slides.size(); ++i)
    out = imprint::window(out, static_cast<int>(i) + 2, slides[i].size, slides[i].stride, slides[i].dilation);
  return out;
}

// The last `count` axes, which windows_of added.
Axes window_axes(std::size_t count) {
  Axes axes;
  for (std::size_t i = 0; i < count; ++i) axes.push_back(static_cast<int>(2 + count + i));
  return axes;
}

PerAxis each_of(const std::vector<Slide>& along, std::int64_t Slide::*field) {
  const auto of = [&](std::size_t i) { return along[std::min(i, along.size() - 1)].*field; };
  return {of(0), of(1), of(2)};
}

// The extents of a weight's kernel. A kernel whose extent each run chooses would change the windows.
Extents kernel_of(OpContext& context, const Tensor& weight) {
  for (int axis = 2; axis < weight.rank(); ++axis)
    if (weight.shape().is_named(axis))
      context.unsupported("found weight " + weight.shape().text() +
                          ", expected a kernel of fixed extents. Give them numbers.");
  return Extents(weight.shape().extents().begin() + 2, weight.shape().extents().end());
}

}  // namespace

std::optional<ConvolutionForm> convolution_form(OpContext& context, const Tensor& x, const Tensor& weight) {
  const int spatial = x.rank() - 2;
  const std::int64_t groups = context.int_attribute("group", 1);
  const std::string shapes = "input " + x.shape().text() + " and weight " + weight.shape().text();
  if (!context.require(spatial >= 1 && spatial <= 3 && weight.rank() == x.rank(),
                       shapes + ": one to three spatial axes are supported") ||
      !context.require(groups >= 1 && weight.extent(0) % groups == 0 &&
                           weight.extent(1) <= kMaxElements / groups &&
                           weight.extent(1) * groups == x.extent(1),
                       shapes + " do not fit " + std::to_string(groups) + " groups"))
    return std::nullopt;
  const Extents kernel = kernel_of(context, weight);
  if (!context.require(context.ints_attribute("kernel_shape", kernel) == kernel,
                       "kernel_shape differs from the weight's shape " + weight.shape().text()))
    return std::nullopt;
  const std::vector<Slide> along = slides(context, x.shape(), kernel);
  if (context.failure()) return std::nullopt;
  ConvolutionForm form{std::vector<std::pair<std::int64_t, std::int64_t>>(2),
                       {.stride = each_of(along, &Slide::stride),
                        .dilation = each_of(along, &Slide::dilation),
                        .groups = groups}};
  for (const Slide& slide : along) form.pads.emplace_back(slide.before, slide.after);
  return form;
}

Tensor ConvolutionForm::of(const Tensor& x, const Tensor& kernel, const Tensor& bias) const {
  return imprint::convolution(imprint::pad(x, pads), kernel, bias, options);
}

Tensor convolved(OpContext& context, const Tensor& x, const Tensor& weight, const Tensor& bias) {
  const auto form = convolution_form(context, x, weight);
  if (!form || (bias.ok() && !context.require(bias.shape() == Shape{weight.extent(0)},
                                              "bias " + bias.shape().text() + " does not fit input " +
                                                  x.shape().text() + " and weight " + weight.shape().text())))
    return x;
  return form->of(x, weight, bias);
}

namespace {

void conv(OpContext& context) {
  if (const auto found = dequantized_convolution(context, context.value(0), context.value(1))) {
    const Tensor bias = context.has(2) ? along_axis(context.tensor(2), found->rank(), 1) : Tensor();
    return context.set(0, context.has(2) ? *found + bias : *found);
  }
  context.set(0, convolved(context, context.tensor(0), context.tensor(1),
                           context.has(2) ? context.tensor(2) : Tensor()));
}

// Elements cut off before and after each axis of a transposed convolution, and zeros added after it.
struct Cut {
  std::int64_t before = 0, after = 0, more = 0;
};

std::vector<Cut> transposed_cuts(OpContext& context, const Shape& input, const Extents& kernel,
                                 const Extents& strides, const Extents& dilations) {
  const std::size_t count = kernel.size();
  const Extents pads = sized(context, "pads", 2 * count, 0),
                more = sized(context, "output_padding", count, 0),
                asked = sized(context, "output_shape", count, -1);
  const std::string automatic = context.string_attribute("auto_pad", "NOTSET");
  const bool same = automatic == "SAME_UPPER" || automatic == "SAME_LOWER";
  const auto sane = [](std::int64_t value) { return value >= 0 && value < (1 << 24); };
  std::vector<Cut> out;
  for (std::size_t i = 0; i < count; ++i) {
    if (!context.require(sane(pads[i]) && sane(pads[i + count]) && sane(more[i]) && sane(asked[i] + 1) &&
                             sane(strides[i]) && sane(dilations[i]) && strides[i] > 0 && dilations[i] > 0,
                         "strides, dilations, pads or output_shape are out of range"))
      return {};
    const int axis = static_cast<int>(i) + 2;
    if (input.is_named(axis) && asked[i] >= 0) refuse_named(context, input, axis, "output_shape");
    const std::int64_t extent = input[axis],
                       full = (extent - 1) * strides[i] + (kernel[i] - 1) * dilations[i] + 1;
    Cut cut{pads[i], pads[i + count], more[i]};
    if (automatic == "VALID") cut = {0, 0, more[i]};
    if (asked[i] >= 0 || same) {
      const std::int64_t places = asked[i] >= 0 ? asked[i] : extent * strides[i];
      const std::int64_t total = full + more[i] - places;
      // The larger half of an odd number comes first, except with SAME_UPPER. Places beyond `full` come last.
      const bool last = automatic == "SAME_UPPER" || (total < 0 && !same);
      cut.before = last ? total / 2 : total - total / 2;
      cut.after = total - cut.before;
    }
    if (!context.require(extent > 0 && full + cut.more - cut.before - cut.after > 0,
                         "the pads leave nothing of input " + input.text()))
      return {};
    out.push_back(cut);
  }
  return out;
}

void conv_transpose(OpContext& context) {
  const Tensor x = context.tensor(0), weight = context.tensor(1);
  const int spatial = x.rank() - 2;
  const std::int64_t groups = context.int_attribute("group", 1);
  const std::string shapes = "input " + x.shape().text() + " and weight " + weight.shape().text();
  if (!context.require(spatial >= 1 && spatial <= 3 && weight.rank() == x.rank() && groups >= 1 &&
                           weight.extent(0) == x.extent(1) && x.extent(1) % groups == 0 &&
                           x.shape().element_count() > 0,
                       shapes + " do not fit " + std::to_string(groups) + " groups"))
    return;
  const Extents kernel = kernel_of(context, weight);
  const Extents strides = sized(context, "strides", kernel.size(), 1),
                dilations = sized(context, "dilations", kernel.size(), 1);
  if (!context.require(context.ints_attribute("kernel_shape", kernel) == kernel,
                       "kernel_shape differs from the weight's shape " + weight.shape().text()))
    return;
  const std::vector<Cut> cuts = transposed_cuts(context, x.shape(), kernel, strides, dilations);
  if (context.failure()) return;
  const auto each = [&](const Extents& values) {
    const auto of = [&](std::size_t i) { return values[std::min(i, values.size() - 1)]; };
    return PerAxis{of(0), of(1), of(2)};
  };
  Tensor out = imprint::transposed_convolution(
      x, weight, Tensor(), {.stride = each(strides), .dilation = each(dilations), .groups = groups});
  // A negative cut adds zeros.
  std::vector<std::pair<std::int64_t, std::int64_t>> pads(2);
  for (const Cut& cut : cuts)
    pads.emplace_back(std::max<std::int64_t>(0, -cut.before),
                      std::max<std::int64_t>(0, cut.more - cut.after));
  out = imprint::pad(out, pads);
  for (std::size_t i = 0; i < cuts.size(); ++i) {
    const int axis = static_cast<int>(i) + 2;
    const std::int64_t before = std::max<std::int64_t>(0, cuts[i].before),
                       after = std::max<std::int64_t>(0, cuts[i].after - cuts[i].more);
    out = tensor::trimmed(out, axis, before, after);
  }
  if (context.has(2)) {
    Shape beside{context.shape(2).element_count()};
    for (int i = 0; i < spatial; ++i) beside.append(1);
    out = out + imprint::reshape(context.tensor(2), beside);
  }
  context.set(0, out);
}

std::vector<Slide> pool_slides(OpContext& context, const Shape& shape) {
  if (!context.require(shape.rank() >= 3 && shape.rank() <= 5,
                       "input " + shape.text() + ": one to three spatial axes are supported"))
    return {};
  const Extents kernel = context.ints_attribute("kernel_shape");
  if (!context.require(static_cast<int>(kernel.size()) == shape.rank() - 2,
                       "kernel_shape does not fit input " + shape.text()))
    return {};
  return slides(context, shape, kernel);
}

// Where each window's maximum stands among all elements of the input.
Tensor places_of_maxima(OpContext& context, const Tensor& windows, const Shape& input,
                        const std::vector<Slide>& along) {
  const Axes axes = window_axes(along.size());
  const Tensor tap = imprint::argmax(windows, axes);
  const Shape& shape = tap.shape();
  const bool columns_first = context.int_attribute("storage_order", 0) != 0;
  Tensor place = imprint::iota(shape, 0) * SymbolicInt::of(input, 1).tensor() + imprint::iota(shape, 1);
  std::int64_t inner = 1;
  std::vector<Tensor> at(along.size());
  for (std::size_t i = along.size(); i-- > 0;) {
    const Slide& slide = along[i];
    const Tensor index = imprint::remainder(imprint::div(tap, Tensor(static_cast<int>(inner))),
                                            Tensor(static_cast<int>(slide.size)));
    at[i] = imprint::iota(shape, static_cast<int>(i) + 2) * static_cast<int>(slide.stride) +
            index * static_cast<int>(slide.dilation) - static_cast<int>(slide.before);
    inner *= slide.size;
  }
  std::vector<std::size_t> order(along.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = columns_first ? order.size() - 1 - i : i;
  for (const std::size_t i : order)
    place = place * SymbolicInt::of(input, static_cast<int>(i) + 2).tensor() + at[i];
  return place;
}

void max_pool(OpContext& context) {
  const Value from = context.value(0);
  const bool whole = is_integer(from.type());
  const Tensor x = whole ? imprint::cast(from.tensor(), DType::float32) : from.tensor();
  const std::vector<Slide> along = pool_slides(context, x.shape());
  if (context.failure()) return;
  const Tensor windows = windows_of(x, along, static_cast<double>(std::numeric_limits<float>::lowest()));
  const Tensor out = imprint::max(windows, window_axes(along.size()));
  context.set(0, whole ? imprint::cast(out, DType::int32) : out, from.type());
  if (context.wants(1))
    context.set(1, places_of_maxima(context, windows, x.shape(), along), ElementType::int64);
}

// (sum |x|^p)^(1 / p) over windows.
void lp_pool(OpContext& context) {
  const Tensor x = context.tensor(0);
  const std::vector<Slide> along = pool_slides(context, x.shape());
  if (context.failure()) return;
  context.set(0, imprint::norm(windows_of(x, along, 0), static_cast<double>(context.int_attribute("p", 2)),
                               window_axes(along.size())));
}

void global_lp_pool(OpContext& context) {
  const Tensor x = context.tensor(0);
  if (!context.require(x.rank() >= 3, "input " + x.shape().text() + " has no spatial axes")) return;
  Axes axes;
  for (int axis = 2; axis < x.rank(); ++axis) axes.push_back(axis);
  context.set(0, imprint::norm(x, static_cast<double>(context.int_attribute("p", 2)), axes, true));
}

// Places x at the indices, which count all elements of the result.
void max_unpool(OpContext& context) {
  const Tensor x = context.tensor(0), indices = context.tensor(1);
  const Extents kernel = context.ints_attribute("kernel_shape");
  if (!context.require(
          x.rank() >= 3 && static_cast<int>(kernel.size()) == x.rank() - 2 && indices.shape() == x.shape(),
          "indices " + indices.shape().text() + " do not fit input " + x.shape().text()))
    return;
  const Extents strides = sized(context, "strides", kernel.size(), 1),
                pads = sized(context, "pads", 2 * kernel.size(), 0);
  Extents natural = extents_of(x.shape());
  for (std::size_t i = 0; i < kernel.size(); ++i) {
    const auto sane = [](std::int64_t value) { return value >= 0 && value < (1 << 24); };
    if (!context.require(
            sane(kernel[i]) && sane(strides[i]) && sane(pads[i]) && sane(pads[i + kernel.size()]),
            "kernel, strides or pads are out of range"))
      return;
    natural[i + 2] = (natural[i + 2] - 1) * strides[i] + kernel[i] - pads[i] - pads[i + kernel.size()];
  }
  const Shape plain = context.checked(natural);
  const Shape shape = context.has(2) ? context.checked(context.known_ints(2, "output_shape")) : plain;
  if (context.failure()) return;
  if (!context.require(shape.rank() == plain.rank() && shape[0] == plain[0] && shape[1] == plain[1],
                       "output_shape " + shape.text() + " does not fit input " + x.shape().text()))
    return;
  // The indices count the elements of the natural result, which stands at the start of a larger one.
  Tensor out = imprint::scatter(imprint::zeros({plain.element_count()}), 0, imprint::reshape(indices, {-1}),
                                imprint::reshape(x, {-1}), Scatter::assign);
  out = imprint::reshape(out, plain);
  for (int axis = 2; axis < plain.rank(); ++axis) {
    std::vector<std::pair<std::int64_t, std::int64_t>> more(static_cast<std::size_t>(plain.rank()));
    more[static_cast<std::size_t>(axis)].second = std::max<std::int64_t>(0, shape[axis] - plain[axis]);
    out = imprint::narrow(imprint::pad(out, more), axis, 0, shape[axis]);
  }
  context.set(0, out);
}

// Adds columns [batch, channels * window, windows] into an image.
void col_to_im(OpContext& context) {
  const Tensor columns = context.tensor(0);
  const Extents places = context.known_ints(1, "image_shape"), block = context.known_ints(2, "block_shape");
  const std::size_t count = places.size();
  if (!context.require(columns.rank() == 3 && count >= 1 && count <= 3 && block.size() == count,
                       "columns " + columns.shape().text() + ": one to three spatial axes are supported"))
    return;
  const Extents strides = sized(context, "strides", count, 1),
                dilations = sized(context, "dilations", count, 1),
                pads = sized(context, "pads", 2 * count, 0);
  Extents padded;
  const auto sane = [](std::int64_t value, std::int64_t least) {
    return value >= least && value < (1 << 24);
  };
  for (std::size_t i = 0; i < count; ++i) {
    if (!context.require(sane(places[i], 1) && sane(block[i], 1) && sane(strides[i], 1) &&
                             sane(dilations[i], 1) && sane(pads[i], 0) && sane(pads[i + count], 0),
                         "image, blocks, strides, dilations or pads are out of range"))
      return;
    padded.push_back(places[i] + pads[i] + pads[i + count]);
  }
  context.checked(padded);
  if (context.failure()) return;
  const auto each = [&](const Extents& values) {
    const auto of = [&](std::size_t i) { return values[std::min(i, count - 1)]; };
    return PerAxis{of(0), of(1), of(2)};
  };
  const UnfoldOptions options{.size = each(block), .stride = each(strides), .dilation = each(dilations)};
  Tensor out = count == 1   ? imprint::fold(columns, {padded[0]}, options)
               : count == 2 ? imprint::fold(columns, {padded[0], padded[1]}, options)
                            : imprint::fold(columns, {padded[0], padded[1], padded[2]}, options);
  for (std::size_t i = 0; i < count; ++i)
    out = imprint::narrow(out, static_cast<int>(i) + 2, pads[i], places[i]);
  context.set(0, out);
}

// How many of a window's elements count, for each position along an axis.
std::vector<float> counted(const Slide& slide, bool include_pads) {
  const std::int64_t low = include_pads ? 0 : slide.before;
  const std::int64_t high = slide.before + slide.extent + (include_pads ? slide.after : 0);
  std::vector<float> out;
  for (std::int64_t position = 0; position < slide.positions; ++position) {
    const std::int64_t start = position * slide.stride;
    // Taps at start + tap * dilation inside [low, high).
    const std::int64_t first = start >= low ? 0 : (low - start + slide.dilation - 1) / slide.dilation;
    const std::int64_t end = start >= high ? 0 : (high - start + slide.dilation - 1) / slide.dilation;
    out.push_back(static_cast<float>(
        std::max<std::int64_t>(1, std::min(end, slide.size) - std::min(first, slide.size))));
  }
  return out;
}

// The same along a named axis, counted in each run: [positions].
Tensor counted_in_runs(const Shape& input, int axis, const Slide& slide, bool include_pads) {
  using Sides = std::pair<std::int64_t, std::int64_t>;
  Shape places;
  places.append(input, axis);
  const Sides pads[] = {{slide.before, slide.after}}, overhang[] = {{0, slide.overhang}};
  const Tensor counts = imprint::pad(imprint::ones(places), pads, include_pads ? 1 : 0);
  const Tensor seen =
      imprint::window(imprint::pad(counts, overhang), 0, slide.size, slide.stride, slide.dilation);
  return imprint::maximum(imprint::sum(seen, {1}), Tensor(1.0f));
}

void average_pool(OpContext& context) {
  const Tensor x = context.tensor(0);
  const std::vector<Slide> along = pool_slides(context, x.shape());
  const bool include_pads = context.int_attribute("count_include_pad", 0) != 0;
  if (context.failure()) return;
  std::int64_t positions = 0;
  for (const Slide& slide : along) positions += slide.positions;
  if (!context.mover().may_fold(ElementType::float32, positions))
    return context.unsupported("pooling of this size");
  Tensor result = imprint::sum(windows_of(x, along, 0), window_axes(along.size()));
  double whole = 1;
  for (std::size_t i = 0; i < along.size(); ++i) {
    const bool is_whole = along[i].before == 0 && along[i].after == 0 && along[i].overhang == 0;
    if (along[i].is_named && !is_whole) {
      Tensor counts = counted_in_runs(x.shape(), static_cast<int>(i) + 2, along[i], include_pads);
      for (std::size_t j = i + 1; j < along.size(); ++j) counts = imprint::unsqueeze(counts, counts.rank());
      result = imprint::div(result, counts);
      continue;
    }
    const std::vector<float> counts = counted(along[i], include_pads);
    if (std::all_of(counts.begin(), counts.end(), [&](float count) { return count == counts.front(); }) &&
        !counts.empty()) {
      whole *= static_cast<double>(counts.front());
      continue;
    }
    Shape shape{along[i].positions};
    for (std::size_t j = i + 1; j < along.size(); ++j) shape.append(1);
    result = imprint::div(result, Tensor::from(counts, shape));
  }
  context.set(0, whole == 1 ? result : imprint::div(result, Tensor(whole)));
}

template <Tensor (*function)(const Tensor&, const Axes&, bool)>
void global_pool(OpContext& context) {
  const Tensor x = context.tensor(0);
  if (!context.require(x.rank() >= 3, "input " + x.shape().text() + " has no spatial axes")) return;
  Axes axes;
  for (int axis = 2; axis < x.rank(); ++axis) axes.push_back(axis);
  context.set(0, function(x, axes, true));
}

constexpr std::array kImageOps{
    OpHandler{"Conv", conv},
    OpHandler{"ConvTranspose", conv_transpose},
    OpHandler{"Col2Im", col_to_im},
    OpHandler{"MaxPool", max_pool},
    OpHandler{"MaxUnpool", max_unpool},
    OpHandler{"LpPool", lp_pool},
    OpHandler{"GlobalLpPool", global_lp_pool},
    OpHandler{"AveragePool", average_pool},
    OpHandler{"GlobalAveragePool", global_pool<imprint::mean>},
    OpHandler{"GlobalMaxPool", global_pool<imprint::max>},
};

}  // namespace

std::span<const OpHandler> image_ops() { return kImageOps; }

}  // namespace imprint::onnx
