// scatter(): a page for every combination except add, which is a primitive.

#include <algorithm>

#include "compute/base/text.h"
#include "compute/tensor/build.h"
#include "compute/tensor/int64_words.h"
#include "compute/tensor/pages/scatter_page.h"

namespace imprint {

using namespace tensor;

namespace {

constexpr std::string_view kNames[] = {"scatter_assign", "scatter_add", "scatter_mul", "scatter_min",
                                       "scatter_max"};

template <class T>
T combined(Scatter mode, T a, T b) {
  switch (mode) {
    case Scatter::mul:
      if constexpr (std::is_same_v<T, std::int32_t>)
        return static_cast<T>(static_cast<std::uint32_t>(a) * static_cast<std::uint32_t>(b));
      else
        return a * b;
    case Scatter::min:
      return a <= b || a != a ? a : b;
    case Scatter::max:
      return a >= b || a != a ? a : b;
    default:
      return b;
  }
}

template <class T>
void scatter_on_cpu(Scatter mode, int axis, const PageArray& base, std::span<const std::int32_t> indices,
                    const PageArray& updates, std::span<const T> from, std::span<T> into) {
  std::int64_t inner = 1;
  for (int k = axis + 1; k < base.shape.rank(); ++k) inner *= base.shape[k];
  const std::int64_t extent = base.shape[axis], length = updates.shape[axis];
  for (std::int64_t i = 0; i < updates.shape.element_count(); ++i) {
    const std::int32_t index = indices[static_cast<std::size_t>(i)];
    if (index < 0 || index >= extent) continue;
    T& target = into[static_cast<std::size_t>((i / (inner * length) * extent + index) * inner + i % inner)];
    target = combined(mode, target, from[static_cast<std::size_t>(i)]);
  }
}

// The updates that win: each target's position of the last update, gathered back.
std::vector<Tensor> unassign(std::span<const Tensor> inputs, const Tensor& g, int axis) {
  const Tensor& base = inputs[0];
  const Tensor& indices = inputs[1];
  const Tensor order = iota(indices.shape(), axis);
  const Tensor last = scatter(full(base.shape(), -1, DType::int32), axis, indices, order, Scatter::max);
  return {where(last < 0, g, 0.0f), Tensor(),
          where(equal(gather(last, axis, indices), order), gather(g, axis, indices), 0.0f)};
}

// Ties share the gradient equally.
std::vector<Tensor> unextreme(std::span<const Tensor> inputs, const Tensor& result, const Tensor& g,
                              int axis) {
  const Tensor attained = equal(inputs[2], gather(result, axis, inputs[1])), stays = equal(inputs[0], result);
  const Tensor winners =
      scatter_add(cast(stays, DType::float32), axis, inputs[1], cast(attained, DType::float32));
  const Tensor share = g / maximum(winners, 1.0f);
  return {where(stays, share, 0.0f), Tensor(), where(attained, gather(share, axis, inputs[1]), 0.0f)};
}

// The product of the other factors, which divides only by factors other than 0.
std::vector<Tensor> unmultiply(std::span<const Tensor> inputs, const Tensor& g, int axis) {
  const Tensor &base = inputs[0], &indices = inputs[1], &updates = inputs[2];
  const Tensor base_zero = equal(base, 0.0f), update_zero = equal(updates, 0.0f);
  const Tensor zeros_at =
      scatter_add(cast(base_zero, DType::float32), axis, indices, cast(update_zero, DType::float32));
  const Tensor base_factor = where(base_zero, 1.0f, base), update_factor = where(update_zero, 1.0f, updates);
  const Tensor product = scatter(base_factor, axis, indices, update_factor, Scatter::mul);
  const auto others = [&](const Tensor& scaled, const Tensor& zeros, const Tensor& own_zero,
                          const Tensor& factor) {
    return where(equal(zeros, cast(own_zero, DType::float32)), scaled / factor, 0.0f);
  };
  const Tensor scaled = g * product;
  return {others(scaled, zeros_at, base_zero, base_factor), Tensor(),
          others(gather(scaled, axis, indices), gather(zeros_at, axis, indices), update_zero, update_factor)};
}

Tensor checked(const Tensor& base, int axis, const Tensor& indices, const Tensor& updates,
               std::string_view name) {
  const Tensor like_add = scatter_add(base, axis, indices, updates);  // one set of rules
  if (like_add.ok()) return like_add;
  const std::string& message = like_add.error().message;
  constexpr std::string_view kAdd = "scatter_add: ";
  return message.starts_with(kAdd) ? failure(like_add.error().code, name, message.substr(kAdd.size()))
                                   : like_add;
}

}  // namespace

Tensor scatter(const Tensor& base, int axis, const Tensor& indices, const Tensor& updates, Scatter mode) {
  const std::string_view name = kNames[static_cast<std::size_t>(mode)];
  if (base.ok() && updates.ok() && base.dtype() == DType::int64 && mode != Scatter::add) {
    if (mode != Scatter::assign || updates.dtype() != DType::int64)
      return bad_dtype(name, mode == Scatter::assign ? updates : base,
                       mode == Scatter::assign ? "int64" : "float32 or int32");
    const Int64 to = words_of(base), from = words_of(updates);
    return joined_words(
        {scatter(to.low, axis, indices, from.low, mode), scatter(to.high, axis, indices, from.high, mode)});
  }
  const Tensor like_add = checked(base, axis, indices, updates, name);
  if (mode == Scatter::add || !like_add.ok()) return like_add;
  const int position = static_cast<int>(like_add.node()->ints[0]);

  LibraryPage page;
  page.name = name;
  page.outputs = {{base.shape(), base.dtype()}};
  page.constants = {{"AXIS", position}};
  page.cpu = [mode, position](std::span<const PageArray> in, std::span<const PageArray> out) {
    if (in[0].dtype == DType::float32) {
      std::ranges::copy(in[0].floats(), out[0].floats().begin());
      scatter_on_cpu<float>(mode, position, in[0], in[1].ints(), in[2], in[2].floats(), out[0].floats());
    } else {
      std::ranges::copy(in[0].ints(), out[0].ints().begin());
      scatter_on_cpu<std::int32_t>(mode, position, in[0], in[1].ints(), in[2], in[2].ints(), out[0].ints());
    }
  };
  page.backward = [mode, position](std::span<const Tensor> inputs, std::span<const Tensor> outputs,
                                   std::span<const Tensor> gradients) {
    if (mode == Scatter::assign) return unassign(inputs, gradients[0], position);
    if (mode == Scatter::mul) return unmultiply(inputs, gradients[0], position);
    return unextreme(inputs, outputs[0], gradients[0], position);
  };
  page.expand = [mode, position](std::span<const Tensor> inputs, const PageLimits& limits) {
    return std::vector{scatter_on_device(mode, inputs[0], position, inputs[1], Tensor(), inputs[2], limits)};
  };
  return run_page(std::move(page), std::vector{base, as_indices(indices), updates})[0];
}

}  // namespace imprint
