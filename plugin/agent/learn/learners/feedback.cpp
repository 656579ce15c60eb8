#include "plugin/agent/learn/learners/feedback.h"

#include <algorithm>
#include <cmath>

#include "plugin/agent/learn/learners/replay_learner.h"
#include "plugin/agent/learn/samples/replay_memory.h"
#include "plugin/agent/learn/samples/samples.h"
#include "plugin/agent/spec/field_check.h"

namespace imprint::agent {
namespace {

constexpr float kCertainty = 4;      // the model's, of expected feedback from -1 to 1
constexpr float kToldWeight = 0.3f;  // of the model's loss
constexpr float kFirstWrong = 0.1f, kLeastWrong = 0.02f, kMostWrong = 0.4f;
constexpr float kDemonstrationWrong = 0.01f;  // share of demonstrations
constexpr float kWordsRemembered = 50;        // by the estimate
constexpr float kCareless = 0.2f;  // of the words are wrong: kShrink and kLeastShrink are for that person
constexpr float kUntaught = 1;  // in weight of words: a goal's last layer is shrunk before its first sample
// By weight, of a choice: its usual word follows from the newest, and before the first one from
// kUntaughtWords.
constexpr float kUsualWords = 50, kUntaughtWords = 2;
constexpr float kBelieved = 0.15f;  // of the words are wrong: what is seen is trusted
// Trust follows from the newest words, and before the first one from kFirstTrust, which counts kTrustBefore.
constexpr float kTrustWords = 200, kTrustBefore = 3, kFirstTrust = 0.5f, kTrustFactor = 2;
constexpr float kShrink = 4, kShrinkSamples = 300, kLeastShrink = 0.0135f;

// Weights of words and demonstrations, and of all samples so far.
struct Taught {
  Taught(const std::string& suffix, const Shape& shape)
      : told(Variable::zeros("told" + suffix, shape)), taken(Variable::zeros("taken" + suffix, shape)) {}
  // With so much weight of words before the first sample.
  Tensor share(float before) const {
    return (told.value() + before) / maximum(taken.value() + before, 1e-6f);
  }
  void add(const Tensor& words, const Tensor& samples, std::vector<Update>& updates) const {
    updates.push_back(Update::assign(told, told.value() + words));
    updates.push_back(Update::assign(taken, taken.value() + samples));
  }
  Variable told, taken;
};

// How well the heads' guesses, beyond the usual words, fitted words that were not learned from yet: the
// sums of a regression through 0.
struct Agreement {
  explicit Agreement(std::uint32_t brains)
      : products(Variable::zeros("agreed.products", {brains})),
        squares(Variable::zeros("agreed.squares", {brains})) {}
  Variable products, squares;
};

class FeedbackObjective final : public Objective {
 public:
  explicit FeedbackObjective(const BrainSpec& spec)
      : spec_(spec),
        wrong_("wrong", {spec.brain_count}, std::vector<float>(spec.brain_count, kFirstWrong)),
        in_all_("", {spec.brain_count, 1, 1}),
        of_outputs_(".outputs", {spec.brain_count, 1, goals_of_outputs().extent(0)}),
        agreed_(spec.brain_count) {}

