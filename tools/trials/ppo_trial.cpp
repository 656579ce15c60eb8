#include "tools/trials/ppo_trial.h"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <optional>
#include <span>
#include <utility>

namespace imprint::trials {
namespace {

HostTensor zeros_for(const Tensor& input) {
  const auto count = static_cast<std::size_t>(input.shape().element_count());
  if (input.dtype() == DType::float32) return HostTensor::from(std::vector<float>(count), input.shape());
  HostTensor zeros = HostTensor::from_ints(std::vector<std::int32_t>(count), input.shape());
  zeros.dtype = input.dtype();
  return zeros;
}

// A program whose inputs are filled in place, by name.
class Call {
 public:
  static Result<Call> create(Session& session, const Result<ProgramDescription>& description) {
    if (!description) return description.error();
    IMPRINT_ASSIGN(Program program, Program::compile(session.runtime(), *description));
    Call call(session, std::move(program));
    for (const Tensor& input : description->inputs) call.add(input);
    return call;
  }
  static Result<Call> create(Session& session, const ProgramSequence& sequence) {
    IMPRINT_ASSIGN(Program program, Program::compile(session.runtime(), sequence));
    Call call(session, std::move(program));
    for (const ProgramPart& part : sequence.parts)
      for (const Tensor& input : part.description.inputs)
        if (!call.find(input.node()->label)) call.add(input);
    return call;
  }

  HostTensor* find(const std::string& name) {
    const auto found = std::ranges::find(names_, name);
    return found == names_.end() ? nullptr : &inputs_[static_cast<std::size_t>(found - names_.begin())];
  }
  Result<std::vector<HostTensor>> operator()() {
    ++runs_;
    return session_->run(program_, inputs_);
  }
  Program& program() { return program_; }
  void count(Curve& curve) const {
    curve.dispatches += runs_ * program_.stats().dispatches;
    curve.barriers += runs_ * program_.stats().barriers;
  }

 private:
  Call(Session& session, Program program) : session_(&session), program_(std::move(program)) {}
  void add(const Tensor& input) {
    names_.push_back(input.node()->label);
    inputs_.push_back(zeros_for(input));
  }

