#include "compute/tensor/ops/linear_algebra.h"

#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "compute/base/text.h"
#include "compute/tensor/build.h"
#include "compute/tensor/composites/composites.h"
#include "compute/tensor/pages/library_page.h"

namespace imprint {

using namespace tensor;

namespace {

constexpr std::int64_t kSmallMatrix = 64;       // rows that one workgroup takes
constexpr std::int64_t kSharedElements = 4096;  // 16 KiB, which every device has
constexpr int kMatrixGroup = 64;

// Elements of page values, by matrix, row and column.
struct Matrices {
  float* data;
  std::int64_t rows, columns;
  float& operator()(std::int64_t matrix, std::int64_t i, std::int64_t j) const {
    return data[(matrix * rows + i) * columns + j];
  }
};

Matrices matrices(const PageArray& array) { return {array.floats().data(), array.shape[1], array.shape[2]}; }

LibraryPage matrix_page(const char* name, std::int64_t groups) {
  LibraryPage page;
  page.name = name;
  page.shader = std::string("pages/") + name;
  page.groups = groups;
  page.group_size = kMatrixGroup;
  return page;
}

// Checks a for [..., rows, columns] of float32; square: rows == columns.
std::optional<Tensor> refused_matrix(std::string_view op, const Tensor& a, bool square, std::int64_t most) {
  if (!a.ok()) return a;
  if (a.dtype() != DType::float32) return bad_dtype(op, a, "float32");
  if (a.rank() < 2 || (square && a.extent(-1) != a.extent(-2)))
    return failure(ErrorCode::shape_mismatch, op,
                   text("found ", describe(a), ", expected ", square ? "[..., n, n]" : "[..., m, n]"));
  if (a.extent(-1) > most)
    return failure(ErrorCode::shape_mismatch, op,
                   text("found ", describe(a), ", expected at most ", most, " columns"));
  return std::nullopt;
}

Shape with_last(Shape shape, std::int64_t rows, std::int64_t columns) {
  shape[shape.rank() - 2] = rows;
  shape[shape.rank() - 1] = columns;
  return shape;
}

Shape without_last(const Shape& shape, int count) {
  Shape kept;
  for (int axis = 0; axis + count < shape.rank(); ++axis) kept.append(shape[axis]);
  return kept;
}

// As [matrices, rows, columns].
Tensor as_batch(const Tensor& a) {
  const std::int64_t each = a.extent(-1) * a.extent(-2);
  return reshape(a, {each == 0 ? 0 : a.shape().element_count() / each, a.extent(-2), a.extent(-1)});
}

Tensor block(const Tensor& a, std::int64_t row, std::int64_t rows, std::int64_t column,
             std::int64_t columns) {
  return narrow(narrow(a, -2, row, rows), -1, column, columns);
}

// Blocks of whole workgroups come first.
std::int64_t first_half(std::int64_t n) { return (n / 2 + kSmallMatrix - 1) / kSmallMatrix * kSmallMatrix; }

// The lower triangle with half of its diagonal.
Tensor lower_half(const Tensor& m) { return tril(m) - 0.5f * (m * eye(m.extent(-1))); }

// m times the inverse of the transpose of an upper triangular matrix.
Tensor by_transposed_inverse(const Tensor& m, const Tensor& upper) {
  return transpose(solve_triangular(upper, transpose(m), true));
}

// ---- cholesky ----

void cholesky_on_cpu(const Matrices& a, const Matrices& into, std::int64_t count) {
  for (std::int64_t m = 0; m < count; ++m)
    for (std::int64_t j = 0; j < a.rows; ++j)
      for (std::int64_t i = 0; i < a.rows; ++i) {
        float sum = i < j ? 0 : a(m, i, j);
        for (std::int64_t k = 0; k < j && i >= j; ++k) sum -= into(m, i, k) * into(m, j, k);
        if (i == j) sum = sum > 0 ? std::sqrt(sum) : std::numeric_limits<float>::quiet_NaN();
        into(m, i, j) = i > j ? sum / into(m, j, j) : sum;
      }
}

Tensor cholesky_of_batch(const Tensor& a) {
  const std::int64_t n = a.extent(-1);
  if (n > kSmallMatrix) {
    const std::int64_t half = first_half(n), rest = n - half;
    const Tensor upper = cholesky_of_batch(block(a, 0, half, 0, half));
    // L21 L11^T = a21.
    const Tensor beside = transpose(solve_triangular(upper, transpose(block(a, half, rest, 0, half))));
    const Tensor lower =
        cholesky_of_batch(block(a, half, rest, half, rest) - matmul(beside, transpose(beside)));
    const Tensor zero = zeros({a.extent(0), half, rest});
    return concat({concat({upper, zero}, -1), concat({beside, lower}, -1)}, -2);
  }
  LibraryPage page = matrix_page("cholesky", a.extent(0));
  page.outputs = {{a.shape()}};
  page.constants = {{"N", n}};
  page.cpu = [](std::span<const PageArray> in, std::span<const PageArray> out) {
    cholesky_on_cpu(matrices(in[0]), matrices(out[0]), in[0].shape[0]);
  };
  // Murray, Differentiation of the Cholesky decomposition, 2016. Only the lower triangle has a gradient.
  page.backward = [](std::span<const Tensor>, std::span<const Tensor> out, std::span<const Tensor> g) {
    const Tensor lt = transpose(out[0]);
    const Tensor left = solve_triangular(lt, lower_half(matmul(lt, tril(g[0]))), true);
    const Tensor both = transpose(solve_triangular(lt, transpose(left), true));
    return std::vector{lower_half(both + transpose(both))};
  };
  return run_page(std::move(page), std::span(&a, 1))[0];
}

// ---- triangles ----

struct Triangle {
  bool upper = false, unit = false;
};

void solve_on_cpu(const Matrices& t, const Matrices& b, const Matrices& x, std::int64_t count,
                  Triangle triangle) {
  for (std::int64_t m = 0; m < count; ++m)
    for (std::int64_t n = 0; n < t.rows; ++n) {
      const std::int64_t i = triangle.upper ? t.rows - 1 - n : n;
      for (std::int64_t column = 0; column < b.columns; ++column) {
        float sum = b(m, i, column);
        for (std::int64_t before = 0; before < n; ++before) {
          const std::int64_t j = triangle.upper ? t.rows - 1 - before : before;
          sum -= t(m, i, j) * x(m, j, column);
        }
        x(m, i, column) = triangle.unit ? sum : sum / t(m, i, i);
      }
    }
}

Tensor solve_batch(const Tensor& t, const Tensor& b, Triangle triangle) {
  const std::int64_t n = t.extent(-1), columns = b.extent(-1);
  if (n > kSmallMatrix) {
    const std::int64_t half = first_half(n), rest = n - half;
    const Tensor above = narrow(b, -2, 0, half), below = narrow(b, -2, half, rest);
    const Tensor first = block(t, 0, half, 0, half), last = block(t, half, rest, half, rest);
    if (triangle.upper) {
      const Tensor x = solve_batch(last, below, triangle);
      return concat({solve_batch(first, above - matmul(block(t, 0, half, half, rest), x), triangle), x}, -2);
    }
    const Tensor x = solve_batch(first, above, triangle);
    return concat({x, solve_batch(last, below - matmul(block(t, half, rest, 0, half), x), triangle)}, -2);
  }
  LibraryPage page =
      matrix_page("solve_triangular", (t.extent(0) * columns + kMatrixGroup - 1) / kMatrixGroup);
  page.outputs = {{b.shape()}};
  page.constants = {{"N", n},
                    {"K", columns},
                    {"MATRICES", t.extent(0)},
                    {"UPPER", triangle.upper},
                    {"UNIT", triangle.unit}};
  page.loads = static_cast<double>(columns);
  page.cpu = [triangle](std::span<const PageArray> in, std::span<const PageArray> out) {
    solve_on_cpu(matrices(in[0]), matrices(in[1]), matrices(out[0]), in[0].shape[0], triangle);
  };
  page.backward = [triangle](std::span<const Tensor> in, std::span<const Tensor> out,
                             std::span<const Tensor> g) {
    const Tensor of_b = solve_batch(transpose(in[0]), g[0], {!triangle.upper, triangle.unit});
    const Tensor of_t = matmul(of_b, transpose(out[0])) * -1.0f;
    const std::int64_t diagonal = triangle.unit ? 1 : 0;
    return std::vector{triangle.upper ? triu(of_t, diagonal) : tril(of_t, -diagonal), of_b};
  };
  const Tensor inputs[] = {t, b};
  return run_page(std::move(page), inputs)[0];
}

// ---- lu and qr ----

void lu_on_cpu(const Matrices& f, std::int32_t* rows, float& swaps, std::int64_t m) {
  const std::int64_t n = f.rows;
  swaps = 1;
  for (std::int64_t k = 0; k < n; ++k) rows[k] = static_cast<std::int32_t>(k);
  for (std::int64_t k = 0; k < n; ++k) {
    std::int64_t pivot = k;
    for (std::int64_t i = k + 1; i < n; ++i)
      if (std::fabs(f(m, i, k)) > std::fabs(f(m, pivot, k))) pivot = i;
    if (pivot != k) {
      swaps = -swaps;
      std::swap(rows[k], rows[pivot]);
      for (std::int64_t j = 0; j < n; ++j) std::swap(f(m, k, j), f(m, pivot, j));
    }
    for (std::int64_t i = k + 1; i < n; ++i) {
      f(m, i, k) /= f(m, k, k);
      for (std::int64_t j = k + 1; j < n; ++j) f(m, i, j) -= f(m, i, k) * f(m, k, j);
    }
  }
}

// Gram and Schmidt's method, twice per column.
void qr_on_cpu(const Matrices& q, const Matrices& r, std::int64_t m) {
  for (std::int64_t k = 0; k < q.columns; ++k) {
    for (std::int64_t j = 0; j < q.columns; ++j) r(m, j, k) = 0;
    for (int turn = 0; turn < 2; ++turn) {
      std::vector<float> parts(static_cast<std::size_t>(k));
      for (std::int64_t j = 0; j < k; ++j) {
        float& part = parts[static_cast<std::size_t>(j)];
        for (std::int64_t i = 0; i < q.rows; ++i) part += q(m, i, j) * q(m, i, k);
        r(m, j, k) += part;
      }
      for (std::int64_t i = 0; i < q.rows; ++i)
        for (std::int64_t j = 0; j < k; ++j) q(m, i, k) -= parts[static_cast<std::size_t>(j)] * q(m, i, j);
    }
    float squares = 0;
    for (std::int64_t i = 0; i < q.rows; ++i) squares += q(m, i, k) * q(m, i, k);
    r(m, k, k) = std::sqrt(squares);
    for (std::int64_t i = 0; i < q.rows; ++i) q(m, i, k) /= r(m, k, k);
  }
}

// Rows of b [batch, n, k] in the order of the int32 rows [batch, n].
Tensor rows_of(const Tensor& b, const Tensor& rows) {
  return gather(b, 1, expand(unsqueeze(rows, -1), b.shape()));
}

}  // namespace

Tensor cholesky(const Tensor& a) {
  if (const auto error = refused_matrix("cholesky", a, true, std::numeric_limits<std::int32_t>::max()))
    return *error;
  if (a.shape().element_count() == 0) return a;
  return reshape(cholesky_of_batch(as_batch(a)), a.shape());
}

Tensor solve_triangular(const Tensor& a, const Tensor& b, bool upper, bool unit_diagonal) {
  if (const auto error =
          refused_matrix("solve_triangular", a, true, std::numeric_limits<std::int32_t>::max()))
    return *error;
  if (const auto error =
          refused_matrix("solve_triangular", b, false, std::numeric_limits<std::int32_t>::max()))
    return *error;
  if (b.extent(-2) != a.extent(-1) || without_last(a.shape(), 2) != without_last(b.shape(), 2))
    return failure(
        ErrorCode::shape_mismatch, "solve_triangular",
        text("found ", describe(a), " and ", describe(b), ", expected [..., n, n] and [..., n, k]"));
  if (b.shape().element_count() == 0) return b;
  return reshape(solve_batch(as_batch(a), as_batch(b), {upper, unit_diagonal}), b.shape());
}

LuFactors lu(const Tensor& a) {
  if (const auto error = refused_matrix("lu", a, true, kSmallMatrix)) return {*error, *error, *error};
  const Shape rows = without_last(a.shape(), 1), batch = without_last(a.shape(), 2);
  if (a.shape().element_count() == 0) return {a, zeros(rows, DType::int32), ones(batch)};
  const Tensor flat = as_batch(a);
  const std::int64_t count = flat.extent(0), n = flat.extent(-1);
  LibraryPage page = matrix_page("lu", count);
  page.outputs = {{flat.shape()}, {{count, n}, DType::int32}, {{count}}};
  page.work = 2 * static_cast<double>(count * n) * static_cast<double>(n * n);
  page.constants = {{"N", n}};
  page.cpu = [](std::span<const PageArray> in, std::span<const PageArray> out) {
    std::ranges::copy(in[0].floats(), out[0].floats().begin());
    for (std::int64_t m = 0; m < in[0].shape[0]; ++m)
      lu_on_cpu(matrices(out[0]), out[1].ints().data() + m * in[0].shape[1],
                out[2].floats()[static_cast<std::size_t>(m)], m);
  };
  page.backward = [](std::span<const Tensor>, std::span<const Tensor> out, std::span<const Tensor> g) {
    const Tensor unit = eye(out[0].extent(-1));
    const Tensor lower = tril(out[0], -1) + unit, upper = triu(out[0]);
    const Tensor middle =
        tril(matmul(transpose(lower), tril(g[0], -1)), -1) + triu(matmul(triu(g[0]), transpose(upper)));
    const Tensor left = solve_triangular(transpose(lower), middle, true, true);
    return std::vector{rows_of(by_transposed_inverse(left, upper), argsort(out[1], -1))};
  };
  const std::vector<Tensor> found = run_page(std::move(page), std::span(&flat, 1));
  return {reshape(found[0], a.shape()), reshape(found[1], rows), reshape(found[2], batch)};
}

QrFactors qr(const Tensor& a) {
  if (const auto error = refused_matrix("qr", a, false, kSmallMatrix)) return {*error, *error};
  const std::int64_t m = a.extent(-2), n = a.extent(-1);
  if (m < n || m * n + n * n + n > kSharedElements) {
    const Tensor error =
        failure(ErrorCode::shape_mismatch, "qr",
                text("found ", describe(a),
                     ", expected [..., m, n] with m >= n and m n + n n + n <= ", kSharedElements));
    return {error, error};
  }
  if (a.shape().element_count() == 0) return {a, zeros(with_last(a.shape(), n, n))};
  const Tensor flat = as_batch(a);
  LibraryPage page = matrix_page("qr", flat.extent(0));
  page.outputs = {{flat.shape()}, {{flat.extent(0), n, n}}};
  page.constants = {{"M", m}, {"N", n}};
  page.cpu = [](std::span<const PageArray> in, std::span<const PageArray> out) {
    std::ranges::copy(in[0].floats(), out[0].floats().begin());
    for (std::int64_t matrix = 0; matrix < in[0].shape[0]; ++matrix)
      qr_on_cpu(matrices(out[0]), matrices(out[1]), matrix);
  };
  // Walter and Lehmann, Algorithmic Differentiation of Linear Algebra Functions, 2010.
  page.backward = [](std::span<const Tensor>, std::span<const Tensor> out, std::span<const Tensor> g) {
    const Tensor &q = out[0], &r = out[1];
    const Tensor both = matmul(r, transpose(triu(g[1]))) - matmul(transpose(g[0]), q);
    const Tensor symmetric = tril(both) + transpose(tril(both, -1));
    return std::vector{by_transposed_inverse(g[0] + matmul(q, symmetric), r)};
  };
  const std::vector<Tensor> found = run_page(std::move(page), std::span(&flat, 1));
  return {reshape(found[0], a.shape()), reshape(found[1], with_last(a.shape(), n, n))};
}

Tensor solve(const Tensor& a, const Tensor& b) {
  const LuFactors factors = lu(a);
  if (!factors.factors.ok()) return factors.factors;
  if (const auto error = refused_matrix("solve", b, false, std::numeric_limits<std::int32_t>::max()))
    return *error;
  if (b.extent(-2) != a.extent(-1) || without_last(a.shape(), 2) != without_last(b.shape(), 2))
    return failure(
        ErrorCode::shape_mismatch, "solve",
        text("found ", describe(a), " and ", describe(b), ", expected [..., n, n] and [..., n, k]"));
  if (b.shape().element_count() == 0) return b;
  const Tensor flat = as_batch(b), both = as_batch(factors.factors);
  const Tensor rows = reshape(factors.pivots, {flat.extent(0), flat.extent(1)});
  return reshape(solve_batch(both, solve_batch(both, rows_of(flat, rows), {false, true}), {true, false}),
                 b.shape());
}

Tensor inverse(const Tensor& a) {
  if (const auto error = refused_matrix("inverse", a, true, kSmallMatrix)) return *error;
  return solve(a, expand(eye(a.extent(-1)), a.shape()));
}

Tensor det(const Tensor& a) {
  const LuFactors factors = lu(a);
  return factors.factors.ok() ? factors.permutation * prod(diagonal(factors.factors), {-1}) : factors.factors;
}

SignAndLog slogdet(const Tensor& a) {
  const LuFactors factors = lu(a);
  if (!factors.factors.ok()) return {factors.factors, factors.factors};
  const Tensor along = diagonal(factors.factors);
  return {factors.permutation * prod(sign(along), {-1}), sum(log(abs(along)), {-1})};
}

}  // namespace imprint
