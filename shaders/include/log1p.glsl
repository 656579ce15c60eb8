// log(1 + x), corrected for the rounding of 1 + x (Goldberg, What Every Computer Scientist Should Know, 1991,
// theorem 4).
float imp_log1p(float x) {
  precise float u = 1.0 + x;
  precise float d = u - 1.0;
  if (d == 0.0) return x;
  if (imp_is_inf(u)) return u;
  return log(u) * (x / d);
}
