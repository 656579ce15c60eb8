// Real policies, imported and computed by the double interpreter, against the answers of another engine.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compute/model/onnx/import.h"
#include "compute/model/policy.h"
#include "tests/reference/interpreter.h"
#include "tests/unit/model_data.h"
#include "tests/unit/model_onnx_builder.h"

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

// ---- rules ----

using test::OnnxBuilder;

Result<Policy> policy_of(const OnnxBuilder& builder, const PolicyNames& names = {}) {
  const auto model = onnx::parse(builder.bytes());
  EXPECT_TRUE(model.ok());
  return import_policy(*model, 2, {}, names);
}

TEST(PolicyRules, GodotRlByNamesInAnyOrder) {
  OnnxBuilder builder;
  builder.input("state_ins", {"batch", "1"}).input("obs", {"batch", "3"});
  builder.node("Relu", {"obs"}, {"output"}).node("Neg", {"state_ins"}, {"state_outs"});
  const auto policy = policy_of(builder.output("state_outs").output("output"));
  ASSERT_TRUE(policy.ok()) << policy.error().message;
  EXPECT_EQ(policy->description.text(), "Godot RL: obs [3] -> output [3], state state_ins -> state_outs");
  EXPECT_EQ(policy->model.inputs[1].name, "state_ins");
}

TEST(PolicyRules, StableBaselines3AndCleanRlActFirst) {
  const auto policy = [](int more) {
    OnnxBuilder builder;
    builder.input("observation", {"n", "3"}).node("Tanh", {"observation"}, {"7"}).output("7");
    for (int i = 0; i < more; ++i)
      builder.node("ReduceSum", {"observation"}, {"r" + std::to_string(i)}).output("r" + std::to_string(i));
    return policy_of(builder);
  };
  EXPECT_EQ(policy(2)->description.text(), "Stable-Baselines3: observation [3] -> 7 [3]");
  EXPECT_EQ(policy(3)->description.rule, "CleanRL");
  EXPECT_EQ(policy(0)->description.rule, "positions");
  EXPECT_EQ(policy(3)->model.outputs.size(), 1u);
}

TEST(PolicyRules, ADiscreteActionBecomesANumber) {
  OnnxBuilder builder;
  builder.input("input", {"n", "3"})
      .node("ArgMax", {"input"}, {"a"}, {OnnxBuilder::number("axis", 1), OnnxBuilder::number("keepdims", 0)});
  const auto policy = policy_of(builder.output("a", {}, test::kInt64));
  ASSERT_TRUE(policy.ok()) << policy.error().message;
  EXPECT_EQ(policy->model.outputs[0].tensor.shape(), (Shape{2, 1}));
  EXPECT_THAT(reference::evaluate(policy->model.outputs[0].tensor, {{"input", {0, 5, 1, 0, 1, 9}}}),
              testing::ElementsAre(1, 2));
}

TEST(PolicyRules, MlAgentsJoinsObservationsAndActions) {
  OnnxBuilder builder;
  builder.input("obs_0", {"batch", "2"}).input("obs_1", {"batch", "1"}).input("action_masks", {"batch", "2"});
  builder.input("recurrent_in", {"batch", "1", "2"}).floats("version", {1}, {3}).longs("one", {1}, {1});
  builder.node("Identity", {"version"}, {"version_number"})
      .node("Add", {"obs_0", "obs_1"}, {"deterministic_continuous_actions"})
      .node("Neg", {"obs_0"}, {"continuous_actions"})
      .node("Add", {"obs_0", "action_masks"}, {"logits"})
      .node("ArgMax", {"logits"}, {"discrete_actions"}, {OnnxBuilder::number("axis", 1)})
      .node("Neg", {"recurrent_in"}, {"recurrent_out"});
  builder.output("version_number").output("continuous_actions").output("deterministic_continuous_actions");
  const auto policy = policy_of(builder.output("discrete_actions", {}, test::kInt64).output("recurrent_out"));
  ASSERT_TRUE(policy.ok()) << policy.error().message;
  const PolicyDescription& found = policy->description;
  EXPECT_EQ(found.rule, "ML-Agents");
  EXPECT_EQ(found.observation, "obs_0 + obs_1");
  EXPECT_EQ(found.action, "deterministic_continuous_actions + discrete_actions");
  ASSERT_EQ(found.states.size(), 1u);
  EXPECT_EQ(found.states[0].count, 2);
  ASSERT_EQ(policy->model.inputs.size(), 2u);
  EXPECT_THAT(
      reference::evaluate(policy->model.outputs[0].tensor, {{found.observation, {1, 2, 10, 4, 3, 20}}}),
      testing::ElementsAre(11, 12, 1, 24, 23, 0));
}

TEST(PolicyRules, NamesWin) {
  OnnxBuilder builder;
  builder.input("memory", {"n", "1"}).input("eyes", {"n", "2"});
  builder.node("Neg", {"eyes"}, {"hands"}).node("Neg", {"memory"}, {"later"}).output("later").output("hands");
  const auto policy = policy_of(builder, {{"eyes"}, {"hands"}, {{"memory", "later"}}});
  ASSERT_TRUE(policy.ok()) << policy.error().message;
  EXPECT_EQ(policy->description.text(), "names: eyes [2] -> hands [2], state memory -> later");
  EXPECT_EQ(policy_of(builder, {{"ears"}, {"hands"}}).error().code, ErrorCode::not_found);
  EXPECT_THAT(policy_of(builder, {{"ears"}, {"hands"}}).error().message,
              testing::HasSubstr("found 'ears', expected one of 'memory', 'eyes'"));
  EXPECT_THAT(policy_of(builder, {{"eyes"}, {"hands"}}).error().message,
              testing::HasSubstr("found no part for input 'memory'"));
  EXPECT_THAT(policy_of(builder, {{"eyes"}, {}}).error().message, testing::HasSubstr("and 0 actions"));
  EXPECT_THAT(policy_of(builder, {{"eyes", "memory", "eyes"}, {"hands"}}).error().message,
              testing::HasSubstr("found input 'eyes' again"));
  EXPECT_EQ(policy_of(builder, {{"eyes"}, {"hands"}, {}, {"memory"}})->model.inputs.size(), 1u);
}

TEST(PolicyRules, NamedObservationsAndActionsAreRowsInTheirOrder) {
  OnnxBuilder builder;
  builder.input("memory", {"n", "1"}).input("eyes", {"n", "2"});
  builder.node("Neg", {"eyes"}, {"hands"}).node("Neg", {"memory"}, {"later"}).output("later").output("hands");
  const auto policy = policy_of(builder, {{"eyes", "memory"}, {"hands", "later"}});
  ASSERT_TRUE(policy.ok()) << policy.error().message;
  EXPECT_EQ(policy->description.text(), "names: eyes + memory [3] -> hands + later [3]");
  EXPECT_THAT(reference::evaluate(policy->model.outputs[0].tensor, {{"eyes + memory", {1, 2, 3, 4, 5, 6}}}),
              testing::ElementsAre(-1, -2, -3, -4, -5, -6));
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
