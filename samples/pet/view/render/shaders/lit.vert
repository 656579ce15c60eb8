#version 450
#extension GL_GOOGLE_include_directive : require
#include "mesh.glsl"

layout(location = 0) out vec3 out_world;
layout(location = 1) out vec4 out_normal;
layout(location = 2) out vec4 out_color;
layout(location = 3) flat out vec4 out_surface;

invariant gl_Position;

void main() {
  vec3 world = world_position();
  // Rows of the cofactor matrix turn normals rightly under uneven scale.
  vec3 x = row_x.xyz, y = row_y.xyz, z = row_z.xyz;
  vec3 normal =
      vec3(dot(cross(y, z), in_normal.xyz), dot(cross(z, x), in_normal.xyz), dot(cross(x, y), in_normal.xyz));
  bool sways = int(in_surface.x) == kSwaying;
  float masked = sways ? in_surface.w : max(in_color.a, in_surface.w);
  out_world = world;
  out_normal = vec4(normalize(normal), in_normal.w);
  out_color = vec4(to_linear(mix(in_color.rgb, in_tint.rgb, masked)), in_tint.a);
  out_surface = in_surface;
  gl_Position = scene.view_projection * vec4(world, 1.0);
}
