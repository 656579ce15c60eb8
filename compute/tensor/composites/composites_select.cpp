// Composites that choose or place elements by indices, order or masks.

#include <bit>
#include <cmath>
#include <limits>

#include "compute/base/text.h"
#include "compute/tensor/build.h"
#include "compute/tensor/composites/composites.h"

namespace imprint {

using namespace tensor;

namespace {

// The first k axes of `data` as one, for lists of k indices.
struct NamedRows {
  Tensor rows;             // int32, the indices' shape without the last axis; -1 for an index outside
  std::int64_t count = 1;  // rows
  Shape rest;              // of one row
  std::optional<Tensor> failed;
};

NamedRows named_rows(std::string_view name, const Tensor& data, const Tensor& given) {
  NamedRows named;
  for (const Tensor* tensor : {&data, &given})
    if (!tensor->ok()) return named.failed = *tensor, named;
  const Tensor indices = as_indices(given);
  const std::int64_t length = indices.rank() == 0 ? 0 : indices.extent(-1);
  if (indices.dtype() != DType::int32 || length < 1 || length > data.rank()) {
    named.failed = failure(ErrorCode::shape_mismatch, name,
                           text("found ", dtype_name(given.dtype()), " indices ", describe(given), " for ",
                                describe(data), ", expected integers [..., k] with k of 1 .. ", data.rank()));
    return named;
  }
  Tensor inside;
  for (int axis = 0; axis < length; ++axis) {
    const int extent = static_cast<int>(data.extent(axis));
    const Tensor one = squeeze(narrow(indices, -1, axis, 1), -1);
    const Tensor fits = logical_and(one >= 0, one < extent);
    named.rows = axis == 0 ? one : named.rows * extent + one;
    inside = axis == 0 ? fits : logical_and(inside, fits);
    named.count *= extent;
  }
  named.rows = where(inside, named.rows, -1);
  for (int axis = static_cast<int>(length); axis < data.rank(); ++axis) named.rest.append(data.extent(axis));
  return named;
}

// The start value of each mode, which empty places keep.
double start_of(Scatter mode) {
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  return mode == Scatter::mul ? 1 : mode == Scatter::min ? kInfinite : mode == Scatter::max ? -kInfinite : 0;
}

}  // namespace

Tensor gather_nd(const Tensor& data, const Tensor& indices) {
  const NamedRows named = named_rows("gather_nd", data, indices);
  if (named.failed) return *named.failed;
  Shape shape{named.count};
  for (const std::int64_t extent : named.rest.extents()) shape.append(extent);
  return take(reshape(data, shape), 0, named.rows);
}

Tensor scatter_nd(const Tensor& base, const Tensor& indices, const Tensor& updates, Scatter mode) {
  const NamedRows named = named_rows("scatter_nd", base, indices);
  if (named.failed) return *named.failed;
  if (!updates.ok()) return updates;
  Shape expected = named.rows.shape();
  for (const std::int64_t extent : named.rest.extents()) expected.append(extent);
  if (updates.shape() != expected)
    return failure(ErrorCode::shape_mismatch, "scatter_nd",
                   text("found updates ", describe(updates), ", expected ", expected.text()));
  const std::int64_t count = named.rows.shape().element_count(), width = named.rest.element_count();
  const Tensor rows = expand(reshape(named.rows, {count, 1}), {count, width});
  return reshape(
      scatter(reshape(base, {named.count, width}), 0, rows, reshape(updates, {count, width}), mode),
      base.shape());
}

Tensor segment_reduce(const Tensor& x, const Tensor& segments, std::int64_t count, Scatter mode) {
  if (!x.ok()) return x;
  if (!segments.ok()) return segments;
  if (x.rank() == 0 || segments.shape() != Shape{x.extent(0)} || count < 0)
    return failure(ErrorCode::shape_mismatch, "segment_reduce",
                   text("found ", describe(x), " for segments ", describe(segments), " of ", count,
                        ", expected one segment per row of x and a count of 0 or more"));
  Shape shape = x.shape();
  shape[0] = count;
  return scatter_nd(full(shape, start_of(mode), x.dtype()), unsqueeze(segments, -1), x, mode);
}

Tensor slice_assign(const Tensor& x, int axis, std::int64_t start, const Tensor& value) {
  if (!x.ok()) return x;
  if (!value.ok()) return value;
  const std::optional<int> position = normalize_axis(axis, x.rank());
  if (!position) return bad_axis("slice_assign", axis, x);
  const std::int64_t extent = x.extent(*position), length = value.extent(*position);
  const std::int64_t first = start < 0 ? start + extent : start;
  if (value.rank() != x.rank() || first < 0 || first + length > extent)
    return failure(ErrorCode::shape_mismatch, "slice_assign",
                   text("found ", describe(value), " from ", start, " of axis ", axis, " of ", describe(x),
                        ", expected a value that lies inside"));
  return concat(
      {narrow(x, *position, 0, first), value, narrow(x, *position, first + length, extent - first - length)},
      *position);
}

Tensor bincount(const Tensor& x, std::int64_t count) {
  if (!x.ok()) return x;
  const Tensor flat = as_indices(flatten(x));
  return scatter_add(zeros({count}, DType::int32), 0, flat, full(flat.shape(), 1, DType::int32));
}

Tensor histogram(const Tensor& x, std::int64_t bins, double low, double high) {
  if (!x.ok()) return x;
  if (x.dtype() != DType::float32) return bad_dtype("histogram", x, "float32");
  if (bins < 1 || !(low < high))
    return failure(
        ErrorCode::invalid_argument, "histogram",
        text("found ", bins, " bins from ", low, " to ", high, ", expected at least 1 and low < high"));
  const Tensor place =
      cast(floor((x - Tensor(low)) * Tensor(static_cast<double>(bins) / (high - low))), DType::int32);
  const Tensor inside = logical_and(x >= Tensor(low), x <= Tensor(high));
  return bincount(where(inside, minimum(place, static_cast<int>(bins - 1)), -1), bins);
}

// Adds powers of two to the position, the largest first, as long as the element before it is smaller.
Tensor searchsorted(const Tensor& sorted, const Tensor& values, bool right) {
  if (!sorted.ok()) return sorted;
  if (!values.ok()) return values;
  if (sorted.rank() != 1 || sorted.dtype() != values.dtype())
    return failure(
        ErrorCode::shape_mismatch, "searchsorted",
        text("found ", dtype_name(sorted.dtype()), " ", describe(sorted), " and ", dtype_name(values.dtype()),
             " ", describe(values), ", expected one axis and one dtype"));
  const std::int64_t count = sorted.extent(0);
  Tensor position = zeros(values.shape(), DType::int32);
  for (auto step = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(count))); step > 0;
       step /= 2) {
    const Tensor next = position + static_cast<int>(step);
    const Tensor before = take(sorted, 0, next - 1);
    const Tensor moves = right ? before <= values : before < values;
    position = where(logical_and(next <= static_cast<int>(count), moves), next, position);
  }
  return position;
}

