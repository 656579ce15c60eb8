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

// The word to expect for a choice that nothing taught, where one in five is wrong: one choice is right.
float untaught_word(const BrainSpec& spec) {
  constexpr float kWrong = 0.2f;
  return (1 - 2 * kWrong) * (2 / static_cast<float>(spec.action.choice_count()) - 1);
}

}  // namespace

Result<> Network::add_linear(nn::Sequential& into, std::size_t position, std::int64_t in, std::int64_t out,
                             double gain) {
  nn::Initialisation weights, biases;
  if (traits_.orthogonal) {
    weights = {nn::Scheme::orthogonal, gain};
    biases = {nn::Scheme::zeros};
  }
  const std::string layer = std::to_string(position);
  const Variable weight = grouped_parameter(spec_, weights, trunk_.name(), layer + ".weight", in, in, out);
  const Variable bias = grouped_parameter(spec_, biases, trunk_.name(), layer + ".bias", 1, in, out);
  for (const Variable& made : {weight, bias})
    if (!made.ok()) return made.value().error();
  into.layer([weight, bias](const Tensor& x) { return matmul(x, weight.value()) + bias.value(); });
  parameters_.add(layer + ".weight", weight);
  parameters_.add(layer + ".bias", bias);
  return {};
}

Result<Network> Network::create(const BrainSpec& spec, const std::string& name, double head_gain) {
  Network network(spec, name);
  if (!spec.observation.streams.empty()) {
    IMPRINT_ASSIGN(network.encoder_, Encoder::create(spec, name));
    network.parameters_.add("", network.encoder_->parameters());
  }
  auto last = static_cast<std::int64_t>(spec.observation.encoded_count());
  for (const std::uint32_t size : spec.hidden_sizes) {
    nn::Sequential& trunk = network.trunk_;
    IMPRINT_CHECK(network.add_linear(trunk, trunk.size(), last, size, std::numbers::sqrt2));
    if (network.traits_.normalised_layers)
      trunk.layer([size](const Tensor& x) { return layer_norm(x, ones({size}), zeros({size})); });
    trunk.activation(activation_of(spec.activation));
    last = size;
  }
  if (spec.has_cell()) {
    IMPRINT_ASSIGN(network.cell_, RecurrentCell::create(spec, name, last));
    network.parameters_.add("cell", network.cell_->parameters());
    last = spec.cell_size;
  }
  const double last_gain = network.traits_.zero_head ? 0 : head_gain;
  IMPRINT_CHECK(network.add_linear(network.head_, network.trunk_.size(), last,
                                   std::int64_t{spec.goal_count} * spec.head_count(), last_gain));
  if (network.traits_.log_deviation && spec.action.continuous_count > 0) {
    const std::size_t count = std::size_t{spec.brain_count} * spec.action.continuous_count;
    network.log_deviation_ =
        Variable(name + "." + kLogDeviationName, {spec.brain_count, 1, spec.action.continuous_count},
                 std::vector<float>(count, kFirstLogDeviation));
    if (!network.log_deviation_.ok()) return network.log_deviation_.value().error();
  }
  if (network.traits_.change_epsilon)
    network.change_epsilon_ = Variable::zeros(name + "." + kChangeEpsilonName, {spec.brain_count});
  if (network.traits_.heard) {
    network.heard_ = Variable::zeros(name + "." + kHeardName,
                                     {spec.brain_count, 1, spec.goal_count, spec.action.choice_count()});
    const std::vector<float> untaught(static_cast<std::size_t>(network.heard_.shape().element_count()),
                                      untaught_word(spec));
    network.usual_ = Variable(name + "." + kUsualName, network.heard_.shape(), untaught);
    network.trust_ = Variable(name + "." + kTrustName, {spec.brain_count, spec.goal_count},
                              std::vector<float>(std::size_t{spec.brain_count} * spec.goal_count, 1.0f));
  }
  if (network.traits_.belief) IMPRINT_CHECK(network.make_belief(name));
  return network;
}

Result<> Network::make_belief(const std::string& name) {
  const std::vector<std::uint32_t> sizes = spec_.layer_sizes();
  const std::int64_t brains = spec_.brain_count, features = sizes[sizes.size() - 2] + 1, arms = sizes.back();
  std::vector<float> first(static_cast<std::size_t>(brains * features * features * arms));
  for (std::size_t i = 0; i < first.size(); ++i) {
    const auto row = static_cast<std::int64_t>(i) / (arms * features) % features;
    first[i] = static_cast<std::int64_t>(i) % features == row ? 1.0f : 0.0f;
  }
  covariance_ = Variable(name + ".covariance", {brains, features, arms * features}, first);
  const std::vector<float> noise(spec_.brain_count, nn::kFirstNoise);
  squares_ = Variable(name + ".squares", {brains}, noise);
  count_ = Variable(name + ".count", {brains}, noise);
  return covariance_.ok() ? Result<>{} : Result<>{covariance_.value().error()};
}

