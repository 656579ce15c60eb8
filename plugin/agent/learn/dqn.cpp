#include "compute/nn/losses.h"

#include "plugin/agent/learn/dqn.h"

#include "compute/nn/losses.h"
#include "plugin/agent/learn/replay_learner.h"
#include "plugin/agent/spec/field_check.h"

namespace imprint::agent {
namespace {

constexpr double kNeverBest = -1e30;  // below every value that a network can hold

class DqnObjective final : public Objective {
 public:
  DqnObjective(const BrainSpec& spec, Network target) : spec_(spec), target_(std::move(target)) {}

  Tensor losses(const Minibatch& batch, const Network& network) const override {
    const SampleLayout& layout = batch.layout;
    const std::uint32_t choices = spec_.action.branch_sizes[0], seen = spec_.observation.count;
    const Tensor outputs = Network::of_goal(network.heads(batch.columns(layout.observation, seen)),
                                            batch.whole_number(layout.goal));
    const Tensor value = sum(outputs * one_hot(batch.whole_number(layout.branches), choices), {2});

    const Tensor next = batch.columns(layout.next_observation, seen),
                 next_goal = batch.whole_number(layout.next_goal);
    const Tensor allowed = greater(batch.columns(layout.allowed, choices), 0.5f);
    const Tensor rated = Network::of_goal(target_.heads(next), next_goal);
    Tensor best;
    if (spec_.double_estimate) {
      const Tensor own = Network::of_goal(network.heads(next), next_goal);
      best = sum(rated * one_hot(argmax(where(allowed, own, kNeverBest), 2), choices), {2});
    } else {
      best = max(where(allowed, rated, kNeverBest), {2});
    }
    // A choice rather than a product: after a terminal state nothing was allowed, and `best` is not a value.
    const Tensor later =
        where(greater(batch.column(layout.continues), 0.5f), best * spec_.discount, zeros_like(best));
    return nn::huber_loss(value, stop_gradient(batch.column(layout.reward) + later), 1, nn::Reduction::none);
  }

  std::vector<StateVariable> state() const override {
    std::vector<StateVariable> state;
    add_state(state, "target", target_.parameters());
    return state;
  }

  std::vector<Update> updates(const OptimiserStep& step) const override {
    const Tensor due =
        logical_and(step.active, equal(remainder(step.count, static_cast<int>(spec_.target_period)), 0));
    const Tensor moves = reshape(due, {spec_.brain_count, 1, 1});
    std::vector<Update> updates;
    for (std::size_t i = 0; i < step.parameters.size(); ++i) {
      const Variable& target = target_.parameters()[i].variable;
      const Tensor value = target.value();
      const Tensor moved =
          spec_.target_rate == 1 ? step.parameters[i] : lerp(value, step.parameters[i], spec_.target_rate);
      updates.push_back(Update::assign(target, where(moves, moved, value)));
    }
    return updates;
  }

 private:
  BrainSpec spec_;
  Network target_;
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
    return check_number("brain_create", "epsilon", spec.epsilon, 0, 1);
  }
  SampleKind sample_kind() const override { return SampleKind::transition; }
  SampleLayout layout(const BrainSpec& spec) const override {
    return SampleLayout::begin(spec)
        .add(&SampleLayout::reward)
        .add(&SampleLayout::continues)
        .add(&SampleLayout::next_observation, spec.observation.count)
        .add(&SampleLayout::next_goal)
        .add(&SampleLayout::allowed, spec.action.choice_count());
  }
  // Epsilon-greedy on top of the noise.
  void explore(const BrainSpec& spec, const DecisionDraw& draw, std::span<const std::int32_t> allowed,
               std::span<float> noise) const override {
    ReplayLearner::explore(spec, draw, allowed, noise);
    add_random_choice(noise, allowed, spec.random_share(draw.decision), draw);
  }

 protected:
  Result<std::unique_ptr<Objective>> objective(const BrainSpec& spec) const override {
    IMPRINT_ASSIGN(Network target, Network::create(spec, "target"));
    return std::unique_ptr<Objective>(std::make_unique<DqnObjective>(spec, std::move(target)));
  }
};

}  // namespace

const Learner& dqn_learner() {
  static const DqnLearner learner;
  return learner;
}

}  // namespace imprint::agent
