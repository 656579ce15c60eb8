#include "compute/nn/modules/sequential.h"

#include <algorithm>

#include "compute/base/columns.h"
#include "compute/base/text.h"
#include "compute/graph/gradients/checkpoint.h"
#include "compute/nn/dtype_policy.h"

namespace imprint::nn {

namespace {

// Updates of the layers' state in the piece, such as moving averages, are results of it too.
Tensor recomputed(const std::function<Tensor(const Tensor&)>& piece, const Tensor& x, Pass& pass) {
  const std::size_t before = pass.updates().size();
  const auto f = [&](std::span<const Tensor> in) {
    std::vector<Tensor> results{piece(in[0])};
    for (std::size_t i = before; i < pass.updates().size(); ++i) results.push_back(pass.updates()[i].value);
    return results;
  };
  const std::vector<Tensor> results = checkpoint(f, std::span(&x, 1));
  for (std::size_t i = before; i < pass.updates().size() && results.size() > i - before + 1; ++i)
    pass.updates()[i].value = results[i - before + 1];
  return results[0];
}

// "float32, bfloat16": the types of a layer's parameters.
std::string types_in(const Parameters& parameters, const DtypePolicy& policy, DType ParameterTypes::*which) {
  std::vector<std::string> names;
  for (const Parameter& parameter : parameters) {
    const std::string name(dtype_name(policy.types_of(parameter.variable).*which));
    if (std::ranges::find(names, name) == names.end()) names.push_back(name);
  }
  std::string joined;
  for (const std::string& name : names) joined += (joined.empty() ? "" : ", ") + name;
  return joined;
}

}  // namespace

Sequential& Sequential::linear(std::int64_t in, std::int64_t out, const LinearOptions& options) {
  const Linear made(next_name(), in, out, options);
  return add(made);
}

Sequential& Sequential::conv2d(std::int64_t in, std::int64_t out, const PerAxis& kernel,
                               const ConvOptions& options) {
  return add<Conv2d>(in, out, kernel, options);
}

Sequential& Sequential::batch_norm(std::int64_t channels, const BatchNormOptions& options) {
  return add<BatchNorm>(channels, options);
}

Sequential& Sequential::layer_norm(std::int64_t extent, const LayerNormOptions& options) {
  const LayerNorm made(next_name(), extent, options);
  return add(made);
}

Sequential& Sequential::activation(Activation activation) { return add(ActivationLayer(activation)); }

Sequential& Sequential::layer(std::function<Tensor(const Tensor&)> forward, const Parameters& parameters) {
  return add(Module(std::move(forward), parameters));
}

Sequential& Sequential::add(Module module) {
  parameters_.add(text(layers_.size()), module.parameters());
  buffers_.add(text(layers_.size()), module.buffers());
  layers_.push_back(std::move(module));
  return *this;
}

Tensor Sequential::operator()(const Tensor& x) const {
  Pass evaluation;
  return (*this)(x, evaluation);
}

Sequential& Sequential::recompute_every(std::int64_t layers) {
  recomputed_ = static_cast<std::size_t>(std::max<std::int64_t>(layers, 0));
  return *this;
}

Tensor Sequential::operator()(const Tensor& x, Pass& pass) const {
  Tensor out = x;
  for (std::size_t first = 0; first < layers_.size();) {
    const std::size_t end = recomputed_ == 0 ? layers_.size() : std::min(layers_.size(), first + recomputed_);
    const auto piece = [&](const Tensor& value) {
      Tensor next = value;
      for (std::size_t i = first; i < end; ++i) next = layers_[i](next, pass);
      return next;
    };
    out = recomputed_ == 0 ? piece(out) : recomputed(piece, out, pass);
    first = end;
  }
  return out;
}

std::string Sequential::summary(const Shape& input_shape) const { return table(input_shape, nullptr); }

std::string Sequential::summary(const Shape& input_shape, const DtypePolicy& policy) const {
  return table(input_shape, &policy);
}

std::string Sequential::table(const Shape& input_shape, const DtypePolicy* policy) const {
  std::vector<std::vector<std::string>> rows{{"layer", "kind", "output", "parameters"}};
  Tensor out = input("x", input_shape);
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    out = layers_[i](out);
    rows.push_back({text(name_, ".", i), std::string(layers_[i].kind()),
                    out.ok() ? out.shape().text() : out.error().message,
                    text(layers_[i].parameters().element_count())});
    if (!out.ok()) break;
  }
  rows.push_back({"total", "", "", text(parameters_.element_count())});
  if (policy == nullptr) return columns(rows);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const bool is_layer = i > 0 && i + 1 < rows.size();
    const Parameters own = is_layer ? layers_[i - 1].parameters() : Parameters();
    rows[i].insert(rows[i].begin() + 3,
                   {i == 0 ? "storage" : types_in(own, *policy, &ParameterTypes::storage),
                    i == 0 ? "compute" : types_in(own, *policy, &ParameterTypes::compute)});
  }
  return columns(rows);
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
