#pragma once
// Models as JSON: an object, or a list of objects, with fields of imp_model_desc under their names. Missing
// fields have their defaults.
//
//   {"path": "voice.onnx",                                       in the folder of this file, or absolute
//    "extents": [{"name": "batch_size", "value": 64}],
//    "bounds": [{"name": "words", "value": 512}],
//    "states": [{"input": "state_ins", "output": "state_outs"}],
//    "bindings": [{"name": "obs", "shape": [64, 21]}],           the shape of imp_tensor_desc
//    "name": "voice", "run_capacity": 3}

#include <functional>
#include <string>
#include <vector>

#include "compute/base/result.h"
#include "compute/model/onnx/format/proto.h"
#include "plugin/agent/models/model_program.h"

namespace imprint::tools {

// Bounds for n bytes: n <= 4 MiB; at most 256 models; time O(n log n); memory 64 n + 1 MiB
// (compute/base/json.h). Also reads each model once, by `load`, for the types of bindings. Errors: not_found,
// io; corrupt_file (no JSON, an unknown field, a value of the wrong kind), with the file and the field; those
// of `load`.
using LoadModel = std::function<Result<onnx::Model>(const std::string& path)>;
Result<std::vector<agent::ModelSpec>> load_models(
    const std::string& file,
    const LoadModel& load = [](const std::string& path) { return onnx::load(path); });

}  // namespace imprint::tools
