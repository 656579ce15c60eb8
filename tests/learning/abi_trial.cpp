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

#include "plugin/agent/spec/option_fields.h"
#include "tests/learning/abi_games.h"
#include "tests/learning/beside_options.h"
#include "tests/learning/gate_trial.h"
#include "tests/learning/signal_games.h"
#include "tests/must.h"
#include "tools/trials/environments.h"

namespace imprint::trials {
namespace {

using namespace imprint::game;

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
#define IMPRINT_FIELD(name) \
  if constexpr (requires { options.name; }) take(given, #name, options.name);
  IMPRINT_OPTION_FIELDS(IMPRINT_FIELD)
#undef IMPRINT_FIELD
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
    const bool population = trial.learner == "es";
    desc.agents_per_brain = population && learns ? 1 : bodies;
    if (population) desc.brain_count = trial.agents;  // the first one's weights are judged
    desc.seed = trial.seed;
    desc.hidden_sizes = trial.hidden;
    if (trial.tanh) desc.activation = game::Activation::tanh;
    std::map<std::string, double> given = trial.options;
    desc.network = network_of(given);
    const std::vector<imp_stream> streams = streams_of(trial);
    desc.network.set_streams(streams);
    if (!learns) desc.action_latency_frames = 1;
    if (trial.learner == "sac") {
      desc.learner = options_of<SacOptions>(trial);  // its policy squashes: no other learner acts by it
    } else if (trial.learner == "pqn") {
      desc.learner = options_of<PqnOptions>(trial);  // its layers are normalised: the same
    } else if (!learns) {
      desc.learner = NoLearner();
    } else if (trial.learner == "dqn") {
      desc.learner = options_of<DqnOptions>(trial);
    } else if (trial.learner == "ppo") {
      desc.learner = options_of<PpoOptions>(trial);
    } else if (population) {
      desc.learner = options_of<EsOptions>(trial);
    } else if (trial.learner == "bandit") {
      desc.learner = options_of<BanditOptions>(trial);
    } else if (trial.learner == "feedback") {
      desc.learner = options_of<FeedbackOptions>(trial);
    } else {
      throw std::runtime_error("learner: found '" + trial.learner +
                               "', expected dqn, ppo, pqn, es, sac, bandit or feedback");
    }
    if (learns) take_beside(trial.shown, trial.shown_options, trial.signals, desc);
    brain_ = must(context_.create_brain(desc));
    for (std::uint32_t i = 0; i < bodies; ++i) {
      Body body{make_game(trial), std::make_unique<Draws>(trial.seed, (learns ? 0 : 1u << 20) + i), {}, {}};
      body.agent = must(brain_.create_agent(population && learns ? i : 0));
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

// Greedy episodes of the saved weights: some bodies, each until its first episode ends. The fight has no
// greedy check: what the player meets is what is judged.
double evaluate(const AbiTrial& trial, const std::string& path) {
  const std::uint32_t bodies =
      trial.game == "nearest" ? 400 : trial.episodes;  // whose episodes have one step
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
  if (trial.game == "gate") return run_gate_trial(trial);
  AbiCurve curve;
  const bool fights = trial.game == "fight";
  const std::size_t window = fights ? 250 : trial.window;
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
      for (Body& body : stage.bodies()) change_habit(*body.world);
    if (steps < std::min(next_check, trial.steps)) continue;
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
