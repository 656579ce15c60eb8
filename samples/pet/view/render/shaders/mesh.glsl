// A mesh's vertex and its instance; DrawList::Instance and Vertex in C++.
#include "scene.glsl"

layout(location = 0) in vec3 in_position;
layout(location = 1) in vec4 in_normal;  // w: openness to the sky
layout(location = 2) in vec4 in_color;   // sRGB, a: mask
layout(location = 3) in vec4 row_x;
layout(location = 4) in vec4 row_y;
layout(location = 5) in vec4 row_z;
layout(location = 6) in vec4 in_tint;     // sRGB, a: opacity
layout(location = 7) in vec4 in_surface;  // kind, gloss, glow, wholeness of the tint

vec3 world_position() {
  vec4 p = vec4(in_position, 1.0);
  vec3 world = vec3(dot(row_x, p), dot(row_y, p), dot(row_z, p));
  if (int(in_surface.x) == kSwaying) {
    float gust = sin(scene.eye.w * 1.3 + world.x * 0.7 + world.y * 0.5) +
                 0.5 * sin(scene.eye.w * 3.1 + world.x * 2.3 - world.y * 1.7);
    world.xy += in_color.a * 0.018 * gust * vec2(1.0, 0.4);
  }
  return world;
}
