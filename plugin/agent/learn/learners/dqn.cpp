#include "plugin/agent/learn/learners/dqn.h"

#include <cmath>
#include <optional>

#include "compute/nn/losses/losses.h"
#include "plugin/agent/learn/learners/replay_learner.h"
#include "plugin/agent/spec/field_check.h"

namespace imprint::agent {
namespace {

constexpr std::uint32_t kMostSteps = 64;  // fewer than a trajectory holds
constexpr double kNeverBest = -1e30;      // below every value that a network can hold

// Q(s, g, a) of one set of weights. Dueling: value + advantage - mean advantage, by a network each. The
// choices' order is that of their advantages alone, so that agents act by that network.
struct Estimates {
  Network choices;
  std::optional<Network> value;

  Tensor operator()(const Tensor& seen, const Tensor& goal) const {
    const Tensor rated = Network::of_goal(choices.heads(seen), goal);
    if (!value) return rated;
    return Network::of_goal(value->heads(seen), goal) + rated - mean(rated, {2}, true);
  }
};

Result<std::optional<Network>> make_value(const BrainSpec& spec, const std::string& name) {
  if (!spec.dueling) return std::optional<Network>();
  BrainSpec value = spec;
  value.action = {{}, 1};
  value.seed += std::uint64_t{1} << 40;  // other first weights than the choices'
  IMPRINT_ASSIGN(Network made, Network::create(value, name));
  return std::optional<Network>(std::move(made));
}

class DqnObjective final : public Objective {
 public:
  DqnObjective(const BrainSpec& spec, std::optional<Network> value, Estimates target)
      : spec_(spec), value_(std::move(value)), target_(std::move(target)) {
    const std::size_t brains = spec.brain_count;
    for (Variable* bound : {&least_, &most_})
      *bound = Variable::zeros(bound == &least_ ? "least_reward" : "most_reward",
                               {static_cast<std::int64_t>(brains), 1});
  }

  Tensor losses(const Minibatch& batch, const Network& network) const override {
    return score(batch, network).losses;
  }
  Scored score(const Minibatch& batch, const Network& network) const override {
    const SampleLayout& layout = batch.layout;
    const Estimates own{network, value_};
    const std::uint32_t choices = spec_.action.branch_sizes[0], seen = spec_.observation.width();
    const Tensor outputs = own(batch.columns(layout.observation, seen), batch.whole_number(layout.goal));
    const Tensor value = sum(outputs * one_hot(batch.whole_number(layout.branches), choices), {2});

    const Tensor next = batch.columns(layout.next_observation, seen),
                 next_goal = batch.whole_number(layout.next_goal);
    const Tensor allowed = greater(batch.columns(layout.allowed, choices), 0.5f);
    const Tensor rated = target_(next, next_goal);
    Tensor best;
    if (spec_.double_estimate)
      best = sum(rated * one_hot(argmax(where(allowed, own(next, next_goal), kNeverBest), 2), choices), {2});
    else
      best = max(where(allowed, rated, kNeverBest), {2});
    // A choice rather than a product: after a terminal state nothing was allowed, and `best` is not a value.
    const Tensor continues = batch.column(layout.continues);
    const Tensor later = where(greater(continues, 0.0f), best * continues * spec_.discount, zeros_like(best));
    const Tensor target = stop_gradient(bounded(batch.reward() + later));
    Scored scored{spec_.squared_loss ? square(value - target) * 0.5f
                                     : nn::huber_loss(value, target, 1, nn::Reduction::none)};
    scored.metrics = {{Metric::error, mean(abs(value - target), {1})},
                      {Metric::lowest_value, min(value, {1})},
                      {Metric::highest_value, max(value, {1})}};
    return scored;
  }

  // A choice that was shown is worth more than others by a margin. Hester et al., Deep Q-learning from
  // Demonstrations, 2018.
  Tensor demonstration_losses(const Minibatch& shown, const Network& network) const override {
    const Estimates own{network, value_};
    const std::uint32_t choices = spec_.action.branch_sizes[0];
    const Tensor outputs = own(shown.columns(shown.layout.observation, spec_.observation.width()),
                               shown.whole_number(shown.layout.goal));
    const Tensor taken = one_hot(shown.whole_number(shown.layout.branches), choices);
    return max(outputs + (1.0f - taken) * spec_.demonstration_margin, {2}) - sum(outputs * taken, {2});
  }

  nn::Parameters parameters() const override {
    nn::Parameters beside;
    if (value_) beside.add("value", value_->parameters());
    return beside;
  }

  std::vector<StateVariable> state() const override {
    std::vector<StateVariable> state;
    add_state(state, "target", target_.choices.parameters());
    if (target_.value) add_state(state, "target_value", target_.value->parameters());
    state.push_back({"least_reward", least_, INT32_MIN, INT32_MAX, Merge::smallest});
    state.push_back({"most_reward", most_, INT32_MIN, INT32_MAX, Merge::largest});
    return state;
  }

