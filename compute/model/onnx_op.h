#pragma once
// Private: what the handler of an ONNX operator sees, and the table of handlers.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compute/model/onnx_value.h"

namespace imprint::onnx {

// One node during import. The first failure is kept, and later calls return harmless defaults: handlers need
// no checks in between, and the importer reads failure() when the handler returns.
class OpContext {
 public:
  OpContext(const Node& node, std::int64_t opset, std::vector<std::optional<Value>> inputs, Mover& mover);

  const Node& node() const { return node_; }
  std::int64_t opset() const { return opset_; }
  Mover& mover() { return mover_; }

  // ---- inputs ----
  int input_count() const { return static_cast<int>(inputs_.size()); }
  bool has(int input) const;      // present, and not left out with an empty name
  const Value& value(int input);  // fails when left out
  Tensor tensor(int input) { return value(input).tensor(); }
  const Shape& shape(int input) { return value(input).shape(); }
  bool all_foldable() const;  // every present input is
  // The elements of an input that must be known now: at most `most` whole numbers, or one number. Fails for
  // anything else. `most` keeps the cost of a node apart from the size of its constants.
  std::vector<std::int64_t> known_ints(int input, const char* what, std::size_t most = Shape::kMaxRank);
  double known_number(int input, const char* what);
  std::int64_t known_int(int input, const char* what);  // below 2^53; a float is truncated

  // ---- attributes; fail when the file has another kind ----
  bool has_attribute(std::string_view name) const { return node_.find_attribute(name) != nullptr; }
  std::int64_t int_attribute(std::string_view name, std::int64_t otherwise);
  double float_attribute(std::string_view name, double otherwise);
  std::string string_attribute(std::string_view name, std::string otherwise);
  std::vector<std::int64_t> ints_attribute(std::string_view name, std::vector<std::int64_t> otherwise = {});
  const TensorData* tensor_attribute(std::string_view name);

  // ---- checks ----
  int axis(std::int64_t raw, int rank);  // normalised; 0 after a failure
  // Fails with shape_mismatch when false; returns whether nothing has failed.
  bool require(bool condition, std::string reason);
  // All distinct and normalised.
  std::vector<int> axes(const std::vector<std::int64_t>& raw, int rank);
  Shape checked(std::span<const std::int64_t> extents);
  void unsupported(const std::string& reason);
  void fail(ErrorCode code, const std::string& reason);
  const std::optional<Error>& failure() const { return failure_; }

  // ---- outputs ----
  bool wants(int output) const;  // the node names it
  void set(int output, Value value);
  // With the type of the first input of the same run-time dtype, else float32, int64 or bool.
  void set(int output, Tensor tensor);
  void set(int output, Tensor tensor, ElementType type);
  const std::vector<Value>& outputs() const { return outputs_; }

 private:
  const Attribute* attribute(std::string_view name, AttributeKind kind);

  const Node& node_;
  std::int64_t opset_;
  std::vector<std::optional<Value>> inputs_;
  Mover& mover_;
  std::vector<Value> outputs_;
  Value missing_ = Value::run_time(Tensor(0.0f), ElementType::float32);  // value() of an input left out
  std::optional<Error> failure_;
};

struct OpHandler {
  std::string_view name;
  void (*import)(OpContext&);
  // Computes the outputs on the host when every input is known, and the first is not left out. False when it
  // does not apply. May be null.
  bool (*fold)(OpContext&) = nullptr;
};

// Null for operators that Imprint does not have.
const OpHandler* find_handler(std::string_view domain, std::string_view op_type);

// Rows of the table, one file per family.
std::span<const OpHandler> elementwise_ops();  // onnx_ops_elementwise.cpp
std::span<const OpHandler> activation_ops();   // onnx_ops_activation.cpp
std::span<const OpHandler> reduce_ops();       // onnx_ops_reduce.cpp
std::span<const OpHandler> linear_ops();       // onnx_ops_linear.cpp
std::span<const OpHandler> shape_ops();        // onnx_ops_shape.cpp
std::span<const OpHandler> index_ops();        // onnx_ops_index.cpp
std::span<const OpHandler> image_ops();        // onnx_ops_image.cpp
std::span<const OpHandler> norm_ops();         // onnx_ops_norm.cpp

// Host arithmetic for known inputs, as shape computations need it (onnx_fold.cpp).
bool fold_elementwise(OpContext& context);
bool fold_where(OpContext& context);
bool fold_cast(OpContext& context);
bool fold_reduce(OpContext& context);

// The type that Cast and its like produce. Fails with unsupported for types that Imprint lacks.
std::optional<ElementType> cast_target(OpContext& context, std::int64_t number);

// A known one-dimensional int64 value.
Value known_vector(std::vector<std::int64_t> values);

}  // namespace imprint::onnx
