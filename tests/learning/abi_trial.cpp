#include "tests/learning/abi_trial.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <imprint/imprint.hpp>
#include <map>
#include <memory>
#include <numeric>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tests/learning/beside_options.h"
#include "tests/learning/signal_games.h"
#include "tools/trials/environments.h"

namespace imprint::trials {
namespace {

using namespace imprint::game;

void must(const game::Outcome& outcome) {
  if (!outcome) throw std::runtime_error(outcome.message());
}
template <class T>
T must(Made<T> made) {
  if (!made) throw std::runtime_error(made.outcome.message());
  return std::move(made.value);
}

constexpr std::uint32_t kMoves = 6;

// A bandit-like fight. The opponent's next move follows from its last one by a habit, four times in five;
// else it is any. Observation: the last move (6), stance (3), and health, distance, stamina, which say
// nothing. Reward: 1 for the move that counters, -1 for a hit. Rounds have 20 moves.
class Fight final : public Environment {
 public:
  explicit Fight(std::uint64_t seed) : draws_(seed, 1u << 24) { new_habit(); }
  int observation_count() const override { return 12; }
  int choice_count() const override { return kMoves; }
  int step_limit() const override { return 1'000'000; }
  void new_habit() {
    std::iota(habit_.begin(), habit_.end(), 0u);
    for (std::uint32_t i = kMoves - 1; i > 0; --i) std::swap(habit_[i], habit_[below(i + 1)]);
  }
  static double bayes() { return 0.8 + 0.2 / kMoves; }

  void observe(std::span<float> into) const override {
    std::ranges::fill(into, 0.0f);
    into[last_] = 1;
    into[kMoves + stance_] = 1;
    std::ranges::copy(noise_, into.begin() + 9);
  }
  std::span<double> state() override { return {}; }

 protected:
  void start(Draws&) override {
    turn_ = 0;
    next_scene();
  }
  Outcome advance(double action) override {
    const std::uint32_t move = draws_.between(0, 1) < 0.8 ? habit_[last_] : below(kMoves);
    last_ = move;
    next_scene();
    return {action == move ? 1.0 : -1.0, ++turn_ % 20 == 0, false};
  }

 private:
  std::uint32_t below(std::uint32_t count) {
    return std::min(count - 1, static_cast<std::uint32_t>(draws_.between(0, count)));
  }
  void next_scene() {
    if (draws_.between(0, 1) < 0.3) last_ = below(kMoves);
    stance_ = below(3);
    for (float& number : noise_) number = static_cast<float>(draws_.between(-1, 1));
  }

  Draws draws_;
  std::array<std::uint32_t, kMoves> habit_{};
  std::array<float, 3> noise_{};
  std::uint32_t last_ = 0, stance_ = 0;
  int turn_ = 0;
};

// A cart pole of which only the positions are seen.
class BlindCartPole final : public Environment {
 public:
  int observation_count() const override { return 2; }
  int choice_count() const override { return whole_->choice_count(); }
  int step_limit() const override { return whole_->step_limit(); }
  void observe(std::span<float> into) const override {
    std::array<float, 4> all{};
    whole_->observe(all);
    into[0] = all[0];
    into[1] = all[2];
  }
  std::span<double> state() override { return whole_->state(); }

 protected:
  void start(Draws& draws) override { whole_->reset(draws); }
  Outcome advance(double action) override { return whole_->step(action); }

 private:
  std::unique_ptr<Environment> whole_ = make_cart_pole();
};

// A corridor that ends in a fork. The first observation alone shows the right way. Observation: the sign,
// corridor, fork. Choices: on, left, right. Reward: 1 for the right way; standing still costs 0.05. Bakker,
// Reinforcement Learning with Long Short-Term Memory, 2002.
class Maze final : public Environment {
 public:
  explicit Maze(std::uint32_t length) : length_(length) {}
  int observation_count() const override { return 3; }
  int choice_count() const override { return 3; }
  int step_limit() const override { return static_cast<int>(2 * length_ + 10); }
  void observe(std::span<float> into) const override {
    into[0] = place_ == 0 ? static_cast<float>(way_) : 0.0f;
    into[1] = place_ < length_ ? 1.0f : 0.0f;
    into[2] = place_ == length_ ? 1.0f : 0.0f;
  }
  std::span<double> state() override { return {}; }

