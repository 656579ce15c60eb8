#pragma once
// An ONNX model as a graph of Tensors, for concrete input shapes. What depends on shapes alone is computed
// here, once; the rest runs on the device.
//
// Types at run time: every float type is computed as float32, every whole-number type as int32 (a constant
// that does not fit is refused), bool as bool. ImportedValue::type keeps what the file said, and notes says
// where that differs.

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "compute/base/result.h"
#include "compute/model/onnx_proto.h"
#include "compute/tensor/tensor.h"

namespace imprint {

struct ImportedValue {
  std::string name;
  Tensor tensor;
  onnx::ElementType type = onnx::ElementType::float32;  // in the file
};

struct ImportedModel {
  std::vector<ImportedValue> inputs;   // tensors made by input(), under the model's names and in its order
  std::vector<ImportedValue> outputs;  // may be constants, or an input itself
  std::vector<Variable> parameters;    // ImportOptions::parameters_as_variables; named as in the file
  std::uint64_t parameter_count = 0;   // elements of float initializers
  std::vector<std::string> notes;

  std::vector<Tensor> input_tensors() const;
  std::vector<Tensor> output_tensors() const;
};

struct ImportOptions {
  // Float initializers with at least one axis become Variables, so that they can be trained or exchanged;
  // else they are constants.
  bool parameters_as_variables = false;
};

// input_shapes: by input name. A free dimension takes its value from them, by its symbol also for inputs that
// are not listed; an input without free dimensions need not be listed. An initializer that is listed as an
// input too (ir_version 3) is a constant unless its shape is given. Errors: unsupported, with every operator
// that Imprint lacks and every node that uses one in an unsupported way, all at once; shape_mismatch (a given
// shape against the declared one, or inside the graph), dtype_mismatch; not_found (a shape for an input that
// does not exist); corrupt_file (a cycle, a value that nothing makes or that is made twice, an attribute of
// the wrong kind).
Result<ImportedModel> import_onnx(const onnx::Model& model, const std::map<std::string, Shape>& input_shapes,
                                  const ImportOptions& options = {});

// Inputs that a caller feeds: those of the graph that are not initializers.
std::vector<onnx::ValueInfo> model_inputs(const onnx::Model& model);

// Declared input shapes with every free dimension set to `extent`. Errors: unsupported (an input without a
// declared rank, or not a tensor).
Result<std::map<std::string, Shape>> shapes_with_free_dimensions(const onnx::Model& model,
                                                                 std::int64_t extent);

struct OperatorUse {
  std::string name;  // with its domain when that is not ONNX's own
  std::uint64_t count = 0;
  bool supported = false;  // Imprint has it; a node may still use it in a way that is refused
};
// Operators of the graph and its subgraphs, by name.
std::vector<OperatorUse> operators_of(const onnx::Model& model);

}  // namespace imprint