Tensor Network::features(const Tensor& observations) const {
  const Tensor scaled_ones = scaled(observations);
  const Tensor seen = encoder_ ? (*encoder_)(scaled_ones) : scaled_ones;
  const Tensor found = trunk_.size() > 0 ? trunk_(seen) : seen;
  return concat({found, ones({found.extent(0), found.extent(1), 1})}, 2);
}

nn::LinearBelief Network::belief() const {
  const std::vector<Tensor> all = parameters().values();
  return {concat({all[all.size() - 2], all.back()}, 1), covariance_.value(), squares_.value(),
          count_.value()};
}

void Network::assign_belief(const nn::LinearBelief& belief, std::vector<Update>& updates) const {
  const nn::Parameters& all = parameters();
  const std::int64_t inputs = belief.mean.extent(1) - 1;
  updates.push_back(Update::assign(all[all.size() - 2].variable, narrow(belief.mean, 1, 0, inputs)));
  updates.push_back(Update::assign(all[all.size() - 1].variable, narrow(belief.mean, 1, inputs, 1)));
  updates.push_back(Update::assign(covariance_, belief.covariance));
  updates.push_back(Update::assign(squares_, belief.squares));
  updates.push_back(Update::assign(count_, belief.count));
}

Tensor Network::scaled(const Tensor& observations) const {
  if (spec_.observation.scale.empty()) return observations;
  std::vector<float> factors;
  for (std::uint32_t i = 0; i < spec_.observation.stack; ++i)
    factors.insert(factors.end(), spec_.observation.scale.begin(), spec_.observation.scale.end());
  return observations * Tensor::from(std::span<const float>(factors), {spec_.observation.width()});
}

Tensor Network::heads(const Tensor& observations) const { return heads_of_scaled(scaled(observations)); }

Tensor Network::heads_of_scaled(const Tensor& observations) const {
  return heads_of_features(trunk(observations));
}

Tensor Network::trunk(const Tensor& observations) const {
  return trunk_(encoder_ ? (*encoder_)(observations) : observations);
}

Tensor Network::heads_of_features(const Tensor& features) const {
  return reshape(head_(features),
                 {spec_.brain_count, features.extent(1), spec_.goal_count, spec_.head_count()});
}

Tensor Network::trusted(const Tensor& heads) const {
  if (!trust_.ok()) return heads;
  const Tensor doubt = reshape(1.0f - trust_.value(), {spec_.brain_count, 1, spec_.goal_count, 1});
  return heads - doubt * (heads - usual_.value());  // the same bits where trust is 1
}

RecurrentCell::Output Network::step(const Tensor& observations, const Tensor& states) const {
  const Tensor seen = trunk(observations);
  return cell_ ? cell_->step(seen, states) : RecurrentCell::Output{seen, {}};
}

RecurrentCell::Output Network::run(const Tensor& observations, const SequenceRows& rows) const {
  const Tensor seen = trunk(observations);
  return cell_ ? cell_->run(seen, rows) : RecurrentCell::Output{seen, {}};
}

std::int64_t Network::feature_count() const {
  const std::vector<std::uint32_t> sizes = spec_.layer_sizes();
  return sizes[sizes.size() - 2];
}

Tensor Network::of_goal(const Tensor& heads, const Tensor& goals) {
  if (heads.extent(2) == 1) return reshape(heads, {heads.extent(0), heads.extent(1), heads.extent(3)});
  return sum(heads * unsqueeze(one_hot(goals, heads.extent(2)), -1), {2});
}

std::vector<StateVariable> Network::state() const {
  std::vector<StateVariable> state;
  add_state(state, "network", parameters());
  if (log_deviation_.ok()) state.push_back({kLogDeviationName, log_deviation_});
  if (change_epsilon_.ok()) state.push_back({kChangeEpsilonName, change_epsilon_});
  if (heard_.ok()) state.push_back({kHeardName, heard_});
  if (usual_.ok())
    state.push_back({.name = kUsualName, .variable = usual_, .otherwise = untaught_word(spec_)});
  if (trust_.ok()) state.push_back({.name = kTrustName, .variable = trust_, .otherwise = 1.0f});
  if (has_belief())
    for (const Variable& variable : {covariance_, squares_, count_})
      state.push_back({"belief." + variable.name().substr(variable.name().rfind('.') + 1), variable});
  return state;
}

void add_state(std::vector<StateVariable>& state, const std::string& prefix,
               const nn::Parameters& parameters) {
  for (const nn::Parameter& parameter : parameters)
    state.push_back({prefix + "." + parameter.name, parameter.variable});
}

}  // namespace imprint::agent