 protected:
  void start(Draws& draws) override {
    way_ = draws.between(0, 1) < 0.5 ? -1 : 1;
    place_ = 0;
  }
  Outcome advance(double action) override {
    const int choice = static_cast<int>(action);
    if (place_ < length_) {
      place_ += choice == 0 ? 1 : 0;
      return {choice == 0 ? 0.0 : -0.05, false, false};
    }
    if (choice == 0) return {-0.05, false, false};
    return {(choice == 1) == (way_ < 0) ? 1.0 : 0.0, true, false};
  }

 private:
  std::uint32_t length_, place_ = 0;
  int way_ = 1;
};

constexpr std::uint32_t kCells = 12;

// A ball falls through a picture of 12 x 12 cells, one cell per step and perhaps aside; a paddle of three
// cells at the bottom must catch it. Choices: left, stay, right. Reward at the end: 1 or -1. After Mnih et
// al., Recurrent Models of Visual Attention, 2014.
class Catch final : public Environment {
 public:
  explicit Catch(std::uint32_t pixels) : pixels_(pixels) {}
  int observation_count() const override { return static_cast<int>(side() * side()); }
  int choice_count() const override { return 3; }
  int step_limit() const override { return 1'000; }
  std::uint32_t side() const { return kCells * pixels_; }
  void observe(std::span<float> into) const override {
    for (std::uint32_t y = 0; y < side(); ++y)
      for (std::uint32_t x = 0; x < side(); ++x) {
        const int row = static_cast<int>(y / pixels_), column = static_cast<int>(x / pixels_);
        const bool ball = row == row_ && column == ball_;
        const bool paddle = row == kLast && std::abs(column - paddle_) <= 1;
        into[y * side() + x] = ball || paddle ? 1.0f : 0.0f;
      }
  }
  std::span<double> state() override { return {}; }

 protected:
  void start(Draws& draws) override {
    row_ = 0;
    ball_ = static_cast<int>(draws.between(0, kCells));
    paddle_ = 1 + static_cast<int>(draws.between(0, kCells - 2));
    drift_ = static_cast<int>(draws.between(0, 3)) - 1;
  }
  Outcome advance(double action) override {
    paddle_ = std::clamp(paddle_ + static_cast<int>(action) - 1, 1, kLast - 1);
    ++row_;
    if (row_ % 2 == 0) ball_ = std::clamp(ball_ + drift_, 0, kLast);
    if (row_ < kLast) return {0, false, false};
    return {std::abs(ball_ - paddle_) <= 1 ? 1.0 : -1.0, true, false};
  }

 private:
  static constexpr int kLast = static_cast<int>(kCells) - 1;
  std::uint32_t pixels_;
  int row_ = 0, ball_ = 0, paddle_ = 1, drift_ = 0;
};

constexpr std::uint32_t kMostEntities = 12, kColours = 3;

// 2 to 12 entities around, in any order: which colour has the nearest? Observation: their number, then place
// and colour of each. One step per episode. Reward: 1 for the right colour.
class Nearest final : public Environment {
 public:
  static constexpr std::uint32_t kFeatures = 2 + kColours;
  int observation_count() const override { return 1 + kMostEntities * kFeatures; }
  int choice_count() const override { return kColours; }
  int step_limit() const override { return 10; }
  void observe(std::span<float> into) const override { std::ranges::copy(seen_, into.begin()); }
  std::span<double> state() override { return {}; }

 protected:
  void start(Draws& draws) override {
    seen_.fill(0);
    const auto count = static_cast<std::uint32_t>(draws.between(2, kMostEntities + 1));
    seen_[0] = static_cast<float>(count);
    double nearest = 4;
    for (std::uint32_t i = 0; i < count; ++i) {
      const double x = draws.between(-1, 1), y = draws.between(-1, 1);
      const auto colour = static_cast<std::uint32_t>(draws.between(0, kColours));
      float* entity = seen_.data() + 1 + i * kFeatures;
      entity[0] = static_cast<float>(x);
      entity[1] = static_cast<float>(y);
      entity[2 + colour] = 1;
      if (x * x + y * y >= nearest) continue;
      nearest = x * x + y * y;
      answer_ = colour;
    }
  }
  Outcome advance(double action) override {
    return {static_cast<std::uint32_t>(action) == answer_ ? 1.0 : 0.0, true, false};
  }

