#pragma once
// A trained network of any form as a program: inputs and outputs by name, state and shared tensors on the
// device.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "compute/base/result.h"
#include "compute/model/onnx/import.h"
#include "compute/program/program.h"
#include "plugin/agent/decide/shared_tensor.h"
#include "plugin/agent/models/model_values.h"

namespace imprint::agent {

struct ModelExtent {
  std::string name;  // of a free dimension, or INPUT:AXIS
  std::int64_t value = 1;
};

// An output that the next run gets as this input.
struct ModelState {
  std::string input, output;
};

// A shared tensor instead of an input or an output.
struct ModelBinding {
  std::string name;
  SharedTensor tensor;
};

struct ModelSpec {
  std::string name = "model";
  std::string path;                 // a file with its external data, or
  std::span<const std::byte> file;  // its bytes, borrowed for the call
  std::vector<ModelExtent> extents;
  std::vector<DimensionBound> bounds;  // free dimensions that each run chooses
  std::vector<ModelState> states;
  std::vector<ModelBinding> bindings;
  std::uint32_t run_capacity = 3;
  std::uint32_t latency_frames = 2;
  std::uint64_t constant_limit_bytes = std::uint64_t{1} << 30;
  std::uint64_t operation_limit = std::uint64_t{1} << 36;  // of one run, with bytes moved
};

struct ModelProgram {
  ProgramDescription description;
  std::vector<ModelValue> inputs;   // that a run takes: the first inputs of the program, in the file's order
  std::vector<ModelValue> outputs;  // that a run gives: all outputs of the program, in the file's order
  std::vector<Variable> state;
  int reset = -1;  // input int32 [1]: 1 = the state begins at zero; -1 = no state
  std::uint64_t parameter_count = 0;
};

// Errors: invalid_argument (neither or both of path and bytes, a number out of range, a name that the model
// lacks or that is named twice, state of booleans); those of onnx::load, onnx::parse and import_onnx;
// shape_mismatch and dtype_mismatch (a state's output, a shared tensor); unsupported (an input without a
// rank, values of a type that has no numbers).
Result<ModelProgram> describe_model(const ModelSpec& spec);

}  // namespace imprint::agent
