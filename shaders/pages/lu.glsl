// LU factors of one matrix [N, N] per workgroup, with partial pivoting: the first of the largest elements.

shared float matrix[N * N];
shared int rows[N];
shared int chosen;

void imp_page(int group) {
  int lane = int(gl_LocalInvocationID.x), start = group * N * N;
  for (int i = lane; i < N * N; i += imp_group_size) matrix[i] = imp_load_0(start + i);
  for (int i = lane; i < N; i += imp_group_size) rows[i] = i;
  barrier();
  float swaps = 1.0;
  for (int k = 0; k < N; ++k) {
    if (lane == 0) {
      chosen = k;
      for (int i = k + 1; i < N; ++i)
        if (abs(matrix[i * N + k]) > abs(matrix[chosen * N + k])) chosen = i;
    }
    barrier();
    int pivot = chosen;
    if (pivot != k) {
      swaps = -swaps;
      for (int j = lane; j < N; j += imp_group_size) {
        float upper = matrix[k * N + j];
        matrix[k * N + j] = matrix[pivot * N + j];
        matrix[pivot * N + j] = upper;
      }
      if (lane == 0) {
        int row = rows[k];
        rows[k] = rows[pivot];
        rows[pivot] = row;
      }
    }
    barrier();
    for (int i = k + 1 + lane; i < N; i += imp_group_size) matrix[i * N + k] /= matrix[k * N + k];
    barrier();
    int rest = N - k - 1;
    for (int e = lane; e < rest * rest; e += imp_group_size) {
      int i = k + 1 + e / rest, j = k + 1 + e % rest;
      matrix[i * N + j] -= matrix[i * N + k] * matrix[k * N + j];
    }
    barrier();
  }
  for (int i = lane; i < N * N; i += imp_group_size) imp_store_0(start + i, matrix[i]);
  for (int i = lane; i < N; i += imp_group_size) imp_store_1(group * N + i, rows[i]);
  if (lane == 0) imp_store_2(group, swaps);
}
