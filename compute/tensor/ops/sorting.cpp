// Sorts and selections: pages that find positions. Values are gathered, so that derivatives need no rule of
// their own.

#include <algorithm>
#include <cmath>
#include <numeric>

#include "compute/base/text.h"
#include "compute/tensor/build.h"
#include "compute/tensor/pages/sort_page.h"

namespace imprint {

using namespace tensor;

namespace {

// Whether a comes before b in the order of a sort: NaN last, equals neither way.
template <class T>
bool comes_before(T a, T b, bool descending) {
  if (a != a || b != b) return a == a && b != b;
  return descending ? a > b : a < b;
}

// Positions of the first `count` in order, of every line of [lines, length].
template <class T>
void order_on_cpu(std::span<const T> x, std::span<std::int32_t> into, std::size_t length, std::size_t count,
                  bool descending) {
  std::vector<std::int32_t> order(length);
  const std::size_t lines = length == 0 ? 0 : x.size() / length;
  for (std::size_t line = 0; line < lines; ++line) {
    const T* values = x.data() + line * length;
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, [&](std::int32_t a, std::int32_t b) {
      return comes_before(values[a], values[b], descending);
    });
    std::copy_n(order.begin(), count, into.begin() + static_cast<std::ptrdiff_t>(line * count));
  }
}

// The positions of the first `count` in order along the axis.
Tensor positions_of(std::string_view name, const Tensor& x, int axis, std::int64_t count, bool descending) {
  Axes to_last(static_cast<std::size_t>(x.rank()));
  std::iota(to_last.begin(), to_last.end(), 0);
  std::swap(to_last[static_cast<std::size_t>(axis)], to_last.back());  // its own inverse
  const Tensor moved = permute(x, to_last);
  const std::int64_t length = x.extent(axis), lines = length == 0 ? 0 : x.shape().element_count() / length;
  Shape shape = moved.shape();
  shape[shape.rank() - 1] = count;
  if (shape.element_count() == 0) return permute(zeros(shape, DType::int32), to_last);

  LibraryPage page;
  page.name = name;
  page.outputs = {{{lines, count}, DType::int32}};
  page.constants = {{"DESCENDING", descending}};
  page.work = 8 * static_cast<double>(lines * length) * std::log2(2.0 * static_cast<double>(length));
  page.cpu = [length, count, descending](std::span<const PageArray> in, std::span<const PageArray> out) {
    const auto order = [&]<class T>(std::span<T> values) {
      order_on_cpu<T>(values, out[0].ints(), static_cast<std::size_t>(length),
                      static_cast<std::size_t>(count), descending);
    };
    in[0].dtype == DType::float32 ? order(in[0].floats()) : order(in[0].ints());
  };
  page.expand = [count, length, descending](std::span<const Tensor> inputs, const PageLimits& limits) {
    return std::vector{count == length ? sort_on_device(inputs[0], descending, limits).positions
                                       : select_on_device(inputs[0], count, descending, limits)};
  };
  const Tensor flat = reshape(moved, {lines, length});
  return permute(reshape(run_page(std::move(page), std::span(&flat, 1))[0], shape), to_last);
}

// The axis counted from the front, of a tensor that can be ordered; otherwise `error` is set.
std::optional<int> axis_to_order(std::string_view name, const Tensor& x, int axis, Tensor& error) {
  if (!x.ok()) {
    error = x;
    return std::nullopt;
  }
  const std::optional<int> position = normalize_axis(axis, x.rank());
  if (x.dtype() != DType::float32 && x.dtype() != DType::int32)
    error = bad_dtype(name, x, "float32 or int32");
  else if (!position)
    error = bad_axis(name, axis, x);
  else
    return position;
  return std::nullopt;
}

}  // namespace

Tensor argsort(const Tensor& x, int axis, bool descending) {
  Tensor error;
  const std::optional<int> position = axis_to_order("argsort", x, axis, error);
  return position ? positions_of("argsort", x, *position, x.extent(*position), descending) : error;
}

WithIndices sort(const Tensor& x, int axis, bool descending) {
  const Tensor indices = argsort(x, axis, descending);
  return {indices.ok() ? gather(x, axis, indices) : indices, indices};
}

WithIndices topk(const Tensor& x, std::int64_t count, int axis, bool largest) {
  Tensor error;
  const std::optional<int> position = axis_to_order("topk", x, axis, error);
  if (!position) return {error, error};
  if (count < 0 || count > x.extent(*position)) {
    error = failure(ErrorCode::shape_mismatch, "topk",
                    text("found ", count, " of axis ", *position, " of ", describe(x), ", expected 0 .. ",
                         x.extent(*position)));
    return {error, error};
  }
  const Tensor indices = positions_of("topk", x, *position, count, largest);
  return {gather(x, *position, indices), indices};
}

}  // namespace imprint
