// Joining and splitting tensors along an axis.

#include <algorithm>

#include "compute/base/text.h"
#include "compute/tensor/build.h"
#include "compute/tensor/extent_sums.h"

namespace imprint {

using namespace tensor;

namespace {

// A scalar or a list along an axis, shaped to broadcast against a tensor of this rank.
Tensor placed_along(Tensor list, int axis, int rank) {
  while (list.ok() && list.rank() < rank - axis) list = unsqueeze(list, list.rank());
  return list;
}

bool fit_beside(std::span<const Tensor> tensors, int axis) {
  for (const Tensor& tensor : tensors) {
    if (tensor.rank() != tensors[0].rank()) return false;
    for (int a = 0; a < tensor.rank(); ++a)
      if (a != axis && tensor.extent(a) != tensors[0].extent(a)) return false;
  }
  return true;
}

Tensor refused_along(std::string_view op, const Tensor& tensor, int axis) {
  return failure(ErrorCode::unsupported, op,
                 text("found ", describe(tensor), " with axis ", axis, " named '",
                      named_axis(tensor.shape().name(axis)).text(),
                      "', expected one extent or a sum, below 2^24. Give the axis a number instead of an "
                      "Extent."));
}

// Tensors whose extents along the axis each run chooses: each begins where those of the run before it end.
Tensor joined_in_runs(std::span<const Tensor> tensors, int axis) {
  ExtentSum total;
  std::vector<Tensor> starts;
  for (const Tensor& tensor : tensors) {
    const auto places = sum_of_axis(tensor.shape(), axis);
    starts.push_back(total.tensor());
    if (places && total.add(*places)) continue;
    return refused_along("concat", tensor, axis);
  }
  const auto along = axis_of(total);
  if (!along) return refused_along("concat", tensors.back(), axis);
  const Tensor positions = iota(Shape{*along}, 0);
  Tensor result = take(tensors[0], axis, positions);
  for (std::size_t i = 1; i < tensors.size(); ++i) {
    const Tensor own = take(tensors[i], axis, positions - starts[i]);
    result = where(placed_along(less(positions, starts[i]), axis, tensors[0].rank()), result, own);
  }
  return result;
}

}  // namespace

Tensor concat(std::span<const Tensor> tensors, int axis) {
  if (const Tensor* failed = first_error(tensors)) return *failed;
  if (tensors.empty())
    return failure(ErrorCode::invalid_argument, "concat", "found no tensors, expected at least one");
  const std::optional<int> position = normalize_axis(axis, tensors[0].rank());
  if (!position) return bad_axis("concat", axis, tensors[0]);
  if (tensors.size() == 1) return tensors[0];
  // The tensors after a named one must move up to its places; the last one may have places beyond.
  const auto is_named = [&](const Tensor& tensor) { return tensor.shape().is_named(*position); };
  if (fit_beside(tensors, *position) && std::ranges::any_of(tensors.first(tensors.size() - 1), is_named))
    return joined_in_runs(tensors, *position);
  return make(Op::concat, tensors, {.ints = {*position}});
}

Tensor concat(std::initializer_list<Tensor> tensors, int axis) {
  return concat(std::span<const Tensor>(tensors.begin(), tensors.size()), axis);
}

Tensor stack(std::span<const Tensor> tensors, int axis) {
  std::vector<Tensor> lifted;
  for (const Tensor& tensor : tensors) {
    if (tensor.ok() && tensors[0].ok() && tensor.shape() != tensors[0].shape())
      return failure(
          ErrorCode::shape_mismatch, "stack",
          text("found ", describe(tensors[0]), " and ", describe(tensor), ", expected equal shapes"));
    lifted.push_back(unsqueeze(tensor, axis));
  }
  if (tensors.empty())
    return failure(ErrorCode::invalid_argument, "stack", "found no tensors, expected at least one");
  if (const Tensor* failed = first_error(lifted)) return *failed;
  return concat(lifted, axis < 0 ? axis + lifted[0].rank() : axis);
}

Tensor stack(std::initializer_list<Tensor> tensors, int axis) {
  return stack(std::span<const Tensor>(tensors.begin(), tensors.size()), axis);
}

std::vector<Tensor> split(const Tensor& x, std::int64_t size, int axis) {
  if (!x.ok()) return {x};
  const std::optional<int> position = normalize_axis(axis, x.rank());
  if (!position || size < 1)
    return {failure(ErrorCode::shape_mismatch, "split",
                    text("found pieces of ", size, " along axis ", axis, " of ", describe(x),
                         ", expected a size of at least 1 and an axis inside"))};
  std::vector<Tensor> pieces;
  const std::int64_t extent = x.extent(*position);
  for (std::int64_t start = 0; start < extent || pieces.empty(); start += size)
    pieces.push_back(slice(x, *position, start, start + size));
  return pieces;
}

Tensor pad(const Tensor& x, std::span<const std::pair<std::int64_t, std::int64_t>> before_after,
           double value) {
  if (!x.ok()) return x;
  if (static_cast<int>(before_after.size()) != x.rank())
    return failure(
        ErrorCode::shape_mismatch, "pad",
        text("found ", before_after.size(), " pairs for ", describe(x), ", expected one per axis"));
  std::vector<std::int64_t> amounts;
  bool any = false;
  for (int axis = 0; axis < x.rank(); ++axis) {
    const auto [before, after] = before_after[static_cast<std::size_t>(axis)];
    any = any || before != 0 || after != 0;
    amounts.push_back(before);
    amounts.push_back(after);
  }
  if (!any) return x;
  return make(Op::pad, {x}, {.ints = std::move(amounts), .floats = {representable(value, x.dtype())}});
}

Tensor tensor::trimmed(const Tensor& x, int axis, std::int64_t before, std::int64_t after) {
  if (!x.ok() || (before == 0 && after == 0)) return x;
  if (!x.shape().is_named(axis)) return narrow(x, axis, before, x.extent(axis) - before - after);
  auto places = sum_of_axis(x.shape(), axis);
  if (places) places->more -= before + after;
  const auto made = places ? axis_of(*places) : std::nullopt;
  if (!made) return refused_along("trimmed", x, axis);
  Attributes cut{.shape = x.shape()};
  for (int k = 0; k < x.rank(); ++k) {
    cut.ints.push_back(k == axis ? before : 0);
    cut.ints.push_back(1);
  }
  cut.shape[axis] = made->extent;
  cut.shape.set_name(axis, made->name);
  return make(Op::slice, {x}, std::move(cut));
}

Tensor repeat(const Tensor& x, int axis, std::int64_t times) {
  if (!x.ok()) return x;
  const std::optional<int> position = normalize_axis(axis, x.rank());
  if (!position || times < 0 || x.rank() == Shape::kMaxRank)
    return failure(ErrorCode::shape_mismatch, "repeat",
                   text("found ", times, " times along axis ", axis, " of ", describe(x),
                        ", expected 0 or more times, an axis inside and at most 7 axes"));
  Shape repeated = x.shape();
  repeated[*position] *= times;
  Shape expanded;
  for (int k = 0; k < x.rank(); ++k) {
    if (k == *position) expanded.append(times);
    expanded.append(x.extent(k));
  }
  return reshape(expand(unsqueeze(x, *position), expanded), repeated);
}

}  // namespace imprint
