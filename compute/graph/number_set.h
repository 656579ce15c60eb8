#pragma once
// Sets for walks over a graph.

#include <cstdint>
#include <vector>

#include "compute/base/at.h"

namespace imprint::graph {

// Numbers from 0. Constant time each: open addressing in a table that is at most half full. It costs what it
// holds, not what the graph has.
class NumberSet {
 public:
  // False if it was there.
  bool insert(std::int64_t number) {
    if (2 * (count_ + 1) > table_.size()) grow();
    const std::size_t slot = slot_of(number);
    if (table_[slot] == number) return false;
    table_[slot] = number;
    ++count_;
    return true;
  }
  bool contains(std::int64_t number) const { return count_ > 0 && table_[slot_of(number)] == number; }
  std::size_t size() const { return count_; }
  template <class Use>
  void each(const Use& use) const {  // in no order
    for (std::int64_t number : table_)
      if (number >= 0) use(number);
  }

 private:
  std::size_t slot_of(std::int64_t number) const {
    const std::size_t mask = table_.size() - 1;
    std::size_t slot = static_cast<std::uint64_t>(number) * 0x9e3779b97f4a7c15u >> 32 & mask;
    while (table_[slot] >= 0 && table_[slot] != number) slot = (slot + 1) & mask;
    return slot;
  }

  void grow() {
    std::vector<std::int64_t> old(table_.empty() ? 16 : 2 * table_.size(), -1);
    old.swap(table_);
    for (std::int64_t number : old)
      if (number >= 0) table_[slot_of(number)] = number;
  }

  std::vector<std::int64_t> table_;  // -1: free; its size is a power of two
  std::size_t count_ = 0;
};

// Positions below a fixed count. Constant time each, to empty it too.
class Marks {
 public:
  explicit Marks(std::size_t count) : marked_in_(count, 0) {}

  void clear() { ++round_; }
  // False if it was there.
  bool insert(std::int64_t position) {
    if (contains(position)) return false;
    marked_in_[at(position)] = round_;
    return true;
  }
  bool contains(std::int64_t position) const { return marked_in_[at(position)] == round_; }

 private:
  std::vector<std::uint64_t> marked_in_;
  std::uint64_t round_ = 1;
};

}  // namespace imprint::graph
