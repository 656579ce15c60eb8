#include "plugin/agent/learn/learners/es.h"

#include <algorithm>
#include <string>
#include <utility>

#include "plugin/agent/learn/samples/samples.h"
#include "plugin/agent/spec/field_check.h"

namespace imprint::agent {
namespace {

constexpr float kMomentum = 0.9f, kSquares = 0.999f, kEpsilon = 1e-8f;  // of Adam
// A brain that took no step while another one took this many has no body.
constexpr float kPatience = 100;

// The new steps of each brain, float32 [P, K] with 0 for rows that are none.
struct NewSteps {
  Tensor there, reward, begins;
};

NewSteps new_steps(const BrainSpec& spec, const SampleLayout& layout, const LearnInputs& intake) {
  const Shape by_brain{spec.brain_count, rows_per_step(spec)};
  const Tensor there = less(iota(by_brain, 1), unsqueeze(intake.filled, 1));
  const auto column = [&](std::uint32_t first) {
    return where(there, reshape(narrow(intake.samples, 1, first, 1), by_brain), 0.0f);
  };
  return {cast(there, DType::float32), column(layout.reward), column(layout.begins)};
}

// Steps that arrive after a change of the weights, but were done before it: those of the learn step that
// made it, and answers on their way.
float stale_steps(const BrainSpec& spec) {
  const std::uint32_t latency =
      spec.action_latency_frames > 0 ? spec.action_latency_frames : kMostChosenLatency;
  return static_cast<float>((spec.learn_period_frames + latency) / spec.decision_period_frames + 2);
}

// Counts of each brain's steps and episodes with its present weights, [P, 1] each.
class Tally {
 public:
  Tally(const BrainSpec& spec, LearnGraph& graph)
      : limit_(static_cast<float>(spec.rollout_steps)), stale_(stale_steps(spec)) {
    for (auto& [name, number] : {std::pair{"counting", &counting_},
                                 {"waited", &waited_},
                                 {"steps", &steps_},
                                 {"current", &current_},
                                 {"total", &total_},
                                 {"episodes", &episodes_}}) {
      number->variable = Variable::zeros(text_of(name), {spec.brain_count, 1});
      graph.state.push_back({number->variable.name(), number->variable, INT32_MIN, INT32_MAX, Merge::none});
    }
  }

  // Steps count from the first episode on that begins with the new weights, or once rollout_steps have passed
  // without one.
  void add(const NewSteps& news) {
    const Tensor reward = where(is_finite(news.reward), news.reward, 0.0f);
    const Tensor open = counting_.variable.value();
    const Tensor place = waited_.variable.value() + cast(iota(news.begins.shape(), 1), DType::float32);
    const Tensor known = logical_or(greater(open, 0.0f), greater_equal(place, stale_));
    const Tensor begun = cumsum(where(known, news.begins, 0.0f), 1), last = max(begun, {1}, true);
    const Tensor any = cast(greater(last, 0.0f), DType::float32);
    const Tensor counts = news.there * cast(greater(begun + open, 0.0f), DType::float32);
    const Tensor in_last = cast(equal(begun, last), DType::float32);
    const Tensor of_last = sum(counts * in_last * reward, {1}, true),
                 before = sum(counts * (1.0f - in_last) * reward, {1}, true);
    const Tensor so_far = current_.variable.value();
    total_.next = total_.variable.value() + any * (so_far + before);
    current_.next = of_last + (1.0f - any) * so_far;
    episodes_.next = episodes_.variable.value() + any * (last - 1.0f + open);
    steps_.next = steps_.variable.value() + sum(counts, {1}, true);
    const Tensor opened = maximum(open, any);
    waited_.next = waited_.variable.value() + (1.0f - opened) * sum(news.there, {1}, true);
    counting_.next = maximum(opened, cast(greater_equal(waited_.next, limit_), DType::float32));
  }

