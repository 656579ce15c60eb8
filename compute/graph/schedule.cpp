#include "compute/graph/schedule.h"

namespace imprint {

std::string task_text(const Graph& graph, const Task& task) {
  static constexpr const char* kKinds[] = {"map", "group fold", "scan", "matmul tile"};
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
