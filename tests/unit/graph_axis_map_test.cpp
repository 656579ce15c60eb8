// Which axis of an input feeds which axis of a result.

#include "compute/graph/axis_map.h"

#include <gtest/gtest.h>

#include <utility>

#include "compute/tensor/build.h"

namespace imprint::graph {
namespace {

using Relation = AxisSource::Relation;

Graph graph_of(const Tensor& tensor) { return build_graph(std::span(&tensor, 1)).value(); }

// Where an axis of the last node comes from.
AxisSource source_of(const Tensor& tensor, std::size_t slot, int axis) {
  const Graph graph = graph_of(tensor);
  const GraphNode& node = graph[graph.roots[0]];
  return axis_source(node, graph[node.inputs[slot]].shape, slot, axis);
}

const Tensor& x() {
  static const Tensor made = input("x", {4, 6, 5});
  return made;
}

void expect_same(const Tensor& tensor, std::size_t slot, int axis, int from_axis) {
  const AxisSource found = source_of(tensor, slot, axis);
  EXPECT_EQ(found.axis, from_axis) << axis;
  EXPECT_EQ(found.start, 0);
  EXPECT_EQ(found.step, 1);
  EXPECT_TRUE(found.is_same()) << axis;
}

TEST(AxisMap, ViewsSayWhereTheyRead) {
  expect_same(permute(x(), {2, 0, 1}), 0, 0, 2);
  const Tensor odd = slice(x(), 1, 1, 6, 2);
  EXPECT_EQ(source_of(odd, 0, 1).start, 1);
  EXPECT_EQ(source_of(odd, 0, 1).step, 2);
  EXPECT_EQ(source_of(odd, 0, 1).relation, Relation::none);
  expect_same(odd, 0, 2, 2);
  const Tensor wide = expand(input("y", {4, 1}), {4, 3});
  EXPECT_EQ(source_of(wide, 0, 1).step, 0);
  EXPECT_EQ(source_of(wide, 0, 1).relation, Relation::none);
  const Tensor windows = tensor::make(tensor::Op::window, {x()}, {.ints = {1, 3, 2, 1}});
  EXPECT_EQ(source_of(windows, 0, 1).step, 2);
  EXPECT_EQ(source_of(windows, 0, 3).axis, 1);
  expect_same(windows, 0, 2, 2);
  const std::pair<std::int64_t, std::int64_t> sides[] = {{0, 0}, {2, 1}, {0, 0}};
  EXPECT_EQ(source_of(pad(x(), sides), 0, 1).start, -2);
}

TEST(AxisMap, FoldsAndProductsKeepTheirOtherAxes) {
  const Tensor sums = tensor::make(tensor::Op::reduce_sum, {x()}, {.ints = {1}});
  EXPECT_EQ(source_of(sums, 0, 1).axis, -1);
  expect_same(sums, 0, 2, 2);
  const Tensor product = matmul(x(), input("w", {4, 5, 7}));
  expect_same(product, 0, 1, 1);
  expect_same(product, 1, 2, 2);
  EXPECT_EQ(source_of(product, 0, 2).axis, -1);
  EXPECT_EQ(source_of(product, 1, 1).axis, -1);
}

TEST(AxisMap, IndicesReplaceTheirAxis) {
  const Tensor taken = take(x(), 1, input("i", {2, 3}, DType::int32));  // [4, 2, 3, 5]
  expect_same(taken, 0, 3, 2);
  EXPECT_EQ(source_of(taken, 0, 1).axis, -1);
  expect_same(taken, 1, 2, 1);
  const Tensor joined = concat({x(), x() * 2.0f}, 1);
  EXPECT_EQ(source_of(joined, 1, 1).axis, -1);
  expect_same(joined, 1, 0, 0);
}

TEST(AxisMap, ReshapesKeepAxesThatStayWhole) {
  const Graph graph = graph_of(reshape(x(), {4, 1, 30}));
  const GraphNode& node = graph[graph.roots[0]];
  const Shape& from = graph[node.inputs[0]].shape;
  EXPECT_TRUE(is_same_axis(node, from, 0, 0, 0));
  EXPECT_FALSE(is_same_axis(node, from, 0, 1, 2));
}

}  // namespace
}  // namespace imprint::graph
