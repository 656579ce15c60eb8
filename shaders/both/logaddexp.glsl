// log(exp(a) + exp(b)) without overflow; needs log1p.glsl. Equal infinities are kept.
float imp_log1p(float x);

float imp_logaddexp(float a, float b) {
  float most = a >= b ? a : b;
  return a == b ? a + 0.693147181f : most + imp_log1p(exp(-abs(a - b)));
}
