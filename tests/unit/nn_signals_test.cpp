// Reward signals against plain loops in double precision, with gradients by differences.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "compute/base/philox.h"
#include "compute/graph/gradients/autodiff.h"
#include "compute/nn/learners/reward_signals.h"
#include "tests/reference/updates.h"

namespace imprint::nn::signals_test {
namespace {

using reference::Bindings;
using reference::evaluate;
using Numbers = std::vector<double>;

constexpr std::size_t kBrains = 2, kRows = 3, kSeen = 2, kChoices = 3, kAction = kChoices + 1, kHidden = 4,
                      kFeatures = 2;

double drawn(std::size_t index, std::uint32_t stream) {
  return 2 * philox_uniform(static_cast<std::uint32_t>(index), stream, 5, 6, 7) - 1;
}

SignalShape shape(const std::string& name) {
  SignalShape made;
  made.name = name;
  made.brains = kBrains;
  made.observations = kSeen;
  made.hidden = kHidden;
  made.features = kFeatures;
  made.action = {{static_cast<std::int64_t>(kChoices)}, 1};
  made.seed = 3;
  return made;
}

// The layers of one brain, read from the parameters by their names.
class PlainNet {
 public:
  PlainNet(const Parameters& of, const std::string& part, bool smooth, std::size_t brain,
           const Bindings& state)
      : smooth_(smooth) {
    for (std::size_t i = 0;; ++i) {
      const std::string layer = part + "." + std::to_string(i);
      const Parameter* weight = of.find(layer + ".weight");
      if (!weight) break;
      const auto own = [&](const Variable& variable) {
        const auto bound = state.find(variable.name());
        const Numbers all = bound == state.end() ? reference::initial_values(variable) : bound->second;
        const auto size = static_cast<std::ptrdiff_t>(all.size() / kBrains);
        const auto first = all.begin() + size * static_cast<std::ptrdiff_t>(brain);
        return Numbers(first, first + size);
      };
      weights_.push_back(own(weight->variable));
      biases_.push_back(own(of.find(layer + ".bias")->variable));
    }
  }
  Numbers operator()(const Numbers& x) const { return forward(x).back(); }
  // The slope of the first output by the input.
  Numbers slope(const Numbers& x) const {
    const std::vector<Numbers> values = forward(x);
    Numbers back(values.back().size());
    back[0] = 1;
    for (std::size_t layer = weights_.size(); layer-- > 0;) {
      if (layer + 1 < weights_.size())
        for (std::size_t o = 0; o < back.size(); ++o) {
          const double y = values[layer + 1][o];
          back[o] *= smooth_ ? 1 - y * y : (y > 0 ? 1 : 0);
        }
      const std::size_t in = values[layer].size(), out = back.size();
      Numbers before(in);
      for (std::size_t i = 0; i < in; ++i)
        for (std::size_t o = 0; o < out; ++o) before[i] += weights_[layer][i * out + o] * back[o];
      back = before;
    }
    return back;
  }

 private:
  std::vector<Numbers> forward(const Numbers& x) const {
    std::vector<Numbers> values{x};
    for (std::size_t layer = 0; layer < weights_.size(); ++layer) {
      const std::size_t out = biases_[layer].size();
      Numbers y = biases_[layer];
      for (std::size_t i = 0; i < values.back().size(); ++i)
        for (std::size_t o = 0; o < out; ++o) y[o] += values.back()[i] * weights_[layer][i * out + o];
      if (layer + 1 < weights_.size())
        for (double& value : y) value = smooth_ ? std::tanh(value) : std::max(value, 0.0);
      values.push_back(y);
    }
    return values;
  }

