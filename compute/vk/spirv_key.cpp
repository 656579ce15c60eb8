// The key of compiled shaders: the same in a library that compiles and in one that only reads what was compiled.

#include <glslang/build_info.h>

#include "compute/vk/glsl_compiler.h"

namespace imprint::vk {

Hash128 spirv_key(std::string_view glsl) {
  return Hasher()
      .text(glsl)
      .number(GLSLANG_VERSION_MAJOR)
      .number(GLSLANG_VERSION_MINOR)
      .number(GLSLANG_VERSION_PATCH)
      .text("vulkan 1.1, spir-v 1.3, not optimised")
      .digest();
}

}  // namespace imprint::vk
