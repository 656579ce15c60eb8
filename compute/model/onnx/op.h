#pragma once
// Private: what the handler of an ONNX operator sees, and the table of handlers.

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compute/model/onnx/value.h"

namespace imprint::onnx {

using Extents = std::vector<std::int64_t>;

// The attributes of a call, for the nodes of a model-local function that refer to them, and the function's
// defaults for those that the call leaves out.
using AttributeMap = std::map<std::string_view, const Attribute*>;
struct Bindings {
  AttributeMap given;
  const AttributeMap& defaults;
};

// The attribute that a reference in a function stands for; nullptr for one that the call leaves out.
const Attribute* resolved(const Attribute* attribute, const Bindings* bindings);

// A loop is a program of its own inside of the model's: this many bound the memory of all.
inline constexpr std::int64_t kOperationsOfLoop = 256;

// Imports the bodies of If, Loop and Scan (graph.h).
class Bodies {
 public:
  virtual ~Bodies() = default;
  // The outputs of a body for these inputs. Nothing when a part of it is refused, which is kept already.
  virtual std::optional<std::vector<Value>> import_body(const Node& node, const Graph& body,
                                                        std::span<const Value> inputs) = 0;

  struct Mark {
    std::size_t unsupported = 0;
    std::uint64_t lacking = 0;
    bool wrong = false;
  };
  virtual Mark mark() const = 0;
  // Forgets the refusals since the mark, for another attempt. False, and nothing is forgotten, when operators
  // are missing: no attempt helps.
  virtual bool forget_since(const Mark& mark) = 0;
};

struct OpHandler;

// One node during import. The first failure is kept, and later calls return harmless defaults: handlers need
// no checks in between, and the importer reads failure() when the handler returns.
class OpContext {
 public:
  OpContext(const Node& node, std::int64_t opset, std::vector<std::optional<Value>> inputs, Mover& mover,
            Bodies& bodies, const Bindings* bindings);

  const Node& node() const { return node_; }
  std::int64_t opset() const { return opset_; }
  Mover& mover() { return mover_; }
  Bodies& bodies() { return bodies_; }

  // ---- inputs ----
  int input_count() const { return static_cast<int>(inputs_.size()); }
  bool has(int input) const;      // present, and not left out with an empty name
  const Value& value(int input);  // fails when left out
  Tensor tensor(int input) { return value(input).tensor(); }
  const Shape& shape(int input) { return value(input).shape(); }
  bool all_foldable() const;  // every present input is
  const std::vector<std::optional<Value>>& inputs() const { return inputs_; }
  // The elements of an input that must be known now: at most `most` whole numbers, or one number. Fails for
  // anything else. `most` keeps the cost of a node apart from the size of its constants.
  std::vector<std::int64_t> known_ints(int input, const char* what, std::size_t most = Shape::kMaxRank);
  std::vector<float> known_floats(int input, const char* what, std::size_t most = Shape::kMaxRank);
  double known_number(int input, const char* what);
  std::int64_t known_int(int input, const char* what);  // below 2^53; a float is truncated

  // ---- attributes; fail when the file has another kind, or lists and strings are read too often in all: a
  // function may have one long list that each of its nodes reads ----
  bool has_attribute(std::string_view name) const { return find_attribute(name) != nullptr; }
  // A Constant's value, from one of its attributes. Nothing when it has none of them, or after a failure.
  std::optional<Value> constant_attribute();
  std::int64_t int_attribute(std::string_view name, std::int64_t otherwise);
  double float_attribute(std::string_view name, double otherwise);
  std::string string_attribute(std::string_view name, std::string otherwise);
  std::vector<std::int64_t> ints_attribute(std::string_view name, std::vector<std::int64_t> otherwise = {});
  std::vector<float> floats_attribute(std::string_view name);
  std::vector<std::string> strings_attribute(std::string_view name);
  const TensorData* tensor_attribute(std::string_view name);
  const Graph* graph_attribute(std::string_view name);  // fails when left out

