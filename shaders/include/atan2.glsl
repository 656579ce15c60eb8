// The angle of (x, y). GLSL's atan is undefined for two zeros and for NaN: here zeros have signs, as in C,
// and a NaN operand gives NaN.
float imp_atan2(float y, float x) {
  float zeros = floatBitsToInt(x) < 0 ? (floatBitsToInt(y) < 0 ? -3.14159265 : 3.14159265) : y;
  float angle = x == 0.0 && y == 0.0 ? zeros : atan(y, x);
  return imp_is_nan(x) ? x : imp_is_nan(y) ? y : angle;
}
// Vulkan allows a driver's asin and acos an error of 4096 units in the last place, and Mesa's use it. NaN
// outside [-1, 1].
float imp_asin(float x) {
  return imp_atan2(x, abs(x) <= 1.0 ? sqrt((1.0 - x) * (1.0 + x)) : uintBitsToFloat(0x7fc00000u));
}
float imp_acos(float x) {
  return imp_atan2(abs(x) <= 1.0 ? sqrt((1.0 - x) * (1.0 + x)) : uintBitsToFloat(0x7fc00000u), x);
}
