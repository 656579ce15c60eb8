// Values that a gradient compares with their own fold have equal bits in every kernel that computes them.

#include "compute/graph/schedule/exact_values.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "compute/graph/gradients/autodiff.h"
#include "compute/graph/plan/fusion.h"
#include "compute/kernels/dispatch_source.h"
#include "compute/tensor/tensor.h"

namespace imprint {
namespace {

using namespace graph;
using namespace kernels;
using namespace tensor;

// The kernels of values of x, w and b.
std::vector<std::string> exact_kernels_of(const std::vector<Tensor>& outputs) {
  Graph graph = build_graph(outputs).value();
  FusionRequest request;
  for (NodeIndex n = 0; n < graph.size(); ++n)
    if (graph[n].op == Op::input) request.inputs.push_back(n);
  for (const NodeIndex root : graph.roots) request.outputs.push_back({root});
  const Schedule schedule = fuse(graph, request, {}).value();
  const std::vector<DispatchSource> dispatches =
      build_dispatches(graph, schedule, {}, [](const Place&) { return 0; }).value();
  std::vector<std::string> kernels;
  for (const DispatchSource& dispatch : dispatches) kernels.push_back(dispatch.glsl);
  return kernels;
}

bool is_exact(const std::string& kernel) { return kernel.find("precise ") != std::string::npos; }

// A product, then a sum: one kernel might fuse them and another not.
const Tensor kX = input("x", {512, 8}), kW = input("w", {512, 8}), kB = input("b", {512, 8});

TEST(ExactValues, TheGradientOfAMaximumIsExactWhereverItsValueIsComputed) {
  const Tensor y = kX * kW + kB;
  const Tensor inputs[] = {kX};
  const auto slope = gradients(sum(max(y, {1}, true) * 3.0f), inputs);
  ASSERT_TRUE(slope) << slope.error().message;
  int computing = 0;
  for (const std::string& kernel : exact_kernels_of({(*slope)[0]})) {
    if (kernel.find(" * ") == std::string::npos || kernel.find("==") == std::string::npos) continue;
    ++computing;
    EXPECT_TRUE(is_exact(kernel)) << kernel;
  }
  EXPECT_GE(computing, 1);
}

TEST(ExactValues, AlsoBehindAViewAndBesideAFoldInTwoSteps) {
  const Tensor y = kX * kW + kB;
  const Tensor most = reshape(max(max(y, {1}, true), {0}, true), {1, 1});
  const std::vector<std::string> kernels =
      exact_kernels_of({cast(less(transpose(y, 0, 1), expand(most, {8, 512})), DType::float32)});
  ASSERT_GE(kernels.size(), 2u);  // of the fold, and of the comparison
  EXPECT_EQ(std::ranges::count_if(kernels, is_exact), 2);
}

TEST(ExactValues, OtherComparisonsLeaveTheCompilerFree) {
  const Tensor y = kX * kW + kB;
  for (const Tensor& z : {relu(y), where(y > kX, y, kB), maximum(y, kB)})
    for (const std::string& kernel : exact_kernels_of({z})) EXPECT_FALSE(is_exact(kernel)) << kernel;
}

}  // namespace
}  // namespace imprint
