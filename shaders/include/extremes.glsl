// Maximum and minimum. GLSL's own are undefined for NaN; here a NaN operand gives NaN.
float imp_max(float a, float b) { return imp_is_nan(a) || (a >= b && !imp_is_nan(b)) ? a : b; }
float imp_min(float a, float b) { return imp_is_nan(a) || (a <= b && !imp_is_nan(b)) ? a : b; }
int imp_max(int a, int b) { return max(a, b); }
int imp_min(int a, int b) { return min(a, b); }
