#pragma once
// How tensor operations become nodes: drafts, shape inference, exact simplification, and the words of error
// messages. For the operations of this room and for passes that rewrite graphs; users of tensors never need
// it.

#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compute/tensor/tensor.h"

namespace imprint::tensor {

// What an op needs beside its inputs. ints and floats are Node's; shape and dtype are read by the ops whose
// result they name (leaves, generators, reshape, expand, cast) and ignored by the others.
struct Attributes {
  std::vector<std::int64_t> ints;
  std::vector<double> floats;
  Shape shape;
  DType dtype = DType::float32;
};

struct Inferred {
  DType dtype = DType::float32;
  Shape shape;
};

// The shape and dtype of a primitive's result: one rule an op. Fails with the op, its operands and what it
// needs.
Result<Inferred> infer(Op op, std::span<const NodeRef> inputs, const Attributes& attributes);

inline bool is_op(const Tensor& tensor, Op op) { return tensor.node()->op == op; }

// A node after inference; the first error of the inputs goes through.
Tensor make(Op op, std::span<const Tensor> inputs, Attributes attributes = {});
Tensor make(Op op, std::initializer_list<Tensor> inputs, Attributes attributes = {});

// The value an elementwise op on equal shapes reduces to without computing, where that is exact for NaN,
// infinities and (but for x + 0) signed zero.
std::optional<Tensor> simplify(Op op, std::span<const Tensor> operands);

// Broadcasts the operands, lets bare numbers adopt the others' dtype, simplifies, and makes the node.
Tensor elementwise(Op op, std::span<const Tensor> operands);
Tensor elementwise(Op op, std::initializer_list<Tensor> operands);

// The value of a `full` node.
std::optional<double> full_value(const Tensor& tensor);
// A number beside `like`: a scalar of its dtype.
Tensor number(double value, const Tensor& like);
// `tensor` as an operand of a result of `shape`; the shapes are known to broadcast.
Tensor broadcast_operand(const Tensor& tensor, const Shape& shape);
// Rounds to what the dtype can hold: float for float32, truncation for int32, 0 or 1 for bool.
double representable(double value, DType dtype);

// A default-constructed Tensor: "not given", as against one that carries an error.
bool is_empty(const Tensor& tensor);

// ---- messages ----
std::string describe(const Node& node);  // its name (or its op) and shape: `weight [64, 8]`
std::string describe(const Tensor& tensor);
Tensor failure(ErrorCode code, std::string_view op, std::string text);  // "op: text"
// The first error among tensors, if any.
const Tensor* first_error(std::span<const Tensor> tensors);

}  // namespace imprint::tensor
