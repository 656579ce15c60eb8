// Orthonormal columns Q [M, N] and upper triangular R [N, N] of one matrix [M, N] per workgroup: Gram and
// Schmidt's method, twice per column. Source: Giraud, Langou, Rozloznik, The loss of orthogonality in the
// Gram-Schmidt orthogonalization process, 2005.

shared float q[M * N];
shared float r[N * N];
shared float parts[N];

void imp_page(int group) {
  int lane = int(gl_LocalInvocationID.x), start = group * M * N;
  for (int i = lane; i < M * N; i += imp_group_size) q[i] = imp_load_0(start + i);
  for (int i = lane; i < N * N; i += imp_group_size) r[i] = 0.0;
  barrier();
  for (int k = 0; k < N; ++k) {
    for (int turn = 0; turn < 2; ++turn) {
      for (int j = lane; j < k; j += imp_group_size) {
        float sum = 0.0;
        for (int i = 0; i < M; ++i) sum += q[i * N + j] * q[i * N + k];
        parts[j] = sum;
        r[j * N + k] += sum;
      }
      barrier();
      for (int i = lane; i < M; i += imp_group_size)
        for (int j = 0; j < k; ++j) q[i * N + k] -= parts[j] * q[i * N + j];
      barrier();
    }
    if (lane == 0) {
      float squares = 0.0;
      for (int i = 0; i < M; ++i) squares += q[i * N + k] * q[i * N + k];
      r[k * N + k] = sqrt(squares);
    }
    barrier();
    for (int i = lane; i < M; i += imp_group_size) q[i * N + k] /= r[k * N + k];
    barrier();
  }
  for (int i = lane; i < M * N; i += imp_group_size) imp_store_0(start + i, q[i]);
  for (int i = lane; i < N * N; i += imp_group_size) imp_store_1(group * N * N + i, r[i]);
}
