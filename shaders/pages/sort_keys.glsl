// Keys whose unsigned order is the order of a sort. KEY_KIND 0: stored keys; 1: float32; 2: int32. DESCENDING
// 1: the largest first. NaN is last in both directions, and -0 equals 0.
#if KEY_KIND == 1
uint sort_key(float x) {
  if (imp_is_nan(x)) return 0xffffffffu;
  uint bits = x == 0.0 ? 0u : floatBitsToUint(x);
  uint key = (bits & 0x80000000u) != 0u ? ~bits : bits | 0x80000000u;
  return DESCENDING == 1 ? ~key : key;
}
#elif KEY_KIND == 2
uint sort_key(int x) {
  uint key = uint(x) ^ 0x80000000u;
  return DESCENDING == 1 ? ~key : key;
}
#else
uint sort_key(int x) { return uint(x); }
#endif
