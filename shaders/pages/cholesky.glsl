// The lower triangular factor of one matrix [N, N] per workgroup, column by column.

shared float matrix[N * N];

void imp_page(int group) {
  int lane = int(gl_LocalInvocationID.x), start = group * N * N;
  for (int i = lane; i < N * N; i += imp_group_size) matrix[i] = imp_load_0(start + i);
  barrier();
  for (int k = 0; k < N; ++k) {
    float diagonal = matrix[k * N + k];
    float pivot = diagonal > 0.0 ? sqrt(diagonal) : uintBitsToFloat(0x7fc00000u);
    barrier();
    for (int i = k + lane; i < N; i += imp_group_size)
      matrix[i * N + k] = i == k ? pivot : matrix[i * N + k] / pivot;
    barrier();
    int rest = N - k - 1;
    for (int e = lane; e < rest * rest; e += imp_group_size) {
      int i = k + 1 + e / rest, j = k + 1 + e % rest;
      if (j <= i) matrix[i * N + j] -= matrix[i * N + k] * matrix[j * N + k];
    }
    barrier();
  }
  for (int i = lane; i < N * N; i += imp_group_size) imp_store_0(start + i, i % N <= i / N ? matrix[i] : 0.0);
}
