// Constants and ranges, look-ups by index, padding, masks by position.

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "compute/base/quote.h"
#include "compute/base/text.h"
#include "compute/model/onnx/op.h"

namespace imprint::onnx {
namespace {

// A tensor attribute's elements.
std::optional<Value> elements_of(OpContext& context, const TensorData& data) {
  auto value = context.mover().held(data);
  if (value) return std::move(*value);
  context.fail(value.error().code, value.error().message);
  return std::nullopt;
}

void constant(OpContext& context) {
  if (auto value = context.constant_attribute()) context.set(0, std::move(*value));
}

void constant_of_shape(OpContext& context) {
  Shape shape;
  if (context.value(0).symbols()) {
    const auto named = shape_of_extents(*context.value(0).symbols());
    if (!named) return context.unsupported("the shape: found sums of named extents, expected products");
    shape = *named;
    context.checked(shape.extents());
  } else {
    shape = context.checked(context.known_ints(0, "the shape"));
  }
  HostArray element;
  element.floats.own().push_back(0);
  if (const TensorData* data = context.tensor_attribute("value")) {
    if (!context.require(data->element_count() == 1,
                         text("value: found ", data->element_count(), " elements, expected one")))
      return;
    const auto value = elements_of(context, *data);
    if (!value) return;
    element = *value->host();
    element.shape = Shape();
  }
  if (context.failure()) return;
  context.set(0, context.mover().expand(Value::known(std::move(element)), shape));
}

void range(OpContext& context) {
  for (int input = 0; input < 3; ++input)
    if (context.value(input).symbols()) return range_named(context);
  const bool floating = is_float(context.value(0).type());
  const double start = context.known_number(0, "start"), limit = context.known_number(1, "limit"),
               step = context.known_number(2, "delta");
  const auto sane = [](double number) { return number > -0x1p53 && number < 0x1p53; };
  if (!context.require(step != 0 && sane(start) && sane(limit) && sane(step),
                       "start, limit or delta is out of range"))
    return;
  const double count = std::max(0.0, std::ceil((limit - start) / step));
  if (!context.require(count <= 0x1p24, "more than 16777216 elements")) return;
  HostArray out;
  out.type = context.value(0).type();
  out.shape = {static_cast<std::int64_t>(count)};
  if (!context.mover().may_fold(out.type, out.shape[0])) return context.unsupported("constants of this size");
  for (std::int64_t i = 0; i < out.shape[0]; ++i) {
    // Below the limit, so below 2^53: exact for whole numbers.
    const double value = start + static_cast<double>(i) * step;
    if (floating)
      out.floats.own().push_back(static_cast<float>(value));
    else
      out.ints.push_back(static_cast<std::int64_t>(value));
  }
  context.set(0, Value::known(std::move(out)));
}

}  // namespace

// The host reads each index once per node, so the budget counts them.
std::optional<Value> normal_indices(OpContext& context, int input, const Shape& of, int axis) {
  const Value indices = context.value(input);
  const std::int64_t extent = of[axis];
  if (!is_integer(indices.type())) {
    context.fail(ErrorCode::dtype_mismatch, "indices are " + element_type_name(indices.type()));
    return std::nullopt;
  }
  // Places of the bounds lie between those of a run.
  const std::vector<tensor::AxisPart> parts = of.parts(axis);
  if (parts.size() > 1 && std::any_of(parts.begin() + 1, parts.end(),
                                      [](const tensor::AxisPart& part) { return !part.extent.empty(); })) {
    context.unsupported(text("axis ", axis, ": found ", of.text(), ", expected at most one named extent. ",
                             "Give these extents numbers instead of bounds."));
    return std::nullopt;
  }
  const bool from_named_end =
      of.is_named(axis) &&
      (!indices.host() || std::ranges::any_of(indices.host()->ints, [](std::int64_t i) { return i < 0; }));
  if (from_named_end || !indices.foldable() ||
      !context.mover().may_fold(indices.type(), indices.shape().element_count())) {
    const Tensor raw = indices.tensor();
    return Value::run_time(imprint::where(raw < 0, raw + SymbolicInt::of(of, axis).tensor(), raw),
                           indices.type());
  }
  bool from_end = false;
  for (const std::int64_t index : indices.host()->ints) {
    if (index < -extent || index >= extent) {
      context.fail(ErrorCode::invalid_argument, text("index ", index, " is outside an axis of ", extent));
      return std::nullopt;
    }
    from_end = from_end || index < 0;
  }
  if (!from_end) return indices;
  HostArray out = *indices.host();
  for (std::int64_t& index : out.ints)
    if (index < 0) index += extent;
  return Value::known(std::move(out));
}

namespace {

void gather(OpContext& context) {
  const Value data = context.value(0);
  if (!context.require(data.rank() > 0, "a scalar has no axis to look up in")) return;
  const int axis = context.axis(context.int_attribute("axis", 0), data.rank());
  const auto indices = normal_indices(context, 1, data.shape(), axis);
  if (!indices) return;
  std::vector<std::int64_t> extents;
  for (int i = 0; i < data.rank(); ++i) {
    if (i != axis)
      extents.push_back(data.shape()[i]);
    else
      for (const std::int64_t extent : indices->shape().extents()) extents.push_back(extent);
  }
  context.checked(extents);
  if (!context.failure()) context.set(0, context.mover().take(data, axis, *indices));
}

void gather_elements(OpContext& context) {
  Value data = context.value(0);
  const Shape& shape = context.shape(1);
  if (!context.require(data.rank() > 0 && data.rank() == shape.rank(),
                       "shapes " + data.shape().text() + " and " + shape.text() + " differ in rank"))
    return;
  const int axis = context.axis(context.int_attribute("axis", 0), data.rank());
  const auto indices = normal_indices(context, 1, data.shape(), axis);
  if (!indices) return;
  for (int i = 0; i < data.rank(); ++i) {
    if (i == axis || shape[i] == data.shape()[i]) continue;
    if (!context.require(shape[i] < data.shape()[i],
                         "indices " + shape.text() + " reach beyond " + data.shape().text()))
      return;
    data = context.mover().slice(data, i, 0, shape[i], 1);
  }
  context.set(0, imprint::gather(data.tensor(), axis, indices->tensor()), data.type());
}

// The source index of each position of a padded axis, for the modes that repeat elements.
std::vector<std::int64_t> padded_indices(const std::string& mode, std::int64_t extent, std::int64_t before,
                                         std::int64_t after) {
  std::vector<std::int64_t> out;
  for (std::int64_t i = -before; i < extent + after; ++i) {
    std::int64_t at = std::clamp<std::int64_t>(i, 0, extent - 1);
    if (mode == "wrap") at = ((i % extent) + extent) % extent;
    if (mode == "reflect" && extent > 1) {
      const std::int64_t period = 2 * (extent - 1), phase = ((i % period) + period) % period;
      at = std::min(phase, period - phase);
    }
    out.push_back(at);
  }
  return out;
}

void pad(OpContext& context) {
  Value value = context.value(0);
  const bool by_input = context.opset() >= 11;
  const std::vector<std::int64_t> pads =
      by_input ? context.known_ints(1, "pads", 2 * Shape::kMaxRank)
               : context.ints_attribute(context.opset() < 2 ? "paddings" : "pads");
  const double fill = by_input ? (context.has(2) ? context.known_number(2, "the padding value") : 0)
                               : context.float_attribute("value", 0);
  std::vector<std::int64_t> raw_axes =
      by_input && context.has(3) ? context.known_ints(3, "axes") : std::vector<std::int64_t>();
  const std::string mode = context.string_attribute("mode", "constant");
  if (!(by_input && context.has(3)))
    for (int i = 0; i < value.rank(); ++i) raw_axes.push_back(i);
  const Axes axes = context.axes(raw_axes, value.rank());
  if (mode != "constant" && mode != "reflect" && mode != "edge" && mode != "wrap")
    return context.unsupported("mode " + quote(mode));
  if (!context.require(pads.size() == 2 * axes.size(),
                       text("pads: found ", pads.size(), ", expected two for each axis")))
    return;

  std::vector<std::pair<std::int64_t, std::int64_t>> added(static_cast<std::size_t>(value.rank()));
  std::vector<std::int64_t> extents(value.shape().extents().begin(), value.shape().extents().end());
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const std::int64_t before = pads[i], after = pads[i + axes.size()];
    const std::int64_t extent = value.shape()[axes[i]];
    const bool sane =
        before > -kMaxElements && before < kMaxElements && after > -kMaxElements && after < kMaxElements;
    if (!context.require(sane, "a pad is out of range")) return;
    // A negative pad cuts.
    const std::int64_t cut_before = std::max<std::int64_t>(0, -before),
                       cut_after = std::max<std::int64_t>(0, -after);
    if (!context.require(cut_before + cut_after <= extent,
                         text("pads ", before, " and ", after, " do not fit an axis of ", extent)))
      return;
    if (cut_before + cut_after > 0)
      value = context.mover().slice(value, axes[i], cut_before, extent - cut_before - cut_after, 1);
    added[static_cast<std::size_t>(axes[i])] = {std::max<std::int64_t>(before, 0),
                                                std::max<std::int64_t>(after, 0)};
    extents[static_cast<std::size_t>(axes[i])] = extent + before + after;
  }
  context.checked(extents);
  if (context.failure()) return;
  const bool wraps = value.type() == ElementType::uint32 && fill >= 0x1p31;  // as int32 with the same bits
  if (mode == "constant")
    return context.set(0, imprint::pad(value.tensor(), added, wraps ? fill - 0x1p32 : fill), value.type());
  for (const int axis : axes) {
    const auto [before, after] = added[static_cast<std::size_t>(axis)];
    if (before == 0 && after == 0) continue;
    if (value.shape().is_named(axis))
      return context.unsupported(text("axis ", axis, ": found ", value.shape().text(),
                                      ", expected a fixed extent where elements are repeated"));
    const std::int64_t extent = value.shape()[axis];
    if (!context.require(extent > 0, "an empty axis has nothing to repeat")) return;
    if (!context.mover().may_fold(ElementType::int64, extent + before + after))
      return context.unsupported("padding of this size");
    value = context.mover().take(value, axis, known_vector(padded_indices(mode, extent, before, after)));
  }
  context.set(0, value);
}

void one_hot(OpContext& context) {
  const Value raw = context.value(0);
  const std::int64_t depth = context.known_int(1, "depth");
  if (!context.require(depth > 0 && depth <= kMaxElements, text("depth: found ", depth))) return;
  const Tensor values = context.tensor(2);
  if (!context.require(values.rank() == 1 && values.extent(0) == 2,
                       "the values have shape " + values.shape().text() + ": off and on were expected"))
    return;
  const int axis = context.axis(context.int_attribute("axis", -1), raw.rank() + 1);
  std::vector<std::int64_t> extents(raw.shape().extents().begin(), raw.shape().extents().end());
  extents.insert(extents.begin() + axis, depth);
  const Shape shape = context.checked(extents);
  if (context.failure()) return;
  Tensor indices = imprint::cast(raw.tensor(), DType::int32);
  indices = imprint::where(imprint::less(indices, 0), imprint::add(indices, Tensor(static_cast<int>(depth))),
                           indices);
  const Tensor hit = imprint::equal(imprint::unsqueeze(indices, axis), imprint::iota(shape, axis));
  context.set(0, imprint::where(hit, imprint::slice(values, 0, 1, 2), imprint::slice(values, 0, 0, 1)),
              context.value(2).type());
}

// Column minus row index of the last two axes.
Tensor diagonal_number(const Shape& shape) {
  return imprint::sub(imprint::iota(shape, shape.rank() - 1), imprint::iota(shape, shape.rank() - 2));
}

void trilu(OpContext& context) {
  const Value x = context.value(0);
  const std::int64_t k = context.has(1) ? context.known_int(1, "k") : 0;
  if (!context.require(x.rank() >= 2, "a matrix was expected, not " + x.shape().text())) return;
  const auto bound = static_cast<int>(std::clamp<std::int64_t>(k, -(1 << 30), 1 << 30));
  const Tensor number = diagonal_number({x.shape()[x.rank() - 2], x.shape()[x.rank() - 1]});
  const Tensor kept = context.int_attribute("upper", 1) != 0 ? imprint::greater_equal(number, bound)
                                                             : imprint::less_equal(number, bound);
  context.set(0, imprint::where(kept, x.tensor(), imprint::zeros_like(x.tensor())), x.type());
}

void eye_like(OpContext& context) {
  const Value like = context.value(0);
  if (!context.require(like.rank() == 2, "a matrix was expected, not " + like.shape().text())) return;
  const auto type =
      cast_target(context, context.int_attribute("dtype", static_cast<std::int64_t>(like.type())));
  if (!type) return;
  const auto k =
      static_cast<int>(std::clamp<std::int64_t>(context.int_attribute("k", 0), -(1 << 30), 1 << 30));
  context.set(0, imprint::cast(imprint::equal(diagonal_number(like.shape()), k), run_time_dtype(*type)),
              *type);
}

constexpr std::array kIndexOps{
    OpHandler{"Constant", constant},
    OpHandler{"ConstantOfShape", constant_of_shape},
    OpHandler{"Range", range},
    OpHandler{"Gather", gather},
    OpHandler{"GatherElements", gather_elements},
    OpHandler{"Pad", pad},
    OpHandler{"OneHot", one_hot},
    OpHandler{"Trilu", trilu},
    OpHandler{"EyeLike", eye_like},
};

}  // namespace

std::span<const OpHandler> index_ops() { return kIndexOps; }

}  // namespace imprint::onnx
