#include "compute/graph/passes/narrow_constants.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "compute/base/number_format.h"

namespace imprint::graph {
namespace {

// order: the axis of the source at each position.
std::vector<float> permuted_elements(const std::vector<float>& from, const Shape& source,
                                     const std::vector<std::int64_t>& order) {
  const auto strides = row_major_strides(source);
  const int rank = source.rank();
  std::vector<float> result;
  result.reserve(from.size());
  if (rank == 0 || from.empty()) return from;
  std::vector<std::int64_t> at_axis(at(rank), 0);
  const std::int64_t inner = source[static_cast<int>(order.back())], step = strides[at(order.back())];
  for (std::int64_t start = 0; result.size() < from.size();) {
    for (std::int64_t i = 0; i < inner; ++i) result.push_back(from[at(start + i * step)]);
    for (int axis = rank - 2; axis >= 0; --axis) {
      const std::int64_t own = strides[at(order[at(axis)])];
      start += own;
      if (++at_axis[at(axis)] < source[static_cast<int>(order[at(axis)])]) break;
      start -= own * std::exchange(at_axis[at(axis)], 0);
    }
  }
  return result;
}

}  // namespace

std::optional<std::vector<float>> constant_elements(const Graph& graph, NodeIndex index,
                                                    std::span<const int> order) {
  const Shape& shape = graph[index].shape;
  std::vector<NodeIndex> views;
  while (graph[index].op == Op::reshape || graph[index].op == Op::permute) {
    views.push_back(index);
    index = graph[index].inputs[0];
  }
  const GraphNode& constant = graph[index];
  if (constant.op != Op::constant || constant.dtype != DType::float32) return std::nullopt;
  const SharedBytes& bytes = constant.source->constant->bytes;
  std::vector<float> elements(at(constant.element_count()));
  if (bytes.size() != elements.size() * sizeof(float)) return std::nullopt;
  if (!elements.empty()) std::memcpy(elements.data(), bytes.data(), bytes.size());
  for (auto view = views.rbegin(); view != views.rend(); ++view)
    if (graph[*view].op == Op::permute)
      elements = permuted_elements(elements, graph[graph[*view].inputs[0]].shape, graph[*view].ints);
  if (!order.empty()) elements = permuted_elements(elements, shape, {order.begin(), order.end()});
  return elements;
}

namespace {

GraphNode node_of_bytes(std::vector<std::byte> bytes, DType dtype, const Shape& shape,
                        const NodeRef& source) {
  auto made = std::make_shared<Node>();
  made->op = Op::constant;
  made->dtype = dtype;
  made->shape = shape;
  made->constant =
      std::make_shared<const tensor::ConstantData>(tensor::ConstantData{SharedBytes(std::move(bytes))});
  if (source) made->label = source->label;
  GraphNode node;
  node.op = Op::constant;
  node.dtype = dtype;
  node.shape = shape;
  node.source = std::move(made);
  return node;
}

}  // namespace

GraphNode constant_node(const std::vector<float>& elements, const Shape& shape, const NodeRef& source) {
  const auto bytes = std::as_bytes(std::span(elements));
  return node_of_bytes({bytes.begin(), bytes.end()}, DType::float32, shape, source);
}

GraphNode narrow_constant(const std::vector<float>& elements, const Shape& shape, const NodeRef& source) {
  std::vector<std::byte> bytes(elements.size() * sizeof(std::uint16_t));
  for (std::size_t i = 0; i < elements.size(); ++i) {
    const std::uint16_t half = half_from_float(elements[i]);
    std::memcpy(bytes.data() + i * sizeof(half), &half, sizeof(half));
  }
  return node_of_bytes(std::move(bytes), DType::float16, shape, source);
}

void write_scalars_as_literals(Graph& graph) {
  const auto consumers = graph.consumers();
  for (NodeIndex i = 0; i < graph.size(); ++i) {
    GraphNode& node = graph.nodes[at(i)];
    if (node.op != Op::constant || node.dtype != DType::float32 || node.element_count() != 1) continue;
    const std::optional<std::vector<float>> elements = constant_elements(graph, i);
    if (!elements || consumers[at(i)].empty() ||
        !std::ranges::all_of(consumers[at(i)], [&](NodeIndex reader) {
          return graph[reader].kind() == OpKind::elementwise || graph[reader].kind() == OpKind::view;
        }))
      continue;
    node.op = Op::full;
    node.floats = {(*elements)[0]};
  }
}

namespace {

// Whether the task only copies elements, which one value keeps for later tasks.
bool only_arranges(const Graph& graph, const Task& task) {
  if (task.kind != TaskKind::map || task.members.size() != 1 || task.stores.size() != 1 ||
      task.stores[0].place.kind != PlaceKind::temporary || task.stores[0].node != task.members[0])
    return false;
  const Op op = graph[task.members[0]].op;
  return op == Op::reshape || op == Op::permute;
}

}  // namespace

void arrange_constants(Graph& graph, Schedule& schedule) {
  std::vector<std::int32_t> position(schedule.tasks.size(), -1);
  std::vector<Task> kept;
  std::vector<NodeIndex> sources;
  for (std::size_t t = 0; t < position.size(); ++t) {
    Task& task = schedule.tasks[t];
    if (only_arranges(graph, task)) {
      const NodeIndex node = task.members[0], source = graph.without_views(node);
      if (const std::optional<std::vector<float>> elements = constant_elements(graph, node)) {
        graph.nodes[at(node)] = constant_node(*elements, graph[node].shape, graph[source].source);
        schedule.place[at(node)] = {PlaceKind::constant, node};
        sources.push_back(source);
        continue;
      }
    }
    position[t] = static_cast<std::int32_t>(kept.size());
    kept.push_back(std::move(task));
  }
  for (Task& task : kept) {
    for (std::int32_t& before : task.after) before = position[at(before)];
    std::erase(task.after, -1);
  }
  schedule.tasks = std::move(kept);
  const auto is_read = [&](NodeIndex node) {
    return std::ranges::any_of(schedule.tasks, [&](const Task& task) {
      return std::ranges::find(task.reads, node, &Read::node) != task.reads.end();
    });
  };
  for (const NodeIndex source : sources) {
    GraphNode& node = graph.nodes[at(source)];
    if (node.op != Op::constant || is_read(source)) continue;
    node.op = Op::full;  // takes no memory
    node.floats = {0.0};
  }
}

}  // namespace imprint::graph
