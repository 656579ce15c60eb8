#pragma once
// A game's simulation step as GLSL. Many copies of it run on the GPU, in the same program as the agents that
// act and learn in them.

#include <cstdint>
#include <string>
#include <vector>

#include "compute/nn/learners/action_distribution.h"
#include "compute/nn/parameter.h"

namespace imprint::nn {

// The GLSL defines three functions. S, D, B and C are the numbers below (state, observations, branches,
// continuous), written as literals.
//
//   void start(out float state[S]);
//     A fresh episode. draw(low, high) returns uniform random numbers, at most 256 per step.
//   void observe(in float state[S], out float observation[D]);
//   float advance(inout float state[S], in int choice[B], in float number[C], out bool terminated);
//     One step; returns the reward. Omit `choice` without branches, and `number` without continuous numbers.
//
// Names that begin with imp_ or world_ are reserved. Vulkan devices only: the CPU device does not run GLSL.
struct Environment {
  std::string name = {};
  std::string glsl = {};
  std::int64_t state = 0;         // floats
  std::int64_t observations = 0;  // floats
  ActionSpace action = {};
  std::int64_t step_limit = 0;  // steps after which an episode is truncated; 0: never
};

// Copies of an environment; their state lives on the device. When an episode ends, the next one starts in the
// same step.
class Environments {
 public:
  // The result of one step. float32 [count, ...] unless noted.
  struct Transition {
    Tensor state, observation;     // after the step, and after a restart where the episode ended
    Tensor last_observation;       // before such a restart
    Tensor reward;                 // [count]
    Tensor terminated, truncated;  // bool [count]
    Tensor steps;                  // taken in the current episode
    Tensor generator;              // int32 [4]
  };

  Environments(Environment environment, std::int64_t count, std::uint64_t seed);

  const Environment& environment() const { return environment_; }
  std::int64_t count() const { return count_; }

  // Restarts every copy; no episode ends by it. Error, carried by all tensors: invalid_argument without state
  // or observations.
  Transition start() const;
  // One step of every copy. Error, also: shape_mismatch when the actions do not fit the action space.
  Transition advance(const Actions& actions) const;
  // Adds the updates that make `transition` the current state.
  void assign(const Transition& transition, std::vector<Update>& updates) const;

  // The current observation: float32 [count, observations].
  Tensor observation() const { return observation_.value(); }
  // float32 [count, 2]: per copy, the sum of the returns of ended episodes, and their number.
  const Variable& ended() const { return ended_; }
  // "state", "observation", "steps", "generator", "returns", "ended".
  const Parameters& state() const { return state_; }

 private:
  Result<> validate() const;
  Result<> validate(const Actions& actions) const;
  std::string glsl(bool starts) const;
  Transition unpacked(const Tensor& packed) const;

  Environment environment_;
  std::int64_t count_;
  Variable state_numbers_, observation_, steps_, generator_, returns_, ended_;
  Parameters state_;
};

}  // namespace imprint::nn
