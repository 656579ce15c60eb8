#include "tests/learning/ppo_trial.h"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <stdexcept>

namespace imprint::learning {
namespace {

HostTensor zeros_for(const Tensor& input) {
  const auto count = static_cast<std::size_t>(input.shape().element_count());
  if (input.dtype() == DType::float32) return HostTensor::from(std::vector<float>(count), input.shape());
  HostTensor zeros = HostTensor::from_ints(std::vector<std::int32_t>(count), input.shape());
  zeros.dtype = input.dtype();
  return zeros;
}

// A program with its inputs by name, to be filled in place.
class Call {
 public:
  Call(Session& session, const ProgramDescription& description)
      : session_(session), program_(must(Program::compile(session.runtime(), description))) {
    for (const Tensor& input : description.inputs) add(input.node()->label, zeros_for(input));
  }
  Call(Session& session, const ProgramSequence& sequence) : session_(session), program_(must(Program::compile(session.runtime(), sequence))) {
    for (const ProgramPart& part : sequence.parts)
      for (const Tensor& input : part.description.inputs)
        if (std::ranges::find(names_, input.node()->label) == names_.end()) add(input.node()->label, zeros_for(input));
  }

  HostTensor* find(const std::string& name) {
    const auto found = std::ranges::find(names_, name);
    return found == names_.end() ? nullptr : &inputs_[static_cast<std::size_t>(found - names_.begin())];
  }
  std::vector<HostTensor> operator()() { return must(session_.run(program_, inputs_)); }
  const Program& program() const { return program_; }

 private:
  void add(const std::string& name, HostTensor value) {
    names_.push_back(name);
    inputs_.push_back(std::move(value));
  }

  Session& session_;
  Program program_;
  std::vector<std::string> names_;
  std::vector<HostTensor> inputs_;
};

// Number i of actions that a program gave: the choice, or the continuous number.
double action_of(const std::vector<HostTensor>& outputs, std::size_t i) {
  return outputs[0].dtype == DType::int32 ? outputs[0].ints[i] : static_cast<double>(outputs[0].floats[i]);
}

// Agents in worlds of their own, and what a learner has to be told about them.
class Crowd {
 public:
  Crowd(const Setting& setting, std::uint64_t seed, std::uint32_t first_stream, std::int64_t agents) {
    for (std::int64_t i = 0; i < agents; ++i) {
      worlds_.push_back(setting.world());
      draws_.emplace_back(seed, first_stream + static_cast<std::uint32_t>(i));
      worlds_.back()->reset(draws_.back());
    }
    width_ = static_cast<std::size_t>(worlds_[0]->observation_count());
    observation_.resize(worlds_.size() * width_);
    last_observation_ = observation_;
    reward_.resize(worlds_.size());
    terminated_.resize(worlds_.size());
    truncated_.resize(worlds_.size());
    returns_.resize(worlds_.size());
    for (std::size_t i = 0; i < worlds_.size(); ++i) worlds_[i]->observe(part(observation_, i));
  }

  void step(const std::vector<HostTensor>& actions) {
    truncates_ = false;
    finished_.clear();
    for (std::size_t i = 0; i < worlds_.size(); ++i) {
      const Outcome outcome = worlds_[i]->step(action_of(actions, i));
      reward_[i] = static_cast<float>(outcome.reward);
      terminated_[i] = outcome.terminated;
      truncated_[i] = outcome.truncated;
      returns_[i] += outcome.reward;
      if (outcome.truncated) {
        worlds_[i]->observe(part(last_observation_, i));
        truncates_ = true;
      }
      if (outcome.terminated || outcome.truncated) {
        finished_.push_back(i);
        ended_.push_back(returns_[i]);
        returns_[i] = 0;
        worlds_[i]->reset(draws_[i]);
      }
      worlds_[i]->observe(part(observation_, i));
    }
  }

