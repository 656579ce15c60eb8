#pragma once
// An ONNX model as a graph of Tensors, for concrete input shapes. The import computes what depends on shapes
// alone; the device computes the rest.
//
// Types at run time: float32 for every float type, int32 for every whole-number type (a constant that does
// not fit is refused), bool. ImportedValue::type keeps the file's type, and notes lists where it differs.

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "compute/base/result.h"
#include "compute/model/onnx/format/proto.h"
#include "compute/tensor/tensor.h"

namespace imprint {

struct ImportedValue {
  std::string name;
  Tensor tensor;
  onnx::ElementType type = onnx::ElementType::float32;  // in the file
};

// An output of strings. Imprint computes none at run time: they follow from known inputs.
struct ImportedText {
  std::string name;
  Shape shape;
  std::vector<std::string> strings;
};

// Convolutions and matrix products of what DequantizeLinear makes (MatMul, Gemm, Conv).
struct QuantisedProducts {
  std::uint64_t whole = 0;           // computed of the numbers, and then scaled
  std::uint64_t in_float = 0;        // of values that are scaled before
  std::vector<std::string> reasons;  // why, of the first 64 in float32
};

struct ImportedModel {
  // Tensors made by input(), under the model's names and in its order; of a sequence NAME[0], NAME[1] and so
  // on.
  std::vector<ImportedValue> inputs;
  // May be constants, or an input itself. Sequences as those of the inputs; an optional that holds nothing
  // has none.
  std::vector<ImportedValue> outputs;
  std::vector<ImportedText> texts;
  std::vector<Variable> parameters;   // ImportOptions::parameters_as_variables; named as in the file
  std::uint64_t parameter_count = 0;  // elements of float initializers
  QuantisedProducts quantised;
  std::vector<std::string> notes;

  std::vector<Tensor> input_tensors() const;
  std::vector<Tensor> output_tensors() const;
};

struct ImportOptions {
  // Float initializers with at least one axis become Variables, which can be trained or exchanged, instead of
  // constants.
  bool parameters_as_variables = false;
  // Inputs that the import knows, by name: shapes may follow from them. They are constants of the graph. An
  // input of strings must be known.
  std::map<std::string, onnx::TensorData> known_inputs = {};
  // The shapes of each tensor of an input that is a sequence. Its length is fixed by this.
  std::map<std::string, std::vector<Shape>> sequence_inputs = {};
  std::set<std::string> absent_inputs = {};  // optionals that hold nothing
  // Memory of all constants of the model, those of the file and those that the import computes.
  std::uint64_t constant_limit_bytes = std::uint64_t{1} << 40;
};

// input_shapes: by input name. Axes may have named extents (compute/docs/extents.md): each run then chooses
// them, up to their bounds, and the import refuses what depends on one in a way that it cannot follow.
// A free dimension takes its value from them, by its symbol also for inputs that
// are not listed. An input without free dimensions need not be listed. An initializer that is listed as an
// input too (ir_version 3) is a constant unless its shape is given.
//
// Bounds, held by counting, for a file of n bytes and tensors of t elements: time O((n + t) log n); memory
// 160 n + 60 t + 64 MiB, and no more than constant_limit_bytes for constants. A constant of float32 shares
// the model's bytes. The graph has at most 2^15 operations, one more for each node of the file, one for each
// 32 bytes of initializers, 256 loops and 2^14 outputs. Named extents: at most 1,024 axes that follow from
// others, and 2^16 operations for lists of their sums. Compiling it is not part of the bounds. Errors:
// unsupported, with the operators that Imprint lacks and the nodes that it cannot run, all at once up to 64;
// shape_mismatch (a given shape against the declared one, or inside the graph); dtype_mismatch; not_found (a
// shape for an input that does not exist); corrupt_file (a cycle, a value that no node makes or that is made
// twice, an attribute of the wrong kind); out_of_host_memory (constant_limit_bytes).
Result<ImportedModel> import_onnx(const onnx::Model& model, const std::map<std::string, Shape>& input_shapes,
                                  const ImportOptions& options = {});

// Inputs that a caller feeds: those of the graph that are not initializers.
std::vector<onnx::ValueInfo> model_inputs(const onnx::Model& model);

// Declared input shapes with every free dimension set to `extent`. Errors: unsupported (an input without a
// declared rank, or not a tensor).
Result<std::map<std::string, Shape>> shapes_with_free_dimensions(const onnx::Model& model,
                                                                 std::int64_t extent);

struct DimensionBound {
  std::string name;  // of a free dimension, or INPUT:AXIS
  std::int64_t most = 0;
  std::string sum = {};    // instead: what it follows from, such as "past + 1"
  std::int64_t least = 1;  // or 0
  std::int64_t step = 1;   // more: the extents are step, 2 * step and so on up to `most`
};
// From "batch=64", "past=0..128", "height=640/32" or "total=past+1". Errors: invalid_argument.
Result<DimensionBound> parse_bound(const std::string& text);
// Gives the axes of these free dimensions named extents, from `least` to `most`. An axis of at most 1 is a
// number. A dimension whose name is a sum ("past + 1") follows from its terms, which are bounded dimensions
// and numbers. Errors: not_found (no such free dimension), invalid_argument (a name twice, a bound outside 1
// .. 2^24, a shape beyond it, a sum of others).
Result<> bound_dimensions(const onnx::Model& model, std::span<const DimensionBound> bounds,
                          std::map<std::string, Shape>& shapes);

struct OperatorUse {
  std::string name;  // with its domain when that is not ONNX's own
  std::uint64_t count = 0;
  bool supported = false;  // Imprint has it, though not every use of it
};
// Operators of the graph, its subgraphs and the model's functions, by name.
std::vector<OperatorUse> operators_of(const onnx::Model& model);

namespace onnx {

// A graph inside of a node: of If, Loop, Scan and SequenceMap.
struct BodyUse {
  std::string path;  // "Loop 'decode', body: If 'pick', then_branch"
  std::uint64_t nodes = 0;
  std::vector<std::string> missing;  // operators that Imprint lacks, each once; at most 64
};
// In the order of the file, the outer ones first; at most `most`.
std::vector<BodyUse> bodies_of(const Model& model, std::size_t most = 64);

}  // namespace onnx
}  // namespace imprint
