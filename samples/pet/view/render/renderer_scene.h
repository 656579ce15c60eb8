#pragma once
// Shared by the renderer's files.

#include <cstdint>

#include "samples/pet/view/models/mesh_math.h"

namespace pet {

// shaders/scene.glsl, std140.
struct SceneUniforms {
  Mat4 view_projection;
  Mat4 to_shadow;
  Vec4 eye;
  Vec4 sun;
  Vec4 picture;
};
static_assert(sizeof(SceneUniforms) == 2 * 64 + 3 * 16);

}  // namespace pet
