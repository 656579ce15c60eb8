#version 450
// A host's shaders on shared buffers: they write rows for a learner, and read a program's output.
layout(local_size_x = 64) in;
layout(push_constant) uniform Push { uint mode, seed, count; }
push;
layout(std430, set = 0, binding = 0) buffer Shared { float shared_values[]; };
layout(std430, set = 0, binding = 1) buffer Own { float own_values[]; };

float number(uint index) {  // -1 .. 1
  uint state = (push.seed * 2654435761u + index) * 1664525u + 1013904223u;
  state ^= state >> 15;
  state = state * 2246822519u + 12345u;
  return float(state >> 8) / 8388608.0 - 1.0;
}

void main() {
  uint i = gl_GlobalInvocationID.x;
  if (i >= push.count) return;
  if (push.mode == 0u) {  // rows of x0 .. x3 and the target 2 x0 - x1 + x3 / 2 + 1/4
    float x[4];
    for (uint c = 0u; c < 4u; ++c) {
      x[c] = number(i * 4u + c);
      shared_values[i * 5u + c] = x[c];
    }
    shared_values[i * 5u + 4u] = 2.0 * x[0] - x[1] + 0.5 * x[3] + 0.25;
  } else if (push.mode == 1u) {
    own_values[i] = 2.0 * shared_values[i] + 1.0;
  } else {
    shared_values[i] = float(push.seed);
  }
}
