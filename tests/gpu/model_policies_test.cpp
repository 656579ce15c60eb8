// Real policies on the device, at batch sizes of games, against another engine's answers and the double
// interpreter.

#include <gtest/gtest.h>

#include <cmath>

#include "compute/model/onnx/import.h"
#include "compute/program/run.h"
#include "tests/gpu/gpu_device.h"
#include "tests/reference/interpreter.h"
#include "tests/unit/model_data.h"

namespace imprint {
namespace {

constexpr double kTolerance = 1e-5;

// Against exact arithmetic on arbitrary inputs. ScoreTheGoal sums hidden values near 80 that cancel. There
// float32 in three orders of summation on a CPU differs from double by 1.7e-5 to 3.3e-5.
constexpr double kToleranceOfFloat32 = 5e-5;

// `batch` rows, which repeat the array's own rows.
std::vector<float> repeat_rows(const safetensors::Array& array, std::int64_t batch) {
  const std::vector<float> rows = array.floats();
  const std::size_t width = rows.size() / static_cast<std::size_t>(array.shape[0]);
  std::vector<float> out;
  for (std::size_t i = 0; i < static_cast<std::size_t>(batch) * width; ++i)
    out.push_back(rows[i % rows.size()]);
  return out;
}

class DeviceModel : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    ASSERT_NE(test::gpu(), nullptr);
    auto model = onnx::parse(test::must_read(test::model_path(GetParam() + ".onnx")));
    ASSERT_TRUE(model.ok()) << model.error().message;
    model_ = std::move(*model);
  }
  void TearDown() override { test::expect_validation_silent(); }

  // Empty after a failure.
  std::vector<HostTensor> run(const ImportedModel& imported, const std::vector<HostTensor>& inputs) {
    Session& session = test::gpu()->session();
    auto program = Program::compile(session.runtime(), {.name = GetParam(),
                                                        .inputs = imported.input_tensors(),
                                                        .outputs = imported.output_tensors(),
                                                        .slot_count = 1});
    if (!program) {
      ADD_FAILURE() << program.error().message;
      return {};
    }
    auto outputs = session.run(*program, inputs);
    if (!outputs) {
      ADD_FAILURE() << outputs.error().message;
      return {};
    }
    return std::move(*outputs);
  }

  // batch 0: as in the reference; else its rows, repeated up to that number.
  void expect_reference(const std::string& suffix, std::int64_t batch = 0) {
    const test::Reference reference = test::must_load_reference(GetParam() + suffix);
    const auto sized = [&](const safetensors::Array& array) {
      Shape shape = array.shape;
      if (batch > 0) shape[0] = batch;
      return shape;
    };
    std::map<std::string, Shape> shapes;
    for (const auto& [name, array] : reference.inputs) shapes[name] = sized(array);
    const auto imported = import_onnx(model_, shapes);
    ASSERT_TRUE(imported.ok()) << imported.error().message;
    std::vector<HostTensor> inputs;
    for (const ImportedValue& input : imported->inputs) {
      const safetensors::Array& array = reference.inputs.at(input.name);
      inputs.push_back(HostTensor::from(repeat_rows(array, sized(array)[0]), sized(array)));
    }
    const std::vector<HostTensor> outputs = run(*imported, inputs);
    ASSERT_EQ(outputs.size(), imported->outputs.size());
    ASSERT_EQ(outputs.size(), reference.outputs.size());
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const std::string& name = imported->outputs[i].name;
      const safetensors::Array& expected = reference.outputs.at(name);
      ASSERT_EQ(outputs[i].shape, sized(expected)) << name;
      test::expect_near<float>(outputs[i].floats, repeat_rows(expected, sized(expected)[0]), kTolerance,
                               GetParam() + suffix + " " + name);
    }
  }

  void expect_interpreter(std::int64_t batch) {
    const auto shapes = shapes_with_free_dimensions(model_, batch);
    ASSERT_TRUE(shapes.ok()) << shapes.error().message;
    const auto imported = import_onnx(model_, *shapes);
    ASSERT_TRUE(imported.ok()) << imported.error().message;
    std::vector<HostTensor> inputs;
    reference::Bindings bindings;
    for (const ImportedValue& input : imported->inputs) {
      std::vector<float> values(static_cast<std::size_t>(input.tensor.shape().element_count()));
      for (std::size_t i = 0; i < values.size(); ++i)
        values[i] = static_cast<float>(1.5 * std::sin(0.731 * static_cast<double>(i) + 0.3));
      bindings[input.name].assign(values.begin(), values.end());
      inputs.push_back(HostTensor::from(std::move(values), input.tensor.shape()));
    }
    const std::vector<HostTensor> outputs = run(*imported, inputs);
    const auto expected = reference::evaluate_all(imported->output_tensors(), bindings);
    ASSERT_EQ(outputs.size(), expected.size());
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const std::vector<float> rounded(expected[i].begin(), expected[i].end());
      test::expect_near<float>(
          outputs[i].floats, rounded, kToleranceOfFloat32,
          GetParam() + " batch " + std::to_string(batch) + " " + imported->outputs[i].name);
    }
  }

  onnx::Model model_;
};

TEST_P(DeviceModel, EqualsReference) { expect_reference(".ref"); }
TEST_P(DeviceModel, EqualsReferenceOfOne) { expect_reference(".b1.ref"); }
TEST_P(DeviceModel, EqualsReferenceAtOne) { expect_reference(".ref", 1); }
TEST_P(DeviceModel, EqualsReferenceAt64) { expect_reference(".ref", 64); }
TEST_P(DeviceModel, EqualsReferenceAt1024) { expect_reference(".ref", 1024); }
TEST_P(DeviceModel, EqualsInterpreterAt64) { expect_interpreter(64); }
TEST_P(DeviceModel, EqualsInterpreterAt1024) { expect_interpreter(1024); }

std::string test_name(const testing::TestParamInfo<std::string>& info) {
  return info.param.substr(info.param.find('/') + 1);
}
INSTANTIATE_TEST_SUITE_P(All, DeviceModel, testing::ValuesIn(test::all_model_names()), test_name);

}  // namespace
}  // namespace imprint