 private:
  std::array<float, 1 + kMostEntities * kFeatures> seen_{};
  std::uint32_t answer_ = 0;
};

// Empty: one vector.
std::vector<imp_stream> streams_of(const AbiTrial& trial) {
  if (!trial.streams) return {};
  if (trial.game == "catch") return {picture_stream(1, kCells * trial.pixels, kCells * trial.pixels)};
  if (trial.game == "nearest") return {entity_stream(kMostEntities, Nearest::kFeatures)};
  return {};
}

std::unique_ptr<Environment> make_game(const AbiTrial& trial) {
  if (trial.game == "cartpole") return make_cart_pole();
  if (trial.game == "blind-cartpole") return std::make_unique<BlindCartPole>();
  if (trial.game == "catch") return std::make_unique<Catch>(trial.pixels);
  if (trial.game == "nearest") return std::make_unique<Nearest>();
  if (trial.game == "maze") return std::make_unique<Maze>(trial.length);
  if (trial.game == "keys") return make_keys();
  if (trial.game == "lock") return make_lock(trial.length);
  if (trial.game == "circle") return make_circle();
  if (trial.game == "shown-mountain-car") return make_shown_mountain_car();
  if (trial.game == "acrobot") return make_acrobot();
  if (trial.game == "mountain-car") return make_mountain_car();
  if (trial.game == "mountain-car-continuous") return make_mountain_car_continuous();
  if (trial.game == "pendulum") return make_pendulum();
  if (trial.game == "fight") return std::make_unique<Fight>(trial.seed);
  throw std::runtime_error("game: found '" + trial.game + "', expected one of " + kGameNames);
}

// Removes them from the options.
NetworkOptions network_of(std::map<std::string, double>& given) {
  NetworkOptions network;
  take(given, "stack", network.stack);
  take(given, "cell", network.cell);
  take(given, "cell_size", network.cell_size);
  take(given, "sequence_steps", network.sequence_steps);
  return network;
}

template <class Options>
Options options_of(const AbiTrial& trial) {
  Options options;
  std::map<std::string, double> given = trial.options;
  network_of(given);
  const auto one = [&](const char* name, auto& field) { take(given, name, field); };
  one("learn_period_frames", options.learn_period_frames);
  one("batch_size", options.batch_size);
  one("learning_rate", options.learning_rate);
  one("max_gradient_norm", options.max_gradient_norm);
  if constexpr (requires { options.replay_capacity; }) one("replay_capacity", options.replay_capacity);
  if constexpr (requires { options.exploration; }) one("exploration", options.exploration);
  if constexpr (requires { options.discount; }) one("discount", options.discount);
  if constexpr (requires { options.target_rate; }) one("target_rate", options.target_rate);
  if constexpr (requires { options.entropy_per_action; })
    one("entropy_per_action", options.entropy_per_action);
  if constexpr (requires { options.epsilon; }) {
    one("target_period", options.target_period);
    one("double_estimate", options.double_estimate);
    one("epsilon", options.epsilon);
    one("epsilon_decisions", options.epsilon_decisions);
    one("n_step", options.n_step);
    one("squared_loss", options.squared_loss);
    one("dueling", options.dueling);
    one("follow_changes", options.follow_changes);
    one("rate_half_life", options.rate_half_life);
  }
  if constexpr (requires { options.drift; }) {
    one("drift", options.drift);
    one("thompson", options.thompson);
    one("follow_changes", options.follow_changes);
  }
  if constexpr (requires { options.rollout_steps; }) {
    one("rollout_steps", options.rollout_steps);
    one("epochs", options.epochs);
    one("advantage_decay", options.advantage_decay);
    one("clip_range", options.clip_range);
    one("entropy_coefficient", options.entropy_coefficient);
    one("value_coefficient", options.value_coefficient);
    one("max_divergence", options.max_divergence);
    one("clip_values", options.clip_values);
    one("normalise_observations", options.normalise_observations);
    one("normalise_rewards", options.normalise_rewards);
  }
  if (!given.empty())
    throw std::runtime_error("options: found '" + given.begin()->first + "', which this learner has not");
  return options;
}

Context open_context(std::vector<std::string>* log) {
  StandaloneDesc device;
  device.device = "cpu";
  imp_limits limits = imp_limits_init();
  limits.gpu_us_per_frame = 1'000'000'000;
  limits.memory_cap_bytes = std::uint64_t{1} << 32;
  imp_host host = imp_host_init();
  host.user = log;
  host.log = [](void* user, imp_log_level level, const char* text) {
    if (user && level >= IMP_LOG_WARNING) static_cast<std::vector<std::string>*>(user)->emplace_back(text);
  };
  return must(Context::create_standalone(Library(imp_get_api), device, host, limits));
}

// A body in its own copy of the game.
struct Body {
  std::unique_ptr<Environment> world;
  std::unique_ptr<Draws> draws;
  Agent agent;
  std::vector<float> seen;
  double returned = 0;
  bool asked = false, done = false;
};

// Bodies that share one brain of their own context.
class Stage {
 public:
  Stage(const AbiTrial& trial, std::uint32_t bodies, bool learns, std::vector<std::string>* log)
      : context_(open_context(log)), miss_is_zero_(trial.miss_is_zero), tells_(trial.tells) {
    BrainDesc desc;
    desc.observation_count = static_cast<std::uint32_t>(make_game(trial)->observation_count());
    if (const int choices = make_game(trial)->choice_count(); choices > 0)
      desc.branch_sizes = {static_cast<std::uint32_t>(choices)};
    else
      desc.continuous_count = 1;
    desc.agents_per_brain = bodies;
    desc.seed = trial.seed;
    std::map<std::string, double> given = trial.options;
    desc.network = network_of(given);
    const std::vector<imp_stream> streams = streams_of(trial);
    desc.network.set_streams(streams);
    if (!learns) desc.action_latency_frames = 1;
    if (trial.learner == "sac") {
      desc.learner = options_of<SacOptions>(trial);  // its policy squashes: no other learner acts by it
    } else if (!learns) {
      desc.learner = NoLearner();
    } else if (trial.learner == "dqn") {
      desc.learner = options_of<DqnOptions>(trial);
    } else if (trial.learner == "ppo") {
      desc.learner = options_of<PpoOptions>(trial);
    } else if (trial.learner == "bandit") {
      desc.learner = options_of<BanditOptions>(trial);
    } else if (trial.learner == "feedback") {
      desc.learner = options_of<FeedbackOptions>(trial);
    } else {
      throw std::runtime_error("learner: found '" + trial.learner +
                               "', expected dqn, ppo, sac, bandit or feedback");
    }
    if (learns) take_beside(trial, desc);
    brain_ = must(context_.create_brain(desc));
    for (std::uint32_t i = 0; i < bodies; ++i) {
      Body body{make_game(trial), std::make_unique<Draws>(trial.seed, (learns ? 0 : 1u << 20) + i), {}, {}};
      body.agent = must(brain_.create_agent());
      if (!learns) must(body.agent.set_mode(game::Mode::inference));
      body.world->reset(*body.draws);
      body.seen.resize(desc.observation_count);
      bodies_.push_back(std::move(body));
    }
    must(context_.warmup());
    if (learns && trial.shown > 0) show(trial);
  }

