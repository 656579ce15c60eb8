#include "compute/graph/schedule/schedule.h"

#include <algorithm>

namespace imprint::graph {

const RegionValue* Region::find(NodeIndex node) const {
  const auto found = std::ranges::lower_bound(values, node, {}, &RegionValue::node);
  return found != values.end() && found->node == node ? &*found : nullptr;
}

bool Schedule::takes_from_table() const {
  return std::ranges::any_of(
      tasks, [](const Task& task) { return std::ranges::any_of(task.choices, &VariantChoice::from_table); });
}

std::string_view task_kind_name(TaskKind kind) {
  static constexpr std::string_view kNames[] = {"map",    "group fold", "column fold", "scan", "product",
                                                "region", "custom",     "row fold",    "page"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::string task_text(const Graph& graph, const Task& task) {
  return std::string(task_kind_name(task.kind)) + " of " + std::to_string(task.element_count) + ":" +
         store_text(graph, task);
}

std::string store_text(const Graph& graph, const Task& task) {
  std::string text;
  for (const Store& store : task.stores)
    text += " " + node_text(graph, store.node) + (store.row_indices >= 0 ? " by rows" : "") + ",";
  if (!task.stores.empty()) text.pop_back();
  if (!task.reads.empty()) text += " from";
  for (const Read& read : task.reads) text += " " + node_text(graph, read.node) + ",";
  if (!task.reads.empty()) text.pop_back();
  return text;
}

std::string stage_text(const Graph& graph, const RegionStage& stage, bool on_matrix_units) {
  static constexpr std::string_view kNames[] = {"load", "spread", "product", "outer product", "row fold"};
  std::string text(kNames[static_cast<std::size_t>(stage.kind)]);
  if (on_matrix_units && stage.kind == RegionStage::Kind::product)
    text += " in matrices of " + std::to_string(kMatrixExtent) + " x " + std::to_string(kMatrixExtent);
  else if (stage.kind == RegionStage::Kind::product || stage.kind == RegionStage::Kind::outer_product)
    text += " in tiles of " + std::to_string(stage.tile_rows) + " x " + std::to_string(stage.tile_columns) +
            (stage.parts > 1 ? ", terms in " + std::to_string(stage.parts) + " parts" : std::string());
  std::string values;
  for (NodeIndex member : stage.members) values += (values.empty() ? ": " : ", ") + node_text(graph, member);
  if (stage.members.empty() && stage.anchor >= 0) values = ": " + node_text(graph, stage.anchor);
  // No barrier text on matrix units: each subgroup has its own rows.
  return (stage.barrier_before && !on_matrix_units ? "barrier, " : "") + text + values;
}

bool goes_beside_region(const Region& region, const Task& task, std::int32_t fold_invocations,
                        std::int64_t shared_bytes) {
  constexpr std::int64_t kMostElements = 16384, kMostFolds = 64;
  if (task.kind == TaskKind::map) return task.element_count <= kMostElements;
  return (task.kind == TaskKind::group_fold || task.kind == TaskKind::column_fold) &&
         task.element_count <= kMostFolds && region.matrix_groups == 0 &&
         fold_invocations == region.invocations &&
         4 * (region.shared_floats + region.shared_ints) + kFoldBytes * fold_invocations <= shared_bytes;
}

const RunExtent* extent_of_axis(const Schedule& schedule, const Shape& shape, int axis) {
  if (schedule.extents.empty() || !shape.is_named(axis)) return nullptr;
  const auto found = std::ranges::find(schedule.extents, tensor::named_axis(shape.name(axis)).parts[0].extent,
                                       &RunExtent::name);
  return found == schedule.extents.end() ? nullptr : &*found;
}

const RunExtent* leading_extent(const Schedule& schedule, const Shape& shape) {
  for (int axis = 0; axis < shape.rank(); ++axis)
    if (shape[axis] != 1) return extent_of_axis(schedule, shape, axis);
  return nullptr;
}

const RunExtent* leading_task_extent(const Graph& graph, const Schedule& schedule, const Task& task) {
  if (schedule.extents.empty() || task.stores.empty() || !task.tails.empty()) return nullptr;
  if (task.kind == TaskKind::page) return nullptr;
  if (task.region >= 0 && schedule.regions[at(task.region)].groups > 1) return nullptr;
  const RunExtent* found = nullptr;
  for (const Store& store : task.stores) {
    const GraphNode& node = graph[store.node];
    const RunExtent* own = leading_extent(schedule, node.shape);
    if (!own || (found && own != found) || store.row_indices >= 0 || node.blocks > 0 || node.has_tails)
      return nullptr;
    if (task.region >= 0) {
      const RegionValue* value = schedule.regions[at(task.region)].find(store.node);
      if (!value || value->row_axis < 0) return nullptr;
      for (int before = 0; before < value->row_axis; ++before)
        if (node.shape[before] != 1) return nullptr;
    }
    // Lines along the first axis itself: all of them are needed.
    if (task.kind == TaskKind::scan) {
      const int axis = static_cast<int>(graph[task.anchor].ints[0]);
      bool is_first = true;
      for (int before = 0; before < axis; ++before) is_first = is_first && node.shape[before] == 1;
      if (is_first) return nullptr;
    }
    found = own;
  }
  return found;
}

// Elementwise results have the names of their operands. Only a mask has not.
Shape shape_behind_mask(const Graph& graph, NodeIndex node) {
  Shape shape = graph[node].shape;
  if (graph[node].op != Op::where) return shape;
  const Shape& value = graph[graph[node].inputs[1]].shape;
  for (int axis = 0; axis < shape.rank(); ++axis)
    if (!shape.is_named(axis)) shape.set_name(axis, value.name(axis));
  return shape;
}

}  // namespace imprint::graph