Tensor quantile(const Tensor& x, double q, int axis, bool keep_dims) {
  if (!x.ok()) return x;
  const std::optional<int> position = normalize_axis(axis, x.rank());
  if (!position) return bad_axis("quantile", axis, x);
  const std::int64_t count = x.extent(*position);
  if (x.dtype() != DType::float32) return bad_dtype("quantile", x, "float32");
  if (count == 0 || !(q >= 0 && q <= 1))
    return failure(ErrorCode::invalid_argument, "quantile",
                   text("found q ", q, " of ", describe(x), ", expected 0 .. 1 and at least one element"));
  const Tensor ordered = sort(x, *position).values;
  const double place = q * static_cast<double>(count - 1);
  const auto low = static_cast<std::int64_t>(std::floor(place));
  const double weight = place - static_cast<double>(low);
  Tensor found = narrow(ordered, *position, low, 1);
  if (weight > 0)
    found = found * Tensor(1 - weight) + narrow(ordered, *position, low + 1, 1) * Tensor(weight);
  const Tensor last = narrow(ordered, *position, count - 1, 1);  // NaN if there is one
  found = where(is_nan(last), last, found);
  return keep_dims ? found : squeeze(found, *position);
}

Tensor median(const Tensor& x, int axis, bool keep_dims) { return quantile(x, 0.5, axis, keep_dims); }

