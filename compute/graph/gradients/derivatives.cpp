#include "compute/graph/gradients/derivatives.h"

#include <numbers>
#include <type_traits>

namespace imprint::graph {

using namespace tensor;

namespace {

// In place of a derivative: no gradient passes.
struct Flat {};
constexpr Flat flat;

// Rows of op_rows.h as functions. By: derivatives per operand, each an expression.
template <class ByX>
constexpr Derivative derivative_of_one() {
  using Made = std::invoke_result_t<ByX, const Tensor&, const Tensor&, const Tensor&>;
  if constexpr (std::is_same_v<Made, Flat>)
    return nullptr;
  else
    return [](Adjoint& adjoint) {
      adjoint.give(0, ByX{}(adjoint.gradient(), adjoint.input(0), adjoint.output()));
    };
}

template <class ByA, class ByB>
constexpr Derivative derivative_of_two() {
  using Made = std::invoke_result_t<ByA, const Tensor&, const Tensor&, const Tensor&, const Tensor&>;
  if constexpr (std::is_same_v<Made, Flat>)
    return nullptr;
  else
    return [](Adjoint& adjoint) {
      const Tensor& g = adjoint.gradient();
      const Tensor a = adjoint.input(0), b = adjoint.input(1);
      if (adjoint.needs(0)) adjoint.give(0, ByA{}(g, a, b, adjoint.output()));
      if (adjoint.needs(1)) adjoint.give(1, ByB{}(g, a, b, adjoint.output()));
    };
}

// minimum and maximum: the gradient goes to the winning operand; ties share it equally.
Tensor unextreme(const Tensor& g, const Tensor& a, const Tensor& b, bool is_first,
                 Tensor (*wins)(const Tensor&, const Tensor&)) {
  const Tensor tie = equal(a, b);
  const Tensor half = g * 0.5f;
  return where(tie, half, where(is_first ? wins(a, b) : wins(b, a), g, 0.0f));
}

constexpr Derivative named(Derivative derivative) { return derivative; }
constexpr Derivative named(Flat) { return nullptr; }

}  // namespace

#define IMPRINT_TENSOR [[maybe_unused]] const Tensor&
#define IMPRINT_BY_ONE(expression) \
  decltype([](IMPRINT_TENSOR g, IMPRINT_TENSOR x, IMPRINT_TENSOR y) { return expression; })
#define IMPRINT_BY_TWO(expression) \
  decltype([](IMPRINT_TENSOR g, IMPRINT_TENSOR a, IMPRINT_TENSOR b, IMPRINT_TENSOR y) { return expression; })
#define IMPRINT_OF_1(glsl, floats, ints, by_x) derivative_of_one<IMPRINT_BY_ONE(by_x)>(),
#define IMPRINT_OF_2(glsl, floats, ints, by_a, by_b) \
  derivative_of_two<IMPRINT_BY_TWO(by_a), IMPRINT_BY_TWO(by_b)>(),
#define IMPRINT_ELEMENTWISE(name, kind, inputs, dtypes, cost, ...) IMPRINT_OF_##inputs(__VA_ARGS__)
#define IMPRINT_NAMED(name, kind, inputs, rule, cost, derivative, ...) named(derivative),

Derivative derivative_of(Op op) {
  using namespace derivatives;
  static constexpr Derivative kDerivatives[] = {IMPRINT_OPS_BY_TABLE(IMPRINT_NAMED, IMPRINT_ELEMENTWISE)};
  return kDerivatives[static_cast<std::size_t>(op)];
}

#undef IMPRINT_TENSOR
#undef IMPRINT_BY_ONE
#undef IMPRINT_BY_TWO
#undef IMPRINT_OF_1
#undef IMPRINT_OF_2
#undef IMPRINT_ELEMENTWISE
#undef IMPRINT_NAMED

}  // namespace imprint::graph
