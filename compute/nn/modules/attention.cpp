#include "compute/nn/modules/attention.h"

#include <algorithm>
#include <cmath>

#include "compute/base/text.h"
#include "compute/nn/layer_parameters.h"
#include "compute/nn/modules/attention_page.h"
#include "compute/nn/modules/dropout.h"
#include "compute/nn/modules/embedding.h"
#include "compute/tensor/build.h"
#include "compute/tensor/composites/composites.h"

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
  if (!query.ok() || !key.ok() || !value.ok()) return query.ok() ? key.ok() ? value : key : query;
  if (query.rank() != 4 || key.rank() != 4 || value.rank() != 4 || query.extent(3) != key.extent(3) ||
      key.extent(1) < 1 || key.extent(1) != value.extent(1) || query.extent(1) % key.extent(1) != 0)
    return Tensor(
        make_error(ErrorCode::shape_mismatch,
                   text("attention: found query ", query.shape().text(), ", key ", key.shape().text(),
                        " and value ", value.shape().text(),
                        ", expected [batch, heads, steps, extent] and key heads that divide heads")));
  const bool is_plain = tensor::is_empty(mask.bias) && tensor::is_empty(mask.forbidden) &&
                        tensor::is_empty(mask.padding) && (pass == nullptr || dropout == 0);
  if (is_plain && has_attention_page(query, key, value, mask.causal))
    return attention_page(query, key, value, mask.causal, stores_attention_scores(query, key));
  const std::int64_t shared = query.extent(1) / key.extent(1);
  const Tensor keys = shared == 1 ? key : repeat_interleave(key, 1, shared),
               values = shared == 1 ? value : repeat_interleave(value, 1, shared);
  const double scale = 1 / std::sqrt(static_cast<double>(std::max<std::int64_t>(query.extent(3), 1)));
  Tensor scores = matmul(query * Tensor(scale), transpose(keys));
  if (!tensor::is_empty(mask.bias)) scores = scores + mask.bias;
  if (mask.causal) scores = hide(scores, causal_mask(query.extent(2), key.extent(2)));
  if (!tensor::is_empty(mask.forbidden)) scores = hide(scores, mask.forbidden);
  if (!tensor::is_empty(mask.padding)) scores = hide(scores, unsqueeze(unsqueeze(mask.padding, 1), 1));
  Tensor weights = softmax(scores);
  if (pass != nullptr) weights = Dropout(dropout)(weights, *pass);
  return matmul(weights, values);
}

AttentionCache::AttentionCache(const std::string& name, std::int64_t batch, std::int64_t key_heads,
                               std::int64_t steps, std::int64_t head_extent)
    : keys_(Variable::zeros(name + ".keys", {batch, key_heads, steps, head_extent})),
      values_(Variable::zeros(name + ".values", {batch, key_heads, steps, head_extent})),
      length_(Variable::zeros(name + ".length", {1}, DType::int32)) {
  state_.add("keys", keys_);
  state_.add("values", values_);
  state_.add("length", length_);
}

void AttentionCache::clear(std::vector<Update>& updates) const {
  updates.push_back(Update::assign(length_, zeros({1}, DType::int32)));
}

void AttentionCache::reorder(const Tensor& rows, std::vector<Update>& updates) const {
  for (const Variable* kept : {&keys_, &values_})
    updates.push_back(Update::assign(*kept, index_select(kept->value(), 0, rows)));
}

MultiHeadAttention::MultiHeadAttention(const std::string& name, std::int64_t extent, std::int64_t heads,
                                       const AttentionOptions& options)
    : name_(name), extent_(extent), heads_(heads), options_(options) {
  const std::int64_t key_extent = heads > 0 ? extent / heads * key_heads() : extent;
  const std::int64_t width = extent + 2 * key_extent;
  const auto of_groups = [&](const Shape& one) {
    if (options.groups == 0) return one;
    return one.rank() == 2 ? Shape{options.groups, one[0], one[1]} : Shape{options.groups, 1, one[0]};
  };
  InitialValues wanted{.rows = extent,
                       .columns = width,
                       .fan_in = extent,
                       .fan_out = width,
                       .groups = options.groups,
                       .seed = options.seed};
  in_weight_ = add_parameter(parameters_, name, "in_proj_weight", of_groups({extent, width}),
                             {.scheme = Scheme::xavier_uniform}, wanted, true);
  if (options.bias) in_bias_ = add_constant(parameters_, name, "in_proj_bias", of_groups({width}), 0);
  wanted.columns = wanted.fan_out = extent;
  out_weight_ = add_parameter(parameters_, name, "out_proj.weight", of_groups({extent, extent}),
                              Initialisation(), wanted, true);
  if (options.bias) out_bias_ = add_constant(parameters_, name, "out_proj.bias", of_groups({extent}), 0);
}

Tensor MultiHeadAttention::refusal(std::initializer_list<Tensor> operands) const {
  for (const Tensor& operand : operands)
    if (!operand.ok()) return operand;
  if (heads_ < 1 || extent_ % heads_ != 0 || heads_ % key_heads() != 0)
    return Tensor(make_error(
        ErrorCode::invalid_argument,
        text("attention '", name_, "': found ", heads_, " heads, ", key_heads(), " key heads and extent ",
             extent_, ", expected heads that divide the extent, and key heads that divide heads")));
  const bool is_kennel = options_.groups > 0;
  for (const Tensor& operand : operands)
    if (operand.rank() != (is_kennel ? 4 : 3) || operand.extent(-1) != extent_ ||
        (is_kennel && operand.extent(0) != options_.groups))
      return unfit_input(
          "attention", name_, operand,
          text("[", is_kennel ? text(options_.groups, ", ") : "", "batch, steps, ", extent_, "]"));
  return Tensor();
}