  Tensor done() const {
    return logical_or(greater(episodes_.next, 0.0f), greater_equal(steps_.next, limit_));
  }
  Tensor fitness() const {
    return where(greater(episodes_.next, 0.0f), total_.next / maximum(episodes_.next, 1.0f), current_.next);
  }
  // bool [1, 1]: all that take part are done. The last condition holds where a body left in the middle.
  Tensor complete() const {
    const Tensor seen = waited_.next + steps_.next, most = max(seen, {0}, true);
    const Tensor absent = logical_and(less_equal(seen, 0.0f), greater_equal(most, kPatience));
    return logical_or(all(logical_or(done(), absent), {0}, true), greater_equal(most, 3 * limit_));
  }
  // over: bool [1, 1] 1 = the weights change.
  void finish(const Tensor& over, std::vector<Update>& updates) const {
    for (const Number* number : {&counting_, &waited_, &steps_, &current_, &total_, &episodes_})
      updates.push_back(
          Update::assign(number->variable, where(over, zeros_like(number->next), number->next)));
  }

 private:
  struct Number {
    Variable variable;
    Tensor next;
  };
  static std::string text_of(const char* name) { return std::string("tally.") + name; }

  float limit_, stale_;
  Number counting_;          // 1: steps count
  Number waited_;            // steps that did not
  Number steps_;             // that did
  Number current_;           // return of the episode under way
  Number total_, episodes_;  // returns of those that are over, and how many
};

// [P, 1], 0 for brains that are not done.
Tensor shaped_ranks(const Tensor& fitness, const Tensor& done) {
  const Tensor other = transpose(fitness, 0, 1);  // [1, P]
  const Tensor counts = cast(transpose(done, 0, 1), DType::float32);
  const Tensor lower = sum(counts * cast(less(other, fitness), DType::float32), {1}, true),
               equals = sum(counts * cast(equal(other, fitness), DType::float32), {1}, true);  // itself too
  const Tensor others = maximum(sum(counts, {1}, true) - 1.0f, 1.0f);
  return where(done, (lower + (equals - 1.0f) * 0.5f) / others - 0.5f, 0.0f);
}

// e of each brain: 0 for the first, then in pairs of opposite ones. [P, in, out].
Tensor antithetic(const Tensor& generator, const Shape& shape, std::uint32_t stream) {
  const std::int64_t others = shape[0] - 1, pairs = (others + 1) / 2;
  if (others == 0) return zeros(shape);
  const Tensor drawn = random_normal(generator, {pairs, 1, shape[1], shape[2]}, stream);
  const Tensor both = reshape(concat({drawn, neg(drawn)}, 1), {2 * pairs, shape[1], shape[2]});
  return concat({zeros({1, shape[1], shape[2]}), narrow(both, 0, 0, others)}, 0);
}

class EsLearner final : public Learner {
 public:
  bool takes_feedback() const override { return true; }
  bool takes_demonstrations() const override { return false; }
  Result<> check_actions(const BrainSpec&) const override { return {}; }
  Result<> check_settings(const BrainSpec& spec) const override {
    IMPRINT_CHECK(check_range("brain_create", "rollout_steps", spec.rollout_steps, 1, kMaxSize));
    IMPRINT_CHECK(check_number("brain_create", "exploration", spec.exploration, 1e-6f, 1e6f));
    if (spec.brain_count >= 2 && spec.agents_per_brain == 1) return {};
    return make_error(
        ErrorCode::unsupported,
        "brain_create: brain_count, agents_per_brain: found " + std::to_string(spec.brain_count) + " and " +
            std::to_string(spec.agents_per_brain) +
            ", expected brain_count of 2 or more and agents_per_brain 1, because the es learner "
            "compares brains with one body each. Set brain_count to the number of bodies, an "
            "odd one, and agents_per_brain to 1.");
  }
  SampleKind sample_kind() const override { return SampleKind::transition; }
  SampleUse sample_use() const override { return SampleUse::once; }
  bool off_policy() const override { return false; }
  SampleLayout layout(const BrainSpec& spec) const override {
    return SampleLayout::begin(spec).add(&SampleLayout::reward).add(&SampleLayout::begins);
  }
  bool improves_each_brain() const override { return false; }
  // A brain's weights differ from the mean: its body explores by them alone.
  void explore(const BrainSpec&, const DecisionDraw&, std::span<const std::int32_t>,
               std::span<float> noise) const override {
    std::ranges::fill(noise, 0.0f);
  }

