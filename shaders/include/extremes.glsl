// Maximum and minimum. GLSL's own are undefined for NaN; here a NaN operand gives NaN. Of -0 and 0 the
// device takes either.
float imp_max(float a, float b) { return imp_is_nan(a) ? a : imp_is_nan(b) ? b : max(a, b); }
float imp_min(float a, float b) { return imp_is_nan(a) ? a : imp_is_nan(b) ? b : min(a, b); }
// The same between literals, of which the first is not the greater.
float imp_clamp(float x, float least, float most) { return imp_is_nan(x) ? x : clamp(x, least, most); }
int imp_max(int a, int b) { return max(a, b); }
int imp_min(int a, int b) { return min(a, b); }
