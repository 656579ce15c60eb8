#pragma once
// Trained policies as game frameworks export them: observations and state in, actions and the next state out,
// each with the batch of agents in front.

#include <cstdint>
#include <string>
#include <vector>

#include "compute/model/onnx_import.h"

namespace imprint {

// What the file promises. The first input is the observation. A further input i is state: zero at the start
// of an episode, then output i of the run before. Output 0 is the action.
struct PolicyDescription {
  struct State {
    std::string input, output;
    Shape shape;             // of one agent, without the batch
    std::int64_t count = 1;  // elements of one agent
  };
  std::string observation, action;
  Shape observation_shape;             // of one agent
  std::int64_t observation_count = 0;  // elements of one agent
  std::int64_t action_count = 0;
  std::vector<State> states;
};

struct Policy {
  PolicyDescription description;
  ImportedModel model;  // inputs: observation, states...; outputs: action, next states... in the same order
};

// Imports a policy for `batch` agents at once and checks that it has this form. Every input's first axis is
// the batch; inputs that the file fixes to another batch are refused, as are free dimensions other than the
// first. Errors: those of import_onnx; unsupported, with what does not fit the form.
Result<Policy> import_policy(const onnx::Model& model, std::int64_t batch, const ImportOptions& options = {});

}  // namespace imprint