  Tensor losses(const Minibatch& batch, const Network& network) const override {
    const Rated rated = rate(batch, network);
    const Tensor target = batch.column(batch.layout.target), source = batch.column(batch.layout.source);
    const Tensor error = square(sum(rated.outputs * rated.choice, {2}) - target);
    const Tensor shown = equal(source, number(LabelSource::demonstration));
    const Tensor wrong = where(shown, kDemonstrationWrong, unsqueeze(wrong_.value(), 1));
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

  // Before much was heard, and where many words are wrong, single words say little. Rewards are not wrong:
  // the heads of goals that they teach stay.
  Tensor penalty(const Network& network, const Tensor& filled) const override {
    const std::vector<Tensor> all = network.parameters().values();
    Tensor squares = zeros({spec_.brain_count});
    for (std::size_t i = 0; i < all.size(); ++i) {
      const bool is_last = i + 2 >= all.size();
      const Tensor share = is_last ? of_outputs_.share(kUntaught) : in_all_.share(0);
      squares = squares + sum(share * square(all[i]), {1, 2});
    }
    const Tensor noise = wrong_.value() * (1.0f - wrong_.value()) / (kCareless * (1 - kCareless));
    return squares * noise * (kShrink / (cast(filled, DType::float32) + kShrinkSamples) + kLeastShrink);
  }

  Scored score(const Minibatch& batch, const Network& network) const override {
    return {losses(batch, network), {{Metric::reliability, 1.0f - wrong_.value()}}};
  }
  std::vector<StateVariable> state() const override {
    return {{"wrong", wrong_},
            {"told", in_all_.told},
            {"taken", in_all_.taken},
            {"told.outputs", of_outputs_.told},
            {"taken.outputs", of_outputs_.taken},
            {.name = "agreed.products", .variable = agreed_.products, .otherwise = 0.0f},
            {.name = "agreed.squares", .variable = agreed_.squares, .otherwise = 0.0f}};
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
    const Tensor is_word = equal(arriving.column(arriving.layout.source), number(LabelSource::feedback));
    const Tensor of_words = where(is_word, weight, 0.0f);
    const Tensor words = sum(of_words, {1});
    const Tensor share = sum(of_words * where(known, doubted, 0.0f), {1}) / maximum(words, 1e-6f);
    const Tensor way = minimum(words * (1 / kWordsRemembered), 1.0f);
    updates.push_back(Update::assign(
        wrong_, clamp(wrong_.value() + way * (share - wrong_.value()), kLeastWrong, kMostWrong)));
    learn_trust(rated, target, of_words, network, updates);
    const Tensor told = where(tells_of_others(arriving), weight, 0.0f);
    const Tensor of_goal = equal(unsqueeze(arriving.column(arriving.layout.goal), 2), goals_of_outputs());
    const auto by_output = [&](const Tensor& weights) {
      return sum(where(of_goal, unsqueeze(weights, 2), 0.0f), {1}, true);
    };
    in_all_.add(sum(unsqueeze(told, 2), {1}, true), sum(unsqueeze(weight, 2), {1}, true), updates);
    of_outputs_.add(by_output(told), by_output(weight), updates);
    count_heard(rated, target, told, network, updates);
  }

 private:
  static float number(LabelSource meaning) { return static_cast<float>(meaning); }
  // float32 [G * V]
  Tensor goals_of_outputs() const {
    std::vector<float> goals;
    for (std::uint32_t goal = 0; goal < spec_.goal_count; ++goal)
      goals.insert(goals.end(), spec_.action.branch_sizes[0], static_cast<float>(goal));
    return Tensor::from(std::span<const float>(goals), {static_cast<std::int64_t>(goals.size())});
  }
  // One choice is right.
  static Tensor tells_of_others(const Minibatch& batch) {
    return greater(batch.column(batch.layout.source), number(LabelSource::reward));
  }

  struct Rated {
    Tensor features;      // [P, B, F]
    Tensor goal, choice;  // [P, B, G, 1], [P, B, V], zeros and a one
    Tensor outputs;       // [P, B, V] of the sample's goal
    Tensor chance;        // [P, B] that the choice is the right one
  };
  // The goal's outputs are a masked sum rather than a gather: the derivative of a gather would have to search
  // for the rows of each goal.
  Rated rate(const Minibatch& batch, const Network& network) const {
    Rated rated;
    const Tensor seen = batch.columns(batch.layout.observation, spec_.observation.width());
    rated.features = network.step(network.scaled(seen), {}).features;
    const Tensor heads = network.heads_of_features(rated.features);
    rated.goal = unsqueeze(one_hot(batch.whole_number(batch.layout.goal), spec_.goal_count), 3);
    rated.choice = one_hot(batch.whole_number(batch.layout.branches), spec_.action.branch_sizes[0]);
    rated.outputs = sum(heads * rated.goal, {2});
    rated.chance = sum(softmax(rated.outputs * kCertainty, 2) * rated.choice, {2});
    return rated;
  }

  // A guess is what the heads say of the choice that was made. Its part beyond the usual word is noise where
  // few words were heard. How much of it would have fitted new words best is how far it is trusted, times
  // kTrustFactor: choosing needs less certainty than guessing. The fewer words are wrong, the less it is
  // doubted; what a game's rewards taught a goal is not.
  void learn_trust(const Rated& rated, const Tensor& target, const Tensor& of_words, const Network& network,
                   std::vector<Update>& updates) const {
    const auto of_choice = [&](const Tensor& heads) {
      return sum(sum(heads * rated.goal, {2}) * rated.choice, {2});
    };
    const std::int64_t brains = spec_.brain_count, goals = spec_.goal_count,
                       choices = spec_.action.branch_sizes[0];
    const Tensor usual = of_choice(network.usual().value()),
                 beyond = sum(rated.outputs * rated.choice, {2}) - usual;
    const Tensor words = sum(of_words, {1}), kept = 1.0f - minimum(words * (1 / kTrustWords), 1.0f);
    const auto added = [&](const Variable& sum_so_far, const Tensor& figures) {
      return sum_so_far.value() * kept + sum(where(greater(of_words, 0.0f), of_words * figures, 0.0f), {1});
    };
    const Tensor products = added(agreed_.products, (target - usual) * beyond),
                 squares = added(agreed_.squares, square(beyond));
    updates.push_back(Update::assign(agreed_.products, products));
    updates.push_back(Update::assign(agreed_.squares, squares));
    const Tensor fitted =
        clamp(kTrustFactor * (products + kTrustBefore * kFirstTrust) / (squares + kTrustBefore), 0.0f, 1.0f);
    const Tensor doubt = clamp((wrong_.value() - kBelieved) * (1 / (kCareless - kBelieved)), 0.0f, 1.0f);
    const Tensor shares = reshape(of_outputs_.share(kUntaught), {brains, goals, choices});
    const Tensor told = squeeze(narrow(shares, 2, 0, 1), 2);
    updates.push_back(Update::assign(network.trust(), 1.0f - told * unsqueeze(doubt * (1.0f - fitted), 1)));
  }

  // told [P, B]: weights of words and demonstrations. A choice's usual word is their mean.
  void count_heard(const Rated& rated, const Tensor& target, const Tensor& told, const Network& network,
                   std::vector<Update>& updates) const {
    const Tensor heard = network.heard().value(), usual = network.usual().value();
    const auto by_choice = [&](const Tensor& weights) {
      return unsqueeze(sum(rated.goal * unsqueeze(rated.choice * unsqueeze(weights, 2), 2), {1}), 1);
    };
    const Tensor arrived = by_choice(told),
                 values = by_choice(where(greater(told, 0.0f), told * target, 0.0f));
    updates.push_back(Update::assign(network.heard(), heard + arrived));
    const Tensor so_far = minimum(heard, kUsualWords) + (arrived + kUntaughtWords);
    updates.push_back(Update::assign(network.usual(), usual + (values - arrived * usual) / so_far));
  }

  BrainSpec spec_;
  Variable wrong_;              // float32 [P]
  Taught in_all_, of_outputs_;  // [P, 1, 1]; [P, 1, G * V], that of the output's goal
  Agreement agreed_;            // [P]
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
  NetworkTraits network_traits(const BrainSpec&) const override { return {.heard = true}; }
  SampleLayout layout(const BrainSpec& spec) const override {
    return SampleLayout::begin(spec)
        .add(&SampleLayout::target)
        .add(&SampleLayout::weight)
        .add(&SampleLayout::source);
  }
  void label(std::span<float> row, const SampleLayout& layout, float target, float weight,
             LabelSource source) const override {
    row[layout.target] = target;
    row[layout.weight] = weight;
    row[layout.source] = static_cast<float>(source);
  }

 protected:
  Result<std::unique_ptr<Objective>> objective(const BrainSpec& spec) const override {
    return std::unique_ptr<Objective>(std::make_unique<FeedbackObjective>(spec));
  }
};

// Where a row of the memory has a number of the sample.
std::size_t column_in_memory(const ReplayColumns& columns, std::uint32_t column) {
  for (const ReplayColumns::Range& range : columns.ranges)
    if (!range.bytes && column >= range.first && column < range.first + range.count)
      return range.at + column - range.first;
  return 0;
}

}  // namespace

const Learner& feedback_learner() {
  static const FeedbackLearner learner;
  return learner;
}

void hear_again(const BrainSpec& spec, const ReplayState& replay, std::span<const float> memory,
                std::span<float> heard, std::span<float> usual) {
  const ReplayColumns columns = replay_columns(spec);
  const SampleLayout layout = feedback_learner().layout(spec);
  const std::size_t goal = column_in_memory(columns, layout.goal),
                    choice = column_in_memory(columns, layout.branches),
                    target = column_in_memory(columns, layout.target),
                    weight = column_in_memory(columns, layout.weight),
                    source = column_in_memory(columns, layout.source);
  const std::size_t goals = spec.goal_count, choices = spec.action.branch_sizes[0],
                    capacity = spec.replay_capacity;
  std::ranges::fill(heard, 0.0f);
  for (std::size_t p = 0; p < spec.brain_count; ++p) {
    const auto filled = static_cast<std::size_t>(replay.filled[p]);
    const std::size_t oldest = static_cast<std::size_t>(replay.next[p]) + capacity - filled;
    for (std::size_t k = 0; k < filled; ++k) {
      const auto row =
          memory.subspan((p * capacity + (oldest + k) % capacity) * columns.numbers, columns.numbers);
      if (!(row[source] > static_cast<float>(LabelSource::reward) && row[goal] >= 0 && row[choice] >= 0 &&
            row[goal] < static_cast<float>(goals) && row[choice] < static_cast<float>(choices)))
        continue;
      const std::size_t word =
          (p * goals + static_cast<std::size_t>(row[goal])) * choices + static_cast<std::size_t>(row[choice]);
      const float so_far = std::min(heard[word], kUsualWords) + row[weight] + kUntaughtWords,
                  mean = usual[word] + row[weight] * (row[target] - usual[word]) / so_far,
                  sum = heard[word] + row[weight];
      if (!(row[weight] > 0 && std::isfinite(mean) && std::isfinite(sum))) continue;  // a damaged file
      usual[word] = mean;
      heard[word] = sum;
    }
  }
}

}  // namespace imprint::agent
