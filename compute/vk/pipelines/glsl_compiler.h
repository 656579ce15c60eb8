#pragma once
// Compiles GLSL compute shaders to SPIR-V with glslang: SPIR-V 1.3 for Vulkan 1.1, or 1.6 for Vulkan 1.3 when
// the text asks for GL_NV_cooperative_matrix2. Only the .cpp uses glslang's headers.

#include <string>
#include <string_view>

#include "compute/base/hash.h"
#include "compute/base/result.h"
#include "compute/vk/pipelines/kernel_archive.h"

namespace imprint::vk {

// Lines around text that the caller of the library wrote. After kCallersText, the line names the text. Errors
// then count lines within it.
inline constexpr std::string_view kCallersText = "// the caller's: ",
                                  kCallersTextEnd = "// end of the caller's";

// Keeps glslang's process-wide tables alive. The first owner creates them, the last destroys them. Any
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

  // Any thread, several at once. Errors: compile_failed, with the kernel's name, the log and the source line
  // that the log names; unsupported when there is no compiler.
  Result<Spirv> compile(std::string_view name, std::string_view glsl) const;
};

// Cache key of the SPIR-V that this compiler produces from a text.
inline Hash128 spirv_key(std::string_view glsl) {
  const Hash128 key = source_key(glsl);
  return Hasher().number(key.low).number(key.high).text(GlslCompiler::identity()).digest();
}

}  // namespace imprint::vk
