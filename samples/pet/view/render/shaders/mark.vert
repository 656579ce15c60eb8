#version 450
#extension GL_GOOGLE_include_directive : require
#include "mesh.glsl"

layout(location = 0) out vec4 out_color;
layout(location = 1) out float out_fade;

// A mark is all tint; it fades where its mesh says that it ends.
void main() {
  out_color = in_tint;
  out_fade = in_normal.w;
  gl_Position = scene.view_projection * vec4(world_position(), 1.0);
}
