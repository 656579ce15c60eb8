#version 450
#extension GL_GOOGLE_include_directive : require
#include "mesh.glsl"

void main() {
  vec3 at = (scene.to_shadow * vec4(world_position(), 1.0)).xyz;
  gl_Position = vec4(at.xy * 2.0 - 1.0, at.z, 1.0);
}
