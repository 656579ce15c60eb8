#pragma once
// The GLSL functions of shaders/include and the pages of shaders/products that generated kernels paste in
// when they need them, and the worlds of shaders/worlds.

#include <string_view>

namespace imprint::kernels {

// The text of shaders/include/<name>.glsl, or of shaders/<name>.glsl for "products/..." and "worlds/...";
// empty when there is no such file.
std::string_view embedded_shader(std::string_view name);

}  // namespace imprint::kernels
