#include "compute/graph/derivatives.h"

#include <numbers>

namespace imprint::graph {

using namespace tensor;

bool is_differentiable(Op op) {
  switch (op) {
    case Op::stop_gradient:
    case Op::custom:
    case Op::sign:
    case Op::ceil:
    case Op::floor:
    case Op::round:
    case Op::trunc:
      return false;
    default:
      return true;
  }
}

void differentiate(Adjoint& adjoint) {
  if (op_info(adjoint.node().op).kind == OpKind::elementwise)
    differentiate_elementwise(adjoint);
  else
    differentiate_arrangement(adjoint);
}

namespace {

// d output / d input of the unary ops, times g. x: the input, y: the output.
Tensor unary(Op op, const Tensor& g, const Tensor& x, const Tensor& y) {
  switch (op) {
    case Op::abs:
      return g * sign(x);
    case Op::neg:
      return -g;
    case Op::sqrt:
      return g * 0.5f / y;
    case Op::recip:
      return -(g * y * y);
    case Op::exp:
      return g * y;
    case Op::expm1:
      return g * (y + 1.0f);
    case Op::log:
      return g / x;
    case Op::log1p:
      return g / (x + 1.0f);
    case Op::sin:
      return g * cos(x);
    case Op::cos:
      return -(g * sin(x));
    case Op::tan:
      return g * (y * y + 1.0f);
    case Op::asin:
      return g / sqrt(1.0f - x * x);
    case Op::acos:
      return -(g / sqrt(1.0f - x * x));
    case Op::atan:
      return g / (x * x + 1.0f);
    case Op::sinh:
      return g * cosh(x);
    case Op::cosh:
      return g * sinh(x);
    case Op::tanh:
      return g * (1.0f - y * y);
    case Op::asinh:
      return g / sqrt(x * x + 1.0f);
    case Op::acosh:
      return g / sqrt((x - 1.0f) * (x + 1.0f));
    case Op::atanh:
      return g / ((1.0f - x) * (1.0f + x));
    case Op::erf:
      return g * (Tensor(2 * std::numbers::inv_sqrtpi) * exp(-(x * x)));
    case Op::sigmoid:
      return g * (y * (1.0f - y));
    case Op::cast:
      return g;
    default:
      return Tensor();
  }
}

void multiply(Adjoint& adjoint, const Tensor& g, const Tensor& a, const Tensor& b) {
  if (a.node() == b.node()) {
    // Both inputs are one node: input 0 gets the whole gradient, 2 x times g, and input 1 gets zeros.
    adjoint.give(0, g * (a + a));
    adjoint.give(1, zeros_like(b));
    return;
  }
  if (adjoint.needs(0)) adjoint.give(0, g * b);
  if (adjoint.needs(1)) adjoint.give(1, g * a);
}

// At a zero base or exponent the formula would evaluate 0 * inf. The limits match PyTorch's.
void power(Adjoint& adjoint, const Tensor& g, const Tensor& base, const Tensor& exponent) {
  if (adjoint.needs(0))
    adjoint.give(0, where(equal(exponent, 0.0f), 0.0f, g * (exponent * pow(base, exponent - 1.0f))));
  if (adjoint.needs(1)) {
    const Tensor flat = logical_and(equal(base, 0.0f), exponent >= 0.0f);
    adjoint.give(1, where(flat, 0.0f, g * (adjoint.output() * log(base))));
  }
}

// minimum and maximum: the gradient goes to the winning operand; ties share it equally.
void extremum(Adjoint& adjoint, const Tensor& g, const Tensor& a, const Tensor& b, bool largest) {
  const Tensor tie = equal(a, b);
  const Tensor half = g * 0.5f;
  if (adjoint.needs(0)) adjoint.give(0, where(tie, half, where(largest ? a > b : a < b, g, 0.0f)));
  if (adjoint.needs(1)) adjoint.give(1, where(tie, half, where(largest ? b > a : b < a, g, 0.0f)));
}

}  // namespace

void differentiate_elementwise(Adjoint& adjoint) {
  const Tensor& g = adjoint.gradient();
  const Tensor& y = adjoint.output();
  const Op op = adjoint.node().op;
  if (adjoint.input_count() == 1) {
    adjoint.give(0, unary(op, g, adjoint.input(0), y));
    return;
  }
  const Tensor a = adjoint.input(0), b = adjoint.input(1);
  switch (op) {
    case Op::add:
      if (adjoint.needs(0)) adjoint.give(0, g);
      if (adjoint.needs(1)) adjoint.give(1, g);
      return;
    case Op::sub:
      if (adjoint.needs(0)) adjoint.give(0, g);
      if (adjoint.needs(1)) adjoint.give(1, -g);
      return;
    case Op::mul:
      return multiply(adjoint, g, a, b);
    case Op::div:
      if (adjoint.needs(0)) adjoint.give(0, g / b);
      if (adjoint.needs(1)) adjoint.give(1, -(g * y / b));
      return;
    case Op::remainder:
      if (adjoint.needs(0)) adjoint.give(0, g);
      if (adjoint.needs(1)) adjoint.give(1, -(g * floor(a / b)));
      return;
    case Op::fmod:
      if (adjoint.needs(0)) adjoint.give(0, g);
      if (adjoint.needs(1)) adjoint.give(1, -(g * trunc(a / b)));
      return;
    case Op::pow:
      return power(adjoint, g, a, b);
    case Op::atan2: {
      const Tensor scaled = g / (a * a + b * b);
      if (adjoint.needs(0)) adjoint.give(0, scaled * b);
      if (adjoint.needs(1)) adjoint.give(1, -(scaled * a));
      return;
    }
    case Op::minimum:
      return extremum(adjoint, g, a, b, false);
    case Op::maximum:
      return extremum(adjoint, g, a, b, true);
    case Op::where:
      if (adjoint.needs(1)) adjoint.give(1, where(a, g, 0.0f));
      if (adjoint.needs(2)) adjoint.give(2, where(a, 0.0f, g));
      return;
    default:
      return;
  }
}

}  // namespace imprint::graph