  std::vector<Numbers> weights_, biases_;
  bool smooth_;
};

double softplus(double x) { return std::log1p(std::exp(x)); }
double square_error(const Numbers& a, const Numbers& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
  return sum / static_cast<double>(a.size());
}
Numbers joined(Numbers a, const Numbers& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

class Signals : public ::testing::Test {
 protected:
  Signals() {
    const auto fill = [&](const char* name, std::size_t columns, std::uint32_t stream) {
      for (std::size_t i = 0; i < kBrains * kRows * columns; ++i) state[name].push_back(drawn(i, stream));
    };
    fill("seen", kSeen, 20);
    fill("next", kSeen, 21);
    fill("number", 1, 22);
    fill("model", kSeen, 23);
    fill("model number", 1, 24);
    fill("mix", 1, 25);
    for (double& mix : state["mix"]) mix = (mix + 1) / 2;
    state["choice"] = {0, 2, 1, 1, 0, 2};
    state["model choice"] = {1, 1, 2, 0, 2, 0};
    state["known"] = {1, 0, 1, 1, 1, 0};
  }

  static SignalRows rows_named(const std::string& prefix, const char* seen) {
    const Shape flat{kBrains, kRows};
    SignalRows rows;
    rows.observation = input(seen, {kBrains, kRows, kSeen});
    rows.action =
        action_numbers(shape("").action, input(prefix + "choice", {kBrains, kRows, 1}, DType::int32),
                       input(prefix + "number", {kBrains, kRows, 1}));
    return rows;
  }
  static SignalRows rows() {
    SignalRows made = rows_named("", "seen");
    made.next_observation = input("next", {kBrains, kRows, kSeen});
    made.known = input("known", {kBrains, kRows}, DType::boolean);
    return made;
  }
  Tensor loss(const RewardSignal& signal) const {
    return signal.loss(rows(), rows_named("model ", "model"), input("mix", {kBrains, kRows, 1})).value();
  }

  Numbers row(const char* name, std::size_t brain, std::size_t r, std::size_t columns) const {
    const auto first = state.at(name).begin() + static_cast<std::ptrdiff_t>((brain * kRows + r) * columns);
    return Numbers(first, first + static_cast<std::ptrdiff_t>(columns));
  }
  Numbers action(const std::string& prefix, std::size_t brain, std::size_t r) const {
    Numbers numbers(kAction);
    numbers[static_cast<std::size_t>(row((prefix + "choice").c_str(), brain, r, 1)[0])] = 1;
    numbers[kChoices] = row((prefix + "number").c_str(), brain, r, 1)[0];
    return numbers;
  }

  using PlainLoss = std::function<double(std::size_t brain)>;
  // The loss is that of plain loops, and its gradient that of their differences.
  void expect_loss(const RewardSignal& signal, const PlainLoss& plain) {
    const Numbers found = evaluate(loss(signal), state);
    for (std::size_t brain = 0; brain < kBrains; ++brain) EXPECT_NEAR(found[brain], plain(brain), 1e-6);
    const auto slopes = gradients(sum(loss(signal)), signal.learned().values());
    ASSERT_TRUE(slopes.ok()) << slopes.error().message;
    for (std::size_t k = 0; k < signal.learned().size(); ++k) {
      const Variable& variable = signal.learned()[k].variable;
      const Numbers slope = evaluate((*slopes)[k], state);
      const Numbers before = reference::initial_values(variable);
      for (std::size_t i = 0; i < before.size(); ++i) {
        constexpr double kStep = 1e-5;
        double apart = 0;
        for (const double side : {kStep, -kStep}) {
          state[variable.name()] = before;
          state[variable.name()][i] += side;
          for (std::size_t brain = 0; brain < kBrains; ++brain) apart += side / kStep * plain(brain);
        }
        state.erase(variable.name());
        EXPECT_NEAR(slope[i], apart / (2 * kStep), 2e-5 * std::max(1.0, std::abs(slope[i])))
            << signal.learned()[k].name << "[" << i << "]";
      }
    }
  }

  Bindings state;
};

TEST_F(Signals, NoveltyIsTheErrorOfAForecastOfRandomFeatures) {
  const auto signal = novelty(shape("rnd"));
  const auto error = [&](std::size_t brain, std::size_t r) {
    const Numbers seen = row(state["known"][brain * kRows + r] > 0 ? "next" : "seen", brain, r, kSeen);
    return square_error(PlainNet(signal->learned(), "predictor", false, brain, state)(seen),
                        PlainNet(signal->fixed(), "target", false, brain, state)(seen));
  };
  const Numbers reward = evaluate(signal->reward(rows()), state);
  for (std::size_t i = 0; i < kBrains * kRows; ++i) EXPECT_NEAR(reward[i], error(i / kRows, i % kRows), 1e-6);
  expect_loss(*signal, [&](std::size_t brain) {
    double sum = 0;
    for (std::size_t r = 0; r < kRows; ++r) sum += error(brain, r) / kRows;
    return sum;
  });
}

TEST_F(Signals, SurpriseIsTheErrorOfAForecastOfFeaturesThatTellTheAction) {
  const auto signal = surprise(shape("icm"));
  const auto net = [&](const char* part, std::size_t brain) {
    return PlainNet(signal->learned(), part, false, brain, state);
  };
  const auto forecast = [&](std::size_t brain, std::size_t r) {
    const Numbers before = net("features", brain)(row("seen", brain, r, kSeen)),
                  after = net("features", brain)(row("next", brain, r, kSeen));
    return square_error(net("forward", brain)(joined(before, action("", brain, r))), after);
  };
  const auto told = [&](std::size_t brain, std::size_t r) {
    const Numbers before = net("features", brain)(row("seen", brain, r, kSeen)),
                  after = net("features", brain)(row("next", brain, r, kSeen));
    const Numbers logits = net("inverse", brain)(joined(before, after)), taken = action("", brain, r);
    double sum = 0, own = 0;
    for (std::size_t c = 0; c < kChoices; ++c) {
      sum += std::exp(logits[c]);
      own += taken[c] * logits[c];
    }
    return std::log(sum) - own + (logits[kChoices] - taken[kChoices]) * (logits[kChoices] - taken[kChoices]);
  };
  const Numbers reward = evaluate(signal->reward(rows()), state);
  for (std::size_t i = 0; i < kBrains * kRows; ++i)
    EXPECT_NEAR(reward[i], state["known"][i] > 0 ? forecast(i / kRows, i % kRows) : 0, 1e-6);
  expect_loss(*signal, [&](std::size_t brain) {
    double sum = 0, known = 0;
    for (std::size_t r = 0; r < kRows; ++r) {
      if (state["known"][brain * kRows + r] == 0) continue;
      sum += 0.2 * forecast(brain, r) + 0.8 * told(brain, r);
      ++known;
    }
    return sum / known;
  });
}

TEST_F(Signals, ImitationTellsApartWithSlopesOfOne) {
  const auto signal = imitation(shape("gail"), 10);
  const auto judge = [&](std::size_t brain) {
    return PlainNet(signal->learned(), "judge", true, brain, state);
  };
  const auto own = [&](std::size_t brain, std::size_t r) {
    return joined(row("seen", brain, r, kSeen), action("", brain, r));
  };
  const auto model = [&](std::size_t brain, std::size_t r) {
    return joined(row("model", brain, r, kSeen), action("model ", brain, r));
  };
  const Numbers reward = evaluate(signal->reward(rows()), state);
  for (std::size_t i = 0; i < kBrains * kRows; ++i) {
    const double look = 1 / (1 + std::exp(-judge(i / kRows)(own(i / kRows, i % kRows))[0]));
    EXPECT_NEAR(reward[i], -std::log(1 - look), 1e-6);
  }
  expect_loss(*signal, [&](std::size_t brain) {
    double sum = 0;
    for (std::size_t r = 0; r < kRows; ++r) {
      const Numbers a = own(brain, r), b = model(brain, r);
      sum += softplus(-judge(brain)(b)[0]) + softplus(judge(brain)(a)[0]);
      const double mix = state["mix"][brain * kRows + r];
      Numbers between(a.size());
      for (std::size_t i = 0; i < a.size(); ++i) between[i] = a[i] + (b[i] - a[i]) * mix;
      double square = 1e-12;
      for (const double slope : judge(brain).slope(between)) square += slope * slope;
      sum += 10 * (std::sqrt(square) - 1) * (std::sqrt(square) - 1);
    }
    return sum / kRows;
  });
}

// One optimiser step by hand: scales, strengths, and who takes part.
TEST_F(Signals, AreAddedByTheirStrengthsAndLearnTogether) {
  const std::shared_ptr<RewardSignal> novel = novelty(shape("a")), like = imitation(shape("b"));
  RewardSignalsOptions options;
  options.brains = kBrains;
  options.observations = kSeen;
  options.reward_strength = 0.5;
  options.learning_rate = 0.01;
  const RewardSignals signals(options, {{"novelty", novel, 2, 0.9}, {"imitation", like, 3, 0.9}});
  state["reward"] = {1, 2, 3, 4, 5, 6};
  state["active"] = {1, 0};
  state["shown"] = {1, 1};
  state["generator"] = {1, 2, 0, 0};
  const Tensor active = input("active", {kBrains}, DType::boolean);
  std::vector<Update> updates;
  const SignalRows seen = rows();
  const Tensor total = signals.total(input("reward", {kBrains, kRows}), seen, active, updates);
  const Numbers found = evaluate(total, state), raw = evaluate(novel->reward(seen), state),
                looks = evaluate(like->reward(seen), state);
  for (std::size_t brain = 0; brain < kBrains; ++brain) {
    double squares = 0;
    for (std::size_t r = 0; r < kRows; ++r)
      squares += raw[brain * kRows + r] * raw[brain * kRows + r] / kRows;
    // An inactive brain has the first moments: mean 0, variance 1.
    const double size = brain == 0 ? std::sqrt(squares) : 1;
    for (std::size_t r = 0; r < kRows; ++r) {
      const std::size_t i = brain * kRows + r;
      EXPECT_NEAR(found[i],
                  0.5 * state["reward"][i] + 2 * std::min(raw[i] / size, 5.0) + 3 * std::min(looks[i], 5.0),
                  2e-3 * std::abs(found[i]));
    }
  }
  const auto learned =
      signals.learn(seen, rows_named("model ", "model"), input("shown", {kBrains}, DType::boolean), active,
                    input("generator", {4}, DType::int32), 0);
  ASSERT_TRUE(learned.ok()) << learned.error().message;
  const Parameters parameters = [&] {
    Parameters all;
    all.add("novelty", novel->learned());
    all.add("imitation", like->learned());
    return all;
  }();
  Bindings after = state;
  reference::run_updates(*learned, after);
  for (const Parameter& parameter : parameters) {
    const Numbers before = reference::initial_values(parameter.variable),
                  now = reference::content(parameter.variable, after);
    const std::size_t half = before.size() / kBrains;
    // Adam's first step: by the rate, wherever there is a slope.
    double moved = 0;
    for (std::size_t i = 0; i < half; ++i) moved = std::max(moved, std::abs(now[i] - before[i]));
    EXPECT_NEAR(moved, 0.01, 2e-4) << parameter.name;
    for (std::size_t i = half; i < before.size(); ++i) EXPECT_EQ(now[i], before[i]) << parameter.name;
  }
}

}  // namespace
}  // namespace imprint::nn::signals_test