  // ---- checks ----
  int axis(std::int64_t raw, int rank);  // normalised; 0 after a failure
  // Fails with shape_mismatch when false; returns whether nothing has failed.
  bool require(bool condition, std::string reason);
  // All distinct and normalised.
  std::vector<int> axes(const std::vector<std::int64_t>& raw, int rank);
  Shape checked(std::span<const std::int64_t> extents);
  // For operators that make many operations: fails when the model has too many. Returns whether nothing has
  // failed.
  bool may_make(std::int64_t operations);
  void unsupported(const std::string& reason);
  void fail(ErrorCode code, const std::string& reason);
  const std::optional<Error>& failure() const { return failure_; }
  // A body was refused, which is kept already: the node makes nothing.
  void stop() { stopped_ = true; }
  bool stopped() const { return stopped_; }

  // A product of what DequantizeLinear made. why_float: why it stays in float32; empty: it does not.
  void note_quantised(std::string why_float) { why_float_ = std::move(why_float); }
  // Nothing: it is no such product.
  const std::optional<std::string>& why_float() const { return why_float_; }

  // The outputs of another operator of the table ("AveragePool") for these inputs, with the node's
  // attributes: a quantised pool is a pool of real numbers between two roundings. Nothing after a failure.
  std::optional<std::vector<Value>> imported_as(std::string_view op, std::int64_t opset,
                                                std::vector<std::optional<Value>> inputs);

  // Sets the outputs to those of the handler for these inputs instead of the node's own.
  void become(const OpHandler& handler, std::vector<std::optional<Value>> inputs);

  // ---- outputs ----
  bool wants(int output) const;  // the node names it
  void set(int output, Value value);
  // With the type of the first input of the same run-time dtype, else float32, int64 or bool.
  void set(int output, Tensor tensor);
  void set(int output, Tensor tensor, ElementType type);
  const std::vector<Value>& outputs() const { return outputs_; }

 private:
  const Attribute* find_attribute(std::string_view name) const {
    return resolved(node_.find_attribute(name), bindings_);
  }
  const Attribute* attribute(std::string_view name, AttributeKind kind);
  bool may_copy(const Attribute& attribute);

