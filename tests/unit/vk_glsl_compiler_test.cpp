#include "compute/vk/pipelines/glsl_compiler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "compute/base/text.h"
#include "compute/kernels/embedded_shaders.h"
#include "compute/vk/pipelines/newer_matrices.h"

namespace imprint::vk {
namespace {

using ::testing::HasSubstr;

constexpr std::string_view kGood = R"(#version 450
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) buffer B { float data[]; };
void main() { data[gl_GlobalInvocationID.x] *= 2.0; }
)";

TEST(GlslCompiler, MakesSpirv13) {
  const GlslCompiler compiler;
  const auto spirv = compiler.compile("double", kGood);
  ASSERT_TRUE(spirv.ok()) << spirv.error().message;
  ASSERT_GT(spirv->size(), 5u);
  EXPECT_EQ((*spirv)[0], 0x07230203u);
  EXPECT_EQ((*spirv)[1], 0x00010300u);
}

TEST(GlslCompiler, ShowsTheLineThatIsWrong) {
  const GlslCompiler compiler;
  const auto spirv = compiler.compile(
      "broken", "#version 450\nlayout(local_size_x = 1) in;\nvoid main() {\n  float a = nonsense;\n}\n");
  ASSERT_FALSE(spirv.ok());
  EXPECT_EQ(spirv.error().code, ErrorCode::compile_failed);
  EXPECT_THAT(spirv.error().message, HasSubstr("kernel broken does not compile"));
  EXPECT_THAT(spirv.error().message,
              HasSubstr("0:4: 'nonsense' : undeclared identifier \n  |   float a = nonsense;"));
}

TEST(GlslCompiler, RefusesInvalidShaders) {
  const GlslCompiler compiler;
  for (const std::string_view text :
       {"", "#version 450\n", "void main", "\xff\xfe\x01", "#version 450\nvoid main() {"}) {
    const auto spirv = compiler.compile("odd", text);
    ASSERT_FALSE(spirv.ok()) << text;
    EXPECT_EQ(spirv.error().code, ErrorCode::compile_failed);
  }
}

TEST(GlslCompiler, ContinuesAfterAnErrorAndGivesEqualSpirvForEqualText) {
  const GlslCompiler compiler;
  const auto first = compiler.compile("a", kGood);
  ASSERT_FALSE(compiler.compile("b", "#version 450\nvoid main() { x }").ok());
  const auto second = compiler.compile("a", kGood);
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(*first, *second);
}

TEST(GlslCompiler, ComesAndGoesWithItsOwnersOnAnyThread) {
  for (int round = 0; round < 3; ++round) {
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([] {
        const GlslCompiler compiler;
        EXPECT_TRUE(compiler.compile("double", kGood).ok());
      });
    }
    for (auto& thread : threads) thread.join();
  }
}

TEST(GlslCompiler, KnowsWhichExtensionsItTranslates) {
  EXPECT_TRUE(GlslCompiler::knows("GL_NV_cooperative_matrix"));
  EXPECT_FALSE(GlslCompiler::knows("GL_EXT_that_nobody_wrote"));
  for (const char* extension : {"GL_KHR_cooperative_matrix", "GL_NV_cooperative_matrix2"}) {
    const std::string text = "#version 450\n#extension " + std::string(extension) +
                             " : require\nlayout(local_size_x = 1) in;\nvoid main() {}\n";
    EXPECT_EQ(GlslCompiler::knows(extension), GlslCompiler().compile("asked", text).ok()) << extension;
    EXPECT_EQ(GlslCompiler::knows(extension), GlslCompiler::knows(extension));
  }
}

TEST(GlslCompiler, KeysByText) {
  EXPECT_EQ(spirv_key(kGood), spirv_key(std::string(kGood)));
  EXPECT_NE(spirv_key(kGood), spirv_key(std::string(kGood) + " "));
}

// ---- in_newer_matrices ----

std::string matrices(const std::string& body) {
  return text(
      "#version 450\n#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require\n"
      "#extension GL_KHR_memory_scope_semantics : require\n"
      "#extension GL_KHR_shader_subgroup_basic : require\n"
      "#extension GL_NV_cooperative_matrix : require\nlayout(local_size_x = 32) in;\n"
      "layout(set = 0, binding = 0) buffer A { uvec4 a[]; };\n"
      "layout(set = 0, binding = 1) buffer B { float b[]; };\n",
      kernels::embedded_shader("matrices_nv"), "void main() {\n", body, "}\n");
}

