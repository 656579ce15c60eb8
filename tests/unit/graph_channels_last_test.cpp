// Convolutions as products of places by channels: the same values, by the double oracle, in plans for a GPU.
// Needs no GPU.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "compute/base/number_format.h"
#include "compute/graph/gradients/autodiff.h"
#include "compute/graph/passes/channels_last.h"
#include "compute/graph/passes/narrow_constants.h"
#include "compute/graph/passes/page_expand.h"
#include "compute/graph/plan/fusion.h"
#include "compute/graph/schedule/product.h"
#include "compute/graph/schedule/request_queries.h"
#include "compute/program/device_profile.h"
#include "compute/program/program_impl.h"
#include "compute/tensor/build.h"
#include "compute/tensor/composites/images.h"
#include "compute/tensor/tensor.h"
#include "tests/reference/interpreter.h"

namespace imprint {

using namespace graph;
using namespace program;
using namespace tensor;

namespace {

std::vector<float> image_waves(std::int64_t count, float scale, int seed) {
  std::vector<float> values;
  for (std::int64_t i = 0; i < count; ++i)
    values.push_back(scale *
                     std::sin(static_cast<float>(i * (seed + 3) % 1009) * 0.37f + static_cast<float>(seed)));
  return values;
}

Tensor kernel_of(const Shape& shape, int seed) {
  const std::int64_t count = shape.element_count();
  const float scale = 1.5f / std::sqrt(static_cast<float>(count / shape[0]));
  return Tensor::from(image_waves(count, scale, seed), shape);
}

struct ImagePlan {
  Graph graph;
  FusionRequest request;
};

ImagePlan image_plan(std::span<const Tensor> outputs) {
  ImagePlan made{build_graph(outputs).value(), {}};
  for (NodeIndex n = 0; n < made.graph.size(); ++n)
    if (made.graph[n].op == Op::input) made.request.inputs.push_back(n);
  for (NodeIndex root : made.graph.roots) made.request.outputs.push_back({root});
  return made;
}
ImagePlan image_plan(const Tensor& output) { return image_plan(std::span(&output, 1)); }

FusionOptions image_options(bool half_values) {
  FusionOptions options;
  options.product_operations = 1 << 12;  // small images count
  options.narrow_products = options.channels_last = options.matrix_units = true;
  options.half_values = half_values;
  options.region_shared_bytes = 49152;
  options.most_invocations = 1024;
  return options;
}

// The node of the table as a tensor.
Tensor tensor_of_node(const Graph& graph, NodeIndex wanted) {
  std::vector<Tensor> made;
  for (NodeIndex n = 0; n <= wanted; ++n) {
    const GraphNode& node = graph[n];
    if (node.kind() == OpKind::leaf) {
      made.emplace_back(node.source);
      continue;
    }
    std::vector<Tensor> inputs;
    for (NodeIndex input : node.inputs) inputs.push_back(made[static_cast<std::size_t>(input)]);
    made.push_back(
        make(node.op, inputs,
             {.ints = node.ints, .floats = node.floats, .shape = node.shape, .dtype = node.dtype}));
    EXPECT_TRUE(made.back().ok()) << made.back().error().message;
    EXPECT_EQ(made.back().shape(), node.shape);
    EXPECT_EQ(made.back().dtype(), node.dtype);
  }
  return made.back();
}

// The largest difference between the network and its arranged form, beside the largest value.
void expect_same_image(const Tensor& output, const std::vector<float>& input_values,
                       double tolerance = 4e-3) {
  reference::Bindings bindings;
  bindings["x"] = std::vector<double>(input_values.begin(), input_values.end());
  const std::vector<double> expected = reference::evaluate(output, bindings);
  double size = 0;
  for (double value : expected)
    if (std::isfinite(value)) size = std::max(size, std::abs(value));
  for (const bool half_values : {false, true}) {
    ImagePlan plan = image_plan(output);
    EXPECT_NE(arrange_channels_last(plan.graph, plan.request, image_options(half_values)), "");
    const std::vector<double> found =
        reference::evaluate(tensor_of_node(plan.graph, plan.graph.roots[0]), bindings);
    ASSERT_EQ(found.size(), expected.size());
    for (std::size_t i = 0; i < found.size(); ++i) {
      if (std::isnan(expected[i]))
        EXPECT_TRUE(std::isnan(found[i])) << i;
      else
        ASSERT_NEAR(found[i], expected[i], tolerance * size) << i << (half_values ? " of halves" : "");
    }
  }
}

Tensor image(std::int64_t batch, std::int64_t channels, std::int64_t extent) {
  return input("x", {batch, channels, extent, extent});
}

TEST(ChannelsLast, ConvolutionsOfAnyFormKeepTheirValues) {
  struct Form {
    std::int64_t batch, in, out, extent, kernel;
    ConvolutionOptions options;
  };
  for (const Form& form : {Form{1, 8, 16, 9, 1, {}}, Form{2, 8, 16, 9, 3, {.padding = 1}},
                           Form{2, 3, 16, 13, 7, {.stride = 2, .padding = 3}},
                           Form{1, 16, 24, 11, 3, {.stride = 2, .padding = {1, 0}}},
                           Form{2, 8, 20, 12, 3, {.padding = 2, .dilation = 2}},
                           Form{1, 8, 16, 12, 1, {.stride = 2}}, Form{3, 16, 16, 7, 5, {.same = true}}}) {
    const Tensor x = image(form.batch, form.in, form.extent);
    const Tensor y = convolution(x, kernel_of({form.out, form.in, form.kernel, form.kernel}, 1),
                                 kernel_of({form.out}, 2), form.options);
    ASSERT_TRUE(y.ok()) << y.error().message;
    expect_same_image(y, image_waves(x.shape().element_count(), 1, 5));
  }
}

// Residual blocks, depthwise and grouped convolutions, pools, joined channels, a mean over places.
TEST(ChannelsLast, NetworksKeepTheirValues) {
  const auto conv = [](const Tensor& x, std::int64_t out, std::int64_t kernel, int seed,
                       ConvolutionOptions options = {}) {
    return convolution(x, kernel_of({out, x.extent(1) / options.groups, kernel, kernel}, seed),
                       kernel_of({out}, seed + 1), options);
  };
  const Tensor x = image(2, 8, 12);
  const Tensor a = relu(conv(x, 16, 3, 1, {.padding = 1}));
  const Tensor b = relu(conv(conv(a, 16, 1, 2), 16, 3, 3, {.padding = 1}) + a);
  const Tensor pooled = max_pool(b, {.size = 3, .stride = 2, .padding = 1});
  const Tensor deep = clamp(conv(pooled, 16, 3, 4, {.padding = 1, .groups = 16}), 0, 6);
  const Tensor grouped = conv(deep, 16, 3, 5, {.padding = 1, .groups = 2});
  const Tensor joined = concat({relu(conv(grouped, 8, 1, 6)), conv(deep, 24, 3, 7, {.padding = 1})}, 1);
  const Tensor last = conv(joined, 12, 1, 8);
  const std::vector<float> values = image_waves(x.shape().element_count(), 1, 5);
  expect_same_image(last, values, 1e-2);
  expect_same_image(mean(last, {2, 3}), values, 1e-2);
  expect_same_image(softmax(reshape(last, {2, 12 * 36}), -1), values, 1e-2);
  expect_same_image(permute(last, {0, 2, 3, 1}), values, 1e-2);
}

TEST(ChannelsLast, KeepsNaNAndInfinity) {
  const Tensor x = image(1, 8, 8);
  std::vector<float> values = image_waves(512, 1, 3);
  values[70] = std::numeric_limits<float>::quiet_NaN();
  expect_same_image(
      relu(convolution(x, kernel_of({16, 8, 3, 3}, 1), kernel_of({16}, 2), {.padding = 1})) * 2.0f, values);
}

// Programs with nothing to gain stay as they are: also those that learn from images of few channels.
TEST(ChannelsLast, LeavesOtherProgramsAlone) {
  const Tensor x = image(1, 4, 8);
  ImagePlan plan = image_plan(convolution(x, kernel_of({16, 4, 3, 3}, 1), Tensor(), {.padding = 1}));
  plan.request.updates.push_back({.value = plan.graph.roots[0]});
  EXPECT_EQ(arrange_channels_last(plan.graph, plan.request, image_options(true)), "");
  ImagePlan layers = image_plan(relu(matmul(input("x", {64, 64}), kernel_of({64, 64}, 1))));
  EXPECT_EQ(arrange_channels_last(layers.graph, layers.request, image_options(true)), "");
}

// The loss of a network of images, and its gradients: padding, strides, a sum with what was read, a pool, and
// a linear layer. Channels are whole eights.
struct ImageLesson {
  Tensor image;
  std::vector<Variable> weights;
  std::vector<Tensor> outputs;

