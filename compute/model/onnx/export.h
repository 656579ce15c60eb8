#pragma once
// Tensors as an ONNX file, which Imprint and other runtimes read: one node, or a few, per operation that the
// tensors are composed of. So a convolution becomes a product of gathered windows: the numbers are the same,
// but no runtime knows it as a convolution.

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "compute/base/result.h"
#include "compute/tensor/tensor.h"

namespace imprint {

class Session;

struct OnnxValue {
  std::string name;
  Tensor tensor;  // of an input: made by input(), with fixed extents
};

struct OnnxExport {
  std::vector<OnnxValue> inputs, outputs;
  // Content of the variables that the outputs read, which become initializers. Null: their initial values,
  // which a variable has until a program moves it to a device.
  std::function<Result<std::vector<std::byte>>(const tensor::VariableState& variable)> read_variable;
  // Bytes of constants, those too that the export makes: a window becomes a list of its indices.
  std::uint64_t constant_limit_bytes = std::uint64_t{1} << 40;
};

// Bounds for n nodes and b bytes of constants and variables: time O(n log n + b), the file at most b + 1 KiB
// per node, 4 KiB per iota and 4 bytes per element of a window, memory at most three times the file.
//
// Operators of opset 18. float32 and int32 stay what they are.
// Errors: unsupported (a named extent; operations without a counterpart, all of them named: loops, pages,
// recurrences, random numbers, GLSL, and a few functions), not_found (an input that is none of `inputs`),
// invalid_argument (a name twice, a variable without content), out_of_host_memory (constant_limit_bytes),
// those of read_variable.
Result<std::vector<std::byte>> export_onnx(const OnnxExport& what);
// With the content that the variables have in the session: a network after its training. Replaces
// read_variable. Errors: those of Session::evaluate too.
Result<std::vector<std::byte>> export_onnx(Session& session, OnnxExport what);

}  // namespace imprint
