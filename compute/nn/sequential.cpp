#include "compute/nn/sequential.h"

#include "compute/base/text.h"

namespace imprint::nn {

Sequential& Sequential::linear(std::int64_t in, std::int64_t out, const LinearOptions& options) {
  const Linear made(next_name(), in, out, options);
  return layer(made, made.parameters());
}

Sequential& Sequential::layer_norm(std::int64_t extent, const LayerNormOptions& options) {
  const LayerNorm made(next_name(), extent, options);
  return layer(made, made.parameters());
}

Sequential& Sequential::activation(Activation activation) {
  return layer([activation](const Tensor& x) { return activate(x, activation); });
}

Sequential& Sequential::layer(std::function<Tensor(const Tensor&)> forward, const Parameters& parameters) {
  parameters_.add(text(layers_.size()), parameters);
  layers_.push_back(std::move(forward));
  return *this;
}

Tensor Sequential::operator()(const Tensor& x) const {
  Tensor out = x;
  for (const auto& layer : layers_) out = layer(out);
  return out;
}

std::string Sequential::next_name() const { return text(name_, ".", layers_.size()); }

Sequential mlp(const std::string& name, std::span<const std::int64_t> extents, const MlpOptions& options) {
  Sequential network(name);
  for (std::size_t i = 0; i + 1 < extents.size(); ++i) {
    const bool is_last = i + 2 == extents.size();
    network.linear(extents[i], extents[i + 1],
                   {.weight_values = is_last ? options.output_values : options.hidden_values,
                    .bias_values = options.bias_values,
                    .groups = options.groups,
                    .seed = options.seed});
    if (is_last) break;
    if (options.layer_norm) network.layer_norm(extents[i + 1], {.groups = options.groups});
    network.activation(options.activation);
  }
  return network;
}

Sequential mlp(const std::string& name, std::initializer_list<std::int64_t> extents,
               const MlpOptions& options) {
  return mlp(name, std::span<const std::int64_t>(extents.begin(), extents.size()), options);
}

}  // namespace imprint::nn
