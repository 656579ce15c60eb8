#pragma once
// Shapes, row-major strides and NumPy broadcasting. Pure arithmetic.

#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>

namespace imprint {

// Up to kMaxRank extents, outermost first; a scalar has rank 0. Extents are >= 0. A value type without
// allocation.
class Shape {
 public:
  static constexpr int kMaxRank = 8;

  Shape() = default;
  Shape(std::initializer_list<std::int64_t> extents);
  explicit Shape(
      std::span<const std::int64_t> extents);  // at most kMaxRank; the rest is cut (callers check first)

  int rank() const { return rank_; }
  std::int64_t operator[](int axis) const { return extents_[static_cast<std::size_t>(axis)]; }
  std::int64_t& operator[](int axis) { return extents_[static_cast<std::size_t>(axis)]; }
  std::int64_t element_count() const;  // 1 for a scalar
  std::span<const std::int64_t> extents() const { return {extents_.data(), static_cast<std::size_t>(rank_)}; }

  void append(std::int64_t extent);
  bool operator==(const Shape& other) const;
  std::string text() const;  // "[2, 3]"; "[]" for a scalar

 private:
  std::array<std::int64_t, kMaxRank> extents_{};
  int rank_ = 0;
};

// Row-major strides in elements: the last axis has stride 1.
std::array<std::int64_t, Shape::kMaxRank> row_major_strides(const Shape& shape);

// The NumPy broadcast of two shapes, or nothing when an axis differs and neither extent is 1.
std::optional<Shape> broadcast(const Shape& a, const Shape& b);

// Maps a negative axis to its positive counterpart; nothing when it is outside [-rank, rank).
std::optional<int> normalize_axis(int axis, int rank);

}  // namespace imprint
