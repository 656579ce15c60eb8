// Shapes as values, and operators that rearrange elements without looking at them.

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>

#include "compute/base/text.h"
#include "compute/model/onnx/op.h"

namespace imprint::onnx {
namespace {

void shape_of(OpContext& context) {
  const Shape& shape = context.shape(0);
  // Python's slice of the shape, since opset 15.
  const auto bound = [&](std::string_view name, std::int64_t otherwise) {
    const std::int64_t raw = context.int_attribute(name, otherwise);
    return std::clamp<std::int64_t>(raw < 0 ? std::max<std::int64_t>(raw, -shape.rank()) + shape.rank() : raw,
                                    0, shape.rank());
  };
  const std::int64_t start = bound("start", 0), end = bound("end", shape.rank());
  std::vector<SymbolicInt> out;
  for (std::int64_t i = start; i < end; ++i) out.push_back(SymbolicInt::of(shape, static_cast<int>(i)));
  const Shape count{static_cast<std::int64_t>(out.size())};
  context.set(0, Value::symbolic(std::move(out), count, ElementType::int64));
}

void size_of(OpContext& context) {
  const auto count = symbolic_count(context.shape(0));
  if (!count) return context.unsupported("a count of this size");
  context.set(0, Value::symbolic({*count}, {}, ElementType::int64));
}

void reshape(OpContext& context) {
  const Value from = context.value(0);
  if (from.shape().is_named() || (context.has(1) && context.value(1).symbols()))
    return reshape_named(context);
  // Before opset 5 the target was an attribute.
  Extents target =
      context.input_count() > 1 ? context.known_ints(1, "the target shape") : context.ints_attribute("shape");
  const bool zero_means_zero = context.int_attribute("allowzero", 0) != 0;
  const std::string asked = known_vector(target).shape().text();
  int free_axis = -1;
  std::int64_t known = 1;
  for (std::size_t i = 0; i < target.size(); ++i) {
    if (target[i] == 0 && !zero_means_zero) {
      if (!context.require(static_cast<int>(i) < from.rank(),
                           "extent 0 of the target copies an axis that the input does not have"))
        return;
      target[i] = from.shape()[static_cast<int>(i)];
    }
    if (target[i] == -1) {
      if (!context.require(free_axis < 0, "the target shape leaves two axes open")) return;
      free_axis = static_cast<int>(i);
      continue;
    }
    if (!context.require(target[i] >= 0 && (target[i] == 0 || known <= kMaxElements / target[i]),
                         "the target shape is out of range"))
      return;
    known *= target[i];
  }
  const std::int64_t count = from.shape().element_count();
  if (free_axis >= 0) {
    if (!context.require(known != 0 && count % known == 0,
                         "the open axis cannot be found: " + std::to_string(count) + " elements of " +
                             from.shape().text() + " do not divide by " + std::to_string(known)))
      return;
    target[static_cast<std::size_t>(free_axis)] = count / known;
  }
  const Shape shape = context.checked(target);
  if (!context.require(shape.element_count() == count,
                       "shape " + from.shape().text() + " does not hold the elements of " + shape.text()))
    return;
  context.set(0, context.mover().reshape(from, shape));
}

void flatten(OpContext& context) {
  const Value from = context.value(0);
  const std::int64_t raw = context.int_attribute("axis", 1);
  const int axis = raw == from.rank() ? from.rank() : context.axis(raw, from.rank());
  std::int64_t rows = 1, columns = 1;
  for (int i = 0; i < from.rank(); ++i) (i < axis ? rows : columns) *= from.shape()[i];
  context.set(0, context.mover().reshape(from, {rows, columns}));
}

// The axes of Squeeze and Unsqueeze: an attribute before opset 13, then an input.
Extents listed_axes(OpContext& context) {
  return context.has(1) ? context.known_ints(1, "axes") : context.ints_attribute("axes");
}

void squeeze(OpContext& context) {
  const Value from = context.value(0);
  const Extents raw = listed_axes(context);
  const Axes axes = context.axes(raw, from.rank());
  Extents shape;
  for (int i = 0; i < from.rank(); ++i) {
    const bool listed = std::find(axes.begin(), axes.end(), i) != axes.end();
    if (listed && !context.require(from.shape()[i] == 1,
                                   "axis " + std::to_string(i) + " of " + from.shape().text() + " is not 1"))
      return;
    if (!listed && !(raw.empty() && from.shape()[i] == 1)) shape.push_back(from.shape()[i]);
  }
  context.set(0, context.mover().reshape(from, context.checked(shape)));
}

void unsqueeze(OpContext& context) {
  const Value from = context.value(0);
  const Extents raw = listed_axes(context);
  if (!context.require(from.rank() + raw.size() <= static_cast<std::size_t>(Shape::kMaxRank),
                       "more than 8 axes"))
    return;
  const int rank = from.rank() + static_cast<int>(raw.size());
  const Axes axes = context.axes(raw, rank);
  Extents shape;
  int next = 0;
  for (int i = 0; i < rank && !context.failure(); ++i)
    shape.push_back(std::find(axes.begin(), axes.end(), i) != axes.end() ? 1 : from.shape()[next++]);
  context.set(0, context.mover().reshape(from, context.checked(shape)));
}

void transpose(OpContext& context) {
  const Value from = context.value(0);
  Extents raw = context.ints_attribute("perm");
  if (!context.has_attribute("perm"))
    for (int i = from.rank() - 1; i >= 0; --i) raw.push_back(i);
  const Axes axes = context.axes(raw, from.rank());
  if (!context.require(static_cast<int>(axes.size()) == from.rank(),
                       "perm does not name each axis of " + from.shape().text()))
    return;
  context.set(0, context.mover().permute(from, axes));
}

void concat(OpContext& context) {
  std::vector<Value> values;
  for (int i = 0; i < context.input_count(); ++i) values.push_back(context.value(i));
  if (!context.require(!values.empty(), "nothing to concatenate") ||
      !context.require(values[0].rank() > 0, "scalars have no axis"))
    return;
  const int axis = context.axis(context.int_attribute("axis", 1), values[0].rank());
  std::int64_t extent = 0;
  for (const Value& value : values) {
    bool fits = value.rank() == values[0].rank();
    for (int i = 0; fits && i < value.rank(); ++i)
      fits = i == axis || value.shape()[i] == values[0].shape()[i];
    if (!context.require(fits, "shapes " + values[0].shape().text() + " and " + value.shape().text() +
                                   " differ beside axis " + std::to_string(axis)))
      return;
    if (run_time_dtype(value.type()) != run_time_dtype(values[0].type()))
      return context.fail(ErrorCode::dtype_mismatch, "joins " + element_type_name(values[0].type()) +
                                                         " and " + element_type_name(value.type()));
    extent += value.shape()[axis];
  }
  Extents shape = extents_of(values[0].shape());
  shape[static_cast<std::size_t>(axis)] = extent;
  context.checked(shape);
  if (!context.failure()) context.set(0, context.mover().concat(values, axis));
}

void split(OpContext& context) {
  const Value from = context.value(0);
  if (!context.require(from.rank() > 0, "a scalar cannot be split")) return;
  const int axis = context.axis(context.int_attribute("axis", 0), from.rank());
  const std::int64_t extent = from.shape()[axis];
  Extents sizes = context.has(1) ? context.known_ints(1, "split", context.node().outputs.size())
                                 : context.ints_attribute("split");
  const auto count = static_cast<std::int64_t>(context.node().outputs.size());
  if (sizes.empty()) {
    // Equal parts; the last one may be smaller.
    const std::int64_t size = (extent + count - 1) / std::max<std::int64_t>(count, 1);
    for (std::int64_t i = 0; i < count; ++i)
      sizes.push_back(std::clamp<std::int64_t>(extent - i * size, 0, size));
  }
  if (!context.require(static_cast<std::int64_t>(sizes.size()) == count,
                       "as many parts as outputs are needed"))
    return;
  std::int64_t start = 0;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (!context.require(
            sizes[i] >= 0 && sizes[i] <= extent - start,
            "the parts are longer than axis " + std::to_string(axis) + " of " + from.shape().text()))
      return;
    if (context.wants(static_cast<int>(i)))
      context.set(static_cast<int>(i), context.mover().slice(from, axis, start, sizes[i], 1));
    start += sizes[i];
  }
  context.require(start == extent,
                  "the parts do not cover axis " + std::to_string(axis) + " of " + from.shape().text());
}

// The ends of Slice, numbers or not: an input since opset 10.
std::vector<SymbolicInt> slice_ends(OpContext& context, int input, const char* name) {
  if (context.opset() >= 10) return symbolic_list(context, input, name).value_or(std::vector<SymbolicInt>());
  const Extents numbers = context.ints_attribute(name);
  if (!context.require(
          numbers.size() <= static_cast<std::size_t>(Shape::kMaxRank),
          text(name, ": found ", numbers.size(), " numbers, expected at most ", Shape::kMaxRank)))
    return {};
  return {numbers.begin(), numbers.end()};
}

void slice(OpContext& context) {
  Value value = context.value(0);
  const bool by_input = context.opset() >= 10;
  const std::vector<SymbolicInt> starts = slice_ends(context, 1, "starts"),
                                 ends = slice_ends(context, 2, "ends");
  Extents raw_axes = by_input ? (context.has(3) ? context.known_ints(3, "axes") : Extents())
                              : context.ints_attribute("axes");
  const Extents steps =
      by_input && context.has(4) ? context.known_ints(4, "steps") : Extents(starts.size(), 1);
  if (raw_axes.empty()) {
    raw_axes.resize(starts.size());
    std::iota(raw_axes.begin(), raw_axes.end(), 0);
  }
  const Axes axes = context.axes(raw_axes, value.rank());
  if (!context.require(
          starts.size() == ends.size() && starts.size() == axes.size() && starts.size() == steps.size(),
          "starts, ends, axes and steps differ in length"))
    return;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const std::int64_t extent = value.shape()[axes[i]], step = steps[i];
    const auto first = starts[i].number(), beyond = ends[i].number();
    if (value.shape().is_named(axes[i]) || !first || !beyond) {
      if (step != 1) return context.unsupported("a step along a named extent");
      const auto part = slice_named(context, value, axes[i], starts[i], ends[i]);
      if (!part) return;
      value = *part;
      continue;
    }
    if (!context.require(step != 0 && step != std::numeric_limits<std::int64_t>::min(),
                         "a step of " + std::to_string(step)))
      return;
    const auto from_end = [&](std::int64_t index) {
      return index < 0 ? std::max(index, -extent - 1) + extent : index;
    };
    // Python's rules: a downward slice runs from extent - 1 to just before the beginning.
    const std::int64_t low = step > 0 ? 0 : -1, high = step > 0 ? extent : extent - 1;
    const std::int64_t start = std::clamp(from_end(*first), low, std::max(low, high));
    const std::int64_t end = std::clamp(from_end(*beyond), low, std::max(low, high));
    const std::int64_t distance = step > 0 ? end - start : start - end, stride = step > 0 ? step : -step;
    const std::int64_t count = distance <= 0 ? 0 : (distance - 1) / stride + 1;
    // The step of one element does not matter. A huge one would overflow later.
    if (count != extent || step != 1)
      value = context.mover().slice(value, axes[i], start, count, count > 1 ? step : 1);
  }
  context.set(0, value);
}

