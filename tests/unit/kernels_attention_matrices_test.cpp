// Attention's kernels as text, with and without matrix units, with and without a mask, and with each width of
// heads. Needs no GPU.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "compute/graph/gradients/autodiff.h"
#include "compute/graph/plan/fusion.h"
#include "compute/kernels/dispatch_source.h"
#include "compute/nn/modules/attention.h"
#include "compute/tensor/composites/composites.h"
#include "compute/vk/pipelines/glsl_compiler.h"
#include "tests/unit/matrix_dialect.h"

namespace imprint {

using namespace graph;
using namespace kernels;
using namespace tensor;

namespace {

using testing::HasSubstr;
using testing::Not;

std::vector<DispatchSource> build_attention(const std::vector<Tensor>& outputs,
                                            MatrixDialect dialect = MatrixDialect::nv, bool mixed = true) {
  Graph graph = build_graph(outputs).value();
  FusionRequest request;
  for (NodeIndex n = 0; n < graph.size(); ++n) {
    if (graph[n].op == Op::input) request.inputs.push_back(n);
    if (graph[n].op == Op::variable) request.variables.push_back(graph[n].source->variable);
  }
  for (NodeIndex root : graph.roots) request.outputs.push_back({root});
  FusionOptions options;
  options.narrow_products = options.pages.matrix_units = mixed;
  options.matrix_units = true;
  options.most_invocations = options.pages.invocations = 1024;
  options.region_shared_bytes = options.pages.shared_bytes = 49152;
  DispatchLimits limits;
  limits.matrix_dialect = dialect;
  limits.invocations = static_cast<std::uint32_t>(options.most_invocations);
  const Schedule schedule = fuse(graph, request, options).value();
  return build_dispatches(graph, schedule, limits, [](const Place&) { return 0; }).value();
}

std::vector<std::string> attention_kernels(const std::vector<DispatchSource>& dispatches) {
  std::vector<std::string> found;
  for (const DispatchSource& dispatch : dispatches)
    if (dispatch.glsl.find("void imp_page(int group)") != std::string::npos) found.push_back(dispatch.glsl);
  return found;
}

std::string attention_errors(const std::string& glsl) {
  const vk::GlslCompiler compiler;
  const auto spirv = compiler.compile("attention", glsl);
  return spirv ? std::string() : spirv.error().message + "\n" + glsl;
}

struct Attended {
  Tensor query, key, value, result;

  Attended(const Shape& queries, const Shape& keys, bool causal)
      : query(input("query", queries)),
        key(input("key", keys)),
        value(input("value", keys)),
        result(nn::attention(query, key, value, {.causal = causal})) {}

