// Every case's gradients against central differences of the oracle in double precision.

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "compute/base/text.h"
#include "compute/graph/gradients/autodiff.h"
#include "tests/reference/op_case.h"

namespace imprint {

using namespace tensor;

namespace {

using reference::Bindings;
using reference::OpCase;

class OpCases : public ::testing::TestWithParam<OpCase> {};

double directed(const Tensor& loss, Bindings bindings, const std::string& name,
                const std::vector<double>& direction, double step) {
  std::vector<double>& values = bindings[name];
  for (std::size_t i = 0; i < values.size(); ++i) values[i] += step * direction[i];
  return reference::evaluate(loss, bindings)[0];
}

// The derivative along one direction tests every element with two evaluations. On failure, unit directions
// find the wrong element.
std::vector<std::vector<double>> directions(std::size_t count) {
  std::vector<std::vector<double>> out;
  for (int seed = 1; seed <= 2; ++seed) {
    std::vector<double> mixed(count);
    for (std::size_t i = 0; i < count; ++i) mixed[i] = std::cos(static_cast<double>(i) * 1.7 * seed + seed);
    out.push_back(std::move(mixed));
  }
  for (std::size_t i = 0; i < count; i += count < 16 ? 1 : count / 3) {
    std::vector<double> unit(count, 0);
    unit[i] = 1;
    out.push_back(std::move(unit));
  }
  return out;
}

TEST_P(OpCases, GradientsAgreeWithDifferences) {
  const OpCase& op_case = GetParam();
  const std::vector<Tensor> inputs = reference::case_inputs(op_case);
  const Tensor output = op_case.build(inputs);
  ASSERT_TRUE(output.ok()) << output.error().message;
  const Bindings bindings = reference::case_bindings(op_case);
  ASSERT_EQ(static_cast<std::int64_t>(reference::evaluate(output, bindings).size()),
            output.shape().element_count());

  const Result<std::vector<Tensor>> gradient_tensors = reference::case_gradients(op_case, inputs, output);
  ASSERT_TRUE(gradient_tensors) << gradient_tensors.error().message;
  const std::vector<std::vector<double>> found = reference::evaluate_all(*gradient_tensors, bindings);
  if (found.empty()) return;
  const Tensor loss = reference::case_loss(output);
  std::size_t next = 0;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].dtype() != DType::float32) continue;
    ASSERT_EQ((*gradient_tensors)[next].shape(), inputs[i].shape());
    const std::vector<double>& gradient = found[next++];
    for (const std::vector<double>& direction : directions(gradient.size())) {
      constexpr double kStep = 1e-5;
      const std::string name = text("in", i);
      const double expected = (directed(loss, bindings, name, direction, kStep) -
                               directed(loss, bindings, name, direction, -kStep)) /
                              (2 * kStep);
      double dot = 0, size = 1;
      for (std::size_t k = 0; k < gradient.size(); ++k) {
        dot += gradient[k] * direction[k];
        size += std::fabs(gradient[k] * direction[k]);
      }
      EXPECT_NEAR(dot, expected, 2e-6 * size) << "by input " << i;
    }
  }
}

// Differences through narrow floats measure rounding steps. NarrowFloats.GradientsAreFloat32 tests their
// gradients.
std::vector<OpCase> smooth_cases() {
  std::vector<OpCase> cases = reference::op_cases();
  std::erase_if(cases, [](const OpCase& op_case) {
    const auto built = op_case.build(reference::case_inputs(op_case));
    return built.ok() && reference::has_narrow_floats(built);  // the test itself reports a failed build
  });
  return cases;
}

INSTANTIATE_TEST_SUITE_P(All, OpCases, ::testing::ValuesIn(smooth_cases()), [](const auto& parameter) {
  std::string name = text(parameter.index, "_");
  for (char c : parameter.param.name) name += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return name;
});

void collect(const NodeRef& node, std::set<Op>& ops, std::set<const Node*>& seen) {
  if (!seen.insert(node.get()).second) return;
  ops.insert(node->op);
  for (const NodeRef& input : node->inputs) collect(input, ops, seen);
}

TEST(OpCaseList, CoversThePrimitives) {
  std::set<Op> ops;
  std::set<const Node*> seen;
  std::set<std::string> names;
  for (const OpCase& op_case : reference::op_cases()) {
    EXPECT_TRUE(names.insert(op_case.name).second) << op_case.name << " twice";
    const std::vector<Tensor> inputs = reference::case_inputs(op_case);
    const Tensor output = op_case.build(inputs);
    ASSERT_TRUE(output.ok()) << op_case.name << ": " << output.error().message;
    EXPECT_LE(output.shape().element_count(), 1 << 21) << op_case.name;
    collect(output.node(), ops, seen);
    const Result<std::vector<Tensor>> gradient_tensors = reference::case_gradients(op_case, inputs, output);
    ASSERT_TRUE(gradient_tensors) << op_case.name << ": " << gradient_tensors.error().message;
    for (const Tensor& gradient : *gradient_tensors) collect(gradient.node(), ops, seen);
    seen.clear();  // addresses are used again by the next case
  }
#define X(name, ...)                                              \
  if (Op::name != Op::variable && Op::name != Op::custom) {       \
    EXPECT_TRUE(ops.contains(Op::name)) << "no case uses " #name; \
  }
  IMPRINT_OPS(X)
#undef X
}

}  // namespace
}  // namespace imprint
