#version 450
// As long as it is told to be.
layout(push_constant) uniform Push { int rounds; }
push;
layout(location = 0) out vec4 colour;
void main() {
  vec4 value = gl_FragCoord * 0.001;
  for (int i = 0; i < push.rounds; ++i) value = fract(value * 1.0003 + value.yzwx * 0.5 + 0.25);
  colour = value;
}
