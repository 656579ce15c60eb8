#include "compute/tensor/pages/scatter_page.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "compute/base/text.h"
#include "compute/tensor/build.h"
#include "compute/tensor/pages/sort_page.h"

namespace imprint::tensor {
namespace {

// The operation's start and combination in GLSL.
std::string combination(Scatter mode, DType dtype) {
  const bool is_float = dtype == DType::float32;
  const std::string value = text("#define VALUE ", is_float ? "float" : "int", "\n#define START ");
  const auto function = [&](std::string_view start, std::string_view result) {
    return text(value, start, "\nVALUE combine(VALUE a, VALUE b) { return ", result, "; }\n");
  };
  switch (mode) {
    case Scatter::add:
      return function("VALUE(0)", "a + b");
    case Scatter::mul:
      return function("VALUE(1)", "a * b");
    case Scatter::max:
      return function(is_float ? "uintBitsToFloat(0xff800000u)" : "(-0x7fffffff - 1)", "imp_max(a, b)");
    case Scatter::min:
      return function(is_float ? "uintBitsToFloat(0x7f800000u)" : "0x7fffffff", "imp_min(a, b)");
    case Scatter::assign:
      break;
  }
  return {};
}

// Few updates: looking through all of them in each workgroup is faster than sorting them.
constexpr std::int64_t kRowsHere = 8, kAtOnce = 8;  // rows per workgroup, columns per invocation
constexpr std::int64_t kSlices = 8;                 // that share a row of many updates

bool are_few_updates(std::int64_t rows, std::int64_t length, const PageLimits& limits) {
  const std::int64_t looks = (rows + kRowsHere - 1) / kRowsHere * length;
  return length <= 8192 && looks <= (limits.processor ? 1 << 14 : 1 << 23);
}

Tensor scatter_few_rows(Scatter mode, const Tensor& base, const Tensor& rows, const Tensor& updates,
                        const PageLimits& limits) {
  const std::int64_t count = base.extent(0), width = base.extent(1), length = updates.extent(0);
  const std::int64_t lanes = std::min<std::int64_t>(
      16,
      static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>((width + kAtOnce - 1) / kAtOnce))));
  const std::int64_t blocks = (width + lanes * kAtOnce - 1) / (lanes * kAtOnce);
  // Workgroups of fewer rows fill the device better. Sums have the same order.
  std::int64_t here = kRowsHere;
  while (here > 1 && (count + here - 1) / here * blocks < limits.groups) here /= 2;
  LibraryPage page;
  page.name = "scatter few";
  page.glsl = combination(mode, base.dtype());
  page.includes = {"extremes"};
  page.shader = "pages/scatter_few";
  page.outputs = {{base.shape(), base.dtype()}};
  page.constants = {{"ROWS", count},  {"WIDTH", width},    {"UPDATES", length},      {"HERE", here},
                    {"LANES", lanes}, {"SLICES", kSlices}, {"COLUMN_BLOCKS", blocks}};
  page.group_size = static_cast<int>(kSlices * lanes);
  page.groups = (count + here - 1) / here * blocks;
  return run_page(std::move(page), std::vector{base, updates, rows})[0];
}

// base [rows, width], updates [updates, width], and for each update its row; a row outside is dropped.
Tensor scatter_rows(Scatter mode, const Tensor& base, const Tensor& rows, const Tensor& updates,
                    const PageLimits& limits) {
  const std::int64_t count = base.extent(0), width = base.extent(1), length = updates.extent(0);
  if (mode != Scatter::assign && are_few_updates(count, length, limits))
    return scatter_few_rows(mode, base, rows, updates, limits);
  const Tensor is_inside = logical_and(rows >= 0, rows < static_cast<int>(count));
  const Tensor keys = reshape(where(is_inside, rows, static_cast<int>(count)), {1, length});
  const Sorted sorted =
      sort_on_device(keys, false, limits, true, std::bit_width(static_cast<std::uint64_t>(count)));
  const int invocations = std::min(limits.invocations, 256);

  LibraryPage starting;
  starting.name = "starts";
  starting.shader = "pages/starts";
  starting.outputs = {{{count + 1}, DType::int32}};
  starting.constants = {{"COUNT", count}, {"LENGTH", length}};
  starting.group_size = 64;
  starting.groups = count / 64 + 1;
  const Tensor starts = run_page(std::move(starting), std::span(&sorted.keys, 1))[0];

  if (mode == Scatter::assign) {  // the last update of each row
    const Tensor end = narrow(starts, 0, 1, count);
    const Tensor last = take(reshape(sorted.positions, {length}), 0, end - 1);
    const Tensor is_given = expand(reshape(end > narrow(starts, 0, 0, count), {count, 1}), base.shape());
    return where(is_given, take(updates, 0, last), base);
  }
  const std::int64_t columns =
      std::min<std::int64_t>(32, static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(width))));
  const std::int64_t slices = invocations / columns, blocks = (width + columns - 1) / columns;
  LibraryPage page;
  page.name = "segments";
  page.glsl = combination(mode, base.dtype());
  page.includes = {"extremes"};
  page.shader = "pages/segments";
  page.outputs = {{base.shape(), base.dtype()}};
  page.constants = {{"ROWS", count},      {"WIDTH", width},   {"UPDATES", length},
                    {"COLUMNS", columns}, {"SLICES", slices}, {"COLUMN_BLOCKS", blocks}};
  page.group_size = static_cast<int>(slices * columns);
  page.groups = (count + slices - 1) / slices * blocks;
  return run_page(std::move(page), std::vector{base, updates, sorted.positions, starts})[0];
}

}  // namespace

bool is_large_scatter(const Shape& base, const Shape& updates, int axis) {
  constexpr std::int64_t kLength = 64, kOperations = 1 << 22;
  return updates[axis] >= kLength && updates[axis] * base.element_count() >= kOperations;
}

Tensor scatter_on_device(Scatter mode, const Tensor& base, int axis, const Tensor& indices, const Tensor& ids,
                         const Tensor& updates, const PageLimits& limits) {
  const Shape& shape = base.shape();
  if (shape.element_count() == 0 || updates.shape().element_count() == 0) return base;
  if (!is_empty(ids)) {
    Axes to_first(static_cast<std::size_t>(base.rank()));
    std::iota(to_first.begin(), to_first.end(), 0);
    std::swap(to_first[0], to_first[static_cast<std::size_t>(axis)]);  // its own inverse
    const Tensor moved = permute(base, to_first);
    const std::int64_t rows = shape[axis], width = shape.element_count() / rows;
    const Tensor result =
        scatter_rows(mode, reshape(moved, {rows, width}), ids,
                     reshape(permute(updates, to_first), {updates.extent(axis), width}), limits);
    return permute(reshape(result, moved.shape()), to_first);
  }
  // Each element is a row of its own.
  std::int64_t stride = 1;
  Tensor target;
  for (int k = base.rank() - 1; k >= 0; --k) {
    const Tensor along = k == axis ? indices : iota(updates.shape(), k);
    const Tensor part = along * static_cast<int>(stride);
    target = is_empty(target) ? part : target + part;
    stride *= shape[k];
  }
  const Tensor is_inside = logical_and(indices >= 0, indices < static_cast<int>(shape[axis]));
  const std::int64_t count = shape.element_count(), length = updates.shape().element_count();
  const Tensor result =
      scatter_rows(mode, reshape(base, {count, 1}), reshape(where(is_inside, target, -1), {length}),
                   reshape(updates, {length, 1}), limits);
  return reshape(result, shape);
}

}  // namespace imprint::tensor
