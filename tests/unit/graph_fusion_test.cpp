// Fusion into kernels, shared dispatch levels and dependencies. Needs no GPU.

#include "compute/graph/plan/fusion.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>

#include "compute/graph/gradients/autodiff.h"
#include "compute/tensor/composites/images.h"
#include "compute/tensor/tensor.h"

namespace imprint {

using namespace graph;
using namespace tensor;

namespace {

struct Fused {
  Graph graph;
  Schedule schedule;
};

struct RowUpdate {
  Variable target;
  Tensor rows, value;
};

// Outputs, variables assigned a value, and rows of variables.
Fused fuse_program(const std::vector<Tensor>& outputs,
                   const std::vector<std::pair<Variable, Tensor>>& updates = {},
                   const FusionOptions& options = {}, const std::vector<RowUpdate>& row_updates = {}) {
  std::vector<Tensor> roots = outputs;
  for (const auto& update : updates) roots.push_back(update.second);
  for (const RowUpdate& update : row_updates) roots.insert(roots.end(), {update.value, update.rows});
  Fused result;
  auto graph = build_graph(roots);
  EXPECT_TRUE(graph.ok()) << (graph.ok() ? "" : graph.error().message);
  result.graph = *graph;
  FusionRequest request;
  for (NodeIndex n = 0; n < result.graph.size(); ++n) {
    if (result.graph[n].op == Op::input) request.inputs.push_back(n);
    if (result.graph[n].op == Op::variable) request.variables.push_back(result.graph[n].source->variable);
  }
  for (std::size_t i = 0; i < outputs.size(); ++i) request.outputs.push_back({result.graph.roots[i]});
  const auto position = [&](const Variable& variable) {
    auto found = std::ranges::find(request.variables, variable.state());
    if (found == request.variables.end()) found = request.variables.insert(found, variable.state());
    return static_cast<std::int32_t>(found - request.variables.begin());
  };
  std::size_t root = outputs.size();
  for (const auto& [variable, value] : updates)
    request.updates.push_back(GraphUpdate{position(variable), result.graph.roots[root++], -1});
  for (const RowUpdate& update : row_updates) {
    request.updates.push_back(
        GraphUpdate{position(update.target), result.graph.roots[root], result.graph.roots[root + 1]});
    root += 2;
  }
  auto schedule = fuse(result.graph, request, options);
  EXPECT_TRUE(schedule.ok());
  result.schedule = *schedule;
  return result;
}

// After a relu no node reads its input, so the derivative does not keep it.
TEST(Graph, TheDerivativeOfReluAsksItsOutput) {
  const Variable weights("weights", {8, 8}, std::vector<float>(64, 0.5f));
  const Tensor before = matmul(input("x", {4, 8}), weights.value()), after = relu(before);
  const Tensor loss = sum(after * after + relu(before));  // written twice, the same relu
  const auto gradient = gradients(loss, std::array{weights.value()});
  ASSERT_TRUE(gradient.ok());
  const std::array roots{loss, gradient->front()};
  const auto graph = build_graph(roots);
  ASSERT_TRUE(graph.ok());
  const auto consumers = graph->consumers();
  int relus = 0, conditions = 0;
  for (NodeIndex i = 0; i < graph->size(); ++i) {
    const GraphNode& node = (*graph)[i];
    if (node.op == Op::where && (*graph)[node.inputs[2]].op == Op::matmul) ++relus;
    if (node.op != Op::less_equal) continue;
    ++conditions;
    const bool asks_input = (*graph)[node.inputs[0]].op == Op::matmul;
    EXPECT_EQ((*graph)[node.inputs[0]].op, asks_input ? Op::matmul : Op::where);
    if (asks_input) EXPECT_EQ(consumers[static_cast<std::size_t>(i)].size(), 1u);  // relu itself
  }
  EXPECT_EQ(relus, 1);
  EXPECT_EQ(conditions, 2);
}

TEST(Fusion, AChainWithBroadcastIsOneKernel) {
  const Tensor x = input("x", {64, 32}), bias = input("bias", {32});
  EXPECT_EQ(fuse_program({tanh((x + bias) * 2.0f) - sigmoid(x)}).schedule.tasks.size(), 1u);
}

TEST(Fusion, AReductionTakesItsPrologueAndEpilogue) {
  const Tensor x = input("x", {64, 32});
  const Fused fused = fuse_program({sqrt(sum(square(x), {1}) + 1.0f)});
  ASSERT_EQ(fused.schedule.tasks.size(), 1u);
}

// A layer norm between products keeps its output alone, and numbers of the rows. The distance from the mean,
// twice that distance and the quotient, which the gradients read, are computed where they are read.
TEST(Fusion, ALayerNormStoresNoCheapFunctionsOfWhatIsStored) {
  const Tensor x = input("x", {1024, 256}), w = input("w", {256, 256}), scale = input("scale", {256});
  const Tensor h = matmul(x, w), away = h - mean(h, {1}, true);
  const Tensor y = away * (1.0f / sqrt(mean(square(away), {1}, true) + 1e-5f)) * scale;
  const std::vector<Tensor> found =
      gradients(sum(square(matmul(y, input("v", {256, 256})))), std::array{w, scale}).value();
  FusionOptions options;
  options.regions = false;
  const Fused fused = fuse_program(found, {}, options);
  std::vector<std::size_t> stored;  // values of the rows' length, per row kernel
  for (const Task& task : fused.schedule.tasks) {
    if (task.kind != TaskKind::row_fold) continue;
    stored.push_back(0);
    for (const Store& store : task.stores) stored.back() += fused.graph[store.node].shape == Shape{1024, 256};
  }
  EXPECT_EQ(stored, (std::vector<std::size_t>{1, 1}));
}

TEST(Fusion, ProductsWithManyWeightsStayOutOfRegions) {
  const auto kind_of = [](std::int64_t width) {
    const Tensor x = input("x", {256, width});
    const Variable w = Variable::zeros("w", {width, width});
    return fuse_program({tanh(matmul(x, w.value()))}).schedule.tasks.at(0).kind;
  };
  EXPECT_EQ(kind_of(64), TaskKind::region);
  EXPECT_EQ(kind_of(1024), TaskKind::product);
}

TEST(Fusion, AMatmulTakesBiasAndActivation) {
  const Tensor x = input("x", {64, 32}), w = input("w", {32, 48}), b = input("b", {48});
  EXPECT_EQ(fuse_program({relu(matmul(x, w) + b)}).schedule.tasks.size(), 1u);
  EXPECT_EQ(fuse_program({matmul(transpose(w), transpose(x))}).schedule.tasks.size(), 1u);
}

TEST(Fusion, ALongFoldGetsAGroupAndKeepsItsEpilogue) {
  const Tensor x = input("x", {4, 5000});
  const Fused fused = fuse_program({sqrt(sum(square(x), {1}))});
  ASSERT_EQ(fused.schedule.tasks.size(), 1u);
  EXPECT_EQ(fused.schedule.tasks[0].kind, TaskKind::group_fold);
}

TEST(Fusion, ViewsCostNoKernel) {
  const Tensor x = input("x", {8, 12});
  EXPECT_EQ(fuse_program({slice(transpose(reshape(x, {4, 24})), 0, 2, 20, 3) + 1.0f}).schedule.tasks.size(),
            1u);
}

TEST(Fusion, IndependentWorkSharesALevel) {
  const Tensor x = input("x", {64, 32}), y = input("y", {16, 8});
  const Fused fused = fuse_program({x * 2.0f, sum(y, {0}), exp(y)});
  EXPECT_EQ(fused.schedule.level_count, 1);
}

// The weights need the norm too. They compute its root again and do not wait until it is stored.
TEST(Fusion, ASmallOutputIsStoredBesideItsReaders) {
  const Tensor first = exp(input("first", {64, 64})), second = exp(input("second", {64, 64}));
  const Tensor norm = sqrt(sum(first * first, {0, 1}) + sum(second * second, {0, 1}));
  std::vector<std::pair<Variable, Tensor>> steps;
  for (const Tensor& gradient : {first, second}) {
    const Variable weight = Variable::zeros("weight", {64, 64});
    steps.emplace_back(weight, weight.value() - gradient / norm);
  }
  const std::int32_t levels = fuse_program({}, steps).schedule.level_count;
  EXPECT_EQ(fuse_program({norm}, steps).schedule.level_count, levels);
  EXPECT_EQ(fuse_program({reshape(norm, {1, 1})}, steps).schedule.level_count, levels);
  EXPECT_EQ(fuse_program({reshape(norm, {1})}, steps).schedule.level_count, levels);
  EXPECT_EQ(fuse_program({norm, reshape(norm, {1}), reshape(norm, {1, 1})}, steps).schedule.level_count,
            levels);
}

TEST(Fusion, UnfusedGivesEveryOperationAKernel) {
  const Tensor x = input("x", {64, 32});
  FusionOptions options;
  options.fuse = false;
  EXPECT_EQ(fuse_program({exp(x) + sin(x)}, {}, options).schedule.tasks.size(), 3u);
}

TEST(Fusion, AnUpdateInPlaceWaitsForAllReaders) {
  const Variable w = Variable::zeros("w", {32, 32});
  const Tensor x = input("x", {300, 32});
  const Fused fused = fuse_program({sum(tanh(matmul(x, w.value())))}, {{w, w.value() * 0.5f}});
  std::int32_t reader = -1, writer = -1;
  for (const Task& task : fused.schedule.tasks) {
    for (const Store& store : task.stores)
      if (store.place.kind == PlaceKind::variable) writer = task.level;
    for (const Read& read : task.reads)
      if (fused.graph[read.node].op == Op::variable && task.stores.front().place.kind != PlaceKind::variable)
        reader = std::max(reader, task.level);
  }
  EXPECT_GE(reader, 0);
  EXPECT_GT(writer, reader);
}

// The gradient of a layer's output with respect to its weights, of a network with one hidden layer of
// `hidden`.
Fused fuse_layer(std::int64_t batch, std::int64_t hidden) {
  const Tensor x = input("x", {batch, hidden}), target = input("target", {batch, 4});
  const Variable w0 = Variable::zeros("w0", {hidden, hidden}), w1 = Variable::zeros("w1", {hidden, 4});
  const std::vector<Tensor> weights{w0.value(), w1.value()};
  const auto found =
      gradients(mean(square(matmul(tanh(matmul(x, w0.value())), w1.value()) - target)), weights);
  return fuse_program(*found);
}

std::ptrdiff_t count_of(const Fused& fused, TaskKind kind) {
  return std::ranges::count(fused.schedule.tasks, kind, &Task::kind);
}

TEST(Fusion, ProductsStayInRegionsUntilTheyAreLarge) {
  const Fused narrow = fuse_layer(1 << 17, 64);
  EXPECT_EQ(count_of(narrow, TaskKind::product), 0);
  EXPECT_EQ(count_of(narrow, TaskKind::region), 1);
  EXPECT_TRUE(narrow.schedule.notes.empty());
}

TEST(Fusion, AWeightGradientOfManyPartialResultsIsAProductOfItsOwn) {
  const Fused fused = fuse_layer(256, 256);  // 128 workgroups with 65,536 weights each
  EXPECT_EQ(count_of(fused, TaskKind::product), 1);
  EXPECT_EQ(count_of(fused, TaskKind::region), 1);
  EXPECT_TRUE(fused.schedule.notes.empty());
}

TEST(Fusion, LargeProductsAreSeparateKernelsAndReported) {
  const Fused large = fuse_layer(16384, 256);
  EXPECT_EQ(count_of(large, TaskKind::product), 2);  // the layer and its weights' gradient
  EXPECT_EQ(large.schedule.notes.size(), 1u);
  for (const Task& task : large.schedule.tasks)
    if (task.kind == TaskKind::product)
      EXPECT_GE(task.element_count, 1 << 19);  // the gradient's terms are divided between workgroups
}

FusionOptions options_of_a_gpu() {
  FusionOptions options;
  options.region_invocations = 256;
  options.region_shared_bytes = 49152;
  options.most_invocations = 1024;
  return options;
}

// Layers of 32, 64 and `last` for 256 rows: the invocations of the workgroup that takes two rows through
// both.
std::int32_t invocations_of(std::int64_t last, const FusionOptions& options) {
  const Tensor x = input("x", {256, 32});
  const Tensor hidden = tanh(matmul(x, Variable::zeros("w0", {32, 64}).value()));
  const Fused fused =
      fuse_program({tanh(matmul(hidden, Variable::zeros("w1", {64, last}).value()))}, {}, options);
  EXPECT_EQ(fused.schedule.regions.size(), 1u);
  return fused.schedule.regions.empty() ? 0 : fused.schedule.regions[0].invocations;
}

TEST(Fusion, AWorkgroupAloneDividesLongProductsFurther) {
  FusionOptions options = options_of_a_gpu();
  EXPECT_EQ(invocations_of(64, options), 256);
  EXPECT_EQ(invocations_of(192, options), 512);
  options.most_invocations = 256;
  EXPECT_EQ(invocations_of(192, options), 256);
}

// Three layers of 64 with biases, one network for each of `groups`, and the derivatives of a sum of squares.
Fused fuse_networks(std::int64_t groups, std::int64_t rows, const FusionOptions& options) {
  const Shape batch = groups > 1 ? Shape{groups, rows, 64} : Shape{rows, 64};
  const auto leaf = [&](const char* name, std::int64_t height) {
    return Variable::zeros(name, groups > 1 ? Shape{groups, height, 64} : Shape{height, 64});
  };
  const std::vector<Variable> leaves{leaf("w0", 64), leaf("b0", 1),  leaf("w1", 64),
                                     leaf("b1", 1),  leaf("w2", 64), leaf("b2", 1)};
  std::vector<Tensor> values;
  for (const Variable& one : leaves) values.push_back(one.value());
  Tensor output = input("x", batch);
  for (std::size_t layer = 0; layer < 3; ++layer)
    output = tanh(matmul(output, values[2 * layer]) + values[2 * layer + 1]);
  const auto made = gradients(sum(square(output)), values);
  EXPECT_TRUE(made.ok());
  std::vector<std::pair<Variable, Tensor>> updates;
  for (std::size_t i = 0; i < leaves.size(); ++i)
    updates.emplace_back(leaves[i], values[i] - 0.1f * (*made)[i]);
  return fuse_program({}, updates, options);
}

// A workgroup whose memory keeps others from running beside it takes fewer rows at a time. The number of
// partial results stays the same.
TEST(Fusion, WorkgroupsThatWaitForSharedMemoryTakeTheirRowsInTurns) {
  const Fused few = fuse_networks(8, 32, options_of_a_gpu()),
              many = fuse_networks(256, 32, options_of_a_gpu());
  ASSERT_EQ(few.schedule.regions.size(), 1u);
  ASSERT_EQ(many.schedule.regions.size(), 1u);
  const Region& region = many.schedule.regions[0];
  EXPECT_EQ(few.schedule.regions[0].turns, 1);
  EXPECT_EQ(region.turns, 2);
  EXPECT_EQ(region.row_block, 16);
  EXPECT_EQ(region.blocks, 1);
  EXPECT_LE(4 * region.shared_floats, options_of_a_gpu().region_resident_bytes);
}

TEST(Fusion, ManyRowsAreTakenInTurnsRatherThanByMoreWorkgroups) {
  for (const std::int64_t rows : {16384, 65536, 65537}) {
    const Fused fused = fuse_networks(1, rows, options_of_a_gpu());
    ASSERT_EQ(fused.schedule.regions.size(), 1u);
    const Region& region = fused.schedule.regions[0];
    EXPECT_GT(region.turns, 1);
    EXPECT_LE(region.blocks, options_of_a_gpu().region_fold_groups);
    EXPECT_GE(region.blocks * region.turns * region.row_block, rows);
    EXPECT_LT((region.blocks - 1) * region.turns * region.row_block, rows);
  }
}

// One layer alone keeps no row from product to product; more workgroups hide the memory latency.
TEST(Fusion, ALayerAloneTakesFewerRowsThanAChainOfThem) {
  const auto rows_of = [](int layers) {
    Tensor output = input("x", {16384, 32});
    for (int layer = 0; layer < layers; ++layer) {
      const std::string name = std::to_string(layer);
      output = tanh(matmul(output, Variable::zeros("w" + name, {layer == 0 ? 32 : 64, 64}).value()) +
                    Variable::zeros("b" + name, {64}).value());
    }
    const Fused fused = fuse_program({output}, {}, options_of_a_gpu());
    EXPECT_EQ(fused.schedule.regions.size(), 1u);
    return fused.schedule.regions.empty() ? 0 : fused.schedule.regions[0].row_block;
  };
  EXPECT_EQ(rows_of(1), 16);
  EXPECT_EQ(rows_of(2), 32);
}

// The gradients of a layer's weights and biases are sums over the same values.
TEST(Fusion, GradientsOfBiasesAreSummedBesideThoseOfWeights) {
  const Fused fused = fuse_networks(1, 256, options_of_a_gpu());
  std::size_t products = 0, members = 0;
  for (const RegionStage& stage : fused.schedule.regions.at(0).stages) {
    EXPECT_NE(stage.kind, RegionStage::Kind::row_fold);
    if (stage.kind != RegionStage::Kind::outer_product) continue;
    ++products;
    members += stage.members.size();
  }
  EXPECT_EQ(products, 3u);
  EXPECT_EQ(members, 6u);
}

// Both gradients of a large layer wait for the same value. One dispatch can hold both if each has one tile.
TEST(Fusion, ProductsOfOneLevelHaveOneTile) {
  const Tensor x = input("x", {16384, 256}), y = input("y", {16384, 256});
  const Variable w = Variable::zeros("w", {256, 256});
  const Tensor upstream = tanh(y);
  const Fused fused =
      fuse_program({upstream, tanh(matmul(upstream, transpose(w.value()))), matmul(transpose(x), upstream)},
                   {}, options_of_a_gpu());
  std::vector<const Task*> products;
  for (const Task& task : fused.schedule.tasks)
    if (task.kind == TaskKind::product) products.push_back(&task);
  ASSERT_EQ(products.size(), 2u);
  EXPECT_EQ(products[0]->level, products[1]->level);
  EXPECT_EQ(products[0]->tile, products[1]->tile);
}

// A correct schedule writes everything at an earlier level than it is read, and overwrites nothing that is
// read later.
void expect_ordered(const Fused& fused) {
  std::vector<std::int32_t> written(fused.graph.nodes.size(), -1);
  for (const Task& task : fused.schedule.tasks)
    for (const Store& store : task.stores)
      if (fused.schedule.place[static_cast<std::size_t>(store.node)] == store.place)
        written[static_cast<std::size_t>(store.node)] = task.level;
  for (const Task& task : fused.schedule.tasks)
    for (const Read& read : task.reads) {
      const GraphNode& node = fused.graph[read.node];
      if (node.kind() != OpKind::leaf) {
        EXPECT_GE(written[static_cast<std::size_t>(read.node)], 0) << node_text(fused.graph, read.node);
        EXPECT_LT(written[static_cast<std::size_t>(read.node)], task.level)
            << node_text(fused.graph, read.node);
      } else if (node.op == Op::variable) {
        const Place place = fused.schedule.place[static_cast<std::size_t>(read.node)];
        for (const Task& writer : fused.schedule.tasks)
          for (const Store& store : writer.stores)
            if (store.place == place)
              EXPECT_TRUE(&writer == &task ? read.aligned && store.row_indices < 0
                                           : writer.level > task.level)
                  << node_text(fused.graph, read.node);
      }
    }
}

TEST(Fusion, RandomProgramsAreOrdered) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    std::vector<Variable> variables;
    std::vector<Tensor> values{input("x", {24, 24})};
    for (int i = 0; i < 3; ++i) {
      variables.push_back(Variable::zeros("v" + std::to_string(i), {24, 24}));
      values.push_back(variables.back().value());
    }
    for (int step = 0; step < 12; ++step) {
      const Tensor& a = values[random() % values.size()];
      const Tensor& b = values[random() % values.size()];
      switch (random() % 7) {
        case 0:
          values.push_back(a + b);
          break;
        case 1:
          values.push_back(matmul(a, b));
          break;
        case 2:
          values.push_back(tanh(transpose(a)));
          break;
        case 3:
          values.push_back(a * sum(b, {1}, true));
          break;
        case 4:
          values.push_back(softmax(a, static_cast<int>(random() % 2)));
          break;
        case 5:
          values.push_back(cumsum(a, 0) - b);
          break;
        default:
          values.push_back(concat({slice(a, 0, 0, 12), slice(b, 0, 12, 24)}, 0));
          break;
      }
    }
    std::vector<std::pair<Variable, Tensor>> updates;
    for (const Variable& variable : variables)
      if (random() % 3) {
        const Tensor& value = values[4 + random() % (values.size() - 4)];
        updates.emplace_back(variable, value);
      }
    FusionOptions options;
    options.recompute_limit = round % 3 == 0 ? 1e3 : 300e3;
    expect_ordered(fuse_program({values.back(), values[5]}, updates, options));
  }
}

