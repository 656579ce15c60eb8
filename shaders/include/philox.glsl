// Word 0 of a Philox4x32-10 block: Salmon, Moraes, Dror, Shaw, Parallel Random Numbers: As Easy as 1, 2, 3,
// 2011.
uint imp_philox(uvec4 counter, uvec2 key) {
  for (int round = 0; round < 10; ++round) {
    uint high0, low0, high1, low1;
    umulExtended(0xD2511F53u, counter.x, high0, low0);
    umulExtended(0xCD9E8D57u, counter.z, high1, low1);
    counter = uvec4(high1 ^ counter.y ^ key.x, low1, high0 ^ counter.w ^ key.y, low0);
    key += uvec2(0x9E3779B9u, 0xBB67AE85u);
  }
  return counter.x;
}

// In [0, 1) with 24 bits. generator: seed low, seed high, step.
float imp_uniform(int index, uint stream, int seed_low, int seed_high, int step) {
  uint bits = imp_philox(uvec4(uint(index), stream, uint(step), 0u), uvec2(uint(seed_low), uint(seed_high)));
  return float(bits >> 8) * (1.0 / 16777216.0);
}