  Result<> describe(const BrainSpec& spec, const Network& network, const LearnInputs& intake,
                    LearnGraph& graph) const override {
    const NewSteps news = new_steps(spec, layout(spec), intake);
    Tally tally(spec, graph);
    tally.add(news);
    const std::int32_t seed[4] = {static_cast<std::int32_t>(spec.seed),
                                  static_cast<std::int32_t>(spec.seed >> 32), 0, 0};
    const Variable generator("generator", {4}, std::span<const std::int32_t>(seed));
    const Variable generation = Variable::zeros("generation", {1, 1});
    graph.state.push_back({"generator", generator});
    graph.state.push_back({"generation", generation, INT32_MIN, INT32_MAX, Merge::largest});

    std::vector<Update>& updates = graph.description.updates;
    const Tensor first = equal(generation.value(), 0.0f);  // weights of their own: nothing to compare
    const Tensor over = logical_or(tally.complete(), first);
    const Tensor moves = where(first, 0.0f, 1.0f), age = maximum(generation.value(), 1.0f);
    const Tensor ranks = reshape(shaped_ranks(tally.fitness(), tally.done()), {spec.brain_count, 1, 1});
    const Tensor sigma(spec.exploration);
    Tensor squares = zeros({1});
    for (std::size_t i = 0; i < network.parameters().size(); ++i) {
      const nn::Parameter& parameter = network.parameters()[i];
      const Tensor weights = parameter.variable.value(), mean = narrow(weights, 0, 0, 1);
      const Tensor ascent = sum(ranks * (weights - mean), {0}, true) /
                            (sigma * sigma * static_cast<float>(std::max(spec.brain_count, 2u) - 1));
      const Variable momentum = Variable::zeros("momentum." + parameter.name, mean.shape()),
                     square_mean = Variable::zeros("squares." + parameter.name, mean.shape());
      graph.state.push_back({momentum.name(), momentum});
      graph.state.push_back({square_mean.name(), square_mean});
      const Tensor direction = momentum.value() * kMomentum + ascent * (1 - kMomentum),
                   size = square_mean.value() * kSquares + square(ascent) * (1 - kSquares);
      const auto unbiased = [&](const Tensor& value, float kept) {
        return value / (1.0f - pow(Tensor(kept), unsqueeze(age, 2)));
      };
      const Tensor stepped = mean + unsqueeze(moves, 2) * spec.learning_rate *
                                        unbiased(direction, kMomentum) /
                                        (sqrt(unbiased(size, kSquares)) + kEpsilon);
      const Tensor drawn =
          stepped + sigma * antithetic(generator.value(), weights.shape(), static_cast<std::uint32_t>(i));
      const Tensor due = unsqueeze(over, 2), learned = logical_and(due, unsqueeze(greater(moves, 0.0f), 2));
      updates.push_back(Update::assign(parameter.variable, where(due, drawn, weights)));
      updates.push_back(Update::assign(momentum, where(learned, direction, momentum.value())));
      updates.push_back(Update::assign(square_mean, where(learned, size, square_mean.value())));
      squares = squares + reshape(sum(square(ascent)), {1});
    }
    tally.finish(over, updates);
    updates.push_back(Update::assign(generation, generation.value() + cast(over, DType::float32)));
    updates.push_back(Update::assign(
        generator, where(reshape(over, {1}), generator_next(generator.value()), generator.value())));
    graph.description.outputs = {sum(news.reward, {1}) * 0.0f};  // NaN where a reward is not finite
    const std::pair<Metric, Tensor> metrics[] = {
        {Metric::gradient_norm, expand(sqrt(squares), {spec.brain_count})}};
    add_metrics(metrics, graph);
    return {};
  }
};

}  // namespace

const Learner& es_learner() {
  static const EsLearner learner;
  return learner;
}

}  // namespace imprint::agent