// For example a rollout's turn: networks, a step of the environment, and memory of both at the row of a
// counter.
TEST(Fusion, RandomProgramsThatKeepRowsAreOrdered) {
  std::mt19937 random(11);
  for (int round = 0; round < 200; ++round) {
    const Variable clock = Variable::zeros("clock", {1}, DType::int32),
                   state = Variable::zeros("state", {24, 4});
    const Variable memory = Variable::zeros("memory", {96, 4}), log = Variable::zeros("log", {2, 24, 4}),
                   weights = Variable::zeros("weights", {4, 4});
    const auto any_row = [&] {
      switch (random() % 4) {
        case 0:
          return clock.value();
        case 1:
          return remainder(clock.value() + 1, 96);
        case 2:
          return clock.value() + cast(sum(state.value(), {0, 1}, false) > 0.0f, DType::int32);
        default:
          return remainder(clock.value(), 2);
      }
    };
    std::vector<Tensor> values{state.value(), take(memory.value(), 0, clock.value() + arange(24)),
                               squeeze(take(log.value(), 0, any_row()), 0)};
    for (int step = 0; step < 6; ++step) {
      const Tensor& a = values[random() % values.size()];
      const Tensor& b = values[random() % values.size()];
      switch (random() % 5) {
        case 0:
          values.push_back(tanh(matmul(a, weights.value())));
          break;
        case 1:
          values.push_back(a * sum(b, {1}, true));
          break;
        case 2:
          values.push_back(flip(a, 0) + b);
          break;
        default: {
          const Tensor inputs[] = {a, b, clock.value()};
          const Tensor result = custom_rows(
              "step", "void imp_row(int row, float a[4], float b[4], int c[1], out float r[8]) {}", inputs,
              8);
          values.push_back(narrow(result, 1, 0, 4) + a);
          values.push_back(narrow(result, 1, 4, 4));
        }
      }
    }
    const auto any = [&] { return values[values.size() - 1 - random() % 5]; };
    std::vector<std::pair<Variable, Tensor>> updates;
    if (random() % 4) updates.emplace_back(state, any());
    if (random() % 4) updates.emplace_back(clock, clock.value() + 1);
    std::vector<RowUpdate> rows;
    if (random() % 4) rows.push_back({memory, clock.value() + arange(24), any()});
    for (std::uint32_t count = random() % 3; count > 0; --count)
      rows.push_back({log, any_row(), unsqueeze(any(), 0)});
    expect_ordered(fuse_program({}, updates, {}, rows));
  }
}

