#pragma once
// GLSL embedded in the library: functions (shaders/include, shaders/both) and pages (shaders/products) for
// generated kernels, and the classic environments (shaders/environments).

#include <string_view>

namespace imprint::kernels {

// The text of shaders/include/<name>.glsl, or of shaders/<name>.glsl where the name begins with products/ or
// environments/. Empty when there is no such file.
std::string_view embedded_shader(std::string_view name);

}  // namespace imprint::kernels
