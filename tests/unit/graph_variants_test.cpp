// A table of measured variants overrides the cost model. Needs no GPU.

#include "compute/graph/schedule/variants.h"

#include <gmock/gmock.h>

#include "compute/graph/plan/fusion.h"
#include "compute/tensor/tensor.h"

namespace imprint {

using namespace graph;
using namespace tensor;

namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const std::vector<Variant> kThree{{"a", 3}, {"b", 1}, {"c", 2}};

TEST(Variants, TheCheapestWithoutATable) {
  std::vector<VariantChoice> made;
  EXPECT_EQ(choose_variant(nullptr, "k", kThree, made), 1u);
  ASSERT_EQ(made.size(), 1u);
  EXPECT_THAT(made[0].variants, ElementsAre("b", "c", "a"));
  EXPECT_EQ(made[0].taken, "b");
  EXPECT_FALSE(made[0].from_table);
}

TEST(Variants, TheTableGoesBeforeTheCostModel) {
  const VariantTable table{{"k", "a"}};
  std::vector<VariantChoice> made;
  EXPECT_EQ(choose_variant(&table, "k", kThree, made), 0u);
  EXPECT_EQ(choose_variant(&table, "another", kThree, made), 1u);
  EXPECT_TRUE(made[0].from_table);
  EXPECT_FALSE(made[1].from_table);
}

TEST(Variants, ImpossibleVariantsFallBack) {
  const VariantTable table{{"k", "z"}};
  std::vector<VariantChoice> made;
  EXPECT_EQ(choose_variant(&table, "k", kThree, made), 1u);
  EXPECT_EQ(made[0].refused, "z");
  EXPECT_FALSE(made[0].from_table);
}

TEST(Variants, OneVariantIsNoChoice) {
  std::vector<VariantChoice> made;
  EXPECT_EQ(choose_variant(nullptr, "k", std::span(kThree).first(1), made), 0u);
  EXPECT_THAT(made, IsEmpty());
}

struct FusedAs {
  Graph graph;
  Schedule schedule;
};

FusedAs fused(const Tensor& output, const std::vector<Tensor>& inputs, const VariantTable* table = nullptr) {
  FusedAs made{build_graph(std::span(&output, 1)).value(), {}};
  FusionRequest request;
  request.outputs.push_back({made.graph.roots[0]});
  for (const Tensor& tensor : inputs)
    for (NodeIndex n = 0; n < made.graph.size(); ++n)
      if (made.graph[n].op == Op::input && made.graph[n].source->label == tensor.node()->label)
        request.inputs.push_back(n);
  for (const GraphNode& node : made.graph.nodes)
    if (node.op == Op::variable) request.variables.push_back(node.source->variable);
  FusionOptions options;
  options.region_invocations = 256;
  options.most_invocations = 1024;
  options.region_shared_bytes = 49152;
  options.variants = table;
  made.schedule = fuse(made.graph, request, options).value();
  return made;
}

std::vector<VariantChoice> choices(const Schedule& schedule) {
  std::vector<VariantChoice> all;
  for (const Task& task : schedule.tasks) all.insert(all.end(), task.choices.begin(), task.choices.end());
  return all;
}

FusedAs product(std::int64_t extent, const std::string& left, const VariantTable* table = nullptr) {
  const Tensor x = input(left, {extent, extent}), y = input("y", {extent, extent});
  return fused(matmul(x, y), {x, y}, table);
}

// A network's forward pass over a batch.
FusedAs network(const std::string& name, const VariantTable* table = nullptr, std::int64_t batch = 4096) {
  const Tensor x = input(name + ".x", {batch, 16});
  const Variable w = Variable::zeros(name + ".w", {16, 32}), v = Variable::zeros(name + ".v", {32, 8});
  return fused(matmul(tanh(matmul(x, w.value())), v.value()), {x}, table);
}

const VariantChoice& choice_of(const std::vector<VariantChoice>& all, const std::string& ending) {
  const auto found =
      std::ranges::find_if(all, [&](const VariantChoice& choice) { return choice.kernel.ends_with(ending); });
  EXPECT_NE(found, all.end()) << ending;
  return *found;
}

TEST(Variants, AKernelIsKnownByItsWorkAndNotByNames) {
  const auto a = choices(product(512, "a").schedule), b = choices(product(512, "b").schedule),
             larger = choices(product(1024, "a").schedule);
  ASSERT_EQ(a.size(), 1u);
  ASSERT_EQ(b.size(), 1u);
  EXPECT_EQ(a[0].kernel, b[0].kernel);
  EXPECT_NE(a[0].kernel, larger[0].kernel);
  const auto one = choices(network("one").schedule), other = choices(network("other").schedule);
  ASSERT_EQ(one.size(), other.size());
  for (std::size_t i = 0; i < one.size(); ++i) EXPECT_EQ(one[i].kernel, other[i].kernel);
  EXPECT_NE(choice_of(one, " rows").kernel,
            choice_of(choices(network("one", nullptr, 2048).schedule), " rows").kernel);
}

TEST(Variants, EveryVariantOfAProductGivesItsTile) {
  const VariantChoice choice = choices(product(512, "x").schedule).at(0);
  EXPECT_GE(choice.variants.size(), 3u);
  std::vector<ProductTile> tiles;
  for (const std::string& variant : choice.variants) {
    const VariantTable table{{choice.kernel, variant}};
    const FusedAs made = product(512, "x", &table);
    EXPECT_THAT(made.schedule.notes, IsEmpty());
    EXPECT_EQ(choices(made.schedule).at(0).taken, variant);
    EXPECT_EQ(std::ranges::find(tiles, made.schedule.tasks.at(0).tile), tiles.end());
    tiles.push_back(made.schedule.tasks.at(0).tile);
  }
}

TEST(Variants, RowsInvocationsAndTilesOfARegion) {
  const FusedAs usual = network("net");
  ASSERT_EQ(usual.schedule.regions.size(), 1u);
  const auto all = choices(usual.schedule);
  const VariantChoice rows = choice_of(all, " rows"), invocations = choice_of(all, " invocations");
  ASSERT_GE(rows.variants.size(), 2u);
  const VariantTable table{{rows.kernel, rows.variants[1]}, {invocations.kernel, "512 invocations"}};
  const FusedAs made = network("net", &table);
  EXPECT_NE(made.schedule.regions[0].row_block, usual.schedule.regions[0].row_block);
  EXPECT_NE(made.schedule.tasks[0].element_count, usual.schedule.tasks[0].element_count);
  EXPECT_EQ(made.schedule.regions[0].invocations, 512);

  const auto tile = std::ranges::find_if(
      all, [](const VariantChoice& choice) { return choice.kernel.find(" product ") != std::string::npos; });
  ASSERT_NE(tile, all.end());
  const VariantTable tiles{{tile->kernel, tile->variants[1]}};
  EXPECT_EQ(choice_of(choices(network("net", &tiles).schedule), tile->kernel).taken, tile->variants[1]);
}

TEST(Variants, LanesAndInvocationsOfRowFolds) {
  const Tensor x = input("x", {1024, 1024});
  const FusedAs usual = fused(softmax(x, 1), {x});
  ASSERT_EQ(usual.schedule.tasks.at(0).kind, TaskKind::row_fold);
  const auto all = choices(usual.schedule);
  const VariantTable table{{choice_of(all, " lanes").kernel, "32 lanes a row"},
                           {choice_of(all, " invocations").kernel, "128 invocations"}};
  const FusedAs made = fused(softmax(x, 1), {x}, &table);
  EXPECT_EQ(made.schedule.tasks[0].row_lanes, 32);
  EXPECT_EQ(made.schedule.tasks[0].invocations, 128);
}

// Alone, each would leave the dispatch that the others share, and tuning would measure one more dispatch.
TEST(Variants, FoldsOfOneLevelHaveOneNumberOfInvocations) {
  const Tensor x = input("x", {4096, 64}), y = input("y", {2048, 96});
  const Tensor both = concat({sum(exp(x), {0}), sum(tanh(y), {0})}, 0);
  const FusedAs usual = fused(both, {x, y});
  const auto folds_of = [](const Schedule& schedule) {
    std::vector<std::int32_t> invocations;
    for (const Task& task : schedule.tasks)
      if (shares_folds(task.kind) && task.level == 0) invocations.push_back(task.invocations);
    return invocations;
  };
  const auto all = choices(usual.schedule);
  const auto together = std::ranges::find_if(all, [](const VariantChoice& choice) {
    return choice.kernel.find("folds together") != std::string::npos;
  });
  ASSERT_NE(together, all.end());
  const std::string other = together->taken == "128 invocations" ? "64 invocations" : "128 invocations";
  const VariantTable table{{together->kernel, other}};
  const FusedAs made = fused(both, {x, y}, &table);
  EXPECT_THAT(folds_of(usual.schedule), ::testing::SizeIs(2));
  EXPECT_THAT(folds_of(made.schedule), ElementsAre(std::stoi(other), std::stoi(other)));
}

// A few workgroups leave most of the device idle, so that each column has as many lanes as there can be.
TEST(Variants, AFewLongColumnsHaveManyLanes) {
  const Tensor x = input("x", {16, 128, 256}), y = input("y", {64, 256});
  const auto invocations_of = [](const FusedAs& made) {
    EXPECT_EQ(made.schedule.tasks.at(0).kind, TaskKind::column_fold);
    return made.schedule.tasks[0].invocations;
  };
  EXPECT_EQ(invocations_of(fused(sum(x, {0, 1}), {x})), 1024);
  EXPECT_EQ(invocations_of(fused(sum(y, {0}), {y})), 64);
}

TEST(Variants, ATableThatAsksForTheImpossibleIsNoted) {
  const std::string kernel = choice_of(choices(network("net").schedule), " rows").kernel;
  const VariantTable table{{kernel, "4096 rows a workgroup"}};
  const FusedAs made = network("net", &table), usual = network("net");
  EXPECT_EQ(made.schedule.regions[0].row_block, usual.schedule.regions[0].row_block);
  ASSERT_EQ(made.schedule.notes.size(), 1u);
  EXPECT_THAT(made.schedule.notes[0], HasSubstr("4096 rows a workgroup"));
}

}  // namespace
}  // namespace imprint