  void tell(Call& call) const {
    const auto give = [&](const char* name, const auto& values, auto member) {
      if (HostTensor* tensor = call.find(name)) std::ranges::copy(values, (tensor->*member).begin());
    };
    give("observation", observation_, &HostTensor::floats);
    give("last_observation", last_observation_, &HostTensor::floats);
    give("reward", reward_, &HostTensor::floats);
    give("terminated", terminated_, &HostTensor::ints);
    give("truncated", truncated_, &HostTensor::ints);
  }

  bool truncates() const { return truncates_; }
  const std::vector<std::size_t>& finished() const { return finished_; }
  const std::vector<double>& ended() const { return ended_; }

 private:
  std::span<float> part(std::vector<float>& values, std::size_t i) const { return std::span(values).subspan(i * width_, width_); }

  std::vector<std::unique_ptr<Environment>> worlds_;
  std::vector<Draws> draws_;
  std::size_t width_ = 0;
  std::vector<float> observation_, last_observation_, reward_;
  std::vector<std::int32_t> terminated_, truncated_;
  std::vector<double> returns_, ended_;  // of episodes under way; of those that ended, in order
  std::vector<std::size_t> finished_;    // in this step
  bool truncates_ = false;
};

// The mean return of the first greedy episode of each of a hundred agents.
double evaluate(Call& greedy, const Setting& setting, std::uint64_t seed) {
  Crowd crowd(setting, seed, 1u << 20, kEpisodes);
  std::vector<char> done(kEpisodes, 0);
  double sum = 0;
  for (std::int64_t left = kEpisodes; left > 0;) {
    crowd.tell(greedy);
    const std::size_t before = crowd.ended().size();
    crowd.step(greedy());
    for (std::size_t k = 0; k < crowd.finished().size(); ++k) {
      if (std::exchange(done[crowd.finished()[k]], 1)) continue;
      sum += crowd.ended()[before + k];
      --left;
    }
  }
  return sum / static_cast<double>(kEpisodes);
}

double mean_of_last(const std::vector<double>& values, std::size_t count) {
  const std::size_t taken = std::min(values.size(), count);
  return taken == 0 ? 0 : std::accumulate(values.end() - static_cast<std::ptrdiff_t>(taken), values.end(), 0.0) / static_cast<double>(taken);
}

}  // namespace

std::int64_t Curve::reached(double greedy) const {
  for (const Check& check : checks)
    if (check.greedy >= greedy) return check.steps;
  return -1;
}

double Curve::best() const { return std::ranges::max_element(checks, {}, &Check::greedy)->greedy; }

Curve run_trial(Session& session, const Setting& setting, std::uint64_t seed) {
  nn::PpoOptions options = setting.options;
  const auto world = setting.world();
  options.observations = world->observation_count();
  if (world->choice_count() > 0)
    options.action.branches = {world->choice_count()};
  else
    options.action.continuous = 1;
  options.seed = seed;
  const nn::Ppo ppo = must(nn::Ppo::create(options));

  Call step(session, must(ppo.step())), step_truncated(session, must(ppo.step({.truncates = true})));
  Call observe(session, must(ppo.step({.act = false}))), observe_truncated(session, must(ppo.step({.act = false, .truncates = true})));
  Call act(session, must(ppo.step({.observe = false}))), greedy(session, must(ppo.greedy(kEpisodes)));
  const ProgramSequence sequence = must(ppo.update());
  Call update(session, sequence);
  Crowd crowd(setting, seed, 0, options.agents);

  Curve curve;
  const auto turns = sequence.parts[1].repeat;
  curve.step_dispatches = step.program().stats().dispatches;
  curve.update_dispatches = update.program().stats().dispatches;
  curve.minibatch_dispatches = curve.update_dispatches / turns;  // those round the minibatches are few
  const std::int64_t per_update = options.agents * options.steps, updates = (setting.total_steps + per_update - 1) / per_update;
  std::int64_t next_check = setting.check_every > 0 ? setting.check_every : setting.total_steps;
  auto begin = std::chrono::steady_clock::now();
  const auto taken = [&] {
    const auto now = std::chrono::steady_clock::now();
    return std::chrono::duration<double>(now - std::exchange(begin, now)).count();
  };
  for (std::int64_t u = 0; u < updates; ++u) {
    for (std::int64_t t = 0; t < options.steps; ++t) {
      const bool known = u > 0 && t == 0;  // observed before the update
      Call& call = known ? act : crowd.truncates() ? step_truncated : step;
      if (!known) crowd.tell(call);
      crowd.step(call());
    }
    Call& last = crowd.truncates() ? observe_truncated : observe;
    crowd.tell(last);
    last();
    // As stable-baselines3 counts: what is left when the rollout is in.
    const double progress = std::min(1.0, static_cast<double>((u + 1) * per_update) / static_cast<double>(setting.total_steps));
    update.find("learning_rate")->floats[0] = static_cast<float>(setting.learning_rate.at(progress));
    update.find("clip_range")->floats[0] = static_cast<float>(setting.clip_range.at(progress));
    const auto updating = std::chrono::steady_clock::now();
    curve.metrics = update()[0].floats;
    curve.updating += std::chrono::duration<double>(std::chrono::steady_clock::now() - updating).count();
    const std::int64_t done = (u + 1) * per_update;
    if (done < next_check && u + 1 < updates) continue;
    curve.seconds += taken();
    curve.checks.push_back({done, evaluate(greedy, setting, seed), mean_of_last(crowd.ended(), kEpisodes)});
    next_check += setting.check_every;
    taken();
    if (curve.checks.back().greedy >= setting.enough) break;
  }
  return curve;
}

// ---- settings ----

namespace {

nn::PpoOptions plain(std::int64_t agents, std::int64_t steps, std::int64_t minibatch, std::int64_t epochs, double discount, double decay) {
  nn::PpoOptions options;
  options.agents = agents;
  options.steps = steps;
  options.minibatch = minibatch;
  options.epochs = epochs;
  options.discount = discount;
  options.advantage_decay = decay;
  options.entropy_coefficient = 0;
  return options;
}

nn::PpoOptions normalised(nn::PpoOptions options) {
  options.normalise_observations = options.normalise_rewards = true;
  return options;
}

}  // namespace

Setting zoo_cart_pole() {
  return {"zoo CartPole", make_cart_pole, plain(8, 32, 256, 20, 0.98, 0.8), {1e-3, true}, {0.2, true}, 100'000, 2'000, 1e9, nn::cart_pole};
}

Setting default_cart_pole() { return {"default CartPole", make_cart_pole, plain(1, 2048, 64, 10, 0.99, 0.95), {3e-4}, {0.2}, 200'000, 2'000}; }

Setting cleanrl_cart_pole() {
  Setting setting{"CleanRL CartPole", make_cart_pole, plain(4, 128, 128, 4, 0.99, 0.95), {2.5e-4, true}, {0.2}, 500'000, 0};
  setting.options.entropy_coefficient = 0.01;
  setting.options.clip_values = true;
  setting.options.value_coefficient = 0.25;
  return setting;
}

Setting crowd_cart_pole() {
  return {"1024 CartPoles", make_cart_pole, plain(1024, 16, 4096, 4, 0.98, 0.9), {2.5e-3, true}, {0.2}, 2'000'000, 32'768, 1e9, nn::cart_pole};
}

Setting large_crowd_cart_pole() {
  return {"4096 CartPoles", make_cart_pole, plain(4096, 16, 16'384, 4, 0.98, 0.9), {2.5e-3, true}, {0.2}, 8'000'000, 131'072, 1e9, nn::cart_pole};
}

Setting zoo_acrobot() { return {"zoo Acrobot", make_acrobot, normalised(plain(16, 256, 64, 4, 0.99, 0.94)), {3e-4}, {0.2}, 1'000'000, 20'000}; }

Setting zoo_mountain_car() {
  return {"zoo MountainCar", make_mountain_car, normalised(plain(16, 16, 64, 4, 0.99, 0.98)), {3e-4}, {0.2}, 1'000'000, 100'000};
}

Setting zoo_pendulum() { return {"zoo Pendulum", make_pendulum, plain(4, 1024, 64, 10, 0.9, 0.95), {1e-3}, {0.2}, 100'000, 0, 1e9, nn::pendulum}; }

}  // namespace imprint::learning
