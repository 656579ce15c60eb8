#pragma once
// Extents that are sums of others: what grows by a piece in each run, such as past keys and the new ones, has
// past + 1 places. The sum is an extent of its own, whose name lists its terms: "past<=128 + 1". A program
// keeps its value beside those of its terms (program_extents.cpp).

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
  std::int64_t value(const std::function<std::int64_t(const std::string&)>& extent_of_run) const;
  Tensor tensor() const;  // an int32 scalar, computed in each run
};

// The terms of an extent that is a sum. Nothing: it is none.
std::optional<ExtentSum> sum_of(const std::string& extent);
// The places of an axis. Nothing: they are a product of extents.
std::optional<ExtentSum> sum_of_axis(const Shape& shape, int axis);
// The axis that has this many places; named only if a term is. Nothing: it may have fewer than 0, or too
// many.
std::optional<ShapeAxis> axis_of(const ExtentSum& sum);

// As a reader wants it: "past + 1".
std::string extent_text(const std::string& extent);

// Whether a user may give an extent this name: "<=" and " from 0" are in those that are made here.
bool is_extent_name(std::string_view name);

// Extents begin at 1. One that may be 0 is a sum: -1 and an extent of this name.
std::string from_zero(std::string_view extent);
// The extent that the name was made of; nothing: another name.
std::optional<std::string> of_from_zero(const std::string& name);

}  // namespace imprint::tensor
