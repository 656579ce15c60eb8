// In float16 arithmetic, for what is rounded to float16 next: 2^-10, and a fifth of the time of a policy less
// than by an exponential in float32 (H200).
float imp_tanh_half(float x) { return float(tanh(float16_t(x))); }
