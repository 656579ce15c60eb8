#pragma once
// The GLSL functions of shaders/include that generated kernels paste in when they need them.

#include <string_view>

namespace imprint {

// The text of shaders/include/<name>.glsl; empty when there is no such file.
std::string_view embedded_shader(std::string_view name);

}  // namespace imprint
