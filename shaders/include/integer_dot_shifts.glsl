// imp_dot of integer_dot.glsl without the instruction.
int imp_dot(uint a, uint b) {
  ivec4 shifts = ivec4(24, 16, 8, 0);
  ivec4 products = ((ivec4(int(a)) << shifts) >> 24) * ((ivec4(int(b)) << shifts) >> 24);
  return products.x + products.y + products.z + products.w;
}
