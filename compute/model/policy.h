#pragma once
// Trained policies as game frameworks export them: observations and state in, actions and the next state out.
// The first axis of each is the batch of agents.

#include <cstdint>
#include <string>
#include <vector>

#include "compute/model/onnx_import.h"

namespace imprint {

// The first input is the observation. Each further input i is state: zero at the start of an episode, then
// output i of the previous run. Output 0 is the action.
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

// Imports a policy for `batch` agents and checks its form. Refuses inputs that the file fixes to another
// batch, and free dimensions other than the first. Bounds: those of import_onnx. Errors: those of
// import_onnx; unsupported, with what does not fit the form.
Result<Policy> import_policy(const onnx::Model& model, std::int64_t batch, const ImportOptions& options = {});

}  // namespace imprint
