#pragma once
// Checks a case of op_case.h, its value and gradients, against the oracle, as one program of a session.

#include <gtest/gtest.h>

#include <cctype>
#include <string>
#include <vector>

#include "compute/base/text.h"
#include "compute/program/run.h"
#include "tests/reference/op_case.h"

namespace imprint::reference {

inline std::vector<double> elements(const HostTensor& tensor) {
  if (dtype_is_float(tensor.dtype)) return {tensor.floats.begin(), tensor.floats.end()};
  if (tensor.dtype == DType::uint32) {
    const auto* bits = reinterpret_cast<const std::uint32_t*>(tensor.ints.data());
    return {bits, bits + tensor.ints.size()};
  }
  if (tensor.dtype == DType::int64) return {tensor.int64s.begin(), tensor.int64s.end()};
  return {tensor.ints.begin(), tensor.ints.end()};
}

inline HostTensor host_input(const Tensor& input, const std::vector<double>& values) {
  HostTensor result{input.dtype(), input.shape(), {}, {}};
  if (input.dtype() == DType::float32)
    result.floats.assign(values.begin(), values.end());
  else if (input.dtype() == DType::int64)
    result.int64s.assign(values.begin(), values.end());
  else
    result.ints.assign(values.begin(), values.end());
  return result;
}

inline void expect_close(const HostTensor& found, const std::vector<double>& expected,
                         const Tolerance& tolerance, const std::string& what) {
  const std::vector<double> values = elements(found);
  ASSERT_EQ(values.size(), expected.size()) << what;
  for (std::size_t i = 0; i < values.size(); ++i)
    ASSERT_TRUE(tolerance.accepts(values[i], expected[i]))
        << what << " " << found.shape.text() << " element " << i << ": found " << values[i] << ", expected "
        << expected[i];
}

inline void check_case(Session& session, const OpCase& op_case, bool fuse) {
  const std::vector<Tensor> inputs = case_inputs(op_case);
  const Bindings bindings = case_bindings(op_case);
  ProgramDescription description;
  description.name = op_case.name;
  description.inputs = inputs;
  description.fuse = fuse;
  const Tensor output = op_case.build(inputs);
  ASSERT_TRUE(output.ok()) << output.error().message;
  description.outputs = {output};
  if (op_case.differentiable) {
    const auto gradients = case_gradients(op_case, inputs, output);
    ASSERT_TRUE(gradients.ok()) << gradients.error().message;
    description.outputs.insert(description.outputs.end(), gradients->begin(), gradients->end());
  }
  auto program = Program::compile(session.runtime(), description);
  ASSERT_TRUE(program.ok()) << program.error().message;

  std::vector<HostTensor> values;
  for (const Tensor& input : inputs) values.push_back(host_input(input, bindings.at(input.node()->label)));
  const auto results = session.run(*program, values);
  ASSERT_TRUE(results.ok()) << results.error().message;
  const auto expected = evaluate_all(description.outputs, bindings);
  for (std::size_t i = 0; i < results->size(); ++i)
    expect_close((*results)[i], expected[i], i == 0 ? op_case.tolerance : op_case.gradient_tolerance,
                 i == 0 ? "value" : text("gradient ", i - 1));
  if (testing::Test::HasFailure())
    std::printf("%s\n%s\n", program->explain().c_str(),
                program->glsl().empty() ? "" : program->glsl().back().c_str());
}

// The case's name in the characters that GoogleTest allows.
inline std::string case_name(const testing::TestParamInfo<OpCase>& info) {
  std::string name = info.param.name;
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return text(name, "_", info.index);
}

}  // namespace imprint::reference
