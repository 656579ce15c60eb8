#pragma once
// Golden values of PyTorch (tests/data/torch), and how results are compared with them.

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>

#include "compute/base/text.h"
#include "compute/graph/gradients/autodiff.h"
#include "compute/model/state_dict.h"
#include "compute/nn/optimisers/optimiser.h"
#include "compute/nn/pass.h"

namespace imprint::nn {

using Json = nlohmann::json;

inline Json read_golden(const std::string& name) {
  std::ifstream file(IMPRINT_TEST_TORCH "/" + name);
  return Json::parse(file, nullptr, false);
}

inline Shape shape_of(const Json& array) {
  Shape shape;
  for (const auto& extent : array.at("shape")) shape.append(extent.get<std::int64_t>());
  return shape;
}
inline std::vector<float> values_of(const Json& array) {
  return array.at("values").get<std::vector<float>>();
}
inline Tensor constant_of(const Json& array) { return Tensor::from(values_of(array), shape_of(array)); }
inline Tensor indices_of(const Json& array) {
  std::vector<std::int32_t> values;
  for (const float value : values_of(array)) values.push_back(static_cast<std::int32_t>(value));
  return Tensor::from_ints(values, shape_of(array));
}

inline void expect_close(const std::vector<float>& found, const std::vector<float>& expected,
                         double tolerance, const std::string& what) {
  ASSERT_EQ(found.size(), expected.size()) << what;
  for (std::size_t i = 0; i < found.size(); ++i)
    ASSERT_NEAR(found[i], expected[i], tolerance * (1 + std::fabs(expected[i]))) << what << " element " << i;
}

struct Made {
  std::function<Tensor(const std::vector<Tensor>&)> forward;
  Parameters parameters, buffers;
};

template <class Layer>
Made one_input(const Layer& layer) {
  Made made{[layer](const std::vector<Tensor>& x) { return layer(x[0]); }, {}, {}};
  if constexpr (requires { layer.parameters(); }) made.parameters = layer.parameters();
  return made;
}

inline safetensors::File state_of(const Json& state) {
  safetensors::File file;
  for (const auto& [name, array] : state.items()) {
    const std::vector<float> values = values_of(array);
    if (name.ends_with("num_batches_tracked")) {
      const std::vector<std::int64_t> whole(values.begin(), values.end());
      file.arrays[name] = safetensors::Array::of(std::span<const std::int64_t>(whole), shape_of(array));
    } else {
      file.arrays[name] = safetensors::Array::of(std::span<const float>(values), shape_of(array));
    }
  }
  return file;
}

inline Tensor probe(const Shape& shape) {
  std::vector<float> values;
  for (std::int64_t i = 0; i < shape.element_count(); ++i)
    values.push_back(static_cast<float>(std::cos(static_cast<double>(i) * 1.3)));
  return Tensor::from(values, shape);
}

class GoldenTest : public testing::Test {
 protected:
  std::vector<float> evaluate(const Tensor& tensor) {
    const auto value = session_.evaluate(tensor);
    EXPECT_TRUE(value) << (value ? "" : value.error().message);
    return value ? value->floats : std::vector<float>();
  }

  // loss: of the inputs, the first of which is a variable.
  void expect_loss(const Json& record, std::vector<Tensor> inputs,
                   const std::function<Tensor(const std::vector<Tensor>&)>& loss_of,
                   double tolerance = 2e-6) {
    const Json& first = record.at("inputs")[0];
    inputs[0] = Variable("x", shape_of(first), std::span<const float>(values_of(first))).value();
    const Tensor loss = loss_of(inputs);
    ASSERT_TRUE(loss.ok()) << loss.error().message;
    expect_close(evaluate(loss), {record.at("value").get<float>()}, tolerance, "value");
    const auto slope = gradients(loss, std::span(inputs).first(1));
    ASSERT_TRUE(slope) << slope.error().message;
    expect_close(evaluate((*slope)[0]), values_of(record.at("gradient")), tolerance, "gradient");
  }

