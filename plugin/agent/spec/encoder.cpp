#include "plugin/agent/spec/encoder.h"

#include <cmath>
#include <numbers>

#include "compute/base/text.h"
#include "compute/nn/initialise.h"
#include "compute/tensor/composites/images.h"
#include "plugin/agent/spec/learner_traits.h"
#include "plugin/agent/spec/recurrent_cell.h"

namespace imprint::agent {
namespace {

constexpr PictureLayer kLargeLayers[] = {{32, 8, 4, 0}, {64, 4, 2, 0}, {64, 3, 1, 0}};
constexpr PictureLayer kSmallLayers[] = {{16, 3, 2, 1}, {32, 3, 2, 1}};

// Places along an axis after all layers.
std::int64_t places_after(std::span<const PictureLayer> layers, std::int64_t places) {
  for (const PictureLayer& layer : layers)
    places = (places + 2 * layer.padding - layer.kernel) / layer.stride + 1;
  return places;
}

void add_picture_parts(const StreamSpec& stream, std::uint32_t stack, const std::string& name,
                       std::vector<EncoderPart>& parts) {
  const std::span<const PictureLayer> layers = picture_layers(stream);
  std::int64_t in = std::int64_t{stream.channels} * stack;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const std::int64_t inputs = in * layers[i].kernel * layers[i].kernel;
    parts.push_back({text(name, "conv", i, ".weight"), layers[i].channels, inputs, inputs});
    parts.push_back({text(name, "conv", i, ".bias"), 1, layers[i].channels, inputs});
    in = layers[i].channels;
  }
  const std::int64_t flat = in * places_after(layers, stream.height) * places_after(layers, stream.width);
  parts.push_back({name + "linear.weight", flat, stream.outputs(), flat});
  parts.push_back({name + "linear.bias", 1, stream.outputs(), flat});
}

void add_entity_parts(const StreamSpec& stream, const std::string& name, std::vector<EncoderPart>& parts) {
  const std::int64_t size = stream.outputs();
  parts.push_back({name + "embed.weight", stream.features, size, stream.features});
  parts.push_back({name + "embed.bias", 1, size, stream.features});
  for (const char* part : {"query", "key", "value", "out"}) parts.push_back({name + part, size, size, size});
  parts.push_back({name + "pool", size, attention_heads(size), size});
}

}  // namespace

bool is_large_picture(const StreamSpec& stream) {
  constexpr std::uint32_t kLarge = 36;
  return stream.height >= kLarge && stream.width >= kLarge;
}

std::span<const PictureLayer> picture_layers(const StreamSpec& stream) {
  if (is_large_picture(stream)) return kLargeLayers;
  return kSmallLayers;
}

std::int64_t attention_heads(std::int64_t size) { return size % 4 == 0 ? 4 : 1; }

std::vector<EncoderPart> encoder_parts(const ObservationSpec& observation) {
  std::vector<EncoderPart> parts;
  for (std::size_t i = 0; i < observation.streams.size(); ++i) {
    const StreamSpec& stream = observation.streams[i];
    const std::string name = text("stream", i, ".");
    if (stream.kind == StreamKind::picture) add_picture_parts(stream, observation.stack, name, parts);
    if (stream.kind == StreamKind::entities) add_entity_parts(stream, name, parts);
    if (stream.kind == StreamKind::ids)
      parts.push_back({name + "table", stream.vocabulary, stream.outputs(), 1});
  }
  return parts;
}

Result<Encoder> Encoder::create(const BrainSpec& spec, const std::string& network) {
  Encoder made(spec.observation);
  for (const EncoderPart& part : encoder_parts(spec.observation)) {
    nn::Initialisation values;
    if (collects_rollouts(spec))
      values = part.rows == 1 ? nn::Initialisation{nn::Scheme::zeros}
                              : nn::Initialisation{nn::Scheme::orthogonal, std::numbers::sqrt2};
    const Variable variable =
        grouped_parameter(spec, values, network, part.name, part.rows, part.inputs, part.columns);
    if (!variable.ok()) return variable.value().error();
    made.parameters_.add(part.name, variable);
  }
  return made;
}

Tensor Encoder::value(std::size_t stream, const char* part) const {
  return parameters_.find(text("stream", stream, ".", part))->value();
}

Tensor Encoder::operator()(const Tensor& observations) const {
  const std::int64_t brains = observations.extent(0), rows = observations.extent(1);
  const Tensor all = reshape(observations, {brains, rows, observation_.stack, observation_.count});
  std::vector<Tensor> encoded;
  std::int64_t first = 0;
  for (std::size_t i = 0; i < observation_.streams.size(); ++i) {
    const StreamSpec& stream = observation_.streams[i];
    const auto count = static_cast<std::int64_t>(stream.numbers());
    const Tensor seen = narrow(all, 3, first, count);
    first += count;
    switch (stream.kind) {
      case StreamKind::vector:
        encoded.push_back(reshape(seen, {brains, rows, observation_.stack * count}));
        break;
      case StreamKind::picture:
        encoded.push_back(picture(i, seen));
        break;
      case StreamKind::entities:
        encoded.push_back(entities(i, seen));
        break;
      case StreamKind::ids:
        encoded.push_back(ids(i, seen));
        break;
    }
  }
  return encoded.size() == 1 ? encoded[0] : concat(encoded, 2);
}

