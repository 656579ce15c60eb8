// The method of Hillis and Steele, Data Parallel Algorithms, 1986.

#include "compute/tensor/ops/associative_scan.h"

#include "compute/base/text.h"
#include "compute/tensor/build.h"

namespace imprint {

using namespace tensor;

Result<std::vector<Tensor>> associative_scan(const Combination& combine, std::span<const Tensor> x, int axis,
                                             bool reverse) {
  if (x.empty())
    return make_error(ErrorCode::invalid_argument,
                      "associative_scan: found no tensors, expected one or more");
  if (const Tensor* failed = first_error(x)) return failed->error();
  const auto position = normalize_axis(axis, x[0].rank());
  if (!position) return bad_axis("associative_scan", axis, x[0]).error();
  const std::int64_t rows = x[0].extent(*position);
  std::vector<Tensor> scanned;
  for (const Tensor& one : x) {
    if (one.rank() <= *position || one.extent(*position) != rows)
      return make_error(ErrorCode::shape_mismatch, text("associative_scan: found ", describe(one),
                                                        ", expected ", rows, " rows along axis ", *position));
    scanned.push_back(reverse ? flip(one, *position) : one);
  }
  const auto part = [&](std::int64_t start, std::int64_t count) {
    std::vector<Tensor> parts;
    for (const Tensor& one : scanned) parts.push_back(narrow(one, *position, start, count));
    return parts;
  };
  for (std::int64_t distance = 1; distance < rows; distance *= 2) {
    const std::vector<Tensor> combined = combine(part(0, rows - distance), part(distance, rows - distance));
    if (combined.size() != scanned.size())
      return make_error(ErrorCode::shape_mismatch, text("associative_scan: found ", combined.size(),
                                                        " combined tensors, expected ", scanned.size()));
    for (std::size_t i = 0; i < scanned.size(); ++i) {
      scanned[i] = concat({narrow(scanned[i], *position, 0, distance), combined[i]}, *position);
      if (!scanned[i].ok()) return scanned[i].error();
    }
  }
  if (reverse)
    for (Tensor& one : scanned) one = flip(one, *position);
  for (std::size_t i = 0; i < x.size(); ++i)
    if (scanned[i].shape() != x[i].shape())
      return make_error(ErrorCode::shape_mismatch,
                        text("associative_scan: found a combination of shape ", scanned[i].shape().text(),
                             ", expected ", x[i].shape().text()));
  return scanned;
}

}  // namespace imprint