void expand(OpContext& context) {
  const Value from = context.value(0);
  if (from.shape().is_named() || context.value(1).symbols()) return expand_named(context);
  const Shape target = context.checked(context.known_ints(1, "the target shape"));
  const auto shape = broadcast(from.shape(), target);
  if (!context.require(shape.has_value(),
                       "shape " + from.shape().text() + " does not broadcast to " + target.text()))
    return;
  context.checked(shape->extents());
  if (!context.failure()) context.set(0, context.mover().expand(from, *shape));
}

void tile(OpContext& context) {
  Value value = context.value(0);
  if (context.value(1).symbols()) return tile_named(context);
  const Extents repeats = context.known_ints(1, "repeats");
  if (!context.require(static_cast<int>(repeats.size()) == value.rank(),
                       "one repeat for each axis of " + value.shape().text() + " is needed"))
    return;
  for (int axis = 0; axis < value.rank(); ++axis) {
    const std::int64_t times = repeats[static_cast<std::size_t>(axis)];
    Extents shape = extents_of(value.shape());
    std::int64_t& extent = shape[static_cast<std::size_t>(axis)];
    if (!context.require(times >= 0 && (extent == 0 || times <= kMaxElements / extent),
                         "repeats " + std::to_string(times) + " times"))
      return;
    extent *= times;
    context.checked(shape);
    if (context.failure()) return;
    value =
        times == 0 ? context.mover().slice(value, axis, 0, 0, 1) : context.mover().repeat(value, axis, times);
  }
  context.set(0, value);
}

