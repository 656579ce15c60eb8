#pragma once
// GLSL compute shaders to SPIR-V 1.3 for Vulkan 1.1, through glslang. Nothing of glslang shows outside the .cpp.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "compute/base/hash.h"
#include "compute/base/result.h"

namespace imprint::vk {

using Spirv = std::vector<std::uint32_t>;

// Keeps glslang's process-wide tables alive; the first owner builds them, the last takes them down. Any thread.
class GlslCompiler {
 public:
  GlslCompiler();
  ~GlslCompiler();
  GlslCompiler(const GlslCompiler&) = delete;
  GlslCompiler& operator=(const GlslCompiler&) = delete;

  // Any thread, several at once. Errors: compile_failed with the kernel's name, the log and the line that it points at.
  Result<Spirv> compile(std::string_view name, std::string_view glsl) const;
};

// What SPIR-V depends on: the text, the compiler's version and the target.
Hash128 spirv_key(std::string_view glsl);

}  // namespace imprint::vk
