// Convolutions as products of places by channels: the same values, by the double oracle, in plans for a GPU.
// Needs no GPU.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "compute/base/number_format.h"
#include "compute/graph/passes/channels_last.h"
#include "compute/graph/passes/narrow_constants.h"
#include "compute/graph/plan/fusion.h"
#include "compute/graph/schedule/product.h"
#include "compute/program/device_profile.h"
#include "compute/tensor/build.h"
#include "compute/tensor/composites/images.h"
#include "compute/tensor/tensor.h"
#include "tests/reference/interpreter.h"

namespace imprint {

using namespace graph;
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

ImagePlan image_plan(const Tensor& output) {
  ImagePlan made{build_graph(std::span(&output, 1)).value(), {}};
  for (NodeIndex n = 0; n < made.graph.size(); ++n)
    if (made.graph[n].op == Op::input) made.request.inputs.push_back(n);
  for (NodeIndex root : made.graph.roots) made.request.outputs.push_back({root});
  return made;
}

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

// Programs that train, and those with nothing to gain, stay as they are.
TEST(ChannelsLast, LeavesOtherProgramsAlone) {
  const Tensor x = image(1, 8, 8);
  ImagePlan plan = image_plan(convolution(x, kernel_of({16, 8, 3, 3}, 1), Tensor(), {.padding = 1}));
  plan.request.updates.push_back({});
  EXPECT_EQ(arrange_channels_last(plan.graph, plan.request, image_options(true)), "");
  ImagePlan layers = image_plan(relu(matmul(input("x", {64, 64}), kernel_of({64, 64}, 1))));
  EXPECT_EQ(arrange_channels_last(layers.graph, layers.request, image_options(true)), "");
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
