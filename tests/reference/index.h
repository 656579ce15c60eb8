#pragma once
// Row-major iteration over a shape.

#include <array>
#include <cstdint>

#include "compute/base/at.h"
#include "compute/tensor/shape.h"

namespace imprint::reference {

using Index = std::array<std::int64_t, Shape::kMaxRank>;

// Calls visit(index, position) for each element.
template <class Visit>
void for_each(const Shape& shape, Visit visit) {
  const std::int64_t count = shape.element_count();
  Index index{};
  for (std::int64_t position = 0; position < count; ++position) {
    visit(static_cast<const Index&>(index), static_cast<std::size_t>(position));
    for (int axis = shape.rank() - 1; axis >= 0; --axis) {
      const auto k = static_cast<std::size_t>(axis);
      if (++index[k] < shape[axis]) break;
      index[k] = 0;
    }
  }
}

inline std::size_t position_of(const Index& index, const Shape& shape) {
  std::int64_t position = 0;
  for (int axis = 0; axis < shape.rank(); ++axis) position = position * shape[axis] + index[at(axis)];
  return static_cast<std::size_t>(position);
}

}  // namespace imprint::reference