  std::vector<Body>& bodies() { return bodies_; }
  Brain& brain() { return brain_; }
  Context& context() { return context_; }

  // One frame. told(body, outcome) for each action that was taken.
  template <class Told>
  void frame(const Told& told) {
    ++frame_;
    must(context_.frame_begin(frame_, static_cast<double>(frame_) / 60));
    for (Body& body : bodies_) {
      if (body.done) continue;
      if (body.asked) {
        const Made<Action> made = body.agent.act();
        must(made.outcome);
        if (!made.outcome.ready()) continue;
        act(body, made.value, told);
        if (body.done) continue;
      }
      body.world->observe(body.seen);
      must(body.agent.observe(body.seen));
      body.asked = true;
    }
    must(context_.submit());
    must(context_.frame_end());
  }

 private:
  // Some steps of the game's player.
  void show(const AbiTrial& trial) {
    const std::unique_ptr<Environment> world = make_game(trial);
    const auto& game = dynamic_cast<const ShownGame&>(*world);
    Draws draws(trial.seed, 1u << 22);
    world->reset(draws);
    std::vector<float> seen(static_cast<std::size_t>(world->observation_count()));
    ++frame_;
    must(context_.frame_begin(frame_, static_cast<double>(frame_) / 60));
    for (std::uint32_t i = 0; i < trial.shown; ++i) {
      world->observe(seen);
      const double action = game.expert();
      const auto branch = static_cast<std::uint32_t>(std::max(action, 0.0));
      const auto number = static_cast<float>(action / world->largest_action());
      imp_demonstration shown = imp_demonstration_init();
      shown.observation = seen.data();
      shown.observation_count = static_cast<std::uint32_t>(seen.size());
      const bool chooses = world->choice_count() > 0;
      shown.branches = chooses ? &branch : nullptr;
      shown.branch_count = chooses ? 1 : 0;
      shown.continuous = chooses ? nullptr : &number;
      shown.continuous_count = chooses ? 0 : 1;
      must(bodies_[0].agent.demonstrate(shown));
      const trials::Outcome outcome = world->step(action);
      if (outcome.terminated || outcome.truncated) world->reset(draws);
    }
    must(context_.submit());
    must(context_.frame_end());
  }

