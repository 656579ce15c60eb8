// Types of 16 bits by parameter: products, gradients, storage, statistics, and what a policy refuses.

#include "compute/nn/dtype_policy.h"

#include <gtest/gtest.h>

#include "compute/graph/gradients/autodiff.h"
#include "compute/graph/gradients/checkpoint.h"
#include "compute/model/state_dict.h"
#include "compute/nn/modules/convolution.h"
#include "compute/nn/modules/norms.h"
#include "compute/nn/modules/sequential.h"
#include "tests/unit/nn_check.h"

namespace imprint::nn {
namespace {

Tensor wavy(const Shape& shape, int seed) {
  const std::vector<double> values = test::waves(shape.element_count(), 1, seed);
  return Variable(text("wavy", seed), shape,
                  std::span<const float>(std::vector<float>(values.begin(), values.end())))
      .value();
}

Tensor rounded(const Tensor& x, DType dtype) { return cast(cast(x, dtype), DType::float32); }

class Policy : public testing::Test {
 protected:
  std::vector<float> value(const Tensor& tensor) {
    const auto found = session_.evaluate(tensor);
    EXPECT_TRUE(found) << (found ? "" : found.error().message);
    return found ? found->floats : std::vector<float>();
  }
  void run(const std::vector<Update>& updates) {
    auto program = Program::compile(*runtime_, {.name = "once", .updates = updates});
    ASSERT_TRUE(program) << program.error().message;
    ASSERT_TRUE(session_.run(*program));
  }
  std::unique_ptr<Runtime> runtime_ = Runtime::create_on_cpu();
  Session session_{*runtime_};
};

TEST_F(Policy, ProductsRoundTheirOperandsAndTheirGradients) {
  const Sequential network = mlp("net", {6, 8, 3}, {.activation = Activation::tanh, .seed = 1});
  const Tensor x = wavy({4, 6}, 1);
  const Parameters p = network.parameters();
  for (const DType dtype : {DType::float16, DType::bfloat16}) {
    const DtypePolicy policy("types", p, {{"*", {.compute = dtype}}, {"2.*", {}}});
    const Tensor y = policy(network(x));
    const auto narrow = [&](const Tensor& t) { return cast(t, dtype); };
    const Tensor expected =
        matmul(tanh(matmul(narrow(x), narrow(p[0].value())) + p[1].value()), p[2].value()) + p[3].value();
    EXPECT_EQ(value(y), value(expected));
    EXPECT_NE(value(y), value(network(x)));
    const std::vector<Tensor> targets = p.values();
    const auto slopes = gradients(sum(square(y)), targets),
               wanted = gradients(sum(square(expected)), targets);
    ASSERT_TRUE(slopes) << slopes.error().message;
    ASSERT_TRUE(wanted);
    for (std::size_t i = 0; i < targets.size(); ++i) {
      EXPECT_EQ((*slopes)[i].dtype(), DType::float32);
      EXPECT_EQ(value((*slopes)[i]), value((*wanted)[i])) << p[i].name;
    }
    EXPECT_TRUE(policy.computes_in(dtype));
    EXPECT_EQ(policy.state()[0].variable.state(), p[0].variable.state());
    EXPECT_EQ(policy.bytes(), 4u * static_cast<std::uint64_t>(p.element_count()));
  }
}

// The backward pass computes layers again with the same types.
TEST_F(Policy, RecomputedLayersHaveTheirTypes) {
  const Sequential network = mlp("net", {6, 8, 8, 8, 3}, {.activation = Activation::tanh, .seed = 1});
  Sequential pieces = network;
  pieces.recompute_every(3);
  const Linear inside("inside", 3, 3, {.seed = 5});
  const Tensor x = wavy({4, 6}, 1);
  Parameters p = network.parameters();
  p.add("inside", inside.parameters());
  const DtypePolicy policy("types", p, {{"*", {.compute = DType::float16}}, {"2.*", {}}});
  // A piece may read a narrow product from outside.
  const auto end_of = [&](const Tensor& y, bool recompute) {
    const auto f = [&](const Tensor& h) { return tanh(inside(h)) * y; };
    return sum(square(recompute ? checkpoint(f, y * 0.5f) : f(y * 0.5f)));
  };
  const Tensor kept = policy(end_of(network(x), false)), again = policy(end_of(pieces(x), true));
  const std::vector<Tensor> targets = p.values();
  const auto wanted = gradients(kept, targets), found = gradients(again, targets),
             wide = gradients(end_of(network(x), false), targets);
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(value(again), value(kept));
  for (std::size_t i = 0; i < targets.size(); ++i) {
    EXPECT_EQ(value((*found)[i]), value((*wanted)[i])) << p[i].name;
    EXPECT_NE(value((*found)[i]), value((*wide)[i])) << p[i].name;
  }
}

TEST_F(Policy, ConvolutionsRoundTheImageOnce) {
  const Conv2d layer("conv", 3, 4, 3, {.padding = 1, .weight_form = WeightForm::weight_norm});
  const Tensor x = wavy({2, 3, 5, 5}, 2);
  const DtypePolicy policy("types", layer.parameters(), {{"*", {.compute = DType::float16}}});
  const Tensor y = policy(layer(x));
  // The weight's form is computed in float32.
  const Tensor v = layer.parameters().find("parametrizations.weight.original1")->value(),
               g = layer.parameters().find("parametrizations.weight.original0")->value();
  const Tensor whole = v * (g / sqrt(sum(square(v), {1, 2, 3}, true)));
  const Tensor expected = convolution(rounded(x, DType::float16), rounded(whole, DType::float16),
                                      layer.parameters().find("bias")->value(), {.padding = 1});
  const std::vector<float> found = value(y), wanted = value(expected), plain = value(layer(x));
  ASSERT_EQ(found.size(), wanted.size());
  for (std::size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], wanted[i], 2e-6);
  EXPECT_NE(found, plain);
  // No array of the windows' size is rounded: 5 x 5 places and a border.
  std::int64_t largest = 0;
  const auto visit = [&](const auto& self, const tensor::NodeRef& node) -> void {
    if (node->op == tensor::Op::cast && node->dtype == DType::float16)
      largest = std::max(largest, node->shape.element_count());
    for (const tensor::NodeRef& input : node->inputs) self(self, input);
  };
  visit(visit, y.node());
  EXPECT_EQ(largest, 2 * 3 * 5 * 5);
}

TEST_F(Policy, StorageHalvesTheWeights) {
  const Sequential network = mlp("net", {6, 8, 3}, {.activation = Activation::tanh, .seed = 1});
  const Parameters p = network.parameters();
  const Tensor x = wavy({4, 6}, 1);
  const DtypePolicy policy("small", p,
                           {{"*.weight", {.storage = DType::bfloat16}},
                            {"2.weight", {.storage = DType::float16, .compute = DType::float16}}});
  const Tensor y = policy(network(x));
  run(policy.pack());
  const Tensor hidden = tanh(matmul(x, rounded(p[0].value(), DType::bfloat16)) + p[1].value());
  const Tensor expected =
      matmul(cast(hidden, DType::float16), cast(p[2].value(), DType::float16)) + p[3].value();
  EXPECT_EQ(value(y), value(expected));
  EXPECT_EQ(policy.bytes(), 2u * (48 + 24) + 4u * (8 + 3));
  // The network's own weights play no part.
  ASSERT_TRUE(session_.write(p[0].variable, HostTensor::from(std::vector<float>(48), {6, 8})));
  EXPECT_NE(value(y), value(network(x)));
  // Files have PyTorch's layout and names.
  const auto file = save_state(session_, policy.state());
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->arrays.at("0.weight").shape, (Shape{8, 6}));
  const DtypePolicy other("other", p, {{"*.weight", {.storage = DType::float16}}});
  const Result<> loaded = load_state(session_, other.state(), *file);
  ASSERT_TRUE(loaded) << loaded.error().message;
  EXPECT_NE(value(other(network(x))), std::vector<float>(12));
  EXPECT_EQ(policy.summary(),
            "parameter  shape   storage   compute  bytes\n"
            "0.weight   [6, 8]  bfloat16  float32     96\n"
            "0.bias     [8]     float32   float32     32\n"
            "2.weight   [8, 3]  float16   float16     48\n"
            "2.bias     [3]     float32   float32     12\n"
            "total                                   188\n");
  EXPECT_EQ(network.summary({4, 6}, policy),
            "layer  kind        output  storage            compute           parameters\n"
            "net.0  Linear      [4, 8]  bfloat16, float32  float32                   56\n"
            "net.1  Activation  [4, 8]                                                0\n"
            "net.2  Linear      [4, 3]  float16, float32   float16, float32          27\n"
            "total                                                                   83\n");
}

