#include <algorithm>
#include <cmath>
#include <limits>

#include "compute/base/text.h"
#include "compute/tensor/build.h"
#include "compute/tensor/named_axes.h"
#include "compute/tensor/narrow_floats.h"

namespace imprint {

using namespace tensor;

namespace {

// The axes that a reduction folds, ascending. All axes when none are named.
Result<std::vector<int>> folded_axes(std::string_view op, const Tensor& x, const Axes& axes) {
  std::vector<int> out;
  if (axes.empty())
    for (int axis = 0; axis < x.rank(); ++axis) out.push_back(axis);
  for (int axis : axes) {
    const std::optional<int> position = normalize_axis(axis, x.rank());
    if (!position) return bad_axis(op, axis, x).error();
    out.push_back(*position);
  }
  std::ranges::sort(out);
  if (std::ranges::adjacent_find(out) != out.end())
    return failure(ErrorCode::invalid_argument, op,
                   text("found an axis of ", describe(x), " twice, expected each at most once"))
        .error();
  return out;
}

Shape without(const Shape& shape, const std::vector<int>& axes) {
  Shape out;
  for (int axis = 0; axis < shape.rank(); ++axis)
    if (!std::ranges::binary_search(axes, axis)) out.append(shape, axis);
  return out;
}

std::int64_t count_folded(const Shape& shape, const std::vector<int>& axes) {
  std::int64_t count = 1;
  for (int axis : axes) count *= shape[axis];
  return count;
}

// Folding one repeated value needs no loop.
std::optional<double> folded_value(Op op, double value, DType dtype, std::int64_t count) {
  if (op == Op::reduce_max || op == Op::reduce_min) {
    if (count > 0) return value;
    return std::nullopt;
  }
  if (op == Op::reduce_sum && dtype == DType::float32)
    return count == 0 ? 0 : value * static_cast<double>(count);
  return std::nullopt;
}

Tensor reduce(Op op, std::string_view name, const Tensor& x, const Axes& axes, bool keep_dims) {
  if (!x.ok()) return x;
  if (is_narrow_float(x))
    return rounded_once(x, [&](const Tensor& wide) { return reduce(op, name, wide, axes, keep_dims); });
  const Result<std::vector<int>> folded = folded_axes(name, x, axes);
  if (!folded) return Tensor(folded.error());
  if (x.dtype() == DType::boolean) return bad_dtype(name, x, "float32 or int32 (any and all take bool)");
  Shape kept = x.shape();
  std::vector<std::int64_t> wide;  // axes of extent 1 need no folding
  for (int axis : *folded) {
    if (x.extent(axis) != 1) wide.push_back(axis);
    kept[axis] = 1;
  }
  Tensor out = x;
  if (!wide.empty()) {
    const bool is_named = std::ranges::any_of(*folded, [&](int axis) { return x.shape().is_named(axis); });
    const std::optional<double> value = is_named ? std::nullopt : full_value(x);
    const std::optional<double> simple =
        value ? folded_value(op, *value, x.dtype(), count_folded(x.shape(), *folded)) : std::nullopt;
    out = simple ? full(kept, *simple, x.dtype()) : make(op, {x}, {.ints = std::move(wide)});
  }
  return keep_dims || !out.ok() ? out : reshape(out, without(x.shape(), *folded));
}

// A workgroup searches a line, and llvmpipe ends a loop after 65,535 turns.
constexpr std::int64_t kLongLine = 1 << 21, kStretch = 1 << 16;

// The extreme of each stretch of the line, then the extreme of these.
Tensor arg_of_long_line(Op op, const Tensor& line, int axis) {
  const auto arg = [op](const Tensor& x, int along) {
    return op == Op::argmax ? argmax(x, along) : argmin(x, along);
  };
  const std::int64_t stretches = line.extent(axis) / kStretch, rest = line.extent(axis) % kStretch;
  Shape parts, found;
  for (int k = 0; k < line.rank(); ++k) {
    parts.append(k == axis ? stretches : line.extent(k));
    found.append(k == axis ? stretches : line.extent(k));
    if (k == axis) parts.append(kStretch);
  }
  Tensor positions = arg(reshape(narrow(line, axis, 0, stretches * kStretch), parts), axis + 1) +
                     iota(found, axis) * static_cast<int>(kStretch);
  if (rest > 0) {
    const Tensor last = arg(narrow(line, axis, stretches * kStretch, rest), axis);
    positions = concat({positions, unsqueeze(last, axis) + static_cast<int>(stretches * kStretch)}, axis);
  }
  const Tensor best = unsqueeze(arg(gather(line, axis, positions), axis), axis);
  return gather(positions, axis, best);
}

Tensor arg_reduce(Op op, const Tensor& x, const Axes& axes, bool keep_dims) {
  if (!x.ok()) return x;
  if (is_narrow_float(x)) return arg_reduce(op, cast(x, DType::float32), axes, keep_dims);
  const Result<std::vector<int>> folded = folded_axes(op_info(op).name, x, axes);
  if (!folded) return Tensor(folded.error());
  Shape kept = x.shape();
  for (int axis : *folded) kept[axis] = 1;
  Tensor line = x;  // with a single axis to fold
  int fold = folded->size() == 1 ? folded->front() : 0;
  if (folded->size() != 1) {
    Axes order;
    for (int axis = 0; axis < x.rank(); ++axis)
      if (!std::ranges::binary_search(*folded, axis)) order.push_back(axis);
    fold = static_cast<int>(order.size());
    order.insert(order.end(), folded->begin(), folded->end());
    Shape shape = without(x.shape(), *folded);
    shape.append(count_folded(x.shape(), *folded));
    line = reshape(permute(x, order), shape);
  }
  const bool is_long =
      line.rank() < Shape::kMaxRank && line.extent(fold) > kLongLine && !line.shape().is_named();
  const Tensor out = is_long ? arg_of_long_line(op, line, fold) : make(op, {line}, {.ints = {fold}});
  return out.ok() ? reshape(out, keep_dims ? kept : without(x.shape(), *folded)) : out;
}

// NaN, for reductions of too few elements. Not 0 * inf, which is 0 on some devices.
Tensor not_a_number(const Tensor& like) {
  return like.ok() ? full(like.shape(), std::numeric_limits<double>::quiet_NaN()) : like;
}

Tensor truth(const Tensor& x) { return x.dtype() == DType::boolean ? x : cast(x, DType::boolean); }

}  // namespace

#define IMPRINT_FOLD(name, kind, inputs, rule, cost, derivative, function, ...) \
  Tensor(function)(const Tensor& x, const Axes& axes, bool keep_dims) {         \
    return reduce(Op::name, #function, x, axes, keep_dims);                     \
  }
IMPRINT_FOLD_OPS(IMPRINT_FOLD)
#undef IMPRINT_FOLD

Tensor argmax(const Tensor& x, const Axes& axes, bool keep_dims) {
  return arg_reduce(Op::argmax, x, axes, keep_dims);
}
Tensor argmin(const Tensor& x, const Axes& axes, bool keep_dims) {
  return arg_reduce(Op::argmin, x, axes, keep_dims);
}

Tensor mean(const Tensor& x, const Axes& axes, bool keep_dims) {
  if (!x.ok()) return x;
  if (is_narrow_float(x))
    return rounded_once(x, [&](const Tensor& wide) { return mean(wide, axes, keep_dims); });
  if (x.dtype() != DType::float32) return bad_dtype("mean", x, "float32");
  const Result<std::vector<int>> folded = folded_axes("mean", x, axes);
  if (!folded) return Tensor(folded.error());
  const std::int64_t count = count_folded(x.shape(), *folded);
  const Tensor total = sum(x, axes, keep_dims);
  return count == 0 ? not_a_number(total) : total * inverse_count(x.shape(), *folded);
}

Tensor variance(const Tensor& x, const Axes& axes, bool keep_dims, double correction) {
  if (!x.ok()) return x;
  if (is_narrow_float(x))
    return rounded_once(x, [&](const Tensor& wide) { return variance(wide, axes, keep_dims, correction); });
  const Result<std::vector<int>> folded = folded_axes("variance", x, axes);
  if (!folded) return Tensor(folded.error());
  const double freedom = std::fmax(static_cast<double>(count_folded(x.shape(), *folded)) - correction, 0);
  const Tensor centred = x - mean(x, axes, true);
  const Tensor total = sum(square(centred), axes, keep_dims);
  return freedom == 0 ? not_a_number(total) : total * inverse_count(x.shape(), *folded, correction);
}

Tensor any(const Tensor& x, const Axes& axes, bool keep_dims) {
  if (!x.ok()) return x;
  return sum(cast(truth(x), DType::int32), axes, keep_dims) > 0;
}

Tensor all(const Tensor& x, const Axes& axes, bool keep_dims) {
  if (!x.ok()) return x;
  return equal(sum(cast(logical_not(truth(x)), DType::int32), axes, keep_dims), 0);
}

}  // namespace imprint
