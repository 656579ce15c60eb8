// Programs of Precision::mixed16: the narrowed operands, and networks that learn as well with them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "compute/graph/gradients/autodiff.h"
#include "compute/nn/modules/attention.h"
#include "compute/nn/modules/attention_page.h"
#include "compute/nn/modules/sequential.h"
#include "compute/nn/optimisers/loss_scaler.h"
#include "compute/nn/optimisers/optimiser.h"
#include "compute/tensor/composites/images.h"
#include "tests/gpu/gpu_device.h"
#include "tests/gpu/session_test.h"

namespace imprint {
namespace {

using test::wave;

class MixedPrecision : public test::SessionTest {
 protected:
  std::vector<float> run(Program& program, std::span<const HostTensor> inputs = {}) {
    return session().run(program, inputs).value()[0].floats;
  }
  bool arranges_images() {
    if (runtime().on_cpu()) return false;
    const vk::Capabilities& device = test::gpu()->context().device().capabilities();
    return device.cooperative_matrix_khr || device.cooperative_matrix_nv;
  }
};

// Near, and not the same: something ran in 16 bits.
void expect_near_float32(const std::vector<HostTensor>& mixed, const std::vector<HostTensor>& whole) {
  for (std::size_t o = 0; o < whole.size(); ++o) {
    double error = 0, size = 0;
    for (std::size_t i = 0; i < whole[o].floats.size(); ++i) {
      error += std::pow(mixed[o].floats[i] - whole[o].floats[i], 2.0);
      size += std::pow(whole[o].floats[i], 2.0);
    }
    EXPECT_GT(error, 0) << "output " << o;
    EXPECT_LT(std::sqrt(error / size), 0.01) << "output " << o;
  }
}

Variable matrix(const std::string& name, std::int64_t rows, std::int64_t columns, float scale, int seed) {
  return {name, {rows, columns}, wave(rows * columns, scale, seed)};
}

// Two layers with clamped weights, which keeps their products out of row-local regions. Such products are
// narrowed on devices with matrix units. The first input multiplies the loss.
struct Lesson {
  static constexpr std::int64_t kRows = 256, kWidth = 64;
  Variable w0 = matrix("w0", kWidth, kWidth, 0.3f, 1), w1 = matrix("w1", kWidth, kWidth, 0.3f, 2);
  nn::Parameters parameters;
  nn::LossScaler scaler;
  std::vector<Variable> state;
  ProgramDescription description;
  Tensor norm;

