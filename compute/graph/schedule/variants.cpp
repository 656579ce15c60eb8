#include "compute/graph/schedule/variants.h"

#include <algorithm>
#include <numeric>

#include "compute/base/hash.h"
#include "compute/graph/graph.h"
#include "compute/graph/number_set.h"

namespace imprint::graph {
namespace {

constexpr std::size_t kMostMeasured = 8;

}  // namespace

std::size_t choose_variant(const VariantTable* table, const std::string& kernel,
                           std::span<const Variant> variants, std::vector<VariantChoice>& made) {
  std::vector<std::size_t> order(variants.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return variants[i].cost; });
  if (variants.size() == 1) return 0;

  std::size_t taken = order.front();
  VariantChoice choice{.kernel = kernel};
  if (table)
    if (const auto entry = table->find(kernel); entry != table->end()) {
      const auto found = std::ranges::find(variants, entry->second, &Variant::name);
      choice.from_table = found != variants.end();
      if (choice.from_table)
        taken = static_cast<std::size_t>(found - variants.begin());
      else
        choice.refused = entry->second;
    }
  choice.taken = variants[taken].name;
  for (std::size_t i = 0; i < std::min(order.size(), kMostMeasured); ++i)
    choice.variants.push_back(variants[order[i]].name);
  made.push_back(std::move(choice));
  return taken;
}

std::string signature(const Graph& graph, std::span<const NodeIndex> nodes) {
  Hasher hasher;
  const auto add_type = [&](const GraphNode& node) {
    hasher.number(node.dtype).number(node.shape.rank());
    for (std::int64_t extent : node.shape.extents()) hasher.number(extent);
  };
  for (NodeIndex index : nodes) {
    const GraphNode& node = graph[index];
    hasher.text(op_info(node.op).name).number(node.blocks);  // files outlive the order of the ops
    add_type(node);
    if (node.kind() != OpKind::generate)  // generators' ints only distinguish random streams
      for (std::int64_t number : node.ints) hasher.number(number);
    for (NodeIndex input : node.inputs) {
      const auto inside = std::ranges::lower_bound(nodes, input);
      const bool is_inside = inside != nodes.end() && *inside == input;
      hasher.number(is_inside ? static_cast<std::int64_t>(inside - nodes.begin()) : std::int64_t{-1});
      if (!is_inside) add_type(graph[input]);
    }
  }
  return hasher.digest().hex().substr(0, 16);
}

std::string signature_down_to_memory(const Graph& graph, const std::vector<std::uint8_t>& materialized,
                                     std::span<const NodeIndex> nodes) {
  NumberSet seen;
  std::vector<NodeIndex> stack(nodes.begin(), nodes.end()), found;
  while (!stack.empty()) {
    const NodeIndex node = stack.back();
    stack.pop_back();
    if (!seen.insert(node)) continue;
    found.push_back(node);
    for (NodeIndex input : graph[node].inputs)
      if (!materialized[static_cast<std::size_t>(input)]) stack.push_back(input);
  }
  std::ranges::sort(found);
  return signature(graph, found);
}

}  // namespace imprint::graph
