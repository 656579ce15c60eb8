// Operators of ONNX Runtime's exporters (com.microsoft) for language models, and fused products.

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "compute/base/quote.h"
#include "compute/base/text.h"
#include "compute/model/onnx/op.h"
#include "compute/model/onnx/ops/attention_products.h"
#include "compute/tensor/composites/composites.h"

namespace imprint::onnx {
namespace {

constexpr double kHidden = static_cast<double>(std::numeric_limits<float>::lowest());

// ---- attention with a cache ----

struct Grouped {
  Tensor query, key, value;  // [batch, heads, steps, extent]
  Tensor before;             // steps of each sequence in the cache, int32 [batch]
  tensor::ShapeAxis total;   // steps of the cache afterwards

  // The shape with the cache's steps along the last axis, or along the one before it.
  Shape keys_of(Shape shape) const {
    shape.append(total.extent);
    shape.set_name(shape.rank() - 1, total.name);
    return shape;
  }
  SymbolicInt steps() const { return SymbolicInt::of(query.shape(), 2); }
};

// [1, ..., 1, the axis of x].
Shape alone(const Tensor& x, int axis, int rank) {
  Shape shape;
  while (shape.rank() + 1 < rank) shape.append(1);
  shape.append(x.shape(), axis);
  return shape;
}

// The cache with the new steps after those of before.
Tensor extended(const Grouped& in, const Tensor& past, const Tensor& fresh) {
  Shape shape;
  for (const int axis : {0, 1}) shape.append(fresh.shape(), axis);
  shape = in.keys_of(shape);
  shape.append(fresh.shape(), 3);
  const Tensor from = imprint::iota(shape, 2) - imprint::reshape(in.before, {shape[0], 1, 1, 1});
  const Tensor inside = imprint::logical_and(from >= 0, imprint::less(from, in.steps().tensor()));
  const Tensor added = imprint::gather(fresh, 2, from);
  if (!past.ok() || past.extent(2) == 0) return imprint::where(inside, added, 0.0f);
  if (in.total.name)  // steps beyond the past are 0
    return imprint::where(inside, added, imprint::take(past, 2, imprint::iota(in.keys_of({}), 0)));
  const std::array<std::pair<std::int64_t, std::int64_t>, 4> pads{
      {{0, 0}, {0, 0}, {0, in.total.extent - past.extent(2)}, {0, 0}}};
  return imprint::where(inside, added, imprint::pad(past, pads));
}

// Turned by the caches of cosines and sines [positions, half], at the positions [batch, steps].
Tensor rotated(const Tensor& x, const Tensor& at, const Tensor& cosines, const Tensor& sines,
               bool interleaved) {
  const std::int64_t steps = x.extent(2), half = cosines.extent(1), rest = x.extent(3) - 2 * half;
  const Tensor cosine = imprint::unsqueeze(imprint::take(cosines, 0, at), 1),
               sine = imprint::unsqueeze(imprint::take(sines, 0, at), 1);
  const auto part = [&](std::int64_t which) {
    return interleaved ? imprint::slice(x, 3, which, 2 * half, 2) : imprint::narrow(x, 3, which * half, half);
  };
  const Tensor first = part(0) * cosine - part(1) * sine, second = part(0) * sine + part(1) * cosine;
  const Tensor turned = interleaved ? imprint::reshape(imprint::stack({first, second}, 4),
                                                       {x.extent(0), x.extent(1), steps, 2 * half})
                                    : imprint::concat({first, second}, 3);
  return rest == 0 ? turned : imprint::concat({turned, imprint::narrow(x, 3, 2 * half, rest)}, 3);
}

// Queries, keys and values in heads, from three inputs or from one that has all.
std::optional<Grouped> grouped_inputs(OpContext& context, std::int64_t heads, std::int64_t key_heads) {
  Tensor query = context.tensor(0), key, value;
  if (!context.require(
          heads > 0 && key_heads > 0 && heads % key_heads == 0 && query.rank() == 3,
          text("query ", query.shape().text(), " does not fit ", heads, " and ", key_heads, " heads")))
    return std::nullopt;
  if (context.has(1) && context.has(2)) {
    key = context.tensor(1);
    value = context.tensor(2);
  } else {
    const std::int64_t all = heads + 2 * key_heads, extent = query.extent(2) / all;
    if (!context.require(query.extent(2) == all * extent, "packed queries do not fit the heads"))
      return std::nullopt;
    key = imprint::narrow(query, 2, heads * extent, key_heads * extent);
    value = imprint::narrow(query, 2, (heads + key_heads) * extent, key_heads * extent);
    query = imprint::narrow(query, 2, 0, heads * extent);
  }
  const std::int64_t extent = query.extent(2) / heads;
  const bool fits = query.extent(2) == heads * extent && key.rank() == 3 && key.shape() == value.shape() &&
                    key.extent(2) == key_heads * extent && key.extent(0) == query.extent(0) &&
                    key.extent(1) == query.extent(1);
  if (!context.require(fits, text("queries ", query.shape().text(), ", keys ", key.shape().text(),
                                  " and values ", value.shape().text(), " do not fit")))
    return std::nullopt;
  return Grouped{split_heads(query, heads), split_heads(key, key_heads), split_heads(value, key_heads),
                 Tensor(), 0};
}

// The steps of the cache afterwards. Nothing after a failure.
std::optional<SymbolicInt> total_steps(OpContext& context, const SymbolicInt& steps,
                                       const SymbolicInt& room) {
  const auto given = context.has(6) ? context.value(6).as_symbols() : std::nullopt;
  const auto total = given && given->size() == 1 ? std::optional((*given)[0]) : added(room, steps, 1);
  const auto more = total ? added(*total, steps, -1) : std::nullopt;
  if (!context.require(more && more->least() >= 0 && total->most() <= (1 << 24),
                       text("total_sequence_length: found ", total ? total->text() : "too many", " for ",
                            steps.text(), " steps")))
    return std::nullopt;
  const auto over_room = added(*total, room, -1);
  if (over_room && over_room->least() >= 0) return total;
  if (over_room && over_room->most() <= 0) return room;
  context.unsupported(text("total_sequence_length: found ", total->text(), " for a past of ", room.text(),
                           ", expected one that is never the smaller. Give these extents numbers."));
  return std::nullopt;
}

// How many steps the cache has before and after. seqlens_k: the last position of each sequence.
bool cache_steps(OpContext& context, Grouped& in, const Tensor& past) {
  const std::int64_t batch = in.query.extent(0);
  const SymbolicInt steps = in.steps(), room = past.ok() ? SymbolicInt::of(past.shape(), 2) : SymbolicInt(0);
  const Tensor last = context.tensor(5);
  if (!context.require(last.shape().element_count() == batch && last.dtype() == DType::int32,
                       text("seqlens_k: found ", last.shape().text(), ", expected one per sequence")))
    return false;
  const auto total = total_steps(context, steps, room);
  const auto axis = total ? total->axis() : std::nullopt;
  if (!axis) return context.require(context.failure().has_value(), "the cache has too many steps");
  in.total = *axis;
  // A first run may have fewer steps than it is given, at the end of which others follow.
  const Tensor before = imprint::reshape(last, {batch}) + 1 - steps.tensor();
  const bool is_first = room == SymbolicInt(0) || (context.has(6) && *total == steps);
  in.before = is_first ? imprint::zeros(before.shape(), DType::int32) : imprint::maximum(before, 0);
  return true;
}

// 0 where a query sees a key, else a large negative number: [batch, 1, steps, keys].
Tensor seen_bias(const Grouped& in, std::int64_t window) {
  const Shape shape = in.keys_of(alone(in.query, 2, 3));
  const Tensor at = imprint::iota(shape, 2) + imprint::reshape(in.before, {in.query.extent(0), 1, 1, 1}),
               key = imprint::iota(shape, 3);
  Tensor seen = key <= at;
  if (window > 0)
    seen = imprint::logical_and(seen, key > at - static_cast<int>(std::min<std::int64_t>(window, 1 << 24)));
  return imprint::where(seen, Tensor(0.0f), Tensor(kHidden));
}

// Queries and keys turned by their positions. False after a failure.
bool turn_grouped(OpContext& context, Grouped& in) {
  const Tensor cosines = context.tensor(7), sines = context.tensor(8);
  if (!context.require(cosines.rank() == 2 && cosines.shape() == sines.shape() &&
                           2 * cosines.extent(1) <= in.query.extent(3),
                       text("cosines ", cosines.shape().text(), " do not fit the heads")))
    return false;
  Tensor at = imprint::reshape(in.before, {in.query.extent(0), 1}) + imprint::iota(alone(in.query, 2, 2), 1);
  if (context.has(9)) {
    const Shape shape = at.shape();
    at = context.tensor(9);
    if (!context.require(at.shape() == shape,
                         text("position_ids: found ", at.shape().text(), ", expected ", shape.text())))
      return false;
  }
  const bool interleaved = context.int_attribute("rotary_interleaved", 0) != 0;
  in.query = rotated(in.query, at, cosines, sines, interleaved);
  in.key = rotated(in.key, at, cosines, sines, interleaved);
  return true;
}

// Softmax over the keys and one more score per head, whose weight goes nowhere: input 11, or 0.
Tensor grouped_softmax(OpContext& context, const Tensor& scores, std::int64_t heads) {
  Tensor weights = imprint::softmax(scores, -1);
  if (!context.has(11) && context.int_attribute("smooth_softmax", 0) <= 0) return weights;
  Tensor left = imprint::logsumexp(scores, {-1}, true);
  if (context.has(11)) {
    if (!context.require(context.shape(11) == Shape{heads},
                         text("head_sink: found ", context.shape(11).text())))
      return weights;
    left = left - imprint::reshape(context.tensor(11), {1, heads, 1, 1});
  }
  return weights * imprint::sigmoid(left);
}

void grouped_query_attention(OpContext& context) {
  const std::int64_t heads = context.int_attribute("num_heads", 0),
                     key_heads = context.int_attribute("kv_num_heads", 0);
  auto in = grouped_inputs(context, heads, key_heads);
  if (!in || !context.may_make(96)) return;
  for (int input = 12; input < context.input_count(); ++input)
    if (context.has(input)) return context.unsupported(text("input ", input));
  const Tensor past_key = context.has(3) ? context.tensor(3) : Tensor(),
               past_value = context.has(4) ? context.tensor(4) : Tensor();
  const auto fits = [&](const Tensor& past) {
    return !past.ok() || (past.rank() == 4 && past.extent(0) == in->key.extent(0) &&
                          past.extent(1) == key_heads && past.extent(3) == in->key.extent(3));
  };
  if (!context.require(past_key.ok() == past_value.ok() && fits(past_key) && fits(past_value) &&
                           (!past_key.ok() || past_key.shape() == past_value.shape()),
                       "the past does not fit keys and values") ||
      !cache_steps(context, *in, past_key))
    return;
  if (context.int_attribute("do_rotary", 0) != 0 && !turn_grouped(context, *in)) return;
  const Tensor key = extended(*in, past_key, in->key), value = extended(*in, past_value, in->value);
  const std::int64_t each = heads / key_heads;
  const double asked = context.float_attribute("scale", 0), softcap = context.float_attribute("softcap", 0);
  const double scale = asked != 0 ? asked : 1 / std::sqrt(static_cast<double>(in->query.extent(3)));
  const auto shared = [&](const Tensor& x) { return each > 1 ? imprint::repeat_interleave(x, 1, each) : x; };
  Tensor scores = imprint::matmul(in->query, imprint::transpose(shared(key))) * scale;
  if (softcap > 0) scores = imprint::tanh(scores / softcap) * softcap;
  if (context.has(10)) scores = scores + context.tensor(10);
  scores = imprint::maximum(scores + seen_bias(*in, context.int_attribute("local_window_size", -1)),
                            Tensor(kHidden));
  scores = grouped_softmax(context, scores, heads);
  const Tensor out = imprint::permute(imprint::matmul(scores, shared(value)), {0, 2, 1, 3});
  context.set(0, imprint::reshape(out, {out.extent(0), out.extent(1), heads * out.extent(3)}));
  context.set(1, key);
  context.set(2, value);
}

// ---- fused products ----

Tensor activated(OpContext& context, const Tensor& x) {
  const std::string name = context.string_attribute("activation", "");
  const std::vector<float> numbers = context.floats_attribute("activation_params");
  const auto number = [&](std::size_t i, float otherwise) {
    return static_cast<double>(i < numbers.size() ? numbers[i] : otherwise);
  };
  if (name.empty()) return x;
  if (name == "Relu") return imprint::relu(x);
  if (name == "Tanh") return imprint::tanh(x);
  if (name == "Sigmoid") return imprint::sigmoid(x);
  if (name == "LeakyRelu") return imprint::leaky_relu(x, number(0, 0.01f));
  if (name == "HardSigmoid") return imprint::hard_sigmoid(x, number(0, 0.2f), number(1, 0.5f));
  if (name == "Clip") return imprint::clamp(x, number(0, -3.4e38f), number(1, 3.4e38f));
  context.unsupported("activation " + quote(name));
  return x;
}

void fused_conv(OpContext& context) {
  Tensor out =
      convolved(context, context.tensor(0), context.tensor(1), context.has(2) ? context.tensor(2) : Tensor());
  if (context.failure()) return;
  if (context.has(3)) out = out + context.tensor(3);
  context.set(0, activated(context, out));
}

void fused_gemm(OpContext& context) {
  Tensor a = context.tensor(0), b = context.tensor(1);
  if (!context.require(a.rank() == 2 && b.rank() == 2, "expected matrices")) return;
  if (context.int_attribute("transA", 0) != 0) a = imprint::transpose(a);
  if (context.int_attribute("transB", 0) != 0) b = imprint::transpose(b);
  Tensor out = imprint::matmul(a, b) * context.float_attribute("alpha", 1);
  if (context.has(2)) out = out + context.tensor(2) * context.float_attribute("beta", 1);
  context.set(0, activated(context, out));
}

// ---- embeddings ----

// Words, positions and kinds looked up, added and normalised.
void embed_layer_norm(OpContext& context) {
  const Tensor words = context.tensor(0);
  const Shape &table = context.shape(2), &places = context.shape(3);
  if (!context.require(
          words.rank() == 2 && table.rank() == 2 && places.rank() == 2 && places[0] >= words.extent(1),
          text("words ", words.shape().text(), " do not fit ", table.text())))
    return;
  Tensor x = imprint::take(context.tensor(2), 0, words);
  if (context.has(8))
    x = x + imprint::take(context.tensor(3), 0, context.tensor(8));
  else
    x = x + imprint::narrow(context.tensor(3), 0, 0, words.extent(1));
  if (context.has(1) && context.has(4)) x = x + imprint::take(context.tensor(4), 0, context.tensor(1));
  const Tensor normal = normalized(x, {2}, context.float_attribute("epsilon", 1e-12));
  context.set(0, normal * context.tensor(5) + context.tensor(6));
  if (context.has(7))
    context.set(1, imprint::sum(context.tensor(7), {1}), ElementType::int32);
  else
    context.set(1, imprint::zeros({words.extent(0)}, DType::int32), ElementType::int32);
  context.set(2, x);
}

constexpr std::array kMicrosoftOps{
    OpHandler{"com.microsoft.GroupQueryAttention", grouped_query_attention},
    OpHandler{"com.microsoft.FusedConv", fused_conv},
    OpHandler{"com.microsoft.FusedGemm", fused_gemm},
    OpHandler{"com.microsoft.EmbedLayerNormalization", embed_layer_norm},
};

}  // namespace

std::span<const OpHandler> microsoft_ops() { return kMicrosoftOps; }

}  // namespace imprint::onnx
