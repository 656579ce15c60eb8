#version 450
// A ring of turning triangles, and one where the pet is.
layout(push_constant) uniform Push { vec4 place_and_time; }
push;
layout(location = 0) out vec3 colour;

void main() {
  const vec2 corners[3] = vec2[](vec2(0.0, -0.09), vec2(0.08, 0.06), vec2(-0.08, 0.06));
  const float turn = push.place_and_time.z * 0.7 + float(gl_InstanceIndex) * 0.3;
  const vec2 corner = corners[gl_VertexIndex];
  const vec2 turned =
      vec2(cos(turn) * corner.x - sin(turn) * corner.y, sin(turn) * corner.x + cos(turn) * corner.y);
  const float angle = float(gl_InstanceIndex) * 0.2;
  const vec2 ring = vec2(cos(angle), sin(angle)) * (0.4 + 0.4 * sin(push.place_and_time.z + angle * 3.0));
  const bool is_pet = gl_InstanceIndex == 31;
  gl_Position = vec4((is_pet ? push.place_and_time.xy * 0.2 : ring) + turned, 0.5, 1.0);
  colour = is_pet ? vec3(1.0) : vec3(float(gl_VertexIndex) * 0.5, float(gl_InstanceIndex) / 31.0, 0.6);
}