// The operations, each with its operands.
std::vector<std::vector<std::uint32_t>> operations(const Spirv& spirv) {
  std::vector<std::vector<std::uint32_t>> all;
  for (std::size_t i = 5; i < spirv.size(); i += spirv[i] >> 16) {
    all.emplace_back(spirv.begin() + static_cast<std::ptrdiff_t>(i),
                     spirv.begin() + static_cast<std::ptrdiff_t>(i + (spirv[i] >> 16)));
    all.back()[0] &= 0xffff;
  }
  return all;
}

TEST(NewerMatrices, HaveTheirUsesAndLayouts) {
  const auto older = GlslCompiler().compile(
      "product",
      matrices("MATRIX_LEFT left[2];\nMATRIX_RIGHT right;\nMATRIX_SUMS sums = MATRIX_SUMS(0.0);\n"
               "MATRIX_LOAD(left[1], a, 0, 2, 0);\nMATRIX_LOAD(right, a, 64, 3, 1);\n"
               "sums = MATRIX_MULTIPLY_ADD(left[1], right, sums);\nMATRIX_STORE(sums, b, 0, 16);\n"));
  ASSERT_TRUE(older.ok()) << older.error().message;
  const std::optional<Spirv> newer = in_newer_matrices(*older);
  ASSERT_TRUE(newer);
  std::map<std::uint32_t, std::uint32_t> numbers;  // constants
  std::vector<std::uint32_t> uses, layouts, strides;
  int products = 0;
  for (const std::vector<std::uint32_t>& words : operations(*newer)) {
    EXPECT_FALSE(words[0] >= 5357 && words[0] <= 5362) << words[0];  // of the older extension
    if (words[0] == 17) EXPECT_NE(words[1], 5357u);
    if (words[0] == 43) numbers[words[2]] = words[3];
    if (words[0] == 4456) uses.push_back(numbers.at(words.at(6)));
    if (words[0] == 4457)
      layouts.push_back(numbers.at(words.at(4))), strides.push_back(numbers.at(words.at(5)));
    if (words[0] == 4458)
      layouts.push_back(numbers.at(words.at(3))), strides.push_back(numbers.at(words.at(4)));
    products += words[0] == 4459;
    if (words[0] == 10) EXPECT_STRNE(reinterpret_cast<const char*>(&words[1]), "SPV_NV_cooperative_matrix");
    if (words[0] == 43) EXPECT_LT(words[2], (*newer)[3]);  // the bound
  }
  EXPECT_THAT(uses, ::testing::UnorderedElementsAre(0u, 1u, 2u));
  EXPECT_THAT(layouts, ::testing::ElementsAre(0u, 1u, 0u));
  EXPECT_THAT(strides, ::testing::ElementsAre(2u, 3u, 16u));
  EXPECT_EQ(products, 1);
  EXPECT_EQ(in_newer_matrices(*newer), std::nullopt);
}

TEST(NewerMatrices, LeaveOtherModulesAsTheyAre) {
  const GlslCompiler compiler;
  EXPECT_EQ(in_newer_matrices(*compiler.compile("double", kGood)), std::nullopt);
  // Rounded sums are a left operand.
  const auto computes = compiler.compile(
      "rounds", matrices("MATRIX_SUMS sums = MATRIX_SUMS(0.0);\nMATRIX_LEFT left = MATRIX_ROUNDED(sums);\n"
                         "MATRIX_RIGHT right;\nMATRIX_LOAD(right, a, 64, 3, 1);\n"
                         "sums = MATRIX_MULTIPLY_ADD(left, right, sums);\nMATRIX_STORE(sums, b, 0, 16);\n"));
  ASSERT_TRUE(computes.ok()) << computes.error().message;
  EXPECT_EQ(in_newer_matrices(*computes), std::nullopt);
  Spirv damaged = *compiler.compile("double", kGood);
  damaged.back() = 0xffff0000u;
  damaged.push_back(0);
  EXPECT_EQ(in_newer_matrices(damaged), std::nullopt);
  EXPECT_EQ(in_newer_matrices({}), std::nullopt);
}

}  // namespace
}  // namespace imprint::vk
