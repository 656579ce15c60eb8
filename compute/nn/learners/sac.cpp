#include "compute/nn/learners/sac.h"

#include <cmath>
#include <numbers>
#include <utility>

#include "compute/graph/gradients/autodiff.h"
#include "compute/tensor/build.h"

namespace imprint::nn {
namespace {

constexpr double kLeastLogDeviation = -5, kMostLogDeviation = 2;

Variable temperature(const SacOptions& options) {
  return Variable("log temperature", {options.brains, 1},
                  std::vector<float>(static_cast<std::size_t>(options.brains),
                                     static_cast<float>(std::log(options.initial_temperature))));
}

// In the order of the gradients in Sac::step.
Parameters learned(const SacNetworks& networks, const Variable& log_temperature) {
  Parameters all;
  all.add("actor", networks.policy_parameters);
  all.add("critic", networks.critic_parameters);
  all.add("log_temperature", log_temperature);
  return all;
}

}  // namespace

SquashedDraw squashed(const Tensor& policy_outputs, const Tensor& noise) {
  const std::int64_t numbers = noise.extent(2);
  const Tensor log_deviation =
      clamp(narrow(policy_outputs, 2, numbers, numbers), kLeastLogDeviation, kMostLogDeviation);
  const Tensor raw = narrow(policy_outputs, 2, 0, numbers) + exp(log_deviation) * noise;
  // log(1 - tanh(x)^2) = 2 (log 2 - x - softplus(-2 x)): finite however large x is.
  const Tensor slope = (static_cast<float>(std::numbers::ln2) - raw - softplus(raw * -2.0f)) * 2.0f;
  const Tensor density = square(noise) * -0.5f - log_deviation -
                         static_cast<float>(0.5 * std::log(2 * std::numbers::pi)) - slope;
  return {tanh(raw), sum(density, {2})};
}

Sac::Sac(SacOptions options, SacNetworks networks)
    : options_(options),
      networks_(std::move(networks)),
      log_temperature_(temperature(options_)),
      adam_(learned(networks_, log_temperature_), {.groups = options_.brains}) {
  state_.add("adam", adam_.state());
  state_.add("log_temperature", log_temperature_);
}

Sac::Losses Sac::losses(const SacRows& batch, const Tensor& generator, std::uint32_t stream) const {
  const Shape noise{options_.brains, options_.minibatch, options_.actions};
  const Tensor temperature = stop_gradient(exp(log_temperature_.value()));
  const auto least = [&](const SacNetworks::Critic(&critics)[2], const Tensor& seen, const Tensor& action,
                         const Tensor& goal) {
    return minimum(critics[0](seen, action, goal), critics[1](seen, action, goal));
  };
  const SquashedDraw next = squashed(networks_.policy(batch.next_observation, batch.next_goal),
                                     random_normal(generator, noise, stream));
  const Tensor later = least(networks_.target, batch.next_observation, next.action, batch.next_goal) -
                       temperature * next.log_density;
  const Tensor target =
      stop_gradient(batch.reward + where(greater(batch.continues, 0.0f),
                                         later * batch.continues * static_cast<float>(options_.discount),
                                         zeros_like(later)));
  Losses found;
  found.critic = zeros({options_.brains});
  for (const SacNetworks::Critic& critic : networks_.critic)
    found.critic =
        found.critic + mean(square(critic(batch.observation, batch.action, batch.goal) - target), {1});

  const SquashedDraw own =
      squashed(networks_.policy(batch.observation, batch.goal), random_normal(generator, noise, stream + 1));
  found.policy =
      mean(temperature * own.log_density - least(networks_.critic, batch.observation, own.action, batch.goal),
           {1});
  const auto entropy =
      static_cast<float>(options_.entropy_per_action * static_cast<double>(options_.actions));
  found.entropy = neg(mean(own.log_density, {1}));
  found.temperature = neg(mean(log_temperature_.value() * stop_gradient(own.log_density + entropy), {1}));
  return found;
}

Result<Sac::Step> Sac::step(const SacRows& batch, const Tensor& active, const Tensor& generator,
                            std::uint32_t stream, const SacBeside& beside) const {
  Losses found = losses(batch, generator, stream);
  if (!tensor::is_empty(beside.there))
    for (Tensor* loss : {&found.critic, &found.policy, &found.temperature})
      *loss = where(beside.there, *loss, zeros_like(*loss));
  if (!tensor::is_empty(beside.policy_loss)) found.policy = found.policy + beside.policy_loss;
  Tensor alive = logical_and(active, logical_and(is_finite(found.critic), is_finite(found.policy)));
  Tensor norms = zeros({options_.brains});
  std::vector<Tensor> descent;
  // Brains share no weights, so the gradient of the sum is each brain's own gradient. Each loss moves its own
  // parameters only.
  const auto add = [&](const Tensor& loss, const Parameters& parameters) -> Result<> {
    IMPRINT_ASSIGN(const std::vector<Tensor> raw, gradients(sum(loss), parameters.values()));
    IMPRINT_ASSIGN(const ClippedGradients clipped,
                   clip_by_global_norm(raw, options_.max_gradient_norm, options_.brains));
    descent.insert(descent.end(), clipped.gradients.begin(), clipped.gradients.end());
    norms = norms + clipped.norm;
    return {};
  };
  Parameters temperature;
  temperature.add("", log_temperature_);
  IMPRINT_CHECK(add(found.policy, networks_.policy_parameters));
  IMPRINT_CHECK(add(found.critic, networks_.critic_parameters));
  IMPRINT_CHECK(add(found.temperature, temperature));
  alive = logical_and(alive, is_finite(norms));
  Step step;
  IMPRINT_ASSIGN(step.updates, adam_.step(descent, options_.learning_rate, cast(alive, DType::float32)));
  const Parameters& critics = networks_.critic_parameters;
  for (std::size_t i = 0; i < critics.size(); ++i) {
    const Variable& target = networks_.target_parameters[i].variable;
    // The critic's new value: Adam's updates hold it.
    for (const Update& update : step.updates)
      if (update.target.state() == critics[i].variable.state()) {
        const Tensor rate = cast(alive, DType::float32) * static_cast<float>(options_.target_rate);
        const Tensor moved = lerp(target.value(), update.value, reshape(rate, {options_.brains, 1, 1}));
        step.updates.push_back(Update::assign(target, moved));
        break;
      }
  }
  step.policy_loss = found.policy;
  step.entropy = found.entropy;
  step.gradient_norm = norms;
  step.loss = where(is_finite(norms), found.critic, norms);
  return step;
}

}  // namespace imprint::nn
