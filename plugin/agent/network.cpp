#include "plugin/agent/network.h"

#include <cmath>

#include "compute/base/philox.h"

namespace imprint::agent {
namespace {

Tensor activate(const Tensor& x, Activation activation) {
  switch (activation) {
    case Activation::relu: return relu(x);
    case Activation::tanh: return tanh(x);
    case Activation::silu: return silu(x);
    case Activation::elu: return elu(x);
    case Activation::gelu: return gelu(x);
  }
  return relu(x);
}

// Elements of brain p drawn from seed + p, so that a brain's beginning does not depend on its neighbours.
std::vector<float> draw(const BrainSpec& spec, std::uint32_t stream, std::uint32_t count, double bound) {
  std::vector<float> values;
  values.reserve(std::size_t{count} * spec.brain_count);
  for (std::uint32_t p = 0; p < spec.brain_count; ++p) {
    const std::uint64_t seed = spec.seed + p;
    for (std::uint32_t i = 0; i < count; ++i) {
      const double uniform = philox_uniform(i, stream, 0, static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32));
      values.push_back(static_cast<float>((2 * uniform - 1) * bound));
    }
  }
  return values;
}

}  // namespace

Result<Network> Network::create(const BrainSpec& spec) {
  Network network;
  network.spec_ = spec;
  const std::vector<std::uint32_t> sizes = spec.layer_sizes();
  for (std::uint32_t layer = 0; layer + 1 < sizes.size(); ++layer) {
    const std::uint32_t in = sizes[layer], out = sizes[layer + 1];
    const double bound = 1.0 / std::sqrt(static_cast<double>(in));
    const std::string name = "layers." + std::to_string(layer);
    network.parameters_.emplace_back(name + ".weight", Shape{spec.brain_count, in, out}, draw(spec, 2 * layer, in * out, bound));
    network.parameters_.emplace_back(name + ".bias", Shape{spec.brain_count, 1, out}, draw(spec, 2 * layer + 1, out, bound));
  }
  for (const Variable& parameter : network.parameters_)
    if (!parameter.ok()) return parameter.value().error();
  return network;
}

Tensor Network::heads(const Tensor& observations) const {
  Tensor x = observations;
  if (!spec_.observation.scale.empty()) x = x * Tensor::from(std::span(spec_.observation.scale), {spec_.observation.count});
  for (std::size_t i = 0; i < parameters_.size(); i += 2) {
    x = matmul(x, parameters_[i].value()) + parameters_[i + 1].value();
    if (i + 2 < parameters_.size()) x = activate(x, spec_.activation);
  }
  return reshape(x, {spec_.brain_count, observations.extent(1), spec_.goal_count, spec_.action.output_count()});
}

Tensor Network::of_goal(const Tensor& heads, const Tensor& goals) {
  if (heads.extent(2) == 1) return reshape(heads, {heads.extent(0), heads.extent(1), heads.extent(3)});
  return sum(heads * unsqueeze(one_hot(goals, heads.extent(2)), -1), {2});
}

std::vector<StateVariable> Network::state() const {
  std::vector<StateVariable> state;
  for (const Variable& parameter : parameters_) state.push_back({parameter.name(), parameter});
  return state;
}

}  // namespace imprint::agent
