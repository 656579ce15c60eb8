#include "compute/graph/schedule/cost.h"

#include <algorithm>
#include <utility>

#include "compute/graph/number_set.h"
#include "compute/tensor/pages/library_page.h"

namespace imprint::graph {

std::int64_t fold_length(const Graph& graph, NodeIndex index) {
  const GraphNode& node = graph[index];
  const auto whole = [&](std::int64_t length) {
    return node.blocks > 0 ? (length + node.blocks - 1) / node.blocks : length;
  };
  const auto input_shape = [&](std::size_t slot) -> const Shape& { return graph[node.inputs[slot]].shape; };
  if (node.kind() == OpKind::reduce) {
    std::int64_t length = 1;
    for (std::int64_t axis : node.ints) length *= input_shape(0)[static_cast<int>(axis)];
    return whole(length);
  }
  switch (node.op) {
    case Op::matmul:
      return whole(input_shape(0)[input_shape(0).rank() - 1]);
    case Op::scatter_add:
      return input_shape(1)[static_cast<int>(node.ints[0])];
    case Op::unwindow:
      return node.ints[1];
    default:
      return 1;
  }
}

double op_cost(const Graph& graph, NodeIndex index) {
  return op_info(graph[index].op).cost * static_cast<double>(fold_length(graph, index));
}

double evaluations_per_element(const Graph& graph, NodeIndex index, std::size_t slot) {
  const GraphNode& node = graph[index];
  const double own = static_cast<double>(std::max<std::int64_t>(1, node.element_count()));
  const double input = static_cast<double>(graph[node.inputs[slot]].element_count());
  switch (node.op) {
    case Op::pad:
    case Op::concat:
      return std::min(1.0, input / own);
    case Op::scatter_add:
      return slot == 0 ? 1.0 : static_cast<double>(fold_length(graph, index));
    case Op::random_uniform:
    case Op::random_permutation:
      return 4;
    case Op::page:
      return node.source->page->loads * input / own;
    case Op::page_output:
      return 0;
    default:
      return static_cast<double>(fold_length(graph, index));
  }
}

namespace {

// Many short folds whose results are neighbours where their terms are: invocations of a map read those
// together, while the lanes of a group would read them far apart.
bool folds_many_columns(const Graph& graph, NodeIndex index) {
  constexpr std::int64_t kMany = 8192, kShort = 64;
  const GraphNode& node = graph[index];
  if (node.kind() != OpKind::reduce || node.element_count() < kMany || fold_length(graph, index) > kShort)
    return false;
  std::int64_t behind = 1;
  for (int axis = static_cast<int>(node.ints.back()) + 1; axis < node.shape.rank(); ++axis)
    behind *= node.shape[axis];
  return behind >= kFoldColumns;
}

}  // namespace

bool wants_group(const Graph& graph, NodeIndex index, const FusionOptions& options) {
  const GraphNode& node = graph[index];
  if (node.op == Op::scatter_add || node.op == Op::unwindow) return false;
  const std::int64_t length = fold_length(graph, index);
  const std::int64_t outputs = node.element_count();
  if (node.blocks > 0 || wants_lanes(graph, index) || length < options.group_fold_length) return false;
  if (folds_many_columns(graph, index)) return false;
  // Lanes read innermost axes contiguously for a few outputs, however many outputs there are.
  return outputs <= options.group_fold_outputs ||
         (folds_innermost(graph, index) && outputs * length >= options.row_fold_elements);
}

bool folds_innermost(const Graph& graph, NodeIndex index) {
  const GraphNode& node = graph[index];
  if (node.kind() != OpKind::reduce) return false;
  const Shape& source = graph[node.inputs[0]].shape;
  for (int axis = static_cast<int>(node.ints.front()); axis < source.rank(); ++axis)
    if (source[axis] != 1 && std::ranges::find(node.ints, axis) == node.ints.end()) return false;
  return true;
}

bool wants_lanes(const Graph& graph, NodeIndex index) {
  constexpr std::int64_t kMost = 1024;
  const GraphNode& node = graph[index];
  if (node.op != Op::reduce_sum || node.blocks > 0 || node.element_count() != 1 ||
      fold_length(graph, index) > kMost || node.shape.rank() != 1)
    return false;
  const GraphNode& source = graph[node.inputs[0]];
  const auto is_tail = [](const GraphNode& entry) {
    return entry.op == Op::reduce_sum && entry.blocks > 0 && entry.shape.rank() == 1;
  };
  return is_tail(source) ||
         (source.op == Op::concat &&
          std::ranges::all_of(source.inputs, [&](NodeIndex input) { return is_tail(graph[input]); }));
}

bool wants_columns(const Graph& graph, NodeIndex index, const FusionOptions& options) {
  const GraphNode& node = graph[index];
  if (!tensor::is_plain_fold(node.op)) return false;
  const std::int64_t length = fold_length(graph, index), outputs = node.element_count();
  if (!node.has_tails && (length < options.column_fold_length || outputs < kFoldColumns ||
                          outputs > options.group_fold_outputs * 16))
    return false;
  if (wants_lanes(graph, index)) return false;
  // Only outermost axes, and not all axes.
  return static_cast<std::size_t>(node.ints.back()) + 1 == node.ints.size() &&
         static_cast<int>(node.ints.size()) < node.shape.rank();
}

bool fills_tiles(std::int64_t rows, std::int64_t columns, std::int64_t terms, const FusionOptions& options) {
  constexpr std::int64_t kLeast = 16, kLeastOfMany = 8, kMany = 8192;  // rows or columns; terms
  // On a GPU stretches of very many terms fill the units, even if their tiles are half empty.
  const bool is_deep = options.product_turn_operations == 0 && terms >= kMany;
  return std::min(rows, columns) >= (is_deep ? kLeastOfMany : kLeast);
}

bool wants_tiles(const Graph& graph, NodeIndex index, const FusionOptions& options) {
  const GraphNode& node = graph[index];
  if (node.op != Op::matmul) return false;
  if (node.stays_tiled) return true;
  const int rank = node.shape.rank();
  const std::int64_t terms = fold_length(graph, index);
  return node.element_count() * terms >= options.product_operations &&
         fills_tiles(node.shape[rank - 2], node.shape[rank - 1], terms, options);
}

namespace {

// Sums count(node) over all elements, once per evaluation: a kernel keeps what it has computed.
template <class Count>
double counted_per_element(const Graph& graph, const std::vector<std::uint8_t>& materialized, NodeIndex index,
                           Count count) {
  std::vector<std::pair<NodeIndex, double>> stack{{index, 1.0}};
  NumberSet seen;
  double sum = 0;
  while (!stack.empty()) {
    const auto [node, times] = stack.back();
    stack.pop_back();
    if (!seen.insert(node)) continue;
    sum += count(node) * times;
    for (std::size_t slot = 0; slot < graph[node].inputs.size(); ++slot)
      if (const NodeIndex input = graph[node].inputs[slot]; !materialized[at(input)])
        stack.emplace_back(input, times * evaluations_per_element(graph, node, slot));
  }
  return sum;
}

template <class Count>
double counted_of_task(const Graph& graph, const Schedule& schedule, const Task& task, Count count) {
  double sum = 0;
  if (task.kind != TaskKind::row_fold) {
    for (NodeIndex member : task.members)
      sum += static_cast<double>(graph[member].element_count()) *
             counted_per_element(graph, schedule.materialized, member, count);
    return sum;
  }
  // Counts every value once, however many consumers it has.
  std::vector<NodeIndex> stack(task.members.begin(), task.members.end());
  NumberSet members, seen;
  for (NodeIndex member : task.members) members.insert(member);
  while (!stack.empty()) {
    const NodeIndex node = stack.back();
    stack.pop_back();
    const bool is_read = schedule.materialized[at(node)] && !members.contains(node);
    if (is_read || !seen.insert(node)) continue;
    sum += static_cast<double>(graph[node].element_count()) * count(node);
    stack.insert(stack.end(), graph[node].inputs.begin(), graph[node].inputs.end());
  }
  return sum;
}

// Operations of one element. A transcendental function counts as one; casts count nothing.
double operations_of(const Graph& graph, NodeIndex node) {
  const double length = static_cast<double>(fold_length(graph, node));
  switch (graph[node].kind()) {
    case OpKind::elementwise:
      return graph[node].op == Op::cast ? 0 : 1;
    case OpKind::contract:
      return 2 * length;
    case OpKind::reduce:
    case OpKind::scatter:
    case OpKind::scan:
      return length;
    default:
      return 0;
  }
}

double work_of_page(const Graph& graph, NodeIndex index) {
  constexpr double kPerElement = 4;
  const tensor::LibraryPage& page = *graph[index].source->page;
  if (page.work > 0) return page.work;
  double elements = 0;
  for (const PageOutput& output : page.outputs) elements += static_cast<double>(output.shape.element_count());
  for (const NodeIndex input : graph[index].inputs)
    elements += static_cast<double>(graph[input].element_count());
  return kPerElement * elements;
}

// Work of one element: less where several neighbours of the result are neighbours in the source.
double work_of_permute(const Graph& graph, const GraphNode& node) {
  constexpr double kFar = 10, kNear = 0.5;
  const Shape& source = graph[node.inputs[0]].shape;
  std::int64_t run = 1;
  int from = source.rank() - 1;
  for (int axis = node.shape.rank() - 1; axis >= 0; --axis) {
    if (node.shape[axis] == 1) continue;
    while (source[from] == 1) --from;
    if (node.ints[static_cast<std::size_t>(axis)] != from) break;
    run *= source[from--];
  }
  return std::max(kNear, kFar / static_cast<double>(std::max<std::int64_t>(1, run)));
}

// Work of one element.
double work_of(const Graph& graph, NodeIndex index) {
  const GraphNode& node = graph[index];
  if (node.op == Op::page)
    return work_of_page(graph, index) / static_cast<double>(std::max<std::int64_t>(1, node.element_count()));
  constexpr double kRemainder = 2000;  // a step for each bit of a quotient, which may have 270
  const bool is_remainder = node.op == Op::fmod || node.op == Op::remainder;
  if (is_remainder && node.dtype == DType::float32) return kRemainder;
  if (node.op == Op::permute) return work_of_permute(graph, node);
  constexpr double kChosenRead = 6;  // wherever an index leads
  if (node.op == Op::take || node.op == Op::gather) return kChosenRead;
  return node.op == Op::iota ? 1 : op_cost(graph, index);
}

}  // namespace

std::vector<std::uint8_t> pads_of_windows(const Graph& graph) {
  // Flags per node say what reads it behind views, and whether a reader is no window.
  constexpr std::uint8_t kValue = 1, kProduct = 2, kDirect = 4;
  std::vector<std::uint8_t> readers(graph.nodes.size(), 0), found(graph.nodes.size(), 0);
  for (NodeIndex i = graph.size() - 1; i >= 0; --i) {
    const GraphNode& node = graph[i];
    std::uint8_t own = readers[at(i)];
    if (node.op == Op::window)
      own &= kValue | kProduct;
    else if (node.kind() != OpKind::view)
      own = kDirect | (node.op == Op::matmul ? kProduct : kValue);
    for (NodeIndex input : node.inputs) readers[at(input)] |= own;
    if (node.op != Op::pad || node.dtype != DType::float32 || readers[at(i)] != kValue) continue;
    const GraphNode& source = graph[graph.without_views(node.inputs[0])];
    found[at(i)] = !is_memory_leaf(source) && source.op != Op::full && source.op != Op::iota;
  }
  return found;
}

double operations_per_element(const Graph& graph, const std::vector<std::uint8_t>& materialized,
                              NodeIndex index) {
  return counted_per_element(graph, materialized, index,
                             [&](NodeIndex node) { return operations_of(graph, node); });
}

double task_operations(const Graph& graph, const Schedule& schedule, const Task& task) {
  return counted_of_task(graph, schedule, task, [&](NodeIndex node) { return operations_of(graph, node); });
}

double task_work(const Graph& graph, const Schedule& schedule, const Task& task) {
  constexpr double kTask = 100;
  // A product reads far elements once, when it packs them.
  const bool packs =
      std::ranges::any_of(task.members, [&](NodeIndex member) { return graph[member].op == Op::matmul; });
  const auto work = [&](NodeIndex node) {
    return packs && graph[node].op == Op::permute ? op_cost(graph, node) : work_of(graph, node);
  };
  return kTask + counted_of_task(graph, schedule, task, work);
}

}  // namespace imprint::graph
