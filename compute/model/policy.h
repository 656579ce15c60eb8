#pragma once
// Trained policies as game frameworks export them: observations and state in, actions and the next state out.
// The first axis of each is the batch of agents.

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "compute/model/onnx/import.h"

namespace imprint {

// Which inputs and outputs play which part follows from their names and number:
//   ML-Agents          obs_0, obs_1, .. or vector_observation; deterministic_continuous_actions,
//                      continuous_actions or action, then the same for discrete ones; recurrent_in and
//                      recurrent_out. Masks are 1, epsilon is 0
//   Godot RL           obs and state_ins; output and state_outs
//   Stable-Baselines3  one input; three outputs: actions, values, logarithms of probabilities
//   CleanRL            one input; two or more outputs: the action comes first
//   positions          any other: input 0 is the observation and output 0 the action; input i is state, and
//                      output i its next value
// State is zero at the start of an episode. Several observations are one row, in the file's order, and
// several actions too. Whole numbers among the actions become float32.
struct PolicyDescription {
  struct State {
    std::string input, output;
    Shape shape;             // of one agent, without the batch
    std::int64_t count = 1;  // elements of one agent
  };
  std::string rule;                    // a name of the list above, or "names"
  std::string observation, action;     // "obs_0 + obs_1"
  Shape observation_shape;             // of one agent
  std::int64_t observation_count = 0;  // elements of one agent
  std::int64_t action_count = 0;
  std::vector<State> states;

  std::string text() const;  // "Godot RL: obs [26] -> output [8], state state_ins -> state_outs"
};

struct Policy {
  PolicyDescription description;
  ImportedModel model;  // inputs: observation, states...; outputs: action, next states... in the same order
};

// Instead of a rule. Several observations are one row, in this order, and several actions too. Each input has
// one part: an observation, a state, or zeros. Outputs without a name here are dropped.
struct PolicyNames {
  std::vector<std::string> observations, actions;
  std::vector<std::pair<std::string, std::string>> states = {};  // input, output
  std::vector<std::string> zeros = {};                           // inputs
};

// Imports a policy for `batch` agents and checks its form. Refuses inputs that the file fixes to another
// batch, and free dimensions other than the first. Bounds: those of import_onnx. Errors: those of
// import_onnx; unsupported, with what does not fit the form; not_found (a name of `names`).
Result<Policy> import_policy(const onnx::Model& model, std::int64_t batch, const ImportOptions& options = {},
                             const PolicyNames& names = {});

// The two halves of import_policy: the shapes that it imports the model with, and the policy.
Result<std::map<std::string, Shape>> policy_shapes(const onnx::Model& model, std::int64_t batch);
Result<Policy> policy_of(ImportedModel imported, std::int64_t batch, const PolicyNames& names = {});

}  // namespace imprint
