#include "compute/vk/pipelines/glsl_compiler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>
#include <vector>

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

}  // namespace
}  // namespace imprint::vk
