// The angle of (x, y), where GLSL's own leaves two zeros and NaN undefined: zeros have signs, as in C, and a
// NaN operand gives NaN.
float imp_atan2(float y, float x) {
  float zeros = floatBitsToInt(x) < 0 ? (floatBitsToInt(y) < 0 ? -3.14159265 : 3.14159265) : y;
  float angle = x == 0.0 && y == 0.0 ? zeros : atan(y, x);
  return isnan(x) ? x : isnan(y) ? y : angle;
}
// Vulkan lets a driver's own asin and acos be off by 4096 units in the last place, and Mesa's uses the leave.
// Outside [-1, 1] NaN.
float imp_asin(float x) {
  return imp_atan2(x, abs(x) <= 1.0 ? sqrt((1.0 - x) * (1.0 + x)) : uintBitsToFloat(0x7fc00000u));
}
float imp_acos(float x) {
  return imp_atan2(abs(x) <= 1.0 ? sqrt((1.0 - x) * (1.0 + x)) : uintBitsToFloat(0x7fc00000u), x);
}
