// One step of L-BFGS for all parameters together, in one workgroup: optimiser_lbfgs.cpp has the operands. Row
// 0 of the history is the newest.

shared float direction[COUNT];
shared float shares[HISTORY];
shared bool grows;  // the history gets a row
shared float curvature;

float change_of(int i) { return slope(i) - imp_load_1(i); }
float move_of(int i) { return imp_load_2(i) * imp_load_7(0); }

// The history after this step.
float move_at(int k, int i) {
  if (!grows) return imp_load_3(k * COUNT + i);
  return k == 0 ? move_of(i) : imp_load_3((k - 1) * COUNT + i);
}
float change_at(int k, int i) {
  if (!grows) return imp_load_4(k * COUNT + i);
  return k == 0 ? change_of(i) : imp_load_4((k - 1) * COUNT + i);
}
float inverse_at(int k) {
  if (!grows) return imp_load_5(k);
  return k == 0 ? 1.0 / curvature : imp_load_5(k - 1);
}

// The two loops. Each invocation keeps to its own elements of the direction.
void find_direction(int lane, float scale) {
  for (int i = lane; i < COUNT; i += imp_group_size) direction[i] = -slope(i);
  for (int k = 0; k < HISTORY; ++k) {
    float part = 0.0;
    for (int i = lane; i < COUNT; i += imp_group_size) part += move_at(k, i) * direction[i];
    float share = sum_of_group(part) * inverse_at(k);
    if (lane == 0) shares[k] = share;
    for (int i = lane; i < COUNT; i += imp_group_size) direction[i] -= share * change_at(k, i);
  }
  for (int i = lane; i < COUNT; i += imp_group_size) direction[i] *= scale;
  for (int k = HISTORY - 1; k >= 0; --k) {
    float part = 0.0;
    for (int i = lane; i < COUNT; i += imp_group_size) part += change_at(k, i) * direction[i];
    float share = sum_of_group(part) * inverse_at(k);
    for (int i = lane; i < COUNT; i += imp_group_size) direction[i] += (shares[k] - share) * move_at(k, i);
  }
}

void store_state(int lane, bool alive, float scale, float rate) {
  for (int i = lane; i < COUNT; i += imp_group_size) {
    imp_store_0(i, alive ? slope(i) : imp_load_1(i));
    imp_store_1(i, alive ? direction[i] : imp_load_2(i));
  }
  for (int e = lane; e < HISTORY * COUNT; e += imp_group_size) {
    imp_store_2(e, alive ? move_at(e / COUNT, e % COUNT) : imp_load_3(e));
    imp_store_3(e, alive ? change_at(e / COUNT, e % COUNT) : imp_load_4(e));
  }
  for (int k = lane; k < HISTORY; k += imp_group_size) imp_store_4(k, alive ? inverse_at(k) : imp_load_5(k));
  if (lane > 0) return;
  imp_store_5(0, alive ? scale : imp_load_6(0));
  imp_store_6(0, alive ? rate : imp_load_7(0));
  imp_store_7(0, alive ? imp_load_8(0) + 1 : imp_load_8(0));
}

void imp_page(int group) {
  int lane = int(gl_LocalInvocationID.x);
  bool first = imp_load_8(0) == 0;
  float curved = 0.0, squares = 0.0, sizes = 0.0, large = 0.0;
  for (int i = lane; i < COUNT; i += imp_group_size) {
    float change = change_of(i), size = abs(slope(i));
    curved += change * move_of(i);
    squares += change * change;
    sizes += size;
    if (size > kLeastGradient) large = 1.0;
  }
  curved = sum_of_group(curved);
  squares = sum_of_group(squares);
  sizes = sum_of_group(sizes);
  bool alive = sum_of_group(large) > 0.0 && is_active();
  bool is_longer = !first && curved > kLeastCurvature;
  if (lane == 0) {
    grows = is_longer;
    curvature = curved;
  }
  barrier();
  float scale = first ? 1.0 : is_longer ? curved / squares : imp_load_6(0);
  find_direction(lane, scale);
  float rate = imp_load_0(0), descent = 0.0;
  for (int i = lane; i < COUNT; i += imp_group_size) {
    if (first) direction[i] = -slope(i);
    descent += slope(i) * direction[i];
  }
  if (first) rate *= min(1.0, 1.0 / sizes);
  descent = sum_of_group(descent);
  bool goes = alive && descent <= -kLeastChange;
  for (int i = lane; i < COUNT; i += imp_group_size)
    store_parameter(i, goes ? parameter(i) + rate * direction[i] : parameter(i));
  store_state(lane, alive, scale, rate);
}