// Row-by-row work after a caller's kernel joins that kernel, and so does writing the result to rows of a
// memory.
TEST(Fusion, ACallersKernelWritesItsConsumers) {
  const Variable clock = Variable::zeros("clock", {1}, DType::int32),
                 state = Variable::zeros("state", {24, 4}), sums = Variable::zeros("sums", {24});
  const Variable log = Variable::zeros("log", {9, 24}),
                 generator = Variable::zeros("generator", {4}, DType::int32);
  const Tensor inputs[] = {state.value(), generator.value()};
  const Tensor result =
      custom_rows("step", "void imp_row(int row, float s[4], int g[4], out float r[5]) {}", inputs, 5);
  const Tensor reward = squeeze(narrow(result, 1, 4, 1), 1), row = remainder(clock.value() + 1, 9);
  const Fused fused = fuse_program({},
                                   {{state, narrow(result, 1, 0, 4)},
                                    {sums, sums.value() + reward},
                                    {generator, generator_next(generator.value())},
                                    {clock, row}},
                                   {}, {{log, row, unsqueeze(reward * 0.5f, 0)}});
  EXPECT_EQ(fused.schedule.level_count, 2);
  const auto custom = std::ranges::find(fused.schedule.tasks, TaskKind::custom, &Task::kind);
  ASSERT_NE(custom, fused.schedule.tasks.end());
  EXPECT_EQ(custom->stores.size(), 3u);  // state, sums, log
  expect_ordered(fused);
}

