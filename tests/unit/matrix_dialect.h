#pragma once
// Compiles kernels of GL_KHR_cooperative_matrix with a glslang that knows only GL_NV_cooperative_matrix.

#include <array>
#include <regex>
#include <string>
#include <string_view>
#include <utility>

#include "compute/vk/pipelines/glsl_compiler.h"

namespace imprint::test {

// The text in the older extension's words. It has one type for matrices of all uses: each use gets a shape of
// its own, so that glslang refuses one instead of another, as the newer extension does.
inline std::string in_nv_words(std::string glsl) {
  const std::array<std::pair<const char*, const char*>, 11> words{{
      {R"(GL_KHR_cooperative_matrix)", "GL_NV_cooperative_matrix"},
      {R"(coopmat<float16_t, gl_ScopeSubgroup, 16, 16, gl_MatrixUseA>)",
       "fcoopmatNV<16, gl_ScopeSubgroup, 16, 32>"},
      {R"(coopmat<float16_t, gl_ScopeSubgroup, 16, 16, gl_MatrixUseB>)",
       "fcoopmatNV<16, gl_ScopeSubgroup, 32, 8>"},
      {R"(coopmat<float, gl_ScopeSubgroup, 16, 16, gl_MatrixUseAccumulator>)",
       "fcoopmatNV<32, gl_ScopeSubgroup, 16, 8>"},
      {R"(coopmat<float16_t, gl_ScopeSubgroup, 16, 16, gl_MatrixUseAccumulator>)",
       "fcoopmatNV<16, gl_ScopeSubgroup, 16, 8>"},
      {R"(\bcoopMatLoad\()", "coopMatLoadNV("},
      {R"(\bcoopMatStore\()", "coopMatStoreNV("},
      {R"(\bcoopMatMulAdd\()", "coopMatMulAddNV("},
      {R"(\bgl_CooperativeMatrixLayoutColumnMajor\b)", "true"},
      {R"(\bgl_CooperativeMatrixLayoutRowMajor\b)", "false"},
      {R"(\(by_columns\) == 1 \? true : false)", "(by_columns) == 1"},
  }};
  for (const auto& [newer, older] : words) glsl = std::regex_replace(glsl, std::regex(newer), older);
  return glsl;
}

// Empty, or what glslang says, and the text. Also if a word of the newer extension has no translation.
inline std::string khr_kernel_errors(const std::string& glsl) {
  const bool knows = vk::GlslCompiler::knows("GL_KHR_cooperative_matrix");
  const std::string text = knows ? glsl : in_nv_words(glsl);
  if (!knows)
    for (const std::string_view newer : {"coopmat<", "gl_MatrixUse", "gl_CooperativeMatrix"})
      if (text.find(newer) != std::string::npos) return std::string(newer) + " in\n" + text;
  const vk::GlslCompiler compiler;
  const auto spirv = compiler.compile("khr", text);
  return spirv ? std::string() : spirv.error().message + "\n" + text;
}

}  // namespace imprint::test
