#include "plugin/agent/spec/network.h"

#include <numbers>

namespace imprint::agent {
namespace {

nn::Activation activation_of(Activation activation) {
  switch (activation) {
    case Activation::relu:
      return nn::Activation::relu;
    case Activation::tanh:
      return nn::Activation::tanh;
    case Activation::silu:
      return nn::Activation::silu;
    case Activation::elu:
      return nn::Activation::elu;
    case Activation::gelu:
      return nn::Activation::gelu;
  }
  return nn::Activation::relu;
}

constexpr float kFirstLogDeviation = -0.5f;  // actions of -1 to 1, seldom beyond

// Brain p draws from seed + p alone, so that its first weights do not depend on the other brains.
Variable grouped(const BrainSpec& spec, const nn::Initialisation& initialisation, const std::string& network,
                 const std::string& name, std::int64_t rows, std::int64_t in, std::int64_t out) {
  std::vector<float> values;
  values.reserve(static_cast<std::size_t>(spec.brain_count * rows * out));
  for (std::uint32_t p = 0; p < spec.brain_count; ++p) {
    const std::vector<float> own = nn::initial_values(
        initialisation, "network." + name,
        {.rows = rows, .columns = out, .fan_in = in, .fan_out = out, .seed = spec.seed + p});
    values.insert(values.end(), own.begin(), own.end());
  }
  return Variable(network + "." + name, {spec.brain_count, rows, out}, values);
}

}  // namespace

Result<Network> Network::create(const BrainSpec& spec, const std::string& name, double head_gain) {
  Network network(spec, name);
  const std::vector<std::uint32_t> sizes = spec.layer_sizes();
  for (std::size_t i = 0; i + 1 < sizes.size(); ++i) {
    const std::string layer = std::to_string(network.layers_.size());
    nn::Initialisation weights, biases;
    if (spec.learner == LearnerKind::ppo) {
      weights = {nn::Scheme::orthogonal, i + 2 < sizes.size() ? std::numbers::sqrt2 : head_gain};
      biases = {nn::Scheme::zeros};
    }
    const Variable weight = grouped(spec, weights, name, layer + ".weight", sizes[i], sizes[i], sizes[i + 1]);
    const Variable bias = grouped(spec, biases, name, layer + ".bias", 1, sizes[i], sizes[i + 1]);
    for (const Variable& made : {weight, bias})
      if (!made.ok()) return made.value().error();
    nn::Parameters parameters;
    parameters.add("weight", weight);
    parameters.add("bias", bias);
    network.layers_.layer(
        [weight, bias](const Tensor& x) { return matmul(x, weight.value()) + bias.value(); }, parameters);
    if (i + 2 < sizes.size()) network.layers_.activation(activation_of(spec.activation));
  }
  if (spec.learner == LearnerKind::ppo && spec.action.continuous_count > 0) {
    const std::size_t count = std::size_t{spec.brain_count} * spec.action.continuous_count;
    network.log_deviation_ =
        Variable(name + "." + kLogDeviationName, {spec.brain_count, 1, spec.action.continuous_count},
                 std::vector<float>(count, kFirstLogDeviation));
    if (!network.log_deviation_.ok()) return network.log_deviation_.value().error();
  }
  if (spec.learner == LearnerKind::dqn && spec.follow_changes)
    network.unrest_ = Variable::zeros(name + "." + kUnrestName, {spec.brain_count});
  return network;
}

Tensor Network::scaled(const Tensor& observations) const {
  if (spec_.observation.scale.empty()) return observations;
  return observations * Tensor::from(std::span(spec_.observation.scale), {spec_.observation.count});
}

Tensor Network::heads(const Tensor& observations) const { return heads_of_scaled(scaled(observations)); }

Tensor Network::heads_of_scaled(const Tensor& observations) const {
  return reshape(layers_(observations),
                 {spec_.brain_count, observations.extent(1), spec_.goal_count, spec_.head_count()});
}

Tensor Network::of_goal(const Tensor& heads, const Tensor& goals) {
  if (heads.extent(2) == 1) return reshape(heads, {heads.extent(0), heads.extent(1), heads.extent(3)});
  return sum(heads * unsqueeze(one_hot(goals, heads.extent(2)), -1), {2});
}

std::vector<StateVariable> Network::state() const {
  std::vector<StateVariable> state;
  add_state(state, "network", parameters());
  if (log_deviation_.ok()) state.push_back({kLogDeviationName, log_deviation_});
  if (unrest_.ok()) state.push_back({kUnrestName, unrest_});
  return state;
}

void add_state(std::vector<StateVariable>& state, const std::string& prefix,
               const nn::Parameters& parameters) {
  for (const nn::Parameter& parameter : parameters)
    state.push_back({prefix + "." + parameter.name, parameter.variable});
}

}  // namespace imprint::agent
