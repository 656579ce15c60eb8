// Arrangements of elements, composed of views and joins.

#include <algorithm>
#include <limits>

#include "compute/base/at.h"
#include "compute/base/text.h"
#include "compute/tensor/build.h"
#include "compute/tensor/composites/composites.h"

namespace imprint {

using namespace tensor;

namespace {

Tensor no_matrix(std::string_view op, const Tensor& x) {
  return failure(ErrorCode::shape_mismatch, op, text("found ", describe(x), ", expected at least two axes"));
}

// Column minus row of each element of a matrix, int32 [rows, columns].
Tensor off_diagonal(const Tensor& x) { return arange(x.extent(-1)) - unsqueeze(arange(x.extent(-2)), 1); }

Tensor keep_where(const Tensor& kept, const Tensor& x) { return where(kept, x, number(0, x)); }

Tensor int_of(std::int64_t value) { return Tensor(static_cast<int>(value)); }

}  // namespace

Tensor eye(std::int64_t rows, std::int64_t columns) {
  const std::int64_t width = columns < 0 ? rows : columns;
  return cast(equal(arange(width), unsqueeze(arange(rows), 1)), DType::float32);
}

Tensor tril(const Tensor& x, std::int64_t offset) {
  if (!x.ok()) return x;
  if (x.rank() < 2) return no_matrix("tril", x);
  return keep_where(off_diagonal(x) <= int_of(offset), x);
}

Tensor triu(const Tensor& x, std::int64_t offset) {
  if (!x.ok()) return x;
  if (x.rank() < 2) return no_matrix("triu", x);
  return keep_where(off_diagonal(x) >= int_of(offset), x);
}

// Elements of the diagonal are columns + 1 apart in memory order.
Tensor diagonal(const Tensor& x, std::int64_t offset) {
  if (!x.ok()) return x;
  if (x.rank() < 2) return no_matrix("diagonal", x);
  const std::int64_t rows = x.extent(-2), columns = x.extent(-1);
  const std::int64_t row = std::max<std::int64_t>(-offset, 0), column = std::max<std::int64_t>(offset, 0);
  const std::int64_t length = std::max<std::int64_t>(std::min(rows - row, columns - column), 0);
  Shape shape = x.shape();
  Shape flat(shape.extents().first(at(x.rank() - 2)));
  Shape out = flat;
  flat.append(rows * columns);
  out.append(length);
  if (length == 0) return narrow(reshape(x, flat), -1, 0, 0);
  const std::int64_t start = row * columns + column;
  return slice(reshape(x, flat), -1, start, start + (length - 1) * (columns + 1) + 1, columns + 1);
}

Tensor diag_embed(const Tensor& x) {
  if (!x.ok()) return x;
  if (x.rank() < 1) return no_matrix("diag_embed", x);
  return where(equal(arange(x.extent(-1)), unsqueeze(arange(x.extent(-1)), 1)), unsqueeze(x, -1),
               number(0, x));
}

Tensor trace(const Tensor& x) {
  const Tensor found = diagonal(x);
  return found.ok() ? sum(found, {-1}) : found;
}

Tensor linspace(double start, double stop, std::int64_t count) {
  if (count < 1)
    return failure(ErrorCode::invalid_argument, "linspace",
                   text("found count ", count, ", expected 1 or more"));
  if (count == 1) return full({1}, start);
  const double step = (stop - start) / static_cast<double>(count - 1);
  const Tensor i = cast(arange(count), DType::float32);
  // Each half from its own end, so that both ends are exact.
  return where(arange(count) < static_cast<int>((count + 1) / 2), Tensor(start) + Tensor(step) * i,
               Tensor(stop) - Tensor(step) * (Tensor(static_cast<double>(count - 1)) - i));
}

std::vector<Tensor> meshgrid(std::span<const Tensor> vectors) {
  Shape shape;
  for (const Tensor& vector : vectors) {
    if (!vector.ok()) return {vector};
    if (vector.rank() != 1 || vectors.size() > static_cast<std::size_t>(Shape::kMaxRank))
      return {failure(ErrorCode::shape_mismatch, "meshgrid",
                      text("found ", describe(vector), ", expected at most 8 tensors of one axis"))};
    shape.append(vector.extent(0));
  }
  std::vector<Tensor> grids;
  for (std::size_t i = 0; i < vectors.size(); ++i) {
    Shape along;
    for (std::size_t k = 0; k < vectors.size(); ++k) along.append(k == i ? vectors[i].extent(0) : 1);
    grids.push_back(expand(reshape(vectors[i], along), shape));
  }
  return grids;
}

Tensor roll(const Tensor& x, std::int64_t shift, int axis) {
  if (!x.ok()) return x;
  const std::optional<int> position = normalize_axis(axis, x.rank());
  if (!position) return bad_axis("roll", axis, x);
  const std::int64_t extent = x.extent(*position);
  if (extent == 0) return x;
  const std::int64_t moved = ((shift % extent) + extent) % extent;
  if (moved == 0) return x;
  return concat({narrow(x, *position, extent - moved, moved), narrow(x, *position, 0, extent - moved)},
                *position);
}

Tensor rot90(const Tensor& x, int times, int first_axis, int second_axis) {
  if (!x.ok()) return x;
  const std::optional<int> a = normalize_axis(first_axis, x.rank()),
                           b = normalize_axis(second_axis, x.rank());
  if (!a) return bad_axis("rot90", first_axis, x);
  if (!b || *b == *a) return bad_axis("rot90", second_axis, x);
  switch (((times % 4) + 4) % 4) {
    case 1:
      return flip(transpose(x, *a, *b), *a);
    case 2:
      return flip(flip(x, *a), *b);
    case 3:
      return transpose(flip(x, *a), *a, *b);
    default:
      return x;
  }
}

Tensor tile(const Tensor& x, std::span<const std::int64_t> times) {
  if (!x.ok()) return x;
  if (static_cast<int>(times.size()) != x.rank())
    return failure(ErrorCode::shape_mismatch, "tile",
                   text("found ", times.size(), " numbers for ", describe(x), ", expected one per axis"));
  Tensor out = x;
  for (int axis = 0; axis < x.rank(); ++axis)
    if (times[at(axis)] != 1) out = repeat(out, axis, times[at(axis)]);
  return out;
}

Tensor repeat_interleave(const Tensor& x, int axis, std::int64_t times) {
  if (!x.ok()) return x;
  const std::optional<int> position = normalize_axis(axis, x.rank());
  if (!position || times < 0 || x.rank() == Shape::kMaxRank)
    return failure(ErrorCode::shape_mismatch, "repeat_interleave",
                   text("found ", times, " times along axis ", axis, " of ", describe(x),
                        ", expected 0 or more times, an axis inside and at most 7 axes"));
  Shape wide, shape = x.shape();
  for (int k = 0; k < x.rank(); ++k) {
    wide.append(x.extent(k));
    if (k == *position) wide.append(times);
  }
  shape[*position] *= times;
  return reshape(expand(unsqueeze(x, *position + 1), wide), shape);
}

std::vector<Tensor> chunk(const Tensor& x, std::int64_t count, int axis) {
  if (!x.ok()) return {x};
  const std::optional<int> position = normalize_axis(axis, x.rank());
  if (!position) return {bad_axis("chunk", axis, x)};
  if (count < 1)
    return {
        failure(ErrorCode::invalid_argument, "chunk", text("found count ", count, ", expected 1 or more"))};
  return split(x, std::max<std::int64_t>((x.extent(*position) + count - 1) / count, 1), *position);
}

Tensor movedim(const Tensor& x, int from, int to) {
  if (!x.ok()) return x;
  const std::optional<int> a = normalize_axis(from, x.rank()), b = normalize_axis(to, x.rank());
  if (!a) return bad_axis("movedim", from, x);
  if (!b) return bad_axis("movedim", to, x);
  Axes order;
  for (int axis = 0; axis < x.rank(); ++axis)
    if (axis != *a) order.push_back(axis);
  order.insert(order.begin() + *b, *a);
  return permute(x, order);
}

Tensor unflatten(const Tensor& x, int axis, const Shape& extents) {
  if (!x.ok()) return x;
  const std::optional<int> position = normalize_axis(axis, x.rank());
  if (!position) return bad_axis("unflatten", axis, x);
  if (extents.element_count() != x.extent(*position) || x.rank() - 1 + extents.rank() > Shape::kMaxRank)
    return failure(ErrorCode::shape_mismatch, "unflatten",
                   text("found ", extents.text(), " for axis ", axis, " of ", describe(x),
                        ", expected extents with its number of elements"));
  Shape shape;
  for (int k = 0; k < x.rank(); ++k) {
    if (k != *position) shape.append(x.extent(k));
    for (int i = 0; k == *position && i < extents.rank(); ++i) shape.append(extents[i]);
  }
  return reshape(x, shape);
}

namespace {

Tensor pad_side(const Tensor& x, int axis, std::int64_t amount, bool before, PadMode mode) {
  const std::int64_t extent = x.extent(axis);
  switch (mode) {
    case PadMode::reflect:
      return flip(narrow(x, axis, before ? 1 : extent - 1 - amount, amount), axis);
    case PadMode::wrap:
      return narrow(x, axis, before ? extent - amount : 0, amount);
    default:
      break;
  }
  Shape wide = x.shape();
  wide[axis] = amount;
  return expand(narrow(x, axis, before ? 0 : extent - 1, 1), wide);
}

}  // namespace

Tensor pad(const Tensor& x, std::span<const std::pair<std::int64_t, std::int64_t>> before_after,
           PadMode mode) {
  if (mode == PadMode::constant) return pad(x, before_after, 0.0);
  if (!x.ok()) return x;
  if (static_cast<int>(before_after.size()) != x.rank())
    return failure(
        ErrorCode::shape_mismatch, "pad",
        text("found ", before_after.size(), " pairs for ", describe(x), ", expected one per axis"));
  Tensor out = x;
  for (int axis = 0; axis < x.rank(); ++axis) {
    const auto [before, after] = before_after[at(axis)];
    const std::int64_t extent = x.extent(axis);
    const std::int64_t most = mode == PadMode::reflect ? extent - 1
                              : mode == PadMode::wrap  ? extent
                              : extent > 0             ? std::numeric_limits<std::int64_t>::max()
                                                       : 0;
    if (before == 0 && after == 0) continue;
    if (before < 0 || after < 0 || before > most || after > most)
      return failure(ErrorCode::shape_mismatch, "pad",
                     text("found ", before, " before and ", after, " after axis ", axis, " of ", describe(x),
                          ", expected 0 to ", most));
    std::vector<Tensor> parts;
    if (before > 0) parts.push_back(pad_side(out, axis, before, true, mode));
    parts.push_back(out);
    if (after > 0) parts.push_back(pad_side(out, axis, after, false, mode));
    out = concat(parts, axis);
  }
  return out;
}

Tensor floor_divide(const Tensor& a, const Tensor& b) {
  if (!a.ok() || !b.ok()) return a.ok() ? b : a;
  if (!dtype_is_integer(a.dtype())) return floor(a / b);
  return (a - remainder(a, b)) / b;
}

Tensor nan_to_num(const Tensor& x, double nan, double largest, double least) {
  const Tensor finite = where(is_inf(x), where(x > 0.0f, Tensor(largest), Tensor(least)), x);
  return where(is_nan(x), Tensor(nan), finite);
}

}  // namespace imprint
