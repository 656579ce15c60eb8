// Soft actor-critic against plain loops in double precision, with gradients by differences.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <numbers>
#include <optional>
#include <string>
#include <vector>

#include "compute/base/philox.h"
#include "compute/nn/learners/sac.h"
#include "tests/reference/updates.h"

namespace imprint::nn {
namespace {

using reference::Bindings;
using reference::evaluate;
using Numbers = std::vector<double>;

double drawn(std::uint32_t index, std::uint32_t stream) {
  return 2 * philox_uniform(index, stream, 5, 6, 7) - 1;
}

// ---- a draw ----

TEST(SacDraw, HasTheDensityOfItsAction) {
  const Shape shape{1, 1, 1};
  const SquashedDraw draw = squashed(input("outputs", {1, 1, 2}), input("noise", shape));
  for (const double mean : {0.0, 0.8}) {
    double whole = 0, before = -1;
    for (int i = -800; i <= 800; ++i) {  // the density over all actions adds up to 1
      const Bindings bindings{{"outputs", {mean, -0.3}}, {"noise", {i / 100.0}}};
      const double action = evaluate(draw.action, bindings)[0];
      EXPECT_NEAR(action, std::tanh(mean + std::exp(-0.3) * i / 100.0), 1e-9);
      whole += std::exp(evaluate(draw.log_density, bindings)[0]) * (action - before);
      before = action;
    }
    EXPECT_NEAR(whole, 1, 0.005);
  }
}

TEST(SacDraw, IsFiniteHoweverFarTheNetworkGoes) {
  const SquashedDraw draw = squashed(input("outputs", {1, 1, 4}), input("noise", {1, 1, 2}));
  const Bindings bindings{{"outputs", {400, -400, 90, -90}}, {"noise", {3, -3}}};
  for (const double action : evaluate(draw.action, bindings)) EXPECT_EQ(std::abs(action), 1);
  EXPECT_TRUE(std::isfinite(evaluate(draw.log_density, bindings)[0]));
}

// ---- a step ----

constexpr std::size_t kBrains = 2, kRows = 4, kSeen = 3, kActions = 2, kHidden = 5, kStream = 3;

// One hidden layer of tanh, without biases.
struct SmallNet {
  Variable in, out;

  SmallNet(const std::string& name, std::size_t inputs, std::size_t outputs, std::uint32_t stream)
      : in(weights(name + " in", inputs, kHidden, stream)),
        out(weights(name + " out", kHidden, outputs, stream + 1)) {}
  static Variable weights(const std::string& name, std::size_t rows, std::size_t columns,
                          std::uint32_t stream) {
    std::vector<float> values(kBrains * rows * columns);
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = static_cast<float>(drawn(static_cast<std::uint32_t>(i), stream));
    return Variable(name,
                    {static_cast<std::int64_t>(kBrains), static_cast<std::int64_t>(rows),
                     static_cast<std::int64_t>(columns)},
                    values);
  }
  Tensor operator()(const Tensor& x) const { return matmul(tanh(matmul(x, in.value())), out.value()); }
  Parameters parameters() const {
    Parameters both;
    both.add("in", in);
    both.add("out", out);
    return both;
  }
};

// The same of one brain, in doubles.
struct PlainNet {
  Numbers in, out;

  static PlainNet of(const SmallNet& net, std::size_t brain) {
    const auto own = [&](const Variable& variable) {
      const Numbers all = reference::initial_values(variable);
      const auto size = static_cast<std::ptrdiff_t>(all.size() / kBrains),
                 first = size * std::ptrdiff_t(brain);
      return Numbers(all.begin() + first, all.begin() + first + size);
    };
    return {own(net.in), own(net.out)};
  }
  Numbers operator()(const Numbers& x) const {
    Numbers hidden(kHidden), y(out.size() / kHidden);
    for (std::size_t h = 0; h < kHidden; ++h) {
      for (std::size_t i = 0; i < x.size(); ++i) hidden[h] += x[i] * in[i * kHidden + h];
      for (std::size_t o = 0; o < y.size(); ++o) y[o] += std::tanh(hidden[h]) * out[h * y.size() + o];
    }
    return y;
  }
};

class SacStep : public ::testing::Test {
 protected:
  SacStep() {
    options.brains = kBrains;
    options.minibatch = kRows;
    options.actions = kActions;
    options.discount = 0.9;
    options.learning_rate = 0.01;
    options.target_rate = 0.25;
    options.initial_temperature = 0.4;
    const auto fill = [&](const char* name, std::size_t columns, std::uint32_t stream) {
      for (std::size_t i = 0; i < kBrains * kRows * columns; ++i)
        state[name].push_back(drawn(static_cast<std::uint32_t>(i), stream));
    };
    fill("seen", kSeen, 20);
    fill("next", kSeen, 21);
    fill("action", kActions, 22);
    fill("reward", 1, 23);
    state["continues"] = {1, 0, 1, 1, 0, 1, 1, 1};
    state["goal"] = Numbers(kBrains * kRows);
    state["active"] = {1, 1};
    state["generator"] = {11, 12, 0, 0};
  }

