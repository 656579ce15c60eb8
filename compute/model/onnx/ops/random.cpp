// Random numbers. Each run of a program draws the same ones: from the node's seed, or from its name without
// one.

#include <algorithm>
#include <array>
#include <bit>

#include "compute/base/text.h"
#include "compute/model/onnx/op.h"
#include "compute/tensor/composites/composites.h"

namespace imprint::onnx {
namespace {

constexpr std::int64_t kMostSamples = 1 << 24;

// FNV-1a, so that nodes without a seed differ.
std::uint32_t stream_of(const Node& node) {
  std::uint32_t hash = 2166136261u;
  for (const std::string& name : node.outputs)
    for (const char letter : name) hash = (hash ^ static_cast<std::uint8_t>(letter)) * 16777619u;
  return hash & 0x7fffffffu;
}

Tensor generator_from(std::int32_t seed) {
  const std::array<std::int32_t, 4> words{seed, 0, 0, 0};
  return Tensor::from_ints(words, {4});
}
Tensor generator_of(OpContext& context) {
  return generator_from(std::bit_cast<std::int32_t>(static_cast<float>(context.float_attribute("seed", 0))));
}

// The shape of the attribute or of the first input, and the type of the result.
struct Wanted {
  Shape shape;
  ElementType type;
};
std::optional<Wanted> wanted(OpContext& context, bool like) {
  const ElementType same = like ? context.value(0).type() : ElementType::float32;
  const auto type = cast_target(context, context.int_attribute("dtype", static_cast<std::int64_t>(same)));
  const Shape shape = like ? context.shape(0) : context.checked(context.ints_attribute("shape"));
  if (!type || context.failure()) return std::nullopt;
  if (!is_float(*type)) {
    context.unsupported("random numbers of type " + element_type_name(*type));
    return std::nullopt;
  }
  return Wanted{shape, *type};
}

template <bool like>
void random_uniform_op(OpContext& context) {
  const auto out = wanted(context, like);
  if (!out) return;
  const double low = context.float_attribute("low", 0), high = context.float_attribute("high", 1);
  const Tensor unit = imprint::random_uniform(generator_of(context), out->shape, stream_of(context.node()));
  context.set(0, unit * (high - low) + low, out->type);
}

template <bool like>
void random_normal_op(OpContext& context) {
  const auto out = wanted(context, like);
  if (!out) return;
  const Tensor unit = imprint::random_normal(generator_of(context), out->shape, stream_of(context.node()));
  context.set(0, unit * context.float_attribute("scale", 1) + context.float_attribute("mean", 0), out->type);
}

void bernoulli(OpContext& context) {
  const Value odds = context.value(0);
  const auto type =
      cast_target(context, context.int_attribute("dtype", static_cast<std::int64_t>(odds.type())));
  if (!type || context.failure()) return;
  const Tensor hit =
      imprint::random_bernoulli(generator_of(context), odds.tensor(), stream_of(context.node()));
  context.set(0, imprint::cast(hit, run_time_dtype(*type)), *type);
}

// Logarithms of odds [batch, classes] -> classes [batch, samples].
void multinomial(OpContext& context) {
  const Tensor logs = context.tensor(0);
  const std::int64_t samples = context.int_attribute("sample_size", 1);
  const auto type = cast_target(context, context.int_attribute("dtype", 6));
  if (!type ||
      !context.require(logs.rank() == 2 && samples >= 1 && samples <= kMostSamples && is_integer(*type),
                       text("found odds ", logs.shape().text(), " and sample_size ", samples)))
    return;
  const Extents extents{logs.extent(0), samples, logs.extent(1)};
  context.checked(extents);
  if (context.failure()) return;
  context.set(0, imprint::random_multinomial(generator_of(context), logs, samples, stream_of(context.node())),
              *type);
}

constexpr std::array kRandomOps{
    OpHandler{"RandomUniform", random_uniform_op<false>},
    OpHandler{"RandomUniformLike", random_uniform_op<true>},
    OpHandler{"RandomNormal", random_normal_op<false>},
    OpHandler{"RandomNormalLike", random_normal_op<true>},
    OpHandler{"Bernoulli", bernoulli},
    OpHandler{"Multinomial", multinomial},
};

}  // namespace

std::span<const OpHandler> random_ops() { return kRandomOps; }

// Inverted dropout: what stays is scaled, so that the mean does not change.
void dropout_in_training(OpContext& context, double ratio) {
  const Value x = context.value(0);
  if (!context.require(ratio >= 0 && ratio < 1, text("ratio: found ", ratio, ", expected 0 to below 1")))
    return;
  const auto seed = static_cast<std::uint32_t>(context.int_attribute("seed", 0));
  const Tensor mask = ratio == 0
                          ? full(x.shape(), 1, DType::boolean)
                          : imprint::random_uniform(generator_from(std::bit_cast<std::int32_t>(seed)),
                                                    x.shape(), stream_of(context.node())) >= Tensor(ratio);
  context.set(0, imprint::where(mask, x.tensor() * (1 / (1 - ratio)), 0.0f), x.type());
  context.set(1, mask, ElementType::boolean);
}

}  // namespace imprint::onnx
