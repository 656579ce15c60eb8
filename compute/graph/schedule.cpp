#include "compute/graph/schedule.h"

#include <algorithm>

namespace imprint {

const RegionValue* Region::find(NodeIndex node) const {
  const auto found = std::ranges::lower_bound(values, node, {}, &RegionValue::node);
  return found != values.end() && found->node == node ? &*found : nullptr;
}

std::string task_text(const Graph& graph, const Task& task) {
  static constexpr const char* kKinds[] = {"map", "group fold", "column fold", "scan", "product", "region", "custom", "row fold"};
  std::string text = kKinds[static_cast<int>(task.kind)];
  text += " of " + std::to_string(task.element_count) + ":";
  for (const Store& store : task.stores) text += " " + node_text(graph, store.node) + (store.row_indices >= 0 ? " by rows" : "") + ",";
  if (!task.stores.empty()) text.pop_back();
  if (!task.reads.empty()) text += " from";
  for (const Read& read : task.reads) text += " " + node_text(graph, read.node) + ",";
  if (!task.reads.empty()) text.pop_back();
  return text;
}

}  // namespace imprint
