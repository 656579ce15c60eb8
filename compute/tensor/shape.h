#pragma once
// Shapes, row-major strides and NumPy broadcasting. Pure arithmetic.

#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>

namespace imprint {

// Extents, outermost axis first. At most kMaxRank axes; each extent is 0 or more. A scalar has rank 0.
// Allocates nothing.
class Shape {
 public:
  static constexpr int kMaxRank = 8;

  Shape() = default;
  Shape(std::initializer_list<std::int64_t> extents);
  // Extents beyond kMaxRank are dropped: check the count first.
  explicit Shape(std::span<const std::int64_t> extents);

  int rank() const { return rank_; }
  std::int64_t operator[](int axis) const { return extents_[static_cast<std::size_t>(axis)]; }
  std::int64_t& operator[](int axis) { return extents_[static_cast<std::size_t>(axis)]; }
  // Product of the extents; 1 for a scalar. Stops at the largest int64 instead of overflowing.
  std::int64_t element_count() const;
  std::span<const std::int64_t> extents() const { return {extents_.data(), static_cast<std::size_t>(rank_)}; }

  void append(std::int64_t extent);  // ignored at kMaxRank
  bool operator==(const Shape& other) const;
  std::string text() const;  // "[2, 3]"; "[]" for a scalar

 private:
  std::array<std::int64_t, kMaxRank> extents_{};
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
