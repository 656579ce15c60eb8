#include "tests/reference/op_case.h"

#include <algorithm>
#include <cmath>
#include <ostream>

#include "compute/base/philox.h"
#include "compute/base/text.h"
#include "compute/graph/gradients/autodiff.h"

namespace imprint::reference {

using namespace tensor;

namespace {

double value_of(const CaseInput& input, std::uint32_t position, std::uint32_t element) {
  const double uniform = philox_uniform(element, position, 0, 20240229, 7);
  if (input.dtype == DType::boolean) return uniform < 0.5 ? 0 : 1;
  if (dtype_is_integer(input.dtype)) return std::floor(input.low + uniform * (input.high - input.low + 1));
  double value = input.low + uniform * (input.high - input.low);
  for (double kink : input.avoid)
    if (std::fabs(value - kink) < 0.05) value = kink + (value < kink ? -0.06 : 0.06);
  return static_cast<double>(static_cast<float>(value));
}

}  // namespace

bool Tolerance::accepts(double found, double expected) const {
  if (std::isnan(expected)) return std::isnan(found);
  if (std::isinf(expected)) return found == expected;
  return std::fabs(found - expected) <= absolute + relative * std::fabs(expected);
}

std::vector<OpCase> op_cases() {
  std::vector<OpCase> cases;
  add_elementwise_cases(cases);
  add_activation_cases(cases);
  add_shape_cases(cases);
  add_folding_cases(cases);
  add_composite_cases(cases);
  add_page_cases(cases);
  add_loop_cases(cases);
  add_layer_cases(cases);
  return cases;
}

void PrintTo(const OpCase& op_case, std::ostream* stream) { *stream << op_case.name; }

std::vector<Tensor> case_inputs(const OpCase& op_case) {
  std::vector<Tensor> inputs;
  for (std::size_t i = 0; i < op_case.inputs.size(); ++i)
    inputs.push_back(input(text("in", i), op_case.inputs[i].shape, op_case.inputs[i].dtype));
  return inputs;
}

Bindings case_bindings(const OpCase& op_case) {
  Bindings bindings;
  for (std::size_t i = 0; i < op_case.inputs.size(); ++i) {
    std::vector<double> values(static_cast<std::size_t>(op_case.inputs[i].shape.element_count()));
    for (std::size_t k = 0; k < values.size(); ++k)
      values[k] = value_of(op_case.inputs[i], static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(k));
    bindings[text("in", i)] = std::move(values);
  }
  return bindings;
}

bool has_narrow_floats(const Tensor& output) {
  const auto among = [](const auto& self, const Node& node) -> bool {
    if (node.dtype == DType::float16 || node.dtype == DType::bfloat16) return true;
    return std::ranges::any_of(node.inputs, [&](const NodeRef& input) { return self(self, *input); });
  };
  return among(among, *output.node());
}

Tensor case_loss(const Tensor& output) {
  if (!output.ok()) return output;
  std::vector<float> weights(static_cast<std::size_t>(output.shape().element_count()));
  for (std::size_t i = 0; i < weights.size(); ++i) weights[i] = 1.0f + 0.5f * std::cos(static_cast<float>(i));
  return sum(output * Tensor::from(weights, output.shape()));
}

Result<std::vector<Tensor>> case_gradients(const OpCase& op_case, std::span<const Tensor> inputs,
                                           const Tensor& output) {
  std::vector<Tensor> targets;
  for (const Tensor& tensor : inputs)
    if (tensor.dtype() == DType::float32) targets.push_back(tensor);
  if (!op_case.differentiable || targets.empty()) return std::vector<Tensor>{};
  return gradients(case_loss(output), targets);
}

}  // namespace imprint::reference