constexpr std::int64_t kMostBlock = 1 << 16;  // its square keeps products of extents in 64 bits

// Moves blocks of size x size between channels and space.
void depth_to_space(OpContext& context) {
  const Tensor x = context.tensor(0);
  const std::int64_t block = context.int_attribute("blocksize", 0);
  if (!context.require(x.rank() == 4 && block > 0 && block < kMostBlock && x.extent(1) % (block * block) == 0,
                       "shape " + x.shape().text() + " does not fit blocks of " + std::to_string(block)))
    return;
  const std::int64_t n = x.extent(0), c = x.extent(1) / (block * block), h = x.extent(2), w = x.extent(3);
  const std::string mode = context.string_attribute("mode", "DCR");
  const Tensor split =
      mode == "CRD" ? imprint::permute(imprint::reshape(x, {n, c, block, block, h, w}), {0, 1, 4, 2, 5, 3})
                    : imprint::permute(imprint::reshape(x, {n, block, block, c, h, w}), {0, 3, 4, 1, 5, 2});
  context.set(0, imprint::reshape(split, {n, c, h * block, w * block}));
}

void space_to_depth(OpContext& context) {
  const Tensor x = context.tensor(0);
  const std::int64_t block = context.int_attribute("blocksize", 0);
  if (!context.require(x.rank() == 4 && block > 0 && block < kMostBlock && x.extent(2) % block == 0 &&
                           x.extent(3) % block == 0,
                       "shape " + x.shape().text() + " does not fit blocks of " + std::to_string(block)))
    return;
  const std::int64_t n = x.extent(0), c = x.extent(1), h = x.extent(2) / block, w = x.extent(3) / block;
  const Tensor split = imprint::permute(imprint::reshape(x, {n, c, h, block, w, block}), {0, 3, 5, 1, 2, 4});
  context.set(0, imprint::reshape(split, {n, c * block * block, h, w}));
}

constexpr std::array kShapeOps{
    OpHandler{"Shape", shape_of},
    OpHandler{"Size", size_of},
    OpHandler{"Reshape", reshape},
    OpHandler{"Flatten", flatten},
    OpHandler{"Squeeze", squeeze},
    OpHandler{"Unsqueeze", unsqueeze},
    OpHandler{"Transpose", transpose},
    OpHandler{"Concat", concat},
    OpHandler{"Split", split},
    OpHandler{"Slice", slice},
    OpHandler{"Expand", expand},
    OpHandler{"Tile", tile},
    OpHandler{"DepthToSpace", depth_to_space},
    OpHandler{"SpaceToDepth", space_to_depth},
};

}  // namespace

std::span<const OpHandler> shape_ops() { return kShapeOps; }

}  // namespace imprint::onnx
