// Views: the input's elements rearranged. Views of views are composed here, so that a consumer indexes
// through at most one of each kind.

#include <algorithm>

#include "compute/base/at.h"
#include "compute/base/text.h"
#include "compute/tensor/build.h"

namespace imprint {

using namespace tensor;

namespace {

Tensor source_of(const Tensor& tensor) { return Tensor(tensor.node()->inputs[0]); }

// Rearranging one repeated value only changes the shape.
std::optional<Tensor> refill(const Tensor& x, const Shape& shape) {
  if (x.shape().is_named()) return std::nullopt;  // where the names go, a node says
  const std::optional<double> value = full_value(x);
  if (!value) return std::nullopt;
  return full(shape, *value, x.dtype());
}

// A slice over all axes. Starts and steps are valid for the extents.
Tensor slice_axes(const Tensor& x, std::vector<std::int64_t> starts_and_steps, const Shape& shape) {
  bool identity = shape == x.shape();
  for (std::size_t i = 0; identity && i < starts_and_steps.size(); i += 2)
    identity = starts_and_steps[i] == 0 && starts_and_steps[i + 1] == 1;
  if (identity) return x;
  if (std::optional<Tensor> simple = refill(x, shape)) return *simple;
  if (is_op(x, Op::slice)) {
    const std::vector<std::int64_t>& inner = x.node()->ints;
    for (std::size_t i = 0; i < starts_and_steps.size(); i += 2) {
      starts_and_steps[i] = inner[i] + starts_and_steps[i] * inner[i + 1];
      starts_and_steps[i + 1] *= inner[i + 1];
    }
    return slice_axes(source_of(x), std::move(starts_and_steps), shape);
  }
  return make(Op::slice, {x}, {.ints = std::move(starts_and_steps), .shape = shape});
}

}  // namespace

Tensor reshape(const Tensor& x, const Shape& wanted) {
  if (!x.ok()) return x;
  Shape target = wanted;
  int unknown = -1;
  std::int64_t known = 1;
  for (int axis = 0; axis < target.rank(); ++axis) {
    if (target[axis] == -1) {
      if (unknown >= 0)
        return failure(
            ErrorCode::shape_mismatch, "reshape",
            text("found target ", wanted.text(), " for ", describe(x), ", expected at most one -1"));
      unknown = axis;
    } else {
      known *= target[axis];
    }
  }
  if (unknown >= 0) {
    if (known <= 0 || x.shape().element_count() % known != 0)
      return failure(ErrorCode::shape_mismatch, "reshape",
                     text("found target ", wanted.text(), " for ", describe(x),
                          ", expected extents that divide its ", x.shape().element_count(), " elements"));
    target[unknown] = x.shape().element_count() / known;
  }
  if (target == x.shape()) return x;
  if (target.element_count() == x.shape().element_count())
    if (std::optional<Tensor> simple = refill(x, target)) return *simple;
  if (is_op(x, Op::reshape) && target.element_count() == x.shape().element_count())
    return reshape(source_of(x), target);
  return make(Op::reshape, {x}, {.shape = target});
}

Tensor flatten(const Tensor& x, int first_axis, int last_axis) {
  if (!x.ok()) return x;
  if (x.rank() == 0) return reshape(x, {1});
  const std::optional<int> first = normalize_axis(first_axis, x.rank()),
                           last = normalize_axis(last_axis, x.rank());
  if (!first) return bad_axis("flatten", first_axis, x);
  if (!last) return bad_axis("flatten", last_axis, x);
  if (*first > *last)
    return failure(ErrorCode::shape_mismatch, "flatten",
                   text("found first axis ", *first, " and last axis ", *last, " of ", describe(x),
                        ", expected them in order"));
  Shape target;
  std::int64_t folded = 1;
  for (int axis = 0; axis < x.rank(); ++axis) {
    if (axis < *first || axis > *last) {
      target.append(x.extent(axis));
      continue;
    }
    folded *= x.extent(axis);
    if (axis == *last) target.append(folded);
  }
  return reshape(x, target);
}

Tensor squeeze(const Tensor& x, int axis) {
  if (!x.ok()) return x;
  const std::optional<int> position = normalize_axis(axis, x.rank());
  if (!position) return bad_axis("squeeze", axis, x);
  if (x.extent(*position) != 1)
    return failure(
        ErrorCode::shape_mismatch, "squeeze",
        text("found axis ", axis, " of ", describe(x), " with extent ", x.extent(*position), ", expected 1"));
  Shape target;
  for (int k = 0; k < x.rank(); ++k)
    if (k != *position) target.append(x.extent(k));
  return reshape(x, target);
}

Tensor unsqueeze(const Tensor& x, int axis) {
  if (!x.ok()) return x;
  const std::optional<int> position = normalize_axis(axis, x.rank() + 1);
  if (!position || x.rank() == Shape::kMaxRank)
    return failure(ErrorCode::shape_mismatch, "unsqueeze",
                   text("found new axis ", axis, " for ", describe(x), ", expected ", -x.rank() - 1, " .. ",
                        x.rank(), " and at most 7 axes"));
  Shape target;
  for (int k = 0; k <= x.rank(); ++k) {
    if (k == *position) target.append(1);
    if (k < x.rank()) target.append(x.extent(k));
  }
  return reshape(x, target);
}

Tensor permute(const Tensor& x, const Axes& axes) {
  if (!x.ok()) return x;
  std::vector<std::int64_t> order;
  for (int axis : axes) {
    const std::optional<int> position = normalize_axis(axis, x.rank());
    if (!position) return bad_axis("permute", axis, x);
    order.push_back(*position);
  }
  const Result<Inferred> inferred =
      infer(Op::permute, std::span<const NodeRef>(&x.node(), 1), {.ints = order});
  if (!inferred) return Tensor(inferred.error());
  // Moving only axes of extent 1 keeps the elements in order.
  bool in_order = true;
  std::int64_t previous = -1;
  for (std::int64_t axis : order) {
    if (x.extent(static_cast<int>(axis)) == 1) continue;
    in_order = in_order && axis > previous;
    previous = axis;
  }
  if (in_order) return reshape(x, inferred->shape);
  if (std::optional<Tensor> simple = refill(x, inferred->shape)) return *simple;
  if (is_op(x, Op::permute)) {
    Axes composed;
    for (std::int64_t axis : order) composed.push_back(static_cast<int>(x.node()->ints[at(axis)]));
    return permute(source_of(x), composed);
  }
  return make(Op::permute, {x}, {.ints = std::move(order)});
}

Tensor transpose(const Tensor& x, int axis_a, int axis_b) {
  if (!x.ok()) return x;
  const std::optional<int> a = normalize_axis(axis_a, x.rank()), b = normalize_axis(axis_b, x.rank());
  if (!a) return bad_axis("transpose", axis_a, x);
  if (!b) return bad_axis("transpose", axis_b, x);
  Axes order;
  for (int axis = 0; axis < x.rank(); ++axis) order.push_back(axis);
  std::swap(order[at(*a)], order[at(*b)]);
  return permute(x, order);
}

Tensor expand(const Tensor& x, const Shape& shape) {
  if (!x.ok()) return x;
  if (x.shape() == shape) return x;
  const std::optional<Shape> wider = broadcast(x.shape(), shape);
  if (!wider || *wider != shape)
    return failure(ErrorCode::shape_mismatch, "expand",
                   text("found ", describe(x), ", expected a shape that broadcasts to ", shape.text()));
  if (std::optional<Tensor> simple = refill(x, shape)) return *simple;
  Shape aligned;
  for (int axis = x.rank(); axis < shape.rank(); ++axis) aligned.append(1);
  for (std::int64_t extent : x.shape().extents()) aligned.append(extent);
  if (is_op(x, Op::expand) && aligned == x.shape()) return expand(source_of(x), shape);
  const Tensor source = reshape(x, aligned);
  if (aligned == shape) return source;
  return make(Op::expand, {source}, {.shape = shape});
}

Tensor slice(const Tensor& x, int axis, std::int64_t start, std::int64_t stop, std::int64_t step) {
  if (!x.ok()) return x;
  const std::optional<int> position = normalize_axis(axis, x.rank());
  if (!position) return bad_axis("slice", axis, x);
  if (step == 0)
    return failure(
        ErrorCode::invalid_argument, "slice",
        text("found step 0 along axis ", axis, " of ", describe(x), ", expected 1 or more, or -1 or less"));
  // Python's rules: negative positions count from the end; positions outside are clamped.
  const std::int64_t extent = x.extent(*position);
  const std::int64_t lowest = step > 0 ? 0 : -1, highest = step > 0 ? extent : extent - 1;
  const std::int64_t first = std::clamp(start < 0 ? start + extent : start, lowest, highest);
  const std::int64_t end = std::clamp(stop < 0 ? stop + extent : stop, lowest, highest);
  const std::int64_t distance = step > 0 ? end - first : first - end;
  const std::int64_t stride = step > 0 ? step : (step == INT64_MIN ? INT64_MAX : -step);
  const std::int64_t count = distance > 0 ? (distance - 1) / stride + 1 : 0;

  std::vector<std::int64_t> starts_and_steps;
  for (int k = 0; k < x.rank(); ++k) {
    const bool cut = k == *position && count > 0;
    starts_and_steps.push_back(cut ? first : 0);
    starts_and_steps.push_back(cut && count > 1 ? step : 1);
  }
  Shape shape = x.shape();
  shape[*position] = count;
  return slice_axes(x, std::move(starts_and_steps), shape);
}

Tensor narrow(const Tensor& x, int axis, std::int64_t start, std::int64_t length) {
  if (!x.ok()) return x;
  const std::optional<int> position = normalize_axis(axis, x.rank());
  if (!position) return bad_axis("narrow", axis, x);
  const std::int64_t extent = x.extent(*position);
  if (start < 0 || length < 0 || start > extent || length > extent - start)
    return failure(ErrorCode::shape_mismatch, "narrow",
                   text("found ", length, " elements from ", start, " along axis ", axis, " of ", describe(x),
                        ", expected 0 .. ", extent));
  return slice(x, *position, start, start + length);
}

Tensor flip(const Tensor& x, int axis) {
  if (!x.ok()) return x;
  const std::optional<int> position = normalize_axis(axis, x.rank());
  if (!position) return bad_axis("flip", axis, x);
  // The stop is before the first element: only a number below -extent says so.
  return slice(x, *position, x.extent(*position) - 1, -x.extent(*position) - 1, -1);
}

Tensor window(const Tensor& x, int axis, std::int64_t size, std::int64_t stride, std::int64_t dilation) {
  if (!x.ok()) return x;
  const std::optional<int> position = normalize_axis(axis, x.rank());
  if (!position) return bad_axis("window", axis, x);
  return make(Op::window, {x}, {.ints = {*position, size, stride, dilation}});
}

}  // namespace imprint
