// A library without a shader compiler (IMPRINT_RUNTIME_COMPILER=OFF), for games that ship a kernel archive.

#include "compute/vk/pipelines/glsl_compiler.h"

namespace imprint::vk {

GlslCompiler::GlslCompiler() = default;
GlslCompiler::~GlslCompiler() = default;

bool GlslCompiler::present() { return false; }
std::string GlslCompiler::identity() { return "none"; }
bool GlslCompiler::knows(std::string_view) { return false; }

Result<Spirv> GlslCompiler::compile(std::string_view name, std::string_view) const {
  return make_error(
      ErrorCode::unsupported,
      "kernel " + std::string(name) + ": found a library without a shader compiler. Give a kernel archive.");
}

}  // namespace imprint::vk
