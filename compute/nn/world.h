#pragma once
// A game's own simulation step as GLSL, run for many copies of the world beside each other inside the program
// that acts in them and learns from them.

#include <cstdint>
#include <string>
#include <vector>

#include "compute/nn/action_distribution.h"
#include "compute/nn/parameter.h"

namespace imprint::nn {

// What the text defines; S, D, B and C stand for the numbers below (state, observations, branches,
// continuous) and are written as numbers, and names that begin with imp_ are not its own. Vulkan devices
// only: the processor's kernels are not GLSL.
//   void start(out float state[S])                            a fresh episode; draw(low, high) gives uniform
//   numbers, up to 256 of them void observe(in float state[S], out float observation[D]) float advance(inout
//   float state[S], in int choice[B], in float number[C], out bool terminated)
//                                                             one step; returns the reward. Without branches
//                                                             or numbers that parameter is not there
struct World {
  std::string name;
  std::string glsl;
  std::int64_t state = 0;         // numbers
  std::int64_t observations = 0;  // numbers
  ActionSpace action;
  std::int64_t step_limit = 0;  // steps after which an episode is truncated; 0: none
};

// Copies of a world with their state on the device. An episode that ends is followed by a fresh one in the
// same step.
class Worlds {
 public:
  // After a step; float32 [count, ...] unless it says otherwise.
  struct Step {
    Tensor state, observation;
    Tensor last_observation;  // of the state that the action led to, which an ended episode's fresh start has
                              // replaced
    Tensor reward;            // [count]
    Tensor terminated, truncated;  // bool [count]
    Tensor steps;                  // of the episode under way
    Tensor generator;
  };

  Worlds(World world, std::int64_t count, std::uint64_t seed);

  const World& world() const { return world_; }
  std::int64_t count() const { return count_; }

  // A world without state or observations, or actions of another shape than it has, give a step of tensors
  // that carry the error.
  Step start() const;  // all afresh; nothing ends
  Step advance(const Actions& actions) const;
  void assign(const Step& step, std::vector<Update>& updates) const;  // the copies go on from there

  // Where the copies are now: float32 [count, observations].
  Tensor observation() const { return observation_.value(); }
  // float32 [count, 2]: of each copy, the returns of the episodes that ended, added up, and how many they
  // are.
  const Variable& ended() const { return ended_; }
  const Parameters& state() const {
    return state_;
  }  // "state", "observation", "steps", "generator", "returns", "ended"

 private:
  Status check() const;
  Status check(const Actions& actions) const;
  std::string glsl(bool starts) const;
  Step taken_apart(const Tensor& packed) const;

  World world_;
  std::int64_t count_;
  Variable state_numbers_, observation_, steps_, generator_, returns_, ended_;
  Parameters state_;
};

}  // namespace imprint::nn