  explicit Lesson(Precision precision, const nn::LossScalerOptions& scaling = {})
      : scaler("lesson", scaling) {
    parameters.add("w0", w0);
    parameters.add("w1", w1);
    const Tensor x = matrix("x", kRows, kWidth, 1, 3).value(),
                 target = matrix("target", kRows, kWidth, 0.5f, 3).value(), weight = input("weight", {});
    const Tensor y = matmul(tanh(matmul(x, tanh(w0.value()))), tanh(w1.value()));
    const Tensor loss = mean(square(y - target));
    const nn::Adam adam(parameters);
    const std::vector<Tensor> raw = gradients(scaler.scaled(loss * weight), parameters.values()).value();
    const nn::ClippedGradients clipped = nn::clip_by_global_norm(raw, 1.0, 0, scaler.scale()).value();
    norm = clipped.norm;
    description = {.name = "lesson", .inputs = {weight}, .outputs = {loss, norm}, .precision = precision};
    description.updates = adam.step(clipped.gradients, 3e-2, scaler.active(norm)).value();
    for (const Update& update : scaler.step(norm)) description.updates.push_back(update);
    for (const Update& update : description.updates) state.push_back(update.target);
  }
};

std::vector<HostTensor> weight_of(float weight) { return {HostTensor::from({weight}, {})}; }

TEST_F(MixedPrecision, AProductIsThatOfItsRoundedOperands) {
  const Tensor a = tanh(matrix("a", 128, 96, 1, 1).value()), b = tanh(matrix("b", 96, 128, 1, 2).value());
  const auto product = [&](const Tensor& left, const Tensor& right, Precision precision) {
    Program program = compile(
        ProgramDescription{.name = "product", .outputs = {matmul(left, right)}, .precision = precision});
    return run(program);
  };
  const std::vector<float> mixed = product(a, b, Precision::mixed16),
                           whole = product(a, b, Precision::float32);
  EXPECT_EQ(mixed, product(cast(a, DType::float16), cast(b, DType::float16), Precision::float32));
  EXPECT_NE(mixed, whole);
  EXPECT_THAT(mixed, testing::Pointwise(testing::FloatNear(2e-2f),
                                        whole));  // 96 terms of at most 1, rounded by 2^-11
}

// Weights through views, images through windows: gradients go through transposed operands.
TEST_F(MixedPrecision, AConvolutionAndItsGradientsAreNearThoseOfFloat32) {
  const auto outputs = [&](Precision precision) {
    const Tensor x = tanh(Variable("x", {8, 16, 12, 12}, wave(8 * 16 * 144, 1, 1)).value()),
                 w = tanh(Variable("w", {32, 16, 3, 3}, wave(32 * 144, 0.3f, 2)).value());
    const Tensor y = convolution(x, w, Tensor(), {.padding = 1});
    const Tensor targets[] = {x, w};
    const std::vector<Tensor> g = gradients(mean(square(y)), targets).value();
    Program program = compile(ProgramDescription{
        .name = "conv", .outputs = {y, g[0] * 1000.0f, g[1] * 10.0f}, .precision = precision});
    return session().run(program).value();
  };
  const auto mixed = outputs(Precision::mixed16), whole = outputs(Precision::float32);
  EXPECT_NE(mixed[0].floats, whole[0].floats);
  for (std::size_t o = 0; o < mixed.size(); ++o)
    EXPECT_THAT(mixed[o].floats, testing::Pointwise(testing::FloatNear(1e-2f), whole[o].floats))
        << "output " << o;
}

// A step of a network whose images have their channels last on matrix units: padding, strides, a sum with
// what a convolution read, a pool, and a linear layer behind it. Noise: sums of waves nearly vanish.
TEST_F(MixedPrecision, AStepOfConvolutionsIsNearThatOfFloat32) {
  if (!arranges_images()) GTEST_SKIP() << "images are rearranged for matrix units only";
  const auto noise = [](const char* name, const Shape& shape, std::int64_t fan_in) {
    const float scale = 2.0f / std::sqrt(static_cast<float>(fan_in));
    std::vector<float> values(static_cast<std::size_t>(shape.element_count()));
    std::mt19937 random(static_cast<unsigned>(name[0]));
    for (float& value : values) value = scale * (static_cast<float>(random() >> 8) / 8388608.0f - 1.0f);
    return Variable(name, shape, std::move(values));
  };
  const auto results = [&](Precision precision) {
    const Tensor x = noise("x", {4, 16, 16, 16}, 4).value();
    const Variable w[] = {noise("a", {32, 16, 3, 3}, 144), noise("b", {64, 32, 4, 4}, 512),
                          noise("c", {64, 64, 3, 3}, 576), noise("e", {64}, 4), noise("d", {32, 576}, 576)};
    const Tensor a = tanh(convolution(x, w[0].value(), Tensor(), {.padding = 1}));
    const Tensor b = tanh(convolution(a, w[1].value(), Tensor(), {.stride = 2}));
    const Tensor c = tanh(convolution(b, w[2].value(), w[3].value(), {.padding = 1}) + b);
    const Tensor flat = reshape(avg_pool(c, {.size = 2, .stride = 2}), {4, 576});
    const Tensor y = matmul(flat, transpose(w[4].value()));
    std::vector<Tensor> by{x};
    for (const Variable& one : w) by.push_back(one.value());
    ProgramDescription step{.name = "step",
                            .outputs = gradients(sum(y * noise("g", {4, 32}, 4).value()), by).value(),
                            .precision = precision};
    step.outputs.push_back(y);
    for (std::size_t i = 0; i < std::size(w); ++i)
      step.updates.push_back(Update::assign(w[i], w[i].value() - 0.1f * step.outputs[i + 1]));
    Program program = compile(step);
    return session().run(program).value();
  };
  const auto mixed = results(Precision::mixed16), whole = results(Precision::float32),
             again = results(Precision::mixed16);
  expect_near_float32(mixed, whole);
  for (std::size_t o = 0; o < mixed.size(); ++o)
    EXPECT_EQ(again[o].floats, mixed[o].floats) << "output " << o;
}

// Kernels of any size, strides, dilation, padding, few channels and many, depthwise and in groups, pools and
// joined channels.
TEST_F(MixedPrecision, NetworksOfConvolutionsAreNearThoseOfFloat32) {
  if (!arranges_images()) GTEST_SKIP() << "images are rearranged for matrix units only";
  const auto weight = [](std::initializer_list<std::int64_t> extents, int seed) {
    const Shape shape(extents);
    const std::int64_t count = shape.element_count();
    return Tensor::from(wave(count, 1.5f / std::sqrt(static_cast<float>(count / shape[0])), seed), shape);
  };
  const auto bias = [](std::int64_t channels) { return Tensor::from(wave(channels, 0.1f, 7), {channels}); };
  const Tensor x = input("x", {2, 3, 40, 36});
  const Tensor a = relu(convolution(x, weight({32, 3, 7, 7}, 1), bias(32), {.stride = 2, .padding = 3}));
  const Tensor b = max_pool(a, {.size = 3, .stride = {2, 1}, .padding = 1});
  const Tensor c = relu(convolution(b, weight({64, 32, 3, 3}, 2), bias(64), {.padding = 2, .dilation = 2}));
  const Tensor d =
      convolution(
          clamp(convolution(c, weight({64, 1, 3, 3}, 3), bias(64), {.padding = 1, .groups = 64}), 0, 6),
          weight({64, 64, 1, 1}, 4), bias(64), {}) +
      c;
  const Tensor e = convolution(d, weight({72, 32, 3, 3}, 5), bias(72), {.padding = 1, .groups = 2});
  const Tensor f = concat({relu(convolution(e, weight({40, 72, 3, 3}, 6), bias(40), {.stride = 2})),
                           convolution(d, weight({24, 64, 3, 3}, 8), Tensor(), {.stride = 2})},
                          1);
  const Tensor g = convolution(f, weight({36, 64, 1, 1}, 9), bias(36), {});
  const std::vector<Tensor> outputs{g, mean(g, {2, 3}),
                                    convolution(d, weight({512, 64, 5, 5}, 10), Tensor(), {})};
  std::vector<float> image = wave(2 * 3 * 40 * 36, 1, 11);
  const auto results = [&](Precision precision) {
    Program program = compile(
        ProgramDescription{.name = "images", .inputs = {x}, .outputs = outputs, .precision = precision});
    return session().run(program, std::vector<HostTensor>{HostTensor::from(image, x.shape())}).value();
  };
  const std::vector<HostTensor> whole = results(Precision::float32);
  for (const Precision precision : {Precision::mixed16, Precision::float16}) {
    const std::vector<HostTensor> narrow = results(precision);
    for (std::size_t o = 0; o < outputs.size(); ++o) {
      EXPECT_NE(narrow[o].floats, whole[o].floats) << "output " << o;
      EXPECT_THAT(narrow[o].floats, testing::Pointwise(testing::FloatNear(3e-2f), whole[o].floats))
          << "output " << o;
    }
  }
  // A NaN in column 32 of the first image reaches columns 4 to 7 of its maps, and no others. Whether it
  // survives a maximum is the driver's choice.
  image[500] = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> found = results(Precision::float16)[0].floats;
  for (std::size_t i = 0; i < found.size(); ++i)
    if (i >= found.size() / 2 || i % 8 < 4) ASSERT_FALSE(std::isnan(found[i])) << i;
}

// Products of a region that cannot use matrix units stay float32: rounding would gain nothing.
TEST_F(MixedPrecision, RegionsOfFewRowsAreNotTouched) {
  const nn::Sequential network =
      nn::mlp("net", {16, 64, 64, 4}, {.activation = nn::Activation::tanh, .seed = 3});
  const Tensor y = network(matrix("x", 256, 16, 1, 1).value());
  Program mixed = compile(ProgramDescription{.name = "net", .outputs = {y}, .precision = Precision::mixed16}),
          whole = compile(ProgramDescription{.name = "net", .outputs = {y}});
  EXPECT_EQ(run(mixed), run(whole));
  EXPECT_EQ(mixed.stats().dispatches, whole.stats().dispatches);
}

// On matrix units, if any: whole and partial matrices, one head and two, an incomplete last block, values
// that depend on the row.
TEST_F(MixedPrecision, RegionsOfManyRowsAreNearThoseOfFloat32) {
  const auto results = [&](Precision precision) {
    const auto network = [](std::int64_t rows, std::initializer_list<std::int64_t> extents,
                            nn::Activation activation) {
      return nn::mlp("net", extents, {.activation = activation, .seed = 3})(
          matrix("x", rows, *extents.begin(), 1, 1).value());
    };
    const Tensor body =
        tanh(network(4099, {16, 48}, nn::Activation::relu)) * matrix("scale", 4099, 1, 1, 5).value();
    std::vector<std::vector<float>> all;
    for (const std::vector<Tensor>& tensors :
         {std::vector<Tensor>{network(8192, {32, 64, 64, 8}, nn::Activation::tanh)},
          {network(5001, {20, 40, 24, 3}, nn::Activation::gelu)},
          {nn::mlp("policy", {48, 18}, {.seed = 4})(body),
           sigmoid(nn::mlp("value", {48, 1}, {.seed = 5})(body))}}) {
      Program program =
          compile(ProgramDescription{.name = "net", .outputs = tensors, .precision = precision});
      std::vector<HostTensor> outputs = session().run(program).value();
      for (HostTensor& output : outputs) all.push_back(std::move(output.floats));
    }
    return all;
  };
  const auto mixed = results(Precision::mixed16), whole = results(Precision::float32);
  for (std::size_t o = 0; o < mixed.size(); ++o)
    EXPECT_THAT(mixed[o], testing::Pointwise(testing::FloatNear(3e-3f), whole[o])) << "output " << o;
}

// On matrix units: several blocks, the last incomplete, grouped heads, and operands that are views.
TEST_F(MixedPrecision, AttentionAndItsGradientsAreNearThoseOfFloat32) {
  if (test::gpu()->context().device().capabilities().device_type == VK_PHYSICAL_DEVICE_TYPE_CPU)
    GTEST_SKIP() << "without matrix units it is composed of products";
  const auto numbers = [](const std::string& name, const Shape& shape, int seed) {
    return Variable(name, shape, wave(shape.element_count(), 1, seed)).value();
  };
  const auto results = [&](Precision precision, const Shape& query, const Shape& key, bool causal) {
    const Tensor x = numbers("x", {key[0], key[2], 2 * key[1] * key[3]}, 2);
    const Tensor heads = permute(reshape(x, {key[0], key[2], 2, key[1], key[3]}), {2, 0, 3, 1, 4});
    const Tensor by[] = {numbers("q", query, 1), x};
    const Tensor y = nn::attention(by[0] * 2.0f, reshape(narrow(heads, 0, 0, 1), key),
                                   reshape(narrow(heads, 0, 1, 1), key), {.causal = causal});
    const std::vector<Tensor> g = gradients(sum(y * numbers("g", query, 3)), by).value();
    Program program =
        compile(ProgramDescription{.name = "attention", .outputs = {y, g[0], g[1]}, .precision = precision});
    const auto found = session().run(program);
    EXPECT_TRUE(found) << found.error().message;
    return found ? *found : std::vector<HostTensor>(3);
  };
  const std::pair<Shape, Shape> shapes[] = {{{1, 4, 184, 40}, {1, 2, 200, 40}},
                                            {{2, 2, 280, 64}, {2, 2, 280, 64}}};
  for (const auto& [query, key] : shapes) {
    const bool causal = query[3] == 40;
    const auto mixed = results(Precision::mixed16, query, key, causal),
               whole = results(Precision::float32, query, key, causal);
    EXPECT_NE(mixed[0].floats, whole[0].floats);
    for (std::size_t o = 0; o < mixed.size(); ++o)
      EXPECT_THAT(mixed[o].floats, testing::Pointwise(testing::FloatNear(2e-2f), whole[o].floats))
          << "output " << o << " of " << query.text();
  }
}

// On matrix units: a bias, keys of a sequence's end that are hidden, a query that sees no key, and dropped
// weights.
TEST_F(MixedPrecision, MaskedAttentionAndItsGradientsAreNearThoseOfFloat32) {
  if (test::gpu()->context().device().capabilities().device_type == VK_PHYSICAL_DEVICE_TYPE_CPU)
    GTEST_SKIP() << "without matrix units it is composed of products";
  const Shape query{2, 4, 90, 40}, key{2, 2, 104, 40}, scores{2, 4, 90, 104};
  const auto numbers = [](const std::string& name, const Shape& shape, int seed) {
    return Variable(name, shape, wave(shape.element_count(), 1, seed)).value();
  };
  const Tensor by[] = {numbers("q", query, 1), numbers("k", key, 2), numbers("v", key, 3)};
  const Tensor beyond = iota({2, 1, 1, 104}, 3) >= 100 - 30 * iota({2, 1, 1, 104}, 0);
  for (const bool causal : {false, true}) {
    nn::AttentionTerms terms{.causal = causal, .bias = numbers("bias", {4, 1, 104}, 4), .hidden = beyond};
    if (causal) {
      terms.hidden = logical_or(beyond, equal(iota({90, 104}, 0), 3));
      terms.factors =
          where(equal(remainder(iota(scores, 3) + iota(scores, 2), 5), 0), Tensor(0.0f), Tensor(1.25f));
    }
    const Tensor y = nn::attention_page(by[0] * 2.0f, by[1], by[2], terms);
    std::vector<Tensor> outputs = gradients(sum(y * numbers("g", query, 5)), by).value();
    outputs.push_back(y);
    const auto results = [&](Precision precision) {
      Program program =
          compile(ProgramDescription{.name = "masked", .outputs = outputs, .precision = precision});
      return session().run(program).value();
    };
    const std::vector<HostTensor> mixed = results(Precision::mixed16), whole = results(Precision::float32);
    EXPECT_NE(mixed[3].floats, whole[3].floats);
    for (std::size_t o = 0; o < mixed.size(); ++o)
      EXPECT_THAT(mixed[o].floats, testing::Pointwise(testing::FloatNear(2e-2f), whole[o].floats))
          << "output " << o << (causal ? ", causal" : "");
  }
}

// On matrix units: a transformer's block, with norms, whose gradients of query, key and value are parts of
// one value. Products in small tiles, split ones, and results that are finished in their kernels.
TEST_F(MixedPrecision, ABlockAndItsGradientsAreNearThoseOfFloat32) {
  if (test::gpu()->context().device().capabilities().device_type == VK_PHYSICAL_DEVICE_TYPE_CPU)
    GTEST_SKIP() << "without matrix units the products are those of other tests";
  const auto numbers = [](const std::string& name, const Shape& shape, float scale, int seed) {
    return Variable(name, shape, wave(shape.element_count(), scale, seed)).value();
  };
  constexpr std::int64_t kWidth = 256, kHeads = 4, kSteps = 256, kBatch = 8;
  const Shape values{kBatch, kSteps, kWidth};
  const Tensor by[] = {numbers("x", values, 1, 1),
                       numbers("qkv", {kWidth, 3 * kWidth}, 0.1f, 2),
                       numbers("qkv bias", {3 * kWidth}, 0.1f, 3),
                       numbers("up", {kWidth, 4 * kWidth}, 0.1f, 4),
                       numbers("up bias", {4 * kWidth}, 0.1f, 5),
                       numbers("down", {4 * kWidth, kWidth}, 0.05f, 6)};
  const auto norm = [](const Tensor& x) {
    const Tensor away = x - mean(x, {2}, true);
    return away * (1.0f / sqrt(mean(square(away), {2}, true) + 1e-5f));
  };
  const Tensor all = matmul(norm(by[0]), by[1]) + by[2];
  const auto heads = [&](std::int64_t k) {
    return permute(reshape(narrow(all, 2, kWidth * k, kWidth), {kBatch, kSteps, kHeads, kWidth / kHeads}),
                   {0, 2, 1, 3});
  };
  const Tensor attended = nn::attention(heads(0), heads(1), heads(2), {.causal = true});
  const Tensor x = by[0] + reshape(permute(attended, {0, 2, 1, 3}), values);
  const Tensor y = x + matmul(gelu(matmul(norm(x), by[3]) + by[4]), by[5]);
  // Noise: sums of 2,048 rows of a wave nearly vanish, and with them the scale of their errors.
  std::vector<float> noise(static_cast<std::size_t>(values.element_count()));
  std::mt19937 random(7);
  for (float& value : noise) value = 0.2f * (static_cast<float>(random() >> 8) / 16777216.0f - 0.5f);
  std::vector<Tensor> outputs =
      gradients(sum(y * Variable("g", values, std::move(noise)).value()), by).value();
  outputs.push_back(y);
  const auto results = [&](Precision precision) {
    Program program =
        compile(ProgramDescription{.name = "block", .outputs = outputs, .precision = precision});
    const auto found = session().run(program);
    EXPECT_TRUE(found) << found.error().message;
    const auto again = session().run(program);
    for (std::size_t o = 0; o < outputs.size(); ++o) EXPECT_EQ((*again)[o].floats, (*found)[o].floats);
    return *found;
  };
  const std::vector<HostTensor> mixed = results(Precision::mixed16), whole = results(Precision::float32);
  expect_near_float32(mixed, whole);
}

// A step through two norms and an activation: what later kernels read of a product's results, its own kernel
// stores rounded. Clamped weights keep products out of regions.
TEST_F(MixedPrecision, AStepStoresResultsRoundedForLaterKernels) {
  constexpr std::int64_t kRows = 1024, kWidth = 64, kHidden = 128;
  const auto noise = [](const std::string& name, const Shape& shape, float scale) {
    std::vector<float> values(static_cast<std::size_t>(shape.element_count()));
    std::mt19937 random(static_cast<unsigned>(name[0]));
    for (float& value : values) value = scale * (static_cast<float>(random() >> 8) / 8388608.0f - 1.0f);
    return Variable(name, shape, std::move(values));
  };
  const auto norm = [](const Tensor& x) { return layer_norm(x, ones({kWidth}), zeros({kWidth})); };
  const Shape values{kRows, kWidth};
  const auto results = [&](Precision precision) {
    const Variable w[] = {noise("in", {kWidth, kWidth}, 0.2f), noise("up", {kWidth, kHidden}, 0.2f),
                          noise("bias", {kHidden}, 0.5f), noise("down", {kHidden, kWidth}, 0.2f)};
    const Tensor x = noise("x", values, 1).value(), first = matmul(norm(x), tanh(w[0].value())) + x;
    const Tensor hidden = gelu(matmul(norm(first), tanh(w[1].value())) + w[2].value());
    const Tensor y = first + matmul(hidden, tanh(w[3].value()));
    std::vector<Tensor> by{x};
    for (const Variable& one : w) by.push_back(one.value());
    ProgramDescription step{.name = "step",
                            .outputs = gradients(sum(y * noise("g", values, 0.2f).value()), by).value(),
                            .precision = precision};
    step.outputs.push_back(y);
    for (std::size_t i = 0; i < std::size(w); ++i)
      step.updates.push_back(Update::assign(w[i], w[i].value() - 0.1f * step.outputs[i + 1]));
    Program program = compile(step);
    std::size_t rounded = 0;  // products that store no float32
    for (const ScheduleFigures& part : program.schedule())
      for (const DispatchFigures& dispatch : part.dispatches)
        for (const KernelFigures& kernel : dispatch.kernels) {
          const std::string stored = kernel.text.substr(0, kernel.text.find(" from "));
          rounded += kernel.kind == "product" && stored.find("float32") == std::string::npos;
        }
    if (precision == Precision::mixed16) EXPECT_GE(rounded, 1u);
    const auto found = session().run(program);
    EXPECT_TRUE(found) << found.error().message;
    return found ? *found : std::vector<HostTensor>(step.outputs.size());
  };
  const auto mixed = results(Precision::mixed16), whole = results(Precision::float32),
             again = results(Precision::mixed16);
  expect_near_float32(mixed, whole);
  for (std::size_t o = 0; o < mixed.size(); ++o)
    EXPECT_EQ(again[o].floats, mixed[o].floats) << "output " << o;
}

TEST_F(MixedPrecision, LearnsAsInFloat32) {
  Lesson mixed(Precision::mixed16), whole(Precision::float32);
  Program a = compile(mixed.description), b = compile(whole.description);
  float first = 0, mixed_loss = 0, whole_loss = 0;
  for (int step = 0; step < 25; ++step) {
    mixed_loss = run(a, weight_of(1))[0];
    whole_loss = run(b, weight_of(1))[0];
    if (step == 0) first = whole_loss;
  }
  EXPECT_LT(whole_loss, 0.5f * first);
  EXPECT_NEAR(mixed_loss, whole_loss, 0.02f * whole_loss);
  EXPECT_NE(mixed_loss, whole_loss);
}

TEST_F(MixedPrecision, ScalingKeepsGradientsThatFloat16Cannot) {
  const Tensor x = tanh(matrix("x", 128, 96, 1, 1).value()), w = tanh(matrix("w", 96, 128, 1, 2).value());
  const Tensor loss = sum(matmul(x, w)) *
                      1e-8f;  // every gradient of the product is 1e-8, below float16's smallest number, 6e-8
  const nn::LossScaler scaler("net");
  const auto gradient = [&](const Tensor& scaled, const Tensor& scale, Precision precision) {
    const std::vector<Tensor> raw = gradients(scaled, std::span(&w, 1)).value();
    const nn::ClippedGradients found =
        nn::clip_by_global_norm(raw, std::numeric_limits<double>::infinity(), 0, scale).value();
    Program program = compile(ProgramDescription{
        .name = "gradient", .outputs = {found.gradients[0] * 1e8f}, .precision = precision});
    return run(program);
  };
  const std::vector<float> whole = gradient(loss, Tensor(), Precision::float32);
  EXPECT_THAT(gradient(loss, Tensor(), Precision::mixed16), testing::Each(0.0f));
  EXPECT_THAT(gradient(scaler.scaled(loss), scaler.scale(), Precision::mixed16),
              testing::Pointwise(testing::FloatNear(0.05f), whole));
  EXPECT_THAT(whole, testing::Contains(testing::Lt(-0.5f)));
}

TEST_F(MixedPrecision, AStepThatOverflowsIsSkippedToTheBitAndHalvesTheScale) {
  Lesson lesson(Precision::mixed16);
  Program program = compile(lesson.description);
  for (int step = 0; step < 2; ++step) run(program, weight_of(1));
  const auto content = [&] {
    std::vector<std::vector<float>> all;
    for (const Variable& variable : lesson.state)
      if (variable.dtype() == DType::float32 && variable.name() != "lesson.loss_scale")
        all.push_back(floats(variable));
    return all;
  };
  const Variable scale = lesson.scaler.state().find("scale")->variable;
  const std::vector<std::vector<float>> before = content();
  EXPECT_EQ(floats(scale)[0], 65536);
  const auto poisoned = session()
                            .run(program, weight_of(1e4f))
                            .value();  // 65536 x 1e4: beyond float16, though not beyond float32
  EXPECT_FALSE(std::isfinite(poisoned[1].floats[0]));
  EXPECT_EQ(content(), before);
  EXPECT_EQ(floats(scale)[0], 32768);
  EXPECT_TRUE(std::isfinite(session().run(program, weight_of(1)).value()[1].floats[0]));
  EXPECT_NE(content(), before);
}

TEST_F(MixedPrecision, TheScaleGrowsAndTheGradientsStayUnchanged) {
  Lesson growing(Precision::mixed16, {.initial = 1024, .growth_interval = 2}),
      constant(Precision::mixed16, {.initial = 1024, .growth_interval = 0});
  Program a = compile(growing.description), b = compile(constant.description);
  for (int step = 0; step < 6; ++step) {
    const float x = session().run(a, weight_of(1)).value()[1].floats[0],
                y = session().run(b, weight_of(1)).value()[1].floats[0];
    EXPECT_NEAR(x, y, 1e-3f * y) << "step " << step;
  }
  EXPECT_EQ(floats(growing.scaler.state().find("scale")->variable)[0], 8192);
}

TEST_F(MixedPrecision, EveryRunAndEverySlicingGivesTheSameBits) {
  std::vector<std::vector<float>> results;
  for (const std::vector<std::uint32_t>& lengths : {std::vector<std::uint32_t>{1000}, {1000}, {1}, {3, 2}}) {
    Lesson lesson(Precision::mixed16);
    Program program = compile(lesson.description);
    const float one = 1;
    std::ranges::copy(std::as_bytes(std::span(&one, 1)), program.input_bytes(0, 0).begin());
    for (int step = 0; step < 3; ++step) run_sliced(program, lengths);
    results.push_back(floats(lesson.w0));
  }
  for (const std::vector<float>& result : results) EXPECT_EQ(result, results[0]);
}

// Scaling adds no dispatch to a step; narrowing adds one, which rounds operands in memory.
TEST_F(MixedPrecision, CostsAFewDispatches) {
  const nn::Sequential network =
      nn::mlp("net", {8, 32, 32, 4}, {.activation = nn::Activation::tanh, .seed = 3});
  const Tensor loss =
      mean(square(network(matrix("x", 200, 8, 1, 1).value()) - matrix("t", 200, 4, 1, 2).value()));
  const nn::LossScaler scaler("net");
  const nn::Adam adam(network.parameters());
  const auto dispatches = [&](bool scales) {
    const std::vector<Tensor> raw =
        gradients(scales ? scaler.scaled(loss) : loss, network.parameters().values()).value();
    const nn::ClippedGradients clipped =
        nn::clip_by_global_norm(raw, 0.5, 0, scales ? scaler.scale() : Tensor()).value();
    ProgramDescription step{.name = "step", .outputs = {clipped.norm}, .precision = Precision::mixed16};
    step.updates = adam.step(clipped.gradients, 1e-3, nn::LossScaler("other").active(clipped.norm)).value();
    if (scales)
      for (const Update& update : scaler.step(clipped.norm)) step.updates.push_back(update);
    return compile(step).stats().dispatches;
  };
  EXPECT_EQ(dispatches(true), dispatches(false));
  const Lesson mixed(Precision::mixed16), whole(Precision::float32);
  EXPECT_LE(compile(mixed.description).stats().dispatches, compile(whole.description).stats().dispatches + 2);
}

TEST_F(MixedPrecision, TheCpuComputesInFloat32) {
  const auto cpu = Runtime::create_on_cpu();
  Session on_cpu(*cpu);
  const auto product = [&](Precision precision) {
    const Tensor y =
        matmul(tanh(matrix("a", 128, 96, 1, 1).value()), tanh(matrix("b", 96, 128, 1, 2).value()));
    Program program =
        Program::compile(*cpu, ProgramDescription{.name = "product", .outputs = {y}, .precision = precision})
            .value();
    return on_cpu.run(program).value()[0].floats;
  };
  EXPECT_EQ(product(Precision::mixed16), product(Precision::float32));
}

}  // namespace
}  // namespace imprint
