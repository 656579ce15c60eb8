#include "compute/graph/regions/region_order.h"

#include <algorithm>
#include <map>
#include <queue>

namespace imprint::graph {
namespace {

// More sums of a tile than this many products have do not fit an invocation's registers.
constexpr std::size_t kMostTogether = 4;
// Each product is compared with groups by a walk through the region: fewer products keep planning linear.
constexpr std::size_t kMostProducts = 64;

class ProductGrouping {
 public:
  ProductGrouping(std::span<const NodeIndex> members,
                  const std::function<std::vector<Read>(NodeIndex)>& inputs_of)
      : members_(members), inputs_(members.size()), lead_(members.size()), groups_(members.size()) {
    for (std::size_t m = 0; m < members.size(); ++m) {
      lead_[m] = m;
      groups_[m] = {m};
      for (const Read& read : inputs_of(members[m]))
        if (const std::size_t i = position(read.node); i < members.size()) inputs_[m].push_back(i);
    }
  }

  void join_equal(std::span<const std::pair<NodeIndex, std::int64_t>> keys) {
    std::map<std::int64_t, std::vector<std::size_t>> leads;  // groups of each key
    for (const auto& [product, key] : keys) {
      const std::size_t own = position(product);
      std::vector<std::size_t>& known = leads[key];
      const auto found = std::ranges::find_if(known, [&](std::size_t lead) {
        return groups_[lead].size() < kMostTogether && !waits(own, lead) && !waits(lead, own);
      });
      if (found == known.end()) {
        known.push_back(own);
        continue;
      }
      lead_[own] = *found;
      groups_[*found].push_back(own);
      groups_[own].clear();
    }
  }

  // The first group that is ready comes next. by_depth: groups with the fewest products before them come
  // first, products first, then what follows from them.
  std::vector<MemberGroup> in_order(std::span<const std::pair<NodeIndex, std::int64_t>> keys,
                                    bool by_depth) const {
    std::vector<std::uint8_t> is_product(members_.size(), 0);
    for (const auto& [product, key] : keys) is_product[lead_[position(product)]] = 1;
    std::vector<std::size_t> missing(members_.size(), 0), depth(members_.size(), 0);
    std::vector<std::vector<std::size_t>> readers(members_.size());
    for (std::size_t m = 0; m < members_.size(); ++m)
      for (const std::size_t input : inputs_[m]) {
        ++missing[lead_[m]];
        readers[lead_[input]].push_back(lead_[m]);
      }
    using Ready =
        std::pair<std::size_t, std::size_t>;  // twice the products before it, and whether it is none
    std::priority_queue<Ready, std::vector<Ready>, std::greater<>> ready;
    const auto add = [&](std::size_t lead) {
      depth[lead] += is_product[lead];
      ready.emplace(by_depth ? 2 * depth[lead] + (is_product[lead] ? 0 : 1) : 0, lead);
    };
    for (std::size_t m = 0; m < members_.size(); ++m)
      if (lead_[m] == m && missing[m] == 0) add(m);
    std::vector<MemberGroup> order;
    while (!ready.empty()) {
      const std::size_t lead = ready.top().second;
      ready.pop();
      order.push_back({{}, by_depth ? static_cast<std::int32_t>(depth[lead]) : -1});
      for (const std::size_t m : groups_[lead]) order.back().members.push_back(members_[m]);
      for (const std::size_t reader : readers[lead]) {
        depth[reader] = std::max(depth[reader], depth[lead]);
        if (--missing[reader] == 0) add(reader);
      }
    }
    return order;
  }

 private:
  std::size_t position(NodeIndex node) const {
    const auto found = std::ranges::lower_bound(members_, node);
    return found != members_.end() && *found == node ? static_cast<std::size_t>(found - members_.begin())
                                                     : members_.size();
  }

  // Whether one group reads the other, directly or not.
  bool waits(std::size_t group, std::size_t on) const {
    std::vector<std::uint8_t> seen(members_.size(), 0);
    std::vector<std::size_t> stack{group};
    while (!stack.empty()) {
      const std::size_t lead = stack.back();
      stack.pop_back();
      if (lead == on) return true;
      for (const std::size_t m : groups_[lead])
        for (const std::size_t input : inputs_[m])
          if (!std::exchange(seen[lead_[input]], 1)) stack.push_back(lead_[input]);
    }
    return false;
  }

  std::span<const NodeIndex> members_;
  std::vector<std::vector<std::size_t>> inputs_;  // per member: those that it reads
  std::vector<std::size_t> lead_;                 // per member: the first of its group
  std::vector<std::vector<std::size_t>> groups_;  // per lead
};

}  // namespace

std::vector<MemberGroup> arrange_members(Arrangement arrangement, std::span<const NodeIndex> members,
                                         std::span<const std::pair<NodeIndex, std::int64_t>> keys,
                                         const std::function<std::vector<Read>(NodeIndex)>& inputs_of) {
  if (arrangement == Arrangement::none || keys.size() < 2 || keys.size() > kMostProducts) {
    std::vector<MemberGroup> alone;
    for (const NodeIndex member : members) alone.push_back({{member}, -1});
    return alone;
  }
  ProductGrouping grouping(members, inputs_of);
  grouping.join_equal(keys);
  return grouping.in_order(keys, arrangement == Arrangement::by_depth);
}

}  // namespace imprint::graph
