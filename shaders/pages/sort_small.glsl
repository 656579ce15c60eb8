// Sorts lines of up to SIZE elements, a power of two, in shared memory: LINES_HERE of them per workgroup.
// Ties are decided by position, so that the bitonic network is stable. Source: Batcher, Sorting networks and
// their applications, 1968.

shared uint keys[SIZE * LINES_HERE];
shared int positions[SIZE * LINES_HERE];

void imp_page(int group) {
  int lane = int(gl_LocalInvocationID.x);
  for (int k = lane; k < SIZE * LINES_HERE; k += imp_group_size) {
    int line = group * LINES_HERE + k / SIZE, at = k % SIZE;
    bool inside = at < LENGTH && line < LINES;
    keys[k] = inside ? sort_key(imp_load_0(line * LENGTH + at)) : 0xffffffffu;
    positions[k] = at;
  }
  barrier();
  for (int run = 2; run <= SIZE; run <<= 1)
    for (int distance = run / 2; distance > 0; distance >>= 1) {
      for (int pair = lane; pair < SIZE * LINES_HERE / 2; pair += imp_group_size) {
        int a = pair / distance * distance * 2 + pair % distance, b = a + distance;
        bool is_up = (a & (SIZE - 1) & run) == 0;
        uint key_a = keys[a], key_b = keys[b];
        int position_a = positions[a], position_b = positions[b];
        bool is_after = key_a > key_b || (key_a == key_b && position_a > position_b);
        if (is_after == is_up) {
          keys[a] = key_b;
          keys[b] = key_a;
          positions[a] = position_b;
          positions[b] = position_a;
        }
      }
      barrier();
    }
  for (int k = lane; k < SIZE * LINES_HERE; k += imp_group_size) {
    int line = group * LINES_HERE + k / SIZE, at = k % SIZE;
    if (at >= LENGTH || line >= LINES) continue;
    imp_store_0(line * LENGTH + at, positions[k]);
    imp_store_1(line * LENGTH + at, int(keys[k]));
  }
}
