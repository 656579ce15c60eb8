#pragma once
// The order in which a region computes its values. Products with the same weights are computed together and
// read them once: passes of one network over two batches, or the gradients of two losses through it. Other
// products that do not wait for each other come next to each other, so that few barriers separate them.

#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "compute/graph/graph.h"
#include "compute/graph/schedule/schedule.h"

namespace imprint::graph {

enum class Arrangement : std::uint8_t {
  none,            // members stay in their order
  shared_weights,  // products with the same weights are together
  by_depth         // and all products that as many others come before are next to each other
};

// One member of a region, or several products that are computed together.
struct MemberGroup {
  std::vector<NodeIndex> members;
  std::int32_t depth = -1;  // by_depth: products on the longest way to it, its own included
};

// Groups products with equal keys, where no group then waits for itself, and orders all members. Each follows
// what it reads. With fewer than two products, or very many, the order stays. members: ascending, each after
// what it reads. keys: of the products, ascending by product. inputs_of: the members that one reads, and
// possibly other nodes.
std::vector<MemberGroup> arrange_members(Arrangement arrangement, std::span<const NodeIndex> members,
                                         std::span<const std::pair<NodeIndex, std::int64_t>> keys,
                                         const std::function<std::vector<Read>(NodeIndex)>& inputs_of);

}  // namespace imprint::graph
