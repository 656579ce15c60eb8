// Non-maximum suppression: one workgroup per list of LENGTH boxes, the best first, of which the first
// imp_load_1 count. Writes the positions of up to MOST boxes that stay, then -1, and how many stay.

shared uint gone[WORDS];  // a bit per box

struct Corners {
  vec2 low, high;
};

Corners corners_of(int box) {
  vec2 a = vec2(imp_load_0(box * 4), imp_load_0(box * 4 + 1));
  vec2 b = vec2(imp_load_0(box * 4 + 2), imp_load_0(box * 4 + 3));
  return Corners(min(a, b), max(a, b));
}

float area_of(Corners box) { return (box.high.x - box.low.x) * (box.high.y - box.low.y); }

float overlap_of(Corners a, Corners b) {
  vec2 inner = max(min(a.high, b.high) - max(a.low, b.low), vec2(0.0));
  float both = inner.x * inner.y;
  float joined = area_of(a) + area_of(b) - both;
  return area_of(a) > 0.0 && area_of(b) > 0.0 && joined > 0.0 ? both / joined : 0.0;
}

void imp_page(int group) {
  int lane = int(gl_LocalInvocationID.x);
  int valid = imp_load_1(group);
  for (int k = lane; k < WORDS; k += imp_group_size) gone[k] = 0u;
  barrier();
  int kept = 0, at = 0;
  while (true) {
    while (at < valid) {  // to the next box that is left
      uint left = ~gone[at / 32] >> (at & 31);
      if (left != 0u) {
        at += findLSB(left);
        break;
      }
      at = (at / 32 + 1) * 32;
    }
    barrier();  // all invocations have read `gone`
    if (at >= valid || kept == MOST) break;
    if (lane == 0) imp_store_0(group * MOST + kept, at);
    ++kept;
    Corners best = corners_of(group * LENGTH + at);
    for (int k = at + 1 + lane; k < valid && kept < MOST; k += imp_group_size)
      if (overlap_of(best, corners_of(group * LENGTH + k)) > intBitsToFloat(OVERLAP_BITS))
        atomicOr(gone[k / 32], 1u << (k & 31));
    ++at;
    barrier();
  }
  for (int k = kept + lane; k < MOST; k += imp_group_size) imp_store_0(group * MOST + k, -1);
  if (lane == 0) imp_store_1(group, kept);
}
