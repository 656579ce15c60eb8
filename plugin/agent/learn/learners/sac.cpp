#include "plugin/agent/learn/learners/sac.h"

#include "compute/base/text.h"
#include "compute/nn/learners/sac.h"
#include "plugin/agent/learn/learners/replay_learner.h"
#include "plugin/agent/spec/field_check.h"

namespace imprint::agent {
namespace {

// Takes a scaled observation and an action. number: other first weights for each.
Result<Network> make_sac_critic(const BrainSpec& spec, const std::string& name, std::uint64_t number) {
  BrainSpec critic = spec;
  critic.learner = LearnerKind::none;  // a plain network, one output per goal
  critic.observation = {.count = spec.observation.width() + spec.action.continuous_count};
  if (!spec.observation.streams.empty()) {  // an encoder for each of the critic's own
    critic.observation.streams = spec.observation.streams;
    critic.observation.streams.push_back({.kind = StreamKind::vector, .count = spec.action.continuous_count});
  }
  critic.action = {{}, 1};
  critic.seed += number << 40;
  return Network::create(critic, name);
}

nn::SacNetworks::Critic adapted_critic(const Network& policy, const Network& critic) {
  return [policy, critic](const Tensor& observation, const Tensor& action, const Tensor& goal) {
    const Tensor both = concat({policy.scaled(observation), action}, 2);
    return squeeze(Network::of_goal(critic.heads_of_scaled(both), goal), 2);
  };
}

nn::SacRows sac_rows(const BrainSpec& spec, const Minibatch& batch) {
  const SampleLayout& layout = batch.layout;
  nn::SacRows rows;
  rows.observation = batch.columns(layout.observation, spec.observation.width());
  rows.next_observation = batch.columns(layout.next_observation, spec.observation.width());
  rows.goal = batch.whole_number(layout.goal);
  rows.next_goal = batch.whole_number(layout.next_goal);
  rows.action = batch.columns(layout.continuous, spec.action.continuous_count);
  rows.reward = batch.reward();
  rows.continues = batch.column(layout.continues);
  return rows;
}

// Squared distance of the policy's most likely action from the one that was shown, as in Fujimoto, Gu, A
// Minimalist Approach to Offline Reinforcement Learning, 2021.
Tensor demonstration_losses(const BrainSpec& spec, const Minibatch& shown, const Network& network) {
  const std::uint32_t numbers = spec.action.continuous_count;
  const Tensor outputs =
      Network::of_goal(network.heads(shown.columns(shown.layout.observation, spec.observation.width())),
                       shown.whole_number(shown.layout.goal));
  return sum(square(tanh(narrow(outputs, 2, 0, numbers)) - shown.columns(shown.layout.continuous, numbers)),
             {2});
}

class SacLearner final : public MemoryLearner {
 public:
  bool takes_feedback() const override { return true; }
  bool takes_demonstrations() const override { return false; }
  Result<> check_actions(const BrainSpec& spec) const override {
    if (!spec.observation.streams.empty() && spec.observation.stack > 1)
      return make_error(
          ErrorCode::unsupported,
          text("brain_create: stack: found ", spec.observation.stack,
               ", expected 1, because a critic of the sac learner encodes streams beside an action. "
               "Use the PPO learner, or a picture of more channels."));
    if (spec.action.branch_sizes.empty()) return {};
    return make_error(ErrorCode::unsupported,
                      "brain_create: learner sac: found branches, expected continuous actions only. Use "
                      "IMP_LEARNER_PPO for both, or IMP_LEARNER_DQN for one branch.");
  }
  Result<> check_settings(const BrainSpec& spec) const override {
    IMPRINT_CHECK(check_number("brain_create", "discount", spec.discount, 0, 1));
    IMPRINT_CHECK(check_number("brain_create", "target_rate", spec.target_rate, 1e-6f, 1));
    IMPRINT_CHECK(check_range("brain_create", "n_step", spec.n_step, 1, 1));
    return check_number("brain_create", "entropy_per_action", spec.entropy_per_action, -100, 1);
  }
  SampleKind sample_kind() const override { return SampleKind::transition; }
  bool learns_beside() const override { return true; }
  double least_reward() const override { return 0.03; }  // entropy counts beside it
  NetworkTraits network_traits(const BrainSpec&) const override { return {.squashed_actions = true}; }
  std::vector<SchemaSetting> schema(const BrainSpec& spec) const override { return {follows_changes(spec)}; }
  SampleLayout layout(const BrainSpec& spec) const override {
    return SampleLayout::begin(spec)
        .add(&SampleLayout::reward)
        .add(&SampleLayout::continues)
        .add(&SampleLayout::next_observation, spec.observation.width())
        .add(&SampleLayout::next_goal);
  }

 protected:
  Result<> learn(const BrainSpec& spec, const Network& network, const LearnInputs&, const Draw& draw,
                 LearnGraph& graph) const override {
    nn::SacOptions options;
    options.brains = spec.brain_count;
    options.minibatch = spec.batch_size;
    options.actions = spec.action.continuous_count;
    options.learning_rate = double{spec.learning_rate};
    options.discount = double{spec.discount};
    options.target_rate = double{spec.target_rate};
    options.max_gradient_norm = max_gradient_norm(spec);
    options.entropy_per_action = double{spec.entropy_per_action};
    nn::SacNetworks networks;
    networks.policy = [network](const Tensor& observation, const Tensor& goal) {
      return Network::of_goal(network.heads(observation), goal);
    };
    networks.policy_parameters = network.parameters();
    for (std::uint64_t i = 0; i < 2; ++i) {
      const std::string number = std::to_string(i);
      IMPRINT_ASSIGN(const Network critic, make_sac_critic(spec, "critic " + number, i + 1));
      IMPRINT_ASSIGN(const Network target, make_sac_critic(spec, "target " + number, i + 1));
      networks.critic[i] = adapted_critic(network, critic);
      networks.target[i] = adapted_critic(network, target);
      networks.critic_parameters.add(number, critic.parameters());
      networks.target_parameters.add(number, target.parameters());
    }
    add_state(graph.state, "critic", networks.critic_parameters);
    add_state(graph.state, "target_critic", networks.target_parameters);
    const nn::Sac sac(options, networks);
    for (const nn::Parameter& entry : sac.state()) graph.state.push_back({entry.name, entry.variable});
    nn::SacBeside beside;
    if (draw.demonstrations)
      beside = {draw.there,
                draw.demonstrations->loss(draw.demonstration_batch,
                                          demonstration_losses(spec, draw.demonstration_batch, network))};
    IMPRINT_ASSIGN(const nn::Sac::Step step,
                   sac.step(sac_rows(spec, draw.batch), draw.active, draw.generator, kFreeStream, beside));
    graph.description.outputs = {step.loss};
    const std::pair<Metric, Tensor> metrics[] = {{Metric::policy_loss, step.policy_loss},
                                                 {Metric::value_loss, step.loss},
                                                 {Metric::entropy, step.entropy},
                                                 {Metric::gradient_norm, step.gradient_norm}};
    add_metrics(metrics, graph);
    graph.description.updates.insert(graph.description.updates.end(), step.updates.begin(),
                                     step.updates.end());
    return {};
  }
};

}  // namespace

const Learner& sac_learner() {
  static const SacLearner learner;
  return learner;
}

}  // namespace imprint::agent
