// One step of Muon: optimiser.h has its formula. A matrix per workgroup, of rows_of(p) and columns_of(p). x
// is the matrix or, if that has more rows than columns, its transpose.

shared float x[MOST];
shared float gram[ROWS * ROWS];
shared float mixed[ROWS * ROWS];

// The element of x that element i of the parameter is.
int place_of(int p, int i) {
  int rows = int(rows_of(p)), columns = int(columns_of(p));
  return rows > columns ? i % columns * rows + i / columns : i;
}

// x = 3.4445 x + (2.0315 (x x')^2 - 4.775 x x') x
void iterate(int rows, int columns, int lane) {
  for (int e = lane; e < rows * rows; e += imp_group_size) {
    int left = e / rows * columns, right = e % rows * columns;
    float sum = 0.0;
    for (int k = 0; k < columns; ++k) sum += x[left + k] * x[right + k];
    gram[e] = sum;
  }
  barrier();
  for (int e = lane; e < rows * rows; e += imp_group_size) {
    int left = e / rows * rows, right = e % rows;
    float sum = 0.0;
    for (int k = 0; k < rows; ++k) sum += gram[left + k] * gram[k * rows + right];
    mixed[e] = -4.775 * gram[e] + 2.0315 * sum;
  }
  barrier();
  for (int column = lane; column < columns; column += imp_group_size) {
    float next[ROWS];
    for (int i = 0; i < rows; ++i) {
      next[i] = 3.4445 * x[i * columns + column];
      for (int k = 0; k < rows; ++k) next[i] += mixed[i * rows + k] * x[k * columns + column];
    }
    for (int i = 0; i < rows; ++i) x[i * columns + column] = next[i];
  }
  barrier();
}

void imp_page(int p) {
  int lane = int(gl_LocalInvocationID.x), count = size_of(p);
  int rows = int(min(rows_of(p), columns_of(p))), columns = int(max(rows_of(p), columns_of(p)));
  float size = 0.0;
  for (int i = lane; i < count; i += imp_group_size) {
    float g = gradient(p, i), next = kMomentum * momentum(p, i) + kFresh * g;
    store_momentum(p, i, next);
    float direction = NESTEROV == 1 ? kFresh * g + kMomentum * next : next;
    x[place_of(p, i)] = direction;
    size += direction * direction;
  }
  size = max(sqrt(sum_of_group(size)), kEpsilon);
  for (int i = lane; i < count; i += imp_group_size) x[i] /= size;
  barrier();
  for (int turn = 0; turn < ITERATIONS; ++turn) iterate(rows, columns, lane);
  for (int i = lane; i < count; i += imp_group_size) {
    float old = value(p, i), next = old - rate() * scale_of(p) * x[place_of(p, i)];
    store_value(p, i, next - decay() * old);
  }
}