// A pool and a depthwise convolution test themselves whether a place is inside, and read what the layer
// before stores.
TEST(Fusion, WindowsReadAStoredValueAndNoPad) {
  const Tensor x = input("x", {8, 8, 64, 64}),
               first = relu(convolution(x, input("w", {16, 8, 3, 3}), input("b", {16}), {.padding = 1}));
  const std::array outputs{
      max_pool(first, {.size = 3, .stride = 2, .padding = 1}),
      convolution(first, input("d", {16, 1, 3, 3}), input("e", {16}), {.padding = 1, .groups = 16})};
  for (const Tensor& output : outputs)
    for (const bool pads_inside : {false, true}) {
      FusionOptions options;
      options.pads_inside = pads_inside;
      const Fused fused = fuse_program({output}, {}, options);
      const auto stores = [&](Op op) {
        return std::ranges::count_if(fused.schedule.tasks, [&](const Task& task) {
          return std::ranges::any_of(task.stores,
                                     [&](const Store& store) { return fused.graph[store.node].op == op; });
        });
      };
      EXPECT_EQ(stores(Op::pad), pads_inside ? 0 : 1);
      EXPECT_EQ(stores(Op::matmul),
                pads_inside ? 0 : 1);  // its kernel goes on to the value that windows read
      expect_ordered(fused);
    }
}