// The brains of a kennel are groups of channels.
Tensor Encoder::picture(std::size_t stream, const Tensor& seen) const {
  const StreamSpec& spec = observation_.streams[stream];
  const std::int64_t brains = seen.extent(0), rows = seen.extent(1);
  std::int64_t in = std::int64_t{spec.channels} * observation_.stack;
  Tensor x = reshape(transpose(reshape(seen, {brains, rows, in, spec.height, spec.width}), 0, 1),
                     {rows, brains * in, spec.height, spec.width});
  std::size_t i = 0;
  for (const PictureLayer& layer : picture_layers(spec)) {
    const std::string name = text("conv", i++);
    const Tensor weight = reshape(value(stream, (name + ".weight").c_str()),
                                  {brains * layer.channels, in, layer.kernel, layer.kernel}),
                 bias = reshape(value(stream, (name + ".bias").c_str()), {brains * layer.channels});
    x = relu(
        convolution(x, weight, bias, {.stride = layer.stride, .padding = layer.padding, .groups = brains}));
    in = layer.channels;
  }
  const std::int64_t flat = in * x.extent(2) * x.extent(3);
  x = transpose(reshape(x, {rows, brains, flat}), 0, 1);
  return relu(matmul(x, value(stream, "linear.weight")) + value(stream, "linear.bias"));
}

Tensor Encoder::entities(std::size_t stream, const Tensor& seen) const {
  const StreamSpec& spec = observation_.streams[stream];
  const std::int64_t brains = seen.extent(0), rows = seen.extent(1), most = spec.count, size = spec.outputs(),
                     heads = attention_heads(size), extent = size / heads;
  const Tensor numbers = reshape(seen, {brains, rows, 1 + most * spec.features});
  const Tensor there =
      less(cast(iota({brains, rows, most}, 2), DType::float32) + 0.5f, narrow(numbers, 2, 0, 1));
  const Tensor given =
      reshape(narrow(numbers, 2, 1, most * spec.features), {brains, rows * most, spec.features});
  const Tensor embedded = relu(matmul(given, value(stream, "embed.weight")) + value(stream, "embed.bias"));
  const auto by_head = [&](const char* part) {  // [P, N, heads, most, extent]
    return permute(reshape(matmul(embedded, value(stream, part)), {brains, rows, most, heads, extent}),
                   {0, 1, 3, 2, 4});
  };
  const auto only_there = [&](const Tensor& scores, const Tensor& seen_ones) {
    return where(expand(seen_ones, scores.shape()), scores, Tensor(kUnseenEntity));
  };
  const Tensor scores = matmul(by_head("query"), transpose(by_head("key"))) *
                        static_cast<float>(1 / std::sqrt(static_cast<double>(extent)));
  const Tensor weights = softmax(only_there(scores, reshape(there, {brains, rows, 1, 1, most})), -1);
  const Tensor told =
      reshape(permute(matmul(weights, by_head("value")), {0, 1, 3, 2, 4}), {brains, rows * most, size});
  const Tensor related = embedded + matmul(told, value(stream, "out"));
  const Tensor rated = reshape(matmul(related, value(stream, "pool")), {brains, rows, most, heads});
  const Tensor shares = softmax(only_there(rated, reshape(there, {brains, rows, most, 1})), 2);
  const Tensor pooled =
      sum(unsqueeze(shares, 4) * reshape(related, {brains, rows, most, heads, extent}), {2});
  const Tensor any_there = cast(greater(narrow(numbers, 2, 0, 1), 0.5f), DType::float32);
  return reshape(pooled, {brains, rows, size}) * any_there;
}

Tensor Encoder::ids(std::size_t stream, const Tensor& seen) const {
  const StreamSpec& spec = observation_.streams[stream];
  const std::int64_t brains = seen.extent(0), rows = seen.extent(1), count = seen.extent(2) * seen.extent(3);
  const auto last = static_cast<double>(spec.vocabulary - 1);
  const Tensor wanted = cast(clamp(round(reshape(seen, {brains, rows, count})), 0, last), DType::int32);
  const Tensor table =
      reshape(value(stream, "table"), {brains * std::int64_t{spec.vocabulary}, std::int64_t{spec.outputs()}});
  const Tensor own = wanted + iota({brains, rows, count}, 0) * static_cast<int>(spec.vocabulary);
  return reshape(take(table, 0, own), {brains, rows, count * spec.outputs()});
}

}  // namespace imprint::agent
