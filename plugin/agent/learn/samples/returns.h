#pragma once
// How much agents earn, and whether that has fallen: per brain, from episodes of agents in learning mode.
//
// A game that never ends episodes is judged by spans of kSpan steps of an agent instead.
// All averages are of kCount returns that follow each other. The gain is the best average minus the
// first one. The returns have fallen when the newest average lies below the best one by half of the gain and
// by kErrors standard errors: chance does not look like a fall. A lucky or unlucky average has a small
// variance of its own, so the errors take at least the mean variance of all averages so far.
//
// P = brain_count. Frame thread.

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

#include "plugin/agent/spec/brain_spec.h"

namespace imprint::agent {

class Returns {
 public:
  static constexpr std::uint32_t kCount = 20, kSpan = 250;
  static constexpr double kErrors = 6;

  explicit Returns(const BrainSpec& spec);

  // ---- what an agent does ----
  void acted(std::uint32_t agent);
  void rewarded(std::uint32_t agent, float reward) { agents_[agent].sum += reward; }
  void ended(std::uint32_t agent);  // its episode
  void left(std::uint32_t agent) { agents_[agent] = {}; }

  // Where set, hears each episode, or each span of a game that ends none.
  std::function<void(double sum, std::uint32_t steps)> heard;

  // ---- what a brain earns ----
  struct Average {
    double mean = 0, variance = 0;
  };
  struct Fall {
    double now = 0, best = 0;  // averages
  };
  // Whether its returns have fallen.
  bool fell(std::uint32_t brain) const { return brains_[brain].fell; }
  Fall fall(std::uint32_t brain) const { return {brains_[brain].newest.mean, brains_[brain].best.mean}; }
  bool has_episodes() const { return has_episodes_; }

  // Whether the newest average is a new best one by a tenth of what was learned. Once for each.
  bool take_best(std::uint32_t brain);
  // The brain goes back to its best weights. If their returns stay low, the game has changed: what was best
  // is forgotten.
  void went_back(std::uint32_t brain);
  // Other weights were loaded: everything is forgotten.
  void forget();

 private:
  struct Agent {
    double sum = 0;
    std::uint32_t steps = 0;
  };
  struct Earned {
    std::array<double, kCount> newest_ones{};
    std::uint64_t count = 0;  // since the brain began, or went back
    Average newest, first, best;
    double variances = 0;      // sum over all averages
    std::uint64_t judged = 0;  // averages
    double kept = 0;           // the average of take_best
    bool has_kept = false, is_best = false, fell = false, tried = false;
  };

  void add(std::uint32_t brain, double earned);
  static void judge(Earned& own);
  // Standard error of the difference of two averages.
  static double error_of(const Earned& own, const Average& one, const Average& other);

  const BrainSpec& spec_;
  std::vector<Agent> agents_;
  std::vector<Earned> brains_;  // [P]
  bool has_episodes_ = false;
};

}  // namespace imprint::agent
