// Constants of one element are literals of kernels, and bounds between literals test for NaN once.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "compute/graph/plan/fusion.h"
#include "compute/kernels/dispatch_source.h"
#include "compute/tensor/tensor.h"

namespace imprint {
namespace {

using namespace graph;
using namespace kernels;
using namespace tensor;
using ::testing::HasSubstr;
using ::testing::Not;

DispatchSource kernel_with_literals(const Tensor& output) {
  const Tensor outputs[] = {output};
  Graph graph = build_graph(outputs).value();
  FusionRequest request;
  for (NodeIndex n = 0; n < graph.size(); ++n)
    if (graph[n].op == Op::input) request.inputs.push_back(n);
  for (const NodeIndex root : graph.roots) request.outputs.push_back({root});
  const Schedule schedule = fuse(graph, request, {}).value();
  const std::vector<DispatchSource> dispatches =
      build_dispatches(graph, schedule, {}, [](const Place&) { return 0; }).value();
  EXPECT_EQ(dispatches.size(), 1u);
  return dispatches.front();
}

Tensor one(float value) { return Tensor::from({value}, {1}); }

TEST(Literals, AConstantOfOneElementIsNoMemory) {
  const Tensor x = input("x", {64, 8});
  const DispatchSource kernel = kernel_with_literals(x * expand(one(3.25f), {64, 8}));
  EXPECT_THAT(kernel.glsl, HasSubstr(" * 3.25)"));
  EXPECT_EQ(kernel.table.size(), kernel_with_literals(x * 3.25f).table.size());
}

TEST(Literals, AMinimumOfAMaximumTestsForNanOnceInEitherOrder) {
  const Tensor x = input("x", {64, 8});
  const auto bounded = [&](float least, float most) {
    return kernel_with_literals(minimum(maximum(x, expand(one(least), {64, 8})), expand(one(most), {64, 8})))
        .glsl;
  };
  EXPECT_THAT(bounded(0, 6), HasSubstr(", 0.0, 6.0)"));
  EXPECT_THAT(bounded(0, 6), Not(HasSubstr(" = imp_min(")));
  EXPECT_THAT(bounded(6, 0), HasSubstr(" = imp_min("));  // the maximum counts first
  const auto bounded_above_first = [&](float least, float most) {
    return kernel_with_literals(maximum(minimum(x, expand(one(most), {64, 8})), expand(one(least), {64, 8})))
        .glsl;
  };
  EXPECT_THAT(bounded_above_first(0, 6), HasSubstr(", 0.0, 6.0)"));
  EXPECT_THAT(bounded_above_first(0, 6), Not(HasSubstr(" = imp_max(")));
  EXPECT_THAT(bounded_above_first(6, 0), HasSubstr(" = imp_max("));  // the minimum counts first
  const Tensor other = input("y", {64, 8});
  EXPECT_THAT(kernel_with_literals(minimum(maximum(x, other), expand(one(6), {64, 8}))).glsl,
              HasSubstr(" = imp_min("));
}

}  // namespace
}  // namespace imprint
