// Element `position` of a random permutation of 0 .. count - 1: swap-or-not, as philox_permuted of
// compute/base/philox.h explains.
int imp_permuted(int position, int count, int line, uint stream, int seed_low, int seed_high, int step) {
  uvec2 seed = uvec2(uint(seed_low), uint(seed_high));
  for (uint round = 1u; round <= 24u; ++round) {
    uint sum, low;
    umulExtended(imp_philox(uvec4(uint(line), stream, uint(step), round), seed), uint(count), sum, low);
    int partner = int(sum) - position;
    if (partner < 0) partner += count;
    int pair = max(position, partner);
    if ((imp_philox(uvec4(uint(line * count + pair), stream, uint(step), round + 24u), seed) >> 31) != 0u)
      position = partner;
  }
  return position;
}
