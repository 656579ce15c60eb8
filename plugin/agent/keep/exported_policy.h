#pragma once
// A brain's policy as an ONNX file: what it does without exploration.
//
//   inputs    obs_0          [batch, observation_count], before scaling
//             obs_1          [batch, 1], the number of the goal; of a brain with several goals
//             recurrent_in   [batch, S], zeros at the start of an episode; with a stack or a cell: the
//                            observations before, the oldest first, then the cell's state
//   outputs   continuous_actions  [batch, continuous actions], in [-1, 1]
//             discrete_actions    int64 [batch, branches], the choice of each branch; of equals the first
//             values              [batch, outputs of a goal], as imp_action::values
//             recurrent_out       the next recurrent_in
//
// Names are those of ML-Agents, which compute/model/policy.h knows. Outputs that a brain lacks are left out.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "compute/base/result.h"
#include "compute/model/onnx/format/proto.h"
#include "plugin/agent/spec/brain_spec.h"
#include "plugin/agent/spec/state_variable.h"

namespace imprint::agent {

// contents: the bytes of each variable, as decode_weights gives them. brain: which one of a kennel. Bounds
// for contents of n bytes in v variables: time O(n + v^2), since each parameter is looked up in a list;
// memory n, for one brain's share of it once in the model and once on the way, and 64 KiB for each variable's
// nodes. Errors: invalid_argument (brain), internal (a variable of the network is missing).
Result<onnx::Model> export_policy(const BrainSpec& spec, std::span<const StateVariable> variables,
                                  std::span<const std::vector<std::byte>> contents, std::uint32_t brain = 0);

}  // namespace imprint::agent
