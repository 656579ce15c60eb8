#include <array>
#include <cmath>

#include "compute/base/text.h"
#include "compute/tensor/build.h"
#include "compute/tensor/narrow_floats.h"

namespace imprint {

using namespace tensor;

namespace {

// A C++ number, or any scalar with one known value. It takes its neighbour's dtype where that loses nothing.
bool is_number_literal(const Tensor& tensor) { return tensor.rank() == 0 && full_value(tensor).has_value(); }

Tensor adopt(Op op, const Tensor& literal, const Tensor& neighbour) {
  if (literal.dtype() == neighbour.dtype()) return literal;
  const double value = *full_value(literal);
  const DType dtype = neighbour.dtype();
  if (dtype != DType::float32 && representable(value, dtype) != value)
    return failure(ErrorCode::dtype_mismatch, op_info(op).name,
                   text("found ", value, " beside ", dtype_name(dtype), " ", describe(neighbour),
                        ", expected a number of that dtype. Cast the tensor to float32 first."));
  return number(value, neighbour);
}

// Literals among operands [first, end) take the dtype of the first operand that is not a literal, or float32
// where two literals differ.
void adopt_dtypes(Op op, std::vector<Tensor>& operands, std::size_t first) {
  const Tensor* neighbour = nullptr;
  for (std::size_t i = first; i < operands.size(); ++i) {
    const bool better =
        !neighbour || (is_number_literal(*neighbour) &&
                       (!is_number_literal(operands[i]) || operands[i].dtype() == DType::float32));
    if (better) neighbour = &operands[i];
  }
  const Tensor chosen = *neighbour;
  for (std::size_t i = first; i < operands.size(); ++i)
    if (is_number_literal(operands[i])) operands[i] = adopt(op, operands[i], chosen);
}

// The narrow float type that an operation computes in: that of all operands, numbers aside. Nothing where
// operands have other types, or the operation takes no floats.
std::optional<DType> narrow_type(Op op, std::span<const Tensor> operands) {
  if (op != Op::where && !dtypes_of(op).floats) return std::nullopt;
  std::optional<DType> found;
  bool is_literal = true;
  for (const Tensor& operand : op == Op::where ? operands.subspan(1) : operands) {
    const bool own = is_number_literal(operand);
    if (own && (!is_literal || !is_narrow_float(operand))) continue;
    if (!is_narrow_float(operand)) return std::nullopt;
    if (found && is_literal == own && *found != operand.dtype()) return std::nullopt;
    found = operand.dtype();
    is_literal = own;
  }
  return found;
}

std::string no_broadcast(std::span<const Tensor> operands) {
  std::string found = "found ";
  for (std::size_t i = 0; i < operands.size(); ++i)
    found += text(i == 0 ? "" : i + 1 == operands.size() ? " and " : ", ", describe(operands[i]));
  return found + ", expected shapes that broadcast: from the last axis, extents are equal or 1";
}

// Whether the axes have the names that any operand gives them.
bool has_names(const Tensor& result, std::span<const Tensor> operands) {
  for (const Tensor& operand : operands)
    for (int axis = 0; axis < operand.rank(); ++axis)
      if (operand.shape().is_named(axis) && result.ok() && !result.shape().is_named(axis)) return false;
  return true;
}

}  // namespace

Tensor tensor::broadcast_operand(const Tensor& tensor, const Shape& shape) {
  if (!tensor.ok() || tensor.shape() == shape) return tensor;
  if (const std::optional<double> value = full_value(tensor)) return full(shape, *value, tensor.dtype());
  return expand(tensor, shape);
}

Tensor tensor::elementwise(Op op, std::span<const Tensor> given) {
  if (const Tensor* failed = first_error(given)) return *failed;
  std::vector<Tensor> operands(given.begin(), given.end());
  if (const std::optional<DType> narrow = narrow_type(op, given)) {
    for (Tensor& operand : operands)
      if (is_narrow_float(operand)) operand = cast(operand, DType::float32);
    const Tensor result = elementwise(op, operands);
    return result.ok() && result.dtype() == DType::float32 ? cast(result, *narrow) : result;
  }
  if (op == Op::where && is_number_literal(operands[0]))
    operands[0] = adopt(op, operands[0], full({}, 0, DType::boolean));
  if (operands.size() > 1) adopt_dtypes(op, operands, op == Op::where ? 1 : 0);
  if (const Tensor* failed = first_error(operands)) return *failed;

  Shape shape = operands[0].shape();
  for (const Tensor& operand : operands) {
    const std::optional<Shape> wider = broadcast(shape, operand.shape());
    if (!wider) return failure(ErrorCode::shape_mismatch, op_info(op).name, no_broadcast(operands));
    shape = *wider;
  }
  for (Tensor& operand : operands) operand = broadcast_operand(operand, shape);
  if (const Tensor* failed = first_error(operands)) return *failed;
  if (std::optional<Tensor> simple = simplify(op, operands); simple && has_names(*simple, operands))
    return *simple;
  return make(op, operands);
}

Tensor tensor::elementwise(Op op, std::initializer_list<Tensor> operands) {
  return elementwise(op, std::span<const Tensor>(operands.begin(), operands.size()));
}

#define IMPRINT_UNARY(name, ...) \
  Tensor name(const Tensor& x) { return elementwise(Op::name, {x}); }
IMPRINT_UNARY_OPS(IMPRINT_UNARY)
IMPRINT_UNARY(stop_gradient)
#undef IMPRINT_UNARY

#define IMPRINT_BINARY(name, ...) \
  Tensor name(const Tensor& a, const Tensor& b) { return elementwise(Op::name, {a, b}); }
IMPRINT_BINARY_OPS(IMPRINT_BINARY)
#undef IMPRINT_BINARY

Tensor cast(const Tensor& x, DType dtype) {
  if (!x.ok() || x.dtype() == dtype) return x;
  if (const std::optional<double> value = full_value(x); value && dtype_has_tensors(dtype))
    return full(x.shape(), *value, dtype);
  // Widened and narrowed again.
  if (dtype_is_narrow_float(dtype) && is_op(x, Op::cast) && x.dtype() == DType::float32 &&
      x.node()->inputs[0]->dtype == dtype)
    return Tensor(x.node()->inputs[0]);
  return make(Op::cast, {x}, {.dtype = dtype});
}

Tensor where(const Tensor& condition, const Tensor& if_true, const Tensor& if_false) {
  return elementwise(Op::where, {condition, if_true, if_false});
}

}  // namespace imprint
