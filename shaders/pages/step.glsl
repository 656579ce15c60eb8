// For the step of a small network, before the page of an optimiser.

shared float step_parts[imp_group_size];

// The sum over the workgroup's invocations, in the same order each time.
float sum_of_group(float x) {
  int lane = int(gl_LocalInvocationID.x);
  barrier();
  step_parts[lane] = x;
  for (int stride = imp_group_size / 2; stride > 0; stride /= 2) {
    barrier();
    if (lane < stride) step_parts[lane] += step_parts[lane + stride];
  }
  barrier();
  return step_parts[0];
}
