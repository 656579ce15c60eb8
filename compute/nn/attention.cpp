#include "compute/nn/attention.h"

#include <algorithm>
#include <cmath>

#include "compute/base/text.h"
#include "compute/nn/dropout.h"
#include "compute/nn/embedding.h"
#include "compute/nn/layer_parameters.h"
#include "compute/tensor/build.h"

namespace imprint::nn {
namespace {

// Instead of minus infinity: a query without keys then stays finite.
constexpr double kUnseen = -1e30;

Tensor hide(const Tensor& scores, const Tensor& unseen) { return masked_fill(scores, unseen, kUnseen); }

Tensor causal_mask(std::int64_t queries, std::int64_t keys) {
  const Tensor last = unsqueeze(arange(queries), 1) + static_cast<int>(keys - queries);
  return arange(keys) > last;
}

}  // namespace

Tensor attention(const Tensor& query, const Tensor& key, const Tensor& value, const AttentionMask& mask,
                 double dropout, Pass* pass) {
  if (query.ok() && key.ok() && (query.rank() != 4 || key.rank() != 4 || query.extent(3) != key.extent(3)))
    return Tensor(make_error(ErrorCode::shape_mismatch,
                             text("attention: found query ", query.shape().text(), " and key ",
                                  key.shape().text(), ", expected [batch, heads, steps, extent]")));
  const double scale = 1 / std::sqrt(static_cast<double>(std::max<std::int64_t>(query.extent(3), 1)));
  Tensor scores = matmul(query * Tensor(scale), transpose(key));
  if (!tensor::is_empty(mask.bias)) scores = scores + mask.bias;
  if (mask.causal) scores = hide(scores, causal_mask(query.extent(2), key.extent(2)));
  if (!tensor::is_empty(mask.forbidden)) scores = hide(scores, mask.forbidden);
  if (!tensor::is_empty(mask.padding)) scores = hide(scores, unsqueeze(unsqueeze(mask.padding, 1), 1));
  Tensor weights = softmax(scores);
  if (pass != nullptr) weights = Dropout(dropout)(weights, *pass);
  return matmul(weights, value);
}

MultiHeadAttention::MultiHeadAttention(const std::string& name, std::int64_t extent, std::int64_t heads,
                                       const AttentionOptions& options)
    : name_(name), extent_(extent), heads_(heads), options_(options) {
  InitialValues wanted{
      .rows = extent, .columns = 3 * extent, .fan_in = extent, .fan_out = 3 * extent, .seed = options.seed};
  in_weight_ = add_parameter(parameters_, name, "in_proj_weight", {extent, 3 * extent},
                             {.scheme = Scheme::xavier_uniform}, wanted, true);
  if (options.bias) in_bias_ = add_constant(parameters_, name, "in_proj_bias", {3 * extent}, 0);
  wanted.columns = wanted.fan_out = extent;
  out_weight_ =
      add_parameter(parameters_, name, "out_proj.weight", {extent, extent}, Initialisation(), wanted, true);
  if (options.bias) out_bias_ = add_constant(parameters_, name, "out_proj.bias", {extent}, 0);
}

Tensor MultiHeadAttention::heads_of(const Tensor& x) const {
  const Tensor split = reshape(x, {x.extent(0), x.extent(1), heads_, extent_ / heads_});
  return permute(split, {0, 2, 1, 3});
}

Tensor MultiHeadAttention::attend(const Tensor& query, const Tensor& key, const Tensor& value,
                                  const AttentionMask& mask, Pass& pass) const {
  if (!query.ok() || !key.ok()) return query.ok() ? key : query;
  Tensor q = heads_of(query), k = heads_of(key);
  if (options_.rotary) q = rotary(q), k = rotary(k);
  const Tensor found = attention(q, k, heads_of(value), mask, options_.dropout, &pass);
  if (!found.ok()) return found;
  const Tensor joined = reshape(permute(found, {0, 2, 1, 3}), query.shape());
  const Tensor out = matmul(joined, out_weight_.value());
  return options_.bias ? out + out_bias_.value() : out;
}

Tensor MultiHeadAttention::operator()(const Tensor& x, const AttentionMask& mask) const {
  Pass evaluation;
  return (*this)(x, mask, evaluation);
}

Tensor MultiHeadAttention::operator()(const Tensor& x, const AttentionMask& mask, Pass& pass) const {
  if (!x.ok()) return x;
  if (heads_ < 1 || extent_ % heads_ != 0 || !fits(x)) return cross(x, x, mask, pass);  // says what is wrong
  Tensor all = matmul(x, in_weight_.value());
  if (options_.bias) all = all + in_bias_.value();
  const auto part = [&](std::int64_t i) { return narrow(all, -1, i * extent_, extent_); };
  return attend(part(0), part(1), part(2), mask, pass);
}

Tensor MultiHeadAttention::cross(const Tensor& x, const Tensor& memory, const AttentionMask& mask,
                                 Pass& pass) const {
  if (!x.ok() || !memory.ok()) return x.ok() ? memory : x;
  if (heads_ < 1 || extent_ % heads_ != 0)
    return Tensor(make_error(ErrorCode::invalid_argument,
                             text("attention '", name_, "': found ", heads_, " heads for extent ", extent_,
                                  ", expected heads that divide it")));
  for (const Tensor& operand : {x, memory})
    if (!fits(operand))
      return unfit_input("attention", name_, operand, text("[batch, steps, ", extent_, "]"));
  const auto project = [&](const Tensor& from, std::int64_t first, std::int64_t count) {
    const Tensor product = matmul(from, narrow(in_weight_.value(), 1, first * extent_, count * extent_));
    return options_.bias ? product + narrow(in_bias_.value(), 0, first * extent_, count * extent_) : product;
  };
  const Tensor query = project(x, 0, 1), both = project(memory, 1, 2);
  return attend(query, narrow(both, -1, 0, extent_), narrow(both, -1, extent_, extent_), mask, pass);
}

}  // namespace imprint::nn
