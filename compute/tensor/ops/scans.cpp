// Cumulative extremes, which are pages, and the scans that are composed of other scans.

#include <algorithm>
#include <limits>

#include "compute/base/text.h"
#include "compute/tensor/build.h"
#include "compute/tensor/pages/scan_page.h"

namespace imprint {

using namespace tensor;

namespace {

// Calls next(element, element before or -1) along every line.
template <class Next>
void each_step(const Shape& shape, int axis, const Next& next) {
  std::int64_t inner = 1;
  for (int k = axis + 1; k < shape.rank(); ++k) inner *= shape[k];
  const std::int64_t length = shape[axis], count = shape.element_count();
  for (std::int64_t i = 0; i < count; ++i) next(i, i / inner % length == 0 ? -1 : i - inner);
}

template <class T>
void extreme_on_cpu(std::span<T> x, std::span<T> values, std::span<std::int32_t> positions,
                    const Shape& shape, int axis, bool largest) {
  std::int64_t inner = 1;
  for (int k = axis + 1; k < shape.rank(); ++k) inner *= shape[k];
  each_step(shape, axis, [&](std::int64_t i, std::int64_t before) {
    const auto at = static_cast<std::size_t>(i), from = static_cast<std::size_t>(before);
    const bool wins =
        before < 0 || x[at] != x[at] ||
        (values[from] == values[from] && (largest ? x[at] >= values[from] : x[at] <= values[from]));
    values[at] = wins ? x[at] : values[from];
    positions[at] = wins ? static_cast<std::int32_t>(i / inner % shape[axis]) : positions[from];
  });
}

// x moved by one towards the axis's end; minus infinity enters.
Tensor moved(const Tensor& x, int axis) {
  std::vector<std::pair<std::int64_t, std::int64_t>> sides(static_cast<std::size_t>(x.rank()));
  sides[static_cast<std::size_t>(axis)] = {1, 0};
  return pad(narrow(x, axis, 0, x.extent(axis) - 1), sides, -std::numeric_limits<double>::infinity());
}

// Without lines there is nothing to compute.
bool is_trivial(const Tensor& x, int axis) { return x.shape().element_count() == 0 || x.extent(axis) == 1; }

// Runs `build` with the axis counted from the front, for a tensor of an accepted dtype.
template <class Built, class Build>
Built along(std::string_view name, const Tensor& x, int axis, bool takes_ints, const Build& build) {
  const auto fail = [](Tensor error) {
    if constexpr (std::is_same_v<Built, WithIndices>)
      return WithIndices{error, error};
    else
      return error;
  };
  if (!x.ok()) return fail(x);
  if (x.dtype() != DType::float32 && !(takes_ints && x.dtype() == DType::int32))
    return fail(bad_dtype(name, x, takes_ints ? "float32 or int32" : "float32"));
  const std::optional<int> position = normalize_axis(axis, x.rank());
  if (!position) return fail(bad_axis(name, axis, x));
  return build(*position);
}

WithIndices extreme(std::string_view name, const Tensor& x, int axis, bool largest) {
  return along<WithIndices>(name, x, axis, true, [&](int position) -> WithIndices {
    if (is_trivial(x, position)) return {x, zeros(x.shape(), DType::int32)};
    LibraryPage page;
    page.name = name;
    page.outputs = {{x.shape(), x.dtype()}, {x.shape(), DType::int32}};
    page.constants = {{"AXIS", position}};
    page.expand = [position, largest](std::span<const Tensor> inputs, const PageLimits& limits) {
      return scan_on_device(largest ? ScanKind::max : ScanKind::min, inputs, {.axis = position}, limits);
    };
    page.cpu = [position, largest](std::span<const PageArray> in, std::span<const PageArray> out) {
      if (in[0].dtype == DType::float32)
        extreme_on_cpu(in[0].floats(), out[0].floats(), out[1].ints(), in[0].shape, position, largest);
      else
        extreme_on_cpu(in[0].ints(), out[0].ints(), out[1].ints(), in[0].shape, position, largest);
    };
    page.backward = [position](std::span<const Tensor> inputs, std::span<const Tensor> outputs,
                               std::span<const Tensor> gradients) {
      return std::vector{scatter_add(zeros_like(inputs[0]), position, outputs[1], gradients[0])};
    };
    const std::vector<Tensor> found = run_page(std::move(page), std::span(&x, 1));
    return {found[0], found[1]};
  });
}

}  // namespace

// A recurrence that starts from the first element. Its derivative divides by nothing.
Tensor cumprod(const Tensor& x, int axis) {
  return along<Tensor>("cumprod", x, axis, false, [&](int position) {
    if (is_trivial(x, position)) return x;
    return linear_recurrence(where(equal(iota(x.shape(), position), 0), x, 0.0f), x, position);
  });
}

// Sums relative to the largest element so far, which scales the sum before by at most 1. The result does not
// depend on that choice, so no gradient passes through it.
Tensor logcumsumexp(const Tensor& x, int axis) {
  return along<Tensor>("logcumsumexp", x, axis, false, [&](int position) {
    if (is_trivial(x, position)) return x;
    const Tensor most = stop_gradient(cummax(x, position).values);
    if (!most.ok()) return most;  // a named axis
    const Tensor before = moved(most, position);
    const Tensor base = where(is_inf(most), 0.0f, most);
    const Tensor factors = where(equal(before, most), 1.0f, exp(before - most));
    const Tensor total = linear_recurrence(exp(x - base), factors, position), is_empty = equal(total, 0.0f);
    return where(is_empty, full({}, -std::numeric_limits<double>::infinity()),
                 base + log(where(is_empty, 1.0f, total)));
  });
}

WithIndices cummax(const Tensor& x, int axis) { return extreme("cummax", x, axis, true); }
WithIndices cummin(const Tensor& x, int axis) { return extreme("cummin", x, axis, false); }

}  // namespace imprint
