// The nearest value of float16 or bfloat16, halves to even. packHalf2x16 may round either way, and drivers
// do. No conversion there and back, in any mode: a driver may leave both out.
float imp_to_half(float x) {
  uint bits = floatBitsToUint(x), magnitude = bits & 0x7fffffffu;
  float rounded = uintBitsToFloat((magnitude + 0xfffu + ((magnitude >> 13) & 1u)) & 0xffffe000u);
  if (magnitude < 0x38800000u)
    rounded = roundEven(uintBitsToFloat(magnitude) * 16777216.0) / 16777216.0;  // subnormal
  if (rounded > 65504.0) rounded = uintBitsToFloat(0x7f800000u);
  return imp_is_nan(x) ? x : (bits >> 31) != 0u ? -rounded : rounded;
}
uint imp_bfloat16_bits(float x) {
  uint bits = floatBitsToUint(x);
  return (imp_is_nan(x) ? bits | 0x400000u : bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
}
uvec4 imp_bfloat16_bits(vec4 x) {
  return uvec4(imp_bfloat16_bits(x.x), imp_bfloat16_bits(x.y), imp_bfloat16_bits(x.z),
               imp_bfloat16_bits(x.w));
}
float imp_to_bfloat16(float x) { return uintBitsToFloat(imp_bfloat16_bits(x) << 16); }