namespace {

// The place of each chosen element among the chosen ones; -1 for others. mask: bool [n].
Tensor chosen_places(const Tensor& mask) { return where(mask, cumsum(cast(mask, DType::int32), 0) - 1, -1); }

}  // namespace

Selected masked_select(const Tensor& x, const Tensor& mask, std::int64_t most) {
  if (!x.ok()) return {x, x};
  if (!mask.ok()) return {mask, mask};
  if (mask.dtype() != DType::boolean || mask.shape() != x.shape() || most < 0) {
    const Tensor failed =
        failure(ErrorCode::shape_mismatch, "masked_select",
                text("found ", dtype_name(mask.dtype()), " mask ", describe(mask), " for ", describe(x),
                     " and at most ", most, ", expected bools of x's shape and 0 or more"));
    return {failed, failed};
  }
  const Tensor chosen = flatten(mask);
  return {scatter(zeros({most}, x.dtype()), 0, chosen_places(chosen), flatten(x), Scatter::assign),
          sum(cast(chosen, DType::int32))};
}

Selected nonzero(const Tensor& x, std::int64_t most) {
  if (!x.ok()) return {x, x};
  const Tensor chosen = flatten(cast(x, DType::boolean));
  const Tensor flat = scatter(full({most}, -1, DType::int32), 0, chosen_places(chosen),
                              arange(x.shape().element_count()), Scatter::assign);
  std::vector<Tensor> axes;
  int inner = static_cast<int>(x.shape().element_count());
  for (int axis = 0; axis < x.rank(); ++axis) {
    const int extent = static_cast<int>(x.extent(axis));
    inner = extent == 0 ? 0 : inner / extent;
    axes.push_back(where(flat < 0, -1, remainder(flat / inner, extent)));
  }
  const Tensor count = sum(cast(chosen, DType::int32));
  return {axes.empty() ? zeros({most, 0}, DType::int32) : stack(axes, -1), count};
}

Selected unique(const Tensor& x, std::int64_t most) {
  if (!x.ok()) return {x, x};
  const std::int64_t count = x.shape().element_count();
  if (count == 0) return {zeros({most}, x.dtype()), zeros({}, DType::int32)};
  const Tensor ordered = sort(flatten(x)).values;
  if (!ordered.ok()) return {ordered, ordered};
  const Tensor differs = not_equal(narrow(ordered, 0, 1, count - 1), narrow(ordered, 0, 0, count - 1));
  return masked_select(ordered, concat({full({1}, 1, DType::boolean), differs}, 0), most);
}

Tensor random_bernoulli(const Tensor& generator, const Tensor& probability, std::uint32_t stream) {
  if (!probability.ok()) return probability;
  return random_uniform(generator, probability.shape(), stream) < probability;
}

Tensor random_exponential(const Tensor& generator, Shape shape, std::uint32_t stream) {
  return -log(1.0f - random_uniform(generator, shape, stream));  // 1 - u is not 0
}

// The inverse of the normal distribution's function, between its values at the bounds.
Tensor random_truncated_normal(const Tensor& generator, Shape shape, std::uint32_t stream, double low,
                               double high) {
  if (!(low < high))
    return failure(ErrorCode::invalid_argument, "random_truncated_normal",
                   text("found ", low, " to ", high, ", expected low < high"));
  const double from = std::erf(low / std::sqrt(2.0)), to = std::erf(high / std::sqrt(2.0));
  const Tensor between = random_uniform(generator, shape, stream) * Tensor(to - from) + Tensor(from);
  return clamp(erfinv(between) * Tensor(std::sqrt(2.0)), low, high);
}

}  // namespace imprint
