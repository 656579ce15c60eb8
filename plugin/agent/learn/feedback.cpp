#include "plugin/agent/learn/feedback.h"

#include "plugin/agent/learn/replay_learner.h"
#include "plugin/agent/spec/field_check.h"

namespace imprint::agent {
namespace {

constexpr float kCertainty = 4;      // the model's, of expected feedback from -1 to 1
constexpr float kToldWeight = 0.3f;  // of the model's loss
constexpr float kFirstWrong = 0.1f, kLeastWrong = 0.02f, kMostWrong = 0.4f;
constexpr float kShownWrong = 0.01f;    // share of demonstrations
constexpr float kWordsRemembered = 50;  // by the estimate
constexpr float kCareless = 0.2f;  // of the words are wrong: kShrink and kLeastShrink are for that person
constexpr float kShrink = 4, kShrinkSamples = 300, kLeastShrink = 0.0135f;

class FeedbackObjective final : public Objective {
 public:
  explicit FeedbackObjective(const BrainSpec& spec)
      : spec_(spec),
        wrong_("wrong", {spec.brain_count}, std::vector<float>(spec.brain_count, kFirstWrong)),
        told_(Variable::zeros("told", {spec.brain_count})),
        taken_(Variable::zeros("taken", {spec.brain_count})) {}

  Tensor losses(const Minibatch& batch, const Network& network) const override {
    const Rated rated = rate(batch, network);
    const Tensor target = batch.column(batch.layout.target), means = batch.column(batch.layout.means);
    const Tensor error = square(sum(rated.outputs * rated.choice, {2}) - target);
    const Tensor shown = equal(means, number(Meaning::demonstration));
    const Tensor wrong = where(shown, kShownWrong, unsqueeze(wrong_.value(), 1));
    const Tensor praised = wrong + (1.0f - 2.0f * wrong) * rated.chance;
    const Tensor told = maximum(target, 0.0f) * log(praised) + maximum(-target, 0.0f) * log(1.0f - praised);
    Tensor of_others = -kToldWeight * told;
    if (spec_.margin_weight > 0) {
      const Tensor rivals = sum((1.0f - rated.choice) * square(relu(rated.outputs + spec_.margin)), {2});
      const Tensor sure = where(shown, 1.0f, stop_gradient(rated.chance));
      of_others = of_others + spec_.margin_weight * where(greater(target, 0.0f), sure * rivals, 0.0f);
    }
    return batch.column(batch.layout.weight) * (error + where(tells_of_others(batch), of_others, 0.0f));
  }

  // Before much was heard, and where many words are wrong, single words say little. Rewards are not wrong.
  Tensor penalty(const Network& network, const Tensor& filled) const override {
    Tensor squares = zeros({spec_.brain_count});
    for (const nn::Parameter& entry : network.parameters())
      squares = squares + sum(square(entry.variable.value()), {1, 2});
    const Tensor share = told_.value() / maximum(taken_.value(), 1e-6f);
    const Tensor noise = wrong_.value() * (1.0f - wrong_.value()) / (kCareless * (1 - kCareless));
    return squares * share * noise *
           (kShrink / (cast(filled, DType::float32) + kShrinkSamples) + kLeastShrink);
  }

  Scored score(const Minibatch& batch, const Network& network) const override {
    return {losses(batch, network), {{Metric::reliability, 1.0f - wrong_.value()}}};
  }
  std::vector<StateVariable> state() const override {
    return {{"wrong", wrong_}, {"told", told_}, {"taken", taken_}};
  }

