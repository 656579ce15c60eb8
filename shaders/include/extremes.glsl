// Maximum and minimum. GLSL's own are undefined for NaN; here a NaN operand gives NaN.
float imp_max(float a, float b) { return a >= b || isnan(a) ? a : b; }
float imp_min(float a, float b) { return a <= b || isnan(a) ? a : b; }
int imp_max(int a, int b) { return max(a, b); }
int imp_min(int a, int b) { return min(a, b); }
