#include "compute/nn/losses.h"
#include "plugin/agent/learn/objective.h"

namespace imprint::agent {
namespace {

constexpr double kClosed = -1e30;  // below every value that a network can hold

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
    const Tensor open = greater(batch.columns(layout.allowed, choices), 0.5f);
    const Tensor rated = Network::of_goal(target_.heads(next), next_goal);
    Tensor best;
    if (spec_.double_estimate) {
      const Tensor own = Network::of_goal(network.heads(next), next_goal);
      best = sum(rated * one_hot(argmax(where(open, own, kClosed), 2), choices), {2});
    } else {
      best = max(where(open, rated, kClosed), {2});
    }
    // Chosen rather than multiplied: behind a terminal state lies nothing, and nothing was open there.
    const Tensor later =
        where(greater(batch.column(layout.continues), 0.5f), best * spec_.discount, zeros_like(best));
    return nn::huber_loss(value, stop_gradient(batch.column(layout.reward) + later), 1, nn::Reduction::none);
  }

  std::vector<StateVariable> state() const override {
    std::vector<StateVariable> state;
    add_state(state, "target", target_.parameters());
    return state;
  }

  std::vector<Update> follow(const Stepped& stepped) const override {
    const Tensor due = logical_and(stepped.active,
                                   equal(remainder(stepped.count, static_cast<int>(spec_.target_period)), 0));
    const Tensor moves = reshape(due, {spec_.brain_count, 1, 1});
    std::vector<Update> updates;
    for (std::size_t i = 0; i < stepped.parameters.size(); ++i) {
      const Variable& target = target_.parameters()[i].variable;
      const Tensor value = target.value();
      const Tensor moved = spec_.target_rate == 1 ? stepped.parameters[i]
                                                  : lerp(value, stepped.parameters[i], spec_.target_rate);
      updates.push_back(Update::assign(target, where(moves, moved, value)));
    }
    return updates;
  }

 private:
  BrainSpec spec_;
  Network target_;
};

}  // namespace

Result<std::unique_ptr<Objective>> make_dqn_objective(const BrainSpec& spec) {
  IMPRINT_ASSIGN(Network target, Network::create(spec, "target"));
  return std::unique_ptr<Objective>(std::make_unique<DqnObjective>(spec, std::move(target)));
}

}  // namespace imprint::agent