  Session* session_;
  Program program_;
  std::vector<std::string> names_;
  std::vector<HostTensor> inputs_;
  std::uint64_t runs_ = 0;
};

// Action i of a program's output: the choice, or the continuous number.
double action_of(const std::vector<HostTensor>& outputs, std::size_t i) {
  return outputs[0].dtype == DType::int32 ? outputs[0].ints[i] : static_cast<double>(outputs[0].floats[i]);
}

// Agents in separate environments, and the learner's inputs from them.
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
  std::span<float> part(std::vector<float>& values, std::size_t i) const {
    return std::span(values).subspan(i * width_, width_);
  }

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
Result<double> evaluate(Call& greedy, const Setting& setting, std::uint64_t seed) {
  Crowd crowd(setting, seed, 1u << 20, kEpisodes);
  std::vector<char> done(kEpisodes, 0);
  double sum = 0;
  for (std::int64_t left = kEpisodes; left > 0;) {
    crowd.tell(greedy);
    const std::size_t before = crowd.ended().size();
    IMPRINT_ASSIGN(const std::vector<HostTensor> actions, greedy());
    crowd.step(actions);
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
  return taken == 0 ? 0
                    : std::accumulate(values.end() - static_cast<std::ptrdiff_t>(taken), values.end(), 0.0) /
                          static_cast<double>(taken);
}

nn::PpoOptions options_for(const Setting& setting, std::uint64_t seed) {
  nn::PpoOptions options = setting.options;
  const auto world = setting.world();
  options.observations = world->observation_count();
  if (world->choice_count() > 0)
    options.action.branches = {world->choice_count()};
  else
    options.action.continuous = 1;
  options.seed = seed;
  return options;
}

struct Calls {
  Call step, step_truncated;        // observe and act
  Call observe, observe_truncated;  // at the end of a rollout
  Call act;                         // after an update
  Call update;
  std::optional<Call> greedy;  // only if there are checks
};

class TrialOnProcessor final : public Trial {
 public:
  TrialOnProcessor(const Setting& setting, std::uint64_t seed, Calls calls, std::uint32_t minibatches)
      : setting_(setting),
        seed_(seed),
        calls_(std::move(calls)),
        crowd_(setting, seed, 0, setting.options.agents) {
    curve_.step_dispatches = calls_.step.program().stats().dispatches;
    curve_.update_dispatches = calls_.update.program().stats().dispatches;
    curve_.minibatch_dispatches =
        curve_.update_dispatches / minibatches;  // few others run around the minibatches
  }

  Result<Curve> learn() override {
    const std::int64_t per_update = setting_.options.agents * setting_.options.steps,
                       updates = (setting_.total_steps + per_update - 1) / per_update;
    std::int64_t next_check = setting_.check_every > 0 ? setting_.check_every : setting_.total_steps;
    double last = now();
    for (std::int64_t u = 0; u < updates; ++u) {
      IMPRINT_CHECK(roll_out(u == 0));
      curve_.steps = (u + 1) * per_update;
      // As stable-baselines3: the share left after this rollout.
      const double progress =
          std::min(1.0, static_cast<double>(curve_.steps) / static_cast<double>(setting_.total_steps));
      calls_.update.find("learning_rate")->floats[0] =
          static_cast<float>(setting_.learning_rate.at(progress));
      calls_.update.find("clip_range")->floats[0] = static_cast<float>(setting_.clip_range.at(progress));
      const double updating = now();
      IMPRINT_ASSIGN(std::vector<HostTensor> outputs, calls_.update());
      curve_.metrics = std::move(outputs[0].floats);
      curve_.updating += now() - updating;
      if (curve_.steps < next_check && u + 1 < updates) continue;
      curve_.seconds += now() - last;
      if (calls_.greedy) {
        IMPRINT_ASSIGN(const double greedy, evaluate(*calls_.greedy, setting_, seed_));
        curve_.checks.push_back({curve_.steps, greedy, mean_of_last(crowd_.ended(), kEpisodes)});
        if (greedy >= setting_.enough) break;
      }
      next_check += std::max<std::int64_t>(setting_.check_every, 0);
      last = now();
    }
    for (const Call* call : {&calls_.step, &calls_.step_truncated, &calls_.observe, &calls_.observe_truncated,
                             &calls_.act, &calls_.update})
      call->count(curve_);
    return curve_;
  }
  Program& update() override { return calls_.update.program(); }

 private:
  static double now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  }

  Result<> roll_out(bool first) {
    for (std::int64_t t = 0; t < setting_.options.steps; ++t) {
      const bool known = !first && t == 0;  // observed before the update
      Call& call = known ? calls_.act : crowd_.truncates() ? calls_.step_truncated : calls_.step;
      if (!known) crowd_.tell(call);
      IMPRINT_ASSIGN(const std::vector<HostTensor> actions, call());
      crowd_.step(actions);
    }
    Call& last = crowd_.truncates() ? calls_.observe_truncated : calls_.observe;
    crowd_.tell(last);
    IMPRINT_CHECK(last());
    return {};
  }

  Setting setting_;
  std::uint64_t seed_;
  Calls calls_;
  Crowd crowd_;
  Curve curve_;
};

}  // namespace

std::int64_t Curve::reached(double greedy) const {
  for (const Check& check : checks)
    if (check.greedy >= greedy) return check.steps;
  return -1;
}

double Curve::best() const { return std::ranges::max_element(checks, {}, &Check::greedy)->greedy; }

Result<std::unique_ptr<Trial>> make_trial(Session& session, const Setting& setting, std::uint64_t seed) {
  IMPRINT_ASSIGN(const nn::Ppo ppo, nn::Ppo::create(options_for(setting, seed)));
  IMPRINT_ASSIGN(Call step, Call::create(session, ppo.step()));
  IMPRINT_ASSIGN(Call step_truncated, Call::create(session, ppo.step({.truncates = true})));
  IMPRINT_ASSIGN(Call observe, Call::create(session, ppo.step({.act = false})));
  IMPRINT_ASSIGN(Call observe_truncated, Call::create(session, ppo.step({.act = false, .truncates = true})));
  IMPRINT_ASSIGN(Call act, Call::create(session, ppo.step({.observe = false})));
  IMPRINT_ASSIGN(const ProgramSequence sequence, ppo.update());
  IMPRINT_ASSIGN(Call update, Call::create(session, sequence));
  std::optional<Call> greedy;
  if (setting.check_every != kNeverChecked) {
    IMPRINT_ASSIGN(greedy, Call::create(session, ppo.greedy(kEpisodes)));
  }
  Calls calls{std::move(step), std::move(step_truncated), std::move(observe), std::move(observe_truncated),
              std::move(act),  std::move(update),         std::move(greedy)};
  return {std::make_unique<TrialOnProcessor>(setting, seed, std::move(calls), sequence.parts[1].repeat)};
}

// ---- settings ----

namespace {

nn::PpoOptions plain(std::int64_t agents, std::int64_t steps, std::int64_t minibatch, std::int64_t epochs,
                     double discount, double decay) {
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
  return {"zoo CartPole",
          make_cart_pole,
          plain(8, 32, 256, 20, 0.98, 0.8),
          {1e-3, true},
          {0.2, true},
          100'000,
          2'000,
          1e9,
          nn::cart_pole};
}

Setting default_cart_pole() {
  return {
      "default CartPole", make_cart_pole, plain(1, 2048, 64, 10, 0.99, 0.95), {3e-4}, {0.2}, 200'000, 2'000};
}

Setting cleanrl_cart_pole() {
  Setting setting{"CleanRL CartPole",
                  make_cart_pole,
                  plain(4, 128, 128, 4, 0.99, 0.95),
                  {2.5e-4, true},
                  {0.2},
                  500'000,
                  0};
  setting.options.entropy_coefficient = 0.01;
  setting.options.clip_values = true;
  setting.options.value_coefficient = 0.25;
  return setting;
}

Setting crowd_cart_pole() {
  return {"1024 CartPoles",
          make_cart_pole,
          plain(1024, 16, 4096, 4, 0.98, 0.9),
          {2.5e-3, true},
          {0.2},
          2'000'000,
          32'768,
          1e9,
          nn::cart_pole};
}

Setting large_crowd_cart_pole() {
  return {"4096 CartPoles",
          make_cart_pole,
          plain(4096, 16, 16'384, 4, 0.98, 0.9),
          {2.5e-3, true},
          {0.2},
          8'000'000,
          131'072,
          1e9,
          nn::cart_pole};
}

Setting large_crowd_pendulum() {
  return {"4096 Pendulums", make_pendulum, plain(4096, 16, 16'384, 4, 0.9, 0.95),
          {1e-3},           {0.2},         8'000'000,
          131'072,          1e9,           nn::pendulum};
}

Setting zoo_acrobot() {
  return {"zoo Acrobot", make_acrobot, normalised(plain(16, 256, 64, 4, 0.99, 0.94)), {3e-4}, {0.2},
          1'000'000,     20'000};
}

Setting zoo_mountain_car() {
  return {"zoo MountainCar",
          make_mountain_car,
          normalised(plain(16, 16, 64, 4, 0.99, 0.98)),
          {3e-4},
          {0.2},
          1'000'000,
          100'000};
}

Setting zoo_pendulum() {
  return {"zoo Pendulum", make_pendulum, plain(4, 1024, 64, 10, 0.9, 0.95), {1e-3}, {0.2}, 100'000, 0, 1e9,
          nn::pendulum};
}

}  // namespace imprint::trials
