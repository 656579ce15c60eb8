#pragma once
// GLSL compute shaders to SPIR-V 1.3 for Vulkan 1.1 (1.6 for 1.3 where a text asks for
// GL_NV_cooperative_matrix2), through glslang. Nothing of glslang shows outside the .cpp.

#include <string>
#include <string_view>

#include "compute/base/hash.h"
#include "compute/base/result.h"
#include "compute/vk/kernel_archive.h"

namespace imprint::vk {

// Keeps glslang's process-wide tables alive; the first owner builds them, the last takes them down. Any
// thread.
class GlslCompiler {
 public:
  GlslCompiler();
  ~GlslCompiler();
  GlslCompiler(const GlslCompiler&) = delete;
  GlslCompiler& operator=(const GlslCompiler&) = delete;

  static bool present();  // false in a library built with IMPRINT_RUNTIME_COMPILER=OFF
  static std::string
  identity();  // what SPIR-V depends on beside the text: the compiler's version and the target
  static bool knows(std::string_view extension);  // of GLSL; glslang is asked once for each. Any thread

  // Any thread, several at once. Errors: compile_failed with the kernel's name, the log and the line that it
  // points at; unsupported when there is no compiler.
  Result<Spirv> compile(std::string_view name, std::string_view glsl) const;
};

// Of what this compiler makes of a text, for caches.
inline Hash128 spirv_key(std::string_view glsl) {
  const Hash128 key = source_key(glsl);
  return Hasher().number(key.low).number(key.high).text(GlslCompiler::identity()).digest();
}

}  // namespace imprint::vk
