// The kernel of a network over many rows on matrix units, as text. Needs no GPU.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compute/graph/plan/fusion.h"
#include "compute/kernels/dispatch_source.h"
#include "compute/nn/modules/sequential.h"
#include "compute/vk/pipelines/glsl_compiler.h"
#include "tests/unit/matrix_dialect.h"

namespace imprint {

using namespace graph;
using namespace kernels;
using namespace tensor;

namespace {

struct BuiltRegion {
  Graph graph;
  Schedule schedule;
  std::vector<DispatchSource> dispatches;
};

BuiltRegion build_region(const std::vector<Tensor>& outputs, MatrixDialect dialect = MatrixDialect::nv) {
  BuiltRegion built;
  built.graph = build_graph(outputs).value();
  FusionRequest request;
  for (NodeIndex n = 0; n < built.graph.size(); ++n) {
    if (built.graph[n].op == Op::input) request.inputs.push_back(n);
    if (built.graph[n].op == Op::variable) request.variables.push_back(built.graph[n].source->variable);
  }
  for (NodeIndex root : built.graph.roots) request.outputs.push_back({root});
  FusionOptions options;
  options.narrow_products = options.matrix_units = true;
  options.region_invocations = 256;
  options.region_shared_bytes = 49152;
  built.schedule = fuse(built.graph, request, options).value();
  DispatchLimits limits;
  limits.matrix_dialect = dialect;
  built.dispatches = build_dispatches(built.graph, built.schedule, limits, [](const Place& place) {
                       return place.kind == PlaceKind::variable ? 1 : 0;
                     }).value();
  return built;
}

std::string region_errors(const DispatchSource& dispatch) {
  const vk::GlslCompiler compiler;
  const auto spirv = compiler.compile("region", dispatch.glsl);
  return spirv ? std::string() : spirv.error().message;
}

Tensor network(std::int64_t rows, std::initializer_list<std::int64_t> extents,
               nn::Activation activation = nn::Activation::tanh) {
  return nn::mlp("net", extents, {.activation = activation, .seed = 1})(input("x", {rows, *extents.begin()}));
}

TEST(RegionMatrix, APolicyIsOneKernelThatRoundsItsWeights) {
  const BuiltRegion built = build_region({network(8192, {32, 64, 64, 8})});
  ASSERT_EQ(built.dispatches.size(), 1u);
  EXPECT_EQ(region_errors(built.dispatches[0]), "");
  EXPECT_THAT(built.dispatches[0].glsl, testing::HasSubstr("coopMatMulAddNV"));
  EXPECT_THAT(built.dispatches[0].glsl, testing::HasSubstr("imp_tanh_half(v"));
  const BuiltRegion khr = build_region({network(8192, {32, 64, 64, 8})}, MatrixDialect::khr);
  EXPECT_THAT(khr.dispatches[0].glsl, testing::HasSubstr("gl_MatrixUseAccumulator"));
  EXPECT_EQ(test::khr_kernel_errors(khr.dispatches[0].glsl), "");
}

TEST(RegionMatrix, ShapesThatAreNotMatricesOf16ArePadded) {
  const BuiltRegion built = build_region({network(5001, {20, 40, 24, 3}, nn::Activation::gelu)});
  ASSERT_EQ(built.dispatches.size(), 1u);
  EXPECT_EQ(region_errors(built.dispatches[0]), "");
  EXPECT_THAT(built.dispatches[0].glsl, testing::HasSubstr("coopMatMulAddNV"));
}

// Two heads, one of which reads the row's own input again.
TEST(RegionMatrix, RowReductionsUseSharedMemory) {
  const Tensor x = input("x", {8192, 32});
  const Tensor h = nn::mlp("body", {32, 64}, {.seed = 1})(x);
  const Tensor mixed = tanh(h) * (x.ok() ? sum(x, {1}, true) : x);
  EXPECT_THAT(build_region({nn::mlp("head", {64, 4}, {.seed = 2})(mixed)}).dispatches.back().glsl,
              testing::Not(testing::HasSubstr("coopMatMulAddNV")));
  const Tensor scale = input("scale", {8192, 1});
  const BuiltRegion built = build_region({nn::mlp("head", {64, 4}, {.seed = 2})(tanh(h) * scale),
                                          nn::mlp("value", {64, 1}, {.seed = 3})(tanh(h) * scale)});
  EXPECT_EQ(region_errors(built.dispatches.back()), "");
  EXPECT_THAT(built.dispatches.back().glsl, testing::HasSubstr("coopMatMulAddNV"));
}

TEST(RegionMatrix, FewRowsAndWideLayersAreLeftToOthers) {
  for (const BuiltRegion& built :
       {build_region({network(1024, {32, 64, 64, 8})}), build_region({network(8192, {32, 256, 8})})})
    for (const DispatchSource& dispatch : built.dispatches)
      EXPECT_THAT(dispatch.glsl, testing::Not(testing::HasSubstr("matrix_weights")));
}

}  // namespace
}  // namespace imprint