TEST_F(Policy, AFileOfHalfTheSizeHoldsTheWholeModel) {
  const auto make = [](const std::string& name) {
    Sequential network(name);
    network.linear(6, 8, {.seed = name.size()}).add<BatchNorm>(8);
    return network;
  };
  const Sequential network = make("net"), later = make("later");
  const std::vector<DtypeRule> rules{{"0.weight", {.storage = DType::float16}},
                                     {"1.weight", {.storage = DType::bfloat16}}};
  const DtypePolicy policy("small", network.parameters(), rules), other("other", later.parameters(), rules);
  ASSERT_TRUE(session_.write(network.buffers()[0].variable, HostTensor::from(std::vector<float>(8, 2), {8})));
  run(policy.pack());
  const auto whole = [](const DtypePolicy& types, const Sequential& of) {
    Parameters model = types.state();
    model.add("", of.buffers());
    return model;
  };
  const auto file = save_state(session_, whole(policy, network));
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->arrays.at("0.weight").type, safetensors::Type::float16);
  EXPECT_EQ(file->arrays.at("0.weight").bytes.size(), 2u * 48);
  EXPECT_EQ(file->arrays.at("1.weight").type, safetensors::Type::bfloat16);
  EXPECT_EQ(file->arrays.at("0.bias").type, safetensors::Type::float32);
  const auto loaded = load_state(session_, whole(other, later), *file);
  ASSERT_TRUE(loaded) << loaded.error().message;
  const Tensor x = wavy({4, 6}, 1);
  EXPECT_EQ(value(other(later(x))), value(policy(network(x))));
}

