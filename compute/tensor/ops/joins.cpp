// Joining and splitting tensors along an axis.

#include "compute/base/text.h"
#include "compute/tensor/build.h"

namespace imprint {

using namespace tensor;

Tensor concat(std::span<const Tensor> tensors, int axis) {
  if (const Tensor* failed = first_error(tensors)) return *failed;
  if (tensors.empty())
    return failure(ErrorCode::invalid_argument, "concat", "found no tensors, expected at least one");
  const std::optional<int> position = normalize_axis(axis, tensors[0].rank());
  if (!position) return bad_axis("concat", axis, tensors[0]);
  if (tensors.size() == 1) return tensors[0];
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
  for (const auto& [before, after] : before_after) {
    amounts.push_back(before);
    amounts.push_back(after);
    any = any || before != 0 || after != 0;
  }
  if (!any) return x;
  return make(Op::pad, {x}, {.ints = std::move(amounts), .floats = {representable(value, x.dtype())}});
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
