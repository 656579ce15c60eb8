#version 450
#extension GL_GOOGLE_include_directive : require
#include "scene.glsl"

layout(set = 0, binding = 1) uniform sampler2DShadow shadow_map;

layout(location = 0) in vec3 world;
layout(location = 1) in vec4 in_normal;
layout(location = 2) in vec4 in_color;
layout(location = 3) flat in vec4 surface;
layout(location = 0) out vec4 out_color;

const vec3 kSun = vec3(1.0, 0.89, 0.74) * 2.05;
const vec3 kSky = vec3(0.66, 0.79, 1.0) * 0.78;
const vec3 kBounce = vec3(0.62, 0.62, 0.36) * 0.42;

float sunlight(vec3 normal, float slope) {
  vec3 at = (scene.to_shadow * vec4(world + normal * (0.012 + 0.03 * (1.0 - slope)), 1.0)).xyz;
  float step = scene.sun.w * 1.6;
  float sum = texture(shadow_map, at + vec3(-step, -step * 0.4, 0.0));
  sum += texture(shadow_map, at + vec3(step * 0.4, -step, 0.0));
  sum += texture(shadow_map, at + vec3(step, step * 0.4, 0.0));
  sum += texture(shadow_map, at + vec3(-step * 0.4, step, 0.0));
  return sum * 0.25;
}

// Mown meadow on top, earth on the sides.
vec3 ground_color() {
  float patches = noise(world.xy * 0.8);
  float stripe = smoothstep(-0.12, 0.12, sin((world.x + 0.35 * patches) * 2.618));
  vec3 color = mix(vec3(0.385, 0.590, 0.275), vec3(0.520, 0.700, 0.350),
                   0.38 * stripe + 0.40 * patches + 0.22 * noise(world.xy * 3.7));
  if (world.z < -0.05) {
    float edge = -0.10 - 0.10 * noise((world.xy + world.yx * vec2(0.7, -0.7)) * 2.1);
    float layer = noise(vec2(world.z * 9.0, (world.x + world.y) * 0.35)) * 0.6 +
                  noise(vec2(world.z * 21.0, (world.x - world.y) * 1.3)) * 0.4;
    vec3 earth = mix(vec3(0.47, 0.31, 0.20), vec3(0.66, 0.46, 0.30), layer) *
                 mix(0.72, 1.0, smoothstep(-1.1, -0.2, world.z));
    color = mix(earth, color, smoothstep(edge - 0.02, edge + 0.02, world.z));
  }
  return to_linear(color);
}

void main() {
  vec3 normal = normalize(in_normal.xyz);
  vec3 to_eye = normalize(scene.eye.xyz - world);
  int kind = int(surface.x);
  vec3 albedo = kind == kGround ? ground_color() : in_color.rgb;

  float facing = dot(normal, scene.sun.xyz);
  float slope = clamp(facing, 0.0, 1.0);
  float lit = slope > 0.0 ? sunlight(normal, slope) : 0.0;
  // Light wraps a little around soft things.
  float diffuse = lit * slope * 0.9 + 0.10 * clamp(facing * 0.5 + 0.5, 0.0, 1.0) * mix(0.4, 1.0, lit);

  float open = in_normal.w;
  // Near the ground less of the sky is seen.
  if (kind == kPlain) open *= mix(0.55, 1.0, smoothstep(-0.02, 0.28, world.z));
  vec3 ambient = mix(kBounce, kSky, normal.z * 0.5 + 0.5) * mix(0.35, 1.0, open);

  float grazing = 1.0 - clamp(dot(normal, to_eye), 0.0, 1.0);
  vec3 half_way = normalize(to_eye + scene.sun.xyz);
  float gloss = surface.y;
  float shine =
      gloss > 0.0 ? gloss * pow(clamp(dot(normal, half_way), 0.0, 1.0), mix(12.0, 90.0, gloss)) * 1.4 : 0.0;
  float rim = kind == kGround || kind == kSwaying ? 0.0 : grazing * grazing * grazing * 0.22;

  vec3 light = albedo * (kSun * diffuse * mix(0.6, 1.0, open) + ambient) +
               (kSun * shine * lit + kSky * rim) * open + albedo * surface.z;
  float alpha = in_color.a < 1.0 ? in_color.a * mix(0.6, 1.15, grazing) : 1.0;
  out_color = vec4(to_screen(light), alpha);
}
