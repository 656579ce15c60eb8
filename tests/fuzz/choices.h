#pragma once
// Bytes as choices from lists: the bytes, and zeros after them.

#include <cstddef>
#include <iterator>

#include "tests/fuzz/harness.h"

namespace imprint::fuzz {

class Choices {
 public:
  explicit Choices(Bytes bytes) : left_(bytes) {}
  bool empty() const { return left_.empty(); }
  std::size_t below(std::size_t count) {
    std::size_t value = 0;
    for (std::size_t reach = 1; reach < count && !left_.empty(); reach <<= 8, left_ = left_.subspan(1))
      value = value << 8 | std::to_integer<std::size_t>(left_[0]);
    return value % count;
  }
  template <class List>
  const auto& of(const List& list) {
    return list[below(std::size(list))];
  }

 private:
  Bytes left_;
};

}  // namespace imprint::fuzz
