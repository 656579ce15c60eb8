// Shared by all shaders of the scene.
layout(set = 0, binding = 0) uniform Scene {
  mat4 view_projection;
  mat4 to_shadow;  // world to the shadow map's 0..1
  vec4 eye;        // w: seconds
  vec4 sun;        // towards the sun; w: 1 over the shadow map's size
  vec4 picture;    // size in pixels
}
scene;

const int kPlain = 0, kGround = 1, kSwaying = 2;

vec3 to_linear(vec3 srgb) { return srgb * (srgb * (srgb * 0.305306011 + 0.682171111) + 0.012522878); }

// Keeps bright colours from burning out, then encodes for the screen.
vec3 to_screen(vec3 light) {
  light = light * (1.0 + light * 0.16) / (1.0 + light * 0.42);
  // The sRGB curve by square roots, which software devices do fast; within 0.001.
  vec3 a = sqrt(clamp(light, 0.0, 1.0)), b = sqrt(a), c = sqrt(b);
  return clamp(0.662002687 * a + 0.684122060 * b - 0.323583601 * c - 0.0225411470 * light, 0.0, 1.0);
}

float hash(vec2 cell) {
  uvec2 q = uvec2(ivec2(cell)) * uvec2(1597334673u, 3812015801u);
  uint n = (q.x ^ q.y) * 1597334673u;
  return float(n >> 8) * (1.0 / 16777216.0);
}

// Smooth noise, 0..1.
float noise(vec2 p) {
  vec2 cell = floor(p), f = fract(p);
  f = f * f * (3.0 - 2.0 * f);
  return mix(mix(hash(cell), hash(cell + vec2(1, 0)), f.x),
             mix(hash(cell + vec2(0, 1)), hash(cell + vec2(1, 1)), f.x), f.y);
}
