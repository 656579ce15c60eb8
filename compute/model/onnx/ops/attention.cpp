// Attention, rotary embeddings, and the fused operators that ONNX Runtime's exporters write (com.microsoft).

#include <array>
#include <cmath>
#include <limits>

#include "compute/base/text.h"
#include "compute/model/onnx/op.h"
#include "compute/model/onnx/ops/attention_products.h"
#include "compute/model/onnx/ops/whole_products.h"
#include "compute/nn/modules/attention_page.h"
#include "compute/tensor/composites/composites.h"

namespace imprint::onnx {
namespace {

constexpr double kUnseen = static_cast<double>(std::numeric_limits<float>::lowest());
constexpr std::int64_t kOperationsOfAttention = 64;

// Queries, keys and values as [batch, heads, steps, extent].
struct Heads {
  Tensor query, key, value;
  Tensor bias;         // added to the scores; empty for none
  double scale = 0;    // of the scores; 0: 1 / sqrt(extent)
  double softcap = 0;  // 0: none
  int stage = 0;       // which scores to give back: ONNX's qk_matmul_output_mode
};

struct Attended {
  Tensor out, scores;
};

Tensor with_bias(const Tensor& bias, const Tensor& more) { return bias.ok() ? bias + more : more; }

// One operation that stores no scores, where they are many; else !ok().
Tensor attended_with_bias(const Heads& heads, double scale) {
  if (!heads.bias.ok()) return {};
  const nn::AttentionTerms terms{.bias = imprint::maximum(heads.bias, Tensor(kUnseen))};
  if (!nn::has_attention_page(heads.query, heads.key, heads.value, terms)) return {};
  const double ratio = scale * std::sqrt(static_cast<double>(heads.query.extent(3)));
  return nn::attention_page(heads.query * Tensor(ratio), heads.key, heads.value, terms,
                            nn::stores_attention_scores(heads.query, heads.key, terms));
}

Attended attended(const Heads& heads) {
  Tensor key = heads.key, value = heads.value;
  const std::int64_t each = heads.query.extent(1) / std::max<std::int64_t>(1, key.extent(1));
  if (each > 1) {
    key = imprint::repeat_interleave(key, 1, each);
    value = imprint::repeat_interleave(value, 1, each);
  }
  const double scale =
      heads.scale != 0 ? heads.scale
                       : 1 / std::sqrt(static_cast<double>(std::max<std::int64_t>(1, heads.query.extent(3))));
  Attended found;
  Tensor scores = imprint::matmul(heads.query, imprint::transpose(key)) * scale;
  if (heads.stage == 0) found.scores = scores;
  if (heads.softcap > 0) scores = imprint::tanh(scores / heads.softcap) * heads.softcap;
  if (heads.stage == 1) found.scores = scores;
  if (heads.bias.ok()) scores = imprint::maximum(scores + heads.bias, Tensor(kUnseen));
  if (heads.stage == 2) found.scores = scores;
  scores = imprint::softmax(scores, -1);
  // A query that sees no key gives zeros.
  const Tensor sees = heads.bias.ok() ? imprint::max(heads.bias, {-1}, true) > Tensor(kUnseen / 2) : Tensor();
  if (heads.bias.ok()) scores = imprint::where(sees, scores, 0.0f);
  if (heads.stage == 3) found.scores = scores;
  if (const Tensor masked = heads.softcap > 0 ? Tensor() : attended_with_bias(heads, scale); masked.ok())
    found.out = imprint::where(sees, masked, 0.0f);
  else
    found.out = product_with_weights(scores, value);
  return found;
}

Tensor joined_heads(const Tensor& x) {
  return imprint::reshape(imprint::permute(x, {0, 2, 1, 3}),
                          {x.extent(0), x.extent(2), x.extent(1) * x.extent(3)});
}

// 0 where a query sees a key, else kUnseen: query i sees keys up to i + offset.
Tensor causal_bias(std::int64_t queries, std::int64_t keys, const SymbolicInt& offset) {
  const Shape shape{queries, keys};
  const Tensor seen = imprint::iota(shape, 1) <= imprint::iota(shape, 0) + offset.tensor();
  return imprint::where(seen, Tensor(0.0f), Tensor(kUnseen));
}

bool divides(std::int64_t heads, const Tensor& x) {
  return x.rank() == 3 && heads > 0 && x.extent(2) % heads == 0;
}

// The mask of ONNX's Attention as numbers to add, as wide as the keys.
Tensor mask_bias(const Tensor& mask, std::int64_t keys) {
  Tensor bias = mask.dtype() == DType::boolean ? imprint::where(mask, Tensor(0.0f), Tensor(kUnseen))
                                               : imprint::cast(mask, DType::float32);
  if (bias.rank() == 0 || bias.extent(-1) >= keys || bias.extent(-1) == 1) return bias;
  std::vector<std::pair<std::int64_t, std::int64_t>> pads(static_cast<std::size_t>(bias.rank()));
  pads.back().second = keys - bias.extent(bias.rank() - 1);
  return imprint::pad(bias, pads, kUnseen);
}

bool fits_heads(OpContext& context, const Heads& heads) {
  const Tensor &q = heads.query, &k = heads.key, &v = heads.value;
  return context.require(q.rank() == 4 && k.rank() == 4 && v.rank() == 4 && q.extent(0) == k.extent(0) &&
                             q.extent(3) == k.extent(3) && k.extent(1) == v.extent(1) &&
                             k.extent(2) == v.extent(2) && k.extent(1) > 0 && q.extent(1) % k.extent(1) == 0,
                         text("found queries ", q.shape().text(), ", keys ", k.shape().text(), " and values ",
                              v.shape().text(), ", expected [batch, heads, steps, extent] that fit"));
}

void attention(OpContext& context) {
  Heads heads{context.tensor(0), context.tensor(1), context.tensor(2), Tensor()};
  const bool flat = heads.query.rank() == 3;
  if (flat) {
    const std::int64_t query_heads = context.int_attribute("q_num_heads", 0),
                       key_heads = context.int_attribute("kv_num_heads", 0);
    if (!context.require(divides(query_heads, heads.query) && divides(key_heads, heads.key) &&
                             divides(key_heads, heads.value),
                         "q_num_heads or kv_num_heads do not divide the inputs"))
      return;
    heads.query = split_heads(heads.query, query_heads);
    heads.key = split_heads(heads.key, key_heads);
    heads.value = split_heads(heads.value, key_heads);
  }
  SymbolicInt past;
  if (context.has(4) && context.has(5)) {
    if (!context.require(context.shape(4).rank() == 4,
                         "past keys: found " + context.shape(4).text() + ", expected four axes"))
      return;
    past = SymbolicInt::of(context.shape(4), 2);
    heads.key = imprint::concat({context.tensor(4), heads.key}, 2);
    heads.value = imprint::concat({context.tensor(5), heads.value}, 2);
  }
  if (!fits_heads(context, heads) || !context.may_make(kOperationsOfAttention)) return;
  const std::int64_t queries = heads.query.extent(2), keys = heads.key.extent(2);
  if (context.has(3)) {
    const Shape& mask = context.shape(3);
    const auto missing = mask.rank() == 0 ? std::nullopt
                                          : added(SymbolicInt::of(heads.key.shape(), 2),
                                                  SymbolicInt::of(mask, mask.rank() - 1), -1);
    if (missing && !missing->number() && mask[mask.rank() - 1] != 1)
      return context.unsupported(text("mask: found ", mask.text(), " for keys ", heads.key.shape().text(),
                                      ", expected a width that differs by a number. Give these extents "
                                      "numbers instead of bounds."));
    heads.bias = mask_bias(context.tensor(3), keys);
  }
  if (context.int_attribute("is_causal", 0) != 0)
    heads.bias = with_bias(heads.bias, causal_bias(queries, keys, past));
  if (context.has(6)) {
    const Tensor lengths = imprint::reshape(context.tensor(6), {heads.query.extent(0), 1, 1, 1});
    heads.bias = with_bias(heads.bias, imprint::where(imprint::iota({1, 1, 1, keys}, 3) < lengths,
                                                      Tensor(0.0f), Tensor(kUnseen)));
  }
  heads.scale = context.float_attribute("scale", 0);
  heads.softcap = context.float_attribute("softcap", 0);
  heads.stage = static_cast<int>(context.int_attribute("qk_matmul_output_mode", 0));
  const Attended found = attended(heads);
  context.set(0, flat ? joined_heads(found.out) : found.out);
  context.set(1, heads.key);
  context.set(2, heads.value);
  if (context.wants(3)) context.set(3, found.scores);
}

// x [batch, heads, steps, extent] turned by cosines and sines [batch or 1, 1, steps, half].
Tensor turned(const Tensor& x, const Tensor& cosine, const Tensor& sine, bool interleaved) {
  const std::int64_t half = cosine.extent(3), rest = x.extent(3) - 2 * half;
  const Tensor turning = imprint::narrow(x, 3, 0, 2 * half);
  const auto part = [&](std::int64_t which) {
    return interleaved ? imprint::slice(turning, 3, which, 2 * half, 2)
                       : imprint::narrow(turning, 3, which * half, half);
  };
  const Tensor first = part(0) * cosine - part(1) * sine, second = part(0) * sine + part(1) * cosine;
  Tensor out = interleaved ? imprint::reshape(imprint::stack({first, second}, 4), turning.shape())
                           : imprint::concat({first, second}, 3);
  return rest == 0 ? out : imprint::concat({out, imprint::narrow(x, 3, 2 * half, rest)}, 3);
}

struct RotaryInputs {
  int cosines = 1, sines = 2, positions = 3;
};

void rotary(OpContext& context, const RotaryInputs& at) {
  const Value from = context.value(0);
  Tensor x = from.tensor();
  const bool flat = x.rank() == 3;
  const Shape& cache = context.shape(at.cosines);
  std::int64_t heads = context.int_attribute("num_heads", 0);
  const std::int64_t asked = context.int_attribute("rotary_embedding_dim", 0);
  // Before heads were an attribute, the cache told their extent.
  if (flat && heads == 0 && cache.rank() > 0 && cache[cache.rank() - 1] > 0)
    heads = x.extent(2) / (2 * cache[cache.rank() - 1]);
  if (!context.require(
          (x.rank() == 4 || (flat && divides(heads, x))) && cache.rank() >= 2 &&
              cache == context.shape(at.sines),
          text("found x ", x.shape().text(), " and cosines ", cache.text(), " for ", heads, " heads")))
    return;
  if (flat) x = split_heads(x, heads);
  const std::int64_t half = asked > 0 ? asked / 2 : x.extent(3) / 2, steps = x.extent(2), batch = x.extent(0);
  Tensor cosine = context.tensor(at.cosines), sine = context.tensor(at.sines);
  if (context.has(at.positions)) {
    Tensor positions = context.tensor(at.positions);
    // One position: the first step's.
    if (positions.shape().element_count() == 1 && steps != 1)
      positions = imprint::reshape(positions, {1, 1}) + imprint::iota({1, steps}, 1);
    if (!context.require(cache.rank() == 2 && positions.rank() == 2,
                         text("position_ids: found ", positions.shape().text(), ", expected [batch, steps]")))
      return;
    cosine = imprint::take(cosine, 0, positions);
    sine = imprint::take(sine, 0, positions);
  }
  if (!context.require(cosine.rank() == 3 && cosine.extent(1) == steps && cosine.extent(2) == half &&
                           2 * half <= x.extent(3) && (cosine.extent(0) == batch || cosine.extent(0) == 1),
                       text("cosines ", cosine.shape().text(), " do not fit ", x.shape().text())))
    return;
  const Tensor out = turned(x, imprint::unsqueeze(cosine, 1), imprint::unsqueeze(sine, 1),
                            context.int_attribute("interleaved", 0) != 0);
  context.set(0, flat ? joined_heads(out) : out);
}

void rotary_embedding(OpContext& context) { rotary(context, {}); }
void rotary_embedding_ms(OpContext& context) { rotary(context, {.cosines = 2, .sines = 3, .positions = 1}); }

// ---- com.microsoft ----

// Which keys are seen, as numbers to add: [batch] lengths, [batch, keys], [batch, queries, keys].
std::optional<Tensor> padding_bias(OpContext& context, int input, std::int64_t batch, std::int64_t keys) {
  const Tensor mask = context.tensor(input);
  const double filter = context.float_attribute("mask_filter_value", -10000);
  const auto bias = [&](const Tensor& seen) { return imprint::where(seen, Tensor(0.0f), Tensor(filter)); };
  if (mask.shape() == Shape{batch})
    return bias(imprint::iota({1, 1, 1, keys}, 3) < imprint::reshape(mask, {batch, 1, 1, 1}));
  if (mask.shape() == Shape{batch, keys})
    return bias(imprint::greater(imprint::reshape(mask, {batch, 1, 1, keys}), 0));
  if (mask.rank() == 3 && mask.extent(0) == batch && mask.extent(2) == keys)
    return bias(imprint::greater(imprint::unsqueeze(mask, 1), 0));
  context.unsupported("a mask of shape " + mask.shape().text());
  return std::nullopt;
}

// The rest of both attentions of ONNX Runtime: masks, the past, the result.
void attend_ms(OpContext& context, Heads heads, int mask, int bias, const SymbolicInt& past) {
  if (!fits_heads(context, heads) || !context.may_make(kOperationsOfAttention)) return;
  const std::int64_t batch = heads.query.extent(0), queries = heads.query.extent(2),
                     keys = heads.key.extent(2);
  if (context.has(mask)) {
    const auto padding = padding_bias(context, mask, batch, keys);
    if (!padding) return;
    heads.bias = *padding;
  }
  if (context.has(bias)) heads.bias = with_bias(heads.bias, context.tensor(bias));
  if (context.int_attribute("unidirectional", 0) != 0)
    heads.bias = with_bias(heads.bias, causal_bias(queries, keys, past));
  heads.scale = context.float_attribute("scale", 0);
  context.set(0, joined_heads(attended(heads).out));
}

// One of the tensors that lie beside each other in x [batch, steps, heads, parts, extent], without heads.
Tensor packed_part(const Tensor& x, std::int64_t which) {
  return imprint::reshape(imprint::narrow(x, 3, which, 1),
                          {x.extent(0), x.extent(1), x.extent(2) * x.extent(4)});
}

// Queries, keys and values, of which one input may hold several. Nothing after a failure.
std::optional<Heads> unpacked_heads(OpContext& context, std::int64_t count) {
  const Tensor first = context.tensor(0);
  const auto is_packed = [&](int input, std::int64_t parts) {
    const Shape& shape = context.shape(input);
    return shape.rank() == 5 && shape[2] == count && shape[3] == parts;
  };
  if (context.has(1) && context.has(2)) return Heads{first, context.tensor(1), context.tensor(2), Tensor()};
  if (context.has(1) && is_packed(1, 2))
    return Heads{first, packed_part(context.tensor(1), 0), packed_part(context.tensor(1), 1), Tensor()};
  if (!context.has(1) && is_packed(0, 3))
    return Heads{packed_part(first, 0), packed_part(first, 1), packed_part(first, 2), Tensor()};
  context.require(false, text("query ", first.shape().text(), ": expected keys and values, or all of ", count,
                              " heads packed"));
  return std::nullopt;
}

struct MultiHeadInputs {
  int bias = 3, mask = 4, scores = 5, past = 6;  // past: of keys, that of values follows
};

void multi_head(OpContext& context, const MultiHeadInputs& at) {
  const std::int64_t count = context.int_attribute("num_heads", 0);
  const auto unpacked = unpacked_heads(context, count);
  if (!unpacked) return;
  Heads heads = *unpacked;
  if (!context.require(divides(count, heads.query),
                       text("query ", heads.query.shape().text(), " does not fit ", count, " heads")))
    return;
  Tensor bias = context.has(at.bias) ? context.tensor(at.bias) : Tensor();
  std::int64_t from = 0;
  for (Tensor* part : {&heads.query, &heads.key, &heads.value}) {
    if (part->rank() != 3) continue;  // keys and values of cross attention come in heads
    if (!context.require(divides(count, *part), "keys or values do not fit the heads")) return;
    if (bias.ok()) *part = *part + imprint::narrow(bias, 0, from, part->extent(2));
    from += part->extent(2);
    *part = split_heads(*part, count);
  }
  SymbolicInt past;
  if (context.has(at.past) && context.has(at.past + 1)) {
    if (!context.require(context.shape(at.past).rank() == 4,
                         text("past keys: found ", context.shape(at.past).text(), ", expected four axes")))
      return;
    past = SymbolicInt::of(context.shape(at.past), 2);
    heads.key = imprint::concat({context.tensor(at.past), heads.key}, 2);
    heads.value = imprint::concat({context.tensor(at.past + 1), heads.value}, 2);
  }
  context.set(1, heads.key);
  context.set(2, heads.value);
  attend_ms(context, heads, at.mask, at.scores, past);
}

void multi_head_attention_ms(OpContext& context) { multi_head(context, {}); }

// One step of a decoder, whose present is the past and one step more.
void decoder_attention_ms(OpContext& context) {
  if (context.int_attribute("past_present_share_buffer", 0) != 0)
    return context.unsupported("a past and a present in one buffer");
  if (context.has(8) || context.has(9)) return context.unsupported("beams");
  if (context.wants(3)) return context.unsupported("scores as an output");
  multi_head(context, {.bias = 10, .mask = 3, .scores = 4, .past = 5});
}

// Inputs of attention whose queries, keys and values are one product.
struct JoinedInputs {
  int mask = 3, past = 4, scores = 5;
};

void attend_joined(OpContext& context, const Tensor& all, const JoinedInputs& at) {
  const std::int64_t count = context.int_attribute("num_heads", 0);
  if (context.int_attribute("do_rotary", 0) != 0) return context.unsupported("rotary positions");
  if (context.int_attribute("past_present_share_buffer", 0) != 0)
    return context.unsupported("a past and a present in one buffer");
  std::vector<std::int64_t> sizes = context.ints_attribute("qkv_hidden_sizes");
  const std::int64_t wide = all.rank() == 3 ? all.extent(2) : 0;
  if (sizes.empty()) sizes.assign(3, wide / 3);
  if (!context.require(all.rank() == 3 && sizes.size() == 3 && sizes[0] >= 0 && sizes[0] <= wide &&
                           sizes[1] >= 0 && sizes[1] <= wide - sizes[0] &&
                           sizes[2] == wide - sizes[0] - sizes[1],
                       text("the product ", all.shape().text(), " does not hold queries, keys and values")))
    return;
  Heads heads;
  std::int64_t from = 0;
  for (std::size_t i = 0; i < 3; ++i) {
    const Tensor part = imprint::narrow(all, 2, from, sizes[i]);
    if (!context.require(divides(count, part), text(count, " heads do not divide ", sizes[i]))) return;
    (i == 0 ? heads.query : i == 1 ? heads.key : heads.value) = split_heads(part, count);
    from += sizes[i];
  }
  SymbolicInt past;
  if (context.has(at.past)) {
    const Tensor before = context.tensor(at.past);
    if (!context.require(before.rank() == 5 && before.extent(0) == 2 && sizes[1] == sizes[2],
                         text("past: found ", before.shape().text(), ", expected keys and values in heads")))
      return;
    past = SymbolicInt::of(before.shape(), 3);
    const auto part = [&](std::int64_t which) {
      return imprint::squeeze(imprint::narrow(before, 0, which, 1), 0);
    };
    heads.key = imprint::concat({part(0), heads.key}, 2);
    heads.value = imprint::concat({part(1), heads.value}, 2);
  }
  if (context.wants(1)) context.set(1, imprint::stack({heads.key, heads.value}, 0));
  attend_ms(context, heads, at.mask, at.scores, past);
}

bool fits_weights(OpContext& context) {
  const Shape &x = context.shape(0), &weights = context.shape(1);
  return context.require(x.rank() == 3 && weights.rank() == 2 && x[2] == weights[0],
                         text("found x ", x.text(), " and weights ", weights.text()));
}

void attention_ms(OpContext& context) {
  if (!fits_weights(context)) return;
  Tensor all = imprint::matmul(context.tensor(0), context.tensor(1));
  if (context.has(2)) all = all + context.tensor(2);
  attend_joined(context, all, {});
}

// The product of quantised numbers, one input scale, weights with one scale or one per column.
void quantised_attention_ms(OpContext& context) {
  if (!fits_weights(context)) return;
  const Tensor sum = whole_product(context, activations(context, eight_bit_input(context, 0, 6)),
                                   eight_bit_input(context, 1, 7), DType::int32);
  if (context.failure()) return;
  const Tensor scale =
      as_scalar(as_float(context, context.value(3))) * as_scalar(as_float(context, context.value(4)));
  attend_joined(context, imprint::cast(sum, DType::float32) * scale + context.tensor(2),
                {.mask = 5, .past = 8, .scores = -1});
}

// The first axis moved before the last one: [m, batch..., k] -> [batch..., m, k].
Tensor batch_first(const Tensor& x) {
  Axes axes;
  for (int axis = 1; axis + 1 < x.rank(); ++axis) axes.push_back(axis);
  axes.push_back(0);
  axes.push_back(x.rank() - 1);
  return imprint::permute(x, axes);
}

void fused_matmul(OpContext& context) {
  Tensor a = context.tensor(0), b = context.tensor(1);
  if (context.int_attribute("transBatchA", 0) != 0 && a.rank() >= 3) a = batch_first(a);
  if (context.int_attribute("transBatchB", 0) != 0 && b.rank() >= 3) b = batch_first(b);
  if (context.int_attribute("transA", 0) != 0 && a.rank() >= 2) a = imprint::transpose(a);
  if (context.int_attribute("transB", 0) != 0 && b.rank() >= 2) b = imprint::transpose(b);
  context.set(0, imprint::matmul(a, b) * context.float_attribute("alpha", 1));
}

Tensor biased(OpContext& context) {
  const Tensor x = context.tensor(0);
  return context.has(1) ? x + context.tensor(1) : x;
}
void gelu_ms(OpContext& context) { context.set(0, imprint::gelu(biased(context))); }
void fast_gelu_ms(OpContext& context) { context.set(0, imprint::gelu_tanh(biased(context))); }
void quick_gelu_ms(OpContext& context) {
  const Tensor x = context.tensor(0);
  context.set(0, x * imprint::sigmoid(x * context.float_attribute("alpha", 1.702)));
}

// (x + skip + bias) normalised, times gamma, plus beta. simple: by the root of the mean square.
void skip_norm(OpContext& context, bool simple) {
  const int bias = simple ? 3 : 4;
  Tensor x = context.tensor(0) + context.tensor(1);
  if (context.has(bias)) x = x + context.tensor(bias);
  if (!context.require(x.rank() >= 1, "a scalar has no axis to normalise")) return;
  const double epsilon = context.float_attribute("epsilon", simple ? 1e-6 : 1e-12);
  Tensor out = simple ? x * imprint::rsqrt(imprint::mean(imprint::square(x), {-1}, true) + epsilon)
                      : normalized(x, {x.rank() - 1}, epsilon);
  out = out * context.tensor(2);
  if (!simple && context.has(3)) out = out + context.tensor(3);
  context.set(0, out);
  context.set(3, x);
}
void skip_layer_norm_ms(OpContext& context) { skip_norm(context, false); }
void skip_simple_norm_ms(OpContext& context) { skip_norm(context, true); }

constexpr std::array kAttentionOps{
    OpHandler{"Attention", attention},
    OpHandler{"RotaryEmbedding", rotary_embedding},
    OpHandler{"com.microsoft.Attention", attention_ms},
    OpHandler{"com.microsoft.BiasGelu", gelu_ms},
    OpHandler{"com.microsoft.DecoderMaskedMultiHeadAttention", decoder_attention_ms},
    OpHandler{"com.microsoft.FastGelu", fast_gelu_ms},
    OpHandler{"com.microsoft.FusedMatMul", fused_matmul},
    OpHandler{"com.microsoft.Gelu", gelu_ms},
    OpHandler{"com.microsoft.MultiHeadAttention", multi_head_attention_ms},
    OpHandler{"com.microsoft.QAttention", quantised_attention_ms},
    OpHandler{"com.microsoft.QuickGelu", quick_gelu_ms},
    OpHandler{"com.microsoft.RotaryEmbedding", rotary_embedding_ms},
    OpHandler{"com.microsoft.SkipLayerNormalization", skip_layer_norm_ms},
    OpHandler{"com.microsoft.SkipSimplifiedLayerNormalization", skip_simple_norm_ms},
    OpHandler{"com.microsoft.TransposeMatMul", fused_matmul},
};

}  // namespace

std::span<const OpHandler> attention_ops() { return kAttentionOps; }

}  // namespace imprint::onnx
