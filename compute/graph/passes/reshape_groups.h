#pragma once
// Which axes of a reshape's source become which axes of its result.

#include <cstdint>
#include <utility>
#include <vector>

#include "compute/graph/graph.h"

namespace imprint::graph {

// Axes of a reshape's source that become axes of its result, together.
struct AxisGroup {
  std::vector<int> from, to;
};

// Nothing if the elements do not correspond in groups.
inline std::vector<AxisGroup> reshape_groups(const Shape& from, const Shape& to) {
  std::vector<AxisGroup> groups;
  int f = 0, t = 0;
  while (f < from.rank() && t < to.rank()) {
    AxisGroup group{{f}, {t}};
    std::int64_t f_count = from[f++], t_count = to[t++];
    while (f_count != t_count) {
      const bool more_from = f_count < t_count;
      if (more_from ? f == from.rank() : t == to.rank()) return {};
      if (more_from) {
        f_count *= from[f];
        group.from.push_back(f++);
      } else {
        t_count *= to[t];
        group.to.push_back(t++);
      }
    }
    groups.push_back(std::move(group));
  }
  if (groups.empty()) return {};
  while (f < from.rank()) groups.back().from.push_back(f++);
  while (t < to.rank()) groups.back().to.push_back(t++);
  return groups;
}

}  // namespace imprint::graph
