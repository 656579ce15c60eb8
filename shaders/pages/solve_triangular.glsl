// Columns of x with T x = b for triangular matrices T [N, N], b [N, K]: one invocation per column.

void imp_page(int group) {
  int column = group * imp_group_size + int(gl_LocalInvocationID.x);
  if (column >= MATRICES * K) return;
  int t = column / K * N * N, b = column / K * N * K + column % K;
  float x[N];
  for (int n = 0; n < N; ++n) {
    int i = UPPER == 1 ? N - 1 - n : n;
    float sum = imp_load_1(b + i * K);
    for (int m = 0; m < n; ++m) {
      int j = UPPER == 1 ? N - 1 - m : m;
      sum -= imp_load_0(t + i * N + j) * x[j];
    }
    x[i] = UNIT == 1 ? sum : sum / imp_load_0(t + i * N + i);
    imp_store_0(b + i * K, x[i]);
  }
}
