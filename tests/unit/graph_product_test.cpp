// Memory of a product's operands, and the choice of its tile. Needs no GPU.

#include "compute/graph/schedule/product.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "compute/graph/gradients/autodiff.h"
#include "compute/graph/plan/fusion.h"
#include "compute/graph/schedule/cost.h"
#include "compute/graph/strides.h"
#include "compute/tensor/composites/composites.h"
#include "compute/tensor/composites/images.h"
#include "compute/tensor/tensor.h"

namespace imprint {

using namespace graph;
using namespace tensor;

namespace {

// The operand is computed from memory leaves through views.
std::optional<Strides> strides_of(const Tensor& tensor) {
  const Graph graph = build_graph(std::span(&tensor, 1)).value();
  std::vector<std::uint8_t> memory(graph.nodes.size());
  for (NodeIndex i = 0; i < graph.size(); ++i) memory[static_cast<std::size_t>(i)] = is_memory_leaf(graph[i]);
  return imprint::strides_of(graph, memory, graph.roots[0]);
}

std::vector<std::int64_t> axes(const Tensor& tensor) {
  const std::optional<Strides> strides = strides_of(tensor);
  if (!strides) return {};
  return {strides->axis.begin(), strides->axis.begin() + tensor.rank()};
}

using Extents = std::vector<std::int64_t>;

TEST(Strides, ViewsThatMoveNothing) {
  const Tensor x = input("x", {4, 6, 5});
  EXPECT_EQ(axes(x), (Extents{30, 5, 1}));
  EXPECT_EQ(axes(permute(x, {2, 0, 1})), (Extents{1, 30, 5}));
  EXPECT_EQ(axes(reshape(x, {2, 2, 30})), (Extents{60, 30, 1}));
  EXPECT_EQ(axes(reshape(transpose(x, 0, 1), {6, 2, 2, 5})), (Extents{5, 60, 30, 1}));
  EXPECT_EQ(axes(expand(reshape(x, {1, 24, 5}), {7, 24, 5})), (Extents{0, 5, 1}));
}

TEST(Strides, SlicesStartAndStep) {
  const Tensor x = input("x", {8, 10});
  const std::optional<Strides> strides = strides_of(slice(slice(x, 0, 2, 8, 2), 1, 3, 10));
  ASSERT_TRUE(strides.has_value());
  EXPECT_EQ(strides->start, 23);
  EXPECT_EQ(strides->axis[0], 20);
  EXPECT_EQ(strides->axis[1], 1);
}

TEST(Strides, OtherViewsHaveNone) {
  const Tensor x = input("x", {4, 6});
  EXPECT_FALSE(strides_of(reshape(transpose(x), {24})).has_value());
  EXPECT_FALSE(strides_of(window(x, 1, 3)).has_value());
  EXPECT_FALSE(strides_of(tanh(x)).has_value());
}

ProductTile tile_of(ProductShape shape, std::int64_t shared_bytes = 49152,
                    std::int32_t most_invocations = 128) {
  FusionOptions options;
  options.most_invocations = most_invocations;
  options.region_shared_bytes = shared_bytes;
  const Tensor product = matmul(input("x", {shape.batch, shape.rows, shape.depth}),
                                input("y", {shape.batch, shape.depth, shape.columns}));
  const Graph graph = build_graph(std::span(&product, 1)).value();
  std::vector<std::uint8_t> memory(graph.nodes.size(), 1);
  NodeIndex contraction = 0;
  while (graph[contraction].op != Op::matmul) ++contraction;
  std::vector<VariantChoice> made;
  return choose_tile(graph, memory, contraction, options, made);
}

TEST(Product, LargeOnesGetLargeTiles) {
  const ProductTile large = tile_of({1, 4096, 4096, 4096}), small = tile_of({1, 256, 256, 256});
  EXPECT_GT(large.rows * large.columns, small.rows * small.columns);
  EXPECT_EQ(tile_of({64, 512, 512, 512}), large);  // enough of them side by side
}

TEST(Product, ATileFitsTheDevice) {
  for (const std::int64_t extent : {1, 127, 129, 1024, 4096})
    for (const std::int64_t shared_bytes : {16384, 32768, 49152}) {
      const ProductTile tile = tile_of({1, extent, extent, extent}, shared_bytes);
      EXPECT_LE(16 * tile.depth * (tile.rows / 4 + 1 + tile.columns / 4 + 1), shared_bytes);
      EXPECT_LE(tile.invocations(), 128);                                // what every device has
      EXPECT_GE(tile.invocations(), std::max(tile.rows, tile.columns));  // the page's needs
      EXPECT_EQ(tile.invocations() % 32, 0);
    }
}

// The tile for an image in memory, or for one that is computed where it is read.
ProductTile convolution_tile(const Shape& image, const Shape& weights, const ConvolutionOptions& convolved,
                             std::int64_t shared_bytes = 49152, bool computed = false) {
  FusionOptions options;
  options.region_shared_bytes = shared_bytes;
  options.most_invocations = 1024;
  const Tensor x = input("x", image),
               y = convolution(computed ? relu(x) : x, input("w", weights), Tensor(), convolved);
  const Graph graph = build_graph(std::span(&y, 1)).value();
  std::vector<std::uint8_t> memory(graph.nodes.size());
  for (NodeIndex i = 0; i < graph.size(); ++i) memory[static_cast<std::size_t>(i)] = is_memory_leaf(graph[i]);
  NodeIndex contraction = 0;
  while (graph[contraction].op != Op::matmul) ++contraction;
  std::vector<VariantChoice> made;
  return choose_tile(graph, memory, contraction, options, made);
}

TEST(Product, LargeConvolutionsOfThreeAreOfPatches) {
  const ProductTile large = convolution_tile({64, 64, 32, 32}, {64, 64, 3, 3}, {.padding = 1});
  EXPECT_TRUE(large.of_patches);
  EXPECT_LE(16 * patch_memory(large), 49152);
  EXPECT_TRUE(convolution_tile({32, 256, 14, 14}, {256, 256, 3, 3}, {.padding = 1}).of_patches);
  EXPECT_TRUE(convolution_tile({256, 64, 9, 9}, {64, 64, 3, 3}, {}).of_patches);
  // Outputs one by one, in many workgroups of few turns.
  EXPECT_FALSE(convolution_tile({64, 64, 24, 24}, {32, 64, 3, 3}, {.padding = 2}).of_patches);
  const ProductTile small = convolution_tile({64, 64, 32, 32}, {64, 64, 3, 3}, {.padding = 1}, 32768);
  EXPECT_TRUE(small.of_patches);
  EXPECT_LE(16 * patch_memory(small), 32768);
  const auto is_other = [](const Shape& weights, const ConvolutionOptions& options) {
    return !convolution_tile({64, 64, 32, 32}, weights, options).of_patches;
  };
  EXPECT_TRUE(is_other({64, 64, 3, 3}, {.stride = 2}));
  EXPECT_TRUE(is_other({64, 64, 3, 3}, {.dilation = 2}));
  EXPECT_TRUE(is_other({64, 64, 5, 3}, {}));
  EXPECT_TRUE(is_other({64, 32, 3, 3}, {.groups = 2}));
  EXPECT_FALSE(convolution_tile({64, 4, 32, 32}, {64, 4, 3, 3}, {}).of_patches);  // less than a turn
  EXPECT_FALSE(convolution_tile({1, 64, 8, 8}, {64, 64, 3, 3}, {}).of_patches);   // few workgroups
  EXPECT_FALSE(convolution_tile({64, 64, 32, 32}, {64, 64, 3, 3}, {.padding = 1}, 49152, true).of_patches);
}

// Windows of one element lie side by side: a convolution of 1 x 1 is a layer's product.
TEST(Product, ConvolutionsOfOneElementHaveTheTilesOfLayers) {
  EXPECT_EQ(convolution_tile({32, 256, 28, 28}, {256, 256, 1, 1}, {}),
            tile_of({1, 256, 32 * 784, 256}, 49152, 1024));
}

Schedule schedule_of(const Tensor& output, const FusionOptions& options, Graph& graph) {
  graph = build_graph(std::span(&output, 1)).value();
  FusionRequest request;
  for (NodeIndex n = 0; n < graph.size(); ++n)
    if (graph[n].op == Op::input) request.inputs.push_back(n);
  request.outputs.push_back({graph.roots[0]});
  return fuse(graph, request, options).value();
}

// The gradient of a first filter: 288 results of 43,264 terms.
TEST(Product, VeryManyTermsOfFewResultsFillTheUnits) {
  const Tensor w = input("w", {32, 1, 3, 3}), image = input("x", {64, 1, 28, 28}),
               slope = input("g", {64, 32, 26, 26});
  const Tensor y = gradients(sum(convolution(image, w, Tensor()) * slope), std::span(&w, 1)).value()[0];
  FusionOptions options;
  options.most_invocations = 1024;
  options.region_shared_bytes = 49152;
  Graph graph;
  const Schedule schedule = schedule_of(y, options, graph);
  ASSERT_EQ(schedule.tasks.size(), 2u);  // no fold of folds
  EXPECT_EQ(schedule.tasks[0].kind, TaskKind::product);
  EXPECT_EQ(graph[schedule.tasks[0].anchor].shape, (Shape{169, 32, 9}));
  options.product_turn_operations = 1000;  // a processor
  for (const Task& task : schedule_of(y, options, graph).tasks) EXPECT_NE(task.kind, TaskKind::product);
}

// Invocations share the terms where a unit has few workgroups.
TEST(Product, SmallConvolutionsAreInSlices) {
  EXPECT_GT(convolution_tile({32, 64, 9, 9}, {64, 64, 3, 3}, {}).slices, 1);
  EXPECT_EQ(convolution_tile({256, 4, 84, 84}, {32, 4, 8, 8}, {.stride = 4}).slices, 1);
}

// A cell's weight gradient: so few tiles that each has a unit for itself.
TEST(Product, FewTilesShareTheirTermsBetweenSlices) {
  const ProductTile tile = tile_of({1, 64, 192, 256}, 49152, 1024);
  EXPECT_EQ(tile.slices, 4);
  EXPECT_EQ(tile.invocations(), 256);  // as a region of the same dispatch has
  EXPECT_EQ(tile_of({1, 64, 192, 256}, 49152, 128).slices, 1);
}

// Few tiles per unit: more invocations per sum hide latencies, and load less code.
TEST(Product, ShortOnesHaveFewSumsPerInvocation) {
  FusionOptions options;
  options.region_shared_bytes = 49152;
  options.most_invocations = 1024;
  for (const ProductShape& shape : {ProductShape{1, 2048, 768, 256}, {1, 2048, 256, 1024}}) {
    const ProductTile tile = tile_of(shape);
    EXPECT_LE(tile.thread_rows * tile.thread_columns, 32) << product_tile_text(tile);
    EXPECT_EQ(product_stretches(shape, options, Stretched::tiles), 1);
  }
}

// The shared tile of two products in one dispatch that would take small tiles alone.
std::optional<ProductTile> pair_tile(const ProductShape& first, const ProductShape& second) {
  FusionOptions options;
  options.region_shared_bytes = 49152;
  options.most_invocations = 1024;
  const ProductTile smallest{32, 64, 16, 4, 4};
  std::vector<Tensor> products;
  for (const ProductShape& shape : {first, second}) {
    const std::string name = std::to_string(products.size());
    products.push_back(matmul(input("x" + name, {shape.batch, shape.rows, shape.depth}),
                              input("y" + name, {shape.batch, shape.depth, shape.columns})));
  }
  const Graph graph = build_graph(products).value();
  const std::vector<std::uint8_t> memory(graph.nodes.size(), 1);
  std::vector<NodeIndex> matmuls;
  for (NodeIndex i = 0; i < graph.size(); ++i)
    if (graph[i].op == Op::matmul) matmuls.push_back(i);
  return choose_shared_tile(graph, memory, matmuls, {smallest, smallest}, options);
}

// Heads that lie apart: rows of four neighbours are neighbours in memory, if a head has whole fours.
TEST(Product, HeadsThatLieApartAreLoadedInFours) {
  for (const auto& [extent, width] : {std::pair(20, 4), {21, 1}}) {
    const Tensor x = reshape(permute(input("x", {2, 3, 64, extent}), {0, 2, 1, 3}), {128, 3 * extent});
    for (const bool turned : {false, true}) {
      const Tensor y = input("y", {turned ? 128 : 3 * extent, 64});
      const Graph graph = build_graph(std::vector{matmul(turned ? transpose(x) : x, y)}).value();
      std::vector<std::uint8_t> memory(graph.nodes.size(), 0);
      for (NodeIndex i = 0; i < graph.size(); ++i)
        memory[static_cast<std::size_t>(i)] = graph[i].op == Op::input || graph[i].op == Op::matmul;
      const OperandLayout layout = operand_layout(graph, memory, graph.size() - 1, 0, 4);
      EXPECT_EQ(layout.width, width) << turned;
      EXPECT_EQ(layout.along_terms, !turned);
    }
  }
}

// Two gradients of a layer take tiles with slices, unless these leave units idle at the end.
TEST(Product, PairsThatFillAllUnitsTakeSlices) {
  const auto slices_of = [](const ProductShape& first, const ProductShape& second) {
    const std::optional<ProductTile> tile = pair_tile(first, second);
    return tile ? tile->slices : 0;
  };
  EXPECT_EQ(slices_of({1, 2048, 256, 1024}, {2, 256, 1024, 1024}), 4);
  EXPECT_EQ(slices_of({2, 1024, 256, 1024}, {1, 2048, 1024, 256}), 4);
  EXPECT_EQ(slices_of({1, 2048, 256, 768}, {4, 256, 768, 512}), 1);
}

// Pairs that fill all units many times take large tiles, whatever each would take alone.
TEST(Product, LongPairsTakeLargeTiles) {
  const std::optional<ProductTile> large = pair_tile({16, 384, 384, 512}, {1, 8192, 384, 384});
  ASSERT_TRUE(large);
  EXPECT_EQ(product_tile_text(*large), "64 x 128 x 16 by 8 x 8");
  EXPECT_EQ(product_tile_text(*pair_tile({4, 256, 768, 512}, {1, 2048, 256, 768})), "32 x 64 x 16 by 4 x 4");
}

TEST(Product, DeepOnesWithFewTilesAreCutIntoStretches) {
  FusionOptions options;
  const ProductShape gradient{1, 256, 256, 16384};
  const std::int64_t stretches = product_stretches(gradient, options, Stretched::tiles);
  EXPECT_GE(stretches * 256 * 256, options.region_groups * 64 * 64);  // enough tiles to fill the device
  EXPECT_GT(product_stretches(gradient, options, Stretched::on_matrix_units), 1);
  EXPECT_EQ(product_stretches({1, 4096, 4096, 4096}, options, Stretched::tiles),
            1);  // one already fills the device
  EXPECT_EQ(product_stretches({1, 256, 256, 100}, options, Stretched::tiles), 1);  // nothing to gain
  // Nearly as many tiles as units, and many turns in which each waits for memory.
  options.region_shared_bytes = 49152;
  options.most_invocations = 1024;
  EXPECT_GT(product_stretches({1, 384, 1152, 8192}, options, Stretched::tiles), 1);
  EXPECT_EQ(product_stretches(gradient, options, Stretched::tiles), 32);  // parts too
  options.fill_groups = 1;
  EXPECT_EQ(product_stretches(gradient, options, Stretched::tiles), 1);
}

// The norm of a gradient that is a sum of a few parts. With a workgroup of 256 for 16 weights, as a column
// fold has them, most of it would be idle, 16,384 times.
TEST(Product, NormsOfLargeGradientsHaveNoWorkgroupPerFewWeights) {
  const Tensor x = input("x", {2048, 256}), slopes = input("slopes", {2048, 1024});
  const Tensor gradient = matmul(transpose(x), slopes), norm = sqrt(sum(square(gradient)));
  Graph graph = build_graph(std::vector{gradient / norm}).value();
  FusionRequest request;
  for (NodeIndex n = 0; n < graph.size(); ++n)
    if (graph[n].op == Op::input) request.inputs.push_back(n);
  request.outputs.push_back({graph.roots[0]});
  FusionOptions options;
  options.most_invocations = 1024;
  options.region_shared_bytes = 49152;
  const Schedule schedule = fuse(graph, request, options).value();
  EXPECT_GT(std::ranges::count(schedule.tasks, TaskKind::product, &Task::kind), 0);
  for (const Task& task : schedule.tasks)
    if (task.kind == TaskKind::column_fold) EXPECT_LE(task.element_count, 1 << 16);
}

// Stretches of a convolution's terms leave no rest; many places need none.
TEST(Product, FewPlacesByChannelsAreCutIntoWholeTurns) {
  FusionOptions options;
  options.region_shared_bytes = 49152;
  options.most_invocations = 1024;
  for (const std::int64_t terms : {576, 1152, 2304, 4608}) {
    const ProductShape few{1, 49, 512, terms};
    const std::int64_t stretches = product_stretches(few, options, Stretched::places);
    EXPECT_GT(stretches, terms < 1000 ? 0 : 1) << terms;
    EXPECT_EQ(terms % (32 * stretches), 0) << terms;
    EXPECT_EQ(product_stretches({1, 100352, 512, terms}, options, Stretched::places), 1) << terms;
  }
}

// Query, key and value share a dispatch: their tile suits the workgroups of all three.
TEST(Product, EqualPlacesByChannelsShareATileThatSuitsAll) {
  const auto tiles = [](int count) {
    const Tensor x = input("x", {2048, 256}) * 2.0f;
    std::vector<Tensor> outputs;
    for (int i = 0; i < count; ++i)
      outputs.push_back(matmul(x, input("w" + std::to_string(i), {256, 256})) + 1.0f);
    Graph graph = build_graph(outputs).value();
    FusionRequest request;
    for (NodeIndex n = 0; n < graph.size(); ++n)
      if (graph[n].op == Op::input) request.inputs.push_back(n);
    for (NodeIndex root : graph.roots) request.outputs.push_back({root});
    FusionOptions options;
    options.matrix_units = options.narrow_products = options.channels_last = options.half_values = true;
    options.regions = false;
    options.region_shared_bytes = 49152;
    options.most_invocations = 1024;
    std::vector<ProductTile> found;
    for (const Task& task : fuse(graph, request, options).value().tasks)
      if (task.kind == TaskKind::product) found.push_back(task.tile);
    return found;
  };
  const std::vector<ProductTile> one = tiles(1), three = tiles(3);
  ASSERT_EQ(one.size(), 1u);
  ASSERT_EQ(three.size(), 3u);
  EXPECT_LT(one[0].rows * one[0].columns, three[0].rows * three[0].columns);
  EXPECT_EQ(three[1], three[0]);
  EXPECT_EQ(three[2], three[0]);
}

TEST(Product, StretchesAreWholeVectorsAndLeaveFewTerms) {
  for (const std::int64_t terms : {4096, 4099, 1030, 16384, 130})
    for (std::int64_t stretches = 2; terms / stretches >= 64; stretches *= 2) {
      const std::int64_t length = stretch_length(terms, stretches), rest = terms - stretches * length;
      EXPECT_EQ(length % 32, 0);
      EXPECT_GE(rest, 0);
      EXPECT_LT(rest, stretches * 32);
    }
}

// The largest value that a schedule keeps between kernels, in elements.
std::int64_t largest_value(std::span<const Tensor> outputs) {
  Graph graph = build_graph(outputs).value();
  FusionRequest request;
  for (const NodeIndex root : graph.roots) request.outputs.push_back({root});
  for (NodeIndex i = 0; i < graph.size(); ++i)
    if (graph[i].op == Op::input) request.inputs.push_back(i);
  const Schedule schedule = fuse(graph, request, {}).value();
  std::int64_t largest = 0;
  for (const Task& task : schedule.tasks)
    for (const Store& store : task.stores) largest = std::max(largest, graph[store.node].element_count());
  return largest;
}

TEST(Product, GradientsOfConvolutionsStoreNoColumns) {
  const Tensor image = input("image", {8, 32, 30, 30});
  const auto largest = [&](const Shape& kernel, const ConvolutionOptions& options) {
    const Tensor targets[] = {image, input("weight", kernel)};
    const Tensor y = convolution(image, targets[1], Tensor(), options);
    return largest_value(gradients(sum(square(y)), targets).value());
  };
  const std::int64_t padded = 8 * 32 * 34 * 34;
  EXPECT_LE(largest({32, 32, 3, 3}, {.padding = 1}), padded);
  EXPECT_LE(largest({32, 32, 4, 4}, {.stride = 2, .padding = 1}), padded);
  EXPECT_LE(largest({32, 32, 3, 3}, {.padding = 2, .dilation = 2}), padded);
  const Tensor w = input("weight", {32, 32, 4, 4}),
               y = transposed_convolution(image, w, Tensor(), {.stride = 2});
  EXPECT_LE(largest_value(std::span(&y, 1)), y.shape().element_count());
}

// A layer of weights that every workgroup would read, and leave a gradient of.
TEST(Product, LayersOfManyRowsAndWeightsAreFasterInTiles) {
  FusionOptions options;
  const auto faster = [&](std::int64_t rows, std::int64_t width, std::int64_t row_block, bool learns = true) {
    return tiles_are_faster_than_region(
        {.rows = rows, .in = width, .out = width, .row_block = row_block, .learns = learns}, options);
  };
  EXPECT_FALSE(faster(256, 256, 4));
  EXPECT_TRUE(faster(2048, 256, 8));
  EXPECT_TRUE(faster(16384, 256, 32));
  EXPECT_FALSE(faster(64, 256, 4));
  EXPECT_TRUE(faster(2048, 256, 16, false));
  EXPECT_FALSE(faster(256, 256, 2, false));
}

// A program without updates. A step keeps such layers in its regions, which it has anyway.
TEST(Product, LayersOfSomeRowsAreFasterInTilesWhereNothingIsLearned) {
  FusionOptions options;
  options.most_invocations = 1024;
  options.region_shared_bytes = 49152;
  const auto faster = [&](std::int64_t rows, std::int64_t width, bool infers) {
    return tiles_are_faster_than_region(
        {.rows = rows, .in = width, .out = width, .row_block = 1, .infers = infers}, options);
  };
  EXPECT_TRUE(faster(64, 256, true));
  EXPECT_FALSE(faster(64, 256, false));
  EXPECT_FALSE(faster(32, 256, true));
}

Graph fused_mixed(const std::vector<Tensor>& outputs) {
  Graph graph = build_graph(outputs).value();
  FusionRequest request;
  for (NodeIndex n = 0; n < graph.size(); ++n)
    if (graph[n].op == Op::input) request.inputs.push_back(n);
  for (NodeIndex root : graph.roots) request.outputs.push_back({root});
  FusionOptions options;
  options.narrow_products = options.matrix_units = true;
  options.regions = false;
  EXPECT_TRUE(fuse(graph, request, options).ok());
  return graph;
}

// A bias's gradient adds up the rounded copy that products read, so that the float32
// value needs no memory; a value that something else reads too is summed as it is.
TEST(NarrowProducts, SumsOfRoundedValuesReadTheCopy) {
  const auto rounded_sums = [](bool is_output) {
    const Tensor x = input("x", {1024, 256}), w = input("w", {256, 512}), b = input("b", {512});
    const Tensor h = matmul(x, w) + b, y = matmul(h, input("v", {512, 256}));
    const Tensor by[] = {w, b, h};
    const std::vector<Tensor> found = gradients(sum(square(y)), by).value();
    std::vector<Tensor> outputs{found[0], found[1]};
    if (is_output) outputs.push_back(found[2]);
    const Graph graph = fused_mixed(outputs);
    return std::ranges::count_if(graph.nodes, [&](const GraphNode& node) {
      return node.op == Op::cast && node.dtype == DType::float32 &&
             graph[node.inputs[0]].dtype == DType::float16;
    });
  };
  EXPECT_EQ(rounded_sums(false), 1);
  EXPECT_EQ(rounded_sums(true), 0);
}

// A convolution's constant weights are arranged when the program is planned, not by a kernel in each run.
TEST(Product, ConstantWeightsAreArrangedOnce) {
  const auto plan = [](const Tensor& weights) {
    const Tensor y = convolution(input("x", {8, 64, 28, 28}), weights, Tensor(), {.padding = 1});
    Graph graph = build_graph(std::span(&y, 1)).value();
    FusionRequest request;
    for (NodeIndex n = 0; n < graph.size(); ++n)
      if (graph[n].op == Op::input) request.inputs.push_back(n);
    request.outputs = {{graph.roots[0]}};
    FusionOptions options;
    options.pads_inside = true;
    const Schedule schedule = fuse(graph, request, options).value();
    std::int64_t constants = 0;
    for (const GraphNode& node : graph.nodes)
      if (node.op == Op::constant) constants += node.element_count();
    return std::pair(schedule.tasks.size(), constants);
  };
  const Shape shape{72, 64, 3, 3};  // many channels: by patches
  std::vector<float> elements;
  for (std::int64_t i = 0; i < shape.element_count(); ++i) elements.push_back(static_cast<float>(i % 97));
  const auto [tasks, constants] = plan(Tensor::from(elements, shape));
  EXPECT_EQ(tasks, plan(input("w", shape)).first - 1);
  EXPECT_EQ(constants, shape.element_count());  // not in both orders
}

// Query, key and value of one product are rounded together, as the product stores them.
TEST(NarrowProducts, PartsThatAreAllOfAValueAreRoundedWithIt) {
  const auto casts = [](int parts) {
    const Tensor x = input("x", {1024, 3, 256}) * 2.0f;
    std::vector<Tensor> outputs;
    for (int part = 0; part < parts; ++part)
      outputs.push_back(matmul(reshape(narrow(x, 1, part, 1), {1024, 256}), input("w", {256, 256})));
    const Graph graph = fused_mixed(outputs);
    std::vector<Shape> shapes;
    for (const GraphNode& node : graph.nodes)
      if (node.op == Op::cast && node.shape.rank() == 3) shapes.push_back(node.shape);
    return shapes;
  };
  EXPECT_EQ(casts(3), (std::vector<Shape>{{1024, 3, 256}}));
  EXPECT_EQ(casts(2), (std::vector<Shape>{{1024, 1, 256}, {1024, 1, 256}}));
}

}  // namespace
}  // namespace imprint