  const Node& node_;
  std::int64_t opset_;
  std::vector<std::optional<Value>> inputs_;
  Mover& mover_;
  Bodies& bodies_;
  const Bindings* bindings_;
  bool stopped_ = false;
  std::optional<std::string> why_float_;
  std::vector<Value> outputs_;
  Value missing_;  // value() of an input left out, made when it is asked for
  std::optional<Error> failure_;
};

enum class Takes : std::uint8_t {
  numbers,  // tensors of numbers and bools
  text,     // tensors of strings too
  anything  // sequences and optionals too
};

struct OpHandler {
  std::string_view name;  // with its domain when that is not ONNX's own
  void (*import)(OpContext&);
  // Computes the outputs on the host when every input is known, and the first is not left out. False when it
  // does not apply. May be null.
  bool (*fold)(OpContext&) = nullptr;
  // Inputs of other kinds are refused before the handler is called.
  Takes takes = Takes::numbers;
};

// All of them, family by family.
std::vector<std::span<const OpHandler>> all_ops();

// Null for operators that Imprint does not have.
const OpHandler* find_handler(std::string_view domain, std::string_view op_type);

// Rows of the table, one file per family: elementwise_ops() is in ops/elementwise.cpp.
std::span<const OpHandler> elementwise_ops();
std::span<const OpHandler> activation_ops();
std::span<const OpHandler> reduce_ops();
std::span<const OpHandler> linear_ops();
std::span<const OpHandler> shape_ops();
std::span<const OpHandler> index_ops();
std::span<const OpHandler> image_ops();
std::span<const OpHandler> norm_ops();
std::span<const OpHandler> control_ops();
std::span<const OpHandler> resize_ops();
std::span<const OpHandler> scatter_ops();
std::span<const OpHandler> recurrent_ops();
std::span<const OpHandler> attention_ops();
std::span<const OpHandler> quantised_ops();
std::span<const OpHandler> various_ops();
std::span<const OpHandler> sequence_ops();
std::span<const OpHandler> random_ops();
std::span<const OpHandler> detection_ops();
std::span<const OpHandler> text_ops();
std::span<const OpHandler> training_ops();
std::span<const OpHandler> microsoft_ops();
std::span<const OpHandler> microsoft_further_ops();
std::span<const OpHandler> microsoft_quantised_ops();
std::span<const OpHandler> packed_weights_ops();

// Host arithmetic for known inputs, as shape computations need it (fold.cpp).
bool fold_elementwise(OpContext& context);
bool fold_where(OpContext& context);
bool fold_cast(OpContext& context);
// Numbers as numbers of another type, wrapped and rounded as by a cast at run time.
HostArray cast_known(const HostArray& from, ElementType to);
bool fold_reduce(OpContext& context);

// The type that Cast and its like produce. Fails with unsupported for types that Imprint lacks.
std::optional<ElementType> cast_target(OpContext& context, std::int64_t number);

// A known one-dimensional int64 value.
Value known_vector(std::vector<std::int64_t> values);

// ---- shared by families ----

// Indices that count from the start, made from indices that may count from the end of an axis: on the host
// where they are known, with a check, else by the graph (ops/index.cpp).
std::optional<Value> normal_indices(OpContext& context, int input, const Shape& of, int axis);

// ---- uint32 (unsigned.cpp) ----

// Calls the handler, or what replaces it for numbers of uint32 that int32 cannot hold. Fails if nothing does.
void import_with_unsigned(OpContext& context, const OpHandler& handler);
// The int32 with the bits of x as uint32. A float from 2^32 on becomes 2^32 - 1; below 0 int32's number
// counts.
Tensor uint32_of(const Tensor& x);

// ---- named extents (named.cpp) ----

// Whether the handler of the operator ("Add", "com.microsoft.Gelu") is right for inputs with named axes: it
// reads their extents only to make shapes.
bool takes_named_axes(std::string_view name);
// Arithmetic on whole numbers that follow from named extents. False: the graph must compute it.
bool fold_symbolic(OpContext& context);
// Reshape, Expand, Tile, Slice and Range where a shape or a number follows from named extents.
void reshape_named(OpContext& context);
void expand_named(OpContext& context);
void tile_named(OpContext& context);
void range_named(OpContext& context);
// Elements [start, end) by Python's rules. Nothing after a failure.
std::optional<Value> slice_named(OpContext& context, const Value& value, int axis, const SymbolicInt& start,
                                 const SymbolicInt& end);
// A list of whole numbers, known or not. Nothing, and a failure, for others.
std::optional<std::vector<SymbolicInt>> symbolic_list(OpContext& context, int input, const char* what);

// (x - mean) / sqrt(variance + epsilon) over `axes`, kept. Centred first, so that a large mean costs no
// digits (ops/norm.cpp).
Tensor normalized(const Tensor& x, const Axes& axes, double epsilon);

// x as `type` stores it: whole numbers wrap to its width, floats round to its digits. Fails when the model
// rounds too often (ops/elementwise.cpp).
Tensor stored_as(OpContext& context, ElementType type, const Tensor& x);

// Conv's result for x and weight, with the node's strides, pads and so on (ops/image.cpp). bias: or
// empty. May fail.
Tensor convolved(OpContext& context, const Tensor& x, const Tensor& weight, const Tensor& bias);

// A cast between numbers and strings that are known. False when neither side has strings (ops/strings.cpp).
bool cast_text(OpContext& context, ElementType to);

// Dropout's two outputs in training (ops/random.cpp).
void dropout_in_training(OpContext& context, double ratio);

inline Extents extents_of(const Shape& shape) {
  return Extents(shape.extents().begin(), shape.extents().end());
}

}  // namespace imprint::onnx
