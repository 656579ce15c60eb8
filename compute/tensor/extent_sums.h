#pragma once
// Extents that follow from others: what grows by a piece in each run, such as past keys and the new ones, has
// past + 1 places, and a window that moves by two places has (width + 1) / 2. Such a sum or quotient is an
// extent of its own, whose name says how it is made: "past<=128 + 1", "(width<=640 + 1) / 2". A program keeps
// its value beside those of its terms (program_extents.cpp).

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compute/tensor/shape.h"
#include "compute/tensor/tensor.h"

namespace imprint::tensor {

struct SumTerm {
  std::string extent;
  std::int64_t bound = 1, times = 1;
};
struct ExtentSum {
  std::vector<SumTerm> terms;  // each extent once, by name
  std::int64_t more = 0;

  // Adds times * other. False: one name has two bounds.
  bool add(const ExtentSum& other, std::int64_t times = 1);
  std::int64_t least() const;  // over the extents of all runs
  std::int64_t most() const;
  std::int64_t value(const std::function<std::int64_t(const std::string&)>& extent_of_run) const;
  Tensor tensor() const;  // an int32 scalar, computed in each run
};

// sum / by, rounded down; 1 or more for all extents.
struct ExtentQuotient {
  ExtentSum sum;  // of extents that are no sums or quotients
  std::int64_t by = 2;
};

// The terms of an extent that is a sum. Nothing: it is none.
std::optional<ExtentSum> sum_of(const std::string& extent);
// How an extent that is a quotient is made. Nothing: it is none.
std::optional<ExtentQuotient> quotient_of(const std::string& extent);
// The extents that a sum or quotient is made of, quotients before what they are made of.
std::vector<SumTerm> terms_of(const std::string& extent);
// The value that a sum or quotient has in a run, 0 or more. Nothing: the extent is neither.
std::optional<std::int64_t> derived_value(
    const std::string& extent, const std::function<std::int64_t(const std::string&)>& extent_of_run);
// sum / by, rounded down. Nothing: it is no sum of extents and quotients of sums of extents.
std::optional<ExtentSum> divided(const ExtentSum& sum, std::int64_t by);
// The places of an axis. Nothing: they are a product of extents.
std::optional<ExtentSum> sum_of_axis(const Shape& shape, int axis);
// The axis that has this many places; named only if a term is. Nothing: too many, or it may have fewer than
// 0.
std::optional<ShapeAxis> axis_of(const ExtentSum& sum);
// The places of a window that moves along an axis of this many. A run whose extent is too short for one has
// no places. Nothing: too many, or none for any extent.
struct WindowSteps {
  std::int64_t size = 1, stride = 1, dilation = 1;
  std::int64_t reach() const { return (size - 1) * dilation + 1; }
};
std::optional<ShapeAxis> windows_along(const ExtentSum& places, const WindowSteps& steps);

// Without the first and last places of an axis, of those that a run has.
Tensor trimmed(const Tensor& x, int axis, std::int64_t before, std::int64_t after);

// As a reader wants it: "past + 1".
std::string extent_text(const std::string& extent);

// Whether a user may give an extent this name: "<=", " + ", " * ", ") / ", " from 0" at the end and "(" at
// the start are of those that are made here.
bool is_extent_name(std::string_view name);

// Extents begin at 1 and have every number up to their bound. One that may be 0, or that is a multiple of a
// step, is a sum of an extent of these names: -1 + past from 0, and 32 * height by 32.
std::string from_zero(std::string_view extent);
std::string in_steps(std::string_view extent, std::int64_t step);
// The name that such an extent was made of; a user's value is step * the extent's - less. Another name:
// itself.
struct GivenExtent {
  std::string name;
  std::int64_t less = 0, step = 1;
  std::int64_t shown(std::int64_t extent) const { return step * extent - less; }
  bool is_given() const { return less == 0 && step == 1; }
};
GivenExtent given_extent(const std::string& name);

}  // namespace imprint::tensor