  // All that one step leaves: the variables by their names in `state`, and its loss.
  Numbers run() {
    SacNetworks networks;
    networks.policy = [&](const Tensor& seen, const Tensor&) { return policy(seen); };
    networks.policy_parameters = policy.parameters();
    for (std::size_t i = 0; i < 2; ++i) {
      const auto critic = [](const SmallNet& net) {
        return [&net](const Tensor& seen, const Tensor& action, const Tensor&) {
          return squeeze(net(concat({seen, action}, 2)), 2);
        };
      };
      networks.critic[i] = critic(critics[i]);
      networks.target[i] = critic(targets[i]);
      networks.critic_parameters.add(std::to_string(i), critics[i].parameters());
      networks.target_parameters.add(std::to_string(i), targets[i].parameters());
    }
    sac.emplace(options, networks);
    const Shape rows{kBrains, kRows};
    SacRows batch;
    batch.observation = input("seen", {kBrains, kRows, kSeen});
    batch.next_observation = input("next", {kBrains, kRows, kSeen});
    batch.goal = batch.next_goal = input("goal", rows, DType::int32);
    batch.action = input("action", {kBrains, kRows, kActions});
    batch.reward = input("reward", rows);
    batch.continues = input("continues", rows);
    const Tensor generator = input("generator", {4}, DType::int32);
    const auto step = sac->step(batch, input("active", {kBrains}, DType::boolean), generator, kStream);
    EXPECT_TRUE(step.ok());
    const Shape drawn_shape{kBrains, kRows, kActions};
    noise_next = evaluate(random_normal(generator, drawn_shape, kStream), state);
    noise_own = evaluate(random_normal(generator, drawn_shape, kStream + 1), state);
    const Numbers loss = evaluate(step->loss, state);
    reference::run_updates(step->updates, state);
    return loss;
  }

  Numbers row(const char* name, std::size_t brain, std::size_t r, std::size_t columns) const {
    const auto first = state.at(name).begin() + static_cast<std::ptrdiff_t>((brain * kRows + r) * columns);
    return Numbers(first, first + static_cast<std::ptrdiff_t>(columns));
  }

  struct Draw {
    Numbers action;
    double log_density = 0;
  };
  static Draw plain_draw(const Numbers& outputs, const Numbers& noise, std::size_t first) {
    Draw draw;
    for (std::size_t a = 0; a < kActions; ++a) {
      const double log_deviation = outputs[kActions + a], z = noise[first + a];
      const double action = std::tanh(outputs[a] + std::exp(log_deviation) * z);
      draw.action.push_back(action);
      draw.log_density +=
          -z * z / 2 - log_deviation - std::log(2 * std::numbers::pi) / 2 - std::log(1 - action * action);
    }
    return draw;
  }
  static double least(const PlainNet (&nets)[2], Numbers seen, const Numbers& action) {
    seen.insert(seen.end(), action.begin(), action.end());
    return std::min(nets[0](seen)[0], nets[1](seen)[0]);
  }

  // The losses of one brain.
  struct Plain {
    PlainNet policy, critics[2], targets[2];
  };
  Plain plain(std::size_t brain) const {
    return {PlainNet::of(policy, brain),
            {PlainNet::of(critics[0], brain), PlainNet::of(critics[1], brain)},
            {PlainNet::of(targets[0], brain), PlainNet::of(targets[1], brain)}};
  }
  double critic_loss(const Plain& nets, std::size_t brain) const {
    double loss = 0;
    for (std::size_t r = 0; r < kRows; ++r) {
      const Numbers next = row("next", brain, r, kSeen);
      const Draw draw = plain_draw(nets.policy(next), noise_next, (brain * kRows + r) * kActions);
      const double later =
          least(nets.targets, next, draw.action) - options.initial_temperature * draw.log_density;
      const double target = state.at("reward")[brain * kRows + r] +
                            options.discount * state.at("continues")[brain * kRows + r] * later;
      Numbers both = row("seen", brain, r, kSeen);
      for (const double number : row("action", brain, r, kActions)) both.push_back(number);
      for (const PlainNet& critic : nets.critics) loss += std::pow(critic(both)[0] - target, 2) / kRows;
    }
    return loss;
  }
  Draw own_draw(const Plain& nets, std::size_t brain, std::size_t r) const {
    return plain_draw(nets.policy(row("seen", brain, r, kSeen)), noise_own, (brain * kRows + r) * kActions);
  }
  double policy_loss(const Plain& nets, std::size_t brain) const {
    double loss = 0;
    for (std::size_t r = 0; r < kRows; ++r) {
      const Draw draw = own_draw(nets, brain, r);
      loss += (options.initial_temperature * draw.log_density -
               least(nets.critics, row("seen", brain, r, kSeen), draw.action)) /
              kRows;
    }
    return loss;
  }