// Products that do not follow each other are no region in a program that only infers: their kernels go on.
TEST(Fusion, ALoneProductComputesWhatFollows) {
  const Tensor x = input("x", {64, 3136});
  const Variable w("w", {64, 64}, std::vector<float>(4096, 0.1f)), b("b", {64, 1, 1}, std::vector<float>(64));
  const Tensor one = relu(reshape(matmul(w.value(), x), {64, 56, 56}) + b.value());
  const Fused alone = fuse_program({one});
  ASSERT_EQ(alone.schedule.tasks.size(), 1u);
  EXPECT_EQ(alone.schedule.tasks[0].kind, TaskKind::product);
  const Tensor rows = input("rows", {2048, 64});
  const Fused chained = fuse_program({matmul(relu(matmul(rows, w.value())), w.value())});
  ASSERT_EQ(chained.schedule.tasks.size(), 1u);
  EXPECT_EQ(chained.schedule.tasks[0].kind, TaskKind::region);
}

TEST(Fusion, EqualSubexpressionsAreComputedOnce) {
  const Tensor x = input("x", {8});
  const auto graph = build_graph(std::vector<Tensor>{exp(x) + 1.0f, exp(x) * 2.0f});
  ASSERT_TRUE(graph.ok());
  EXPECT_EQ(std::ranges::count_if(graph->nodes, [](const GraphNode& node) { return node.op == Op::exp; }), 1);
}

}  // namespace
}  // namespace imprint
