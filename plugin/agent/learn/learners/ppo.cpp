#include "plugin/agent/learn/learners/ppo.h"

#include "compute/base/text.h"
#include "plugin/agent/learn/learners/rollouts.h"
#include "plugin/agent/learn/learners/signals.h"
#include "plugin/agent/spec/field_check.h"

namespace imprint::agent {
namespace {

Result<Network> make_critic(const BrainSpec& spec, const std::string& name) {
  BrainSpec critic = spec;
  critic.action = {{}, 1 + spec.signal_count()};
  critic.seed += std::uint64_t{1} << 40;  // other first weights than the actor's
  return Network::create(critic, name, 1.0);
}

// The value of a goal by the features of the policy's trunk, where both share it.
struct ValueHead {
  Variable weight, bias;  // [P, F, goals], [P, 1, goals]
  std::int64_t goals = 1;

  static Result<ValueHead> create(const BrainSpec& spec, const std::string& name, std::int64_t features) {
    BrainSpec critic = spec;
    critic.seed += std::uint64_t{1} << 40;  // other first weights than the policy's
    ValueHead head;
    head.goals = spec.goal_count;
    head.weight = grouped_parameter(critic, {nn::Scheme::orthogonal, 1.0}, name, "0.weight", features,
                                    features, head.goals);
    head.bias = grouped_parameter(critic, {nn::Scheme::zeros}, name, "0.bias", 1, features, head.goals);
    for (const Variable& made : {head.weight, head.bias})
      if (!made.ok()) return made.value().error();
    return head;
  }
  // features [P, N, F], goal int32 [P, N] -> [P, N].
  Tensor operator()(const Tensor& features, const Tensor& goal) const {
    const Tensor values = matmul(features, weight.value()) + bias.value();
    return sum(values * one_hot(goal, goals), {2});
  }
  nn::Parameters parameters() const {
    nn::Parameters made;
    made.add("0.weight", weight);
    made.add("0.bias", bias);
    return made;
  }
};

nn::RolloutPpoOptions options_of(const BrainSpec& spec) {
  nn::RolloutPpoOptions options;
  if (spec.has_cell()) options.sequence = spec.sequence_steps;
  options.groups = spec.brain_count;
  options.steps = spec.rollout_steps;
  options.minibatch = spec.batch_size;
  options.epochs = spec.epochs;
  options.observations = spec.observation.width();
  options.action = action_space(spec);
  options.learning_rate = spec.learning_rate;
  options.discount = double{spec.discount};
  options.advantage_decay = double{spec.advantage_decay};
  options.clip_range = spec.clip_range;
  options.entropy_coefficient = double{spec.entropy_coefficient};
  options.value_coefficient = double{spec.value_coefficient};
  options.max_gradient_norm = max_gradient_norm(spec);
  options.max_divergence = double{spec.max_divergence};
  options.clip_values = spec.clip_values;
  options.normalise_observations = spec.normalise_observations;
  options.normalise_rewards = spec.normalise_rewards;
  options.wait_for_reward = spec.process_count == 1 && spec.shards == 1 && !spec.has_signals();
  options.rate_updates = rate_updates(spec);
  options.seed = spec.seed;
  options.corrects_lag = spec.receives_experience;
  options.process_count = spec.process_count;
  options.process_index = spec.process_index;
  options.shards = spec.shards;
  return options;
}

nn::PolicyAndCritic both_of(const Network& policy, const Network& critic) {
  nn::PolicyAndCritic both{rollout_network(policy), rollout_network(critic), {}};
  both.parameters.add("actor", policy.parameters());
  if (policy.log_deviation().ok()) both.parameters.add("actor.log_deviation", policy.log_deviation());
  both.parameters.add("critic", critic.parameters());
  return both;
}

// A policy and a value of one trunk, whose cell, if it has one, learns through the sequences of the rows.
nn::PolicyAndCritic shared_of(const BrainSpec& spec, const Network& network, const ValueHead& value) {
  nn::PolicyAndCritic both;
  both.policy = rollout_network(network);
  both.parameters.add("actor", network.parameters());
  if (network.log_deviation().ok()) both.parameters.add("actor.log_deviation", network.log_deviation());
  both.parameters.add("critic", value.parameters());
  const std::int64_t steps = spec.sequence_steps;
  both.together = [=](const nn::RolloutRows& rows, const Tensor& observation) {
    const Tensor features = network.run(observation, {rows.state, rows.restarts, steps}).features;
    return nn::RolloutOutputs{Network::of_goal(network.heads_of_features(features), rows.goal),
                              value(features, rows.goal)};
  };
  both.values = [=](const nn::RolloutRows& rollout) {
    const RecurrentCell::Output own =
        network.run(rollout.observation, {rollout.state, rollout.restarts, steps});
    const RecurrentCell::Output next = network.step(rollout.next_observation, own.states);
    return nn::RolloutValues{value(own.features, rollout.goal), value(next.features, rollout.next_goal)};
  };
  return both;
}

// Sees the agents of a group as a set: Cohen et al., On the Use and Misuse of Absorbing States in Multi-agent
// Reinforcement Learning (MA-POCA), 2022. The value is that of the set, so that what is left of a group tells
// what an agent that left has done for it. Without the baseline of each agent: rewards are the group's, and
// one advantage serves all that acted, as in Yu et al., The Surprising Effectiveness of PPO in Cooperative
// Multi-Agent Games (MAPPO), 2022.
Result<Network> make_group_critic(const BrainSpec& spec, const std::string& name) {
  BrainSpec critic = spec;
  critic.observation = {.count = spec.group_width()};
  critic.observation.streams = {
      {.kind = StreamKind::entities, .count = spec.group_size, .features = spec.observation.width()}};
  critic.action = {{}, 1};
  critic.seed += std::uint64_t{1} << 40;  // other first weights than the actor's
  return Network::create(critic, name, 1.0);
}

nn::PolicyAndCritic group_of(const Network& policy, const Network& critic) {
  nn::PolicyAndCritic both = both_of(policy, critic);
  const auto value = [critic](const Tensor& group, const Tensor& goal) {
    return squeeze(Network::of_goal(critic.heads_of_scaled(group), goal), 2);
  };
  both.together = [=](const nn::RolloutRows& rows, const Tensor& observation) {
    return nn::RolloutOutputs{Network::of_goal(policy.heads_of_scaled(observation), rows.goal),
                              value(rows.group, rows.goal)};
  };
  both.values = [=](const nn::RolloutRows& rollout) {
    return nn::RolloutValues{value(rollout.group, rollout.goal),
                             value(rollout.next_group, rollout.next_goal)};
  };
  return both;
}

// [P]: the critic's error, not finite where a gradient was not.
Tensor loss_of(const Tensor& metrics) {
  const auto metric = [&](nn::PpoMetric of) {
    return squeeze(narrow(metrics, 1, static_cast<std::int64_t>(of), 1), 1);
  };
  const Tensor norm = metric(nn::PpoMetric::gradient_norm);
  return where(is_finite(norm), metric(nn::PpoMetric::value_loss), norm);
}

struct Actors {
  nn::PolicyAndCritic acting, learned;
  nn::Parameters critic;  // of the one that acts
};

Result<Actors> make_actors(const BrainSpec& spec, const Network& network) {
  IMPRINT_ASSIGN(const Network learned, Network::create(spec, "learned"));
  if (spec.shares_trunk()) {
    IMPRINT_ASSIGN(const ValueHead value, ValueHead::create(spec, "critic", network.feature_count()));
    IMPRINT_ASSIGN(const ValueHead learned_value,
                   ValueHead::create(spec, "learned critic", network.feature_count()));
    return Actors{shared_of(spec, network, value), shared_of(spec, learned, learned_value),
                  value.parameters()};
  }
  if (spec.group_size > 0) {
    IMPRINT_ASSIGN(const Network critic, make_group_critic(spec, "critic"));
    IMPRINT_ASSIGN(const Network learned_critic, make_group_critic(spec, "learned critic"));
    return Actors{group_of(network, critic), group_of(learned, learned_critic), critic.parameters()};
  }
  IMPRINT_ASSIGN(const Network critic, make_critic(spec, "critic"));
  IMPRINT_ASSIGN(const Network learned_critic, make_critic(spec, "learned critic"));
  return Actors{both_of(network, critic), both_of(learned, learned_critic), critic.parameters()};
}

// Behaviour cloning beside the policy's loss: minus the log-probability of what was shown.
nn::RolloutBeside beside_of(const BrainSpec& spec, const Network& network, const LearnInputs& intake) {
  nn::RolloutBeside beside;
  beside.reward_signals = make_signals(spec);
  if (!spec.keeps_demonstrations()) return beside;
  constexpr std::uint32_t kCloned = 16, kSeen = 17, kModel = 18;  // streams
  const DemonstrationDraws demonstrations(spec, intake);
  const auto seen = [spec, network](const Minibatch& batch) {
    return network.scaled(batch.columns(batch.layout.observation, spec.observation.width()));
  };
  beside.has_demonstrations = demonstrations.there();
  beside.loss = [=](const nn::RolloutBeside::LogProbability& log_probability, const Tensor& generator) {
    const Minibatch batch = demonstrations.draw(generator, spec.demonstration_batch, kCloned);
    const std::int64_t rows = std::int64_t{spec.brain_count} * spec.demonstration_batch,
                       numbers = spec.action.continuous_count;
    nn::Actions taken;
    if (const std::size_t branches = spec.action.branch_sizes.size(); branches > 0)
      taken.discrete = reshape(
          cast(batch.columns(batch.layout.branches, static_cast<std::uint32_t>(branches)), DType::int32),
          {rows, static_cast<std::int64_t>(branches)});
    if (numbers > 0)
      taken.continuous =
          reshape(batch.columns(batch.layout.continuous, spec.action.continuous_count), {rows, numbers});
    return demonstrations.loss(
        batch, neg(log_probability(seen(batch), batch.whole_number(batch.layout.goal), taken)));
  };
  beside.observations = [=](const Tensor& generator) {
    return seen(demonstrations.draw(generator, spec.batch_size, kSeen));
  };
  beside.rows = [=](const Tensor& generator, std::int64_t n) {
    const Minibatch batch = demonstrations.draw(generator, n, kModel);
    nn::SignalRows rows = demonstration_signal_rows(spec, batch);
    rows.observation = seen(batch);
    return rows;
  };
  beside.count = [=](const Tensor& learns) { return demonstrations.count(learns); };
  beside.state.add("demonstration_age", demonstrations.age());
  return beside;
}

Result<> describe_update(const BrainSpec& spec, const SampleLayout& layout, const Network& network,
                         const LearnInputs& intake, LearnGraph& graph) {
  IMPRINT_ASSIGN(const Actors actors, make_actors(spec, network));
  const nn::RolloutPpo ppo(options_of(spec), actors.acting, actors.learned, beside_of(spec, network, intake));
  IMPRINT_ASSIGN(graph.sequence,
                 ppo.update(rollout_source(spec, layout, network, intake.samples), intake.filled));
  graph.sequence.all_reduce = spec.all_reduce;
  std::vector<Tensor>& outputs = graph.sequence.parts.back().description.outputs;
  outputs = {loss_of(outputs[0]), outputs[0]};
  graph.metrics = {Metric::policy_loss,       Metric::value_loss,    Metric::entropy,
                   Metric::divergence,        Metric::clipped_share, Metric::gradient_norm,
                   Metric::explained_variance};
  graph.minibatches = ppo.minibatches();
  add_state(graph.state, "critic", actors.critic);
  return finish_update(ppo.state(), ppo.work(), actors.learned.parameters, actors.acting.parameters, graph);
}

class PpoLearner final : public Learner {
 public:
  bool takes_feedback() const override { return true; }
  bool takes_demonstrations() const override { return false; }
  Result<> check_actions(const BrainSpec&) const override { return {}; }
  Result<> check_settings(const BrainSpec& spec) const override {
    IMPRINT_CHECK(check_rollout_settings(spec));
    if (spec.has_cell() && spec.batch_size % spec.sequence_steps != 0)
      return bad_field("brain_create", "batch_size", text(spec.batch_size),
                       text("a multiple of sequence_steps, ", spec.sequence_steps, ". Set it to ",
                            (spec.batch_size / spec.sequence_steps + 1) * spec.sequence_steps));
    IMPRINT_CHECK(check_number("brain_create", "advantage_decay", spec.advantage_decay, 0, 1));
    IMPRINT_CHECK(check_number("brain_create", "clip_range", spec.clip_range, 1e-6f, 1));
    IMPRINT_CHECK(check_number("brain_create", "value_coefficient", spec.value_coefficient, 0, 1e6f));
    IMPRINT_CHECK(check_number("brain_create", "max_divergence", spec.max_divergence, 0, 1e6f));
    return check_number("brain_create", "entropy_coefficient", spec.entropy_coefficient, 0, 1e6f);
  }
  SampleKind sample_kind() const override { return SampleKind::transition; }
  SampleUse sample_use() const override { return SampleUse::rollout; }
  bool off_policy() const override { return false; }
  bool learns_sequences() const override { return true; }
  bool learns_beside() const override { return true; }
  SampleLayout layout(const BrainSpec& spec) const override {
    SampleLayout start = SampleLayout::begin(spec);
    if (spec.has_cell()) start.add(&SampleLayout::state, spec.state_count());
    if (spec.group_size > 0)
      start.add(&SampleLayout::group, spec.group_width()).add(&SampleLayout::next_group, spec.group_width());
    return start.add(&SampleLayout::reward)
        .add(&SampleLayout::log_probability)
        .add(&SampleLayout::begins)
        .add(&SampleLayout::allowed, spec.action.choice_count())
        .add(&SampleLayout::continues)
        .add(&SampleLayout::next_observation, spec.observation.width())
        .add(&SampleLayout::next_goal);
  }
  // A draw from the softmax of the outputs.
  void explore(const BrainSpec&, const DecisionDraw& draw, std::span<const std::int32_t>,
               std::span<float> noise) const override {
    fill_gumbel(noise, draw);
  }
  Result<> describe(const BrainSpec& spec, const Network& network, const LearnInputs& intake,
                    LearnGraph& graph) const override {
    return describe_update(spec, layout(spec), network, intake, graph);
  }
};

}  // namespace

const Learner& ppo_learner() {
  static const PpoLearner learner;
  return learner;
}

}  // namespace imprint::agent