  const Numbers& moment(const std::string& name) const {
    return state.at(sac->state().find("adam.first_moment." + name)->variable.name());
  }
  // Adam's first moment after one step is a tenth of the gradient.
  void expect_gradient(const std::string& name, std::size_t brain, Plain& nets, Numbers& weights,
                       const std::function<double(const Plain&, std::size_t)>& loss) {
    for (std::size_t i = 0; i < weights.size(); ++i) {
      const double centre = weights[i];
      weights[i] = centre + 1e-5;
      const double above = loss(nets, brain);
      weights[i] = centre - 1e-5;
      const double below = loss(nets, brain);
      weights[i] = centre;
      EXPECT_NEAR(moment(name)[brain * weights.size() + i], 0.1 * (above - below) / 2e-5, 1e-6) << name << i;
    }
  }

  SacOptions options;
  SmallNet policy{"policy", kSeen, 2 * kActions, 0};
  SmallNet critics[2]{{"critic 0", kSeen + kActions, 1, 2}, {"critic 1", kSeen + kActions, 1, 4}};
  SmallNet targets[2]{{"target 0", kSeen + kActions, 1, 6}, {"target 1", kSeen + kActions, 1, 8}};
  std::optional<Sac> sac;
  Bindings state;
  Numbers noise_next, noise_own;
};

TEST_F(SacStep, FollowsTheLossesOfItsHeader) {
  const Numbers loss = run();
  for (std::size_t brain = 0; brain < kBrains; ++brain) {
    Plain nets = plain(brain);
    const auto of_critics = [&](const Plain& of, std::size_t b) { return critic_loss(of, b); };
    const auto of_policy = [&](const Plain& of, std::size_t b) { return policy_loss(of, b); };
    EXPECT_NEAR(loss[brain], critic_loss(nets, brain), 1e-6);
    expect_gradient("actor.in", brain, nets, nets.policy.in, of_policy);
    expect_gradient("actor.out", brain, nets, nets.policy.out, of_policy);
    for (std::size_t i = 0; i < 2; ++i) {
      expect_gradient("critic." + std::to_string(i) + ".in", brain, nets, nets.critics[i].in, of_critics);
      expect_gradient("critic." + std::to_string(i) + ".out", brain, nets, nets.critics[i].out, of_critics);
    }
    double density = 0;
    for (std::size_t r = 0; r < kRows; ++r) density += own_draw(nets, brain, r).log_density / kRows;
    EXPECT_NEAR(moment("log_temperature")[brain], -0.1 * (density - double{kActions}), 1e-6);
  }
}

TEST_F(SacStep, TheTargetsFollowTheNewCritics) {
  run();
  for (std::size_t i = 0; i < 2; ++i) {
    const Numbers before = reference::initial_values(targets[i].in);
    for (std::size_t w = 0; w < before.size(); ++w)
      EXPECT_NEAR(state.at(targets[i].in.name())[w],
                  0.75 * before[w] + 0.25 * state.at(critics[i].in.name())[w], 1e-9);
  }
}

// A target entropy that the policy lies below raises the temperature, one that it lies above lowers it.
TEST_F(SacStep, TheTemperatureMovesTheEntropyTowardsItsTarget) {
  const auto temperature = [&] {
    run();
    return state.at(sac->state().find("log_temperature")->variable.name())[0];
  };
  options.entropy_per_action = 3;
  EXPECT_NEAR(temperature(), std::log(0.4) + 0.01, 1e-5);
  for (const nn::Parameter& entry : sac->state()) state.erase(entry.variable.name());
  options.entropy_per_action = -9;
  EXPECT_NEAR(temperature(), std::log(0.4) - 0.01, 1e-5);
}

TEST_F(SacStep, ClipsThePolicyAndTheCriticsApart) {
  options.max_gradient_norm = 1e-3;
  run();
  const auto norm = [&](const std::vector<std::string>& names) {
    double squares = 0;
    for (const std::string& name : names) {
      const Numbers& all = moment(name);
      for (std::size_t i = 0; i < all.size() / kBrains; ++i) squares += 100 * all[i] * all[i];
    }
    return std::sqrt(squares);
  };
  EXPECT_NEAR(norm({"actor.in", "actor.out"}), 1e-3, 2e-6);
  EXPECT_NEAR(norm({"critic.0.in", "critic.0.out", "critic.1.in", "critic.1.out"}), 1e-3, 2e-6);
}

TEST_F(SacStep, ABrainThatRestsOrIsNotFiniteKeepsItsState) {
  for (const bool rests : {true, false}) {
    if (rests) {
      state["active"] = {0, 1};
    } else {
      state["active"] = {1, 1};
      state["reward"][0] = std::nan("");
    }
    for (const SmallNet* net : {&policy, &critics[0], &critics[1], &targets[0], &targets[1]})
      state.erase(net->in.name());
    const Numbers loss = run();
    EXPECT_EQ(std::isfinite(loss[0]), rests);
    EXPECT_TRUE(std::isfinite(loss[1]));
    for (const SmallNet* net : {&policy, &critics[0], &targets[0]}) {
      const Numbers before = reference::initial_values(net->in), &after = state.at(net->in.name());
      const std::size_t half = before.size() / 2;
      EXPECT_TRUE(std::equal(before.begin(), before.begin() + std::ptrdiff_t(half), after.begin()));
      EXPECT_NE(before[half], after[half]) << "the other brain learns";
    }
  }
}

}  // namespace
}  // namespace imprint::nn
