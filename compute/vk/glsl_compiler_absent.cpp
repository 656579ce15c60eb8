// A library without a shader compiler (IMPRINT_SHADER_COMPILER=OFF), for games that ship what was compiled before: it reads the shader cache that a
// library with a compiler of this version has filled, and compiles nothing.

#include <string>

#include "compute/vk/glsl_compiler.h"

namespace imprint::vk {

GlslCompiler::GlslCompiler() = default;
GlslCompiler::~GlslCompiler() = default;

Result<Spirv> GlslCompiler::compile(std::string_view name, std::string_view) const {
  return make_error(
      ErrorCode::unsupported,
      std::string("kernel ").append(name).append(
          " is not in the shader cache, and this library was built without a shader compiler: warm up the same brains on the same kind of "
          "device with a library that has one, and ship the folder that it fills (imp_host::shader_cache_directory)"));
}

}  // namespace imprint::vk
