#pragma once
// A signed position as an index: values[at(axis)].

#include <cassert>
#include <cstddef>
#include <cstdint>

namespace imprint {

// The position must not be negative.
constexpr std::size_t at(std::int64_t position) {
  assert(position >= 0);
  return static_cast<std::size_t>(position);
}

}  // namespace imprint
