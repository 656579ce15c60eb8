#include "compute/base/text.h"
#include "compute/tensor/build.h"
#include "compute/tensor/int64_words.h"

namespace imprint {

using namespace tensor;

namespace {

// Runs `build` with the axis counted from the front.
template <class Build>
Tensor with_axis(Op op, const Tensor& data, int axis, Build build) {
  if (!data.ok()) return data;
  const std::optional<int> position = normalize_axis(axis, data.rank());
  if (!position) return bad_axis(op_info(op).name, axis, data);
  return build(*position);
}

}  // namespace

Tensor tensor::as_indices(const Tensor& tensor) {
  if (tensor.ok() && tensor.dtype() == DType::int64) return index_of(words_of(tensor));
  const bool is_other = tensor.ok() && dtype_is_integer(tensor.dtype()) && tensor.dtype() != DType::int32;
  return is_other ? cast(tensor, DType::int32) : tensor;
}

Tensor gather(const Tensor& data, int axis, const Tensor& indices) {
  return with_axis(Op::gather, data, axis, [&](int position) {
    return make(Op::gather, {data, as_indices(indices)}, {.ints = {position}});
  });
}

Tensor take(const Tensor& data, int axis, const Tensor& indices) {
  return with_axis(Op::take, data, axis, [&](int position) {
    return make(Op::take, {data, as_indices(indices)}, {.ints = {position}});
  });
}

Tensor index_select(const Tensor& data, int axis, const Tensor& indices) {
  if (indices.ok() && indices.rank() != 1)
    return failure(
        ErrorCode::shape_mismatch, "index_select",
        text("found indices ", describe(indices), ", expected one axis. Use take for other shapes."));
  return take(data, axis, indices);
}

Tensor scatter_add(const Tensor& base, int axis, const Tensor& indices, const Tensor& updates) {
  return with_axis(Op::scatter_add, base, axis, [&](int position) {
    return make(Op::scatter_add, {base, as_indices(indices), updates}, {.ints = {position}});
  });
}

Tensor cumsum(const Tensor& x, int axis, bool exclusive, bool reverse) {
  return with_axis(Op::cumsum, x, axis, [&](int position) {
    return make(Op::cumsum, {x}, {.ints = {position, exclusive, reverse}});
  });
}

Tensor linear_recurrence(const Tensor& terms, const Tensor& factors, int axis, bool reverse) {
  return with_axis(Op::linear_recurrence, terms, axis, [&](int position) {
    return make(Op::linear_recurrence, {terms, factors}, {.ints = {position, 0, reverse}});
  });
}

}  // namespace imprint