  std::vector<Update> updates(const OptimiserStep& step) const override {
    const Tensor due =
        logical_and(step.active, equal(remainder(step.count, static_cast<int>(spec_.target_period)), 0));
    const Tensor moves = reshape(due, {spec_.brain_count, 1, 1});
    nn::Parameters targets = target_.choices.parameters();
    if (target_.value) targets.add("", target_.value->parameters());
    std::vector<Update> updates;
    for (std::size_t i = 0; i < step.parameters.size(); ++i) {
      const Variable& target = targets[i].variable;
      const Tensor value = target.value();
      const Tensor moved =
          spec_.target_rate == 1 ? step.parameters[i] : lerp(value, step.parameters[i], spec_.target_rate);
      updates.push_back(Update::assign(target, where(moves, moved, value)));
    }
    return updates;
  }

  void take_in(const Minibatch& arriving, const Tensor& there, const Network&,
               std::vector<Update>& updates) const override {
    const Tensor reward = arriving.column(arriving.layout.reward);
    const Tensor known = where(logical_and(there, is_finite(reward)), reward, zeros_like(reward));
    updates.push_back(Update::assign(least_, minimum(least_.value(), min(known, {1}, true))));
    updates.push_back(Update::assign(most_, maximum(most_.value(), max(known, {1}, true))));
  }

 private:
  // No return is beyond what the rewards seen add up to. Keeps estimates that feed on themselves from
  // growing.
  Tensor bounded(const Tensor& target) const {
    const double left = 1 - std::pow(double{spec_.discount}, static_cast<double>(spec_.n_step));
    if (left < 1e-6 || spec_.has_signals()) return target;  // signals are not among the rewards seen
    const auto sum_of = [&](const Variable& reward) { return reward.value() * static_cast<float>(1 / left); };
    return maximum(minimum(target, sum_of(most_)), sum_of(least_));
  }

  BrainSpec spec_;
  std::optional<Network> value_;
  Estimates target_;
  Variable least_, most_;  // [P, 1] rewards of n_step steps, 0 included
};

class DqnLearner final : public ReplayLearner {
 public:
  bool takes_feedback() const override { return true; }
  bool takes_demonstrations() const override { return false; }
  Result<> check_actions(const BrainSpec& spec) const override { return check_one_branch(spec); }
  Result<> check_settings(const BrainSpec& spec) const override {
    IMPRINT_CHECK(check_number("brain_create", "discount", spec.discount, 0, 1));
    IMPRINT_CHECK(check_range("brain_create", "target_period", spec.target_period, 1, kMaxSize));
    IMPRINT_CHECK(check_number("brain_create", "target_rate", spec.target_rate, 1e-6f, 1));
    IMPRINT_CHECK(check_range("brain_create", "n_step", spec.n_step, 1, kMostSteps));
    IMPRINT_CHECK(check_range("brain_create", "rate_half_life", spec.rate_half_life, 0, kMaxSize));
    return check_number("brain_create", "epsilon", spec.epsilon, 0, 1);
  }
  SampleKind sample_kind() const override { return SampleKind::transition; }
  bool predicts_returns() const override { return true; }
  double least_reward() const override { return 3e-3; }
  bool learns_beside() const override { return true; }
  bool slows_exploration() const override { return true; }
  NetworkTraits network_traits(const BrainSpec& spec) const override {
    return {.change_epsilon = spec.follow_changes};
  }
  std::vector<SchemaSetting> schema(const BrainSpec& spec) const override {
    return {{"dueling", spec.dueling, true, spec.dueling ? "dueling" : nullptr}, follows_changes(spec)};
  }
  SampleLayout layout(const BrainSpec& spec) const override {
    return SampleLayout::begin(spec)
        .add(&SampleLayout::reward)
        .add(&SampleLayout::continues)
        .add(&SampleLayout::next_observation, spec.observation.width())
        .add(&SampleLayout::next_goal)
        .add(&SampleLayout::allowed, spec.action.choice_count());
  }
  // Epsilon-greedy on top of the noise.
  void explore(const BrainSpec& spec, const DecisionDraw& draw, std::span<const std::int32_t> allowed,
               std::span<float> noise) const override {
    ReplayLearner::explore(spec, draw, allowed, noise);
    add_random_choice(noise, allowed, spec.random_share(draw.of_brain), draw);
  }

 protected:
  Result<std::unique_ptr<Objective>> objective(const BrainSpec& spec) const override {
    IMPRINT_ASSIGN(std::optional<Network> value, make_value(spec, "value"));
    IMPRINT_ASSIGN(std::optional<Network> target_value, make_value(spec, "target value"));
    IMPRINT_ASSIGN(Network target, Network::create(spec, "target"));
    return std::unique_ptr<Objective>(std::make_unique<DqnObjective>(
        spec, std::move(value), Estimates{std::move(target), std::move(target_value)}));
  }
};

}  // namespace

const Learner& dqn_learner() {
  static const DqnLearner learner;
  return learner;
}

}  // namespace imprint::agent
