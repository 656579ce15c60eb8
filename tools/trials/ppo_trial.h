#pragma once
// One learner, one seed, one environment on the CPU or on the device: the time of learning, and the success
// over time.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "compute/nn/learners/classic_environments.h"
#include "compute/nn/learners/ppo.h"
#include "compute/program/run.h"
#include "tools/trials/environments.h"

namespace imprint::trials {

inline constexpr std::int64_t kEpisodes = 100;  // per evaluation
inline constexpr std::int64_t kAtTheEnd = 0;    // Setting::check_every
inline constexpr std::int64_t kNeverChecked = -1;

// A constant rate, or one that falls linearly to 0.
struct Rate {
  double start = 0;
  bool falls = false;
  double at(double progress) const { return falls ? start * (1 - progress) : start; }
};

struct Setting {
  std::string name;
  std::function<std::unique_ptr<Environment>()> world;
  nn::PpoOptions options;  // agents, steps, ...; observations and actions come from the environment
  Rate learning_rate, clip_range;
  std::int64_t total_steps = 0;             // of all agents
  std::int64_t check_every = kAtTheEnd;     // steps between greedy evaluations, at ends of rollouts
  double enough = 1e9;                      // stops at this greedy mean
  nn::Environment (*resident)() = nullptr;  // the same environment on the device; may be null
};

struct Check {
  std::int64_t steps = 0;
  double greedy = 0;    // mean return of 100 greedy episodes
  double training = 0;  // mean return of the last 100 finished episodes of training
};

struct Curve {
  std::vector<Check> checks;  // the last one at the end
  std::int64_t steps = 0;     // of all agents
  double seconds = 0;         // learning alone
  double updating = 0;  // part of `seconds`; the rest is acting and the environment. 0 for an environment on
                        // the device
  std::uint32_t step_dispatches = 0, minibatch_dispatches = 0, update_dispatches = 0;
  std::uint64_t dispatches = 0, barriers = 0;  // of all learning
  std::vector<float> metrics;                  // of the last update

  // Steps when the greedy mean first reached this; -1: never.
  std::int64_t reached(double greedy) const;
  double best() const;  // the best check; there is at least one
};

// A learner in setting.resident's environment.
nn::PpoOptions resident_options(const Setting& setting, std::uint64_t seed);

// Compiled, untrained. The session must outlive it.
class Trial {
 public:
  virtual ~Trial() = default;
  // Learns from the first step to the last. Call once.
  virtual Result<Curve> learn() = 0;
  // The program with most of the work.
  virtual Program& update() = 0;
};

// The environment on the CPU: one submit per step and one per update.
Result<std::unique_ptr<Trial>> make_trial(Session& session, const Setting& setting, std::uint64_t seed);
// setting.resident on the device: one submit per rollout and update. Vulkan devices only.
Result<std::unique_ptr<Trial>> make_resident_trial(Session& session, const Setting& setting,
                                                   std::uint64_t seed);

// The settings published with rl-baselines3-zoo, stable-baselines3 (defaults) and CleanRL.
Setting zoo_cart_pole();
Setting default_cart_pole();
Setting cleanrl_cart_pole();
Setting crowd_cart_pole();  // 1024 agents
Setting zoo_acrobot();
Setting zoo_mountain_car();
Setting zoo_pendulum();
Setting large_crowd_cart_pole();  // 4096 agents, on the device
Setting large_crowd_pendulum();   // the same

}  // namespace imprint::trials