// x weight + bias: [batch, steps, width], where the batch of a kennel has all networks. bias: empty, or the
// weight's.
Tensor MultiHeadAttention::times(const Tensor& x, const Tensor& weight, const Tensor& bias) const {
  const Tensor rows = options_.groups > 0 ? reshape(x, {options_.groups, -1, x.extent(-1)}) : x;
  const Tensor product = matmul(rows, weight);
  const Tensor y = options_.bias ? product + bias : product;
  return options_.groups > 0 ? reshape(y, {-1, x.extent(-2), weight.extent(-1)}) : y;
}

Tensor MultiHeadAttention::split(const Tensor& x, std::int64_t heads) const {
  return permute(reshape(x, {x.extent(0), x.extent(1), heads, head_extent()}), {0, 2, 1, 3});
}

MultiHeadAttention::Heads MultiHeadAttention::project(const Tensor& x) const {
  const Tensor all = times(x, in_weight_.value(), options_.bias ? in_bias_.value() : Tensor());
  const std::int64_t width = head_extent() * key_heads();
  return {split(narrow(all, -1, 0, extent_), heads_), split(narrow(all, -1, extent_, width), key_heads()),
          split(narrow(all, -1, extent_ + width, width), key_heads())};
}

Tensor MultiHeadAttention::join(const Tensor& found) const {
  if (!found.ok()) return found;
  const Tensor joined = reshape(permute(found, {0, 2, 1, 3}), {found.extent(0), found.extent(2), extent_});
  const Tensor out = times(joined, out_weight_.value(), options_.bias ? out_bias_.value() : Tensor());
  return options_.groups > 0 ? reshape(out, {options_.groups, -1, out.extent(-2), extent_}) : out;
}

Tensor MultiHeadAttention::attend(const Heads& heads, AttentionMask mask, Pass& pass) const {
  const std::int64_t queries = heads.query.extent(2), keys = heads.key.extent(2);
  if (options_.alibi) {
    const Tensor slopes = alibi_bias(heads_, queries, keys);
    mask.bias = tensor::is_empty(mask.bias) ? slopes : mask.bias + slopes;
  }
  const Tensor q = options_.rotary ? rotary(heads.query) : heads.query,
               k = options_.rotary ? rotary(heads.key) : heads.key;
  return join(attention(q, k, heads.value, mask, options_.dropout, &pass));
}

Tensor MultiHeadAttention::operator()(const Tensor& x, const AttentionMask& mask) const {
  Pass evaluation;
  return (*this)(x, mask, evaluation);
}

Tensor MultiHeadAttention::operator()(const Tensor& x, const AttentionMask& mask, Pass& pass) const {
  if (const Tensor refused = refusal({x}); !tensor::is_empty(refused)) return refused;
  return attend(project(x), mask, pass);
}

Tensor MultiHeadAttention::cross(const Tensor& x, const Tensor& memory, const AttentionMask& mask,
                                 Pass& pass) const {
  if (const Tensor refused = refusal({x, memory}); !tensor::is_empty(refused)) return refused;
  const auto project_part = [&](const Tensor& from, std::int64_t first, std::int64_t count) {
    return times(from, narrow(in_weight_.value(), -1, first, count),
                 options_.bias ? narrow(in_bias_.value(), -1, first, count) : Tensor());
  };
  const std::int64_t width = head_extent() * key_heads();
  const Tensor query = project_part(x, 0, extent_), both = project_part(memory, extent_, 2 * width);
  return attend({split(query, heads_), split(narrow(both, -1, 0, width), key_heads()),
                 split(narrow(both, -1, width, width), key_heads())},
                mask, pass);
}

AttentionCache MultiHeadAttention::cache(const std::string& name, std::int64_t batch,
                                         std::int64_t steps) const {
  return AttentionCache(name, std::max<std::int64_t>(options_.groups, 1) * batch, key_heads(), steps,
                        heads_ > 0 ? head_extent() : 0);
}

Tensor MultiHeadAttention::cached(const Tensor& x, const AttentionCache& cache,
                                  std::vector<Update>& updates) const {
  if (const Tensor refused = refusal({x}); !tensor::is_empty(refused)) return refused;
  Heads heads = project(x);
  const Tensor length = cache.length();
  const std::int64_t steps = x.extent(-2), most = cache.steps();
  if (options_.rotary) {
    heads.query = rotary(heads.query, 10000, length);
    heads.key = rotary(heads.key, 10000, length);
  }
  // The new steps follow those that are held; indices outside read 0 and are replaced.
  const Tensor place = arange(most) - length;
  const Tensor is_new = reshape(logical_and(place >= 0, place < static_cast<int>(steps)), {1, 1, most, 1});
  const auto appended = [&](const Variable& held, const Tensor& fresh) {
    const Tensor all = where(is_new, take(fresh, 2, place), held.value());
    updates.push_back(Update::assign(held, all));
    return all;
  };
  const Tensor keys = appended(cache.keys_, heads.key), values = appended(cache.values_, heads.value);
  updates.push_back(
      Update::assign(cache.length_, minimum(length + static_cast<int>(steps), static_cast<int>(most))));
  const Tensor positions = arange(steps) + length;
  AttentionMask mask{.forbidden = arange(most) > unsqueeze(positions, 1)};
  if (options_.alibi) mask.bias = alibi_bias(heads_, positions, most);
  return join(attention(heads.query, keys, values, mask));
}

}  // namespace imprint::nn
