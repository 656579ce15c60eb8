// Real policies, imported and computed by the double interpreter, against the answers of another engine.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compute/model/onnx_import.h"
#include "compute/model/policy.h"
#include "tests/reference/interpreter.h"
#include "tests/unit/model_data.h"

namespace imprint {
namespace {

constexpr double kTolerance = 1e-5;

std::map<std::string, Shape> shapes_of(const test::Reference& reference) {
  std::map<std::string, Shape> shapes;
  for (const auto& [name, array] : reference.inputs) shapes[name] = array.shape;
  return shapes;
}

reference::Bindings bindings_of(const std::map<std::string, safetensors::Array>& arrays) {
  reference::Bindings bindings;
  for (const auto& [name, array] : arrays) {
    const std::vector<float> values = array.floats();
    bindings[name].assign(values.begin(), values.end());
  }
  return bindings;
}

class RealModel : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    auto model = onnx::parse(test::must_read(test::model_path(GetParam() + ".onnx")));
    ASSERT_TRUE(model.ok()) << model.error().message;
    model_ = std::move(*model);
  }
  void expect_reference(const std::string& suffix, const ImportOptions& options = {}) {
    const test::Reference reference = test::must_load_reference(GetParam() + suffix);
    const auto imported = import_onnx(model_, shapes_of(reference), options);
    ASSERT_TRUE(imported.ok()) << imported.error().message;
    ASSERT_EQ(imported->outputs.size(), reference.outputs.size());
    const auto results = reference::evaluate_all(imported->output_tensors(), bindings_of(reference.inputs));
    for (std::size_t i = 0; i < results.size(); ++i) {
      const ImportedValue& output = imported->outputs[i];
      ASSERT_TRUE(reference.outputs.contains(output.name)) << output.name;
      const safetensors::Array& expected = reference.outputs.at(output.name);
      EXPECT_EQ(output.tensor.shape(), expected.shape) << output.name;
      test::expect_near<double>(results[i], expected.floats(), kTolerance, GetParam() + " " + output.name);
    }
  }
  onnx::Model model_;
};

TEST_P(RealModel, EqualsReference) { expect_reference(".ref"); }
TEST_P(RealModel, EqualsReferenceOfOne) { expect_reference(".b1.ref"); }
TEST_P(RealModel, EqualsReferenceWithVariables) {
  expect_reference(".ref", {.parameters_as_variables = true});
}

// A batch is its rows: each of 64 rows equals the same row alone.
TEST_P(RealModel, BatchEqualsRows) {
  constexpr std::int64_t kBatch = 64;
  const auto one = shapes_with_free_dimensions(model_, 1), many = shapes_with_free_dimensions(model_, kBatch);
  ASSERT_TRUE(one.ok() && many.ok());
  const auto single = import_onnx(model_, *one), batch = import_onnx(model_, *many);
  ASSERT_TRUE(single.ok()) << single.error().message;
  ASSERT_TRUE(batch.ok()) << batch.error().message;
  reference::Bindings all;
  for (const ImportedValue& input : batch->inputs) {
    auto& values = all[input.name];
    for (std::int64_t i = 0; i < input.tensor.shape().element_count(); ++i)
      values.push_back(std::sin(0.37 * static_cast<double>(i) + 1));
  }
  const auto together = reference::evaluate_all(batch->output_tensors(), all);
  for (std::int64_t row = 0; row < kBatch; row += 21) {
    reference::Bindings alone;
    for (const auto& [name, values] : all) {
      const std::int64_t width = static_cast<std::int64_t>(values.size()) / kBatch;
      alone[name].assign(values.begin() + row * width, values.begin() + (row + 1) * width);
    }
    const auto results = reference::evaluate_all(single->output_tensors(), alone);
    for (std::size_t i = 0; i < results.size(); ++i) {
      ASSERT_EQ(results[i].size() * kBatch, together[i].size());
      for (std::size_t j = 0; j < results[i].size(); ++j)
        EXPECT_DOUBLE_EQ(results[i][j], together[i][static_cast<std::size_t>(row) * results[i].size() + j])
            << row << " " << j;
    }
  }
}

std::string test_name(const testing::TestParamInfo<std::string>& info) {
  return info.param.substr(info.param.find('/') + 1);
}
INSTANTIATE_TEST_SUITE_P(All, RealModel, testing::ValuesIn(test::all_model_names()), test_name);

TEST(Policy, DescribesObservationActionAndState) {
  for (const std::string& name : test::policy_names()) {
    const auto model = onnx::parse(test::must_read(test::model_path(name + ".onnx")));
    ASSERT_TRUE(model.ok()) << name;
    const auto policy = import_policy(*model, 5);
    ASSERT_TRUE(policy.ok()) << name << ": " << policy.error().message;
    const PolicyDescription& description = policy->description;
    EXPECT_EQ(description.observation, "obs") << name;
    EXPECT_EQ(description.action, "output") << name;
    EXPECT_EQ(policy->model.inputs[0].tensor.shape(), (Shape{5, description.observation_count})) << name;
    EXPECT_EQ(policy->model.outputs[0].tensor.shape(), (Shape{5, description.action_count})) << name;
    ASSERT_EQ(description.states.size(), 1u) << name;
    EXPECT_EQ(description.states[0].input, "state_ins") << name;
    EXPECT_EQ(description.states[0].output, "state_outs") << name;
    EXPECT_EQ(description.states[0].count, 1) << name;
  }
}

TEST(Policy, RefusesBadBatches) {
  const auto model = onnx::parse(test::must_read(test::model_path("godot/BallChase.onnx")));
  ASSERT_TRUE(model.ok());
  EXPECT_EQ(import_policy(*model, 0).error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(import_policy(*model, std::int64_t{1} << 60).error().code, ErrorCode::unsupported);
}

TEST(RealModels, VariablesAreTheParameters) {
  const auto model = onnx::parse(test::must_read(test::model_path("small/sine.onnx")));
  ASSERT_TRUE(model.ok());
  const auto imported = import_onnx(*model, {{"dense_input", {2, 1}}}, {.parameters_as_variables = true});
  ASSERT_TRUE(imported.ok()) << imported.error().message;
  EXPECT_EQ(imported->parameter_count, 321u);
  std::uint64_t count = 0;
  for (const Variable& variable : imported->parameters) {
    ASSERT_TRUE(variable.ok());
    count += static_cast<std::uint64_t>(variable.shape().element_count());
  }
  EXPECT_EQ(count, 321u);
}

}  // namespace
}  // namespace imprint