TEST_F(Policy, StatisticsFollowTheRoundedProducts) {
  Sequential network("net");
  network.linear(6, 4, {.seed = 1}).add<BatchNorm>(4);
  const Tensor x = wavy({8, 6}, 3);
  const DtypePolicy policy("types", network.parameters(), {{"0.*", {.compute = DType::bfloat16}}});
  Pass pass("net", 1);
  const Tensor y = policy(network(x, pass), pass);
  ASSERT_TRUE(y.ok()) << y.error().message;
  std::vector<Update> updates;
  pass.finish(updates);
  run(updates);
  const Parameters p = network.parameters();
  const Tensor rows = matmul(cast(x, DType::bfloat16), cast(p[0].value(), DType::bfloat16)) + p[1].value();
  const std::vector<float> found = value(network.buffers()[0].value()),
                           expected = value(mean(rows, {0}) * 0.1f);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_FLOAT_EQ(found[i], expected[i]);
}

TEST_F(Policy, RefusesWhatItCannotDo) {
  const Sequential network = mlp("net", {6, 3}, {.seed = 1});
  const Tensor x = wavy({4, 6}, 1);
  const DtypePolicy typo("types", network.parameters(), {{"haed.*", {.compute = DType::float16}}}),
      bytes("types", network.parameters(), {{"*", {.storage = DType::int8}}});
  EXPECT_EQ(typo(network(x)).error().message,
            "dtype policy 'types': found no parameter for 'haed.*', expected one or more");
  EXPECT_EQ(bytes(network(x)).error().message,
            "dtype policy 'types': found int8 for '*', expected float32, float16 or bfloat16");
  EXPECT_FALSE(DtypePolicy("types", network.parameters(), {})(network(zeros({4, 5}))).ok());
}

}  // namespace
}  // namespace imprint::nn
