#include "compute/nn/modules/transformer.h"

#include "compute/base/text.h"

namespace imprint::nn {

Tensor gated(const Tensor& x, Activation activation) {
  if (!x.ok()) return x;
  if (x.rank() < 1 || x.extent(-1) % 2 != 0)
    return Tensor(make_error(ErrorCode::shape_mismatch, text("gated: found ", x.shape().text(),
                                                             ", expected a last axis with an even extent")));
  const std::int64_t half = x.extent(-1) / 2;
  return activate(narrow(x, -1, 0, half), activation) * narrow(x, -1, half, half);
}

FeedForward::FeedForward(const std::string& name, std::int64_t extent, std::int64_t hidden,
                         const FeedForwardOptions& options)
    : options_(options),
      first_(name + ".linear1", extent, hidden,
             {.bias = options.bias, .groups = options.groups, .seed = options.seed}),
      second_(name + ".linear2", hidden, extent,
              {.bias = options.bias, .groups = options.groups, .seed = options.seed}) {
  parameters_.add("linear1", first_.parameters());
  parameters_.add("linear2", second_.parameters());
}

Tensor FeedForward::operator()(const Tensor& x, Pass& pass) const {
  return second_(Dropout(options_.dropout)(activate(first_(x), options_.activation), pass));
}

Tensor FeedForward::operator()(const Tensor& x) const {
  Pass evaluation;
  return (*this)(x, evaluation);
}

GatedFeedForward::GatedFeedForward(const std::string& name, std::int64_t extent, std::int64_t hidden,
                                   const FeedForwardOptions& options)
    : options_(options),
      gate_(name + ".gate_proj", extent, hidden,
            {.bias = options.bias, .groups = options.groups, .seed = options.seed}),
      up_(name + ".up_proj", extent, hidden,
          {.bias = options.bias, .groups = options.groups, .seed = options.seed}),
      down_(name + ".down_proj", hidden, extent,
            {.bias = options.bias, .groups = options.groups, .seed = options.seed}) {
  parameters_.add("gate_proj", gate_.parameters());
  parameters_.add("up_proj", up_.parameters());
  parameters_.add("down_proj", down_.parameters());
}

Tensor GatedFeedForward::operator()(const Tensor& x, Pass& pass) const {
  const Tensor hidden = activate(gate_(x), options_.activation) * up_(x);
  return down_(Dropout(options_.dropout)(hidden, pass));
}

Tensor GatedFeedForward::operator()(const Tensor& x) const {
  Pass evaluation;
  return (*this)(x, evaluation);
}

namespace {

AttentionOptions attention_options(const TransformerLayerOptions& options) {
  return {.dropout = options.dropout,
          .rotary = options.rotary,
          .alibi = options.alibi,
          .key_heads = options.key_heads,
          .groups = options.groups,
          .seed = options.seed};
}

}  // namespace

TransformerEncoderLayer::TransformerEncoderLayer(const std::string& name, std::int64_t extent,
                                                 std::int64_t heads, const TransformerLayerOptions& options)
    : options_(options),
      attention_(name + ".self_attn", extent, heads, attention_options(options)),
      feed_forward_(name, extent, options.hidden,
                    {.activation = options.activation,
                     .dropout = options.dropout,
                     .groups = options.groups,
                     .seed = options.seed}),
      norm1_(name + ".norm1", extent, {.epsilon = options.epsilon, .groups = options.groups}),
      norm2_(name + ".norm2", extent, {.epsilon = options.epsilon, .groups = options.groups}) {
  parameters_.add("self_attn", attention_.parameters());
  parameters_.add("", feed_forward_.parameters());
  parameters_.add("norm1", norm1_.parameters());
  parameters_.add("norm2", norm2_.parameters());
}

template <class Attend>
Tensor TransformerEncoderLayer::forward(const Tensor& x, Attend attend, Pass& pass) const {
  const Dropout dropout(options_.dropout);
  if (options_.norm_first) {
    const Tensor middle = x + dropout(attend(norm1_(x)), pass);
    return middle + dropout(feed_forward_(norm2_(middle), pass), pass);
  }
  const Tensor middle = norm1_(x + dropout(attend(x), pass));
  return norm2_(middle + dropout(feed_forward_(middle, pass), pass));
}

Tensor TransformerEncoderLayer::operator()(const Tensor& x, const AttentionMask& mask, Pass& pass) const {
  return forward(
      x, [&](const Tensor& in) { return attention_(in, mask, pass); }, pass);
}

Tensor TransformerEncoderLayer::operator()(const Tensor& x, const AttentionMask& mask) const {
  Pass evaluation;
  return (*this)(x, mask, evaluation);
}

AttentionCache TransformerEncoderLayer::cache(const std::string& name, std::int64_t batch,
                                              std::int64_t steps) const {
  return attention_.cache(name, batch, steps);
}

Tensor TransformerEncoderLayer::cached(const Tensor& x, const AttentionCache& cache,
                                       std::vector<Update>& updates) const {
  Pass evaluation;
  return forward(
      x, [&](const Tensor& in) { return attention_.cached(in, cache, updates); }, evaluation);
}

TransformerDecoderLayer::TransformerDecoderLayer(const std::string& name, std::int64_t extent,
                                                 std::int64_t heads, const TransformerLayerOptions& options)
    : options_(options),
      self_attention_(name + ".self_attn", extent, heads, attention_options(options)),
      memory_attention_(name + ".multihead_attn", extent, heads,
                        {.dropout = options.dropout, .groups = options.groups, .seed = options.seed}),
      feed_forward_(name, extent, options.hidden,
                    {.activation = options.activation,
                     .dropout = options.dropout,
                     .groups = options.groups,
                     .seed = options.seed}),
      norm1_(name + ".norm1", extent, {.epsilon = options.epsilon, .groups = options.groups}),
      norm2_(name + ".norm2", extent, {.epsilon = options.epsilon, .groups = options.groups}),
      norm3_(name + ".norm3", extent, {.epsilon = options.epsilon, .groups = options.groups}) {
  parameters_.add("self_attn", self_attention_.parameters());
  parameters_.add("multihead_attn", memory_attention_.parameters());
  parameters_.add("", feed_forward_.parameters());
  parameters_.add("norm1", norm1_.parameters());
  parameters_.add("norm2", norm2_.parameters());
  parameters_.add("norm3", norm3_.parameters());
}

template <class Attend>
Tensor TransformerDecoderLayer::forward(const Tensor& x, Attend attend, const Tensor& memory,
                                        const AttentionMask& memory_mask, Pass& pass) const {
  const Dropout dropout(options_.dropout);
  const bool first = options_.norm_first;
  // One branch: with its norm before it, or after the sum.
  const auto branch = [&](const Tensor& in, const LayerNorm& norm, const auto& function) {
    const Tensor sum = in + dropout(function(first ? norm(in) : in), pass);
    return first ? sum : norm(sum);
  };
  const Tensor own = branch(x, norm1_, attend);
  const Tensor both = branch(
      own, norm2_, [&](const Tensor& in) { return memory_attention_.cross(in, memory, memory_mask, pass); });
  return branch(both, norm3_, [&](const Tensor& in) { return feed_forward_(in, pass); });
}

Tensor TransformerDecoderLayer::operator()(const Tensor& x, const Tensor& memory, const AttentionMask& mask,
                                           const AttentionMask& memory_mask, Pass& pass) const {
  return forward(
      x, [&](const Tensor& in) { return self_attention_(in, mask, pass); }, memory, memory_mask, pass);
}

Tensor TransformerDecoderLayer::operator()(const Tensor& x, const Tensor& memory, const AttentionMask& mask,
                                           const AttentionMask& memory_mask) const {
  Pass evaluation;
  return (*this)(x, memory, mask, memory_mask, evaluation);
}

AttentionCache TransformerDecoderLayer::cache(const std::string& name, std::int64_t batch,
                                              std::int64_t steps) const {
  return self_attention_.cache(name, batch, steps);
}

Tensor TransformerDecoderLayer::cached(const Tensor& x, const Tensor& memory,
                                       const AttentionMask& memory_mask, const AttentionCache& cache,
                                       std::vector<Update>& updates) const {
  Pass evaluation;
  return forward(
      x, [&](const Tensor& in) { return self_attention_.cached(in, cache, updates); }, memory, memory_mask,
      evaluation);
}

namespace {

// The layers and the last norm of an encoder or decoder.
template <class Layer>
void build_stack(const std::string& name, std::int64_t count, std::int64_t extent, std::int64_t heads,
                 const TransformerLayerOptions& options, std::vector<Layer>& layers,
                 std::vector<LayerNorm>& norm, Parameters& parameters) {
  for (std::int64_t i = 0; i < count; ++i) {
    layers.emplace_back(text(name, ".layers.", i), extent, heads, options);
    parameters.add(text("layers.", i), layers.back().parameters());
  }
  if (!options.norm_first) return;
  norm.emplace_back(name + ".norm", extent,
                    LayerNormOptions{.epsilon = options.epsilon, .groups = options.groups});
  parameters.add("norm", norm[0].parameters());
}

template <class Layer>
std::vector<AttentionCache> caches_of(const std::vector<Layer>& layers, const std::string& name,
                                      std::int64_t batch, std::int64_t steps) {
  std::vector<AttentionCache> made;
  for (const Layer& layer : layers) made.push_back(layer.cache(text(name, ".", made.size()), batch, steps));
  return made;
}

Tensor wrong_caches(const char* kind, std::size_t found, std::size_t expected) {
  return Tensor(make_error(ErrorCode::invalid_argument,
                           text("transformer ", kind, ": found ", found, " caches, expected ", expected,
                                ". Make them with caches().")));
}

}  // namespace

TransformerEncoder::TransformerEncoder(const std::string& name, std::int64_t layers, std::int64_t extent,
                                       std::int64_t heads, TransformerLayerOptions options) {
  build_stack(name, layers, extent, heads, options, layers_, norm_, parameters_);
}

Tensor TransformerEncoder::operator()(const Tensor& x, const AttentionMask& mask, Pass& pass) const {
  Tensor out = x;
  for (const TransformerEncoderLayer& layer : layers_) out = layer(out, mask, pass);
  return finish(out);
}

Tensor TransformerEncoder::operator()(const Tensor& x, const AttentionMask& mask) const {
  Pass evaluation;
  return (*this)(x, mask, evaluation);
}

std::vector<AttentionCache> TransformerEncoder::caches(const std::string& name, std::int64_t batch,
                                                       std::int64_t steps) const {
  return caches_of(layers_, name, batch, steps);
}

Tensor TransformerEncoder::cached(const Tensor& x, const std::vector<AttentionCache>& caches,
                                  std::vector<Update>& updates) const {
  if (caches.size() != layers_.size()) return wrong_caches("encoder", caches.size(), layers_.size());
  Tensor out = x;
  for (std::size_t i = 0; i < layers_.size(); ++i) out = layers_[i].cached(out, caches[i], updates);
  return finish(out);
}

TransformerDecoder::TransformerDecoder(const std::string& name, std::int64_t layers, std::int64_t extent,
                                       std::int64_t heads, TransformerLayerOptions options) {
  build_stack(name, layers, extent, heads, options, layers_, norm_, parameters_);
}

Tensor TransformerDecoder::operator()(const Tensor& x, const Tensor& memory, const AttentionMask& mask,
                                      const AttentionMask& memory_mask, Pass& pass) const {
  Tensor out = x;
  for (const TransformerDecoderLayer& layer : layers_) out = layer(out, memory, mask, memory_mask, pass);
  return finish(out);
}

Tensor TransformerDecoder::operator()(const Tensor& x, const Tensor& memory, const AttentionMask& mask,
                                      const AttentionMask& memory_mask) const {
  Pass evaluation;
  return (*this)(x, memory, mask, memory_mask, evaluation);
}

std::vector<AttentionCache> TransformerDecoder::caches(const std::string& name, std::int64_t batch,
                                                       std::int64_t steps) const {
  return caches_of(layers_, name, batch, steps);
}

Tensor TransformerDecoder::cached(const Tensor& x, const Tensor& memory, const AttentionMask& memory_mask,
                                  const std::vector<AttentionCache>& caches,
                                  std::vector<Update>& updates) const {
  if (caches.size() != layers_.size()) return wrong_caches("decoder", caches.size(), layers_.size());
  Tensor out = x;
  for (std::size_t i = 0; i < layers_.size(); ++i)
    out = layers_[i].cached(out, memory, memory_mask, caches[i], updates);
  return finish(out);
}

}  // namespace imprint::nn
