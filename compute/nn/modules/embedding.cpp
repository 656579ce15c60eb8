#include "compute/nn/modules/embedding.h"

#include <algorithm>
#include <cmath>

#include "compute/base/text.h"
#include "compute/nn/layer_parameters.h"
#include "compute/tensor/build.h"

namespace imprint::nn {

Embedding::Embedding(const std::string& name, std::int64_t count, std::int64_t extent,
                     const EmbeddingOptions& options)
    : name_(name), options_(options) {
  const InitialValues wanted{.rows = count,
                             .columns = extent,
                             .fan_in = count,
                             .fan_out = extent,
                             .groups = options.groups,
                             .seed = options.seed};
  std::vector<float> values = initial_values(options.values, name + ".weight", wanted);
  if (options.padding_index >= 0 && options.padding_index < count) {
    for (std::int64_t group = 0; group < std::max<std::int64_t>(options.groups, 1); ++group) {
      const auto begin = values.begin() + (group * count + options.padding_index) * extent;
      std::fill(begin, begin + extent, 0.0f);
    }
  }
  const Shape shape = options.groups > 0 ? Shape{options.groups, count, extent} : Shape{count, extent};
  weight_ = Variable(name + ".weight", shape, std::span<const float>(values));
  parameters_.add("weight", weight_);
}

Tensor Embedding::operator()(const Tensor& indices) const {
  if (indices.ok() && indices.dtype() != DType::int32)
    return Tensor(make_error(ErrorCode::dtype_mismatch,
                             text("embedding '", name_, "': found ", dtype_name(indices.dtype()), " ",
                                  indices.shape().text(), ", expected int32 indices")));
  if (options_.groups > 0) return of_groups(indices);
  if (options_.padding_index < 0) return take(weight_.value(), 0, indices);
  // A padding index counts as outside, where no gradient goes, and its row is added.
  const Tensor padded = equal(indices, static_cast<int>(options_.padding_index));
  const Tensor rows = take(weight_.value(), 0, where(padded, -1, indices));
  const Tensor row = stop_gradient(narrow(weight_.value(), 0, options_.padding_index, 1));
  return where(unsqueeze(padded, -1), reshape(row, {weight_.shape()[1]}), rows);
}

// The tables of all networks are one; the rows of a network follow those of the one before.
Tensor Embedding::of_groups(const Tensor& indices) const {
  const Tensor weight = weight_.value();
  if (!indices.ok() || !weight.ok()) return indices.ok() ? weight : indices;
  if (indices.rank() < 1 || indices.extent(0) != options_.groups)
    return unfit_input("embedding", name_, indices, text("[", options_.groups, ", ...]"));
  const auto count = static_cast<int>(weight.extent(1));
  const Tensor padded = equal(indices, static_cast<int>(options_.padding_index));
  const Tensor inside = logical_and(indices >= 0, indices < count);
  const Tensor row = indices + iota(indices.shape(), 0) * count;
  const Tensor table = reshape(weight, {-1, weight.extent(2)});
  if (options_.padding_index < 0) return take(table, 0, where(inside, row, -1));
  const Tensor rows = take(table, 0, where(logical_and(inside, logical_not(padded)), row, -1));
  return where(unsqueeze(padded, -1), take(stop_gradient(table), 0, where(padded, row, -1)), rows);
}

Tensor Embedding::logits(const Tensor& x) const {
  const Tensor weight = weight_.value();
  if (x.ok() && weight.ok() && (x.rank() < 1 || x.extent(-1) != weight.extent(-1)))
    return unfit_input("embedding logits", name_, x, text("[..., ", weight.extent(-1), "]"));
  return matmul(x, transpose(weight));
}

LearnedPositions::LearnedPositions(const std::string& name, std::int64_t most_steps, std::int64_t extent,
                                   const LearnedPositionsOptions& options)
    : name_(name), options_(options) {
  const Shape shape =
      options.groups > 0 ? Shape{options.groups, most_steps, extent} : Shape{most_steps, extent};
  weight_ = add_parameter(parameters_, name, "weight", shape, options.values,
                          {.rows = most_steps,
                           .columns = extent,
                           .fan_in = most_steps,
                           .fan_out = extent,
                           .groups = options.groups,
                           .seed = options.seed});
}

Tensor LearnedPositions::refusal(const Tensor& x) const {
  const Tensor weight = weight_.value();
  if (!x.ok() || !weight.ok()) return x.ok() ? weight : x;
  const bool grouped = options_.groups > 0;
  if (x.rank() < (grouped ? 4 : 2) || (grouped && x.extent(0) != options_.groups) ||
      x.extent(-1) != weight.extent(-1) || x.extent(-2) > weight.extent(-2))
    return unfit_input("positions", name_, x,
                       text(grouped ? text("[", options_.groups, ", batch") : "[...", ", steps, ",
                            weight.extent(-1), "] with at most ", weight.extent(-2), " steps"));
  return {};
}

Tensor LearnedPositions::operator()(const Tensor& x) const {
  if (const Tensor refused = refusal(x); !tensor::is_empty(refused)) return refused;
  const Tensor rows = narrow(weight_.value(), -2, 0, x.extent(-2));
  return x + (options_.groups > 0 ? unsqueeze(rows, 1) : rows);
}

Tensor LearnedPositions::operator()(const Tensor& x, const Tensor& first) const {
  if (const Tensor refused = refusal(x); !tensor::is_empty(refused)) return refused;
  const Tensor weight = weight_.value(), rows = take(weight, weight.rank() - 2, arange(x.extent(-2)) + first);
  return x + (options_.groups > 0 ? unsqueeze(rows, 1) : rows);
}

namespace {

// [steps, extent / 2]: t base^(-2 i / extent).
Tensor position_angles(const Tensor& positions, std::int64_t extent, double base) {
  const Tensor t = cast(positions, DType::float32);
  const Tensor i = cast(arange(extent / 2), DType::float32);
  const Tensor rates = exp(i * Tensor(-2 * std::log(base) / static_cast<double>(extent)));
  return unsqueeze(t, 1) * rates;
}

Tensor odd_extent(const char* what, std::int64_t extent) {
  return Tensor(
      make_error(ErrorCode::shape_mismatch, text(what, ": found extent ", extent, ", expected an even one")));
}

}  // namespace

Tensor sinusoidal_positions(std::int64_t steps, std::int64_t extent, double base) {
  if (extent < 2 || extent % 2 != 0) return odd_extent("sinusoidal_positions", extent);
  const Tensor angles = position_angles(arange(steps), extent, base);
  return reshape(stack({sin(angles), cos(angles)}, -1), {steps, extent});
}

Tensor rotary(const Tensor& x, double base, std::int64_t first) {
  return rotary(x, base, Tensor(static_cast<int>(first)));
}

Tensor rotary(const Tensor& x, double base, const Tensor& first) {
  if (!x.ok()) return x;
  const std::int64_t extent = x.extent(-1);
  if (x.rank() < 2 || extent < 2 || extent % 2 != 0) return odd_extent("rotary", extent);
  const Tensor angles = position_angles(arange(x.extent(-2)) + first, extent, base);
  const Tensor c = cos(angles), s = sin(angles);
  const Tensor a = narrow(x, -1, 0, extent / 2), b = narrow(x, -1, extent / 2, extent / 2);
  return concat({a * c - b * s, b * c + a * s}, -1);
}

Tensor alibi_bias(std::int64_t heads, std::int64_t queries, std::int64_t keys) {
  return alibi_bias(heads, arange(queries) + static_cast<int>(keys - queries), keys);
}

// Slopes are 2^(-8 k / n) for n heads, a power of two. Other numbers take those of the next lower power, then
// every second of twice as many: the authors' rule.
Tensor alibi_bias(std::int64_t heads, const Tensor& positions, std::int64_t keys) {
  std::int64_t power = 1;
  while (2 * power <= heads) power *= 2;
  std::vector<float> slopes;
  for (std::int64_t k = 1; k <= heads; ++k) {
    const bool is_extra = k > power;
    const double n = static_cast<double>(is_extra ? 2 * power : power);
    const double index = static_cast<double>(is_extra ? 2 * (k - power) - 1 : k);
    slopes.push_back(static_cast<float>(std::exp2(-8 * index / n)));
  }
  const Tensor distance = abs(cast(unsqueeze(positions, 1) - arange(keys), DType::float32));
  return -Tensor::from(slopes, {heads, 1, 1}) * distance;
}

}  // namespace imprint::nn
