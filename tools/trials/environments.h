#pragma once
// The classic control problems in double precision, as in Gymnasium. These environments run on the CPU.

#include <cstdint>
#include <memory>
#include <span>

#include "compute/base/philox.h"

namespace imprint::trials {

// Counted Philox draws, the same on every machine.
class Draws {
 public:
  Draws(std::uint64_t seed, std::uint32_t stream)
      : seed_{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)}, stream_(stream) {}
  double between(double low, double high) {
    return low + (high - low) * uniform_of(philox({count_++, stream_, 0, 1}, seed_)[0]);
  }

 private:
  PhiloxKey seed_;
  std::uint32_t stream_;
  std::uint32_t count_ = 0;
};

struct Outcome {
  double reward = 0;
  bool terminated = false;  // the environment ended the episode
  bool truncated = false;   // the time limit ended it
};

class Environment {
 public:
  virtual ~Environment() = default;
  virtual int observation_count() const = 0;
  virtual int choice_count() const = 0;  // 0: one continuous action
  virtual int step_limit() const = 0;
  virtual double largest_action() const { return 1; }  // of a continuous one

  void reset(Draws& draws) {
    start(draws);
    steps_ = 0;
  }
  // action: the choice's number, or the continuous action, clipped to the environment's range.
  Outcome step(double action) {
    Outcome outcome = advance(action);
    outcome.truncated = ++steps_ >= step_limit() && !outcome.terminated;
    return outcome;
  }
  virtual void observe(std::span<float> into) const = 0;
  virtual std::span<double> state() = 0;

 protected:
  virtual void start(Draws& draws) = 0;
  virtual Outcome advance(double action) = 0;

 private:
  int steps_ = 0;
};

std::unique_ptr<Environment>
make_cart_pole();  // Barto, Sutton, Anderson, Neuronlike Adaptive Elements ..., 1983; 500 steps
std::unique_ptr<Environment> make_pendulum();  // 200 steps
std::unique_ptr<Environment>
make_acrobot();  // Sutton, Generalization in Reinforcement Learning, 1996; 500 steps
std::unique_ptr<Environment>
make_mountain_car();  // Moore, Efficient Memory-based Learning for Robot Control, 1990; 200 steps
std::unique_ptr<Environment> make_mountain_car_continuous();  // 999 steps

}  // namespace imprint::trials
