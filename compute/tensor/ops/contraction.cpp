#include "compute/base/text.h"
#include "compute/tensor/build.h"

namespace imprint {

using namespace tensor;

namespace {

Shape leading(const Shape& shape) {
  return Shape(shape.extents().first(static_cast<std::size_t>(shape.rank() - 2)));
}

Shape with_matrix(Shape batch, std::int64_t rows, std::int64_t columns) {
  batch.append(rows);
  batch.append(columns);
  return batch;
}

}  // namespace

Tensor matmul(const Tensor& a, const Tensor& b) {
  if (!a.ok()) return a;
  if (!b.ok()) return b;
  if (a.rank() == 0 || b.rank() == 0)
    return failure(ErrorCode::shape_mismatch, "matmul",
                   text("found ", describe(a), " x ", describe(b),
                        ", expected at least one axis each. Multiply a scalar with * instead."));
  if (a.rank() == 1) {
    const Tensor row = matmul(unsqueeze(a, 0), b);
    return b.rank() == 1 || !row.ok() ? (row.ok() ? squeeze(row, -1) : row) : squeeze(row, -2);
  }
  if (b.rank() == 1) {
    const Tensor column = matmul(a, unsqueeze(b, 1));
    return column.ok() ? squeeze(column, -1) : column;
  }
  const std::optional<Shape> batch = broadcast(leading(a.shape()), leading(b.shape()));
  if (a.extent(-1) != b.extent(-2) || !batch)
    return failure(ErrorCode::shape_mismatch, "matmul",
                   text("found ", describe(a), " x ", describe(b), ", expected ",
                        batch ? text("equal inner extents instead of ", a.extent(-1), " and ", b.extent(-2))
                              : std::string("leading extents that are equal or 1")));
  // One right matrix for all rows makes one contraction over all rows; the matrix's gradient is one
  // contraction too.
  if (a.rank() > 2 && leading(b.shape()).element_count() == 1 && *batch == leading(a.shape())) {
    const Tensor rows = reshape(a, {leading(a.shape()).element_count() * a.extent(-2), a.extent(-1)});
    const Tensor product = make(Op::matmul, {rows, reshape(b, {b.extent(-2), b.extent(-1)})});
    return reshape(product, with_matrix(*batch, a.extent(-2), b.extent(-1)));
  }
  return make(Op::matmul, {expand(a, with_matrix(*batch, a.extent(-2), a.extent(-1))),
                           expand(b, with_matrix(*batch, b.extent(-2), b.extent(-1)))});
}

}  // namespace imprint
