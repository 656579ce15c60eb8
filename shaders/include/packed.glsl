// Elements of less than four bytes, in words. i: the index of an element; a word holds four of 8 bits or two
// of 16, the first in the lowest bits.
int imp_int8(int word, int i) { return bitfieldExtract(word, (i & 3) * 8, 8); }
int imp_uint8(int word, int i) { return (word >> ((i & 3) * 8)) & 255; }
int imp_int16(int word, int i) { return bitfieldExtract(word, (i & 1) * 16, 16); }
int imp_uint16(int word, int i) { return (word >> ((i & 1) * 16)) & 65535; }
ivec4 imp_uint8_four(int word) { return (ivec4(word) >> ivec4(0, 8, 16, 24)) & 255; }
ivec4 imp_int8_four(int word) { return (ivec4(word) << ivec4(24, 16, 8, 0)) >> 24; }
ivec4 imp_uint16_four(int low, int high) {
  return ivec4(low & 65535, (low >> 16) & 65535, high & 65535, (high >> 16) & 65535);
}
ivec4 imp_int16_four(int low, int high) { return (imp_uint16_four(low, high) << 16) >> 16; }

// float16 by its bits: unpackHalf2x16 may flush subnormal numbers.
float imp_half_of(int bits) {
  int magnitude = bits & 0x7fff;
  float value = magnitude < 0x400     ? float(magnitude) / 16777216.0
                : magnitude >= 0x7c00 ? uintBitsToFloat(uint(magnitude << 13) | 0x7f800000u)
                                      : uintBitsToFloat(uint((magnitude << 13) + 0x38000000));
  return (bits & 0x8000) != 0 ? -value : value;
}
float imp_float16(int word, int i) { return imp_half_of(imp_uint16(word, i)); }
vec4 imp_float16_four(int low, int high) {
  ivec4 bits = imp_uint16_four(low, high);
  return vec4(imp_half_of(bits.x), imp_half_of(bits.y), imp_half_of(bits.z), imp_half_of(bits.w));
}
// The value is one of float16 (imp_to_half).
int imp_packed_float16(float value) {
  int bits = floatBitsToInt(value), magnitude = bits & 0x7fffffff;
  int narrow = magnitude > 0x7f800000    ? 0x7e00
               : magnitude == 0x7f800000 ? 0x7c00
               : magnitude < 0x38800000  ? int(intBitsToFloat(magnitude) * 16777216.0)
                                         : (magnitude - 0x38000000) >> 13;
  return narrow | ((bits >> 16) & 0x8000);
}
ivec4 imp_packed_float16(vec4 value) {
  return ivec4(imp_packed_float16(value.x), imp_packed_float16(value.y), imp_packed_float16(value.z),
               imp_packed_float16(value.w));
}

// A bfloat16 is the upper half of a float.
float imp_bfloat16(int word, int i) { return intBitsToFloat(imp_uint16(word, i) << 16); }
vec4 imp_bfloat16_four(int low, int high) { return intBitsToFloat(imp_uint16_four(low, high) << 16); }
// The value is one of bfloat16 (imp_to_bfloat16).
int imp_packed_bfloat16(float value) { return (floatBitsToInt(value) >> 16) & 65535; }
ivec4 imp_packed_bfloat16(vec4 value) { return (floatBitsToInt(value) >> 16) & 65535; }

int imp_pack_8(ivec4 values) {
  ivec4 parts = (values & 255) << ivec4(0, 8, 16, 24);
  return parts.x | parts.y | parts.z | parts.w;
}
ivec2 imp_pack_16(ivec4 values) {
  ivec4 parts = (values & 65535) << ivec4(0, 16, 0, 16);
  return ivec2(parts.x | parts.y, parts.z | parts.w);
}

// Stores one element. Other invocations may store the rest of its word at the same time.
#define imp_put_8(array, at, value)                                 \
  {                                                                 \
    int imp_i = at, imp_shift = (imp_i & 3) * 8, imp_value = value; \
    atomicAnd(array[imp_i / 4], ~(255 << imp_shift));               \
    atomicOr(array[imp_i / 4], (imp_value & 255) << imp_shift);     \
  }
#define imp_put_16(array, at, value)                                 \
  {                                                                  \
    int imp_i = at, imp_shift = (imp_i & 1) * 16, imp_value = value; \
    atomicAnd(array[imp_i / 2], ~(65535 << imp_shift));              \
    atomicOr(array[imp_i / 2], (imp_value & 65535) << imp_shift);    \
  }