  // is_index: the inputs are indices.
  void expect_module(const Json& record, const Made& made, const Pass& pass, bool is_index = false) {
    Parameters all = made.parameters;
    all.add("", made.buffers);
    const safetensors::File state = state_of(record.at("state"));
    EXPECT_EQ(state.arrays.size(), all.size());
    const Result<> loaded = load_state(session_, all, state);
    ASSERT_TRUE(loaded) << loaded.error().message;
    const auto saved = save_state(session_, all);
    ASSERT_TRUE(saved);
    for (const auto& [key, array] : state.arrays) EXPECT_EQ(saved->arrays.at(key).bytes, array.bytes) << key;

    std::vector<Tensor> inputs, leaves = made.parameters.values();
    for (const Json& array : record.at("inputs")) {
      const Variable x(text("x", inputs.size()), shape_of(array), std::span<const float>(values_of(array)));
      inputs.push_back(is_index ? indices_of(array) : x.value());
      if (!is_index) leaves.push_back(inputs.back());
    }
    const Tensor y = made.forward(inputs);
    ASSERT_TRUE(y.ok()) << y.error().message;
    const auto slopes = gradients(sum(y * probe(y.shape())), leaves);
    ASSERT_TRUE(slopes) << slopes.error().message;
    expect_close(evaluate(y), values_of(record.at("output")), 1e-5, "output");
    for (std::size_t i = 0; i < made.parameters.size(); ++i) {
      const Parameter& parameter = made.parameters[i];
      const Tensor slope = parameter.transposed ? transpose((*slopes)[i]) : (*slopes)[i];
      expect_close(evaluate(slope), values_of(record.at("gradients").at(parameter.name)), 2e-5,
                   "gradient of " + parameter.name);
    }
    for (std::size_t i = made.parameters.size(); i < leaves.size(); ++i)
      expect_close(evaluate((*slopes)[i]),
                   values_of(record.at("input_gradients")[i - made.parameters.size()]), 2e-5, "by input");
    std::vector<Update> updates;
    pass.finish(updates);
    if (updates.empty()) return;
    auto program = Program::compile(*runtime_, {.name = "after", .updates = updates});
    ASSERT_TRUE(program) << program.error().message;
    ASSERT_TRUE(session_.run(*program));
    const auto after = save_state(session_, made.buffers);
    ASSERT_TRUE(after);
    for (const auto& [key, array] : after->arrays)
      expect_close(array.floats(), values_of(record.at("after").at(key)), 1e-5, "after: " + key);
  }

  void expect_steps(const Json& record,
                    const std::function<std::shared_ptr<Optimiser>(const Parameters&)>& make,
                    double tolerance) {
    Parameters parameters;
    std::vector<Tensor> gradients;
    for (const Json& initial : record.at("initial")) {
      const std::size_t i = parameters.size();
      // As PyTorch stores them: [out, in].
      parameters.add(text("p", i),
                     Variable(text("p", i), shape_of(initial), std::span<const float>(values_of(initial))));
      gradients.push_back(input(text("g", i), shape_of(initial)));
    }
    std::vector<Tensor> inputs = gradients;
    inputs.push_back(input("rate", {}));
    const auto updates = make(parameters)->step(gradients, inputs.back());
    ASSERT_TRUE(updates) << updates.error().message;
    auto program = Program::compile(*runtime_, {.name = "steps", .inputs = inputs, .updates = *updates});
    ASSERT_TRUE(program) << program.error().message;
    for (std::size_t t = 0; t < 10; ++t) {
      const Json& step = record.at("steps")[t];
      std::vector<HostTensor> hosts;
      for (const Json& gradient : step.at("gradients"))
        hosts.push_back(HostTensor::from(values_of(gradient), shape_of(gradient)));
      hosts.push_back(HostTensor::from({step.at("rate").get<float>()}, {}));
      ASSERT_TRUE(session_.run(*program, hosts));
      const auto found = session_.read(parameters.variables());
      ASSERT_TRUE(found);
      for (std::size_t i = 0; i < parameters.size(); ++i)
        expect_close((*found)[i].floats, values_of(step.at("parameters")[i]), tolerance,
                     text("step ", t + 1, " p", i));
    }
  }

  std::unique_ptr<Runtime> runtime_ = Runtime::create_on_cpu();
  Session session_{*runtime_};
};

}  // namespace imprint::nn
