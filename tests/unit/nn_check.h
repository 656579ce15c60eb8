#pragma once
// Checks a composed tensor: its gradients against central differences of the oracle, and its value and
// gradients on the CPU device against the oracle.

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "compute/base/text.h"
#include "compute/graph/gradients/autodiff.h"
#include "compute/nn/parameter.h"
#include "compute/program/run.h"
#include "tests/reference/op_case.h"

namespace imprint::test {

// Numbers between -scale and scale that do not repeat.
inline std::vector<double> waves(std::int64_t count, double scale = 1, int seed = 0) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < count; ++i)
    values.push_back(
        static_cast<float>(scale * std::sin(static_cast<double>(i + 1) * (0.7 + 0.13 * seed) + seed)));
  return values;
}

struct NetworkCheck {
  std::vector<Tensor> inputs;  // made by input(), each with an entry in the bindings
  std::vector<Tensor> leaves;  // differentiated: inputs and values of variables
  reference::Bindings bindings;
  double difference_tolerance = 2e-6;
  reference::Tolerance tolerance = {1e-5, 2e-5};
};

inline std::vector<double> leaf_content(const Tensor& leaf, const reference::Bindings& bindings) {
  return reference::evaluate(leaf, bindings);
}

// The derivative along two mixed directions tests every element with two evaluations each.
inline void expect_differences(const Tensor& loss, const NetworkCheck& check,
                               const std::vector<Tensor>& gradients) {
  for (std::size_t i = 0; i < check.leaves.size(); ++i) {
    const std::string& name = check.leaves[i].node()->label;
    const std::vector<double> slope = reference::evaluate(gradients[i], check.bindings),
                              at = leaf_content(check.leaves[i], check.bindings);
    ASSERT_EQ(slope.size(), at.size()) << name;
    for (int seed = 1; seed <= 2; ++seed) {
      double dot = 0, size = 1, along[2];
      for (const int sign : {0, 1}) {
        reference::Bindings moved = check.bindings;
        std::vector<double> values = at;
        for (std::size_t k = 0; k < values.size(); ++k)
          values[k] += (sign == 0 ? -1e-5 : 1e-5) * std::cos(static_cast<double>(k) * 1.7 * seed + seed);
        moved[name] = values;
        along[sign] = reference::evaluate(loss, moved)[0];
      }
      for (std::size_t k = 0; k < slope.size(); ++k) {
        const double term = slope[k] * std::cos(static_cast<double>(k) * 1.7 * seed + seed);
        dot += term;
        size += std::fabs(term);
      }
      EXPECT_NEAR(dot, (along[1] - along[0]) / 2e-5, check.difference_tolerance * size) << "by " << name;
    }
  }
}

// Keeps the initial content of all variables that the tensors use: it moves to a device with the first
// program, and the oracle needs it again.
class KeptVariables {
 public:
  explicit KeptVariables(const std::vector<Tensor>& tensors) {
    std::set<const tensor::Node*> seen;
    for (const Tensor& tensor : tensors) visit(*tensor.node(), seen);
  }
  ~KeptVariables() {
    for (const auto& [state, initial] : kept_) {
      state->storage.reset();
      state->initial = initial;
    }
  }
  KeptVariables(const KeptVariables&) = delete;
  KeptVariables& operator=(const KeptVariables&) = delete;

 private:
  void visit(const tensor::Node& node, std::set<const tensor::Node*>& seen) {
    if (!seen.insert(&node).second) return;
    if (node.op == tensor::Op::variable) kept_.emplace_back(node.variable, node.variable->initial);
    for (const tensor::NodeRef& input : node.inputs) visit(*input, seen);
  }
  std::vector<std::pair<std::shared_ptr<tensor::VariableState>, SharedBytes>> kept_;
};

inline void expect_on_cpu(const std::vector<Tensor>& outputs, const NetworkCheck& check) {
  const KeptVariables kept(outputs);
  const auto expected = reference::evaluate_all(outputs, check.bindings);
  const auto runtime = Runtime::create_on_cpu();
  Session session(*runtime);
  auto program = Program::compile(*runtime, {.name = "check", .inputs = check.inputs, .outputs = outputs});
  ASSERT_TRUE(program) << program.error().message;
  std::vector<HostTensor> values;
  for (const Tensor& input : check.inputs) {
    const std::vector<double>& bound = check.bindings.at(input.node()->label);
    HostTensor host{input.dtype(), input.shape(), {}, {}};
    if (input.dtype() == DType::float32)
      host.floats.assign(bound.begin(), bound.end());
    else
      host.ints.assign(bound.begin(), bound.end());
    values.push_back(std::move(host));
  }
  const auto found = session.run(*program, values);
  ASSERT_TRUE(found) << found.error().message;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const HostTensor& host = (*found)[i];
    for (std::size_t k = 0; k < expected[i].size(); ++k) {
      const double value = host.dtype == DType::float32 ? static_cast<double>(host.floats[k]) : host.ints[k];
      ASSERT_TRUE(check.tolerance.accepts(value, expected[i][k]))
          << "output " << i << " element " << k << ": found " << value << ", expected " << expected[i][k];
    }
  }
}

// The value and the gradients of `output` by every leaf. Variables keep their initial content.
inline void expect_sound(const Tensor& output, const NetworkCheck& check) {
  ASSERT_TRUE(output.ok()) << output.error().message;
  const Tensor loss = output.shape().element_count() == 1 ? output : reference::case_loss(output);
  const auto slopes = gradients(loss, check.leaves);
  ASSERT_TRUE(slopes) << slopes.error().message;
  expect_differences(loss, check, *slopes);
  std::vector<Tensor> outputs{output};
  outputs.insert(outputs.end(), slopes->begin(), slopes->end());
  expect_on_cpu(outputs, check);
}

}  // namespace imprint::test
