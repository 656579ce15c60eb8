#pragma once
// Private: whole numbers that follow from named extents (compute/docs/extents.md), as shape arithmetic of a
// model has them: 2 * batch * length + 1.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "compute/tensor/extent_sums.h"
#include "compute/tensor/shape.h"
#include "compute/tensor/tensor.h"

namespace imprint::onnx {

// A sum of products of extents. Exact: an operation whose result has no such form, or is too large, gives
// nothing.
class SymbolicInt {
 public:
  SymbolicInt(std::int64_t number = 0);
  // The extent that a run has along an axis. One of too many terms is !ok(): operations on it give nothing,
  // and it equals no other.
  static SymbolicInt of(const Shape& shape, int axis);

  bool ok() const { return ok_; }
  std::optional<std::int64_t> number() const;          // when it follows from no extent
  std::int64_t least() const { return range(false); }  // a lower bound over the extents of all runs
  std::int64_t most() const { return range(true); }
  std::int64_t size() const;  // operations of tensor(), at most

  using Maybe = std::optional<SymbolicInt>;
  // a + times_b * b
  friend Maybe added(const SymbolicInt& a, const SymbolicInt& b, std::int64_t times_b);
  friend Maybe product(const SymbolicInt& a, const SymbolicInt& b);
  // Rounded down. Nothing: it may be negative, or is no sum of extents.
  Maybe over(std::int64_t by) const;
  // Only without a rest, for all extents.
  friend Maybe quotient(const SymbolicInt& a, const SymbolicInt& b);
  bool operator==(const SymbolicInt& other) const { return ok_ && other.ok_ && terms_ == other.terms_; }

  // The axis that has this many places: of 0 or more, one product of extents, or a sum of extents. Nothing
  // for sums of products.
  std::optional<tensor::ShapeAxis> axis() const;
  Tensor tensor() const;     // an int32 scalar, computed in each run
  std::string text() const;  // "2 * batch + 1"

 private:
  using Factors = std::vector<tensor::AxisName>;  // of single extents, sorted
  static SymbolicInt not_ok();
  std::optional<tensor::ExtentSum> extent_sum() const;
  std::optional<tensor::ShapeAxis> sum_axis() const;
  std::int64_t range(bool upper) const;
  bool add(const Factors& factors, std::int64_t times);
  void add_extent(const std::string& extent, std::int64_t bound, std::int64_t times);

  std::map<Factors, std::int64_t> terms_;  // none is 0
  bool ok_ = true;
};

// The places of the axes of a run, multiplied. Nothing: too large.
std::optional<SymbolicInt> symbolic_count(const Shape& shape);

// A shape with the axes of these extents. Nothing when one of them can be no axis.
std::optional<Shape> shape_of_extents(const std::vector<SymbolicInt>& extents);

}  // namespace imprint::onnx
