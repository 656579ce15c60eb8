// Kernels of chains of operations that read few elements each: their text grows with the chain, not with the
// number of paths through it. Needs no GPU.

#include "compute/graph/passes/inlined_code.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "compute/graph/plan/fusion.h"
#include "compute/kernels/dispatch_source.h"
#include "compute/tensor/composites/images.h"
#include "compute/tensor/tensor.h"

namespace imprint {

using namespace graph;
using namespace kernels;
using namespace tensor;

namespace {

using Sides = std::pair<std::int64_t, std::int64_t>;

constexpr std::int64_t kElements = 64;

Tensor chain(int links, const std::function<Tensor(const Tensor& x, int link)>& link) {
  Tensor x = input("x", {2, kElements});
  for (int i = 0; i < links; ++i) x = link(x, i);
  return x;
}

// All kernels of the values.
std::string kernels_of(const std::vector<Tensor>& outputs, const DispatchLimits& limits = {}) {
  Graph graph = build_graph(outputs).value();
  FusionRequest request;
  for (NodeIndex n = 0; n < graph.size(); ++n)
    if (graph[n].op == Op::input) request.inputs.push_back(n);
  for (NodeIndex root : graph.roots) request.outputs.push_back({root});
  const Schedule schedule = fuse(graph, request, {}).value();
  const std::vector<DispatchSource> dispatches =
      build_dispatches(graph, schedule, limits, [](const Place&) { return 0; }).value();
  std::string all;
  for (const DispatchSource& dispatch : dispatches) all += dispatch.glsl;
  return all;
}

// Their length, in bytes.
std::size_t text_of(const Tensor& output) { return kernels_of({output}).size(); }

// A step of a scan: rows after the first `distance` take in those before.
Tensor scan_step(const Tensor& x, int link) {
  const std::int64_t distance = 1 << (link % 6);
  return concat({narrow(x, 1, 0, distance),
                 narrow(x, 1, 0, kElements - distance) + narrow(x, 1, distance, kElements - distance)},
                1);
}

Tensor halves(const Tensor& x, int link) {
  const Tensor low = narrow(x, 1, 0, kElements / 2), high = narrow(x, 1, kElements / 2, kElements / 2);
  return link % 2 == 0 ? concat({low + high, low * high}, 1) : concat({low - high, high}, 1);
}

Tensor padded(const Tensor& x, int link) {
  const std::int64_t distance = 1 + link % 3;
  return x + pad(narrow(x, 1, 0, kElements - distance), std::vector<Sides>{{0, 0}, {distance, 0}});
}

Tensor selected(const Tensor& x, int link) {
  const Tensor turned = transpose(scan_step(x, link), 0, 1);
  return transpose(where(turned > 0.5f, turned, turned * 0.5f), 0, 1);
}

// A roll: both parts of the join are of one value.
Tensor rolled(const Tensor& x, int link) { return narrow(concat({x, x}, 1), 1, 1 + link % 5, kElements); }

class InlinedCodeTest : public testing::TestWithParam<Tensor (*)(const Tensor&, int)> {};

TEST_P(InlinedCodeTest, GrowsWithTheChain) {
  EXPECT_LT(text_of(chain(24, GetParam())), 200'000u);
  // From a length on at which several kernels share the chain.
  const std::size_t some = text_of(chain(48, GetParam())), many = text_of(chain(192, GetParam()));
  EXPECT_LT(many, 5 * some) << some;
}

INSTANTIATE_TEST_SUITE_P(Chains, InlinedCodeTest,
                         testing::Values(scan_step, halves, padded, rolled, selected));

// As the gradients of a layer norm's weight and bias. What both read is loaded once.
TEST(InlinedCode, FoldsOfEqualTermsShareALoop) {
  const Tensor x = input("x", {16, 64, 512}), y = input("y", {16, 64, 512});
  const auto loops_of = [](const Tensor& one, const Tensor& other) {
    const std::string kernels = kernels_of({one, other});
    int loops = 0;
    for (std::size_t at = kernels.find("for (int "); at != std::string::npos;
         at = kernels.find("for (int ", at + 1))
      ++loops;
    return loops;
  };
  EXPECT_EQ(loops_of(sum(x, {0}), sum(x * y, {0})), 1);
  EXPECT_EQ(loops_of(sum(x, {0}), sum(x * sum(x, {0}, true), {0})), 2);  // the second reads the first
}

// A row behind a view stays in registers between the passes over it, as any other.
TEST(InlinedCode, RowsBehindViewsAreLoadedOnce) {
  const auto loads_of = [](const Tensor& x) {
    const std::string kernels = kernels_of({softmax(x)});
    std::size_t loads = 0;
    for (std::size_t at = kernels.find("= b0"); at != std::string::npos; at = kernels.find("= b0", at + 1))
      ++loads;
    return loads;
  };
  EXPECT_EQ(loads_of(input("x", {8, 8, 512})), 1u);
  EXPECT_EQ(loads_of(reshape(input("x", {64, 512}), {8, 8, 512})), 1u);
}

// The count, of a graph by hand.
TEST(InlinedCodeCount, CountsAValueOncePerIndexAndScope) {
  const auto values = [](const Tensor& x) {
    const Graph graph = build_graph(std::vector{x}).value();
    const std::vector<std::uint8_t> memory(graph.nodes.size(), 0);
    return InlinedCode(graph, memory).values(graph.roots[0], 100);
  };
  const Tensor x = input("x", {8});
  EXPECT_EQ(values(x * x + x), 3);
  // The root, two slices, and x at three places.
  EXPECT_EQ(values(narrow(x, 0, 0, 4) + narrow(x, 0, 4, 4)), 5);
  // x and its slice at one place.
  EXPECT_EQ(values(narrow(x, 0, 0, 4) + narrow(exp(x), 0, 0, 4)), 5);
  // Both branches compute exp(x).
  const Tensor y = exp(x);
  EXPECT_EQ(values(concat({y, y}, 0)), 5);
  EXPECT_EQ(values(exp(pad(x, std::vector<Sides>{{1, 1}}))), 3);
}

// Branches that share nothing but memory are not cut, however many there are.
TEST(InlinedCodeCount, CountsWhatIsComputedAgain) {
  const auto repeats = [](const Tensor& x) {
    const Graph graph = build_graph(std::vector{x}).value();
    const std::vector<std::uint8_t> memory(graph.nodes.size(), 0);
    return InlinedCode(graph, memory).repeats(graph.roots[0], 100);
  };
  const Tensor x = input("x", {8});
  std::vector<Tensor> branches;
  for (int i = 0; i < 300; ++i) branches.push_back(exp(x * static_cast<float>(i + 2)));
  EXPECT_EQ(repeats(concat(branches, 0)), 0);
  const Tensor y = exp(x);
  EXPECT_EQ(repeats(concat({y, y, y}, 0)), 2);
  EXPECT_EQ(repeats(y * y + y), 0);
}

// A GPU knows the places of all nine at once; a CPU's driver would take long to compile them.
TEST(WindowsTest, OfFewTermsNeedNoLoopOnAGpu) {
  const Tensor pooled = max_pool(input("x", {1, 4, 9, 9}), {.size = 3});
  EXPECT_EQ(kernels_of({pooled}).find("for ("), std::string::npos);
  DispatchLimits cpu;
  cpu.fold_terms = 2;
  EXPECT_NE(kernels_of({pooled}, cpu).find("for ("), std::string::npos);
  EXPECT_NE(kernels_of({max_pool(input("x", {1, 4, 9, 9}), {.size = 7})}).find("for ("), std::string::npos);
}

// Four places of a row read 18 pixels and nine weights, where one by one they would read 36 and 36.
TEST(WindowsTest, NeighboursShareWhatTheyReadOnAGpu) {
  const Tensor x = window(window(input("x", {8, 66, 66, 32}, DType::float16), 1, 3), 2, 3);
  const Tensor weights = permute(input("w", {3, 3, 32}), {2, 0, 1});
  const Tensor sums = cast(sum(cast(x, DType::float32) * weights, {4, 5}), DType::float16);
  DispatchLimits limits;
  limits.storage_16bit = true;
  const std::string text = kernels_of({sums}, limits);
  const auto count = [&](const std::string& part) {
    int found = 0;
    for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
    return found;
  };
  EXPECT_EQ(count("= vec4(b0d["), 18) << text;
  EXPECT_EQ(count("= b0q["), 9) << text;
  EXPECT_EQ(count("] = imp_four_halves("), 4) << text;
}

}  // namespace
}  // namespace imprint
