// Attention with masks on a GPU: three kernels that compute the masks, and no memory for scores. Needs no
// GPU.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "compute/graph/gradients/autodiff.h"
#include "compute/graph/plan/fusion.h"
#include "compute/kernels/dispatch_source.h"
#include "compute/nn/modules/attention.h"
#include "compute/nn/modules/embedding.h"
#include "compute/tensor/composites/composites.h"
#include "compute/vk/pipelines/glsl_compiler.h"

namespace imprint {

using namespace graph;
using namespace kernels;
using namespace tensor;

namespace {

using testing::HasSubstr;

constexpr std::int64_t kBatch = 2, kHeads = 4, kSteps = 2048, kWidth = 32;

struct MaskedKernels {
  std::vector<std::string> attention;  // the kernels' GLSL
  std::int64_t largest = 0;            // elements of the largest value in memory
};

MaskedKernels masked_kernels(const nn::AttentionMask& mask, bool dropout, bool trains = true,
                             const Shape& shape = {kBatch, kHeads, kSteps, kWidth}) {
  const Tensor by[] = {input("query", shape), input("key", shape), input("value", shape)};
  nn::Pass pass("pass", 1);
  std::vector<Tensor> outputs{nn::attention(by[0], by[1], by[2], mask, dropout ? 0.1 : 0.0, &pass)};
  if (trains) {
    const std::vector<Tensor> found = gradients(sum(square(outputs[0])), by).value();
    outputs.insert(outputs.end(), found.begin(), found.end());
  }
  Graph graph = build_graph(outputs).value();
  FusionRequest request;
  for (NodeIndex n = 0; n < graph.size(); ++n) {
    if (graph[n].op == Op::input) request.inputs.push_back(n);
    if (graph[n].op == Op::variable) request.variables.push_back(graph[n].source->variable);
  }
  for (NodeIndex root : graph.roots) request.outputs.push_back({root});
  FusionOptions options;
  options.most_invocations = options.pages.invocations = 1024;
  options.region_shared_bytes = options.pages.shared_bytes = 49152;
  const Schedule schedule = fuse(graph, request, options).value();
  MaskedKernels found;
  for (NodeIndex n = 0; n < graph.size(); ++n)
    if (schedule.materialized[static_cast<std::size_t>(n)] && graph[n].op != Op::page)
      found.largest = std::max(found.largest, graph[n].element_count());
  DispatchLimits limits;
  limits.invocations = 1024;
  const auto dispatches = build_dispatches(graph, schedule, limits, [](const Place& place) {
                            return place.kind == PlaceKind::variable ? 1 : 0;
                          }).value();
  for (const DispatchSource& dispatch : dispatches)
    if (dispatch.glsl.find("void imp_page(int group)") != std::string::npos)
      found.attention.push_back(dispatch.glsl);
  return found;
}

// Which keys lie at or after the end of their sequence.
Tensor padding_of(const Tensor& lengths) { return arange(kSteps) >= unsqueeze(lengths, 1); }

// Padding by lengths, a sliding window, distances, and dropout.
TEST(AttentionMasks, AreComputedWhereTheyAreRead) {
  const Tensor apart = unsqueeze(arange(kSteps), 1) - arange(kSteps);
  const MaskedKernels built =
      masked_kernels({.causal = true,
                      .forbidden = apart > 256,
                      .bias = nn::alibi_bias(kHeads, kSteps, kSteps),
                      .padding = padding_of(input("lengths", {kBatch}, DType::int32))},
                     true);
  ASSERT_EQ(built.attention.size(), 3u);
  const vk::GlslCompiler compiler;
  for (const std::string& kernel : built.attention) {
    for (const char* mask : {"#define BIAS ", "#define HIDDEN ", "#define FACTORS "})
      EXPECT_THAT(kernel, HasSubstr(mask));
    EXPECT_THAT(kernel, HasSubstr("imp_uniform"));
    const auto spirv = compiler.compile("attention", kernel);
    EXPECT_TRUE(spirv) << spirv.error().message << kernel;
  }
  EXPECT_EQ(built.largest, kBatch * kHeads * kSteps * kWidth);
}

TEST(AttentionMasks, ThatAreStoredStayAsTheyAre) {
  const MaskedKernels built =
      masked_kernels({.forbidden = input("blocks", {kSteps, kSteps}, DType::boolean)}, false);
  ASSERT_EQ(built.attention.size(), 3u);
  EXPECT_THAT(built.attention[0], HasSubstr("#define HIDDEN_BATCH 0"));
  EXPECT_EQ(built.largest, kSteps * kSteps);
}

// A small GPT that trains: half a million scores per layer, none in memory.
TEST(AttentionMasks, DropoutOfFewScoresStoresNone) {
  const Shape shape{8, 4, 128, kWidth};
  const MaskedKernels built = masked_kernels({.causal = true}, true, true, shape);
  EXPECT_THAT(built.attention, testing::Each(HasSubstr("imp_uniform")));
  EXPECT_EQ(built.attention.size(), 2u);
  EXPECT_LE(built.largest, 2 * shape.element_count());  // less than the scores' 8 * 4 * 128 * 128
}

// A set of a few entities would leave most of a tile idle.
TEST(AttentionMasks, SmallHeadsAreOrdinaryOperations) {
  const Shape shape{1024, 4, 12, kWidth};
  const Tensor unseen = arange(12) >= unsqueeze(input("counts", {1024}, DType::int32), 1);
  EXPECT_THAT(masked_kernels({.padding = unseen}, false, true, shape).attention, testing::IsEmpty());
}

// The gradient of a bias is that of the scores.
TEST(AttentionMasks, ThatAreLearnedTakeMemoryForScoresOnlyInTheirGradient) {
  const Variable bias("bias", {kHeads, 1, kSteps}, std::vector<float>(kHeads * kSteps, 0.1f));
  EXPECT_EQ(masked_kernels({.bias = bias.value()}, false, false).largest, kBatch * kHeads * kSteps * kWidth);
}

}  // namespace
}  // namespace imprint
