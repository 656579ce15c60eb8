#include "plugin/agent/decide/shared_tensor.h"

#include <algorithm>
#include <numeric>

namespace imprint::agent {

Result<std::vector<Variable>> split(const std::string& name, const Shape& shape, DType dtype,
                                    std::uint64_t reach_bytes, std::uint64_t step_bytes) {
  const auto count = static_cast<std::uint64_t>(shape.element_count());
  std::uint64_t row = shape.rank() > 1 ? static_cast<std::uint64_t>(shape[shape.rank() - 1]) : 1;
  const auto rows_within_reach = [&] {
    const std::uint64_t row_bytes = row * dtype_size(dtype),
                        group = step_bytes / std::gcd(step_bytes, row_bytes);
    return reach_bytes / row_bytes / group * group;
  };
  std::uint64_t most = count / row;
  if (count * dtype_size(dtype) > reach_bytes) {
    most = rows_within_reach();
    if (most == 0) row = 1, most = rows_within_reach();
  }
  std::vector<Variable> parts;
  for (std::uint64_t first = 0; first < count / row; first += most) {
    const std::uint64_t rows = std::min(most, count / row - first);
    parts.push_back(
        Variable::external(name, {static_cast<std::int64_t>(rows), static_cast<std::int64_t>(row)}, dtype));
    if (!parts.back().ok()) return parts.back().value().error();
  }
  return parts;
}

Tensor take_from(std::span<const Variable> parts, const Tensor& index) {
  Tensor found;
  int first = 0;
  for (const Variable& part : parts) {
    const auto count = static_cast<int>(part.shape().element_count());
    const Tensor flat = reshape(part.value(), {count});
    if (parts.size() == 1) return take(flat, 0, index);
    const Tensor here = take(flat, 0, minimum(maximum(index - first, 0), count - 1));
    found = first == 0 ? here : where(greater_equal(index, first), here, found);
    first += count;
  }
  return found;
}

std::vector<Update> scatter_to(std::span<const Variable> parts, const Tensor& at, const Tensor& rows) {
  std::vector<Update> updates;
  int first = 0;
  for (const Variable& part : parts) {
    const auto end = first + static_cast<int>(part.shape()[0]);
    const Tensor here =
        parts.size() == 1 ? at : where(greater_equal(at, first), where(less(at, end), at - first, -1), -1);
    updates.push_back(Update::scatter_rows(part, here, rows));
    first = end;
  }
  return updates;
}

}  // namespace imprint::agent
