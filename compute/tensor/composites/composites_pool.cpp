// Pools: reductions over windows that are views.

#include <algorithm>
#include <limits>

#include "compute/base/text.h"
#include "compute/tensor/build.h"
#include "compute/tensor/composites/image_parts.h"
#include "compute/tensor/extent_sums.h"

namespace imprint {

using namespace tensor;

namespace {

constexpr double kLowest = -std::numeric_limits<double>::infinity();

PerAxis stride_of(const PoolOptions& options) {
  const auto stride = [&](int i) { return options.stride[i] == 0 ? options.size[i] : options.stride[i]; };
  return {stride(0), stride(1), stride(2)};
}

std::int64_t reach_of(const PoolOptions& options, int i) {
  return options.dilation[i] * (options.size[i] - 1) + 1;
}

Tensor bad_padding(std::string_view op, const Tensor& x, const PoolOptions& options) {
  for (int i = 0; i < places_of(x); ++i)
    if (options.padding[i] < 0 || 2 * options.padding[i] > options.size[i])
      return failure(ErrorCode::invalid_argument, op,
                     text("found padding ", options.padding[i], " and size ", options.size[i],
                          ", expected padding of 0 .. size / 2, so that every window overlaps the image"));
  for (int i = 0; options.ceil && i < places_of(x); ++i)
    if (x.shape().is_named(2 + i) && options.padding[i] + stride_of(options)[i] > reach_of(options, i))
      return failure(ErrorCode::unsupported, op,
                     text("found image ", describe(x), " and windows that may begin after axis ", 2 + i,
                          ", expected padding + stride of at most ", reach_of(options, i),
                          " with ceil along a named axis"));
  return Tensor();
}

// Places to add after the last, so that the last window starts inside and may end outside.
std::int64_t overhang(std::int64_t padded, std::int64_t reach, std::int64_t stride, std::int64_t before,
                      std::int64_t inside) {
  if (padded < reach || stride < 1) return 0;
  const std::int64_t left = (padded - reach) % stride;
  if (left == 0) return 0;
  const std::int64_t start = padded - reach - left + stride;
  return start < before + inside ? stride - left : 0;  // else it would cover padding only
}

Sliding sliding_of(const Tensor& x, const PoolOptions& options) {
  const PerAxis stride = stride_of(options);
  std::array<std::int64_t, 3> after{};
  for (int i = 0; i < places_of(x); ++i) {
    const std::int64_t n = x.extent(2 + i), before = options.padding[i];
    // Along a named axis the last window ends at most this far outside: bad_padding.
    const std::int64_t more = !options.ceil ? 0
                              : x.shape().is_named(2 + i)
                                  ? stride[i] - 1
                                  : overhang(n + 2 * before, reach_of(options, i), stride[i], before, n);
    after[static_cast<std::size_t>(i)] = before + more;
  }
  return {.size = options.size,
          .stride = stride,
          .dilation = options.dilation,
          .before = options.padding,
          .after = {after[0], after[1], after[2]}};
}

Axes window_axes(const Tensor& x) {
  Axes axes;
  for (int i = 0; i < places_of(x); ++i) axes.push_back(2 + places_of(x) + i);
  return axes;
}

// The error of a pool's operands, or its windows.
Tensor pooled_windows(std::string_view op, const Tensor& x, const PoolOptions& options, double value) {
  if (std::optional<Tensor> refused = refuse_image(op, x)) return *refused;
  if (const Tensor bad = bad_padding(op, x, options); !is_empty(bad)) return bad;
  return sliding_windows(op, x, sliding_of(x, options), value);
}

// 1 / the number of places that each window counts: [1, 1, places...].
Tensor shares(const Tensor& x, const PoolOptions& options) {
  const Sliding sliding = sliding_of(x, options);
  Shape shape{1, 1};
  Sliding rest = sliding;
  std::array<std::int64_t, 3> before{}, after{};
  std::vector<std::pair<std::int64_t, std::int64_t>> counts(2);
  for (int i = 0; i < places_of(x); ++i) {
    const auto k = static_cast<std::size_t>(i);
    const std::int64_t padding = options.count_padding ? options.padding[i] : 0;
    shape.append(x.shape(), 2 + i);
    counts.emplace_back(padding, padding);
    before[k] = sliding.before[i] - padding;
    after[k] = sliding.after[i] - padding;
  }
  rest.before = {before[0], before[1], before[2]};
  rest.after = {after[0], after[1], after[2]};
  const Tensor counted = pad(ones(shape), counts, 1);
  return recip(sum(sliding_windows("avg_pool", counted, rest, 0), window_axes(x)));
}

}  // namespace

Tensor max_pool(const Tensor& x, const PoolOptions& options) {
  const Tensor seen = pooled_windows("max_pool", x, options, kLowest);
  return seen.ok() ? max(seen, window_axes(x)) : seen;
}

Tensor avg_pool(const Tensor& x, const PoolOptions& options) {
  const Tensor seen = pooled_windows("avg_pool", x, options, 0);
  if (!seen.ok()) return seen;
  bool is_padded = false;
  for (int i = 0; i < places_of(x); ++i) is_padded = is_padded || options.padding[i] > 0;
  const bool varies = options.ceil || (is_padded && !options.count_padding);
  return varies ? sum(seen, window_axes(x)) * shares(x, options) : mean(seen, window_axes(x));
}

WithIndices max_pool_with_indices(const Tensor& x, const PoolOptions& options) {
  const Tensor seen = pooled_windows("max_pool_with_indices", x, options, kLowest);
  if (!seen.ok()) return {seen, seen};
  const PerAxis stride = stride_of(options);
  const Tensor tap = argmax(seen, window_axes(x));  // row-major in the window
  const int places = places_of(x);
  Tensor rest = tap, index;
  std::array<Tensor, 3> at;
  for (int i = places; i-- > 0;) {
    const Tensor step = remainder(rest, Tensor(static_cast<int>(options.size[i])));
    rest = div(rest, Tensor(static_cast<int>(options.size[i])));
    at[static_cast<std::size_t>(i)] = iota(tap.shape(), 2 + i) * static_cast<int>(stride[i]) +
                                      step * static_cast<int>(options.dilation[i]) -
                                      static_cast<int>(options.padding[i]);
  }
  for (int i = 0; i < places; ++i) {
    const auto extent = sum_of_axis(x.shape(), 2 + i);
    if (!extent)
      return {failure(ErrorCode::unsupported, "max_pool_with_indices",
                      text("found image ", describe(x), ", expected one extent or a sum along axis ", 2 + i)),
              tap};
    const Tensor& own = at[static_cast<std::size_t>(i)];
    index = i == 0 ? own : index * extent->tensor() + own;
  }
  return {max(seen, window_axes(x)), index};
}

Tensor max_unpool(const Tensor& x, const Tensor& indices, std::initializer_list<std::int64_t> places) {
  constexpr std::string_view op = "max_unpool";
  if (std::optional<Tensor> refused = refuse_image(op, x)) return *refused;
  if (!indices.ok()) return indices;
  const Shape wanted(std::span<const std::int64_t>(places.begin(), places.size()));
  if (indices.shape() != x.shape() || !dtype_is_integer(indices.dtype()) || wanted.rank() != places_of(x) ||
      std::ranges::any_of(places, [](std::int64_t extent) { return extent < 1; }))
    return failure(
        ErrorCode::shape_mismatch, op,
        text("found ", describe(x), ", ", dtype_name(indices.dtype()), " indices ", describe(indices),
             " and places ", wanted.text(), ", expected integers of one shape and one extent per axis"));
  const std::int64_t batch = x.extent(0), channels = x.extent(1);
  const Shape flat{batch, channels, x.shape().element_count() / std::max<std::int64_t>(1, batch * channels)};
  Shape shape{batch, channels};
  for (const std::int64_t extent : places) shape.append(extent);
  return reshape(scatter(zeros({batch, channels, wanted.element_count()}), 2, reshape(indices, flat),
                         reshape(x, flat), Scatter::assign),
                 shape);
}

Tensor lp_pool(const Tensor& x, double p, const PoolOptions& options) {
  if (!(p >= 1))
    return failure(ErrorCode::invalid_argument, "lp_pool", text("found p ", p, ", expected 1 or more"));
  const Tensor seen = pooled_windows("lp_pool", x, options, 0);
  if (!seen.ok()) return seen;
  const Tensor sums = sum(p == 2 ? square(seen) : pow(seen, Tensor(p)), window_axes(x));
  // The branch not taken stays away from 0, where the root has no derivative.
  const Tensor safe = where(sums > 0.0f, sums, 1.0f);
  return where(sums > 0.0f, p == 2 ? sqrt(safe) : pow(safe, Tensor(1 / p)), 0.0f);
}

namespace {

struct Span {
  std::int64_t first, last;
};

Span adaptive_span(std::int64_t i, std::int64_t extent, std::int64_t places) {
  return {i * extent / places, ((i + 1) * extent + places - 1) / places - 1};
}

// One axis, from [.., extent, ..] to [.., places, ..].
Tensor adapt_axis(const Tensor& x, int axis, std::int64_t places, bool averages) {
  const std::int64_t extent = x.extent(axis);
  if (extent == places) return x;
  const auto folded = [&](const Tensor& t) { return averages ? mean(t, {axis + 1}) : max(t, {axis + 1}); };
  if (extent % places == 0) {
    Shape shape;
    for (int k = 0; k < x.rank(); ++k) {
      shape.append(k == axis ? places : x.extent(k));
      if (k == axis) shape.append(extent / places);
    }
    return folded(reshape(x, shape));
  }
  // Windows of equal length: those of shorter ones repeat their last element, with weight 0.
  std::int64_t longest = 0;
  for (std::int64_t i = 0; i < places; ++i) {
    const Span span = adaptive_span(i, extent, places);
    longest = std::max(longest, span.last - span.first + 1);
  }
  std::vector<std::int32_t> indices;
  std::vector<float> weights;
  for (std::int64_t i = 0; i < places; ++i) {
    const Span span = adaptive_span(i, extent, places);
    for (std::int64_t k = 0; k < longest; ++k) {
      indices.push_back(static_cast<std::int32_t>(std::min(span.first + k, span.last)));
      weights.push_back(span.first + k > span.last ? 0.0f
                                                   : 1.0f / static_cast<float>(span.last - span.first + 1));
    }
  }
  const Tensor seen = take(x, axis, Tensor::from_ints(indices, {places, longest}));
  if (!averages) return folded(seen);
  Shape beside;
  for (int k = 0; k < seen.rank(); ++k) beside.append(k == axis ? places : k == axis + 1 ? longest : 1);
  return sum(seen * reshape(Tensor::from(weights, {places, longest}), beside), {axis + 1});
}

Tensor adaptive_pool(std::string_view op, const Tensor& x, const PerAxis& places, bool averages) {
  if (std::optional<Tensor> refused = refuse_image(op, x)) return *refused;
  Tensor out = x;
  for (int i = 0; i < places_of(x); ++i) {
    if (places[i] < 1 || x.extent(2 + i) < 1)
      return failure(ErrorCode::shape_mismatch, op,
                     text("found ", describe(x), " and ", places[i], " places, expected 1 or more of both"));
    if (places[i] > 1 && x.shape().is_named(2 + i))
      return failure(ErrorCode::unsupported, op,
                     text("found ", describe(x), " and ", places[i], " places along axis ", 2 + i,
                          ", expected 1 place of a named axis"));
    out = adapt_axis(out, 2 + i, places[i], averages);
  }
  return out;
}

}  // namespace

Tensor adaptive_avg_pool(const Tensor& x, const PerAxis& places) {
  return adaptive_pool("adaptive_avg_pool", x, places, true);
}
Tensor adaptive_max_pool(const Tensor& x, const PerAxis& places) {
  return adaptive_pool("adaptive_max_pool", x, places, false);
}

}  // namespace imprint
