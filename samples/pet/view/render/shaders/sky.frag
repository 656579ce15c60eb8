#version 450
#extension GL_GOOGLE_include_directive : require
#include "scene.glsl"

layout(location = 0) out vec4 out_color;

// A calm backdrop: morning blue above, warm below, lighter behind the yard.
void main() {
  vec2 at = gl_FragCoord.xy / scene.picture.xy;
  vec3 top = vec3(0.560, 0.800, 0.880), middle = vec3(0.800, 0.905, 0.890),
       bottom = vec3(0.975, 0.890, 0.775);
  vec3 color = at.y < 0.5 ? mix(top, middle, smoothstep(0.0, 0.5, at.y))
                          : mix(middle, bottom, smoothstep(0.5, 1.05, at.y));
  vec2 away = at - vec2(0.42, 0.42);
  float glow = 1.0 / (1.0 + 5.0 * dot(away, away));
  color += vec3(0.07, 0.06, 0.03) * glow;
  // A grain too fine to see keeps the gradient from banding.
  color += (hash(gl_FragCoord.xy) - 0.5) / 255.0;
  out_color = vec4(color, 1.0);
}
