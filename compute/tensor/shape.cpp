#include "compute/tensor/shape.h"

#include <algorithm>
#include <limits>

#include "compute/base/at.h"
#include "compute/base/text.h"

namespace imprint {

using namespace tensor;

Shape::Shape(std::initializer_list<std::int64_t> extents)
    : Shape(std::span<const std::int64_t>(extents.begin(), extents.size())) {}

Shape::Shape(std::span<const std::int64_t> extents) {
  for (std::int64_t extent : extents) append(extent);
}

std::int64_t Shape::element_count() const {
  constexpr std::int64_t kLargest = std::numeric_limits<std::int64_t>::max();
  std::int64_t count = 1;
  for (std::int64_t extent : extents()) {
    if (extent == 0) return 0;
    // Saturates, so that an absurd shape from a file cannot wrap around to a small count.
    count = extent > 0 && count > kLargest / extent ? kLargest : count * extent;
  }
  return count;
}

Shape::Shape(std::initializer_list<ShapeAxis> axes) {
  for (const ShapeAxis& axis : axes) {
    append(axis.extent);
    set_name(rank_ - 1, axis.name);
  }
}

void Shape::append(std::int64_t extent) {
  if (rank_ < kMaxRank) extents_[at(rank_++)] = extent;
}

void Shape::append(const Shape& other, int axis) {
  if (rank_ == kMaxRank) return;
  names_.set(at(rank_), other.names_[at(axis)]);
  extents_[at(rank_++)] = other[axis];
}

AxisName Shape::name(int axis) const { return is_named(axis) ? names_[at(axis)] : AxisName(); }

std::vector<AxisPart> Shape::parts(int axis) const {
  return is_named(axis) ? names_.axis(at(axis)).parts : std::vector<AxisPart>{{{}, (*this)[axis], 1}};
}

bool Shape::is_named(int axis) const {
  return names_.has(at(axis)) && names_.axis(at(axis)).places == (*this)[axis];
}

bool Shape::is_named() const {
  if (!names_.any()) return false;
  for (int axis = 0; axis < rank_; ++axis)
    if (is_named(axis)) return true;
  return false;
}

bool Shape::operator==(const Shape& other) const { return std::ranges::equal(extents(), other.extents()); }

std::string Shape::text() const {
  std::string out = "[";
  for (int axis = 0; axis < rank_; ++axis) {
    if (axis > 0) out += ", ";
    out += is_named(axis) ? names_.axis(at(axis)).text() : imprint::text((*this)[axis]);
  }
  return out + "]";
}

std::array<std::int64_t, Shape::kMaxRank> row_major_strides(const Shape& shape) {
  std::array<std::int64_t, Shape::kMaxRank> strides{};
  std::int64_t stride = 1;
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    strides[at(axis)] = stride;
    stride *= shape[axis];
  }
  return strides;
}

std::optional<Shape> broadcast(const Shape& a, const Shape& b) {
  const int rank = std::max(a.rank(), b.rank());
  Shape out;
  for (int axis = 0; axis < rank; ++axis) {
    const int axis_a = axis - (rank - a.rank());
    const int axis_b = axis - (rank - b.rank());
    const std::int64_t extent_a = axis_a < 0 ? 1 : a[axis_a];
    const std::int64_t extent_b = axis_b < 0 ? 1 : b[axis_b];
    if (extent_a != extent_b && extent_a != 1 && extent_b != 1) return std::nullopt;
    const bool of_b =
        axis_a < 0 || (axis_b >= 0 && (extent_a == 1 || (extent_a == extent_b && !a.is_named(axis_a))));
    of_b ? out.append(b, axis_b) : out.append(a, axis_a);
  }
  return out;
}

std::optional<int> normalize_axis(int axis, int rank) {
  if (axis < -rank || axis >= rank) return std::nullopt;
  return axis < 0 ? axis + rank : axis;
}

}  // namespace imprint
