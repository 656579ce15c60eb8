// Convolution and pooling over one to three spatial axes: [batch, channels, spatial...].

#include <algorithm>
#include <array>
#include <limits>

#include "compute/model/onnx_op.h"
#include "compute/tensor/images.h"

namespace imprint::onnx {
namespace {

using Extents = std::vector<std::int64_t>;

// How a kernel slides along one axis.
struct Slide {
  std::int64_t extent = 0;  // of the input
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
    context.unsupported("auto_pad '" + automatic + "'");
  const auto sane = [](std::int64_t value, std::int64_t least) {
    return value >= least && value < (1 << 24);
  };
  std::vector<Slide> out(count);
  for (std::size_t i = 0; i < count; ++i) {
    Slide& slide = out[i];
    slide.extent = input[static_cast<int>(i) + 2];
    slide.size = kernel[i];
    slide.stride = strides[i];
    slide.dilation = dilations[i];
    if (!context.require(sane(slide.size, 1) && sane(slide.stride, 1) && sane(slide.dilation, 1) &&
                             sane(pads[i], 0) && sane(pads[i + count], 0),
                         "kernel, strides, dilations or pads are out of range"))
      return {};
    if (same) {
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
    if (ceil_mode && room >= 0 && room % slide.stride != 0) {
      // One more window, unless it begins in the padding after the input.
      if (slide.positions * slide.stride < slide.extent + slide.before) ++slide.positions;
      slide.overhang = std::max<std::int64_t>(0, (slide.positions - 1) * slide.stride + slide.reach() -
                                                     (slide.extent + slide.before + slide.after));
    }
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

void conv(OpContext& context) {
  Tensor x = context.tensor(0), weight = context.tensor(1);
  const int spatial = x.rank() - 2;
  const std::int64_t groups = context.int_attribute("group", 1);
  const std::string shapes = "input " + x.shape().text() + " and weight " + weight.shape().text();
  if (!context.require(spatial >= 1 && spatial <= 3 && weight.rank() == x.rank(),
                       shapes + ": one to three spatial axes are supported") ||
      !context.require(groups >= 1 && weight.extent(0) % groups == 0 &&
                           weight.extent(1) <= kMaxElements / groups &&
                           weight.extent(1) * groups == x.extent(1),
                       shapes + " do not fit " + std::to_string(groups) + " groups"))
    return;
  Extents kernel(weight.shape().extents().begin() + 2, weight.shape().extents().end());
  if (!context.require(context.ints_attribute("kernel_shape", kernel) == kernel,
                       "kernel_shape differs from the weight's shape " + weight.shape().text()))
    return;
  std::vector<Slide> along = slides(context, x.shape(), kernel);
  if (context.failure()) return;
  Tensor bias = context.has(2) ? context.tensor(2) : Tensor();
  if (context.has(2) && !context.require(bias.shape() == Shape{weight.extent(0)},
                                         "bias " + bias.shape().text() + " does not fit " + shapes))
    return;

  std::vector<std::pair<std::int64_t, std::int64_t>> pads(2);
  for (const Slide& slide : along) pads.emplace_back(slide.before, slide.after);
  const auto each = [&](std::int64_t Slide::*field) {
    const auto of = [&](std::size_t i) { return along[std::min(i, along.size() - 1)].*field; };
    return PerAxis{of(0), of(1), of(2)};
  };
  context.set(0, imprint::convolution(
                     imprint::pad(x, pads), weight, bias,
                     {.stride = each(&Slide::stride), .dilation = each(&Slide::dilation), .groups = groups}));
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

void max_pool(OpContext& context) {
  const Tensor x = context.tensor(0);
  if (context.wants(1)) return context.unsupported("the Indices output");
  const std::vector<Slide> along = pool_slides(context, x.shape());
  if (context.failure()) return;
  const Tensor windows = windows_of(x, along, static_cast<double>(std::numeric_limits<float>::lowest()));
  context.set(0, imprint::max(windows, window_axes(along.size())));
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
    OpHandler{"MaxPool", max_pool},
    OpHandler{"AveragePool", average_pool},
    OpHandler{"GlobalAveragePool", global_pool<imprint::mean>},
    OpHandler{"GlobalMaxPool", global_pool<imprint::max>},
};

}  // namespace

std::span<const OpHandler> image_ops() { return kImageOps; }

}  // namespace imprint::onnx
