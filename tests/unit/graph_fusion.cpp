// What becomes one kernel, what shares a dispatch level, what waits: no GPU needed.

#include "compute/graph/fusion.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "compute/graph/autodiff.h"
#include "compute/tensor/tensor.h"

namespace imprint {
namespace {

struct Fused {
  Graph graph;
  Schedule schedule;
};

// Outputs, and variables assigned a value.
Fused fuse_program(const std::vector<Tensor>& outputs, const std::vector<std::pair<Variable, Tensor>>& updates = {}, const FusionOptions& options = {}) {
  std::vector<Tensor> roots = outputs;
  for (const auto& update : updates) roots.push_back(update.second);
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
  for (std::size_t i = 0; i < updates.size(); ++i) {
    auto found = std::ranges::find(request.variables, updates[i].first.state());
    if (found == request.variables.end()) found = request.variables.insert(found, updates[i].first.state());
    request.updates.push_back(GraphUpdate{static_cast<std::int32_t>(found - request.variables.begin()), result.graph.roots[outputs.size() + i], -1});
  }
  auto schedule = fuse(result.graph, request, options);
  EXPECT_TRUE(schedule.ok());
  result.schedule = *schedule;
  return result;
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
  EXPECT_EQ(fuse_program({slice(transpose(reshape(x, {4, 24})), 0, 2, 20, 3) + 1.0f}).schedule.tasks.size(), 1u);
}

TEST(Fusion, IndependentWorkSharesALevel) {
  const Tensor x = input("x", {64, 32}), y = input("y", {16, 8});
  const Fused fused = fuse_program({x * 2.0f, sum(y, {0}), exp(y)});
  EXPECT_EQ(fused.schedule.level_count, 1);
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
      if (fused.graph[read.node].op == Op::variable && task.stores.front().place.kind != PlaceKind::variable) reader = std::max(reader, task.level);
  }
  EXPECT_GE(reader, 0);
  EXPECT_GT(writer, reader);
}

// A schedule is right when everything read has been written at an earlier level, and nothing that is still read has been overwritten.
void expect_ordered(const Fused& fused) {
  std::vector<std::int32_t> written(fused.graph.nodes.size(), -1);
  for (const Task& task : fused.schedule.tasks)
    for (const Store& store : task.stores)
      if (fused.schedule.place[static_cast<std::size_t>(store.node)] == store.place) written[static_cast<std::size_t>(store.node)] = task.level;
  for (const Task& task : fused.schedule.tasks)
    for (const Read& read : task.reads) {
      const GraphNode& node = fused.graph[read.node];
      if (node.kind() != OpKind::leaf) {
        EXPECT_GE(written[static_cast<std::size_t>(read.node)], 0) << node_text(fused.graph, read.node);
        EXPECT_LT(written[static_cast<std::size_t>(read.node)], task.level) << node_text(fused.graph, read.node);
      } else if (node.op == Op::variable) {
        const Place place = fused.schedule.place[static_cast<std::size_t>(read.node)];
        for (const Task& writer : fused.schedule.tasks)
          for (const Store& store : writer.stores)
            if (store.place == place) EXPECT_TRUE(&writer == &task ? read.aligned : writer.level > task.level) << node_text(fused.graph, read.node);
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
        case 0: values.push_back(a + b); break;
        case 1: values.push_back(matmul(a, b)); break;
        case 2: values.push_back(tanh(transpose(a))); break;
        case 3: values.push_back(a * sum(b, {1}, true)); break;
        case 4: values.push_back(softmax(a, static_cast<int>(random() % 2))); break;
        case 5: values.push_back(cumsum(a, 0) - b); break;
        default: values.push_back(concat({slice(a, 0, 0, 12), slice(b, 0, 12, 24)}, 0)); break;
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

TEST(Fusion, EqualSubexpressionsAreComputedOnce) {
  const Tensor x = input("x", {8});
  const auto graph = build_graph(std::vector<Tensor>{exp(x) + 1.0f, exp(x) * 2.0f});
  ASSERT_TRUE(graph.ok());
  EXPECT_EQ(std::ranges::count_if(graph->nodes, [](const GraphNode& node) { return node.op == Op::exp; }), 1);
}

}  // namespace
}  // namespace imprint
