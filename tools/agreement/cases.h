#pragma once
// Models with reference answers, as folders hold them: ONNX's own test data (model.onnx beside
// test_data_set_N/input_N.pb and output_N.pb), or NAME.onnx beside NAME*.ref.safetensors.

#include <map>
#include <string>
#include <vector>

#include "compute/base/result.h"
#include "compute/model/onnx/format/proto.h"

namespace imprint::tools {

// A value of an input or output: a tensor, a sequence of tensors, or an optional that holds nothing.
struct CaseValue {
  std::vector<onnx::TensorData> tensors;
  bool sequence = false;

  bool absent() const { return tensors.empty() && !sequence; }
};

// How far an answer may be from its reference.
struct Tolerance {
  double relative = 0, absolute = 0;
  double of_largest = 0;  // times the largest magnitude of the reference
};

struct Case {
  std::string name;
  std::map<std::string, CaseValue> inputs, outputs;
  std::map<std::string, double>
      spread;  // by output: how far the engine that made the reference is from itself
  bool from_specification = false;
};

// All .onnx files of the folder and below, sorted.
std::vector<std::string> find_models(const std::string& folder);
// Errors: not_found, io, corrupt_file, unsupported (a value that is neither tensor nor sequence).
Result<std::vector<Case>> cases_of(const std::string& path, const onnx::Model& model);

Tolerance tolerance_of(const Case& one, const std::string& output, onnx::ElementType type);

}  // namespace imprint::tools