  ImageLesson(const Tensor& x, std::int64_t first, std::int64_t channels) : image(x) {
    const auto weight = [&](const Shape& shape) {
      const std::string name = "w" + std::to_string(weights.size());
      const int seed = static_cast<int>(weights.size()) + 1;
      const float scale = 1.5f / std::sqrt(static_cast<float>(shape.element_count() / shape[0]));
      weights.emplace_back(name, shape, image_waves(shape.element_count(), scale, seed));
      return weights.back().value();
    };
    const Tensor a =
        tanh(convolution(x, weight({first, x.extent(1), 3, 3}), weight({first}), {.padding = 1}));
    const Tensor b = tanh(convolution(a, weight({channels, first, 4, 4}), Tensor(), {.stride = 2}));
    const Tensor c = tanh(convolution(b, weight({channels, channels, 3, 3}), Tensor(), {.padding = 1}) + b);
    const Tensor pooled = avg_pool(c, {.size = 2, .stride = 2});
    const std::int64_t features = pooled.shape().element_count() / x.extent(0);
    const Tensor y = matmul(reshape(pooled, {x.extent(0), features}), transpose(weight({32, features})));
    std::vector<Tensor> by;
    for (const Variable& one : weights) by.push_back(one.value());
    outputs = gradients(mean(square(y)), by).value();
  }
  ProgramDescription description() const {
    ProgramDescription step{.name = "step", .inputs = {image}, .precision = Precision::mixed16};
    for (std::size_t i = 0; i < weights.size(); ++i)
      step.updates.push_back(Update::assign(weights[i], weights[i].value() - 0.1f * outputs[i]));
    return step;
  }
};

TEST(ChannelsLast, GradientsKeepTheirValues) {
  const ImageLesson lesson(image(2, 8, 12), 16, 24);
  ImagePlan plan{build_graph(lesson.outputs).value(), {}};
  for (NodeIndex n = 0; n < plan.graph.size(); ++n)
    if (plan.graph[n].op == Op::input) plan.request.inputs.push_back(n);
  for (NodeIndex root : plan.graph.roots) plan.request.updates.push_back({.value = root});
  const FusionOptions options = image_options(true);
  ASSERT_TRUE(expand_pages(plan.graph, plan.request, options).ok());
  // Three convolutions, and the gradients of two images.
  EXPECT_EQ(arrange_channels_last(plan.graph, plan.request, options),
            "channels last: 5 products of places by channels read float16");
  reference::Bindings bindings;
  const std::vector<float> values = image_waves(2 * 8 * 144, 1, 5);
  bindings["x"] = std::vector<double>(values.begin(), values.end());
  for (std::size_t o = 0; o < lesson.outputs.size(); ++o) {
    const std::vector<double> expected = reference::evaluate(lesson.outputs[o], bindings),
                              found = reference::evaluate(
                                  tensor_of_node(plan.graph, plan.request.updates[o].value), bindings);
    ASSERT_EQ(found.size(), expected.size());
    double error = 0, size = 0;
    for (std::size_t i = 0; i < found.size(); ++i) {
      error += std::pow(found[i] - expected[i], 2.0);
      size += std::pow(expected[i], 2.0);
    }
    EXPECT_GT(error, 0) << o;
    EXPECT_LT(std::sqrt(error / size), 1e-2) << o;
  }
}

// All convolutions of such a step run on matrix units and load eight at a time. Planning ends: one row of the
// linear layer and the slopes of its image do not fit a workgroup, however the region is cut.
TEST(ChannelsLast, GradientsReadEightAtATime) {
  vk::CapabilityProfile gpu;
  gpu.max_storage_buffers_per_stage = 16;
  gpu.max_workgroup_invocations = gpu.max_workgroup_size_x = 1024;
  gpu.max_shared_memory_bytes = 49152;
  gpu.subgroup_size = 32;
  gpu.storage_16bit = gpu.shader_float16 = gpu.vulkan_memory_model = gpu.cooperative_matrix_nv = true;
  const ImageLesson lesson(image(32, 16, 32), 32, 64);
  ProgramGraph source = build_program_graph(lesson.description()).value();
  const Schedule schedule = fuse(source.graph, source.request, fusion_options(source, gpu)).value();
  int products = 0;
  for (const Task& task : schedule.tasks) {
    if (task.kind != TaskKind::product || !product_shape(source.graph, task.anchor).of_windows) continue;
    ++products;
    EXPECT_EQ(task.tile.units, MatrixUnits::subgroup) << task_text(source.graph, task);
    for (const std::size_t slot : {0u, 1u})
      EXPECT_EQ(operand_layout(source.graph, schedule.materialized, task.anchor, slot, 8).width, 8)
          << slot << ' ' << task_text(source.graph, task);
  }
  EXPECT_GE(products, 8);  // three convolutions, their gradients by weights, and by two images
}

// Each convolution is one kernel with its bias, its activation and what it is added to. Nothing but images of
// float16 is stored between them, unpadded, and operands load eight at a time.
TEST(ChannelsLast, KernelsAreFusedAndReadEightAtATime) {
  const Tensor x = image(8, 16, 28);
  const Tensor a = relu(convolution(x, kernel_of({32, 16, 3, 3}, 1), kernel_of({32}, 2), {.padding = 1}));
  const Tensor b = relu(convolution(a, kernel_of({32, 32, 3, 3}, 3), kernel_of({32}, 4), {.padding = 1}));
  const Tensor c = convolution(b, kernel_of({32, 32, 1, 1}, 5), kernel_of({32}, 6), {}) + a;
  const Tensor d =
      convolution(relu(c), kernel_of({64, 32, 3, 3}, 7), kernel_of({64}, 8), {.stride = 2, .padding = 1});
  ImagePlan plan = image_plan(d);
  FusionOptions options = image_options(true);
  options.product_operations = 1 << 20;
  const Schedule schedule = fuse(plan.graph, plan.request, options).value();
  int products = 0;
  for (const Task& task : schedule.tasks) {
    for (const Store& store : task.stores)
      if (store.place.kind == PlaceKind::temporary && store.node != task.anchor) {
        EXPECT_EQ(plan.graph[store.node].dtype, DType::float16) << task_text(plan.graph, task);
        EXPECT_NE(plan.graph[store.node].op, Op::pad) << task_text(plan.graph, task);
      }
    if (task.kind != TaskKind::product) continue;
    ++products;
    EXPECT_EQ(task.tile.units, MatrixUnits::subgroup);
    for (const std::size_t slot : {0u, 1u}) {
      if (products == 1 && slot == 0) continue;  // the caller's image
      EXPECT_EQ(operand_layout(plan.graph, schedule.materialized, task.anchor, slot, 8).width, 8)
          << task_text(plan.graph, task);
    }
  }
  EXPECT_EQ(products, 4);
  EXPECT_LE(schedule.tasks.size(), 6u);  // and the image as float16, and the result in the caller's order
}

ImagePlan plan_between(const Variable& image, const Variable& result, const Tensor& value) {
  ImagePlan made{build_graph(std::span(&value, 1)).value(), {}};
  made.request.variables = {image.state(), result.state()};
  for (NodeIndex root : made.graph.roots) made.request.updates.push_back({.variable = 1, .value = root});
  return made;
}

// With image and result in tensors of the device a network has the kernels that it has with copies.
TEST(ChannelsLast, TensorsOfTheDeviceChangeNoKernel) {
  const auto network = [](const Tensor& x) {
    const Tensor a = relu(convolution(x, kernel_of({32, 16, 3, 3}, 1), kernel_of({32}, 2), {.padding = 1}));
    return relu(convolution(a, kernel_of({32, 32, 1, 1}, 5), kernel_of({32}, 6), {}) + a);
  };
  const Shape shape{8, 16, 28, 28};
  ImagePlan copied = image_plan(network(input("x", shape)));
  const Variable x = Variable::zeros("x", shape), y = Variable::zeros("y", {8, 32, 28, 28});
  ImagePlan kept = plan_between(x, y, network(x.value()));
  EXPECT_FALSE(learns(kept.graph, kept.request));
  const Schedule one = fuse(copied.graph, copied.request, image_options(true)).value(),
                 other = fuse(kept.graph, kept.request, image_options(true)).value();
  ASSERT_EQ(one.tasks.size(), other.tasks.size());
  for (std::size_t t = 0; t < one.tasks.size(); ++t) {
    EXPECT_EQ(one.tasks[t].kind, other.tasks[t].kind);
    EXPECT_EQ(one.tasks[t].tile, other.tasks[t].tile);
    EXPECT_EQ(one.tasks[t].members.size(), other.tasks[t].members.size());
  }
}

// A step of learning updates what it reads, or multiplies by variables: those are weights.
TEST(ChannelsLast, StepsOfLearningAreKnownByTheirWeights) {
  const Variable x = Variable::zeros("x", {64, 32}), w = Variable::zeros("w", {32, 64}),
                 y = Variable::zeros("y", {64, 64});
  const Tensor constant = kernel_of({32, 64}, 1);
  const auto of = [&](const Variable& target, const Tensor& value) {
    const ImagePlan plan = plan_between(x, target, value);
    return learns(plan.graph, plan.request);
  };
  EXPECT_FALSE(of(y, matmul(x.value(), constant)));
  EXPECT_FALSE(of(y, matmul(x.value() * 2.0f, constant)));
  EXPECT_TRUE(of(y, matmul(x.value() * 2.0f, w.value())));
  EXPECT_TRUE(of(y, matmul(x.value(), w.value())));
  EXPECT_TRUE(of(x, x.value() * 0.5f + matmul(matmul(x.value(), constant), transpose(constant, 0, 1))));
  EXPECT_FALSE(learns(image_plan(matmul(input("x", {64, 32}), constant)).graph, {}));
}

// A block whose shortcut is a convolution too: one of both results is stored, as float16.
TEST(ChannelsLast, ShortcutsAreStoredAsFloat16) {
  const Tensor x = image(2, 8, 12);
  const auto conv = [](const Tensor& image, std::int64_t out, std::int64_t kernel, int seed) {
    return convolution(image, kernel_of({out, image.extent(1), kernel, kernel}, seed),
                       kernel_of({out}, seed + 1), {.padding = kernel / 2});
  };
  const Tensor a = relu(conv(x, 16, 3, 1));
  const Tensor block = relu(conv(relu(conv(a, 16, 3, 3)), 32, 1, 5) + conv(a, 32, 1, 7));
  const Tensor y = conv(block, 16, 3, 9);
  expect_same_image(y, image_waves(x.shape().element_count(), 1, 5), 1e-2);
  ImagePlan plan = image_plan(y);
  const Schedule schedule = fuse(plan.graph, plan.request, image_options(true)).value();
  int wide = 0;
  for (const Task& task : schedule.tasks)
    for (const Store& store : task.stores)
      wide += store.place.kind == PlaceKind::temporary && plan.graph[store.node].dtype == DType::float32;
  EXPECT_LE(wide, 1);  // the last product's, which the output has in another order
}

// Bare products may be exact parts of one, of whole numbers, and a program's outputs stay as they are.
TEST(ChannelsLast, SumsOfBareProductsStayFloat32) {
  const Tensor x = image(2, 8, 12);
  const auto conv = [&](int seed, bool with_bias) {
    const Tensor weights = kernel_of({32, 8, 3, 3}, seed);
    return convolution(x, weights, with_bias ? kernel_of({32}, seed + 1) : Tensor(), {.padding = 1});
  };
  const auto narrow_stores = [](const std::vector<Tensor>& outputs) {
    ImagePlan plan = image_plan(std::span(outputs));
    const Schedule schedule = fuse(plan.graph, plan.request, image_options(true)).value();
    int narrow = 0;
    for (const Task& task : schedule.tasks)
      if (task.kind == TaskKind::product)
        for (const Store& store : task.stores) narrow += plan.graph[store.node].dtype == DType::float16;
    return narrow;
  };
  EXPECT_EQ(narrow_stores({conv(1, true) + conv(3, true)}), 1);
  EXPECT_EQ(narrow_stores({conv(1, false) + conv(3, false)}), 0);
  const Tensor first = conv(1, true), second = conv(3, true);
  EXPECT_EQ(narrow_stores({first + second, first, second}), 0);
}

TEST(ChannelsLast, ConstantsAreRoundedOnce) {
  const Tensor w = kernel_of({6, 4, 3, 3}, 2);
  const Tensor turned = reshape(permute(w, {0, 2, 3, 1}), {6, 36});
  const Graph graph = build_graph(std::span(&turned, 1)).value();
  const std::vector<float> elements = constant_elements(graph, graph.roots[0]).value();
  const std::vector<double> expected = reference::evaluate(turned);
  EXPECT_THAT(elements,
              testing::Pointwise(testing::FloatEq(), std::vector<float>(expected.begin(), expected.end())));
  const GraphNode half = narrow_constant(elements, {6, 36}, nullptr);
  ASSERT_EQ(half.source->constant->bytes.size(), 2 * elements.size());
  for (std::size_t i = 0; i < elements.size(); ++i)
    EXPECT_EQ(load_element<std::uint16_t>(half.source->constant->bytes.data(), i),
              half_from_float(elements[i]));
  const Tensor x = input("x", {4});
  const Graph other = build_graph(std::span(&x, 1)).value();
  EXPECT_FALSE(constant_elements(other, other.roots[0]));
}

}  // namespace
}  // namespace imprint
