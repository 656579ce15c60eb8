#pragma once
// How tensor operations become nodes: attributes, shape inference, exact simplification and error messages.
// For the operations of this room and for passes that rewrite graphs, not for users of tensors.

#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compute/tensor/tensor.h"

namespace imprint::tensor {

// An op's attributes. ints and floats become Node's (op.h). Ops whose result they determine read shape and
// dtype: leaves, generators, reshape, expand, cast.
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

// The shape and dtype of a primitive's result. The error names the op, its operands and what was expected.
Result<Inferred> infer(Op op, std::span<const NodeRef> inputs, const Attributes& attributes);

// Names the axes of a result of shape `out` (Extent), whose extents are inferred already: named_axes.cpp.
// Errors: unsupported (an operation that takes no named axis there), shape_mismatch (two names for one axis).
Result<> name_axes(Op op, std::span<const NodeRef> inputs, const Attributes& attributes, Shape& out);
// Whether any input or the attributes' shape has a named axis.
bool has_named_axes(std::span<const NodeRef> inputs, const Attributes& attributes);

inline bool is_op(const Tensor& tensor, Op op) { return tensor.node()->op == op; }

// Infers and makes a node. The first error of an input passes through.
Tensor make(Op op, std::span<const Tensor> inputs, Attributes attributes = {});
Tensor make(Op op, std::initializer_list<Tensor> inputs, Attributes attributes = {});

// The node with other inputs, of the same shapes and dtypes.
NodeRef with_inputs(const Node& node, std::vector<NodeRef> inputs);
// As before, a page's node with another page of the same outputs.
NodeRef with_inputs(const Node& node, std::vector<NodeRef> inputs, std::shared_ptr<const LibraryPage> page);

// The value that an elementwise op on equal shapes reduces to, where that is exact for NaN, infinities and,
// except x + 0, signed zero.
std::optional<Tensor> simplify(Op op, std::span<const Tensor> operands);

// Broadcasts the operands, gives bare numbers the dtype of the others, simplifies, and makes the node.
Tensor elementwise(Op op, std::span<const Tensor> operands);
Tensor elementwise(Op op, std::initializer_list<Tensor> operands);

// Integers of another type as int32; other tensors as they are. int64 is clamped: a position outside an axis
// stays outside.
Tensor as_indices(const Tensor& tensor);

// The value of a `full` node.
std::optional<double> full_value(const Tensor& tensor);
// A scalar of the dtype of `like`.
Tensor number(double value, const Tensor& like);
// `tensor` expanded to `shape`; the shapes must broadcast.
Tensor broadcast_operand(const Tensor& tensor, const Shape& shape);
// Rounds to a value of the dtype: float for float32, truncation for int32, 0 or 1 for bool.
double representable(double value, DType dtype);

// Output i of a page's node. 0: the node itself.
Tensor page_output(const NodeRef& page, std::size_t output);

// Whether the tensor is default-constructed: not given, rather than failed.
bool is_empty(const Tensor& tensor);

// ---- messages ----
std::string describe(const Node& node);  // its name (or its op) and shape: `weight [64, 8]`
std::string describe(const Tensor& tensor);
Tensor failure(ErrorCode code, std::string_view op, std::string text);  // "op: text"
// "op: found axis 2 of x [3, 5], expected -2 .. 1".
Tensor bad_axis(std::string_view op, int axis, const Tensor& x);
// "op: x [3, 5] is int32, expected float32. Cast it first."
Tensor bad_dtype(std::string_view op, const Tensor& x, std::string_view expected);
std::string dtype_text(const Node& node, std::string_view expected);  // the text of bad_dtype
// The first error among tensors, if any.
const Tensor* first_error(std::span<const Tensor> tensors);

}  // namespace imprint::tensor
