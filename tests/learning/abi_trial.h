#pragma once
// One learner in one game through the C interface, on device cpu: a game that names the learner, the sizes
// and the rewards. Options beyond the defaults are given by name.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace imprint::trials {

struct AbiTrial {
  std::string learner = "dqn";    // dqn, ppo, pqn, es, sac, bandit, feedback
  std::string game = "cartpole";  // kGameNames
  std::uint64_t seed = 1;
  std::uint32_t agents = 1;          // es: brains of the population
  std::int64_t steps = 100'000;      // decisions of all agents
  std::int64_t check_every = 2'500;  // decisions between greedy evaluations
  bool miss_is_zero = false;         // a reward below 0 is told as 0
  std::uint32_t length = 6;          // of the maze's corridor; wheels of the lock
  std::uint32_t pixels = 1;          // of a cell of the catch game's picture, along each axis
  bool streams = true;               // a game of pictures or entities has encoders for them
  std::vector<std::uint32_t> hidden = {64, 64};
  bool tanh = false;            // after each hidden layer, instead of ReLU
  std::uint32_t window = 20;    // last episodes that `played` is the mean of
  std::uint32_t episodes = 20;  // of a greedy evaluation
  std::uint32_t shown = 0;      // steps of the game's player that the brain is shown before
  bool tells = true;            // rewards are told
  bool groups = true;           // the gate: its agents are groups
  std::map<std::string, double> shown_options, signals;  // of imp_demonstration_options, imp_signal_options
  std::map<std::string, double> options;  // of the learner and of its network, by the fields' names
};

struct AbiCheck {
  std::int64_t steps = 0;
  double greedy = 0;  // mean return of greedy episodes; the fight: share of the Bayes answer's score
  double played = 0;  // the same with exploration: the last episodes; the fight: the last 250 decisions
};

struct AbiCurve {
  std::vector<AbiCheck> checks;
  double seconds = 0;
  std::uint64_t used = 0, dropped = 0, late = 0, minibatches = 0;
  float last_loss = 0;
  std::vector<std::string> log;  // warnings and errors

  double best() const;                        // greedy
  std::int64_t reached(double greedy) const;  // decisions; -1: never
  // First check from `after` on whose played score is at least this; -1: never.
  std::int64_t played(double score, std::int64_t after = 0) const;
};

inline constexpr std::int64_t kHabitChanges =
    10'000;  // the fight: decisions until the opponent's habit changes

inline constexpr const char* kGameNames =
    "cartpole, blind-cartpole, acrobot, mountain-car, mountain-car-continuous, pendulum, fight, maze, catch, "
    "nearest, keys, lock, circle, shown-mountain-car, gate";

// Throws std::runtime_error with the failure's text.
AbiCurve run_abi_trial(const AbiTrial& trial);

}  // namespace imprint::trials
