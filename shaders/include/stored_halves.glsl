// The nearest float16 of a number or of four, halves to even. ROUNDS_HALVES: the kernel asked for conversions
// that round so and keep subnormals. No functions: with 16-bit storage alone none returns a float16_t.
#ifdef ROUNDS_HALVES
#define imp_half(number) float16_t(number)
#define imp_four_halves(four) f16vec4(four)
#else
#define imp_half(number) float16_t(imp_to_half(number))
#define imp_four_halves(four) \
  f16vec4(vec4(imp_to_half((four).x), imp_to_half((four).y), imp_to_half((four).z), imp_to_half((four).w)))
#endif
