#include "compute/graph/schedule/memory_plan.h"

#include <algorithm>
#include <numeric>

namespace imprint::graph {
namespace {

// Occupied bytes as disjoint ranges, ascending. Ranges that touch become one. Most sets are one range, which
// needs no allocation.
class Ranges {
 public:
  void add(std::uint64_t begin, std::uint64_t end) {
    if (!more_.empty()) return add_to_more(begin, end);
    if (empty()) {
      only_ = {begin, end};
    } else if (only_.begin <= end && begin <= only_.end) {
      only_ = {std::min(begin, only_.begin), std::max(end, only_.end)};
    } else {
      more_ = {only_, {begin, end}};
      if (begin < only_.begin) std::swap(more_.front(), more_.back());
    }
  }

  // The end of the first range that meets begin .. begin + bytes; `begin` if none does.
  std::uint64_t end_of_obstacle(std::uint64_t begin, std::uint64_t bytes) const {
    const std::span<const Range> ranges = more_.empty() ? std::span(&only_, 1) : std::span(more_);
    const auto found = std::ranges::upper_bound(ranges, begin, {}, &Range::end);
    return found != ranges.end() && found->begin < begin + bytes ? found->end : begin;
  }
  bool empty() const { return more_.empty() && only_.begin == only_.end; }

 private:
  struct Range {
    std::uint64_t begin = 0, end = 0;
  };

  void add_to_more(std::uint64_t begin, std::uint64_t end) {
    const auto first = std::ranges::lower_bound(more_, begin, {}, &Range::end);
    auto last = first;
    while (last != more_.end() && last->begin <= end) {
      begin = std::min(begin, last->begin);
      end = std::max(end, last->end);
      ++last;
    }
    if (first == last) {
      more_.insert(first, {begin, end});
      return;
    }
    *first = {begin, end};
    more_.erase(first + 1, last);
  }

  Range only_;               // while more_ is empty; empty: none
  std::vector<Range> more_;  // all of them, once there were two
};

// Which bytes are occupied at which time: a segment tree over the times. Each of its nodes keeps the bytes
// that are occupied at all of its times, and the bytes that are occupied at any of them. A lifetime touches
// O(log times) nodes, and so does a search.
class Occupancy {
 public:
  Occupancy(std::size_t times, const MemoryRange& range) : range_(range) {
    while (leaves_ < times) leaves_ *= 2;
    always_.resize(2 * leaves_);
    ever_.resize(2 * leaves_);
  }

  void add(std::size_t first, std::size_t last, std::uint64_t begin, std::uint64_t end) {
    add(1, {0, leaves_ - 1}, {first, last}, begin, end);
  }

  // The lowest offset at which `bytes` are free at all of these times.
  std::uint64_t lowest_fit(std::size_t first, std::size_t last, std::uint64_t bytes) {
    obstacles_.clear();
    collect(1, {0, leaves_ - 1}, {first, last});
    std::uint64_t begin = within_section(range_.begin, bytes, range_.section_bytes);
    for (std::size_t agreed = 0, i = 0; agreed < obstacles_.size();) {
      ++steps_;
      const std::uint64_t end =
          within_section(obstacles_[i]->end_of_obstacle(begin, bytes), bytes, range_.section_bytes);
      agreed = end == begin ? agreed + 1 : 0;
      if (end == begin) i = (i + 1) % obstacles_.size();
      begin = end;
    }
    return begin;
  }

  std::int64_t steps() const { return steps_; }

 private:
  struct Times {
    std::size_t first, last;
    bool holds(const Times& other) const { return first <= other.first && other.last <= last; }
    bool meets(const Times& other) const { return first <= other.last && other.first <= last; }
    std::size_t middle() const { return first + (last - first) / 2; }
  };

  void add(std::size_t node, Times own, Times life, std::uint64_t begin, std::uint64_t end) {
    ++steps_;
    ever_[node].add(begin, end);
    if (life.holds(own)) return always_[node].add(begin, end);
    const Times left{own.first, own.middle()}, right{own.middle() + 1, own.last};
    if (life.meets(left)) add(2 * node, left, life, begin, end);
    if (life.meets(right)) add(2 * node + 1, right, life, begin, end);
  }

  void collect(std::size_t node, Times own, Times life) {
    ++steps_;
    const Ranges& ranges = (life.holds(own) ? ever_ : always_)[node];
    if (!ranges.empty()) obstacles_.push_back(&ranges);
    if (life.holds(own) || ever_[node].empty()) return;
    const Times left{own.first, own.middle()}, right{own.middle() + 1, own.last};
    if (life.meets(left)) collect(2 * node, left, life);
    if (life.meets(right)) collect(2 * node + 1, right, life);
  }

  MemoryRange range_;
  std::size_t leaves_ = 1;
  std::vector<Ranges> always_, ever_;  // per node of the tree; node 1 is its root
  std::vector<const Ranges*> obstacles_;
  std::int64_t steps_ = 0;
};

}  // namespace

MemoryPlan plan_memory(std::span<const Lifetime> lifetimes, std::uint64_t alignment,
                       const MemoryRange& range) {
  const auto aligned = [&](std::uint64_t bytes) { return (bytes + alignment - 1) / alignment * alignment; };

  std::vector<std::size_t> by_size(lifetimes.size());
  std::iota(by_size.begin(), by_size.end(), std::size_t{0});
  std::ranges::stable_sort(
      by_size, [&](std::size_t a, std::size_t b) { return lifetimes[a].bytes > lifetimes[b].bytes; });

  std::vector<std::int32_t> times;  // at which something begins or ends
  for (const Lifetime& life : lifetimes) times.insert(times.end(), {life.first, life.last});
  std::ranges::sort(times);
  times.erase(std::ranges::unique(times).begin(), times.end());
  const auto time = [&](std::int32_t level) {
    return static_cast<std::size_t>(std::ranges::lower_bound(times, level) - times.begin());
  };

  MemoryPlan plan;
  plan.offsets.resize(lifetimes.size(), range.begin);
  Occupancy occupancy(times.size(), range);
  for (std::size_t index : by_size) {
    const Lifetime& life = lifetimes[index];
    const std::uint64_t bytes = aligned(life.bytes);
    if (bytes == 0) continue;  // lies at the beginning, like everything that occupies nothing
    plan.unplanned_bytes += bytes;
    const std::size_t first = time(life.first), last = time(life.last);
    const std::uint64_t begin = occupancy.lowest_fit(first, last, bytes);
    plan.offsets[index] = begin;
    plan.total_bytes = std::max(plan.total_bytes, begin + bytes - range.begin);
    occupancy.add(first, last, begin, begin + bytes);
  }
  plan.steps = occupancy.steps();
  return plan;
}

}  // namespace imprint::graph
