#pragma once
// Shapes, row-major strides and NumPy broadcasting. Pure arithmetic.

#include <array>
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compute/tensor/axis_name.h"

namespace imprint {

// An extent with a name and a bound, such as `batch <= 64`. A program with such axes is compiled once and
// runs with any extent from 1 to the bound (compute/docs/extents.md). Equal names and bounds are the same
// extent.
class Extent {
 public:
  // bound: 2 to 2^24. name: without "<=" and not with " from 0" at its end. An operation on a shape with
  // another one fails.
  Extent(std::string_view name, std::int64_t bound);
  const std::string& name() const;
  std::int64_t bound() const;
  const tensor::AxisName& axis_name() const { return axis_name_; }

 private:
  tensor::AxisName axis_name_;
};

namespace tensor {

// An axis in a list of extents: fixed, or named.
struct ShapeAxis {
  template <class Integer>
  requires std::integral<Integer> ShapeAxis(Integer fixed) : extent(static_cast<std::int64_t>(fixed)) {}
  ShapeAxis(const Extent& named)  // a bad extent gives -1, which operations refuse
      : extent(named.axis_name() ? named.bound() : -1), name(named.axis_name()) {}
  std::int64_t extent = 0;
  AxisName name;
};

}  // namespace tensor

// Extents, outermost axis first. At most kMaxRank axes; each extent is 0 or more. A scalar has rank 0.
// Allocates nothing.
class Shape {
 public:
  static constexpr int kMaxRank = 8;

  Shape() = default;
  Shape(std::initializer_list<std::int64_t> extents);
  Shape(std::initializer_list<tensor::ShapeAxis> axes);  // {batch, 32} with an Extent
  // Extents beyond kMaxRank are dropped: check the count first.
  explicit Shape(std::span<const std::int64_t> extents);

  int rank() const { return rank_; }
  std::int64_t operator[](int axis) const { return extents_[static_cast<std::size_t>(axis)]; }
  std::int64_t& operator[](int axis) { return extents_[static_cast<std::size_t>(axis)]; }
  // Product of the extents; 1 for a scalar. Stops at the largest int64 instead of overflowing.
  std::int64_t element_count() const;
  std::span<const std::int64_t> extents() const { return {extents_.data(), static_cast<std::size_t>(rank_)}; }

  void append(std::int64_t extent);           // ignored at kMaxRank
  void append(const Shape& other, int axis);  // with its name
  bool operator==(const Shape& other) const;  // of extents; a named one counts as its bound
  std::string text() const;                   // "[2, 3]", "[batch <= 64, 3]"; "[]" for a scalar

  // A name belongs to one extent: it is gone when the extent of its axis is changed.
  bool is_named() const;
  bool is_named(int axis) const;
  tensor::AxisName name(int axis) const;
  std::vector<tensor::AxisPart> parts(int axis) const;  // an axis without a name is one part
  void set_name(int axis, tensor::AxisName name) {
    names_.set(static_cast<std::size_t>(axis), std::move(name));
  }
  void clear_names() { names_ = {}; }

 private:
  std::array<std::int64_t, kMaxRank> extents_{};
  tensor::AxisNames names_;
  int rank_ = 0;
};

// Row-major strides in elements: the last axis has stride 1.
std::array<std::int64_t, Shape::kMaxRank> row_major_strides(const Shape& shape);

// The shape that two operands broadcast to, by NumPy's rules. Empty when an axis differs and neither extent
// is 1.
std::optional<Shape> broadcast(const Shape& a, const Shape& b);

// The axis counted from the front: -1 becomes rank - 1. Empty when the axis is outside [-rank, rank).
std::optional<int> normalize_axis(int axis, int rank);

}  // namespace imprint
