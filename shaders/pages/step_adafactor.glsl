// One step of Adafactor: optimiser.h has its formula. A parameter per workgroup: matrices_of(p) matrices of
// rows_of(p) and columns_of(p), or numbers with a moment each where rows_of(p) is 0.

shared float slopes[MOST];
shared float row_means[MOST_ROWS];
shared float column_means[MOST_COLUMNS];
shared float matrix_means[MOST_MATRICES];

float averaged(float old, float next) { return old + exp(log(steps()) * kPower) * (next - old); }

float change_of(int p, int i) {
  float g = slopes[i], estimate = row_means[i];
  if (rows_of(p) > 0.0) {
    int rows = int(rows_of(p)), columns = int(columns_of(p)), matrix = i / (rows * columns);
    estimate = row_means[i / columns] * column_means[matrix * columns + i % columns] /
               max(matrix_means[matrix], kEpsilon1);
  }
  return g * inversesqrt(max(estimate, kEpsilon1 * kEpsilon1));
}

// The moments' next content, in shared memory too.
void take_moments(int p, int lane) {
  int rows = int(rows_of(p)), columns = int(columns_of(p)), matrices = int(matrices_of(p));
  if (rows == 0) {
    for (int i = lane; i < size_of(p); i += imp_group_size) {
      row_means[i] = averaged(rows_moment(p, i), slopes[i] * slopes[i]);
      store_rows_moment(p, i, row_means[i]);
    }
    if (lane == 0) store_columns_moment(p, 0, columns_moment(p, 0));
    return;
  }
  for (int row = lane; row < matrices * rows; row += imp_group_size) {
    float sum = 0.0;
    for (int k = 0; k < columns; ++k) sum += slopes[row * columns + k] * slopes[row * columns + k];
    row_means[row] = averaged(rows_moment(p, row), sum / float(columns));
    store_rows_moment(p, row, row_means[row]);
  }
  for (int column = lane; column < matrices * columns; column += imp_group_size) {
    int first = column / columns * rows * columns + column % columns;
    float sum = 0.0;
    for (int k = 0; k < rows; ++k) sum += slopes[first + k * columns] * slopes[first + k * columns];
    column_means[column] = averaged(columns_moment(p, column), sum / float(rows));
    store_columns_moment(p, column, column_means[column]);
  }
  barrier();
  for (int matrix = lane; matrix < matrices; matrix += imp_group_size) {
    float sum = 0.0;
    for (int k = 0; k < rows; ++k) sum += row_means[matrix * rows + k];
    matrix_means[matrix] = sum / float(rows);
  }
}

void imp_page(int p) {
  int lane = int(gl_LocalInvocationID.x), count = size_of(p);
  for (int i = lane; i < count; i += imp_group_size) slopes[i] = gradient(p, i);
  barrier();
  take_moments(p, lane);
  barrier();
  float size = 0.0, change = 0.0;
  for (int i = lane; i < count; i += imp_group_size) {
    float old = value(p, i), next = change_of(p, i);
    size += old * old;
    change += next * next;
  }
  size = sqrt(sum_of_group(size) / float(count));
  change = sqrt(sum_of_group(change) / float(count));
  float scale = max(size, kEpsilon2) * min(rate(), inversesqrt(steps())), excess = max(change * kClip, 1.0);
  for (int i = lane; i < count; i += imp_group_size) {
    float old = value(p, i), next = old - scale / excess * change_of(p, i);
    store_value(p, i, next - decay() * old);
  }
}