  template <class Told>
  void act(Body& body, const Action& action, const Told& told) {
    const bool is_number = body.world->choice_count() == 0;
    const trials::Outcome outcome =
        body.world->step(is_number ? body.world->largest_action() * double{action.continuous[0]}
                                   : static_cast<double>(action.branches[0]));
    const double told_reward = !tells_ ? 0.0 : miss_is_zero_ ? std::max(outcome.reward, 0.0) : outcome.reward;
    must(body.agent.reward(static_cast<float>(told_reward)));
    body.returned += outcome.reward;
    const bool ended = outcome.terminated || outcome.truncated;
    if (outcome.truncated) {
      body.world->observe(body.seen);
      must(body.agent.observe(body.seen));
    }
    if (ended) {
      must(body.agent.end_episode(outcome.truncated ? EpisodeEnd::truncated : EpisodeEnd::terminated));
      body.world->reset(*body.draws);
    }
    told(body, outcome, ended);
    if (ended) body.returned = 0;
  }

  Context context_;
  Brain brain_;
  std::vector<Body> bodies_;
  bool miss_is_zero_, tells_;
  std::uint64_t frame_ = 0;
};

// 0 = random play, 1 = the Bayes answer.
double fight_score(double mean_reward) {
  const double countered = (mean_reward + 1) / 2;
  return (countered - 1.0 / kMoves) / (Fight::bayes() - 1.0 / kMoves);
}

// Greedy episodes of the saved weights: some bodies, each until its first episode ends. The fight has no
// greedy check: what the player meets is what is judged.
double evaluate(const AbiTrial& trial, const std::string& path) {
  const std::uint32_t bodies = trial.game == "nearest" ? 400 : 20;  // whose episodes have one step
  Stage stage(trial, bodies, false, nullptr);
  must(stage.brain().load_weights(path.c_str()));
  double sum = 0;
  std::uint32_t left = bodies;
  while (left > 0)
    stage.frame([&](Body& body, const trials::Outcome&, bool ended) {
      if (!ended) return;
      sum += body.returned;
      body.done = true;
      --left;
    });
  return sum / bodies;
}

double mean(const std::deque<double>& values) {
  return values.empty()
             ? 0
             : std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

}  // namespace

double AbiCurve::best() const { return std::ranges::max_element(checks, {}, &AbiCheck::greedy)->greedy; }

std::int64_t AbiCurve::reached(double greedy) const {
  for (const AbiCheck& check : checks)
    if (check.greedy >= greedy) return check.steps;
  return -1;
}

std::int64_t AbiCurve::played(double score, std::int64_t after) const {
  for (const AbiCheck& check : checks)
    if (check.steps >= after && check.played >= score) return check.steps;
  return -1;
}

AbiCurve run_abi_trial(const AbiTrial& trial) {
  AbiCurve curve;
  const bool fights = trial.game == "fight";
  const std::size_t window = fights ? 250 : 20;
  const auto began = std::chrono::steady_clock::now();
  const std::string path =
      (std::filesystem::temp_directory_path() / ("imprint-abi-trial-" + std::to_string(trial.seed) + "-" +
                                                 std::to_string(began.time_since_epoch().count())))
          .string();
  Stage stage(trial, trial.agents, true, &curve.log);
  std::deque<double> recent;
  std::int64_t steps = 0, next_check = trial.check_every;
  while (steps < trial.steps) {
    stage.frame([&](Body& body, const trials::Outcome& outcome, bool ended) {
      ++steps;
      if (fights)
        recent.push_back(outcome.reward);
      else if (ended)
        recent.push_back(body.returned);
      if (recent.size() > window) recent.pop_front();
    });
    if (fights && steps >= kHabitChanges && steps < kHabitChanges + trial.agents)
      for (Body& body : stage.bodies()) static_cast<Fight&>(*body.world).new_habit();
    if (steps < next_check) continue;
    next_check += trial.check_every;
    AbiCheck check{steps, 0, fights ? fight_score(mean(recent)) : mean(recent)};
    if (fights) {
      check.greedy = check.played;
    } else {
      must(stage.brain().save(path.c_str()));
      must(stage.context().drain(60'000));
      must(stage.brain().save_status());
      check.greedy = evaluate(trial, path);
    }
    curve.checks.push_back(check);
  }
  (void)std::remove(path.c_str());
  const imp_brain_stats stats = must(stage.brain().stats());
  curve.used = stats.used_samples;
  curve.dropped = stats.dropped_samples;
  curve.late = stats.late_actions;
  curve.minibatches = stats.minibatches;
  curve.last_loss = stats.last_loss;
  curve.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  return curve;
}

}  // namespace imprint::trials
