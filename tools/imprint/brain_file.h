#pragma once
// Brains as JSON: an object, or a list of objects. An object has the fields of imp_brain_desc and
// imp_network_options under their names, and the fields of the learner's option struct under the learner's
// name. Missing fields have the defaults of the struct's init function. A flag is true, false, 1 or 0.
//
//   {"name": "pet", "observation_count": 28, "observation_scale": [..], "goal_count": 6,
//    "branch_sizes": [10], "continuous_count": 0, "hidden_sizes": [64, 64], "activation": "relu", ...
//    "learner": "feedback",
//    "feedback": {"learning_rate": 0.002, "batch_size": 32, ...},     imp_feedback_options
//    "stack": 4, "cell": "gru", "cell_size": 64,                      imp_network_options
//    "streams": [{"kind": "picture", "channels": 1, "height": 84, "width": 84}],
//    "demonstrations": {"capacity": 512}, "self_play": {},            imp_demonstration_options, ...
//    "signals": {"curiosity_strength": 0.1}, "groups": {},            imp_signal_options, imp_group_options
//    "observations": [64, 28],      the shape of the tensor that agents observe in place, if they do
//    "actions": true}               whether answers are written to a tensor

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "compute/base/result.h"
#include "compute/tensor/shape.h"
#include "plugin/agent/spec/brain_spec.h"

namespace imprint::tools {

struct BrainFile {
  agent::BrainSpec spec;
  std::optional<Shape> observations;
  bool actions = false;
};

// Bounds for n bytes: n <= 4 MiB; at most 4,096 brains; time O(n log n); memory 64 n + 1 MiB
// (compute/base/json.h).
// Errors: not_found, io; corrupt_file (no JSON, an unknown field, a value of the wrong kind), with the file
// and the field; and those of agent::validate.
Result<std::vector<BrainFile>> load_brains(const std::string& file);

// The same for bytes. file: for messages.
Result<std::vector<BrainFile>> parse_brains(const std::string& file, std::span<const std::byte> bytes);

}  // namespace imprint::tools