  std::vector<Tensor> outputs() const {
    std::vector<Tensor> all{result};
    const Tensor by[] = {query, key, value};
    const std::vector<Tensor> found = gradients(sum(square(result)), by).value();
    all.insert(all.end(), found.begin(), found.end());
    return all;
  }
};

TEST(AttentionMatrices, EveryWidthIsTwoKernels) {
  for (const std::int64_t extent : {24, 128}) {
    const std::vector<DispatchSource> dispatches =
        build_attention(Attended({2, 4, 130, extent}, {2, 2, 200, extent}, extent == 24).outputs());
    const std::vector<std::string> kernels = attention_kernels(dispatches);
    ASSERT_EQ(kernels.size(), 2u);
    for (const std::string& kernel : kernels) {
      EXPECT_THAT(kernel, HasSubstr("coopMatMulAddNV"));
      EXPECT_EQ(attention_errors(kernel), "");
    }
    for (const DispatchSource& dispatch : dispatches)  // no weights are computed to be stored
      EXPECT_THAT(dispatch.glsl, Not(HasSubstr("exp(")));
  }
}

TEST(AttentionMatrices, AreWrittenInTheNewerDialectToo) {
  const std::vector<DispatchSource> dispatches =
      build_attention(Attended({2, 4, 130, 64}, {2, 4, 130, 64}, true).outputs(), MatrixDialect::khr);
  for (const std::string& kernel : attention_kernels(dispatches)) {
    EXPECT_THAT(kernel, HasSubstr("gl_MatrixUseAccumulator"));
    EXPECT_EQ(test::khr_kernel_errors(kernel), "");
  }
}

// Masks and dropout are computed as they are read.
TEST(AttentionMatrices, TakeMasks) {
  const Shape shape{2, 4, 2048, 64};
  const Tensor by[] = {input("query", shape), input("key", shape), input("value", shape)};
  nn::Pass pass("pass", 1);
  const nn::AttentionMask mask{.causal = true,
                               .forbidden = unsqueeze(arange(2048), 1) - arange(2048) > 256,
                               .bias = input("bias", {4, 1, 2048})};
  std::vector<Tensor> outputs{nn::attention(by[0], by[1], by[2], mask, 0.1, &pass)};
  const std::vector<Tensor> found = gradients(sum(square(outputs[0])), by).value();
  outputs.insert(outputs.end(), found.begin(), found.end());
  for (const MatrixDialect dialect : {MatrixDialect::nv, MatrixDialect::khr}) {
    const std::vector<std::string> kernels = attention_kernels(build_attention(outputs, dialect));
    ASSERT_EQ(kernels.size(), 2u);
    for (const std::string& kernel : kernels) {
      EXPECT_THAT(kernel, HasSubstr("MATRIX_MULTIPLY_ADD"));
      EXPECT_THAT(kernel, HasSubstr("#define FACTORS "));
      EXPECT_THAT(kernel, HasSubstr("imp_uniform"));
      EXPECT_EQ(dialect == MatrixDialect::nv ? attention_errors(kernel) : test::khr_kernel_errors(kernel),
                "");
    }
  }
}

// Query, key and value are views of one product: its one rounded copy is read as eights.
TEST(AttentionMatrices, ReadsViewsInEights) {
  const Tensor heads = permute(reshape(input("x", {2, 200, 192}), {2, 200, 3, 2, 32}), {2, 0, 3, 1, 4});
  const auto part = [&](int i) { return reshape(narrow(heads, 0, i, 1), {2, 2, 200, 32}); };
  const std::vector<DispatchSource> dispatches =
      build_attention({nn::attention(part(0), part(1), part(2), {.causal = true})});
  const std::vector<std::string> kernels = attention_kernels(dispatches);
  ASSERT_EQ(kernels.size(), 1u);
  EXPECT_THAT(kernels[0], Not(HasSubstr("packHalf2x16(vec2(imp_load_0")));
  EXPECT_EQ(attention_errors(kernels[0]), "");
}

TEST(AttentionMatrices, AreForMixedProgramsAndEvenWidths) {
  for (const auto& [extent, mixed] : {std::pair(64, false), {33, true}}) {
    const Attended attended({2, 4, 130, extent}, {2, 4, 130, extent}, true);
    EXPECT_THAT(attention_kernels(build_attention({attended.result}, MatrixDialect::nv, mixed)),
                testing::IsEmpty());
  }
}

// In float32 few scores of narrow heads are never stored either, nor many of causal heads; those of other
// heads are.
TEST(AttentionTiles, NarrowHeadsAndManyCausalScoresAreNotStored) {
  struct Case {
    std::int64_t batch, steps, extent;
    bool causal;
    std::size_t kernel_count;
  };
  for (const auto& [batch, steps, extent, causal, kernel_count] :
       {Case{2, 128, 24, true, 2}, {2, 128, 64, true, 0}, {16, 256, 64, true, 2}, {16, 256, 64, false, 0}}) {
    const Attended attended({batch, 8, steps, extent}, {batch, 4, steps, extent}, causal);
    const std::vector<DispatchSource> dispatches =
        build_attention(attended.outputs(), MatrixDialect::nv, false);
    const std::vector<std::string> kernels = attention_kernels(dispatches);
    EXPECT_EQ(kernels.size(), kernel_count) << extent;
    for (const std::string& kernel : kernels) EXPECT_EQ(attention_errors(kernel), "");
    const bool computes_weights = std::ranges::any_of(dispatches, [](const DispatchSource& dispatch) {
      return dispatch.glsl.find("imp_page(") == std::string::npos &&
             dispatch.glsl.find("exp(") != std::string::npos;
    });
    EXPECT_EQ(computes_weights, kernel_count == 0) << extent;
  }
}

// One kernel instead of three that wait for each other, while scores are few.
TEST(AttentionTiles, FewScoresWithoutADerivativeAreNotStored) {
  for (const auto& [steps, kernel_count] : {std::pair(64, 1u), {130, 0u}}) {
    const Attended attended({4, 8, steps, 64}, {4, 8, steps, 64}, false);
    const std::vector<DispatchSource> dispatches =
        build_attention({attended.result}, MatrixDialect::nv, false);
    const std::vector<std::string> kernels = attention_kernels(dispatches);
    EXPECT_EQ(kernels.size(), kernel_count) << steps;
    EXPECT_EQ(dispatches.size() == 1, kernel_count == 1) << steps;
    for (const std::string& kernel : kernels) EXPECT_EQ(attention_errors(kernel), "");
  }
}

// Query, key and value are parts of one product, whose gradient only products and a bias's sum read, rounded.
// Their own gradients are stored rounded then, beside each other, and nothing copies them; gradients that are
// results are not rounded.
TEST(AttentionMatrices, GradientsThatAreOnlyReadRoundedAreStoredRounded) {
  const Tensor x = input("x", {2, 128, 256}), w = input("w", {256, 768}), b = input("b", {768});
  const Tensor all = matmul(x, w) + b;
  const auto part = [&](std::int64_t k) {
    return permute(reshape(narrow(all, 2, 256 * k, 256), {2, 128, 4, 64}), {0, 2, 1, 3});
  };
  const Tensor query = part(0), key = part(1), value = part(2);
  const Tensor loss = sum(square(nn::attention(query, key, value, {.causal = true})));
  const auto rounds = [](const std::vector<Tensor>& outputs) {
    int rounded = 0;
    const std::vector<DispatchSource> dispatches = build_attention(outputs);
    for (const DispatchSource& dispatch : dispatches)
      EXPECT_THAT(dispatch.glsl, Not(testing::ContainsRegex("map of 196608: (add|cast)")));
    for (const std::string& kernel : attention_kernels(dispatches)) {
      EXPECT_EQ(attention_errors(kernel), "");
      const bool is_gradient = kernel.find("arrived") != std::string::npos;
      if (is_gradient && kernel.find("imp_to_half(value.x)") != std::string::npos) ++rounded;
    }
    return rounded;
  };
  EXPECT_EQ(rounds(gradients(loss, std::array{w, b}).value()), 1);
  EXPECT_EQ(rounds(gradients(loss, std::array{query, key, value}).value()), 0);
}

// Gradients that no pads place beside each other are outputs of their own; products read them in place.
TEST(AttentionMatrices, GradientsOfThreeProductsAreThreeOutputs) {
  const Tensor x = input("x", {2, 128, 256});
  const std::array w{input("q", {256, 256}), input("k", {256, 256}), input("v", {256, 256})};
  const auto heads = [&](std::size_t k) {
    return permute(reshape(matmul(x, w[k]), {2, 128, 4, 64}), {0, 2, 1, 3});
  };
  const Tensor loss = sum(square(nn::attention(heads(0), heads(1), heads(2), {.causal = true})));
  for (const std::string& kernel : attention_kernels(build_attention(gradients(loss, w).value()))) {
    EXPECT_THAT(kernel, HasSubstr("#define BY_STEPS 1"));
    if (kernel.find("arrived") != std::string::npos) EXPECT_THAT(kernel, HasSubstr("#define PARTS 1"));
    EXPECT_EQ(attention_errors(kernel), "");
  }
}

}  // namespace
}  // namespace imprint