  void take_in(const Minibatch& arriving, const Tensor& there, const Network& network,
               std::vector<Update>& updates) const override {
    const Rated rated = rate(arriving, network);
    const Tensor target = arriving.column(arriving.layout.target);
    const Tensor right = where(greater(target, 0.0f), rated.chance, 1.0f - rated.chance);
    const Tensor wrong = unsqueeze(wrong_.value(), 1);
    const Tensor doubted = wrong * (1.0f - right) / (wrong * (1.0f - right) + (1.0f - wrong) * right);
    const Tensor known = logical_and(there, is_finite(doubted));
    const Tensor weight = where(known, arriving.column(arriving.layout.weight), 0.0f);
    const Tensor is_word = equal(arriving.column(arriving.layout.means), number(Meaning::word));
    const Tensor of_words = where(is_word, weight, 0.0f);
    const Tensor words = sum(of_words, {1});
    const Tensor share = sum(of_words * where(known, doubted, 0.0f), {1}) / maximum(words, 1e-6f);
    const Tensor way = minimum(words * (1 / kWordsRemembered), 1.0f);
    updates.push_back(Update::assign(
        wrong_, clamp(wrong_.value() + way * (share - wrong_.value()), kLeastWrong, kMostWrong)));
    const Tensor told = where(tells_of_others(arriving), weight, 0.0f);
    updates.push_back(Update::assign(told_, told_.value() + sum(told, {1})));
    updates.push_back(Update::assign(taken_, taken_.value() + sum(weight, {1})));
    const Tensor heard = sum(rated.goal * unsqueeze(rated.choice * unsqueeze(told, 2), 2), {1});
    updates.push_back(Update::assign(network.heard(), network.heard().value() + unsqueeze(heard, 1)));
  }

 private:
  static float number(Meaning meaning) { return static_cast<float>(meaning); }
  // One choice is right.
  static Tensor tells_of_others(const Minibatch& batch) {
    return greater(batch.column(batch.layout.means), number(Meaning::reward));
  }

  struct Rated {
    Tensor goal, choice;  // [P, B, G, 1], [P, B, V], zeros and a one
    Tensor outputs;       // [P, B, V] of the sample's goal
    Tensor chance;        // [P, B] that the choice is the right one
  };
  // The goal's outputs are a masked sum rather than a gather: the derivative of a gather would have to search
  // for the rows of each goal.
  Rated rate(const Minibatch& batch, const Network& network) const {
    Rated rated;
    const Tensor heads = network.heads(batch.columns(batch.layout.observation, spec_.observation.width()));
    rated.goal = unsqueeze(one_hot(batch.whole_number(batch.layout.goal), spec_.goal_count), 3);
    rated.choice = one_hot(batch.whole_number(batch.layout.branches), spec_.action.branch_sizes[0]);
    rated.outputs = sum(heads * rated.goal, {2});
    rated.chance = sum(softmax(rated.outputs * kCertainty, 2) * rated.choice, {2});
    return rated;
  }

  BrainSpec spec_;
  Variable wrong_, told_, taken_;  // float32 [P]: e; weights of words and demonstrations, of all samples
};

class FeedbackLearner final : public ReplayLearner {
 public:
  bool takes_feedback() const override { return true; }
  bool takes_demonstrations() const override { return true; }
  Result<> check_actions(const BrainSpec& spec) const override { return check_one_branch(spec); }
  Result<> check_settings(const BrainSpec& spec) const override {
    IMPRINT_CHECK(check_number("brain_create", "margin", spec.margin, 0, 1e6f));
    return check_number("brain_create", "margin_weight", spec.margin_weight, 0, 1e6f);
  }
  SampleKind sample_kind() const override { return SampleKind::labelled; }
  SampleLayout layout(const BrainSpec& spec) const override {
    return SampleLayout::begin(spec)
        .add(&SampleLayout::target)
        .add(&SampleLayout::weight)
        .add(&SampleLayout::means);
  }
  void label(std::span<float> row, const SampleLayout& layout, float target, float weight,
             Meaning means) const override {
    row[layout.target] = target;
    row[layout.weight] = weight;
    row[layout.means] = static_cast<float>(means);
  }

 protected:
  Result<std::unique_ptr<Objective>> objective(const BrainSpec& spec) const override {
    return std::unique_ptr<Objective>(std::make_unique<FeedbackObjective>(spec));
  }
};

}  // namespace

const Learner& feedback_learner() {
  static const FeedbackLearner learner;
  return learner;
}

}  // namespace imprint::agent
