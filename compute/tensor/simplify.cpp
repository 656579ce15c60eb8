#include <cmath>
#include <cstring>

#include "compute/tensor/build.h"

namespace imprint::tensor {
namespace {

bool is_value(const Tensor& tensor, double value) {
  const std::optional<double> found = full_value(tensor);
  return found && *found == value;
}

const Tensor operand_of(const Tensor& tensor, std::size_t index) {
  return Tensor(tensor.node()->inputs[index]);
}
Tensor filled(const Tensor& like, double value) { return full(like.shape(), value, like.dtype()); }

// Numbers known while the graph is built are computed as the device would: in float32, or in wrapping int32.
std::optional<double> fold_float(Op op, float a, float b) {
  switch (op) {
    case Op::add:
      return a + b;
    case Op::sub:
      return a - b;
    case Op::mul:
      return a * b;
    case Op::div:
      return a / b;
    default:
      return std::nullopt;
  }
}

std::optional<double> fold_int(Op op, std::int64_t a, std::int64_t b) {
  std::int64_t wide = 0;
  switch (op) {
    case Op::add:
      wide = a + b;
      break;
    case Op::sub:
      wide = a - b;
      break;
    case Op::mul:
      wide = a * b;
      break;
    default:
      return std::nullopt;
  }
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(static_cast<std::uint64_t>(wide)));
}

std::optional<double> fold_unary(Op op, double x) {
  switch (op) {
    case Op::neg:
      return -x;
    case Op::abs:
      return std::fabs(x);
    case Op::sqrt:
      return std::sqrt(x);
    case Op::recip:
      return 1.0 / x;
    case Op::exp:
      return std::exp(x);
    case Op::log:
      return std::log(x);
    default:
      return std::nullopt;
  }
}

std::optional<Tensor> simplify_unary(Op op, const Tensor& x) {
  const std::optional<double> value = full_value(x);
  if (value && x.dtype() == DType::float32)
    if (const std::optional<double> folded = fold_unary(op, *value)) return filled(x, *folded);
  if (op == Op::neg && is_op(x, Op::neg)) return operand_of(x, 0);
  if (op == Op::logical_not && is_op(x, Op::logical_not)) return operand_of(x, 0);
  if (op == Op::stop_gradient && (is_op(x, Op::stop_gradient) || value)) return x;
  return std::nullopt;
}

std::optional<Tensor> simplify_binary(Op op, const Tensor& a, const Tensor& b) {
  const std::optional<double> va = full_value(a), vb = full_value(b);
  if (va && vb && a.dtype() == b.dtype()) {
    std::optional<double> folded;
    if (a.dtype() == DType::float32)
      folded = fold_float(op, static_cast<float>(*va), static_cast<float>(*vb));
    if (a.dtype() == DType::int32)
      folded = fold_int(op, static_cast<std::int64_t>(*va), static_cast<std::int64_t>(*vb));
    if (folded) return filled(a, *folded);
  }
  switch (op) {
    case Op::add:
      if (is_value(b, 0)) return a;
      if (is_value(a, 0)) return b;
      if (is_op(b, Op::neg)) return elementwise(Op::sub, {a, operand_of(b, 0)});
      break;
    case Op::sub:
      if (is_value(b, 0)) return a;
      if (is_value(a, 0) && a.dtype() == DType::float32) return elementwise(Op::neg, {b});
      if (is_op(b, Op::neg)) return elementwise(Op::add, {a, operand_of(b, 0)});
      break;
    case Op::mul:
      if (is_value(b, 1)) return a;
      if (is_value(a, 1)) return b;
      if (is_value(b, -1)) return elementwise(Op::neg, {a});
      if (is_value(a, -1)) return elementwise(Op::neg, {b});
      if (is_op(a, Op::neg) && is_op(b, Op::neg))
        return elementwise(Op::mul, {operand_of(a, 0), operand_of(b, 0)});
      break;
    case Op::div:
      if (is_value(b, 1)) return a;
      if (is_value(a, 1) && a.dtype() == DType::float32) return elementwise(Op::recip, {b});
      break;
    case Op::pow:
      if (is_value(b, 1)) return a;
      if (is_value(b, 2)) return elementwise(Op::mul, {a, a});
      if (is_value(b, -1)) return elementwise(Op::recip, {a});
      break;
    case Op::logical_and:
      if (is_value(b, 1)) return a;
      if (is_value(a, 1)) return b;
      break;
    case Op::logical_or:
      if (is_value(b, 0)) return a;
      if (is_value(a, 0)) return b;
      break;
    default:
      break;
  }
  return std::nullopt;
}

}  // namespace

std::optional<Tensor> simplify(Op op, std::span<const Tensor> operands) {
  if (operands.size() == 1) return simplify_unary(op, operands[0]);
  if (operands.size() == 2) {
    // A dtype that the op refuses must reach inference, which reports it.
    if (operands[0].dtype() != operands[1].dtype()) return std::nullopt;
    const bool logical = op == Op::logical_and || op == Op::logical_or;
    if ((operands[0].dtype() == DType::boolean) != logical) return std::nullopt;
    if (op == Op::pow && operands[0].dtype() != DType::float32) return std::nullopt;
    return simplify_binary(op, operands[0], operands[1]);
  }
  if (op == Op::where && operands[0].dtype() == DType::boolean &&
      operands[1].dtype() == operands[2].dtype()) {
    if (is_value(operands[0], 1)) return operands[1];
    if (is_value(operands[0], 0)) return operands[2];
    if (operands[1].node() == operands[2].node()) return operands[1];
  }
  return std::nullopt;
}

}  // namespace imprint::tensor
