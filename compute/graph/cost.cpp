#include "compute/graph/cost.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

namespace imprint::graph {
namespace {

// Operations per invocation that equal a barrier: the cost of keeping a value in a region.
constexpr double kRegionRecompute = 24;

// A fold pulls everything that it reads into each kernel that evaluates it, so the limit for evaluating folds
// again is lower.
double recompute_limit(const Graph& graph, NodeIndex index, const std::vector<std::int32_t>& region_of,
                       const FusionOptions& options) {
  if (region_of[at(index)] >= 0)
    return kRegionRecompute * static_cast<double>(options.region_groups * options.region_invocations);
  return fold_length(graph, index) >= 4 ? options.recompute_limit / 4 : options.recompute_limit;
}

bool is_literal(const GraphNode& node) { return node.op == Op::full || node.op == Op::iota; }

// Memory goes to the op that computes a value, not to the views of it.
NodeIndex without_views(const Graph& graph, NodeIndex index) {
  while (graph[index].kind() == OpKind::view) index = graph[index].inputs[0];
  return index;
}

constexpr double kShared = 256;  // lanes that fold and keep a value that all of them need
// operations per element above which a wrong estimate of evaluations is too expensive
constexpr double kDear = 96;

bool is_cheap_scalar(const GraphNode& node, double cost, const FusionOptions& options) {
  return node.element_count() == 1 && cost <= options.cheap_combination;
}

// Partial results next to each other, which one workgroup folds together.
bool joins_tails(const Graph& graph, const std::vector<std::vector<NodeIndex>>& consumers, NodeIndex index) {
  return graph[index].op == Op::concat && !consumers[at(index)].empty() &&
         wants_lanes(graph, consumers[at(index)][0]);
}

// Operations for one element: its own, and those of inputs without memory. x * x evaluates x once.
double cost_of(const Graph& graph, NodeIndex index, const std::vector<std::uint8_t>& memory,
               const std::vector<double>& cost) {
  const GraphNode& node = graph[index];
  double sum = op_cost(graph, index);
  for (std::size_t slot = 0; slot < node.inputs.size(); ++slot) {
    const NodeIndex input = node.inputs[slot];
    if (node.kind() == OpKind::elementwise && slot > 0 && input == node.inputs[slot - 1]) continue;
    sum += evaluations_per_element(graph, index, slot) * (memory[at(input)] ? 1.0 : cost[at(input)]);
  }
  return sum;
}

// How often consumers evaluate the elements of a node, given evaluated(consumer), how often each consumer
// evaluates its own. Elementwise consumers of one size are assumed to share a kernel, which evaluates shared
// values once. This does not apply to values so expensive that a wrong assumption would hurt.
template <class Evaluated>
double evaluations_by(const Graph& graph, const std::vector<NodeIndex>& consumers, NodeIndex index,
                      double cost, const Evaluated& evaluated) {
  double sum = 0;
  std::vector<std::pair<std::int64_t, double>> sharing;  // element count, most evaluations
  NodeIndex last = -1;
  for (NodeIndex consumer : consumers) {
    if (consumer == std::exchange(last, consumer)) continue;  // x * x evaluates x once
    const GraphNode& user = graph[consumer];
    double most = 0;
    for (std::size_t slot = 0; slot < user.inputs.size(); ++slot)
      if (user.inputs[slot] == index) most = std::max(most, evaluations_per_element(graph, consumer, slot));
    most *= evaluated(consumer);
    if (user.kind() != OpKind::elementwise || cost > kDear) {
      sum += most;
      continue;
    }
    const auto known =
        std::ranges::find(sharing, user.element_count(), &std::pair<std::int64_t, double>::first);
    if (known == sharing.end())
      sharing.emplace_back(user.element_count(), most);
    else
      known->second = std::max(known->second, most);
  }
  for (const auto& [count, most] : sharing) sum += most;
  return sum;
}

// The same count as the direct consumers request it, behind views, each evaluated once.
double evaluations_asked(const Graph& graph, const std::vector<std::vector<NodeIndex>>& consumers,
                         NodeIndex index, double cost) {
  return evaluations_by(graph, consumers[at(index)], index, cost, [&](NodeIndex consumer) {
    return graph[consumer].kind() == OpKind::view ? evaluations_asked(graph, consumers, consumer, cost)
                                                  : static_cast<double>(graph[consumer].element_count());
  });
}

// The cost of one element if the longer folds inside it had memory, and a list of those folds without the
// node itself. Remembers visited nodes: a chain of y * y + y has 2^depth paths to a node.
class AboveFolds {
 public:
  AboveFolds(const Graph& graph, const std::vector<std::uint8_t>& memory) : graph_(graph), memory_(memory) {}

  double cost(NodeIndex index) {
    if (const auto known = costs_.find(index); known != costs_.end()) return known->second;
    double cost = op_cost(graph_, index);
    for (std::size_t slot = 0; slot < graph_[index].inputs.size(); ++slot) {
      const NodeIndex input = graph_[index].inputs[slot];
      const double evaluations = evaluations_per_element(graph_, index, slot);
      if (memory_[at(input)]) {
        cost += evaluations;
      } else if (fold_length(graph_, input) >= 8 && !wants_lanes(graph_, input)) {
        if (std::ranges::find(folds_, input) == folds_.end()) folds_.push_back(input);
        cost += evaluations;
      } else {
        cost += evaluations * this->cost(input);
      }
    }
    costs_.emplace(index, cost);
    return cost;
  }
  const std::vector<NodeIndex>& folds() const { return folds_; }

 private:
  const Graph& graph_;
  const std::vector<std::uint8_t>& memory_;
  std::unordered_map<NodeIndex, double> costs_;
  std::vector<NodeIndex> folds_;
};

// Distinct nodes that would be computed inside this one, up to a limit.
std::int32_t inline_size(const Graph& graph, NodeIndex index, const std::vector<std::uint8_t>& has_memory,
                         std::int32_t limit) {
  std::vector<NodeIndex> stack{index};
  std::vector<NodeIndex> seen;
  while (!stack.empty() && static_cast<std::int32_t>(seen.size()) <= limit) {
    const NodeIndex node = stack.back();
    stack.pop_back();
    if (std::ranges::find(seen, node) != seen.end()) continue;
    seen.push_back(node);
    for (NodeIndex input : graph[node].inputs)
      if (!has_memory[at(input)]) stack.push_back(input);
  }
  return static_cast<std::int32_t>(seen.size());
}

}  // namespace

std::int64_t fold_length(const Graph& graph, NodeIndex index) {
  const GraphNode& node = graph[index];
  const auto whole = [&](std::int64_t length) {
    return node.blocks > 0 ? (length + node.blocks - 1) / node.blocks : length;
  };
  const auto input_shape = [&](std::size_t slot) -> const Shape& { return graph[node.inputs[slot]].shape; };
  switch (node.op) {
    case Op::reduce_sum:
    case Op::reduce_prod:
    case Op::reduce_max:
    case Op::reduce_min:
    case Op::argmax:
    case Op::argmin: {
      std::int64_t length = 1;
      for (std::int64_t axis : node.ints) length *= input_shape(0)[static_cast<int>(axis)];
      return whole(length);
    }
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
  const GraphNode& node = graph[index];
  switch (node.op) {
    case Op::constant:
    case Op::input:
    case Op::variable:
      return 1;
    case Op::full:
    case Op::iota:
      return 0;
    case Op::random_uniform:
      return 70;
    case Op::random_permutation:
      return 48 * 70;
    case Op::exp:
    case Op::log:
    case Op::sin:
    case Op::cos:
    case Op::tan:
    case Op::sigmoid:
    case Op::div:
    case Op::recip:
    case Op::sqrt:
      return 6;
    case Op::tanh:
    case Op::expm1:
    case Op::log1p:
    case Op::sinh:
    case Op::cosh:
    case Op::asinh:
    case Op::acosh:
    case Op::atanh:
      return 12;
    case Op::erf:
    case Op::pow:
    case Op::asin:
    case Op::acos:
    case Op::atan:
    case Op::atan2:
    case Op::remainder:
    case Op::fmod:
      return 16;
    case Op::reshape:
      return 3;  // index divisions
    case Op::permute:
    case Op::expand:
    case Op::slice:
    case Op::window:
      return 0.5;
    case Op::pad:
    case Op::concat:
    case Op::gather:
    case Op::take:
      return 3;
    case Op::matmul:
      return 2.0 * static_cast<double>(fold_length(graph, index));
    case Op::scatter_add:
    case Op::unwindow:
      return 3.0 * static_cast<double>(fold_length(graph, index));
    case Op::reduce_sum:
    case Op::reduce_prod:
    case Op::reduce_max:
    case Op::reduce_min:
    case Op::argmax:
    case Op::argmin:
      return static_cast<double>(fold_length(graph, index));
    default:
      return 1;
  }
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
    default:
      return static_cast<double>(fold_length(graph, index));
  }
}

bool wants_group(const Graph& graph, NodeIndex index, const FusionOptions& options) {
  const GraphNode& node = graph[index];
  if (node.op == Op::scatter_add || node.op == Op::unwindow) return false;
  const std::int64_t length = fold_length(graph, index);
  const std::int64_t outputs = node.element_count();
  if (node.blocks > 0 || wants_lanes(graph, index) || length < options.group_fold_length) return false;
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
  if (node.op != Op::reduce_sum && node.op != Op::reduce_max && node.op != Op::reduce_min &&
      node.op != Op::reduce_prod)
    return false;
  const std::int64_t length = fold_length(graph, index), outputs = node.element_count();
  if (!node.has_tails && (length < options.column_fold_length || outputs < kFoldColumns ||
                          outputs > options.group_fold_outputs * 16))
    return false;
  if (wants_lanes(graph, index)) return false;
  // Only outermost axes, and not all axes.
  return static_cast<std::size_t>(node.ints.back()) + 1 == node.ints.size() &&
         static_cast<int>(node.ints.size()) < node.shape.rank();
}

bool wants_tiles(const Graph& graph, NodeIndex index, const FusionOptions& options) {
  const GraphNode& node = graph[index];
  if (node.op != Op::matmul) return false;
  const int rank = node.shape.rank();
  return node.element_count() * fold_length(graph, index) >= options.product_operations &&
         node.shape[rank - 2] >= 16 && node.shape[rank - 1] >= 16;
}

double operations_per_element(const Graph& graph, const std::vector<std::uint8_t>& materialized,
                              NodeIndex index) {
  // Counts each value once per evaluation: a kernel keeps what it has computed.
  std::vector<std::pair<NodeIndex, double>> stack{{index, 1.0}};
  std::vector<NodeIndex> seen;
  double operations = 0;
  while (!stack.empty()) {
    const auto [node, times] = stack.back();
    stack.pop_back();
    if (std::ranges::find(seen, node) != seen.end()) continue;
    seen.push_back(node);
    const OpKind kind = graph[node].kind();
    const double length = static_cast<double>(fold_length(graph, node));
    if (kind == OpKind::elementwise && graph[node].op != Op::cast)
      operations += times;
    else if (kind == OpKind::contract)
      operations += 2 * length * times;
    else if (kind == OpKind::reduce || kind == OpKind::scatter || kind == OpKind::scan)
      operations += length * times;
    for (std::size_t slot = 0; slot < graph[node].inputs.size(); ++slot)
      if (const NodeIndex input = graph[node].inputs[slot]; !materialized[at(input)])
        stack.emplace_back(input, times * evaluations_per_element(graph, node, slot));
  }
  return operations;
}

double task_operations(const Graph& graph, const Schedule& schedule, const Task& task) {
  double operations = 0;
  if (task.kind != TaskKind::row_fold) {
    for (NodeIndex member : task.members)
      operations += static_cast<double>(graph[member].element_count()) *
                    operations_per_element(graph, schedule.materialized, member);
    return operations;
  }
  // Counts every value once, however many consumers it has.
  std::vector<NodeIndex> stack(task.members.begin(), task.members.end()), seen;
  while (!stack.empty()) {
    const NodeIndex node = stack.back();
    stack.pop_back();
    const bool is_read =
        schedule.materialized[at(node)] && std::ranges::find(task.members, node) == task.members.end();
    if (is_read || std::ranges::find(seen, node) != seen.end()) continue;
    seen.push_back(node);
    const OpKind kind = graph[node].kind();
    const double times = static_cast<double>(graph[node].element_count() *
                                             (kind == OpKind::contract ? 2 : 1) * fold_length(graph, node));
    if ((kind == OpKind::elementwise && graph[node].op != Op::cast) || kind == OpKind::contract ||
        kind == OpKind::reduce || kind == OpKind::scatter)
      operations += times;
    stack.insert(stack.end(), graph[node].inputs.begin(), graph[node].inputs.end());
  }
  return operations;
}

namespace {

// Decides which values get memory: first forward by the cost of one element of each node, then backward by
// how often each is evaluated.
class MemoryChoice {
 public:
  MemoryChoice(const Graph& graph, const std::vector<std::uint8_t>& forced,
               const std::vector<std::int32_t>& region_of, const std::vector<std::int32_t>& row_group_of,
               const FusionOptions& options)
      : graph_(graph),
        forced_(forced),
        region_of_(region_of),
        row_group_of_(row_group_of),
        options_(options),
        consumers_(graph.consumers()),
        memory_(graph.nodes.size(), 0),
        cost_(graph.nodes.size(), 0) {}

  std::vector<std::uint8_t> run() {
    if (!options_.fuse) return of_every_operation();
    keep_values_of_row_groups();
    for (NodeIndex i = 0; i < graph_.size(); ++i) {
      if (row_group_of_[at(i)] >= 0)
        cost_[at(i)] = 1;
      else
        decide_by_cost(i);
    }
    count_evaluations();
    return std::move(memory_);
  }

 private:
  std::vector<std::uint8_t> of_every_operation() {
    for (NodeIndex i = 0; i < graph_.size(); ++i) {
      const GraphNode& node = graph_[i];
      memory_[at(i)] =
          is_memory_leaf(node) || forced_[at(i)] || (node.kind() != OpKind::view && !is_literal(node));
    }
    return std::move(memory_);
  }

  // Values around folds over rows that outside consumers read get memory: at the op that computes them, not
  // at a view.
  void keep_values_of_row_groups() {
    std::vector<std::uint8_t> asked = forced_;
    for (NodeIndex i = graph_.size() - 1; i >= 0; --i) {
      if (row_group_of_[at(i)] < 0) continue;
      if (std::ranges::any_of(consumers_[at(i)], [&](NodeIndex consumer) {
            return row_group_of_[at(consumer)] != row_group_of_[at(i)];
          }))
        asked[at(i)] = 1;
      if (graph_[i].kind() == OpKind::view && asked[at(i)]) asked[at(graph_[i].inputs[0])] = 1;
      memory_[at(i)] = asked[at(i)] && graph_[i].kind() != OpKind::view;
    }
  }

  // The lanes of a group share its fold.
  double lanes_of(NodeIndex i) const {
    if (wants_lanes(graph_, i)) return kShared;
    return region_of_[at(i)] < 0 && wants_group(graph_, i, options_) ? 64.0 : 1.0;
  }

  // Sources whose share makes one invocation work too long get memory. Sets the cost of one element of the
  // node without their work.
  void limit_serial_work(NodeIndex i, double lanes) {
    const GraphNode& node = graph_[i];
    const bool in_region = region_of_[at(i)] >= 0;
    cost_[at(i)] = cost_of(graph_, i, memory_, cost_) / lanes;
    if (cost_[at(i)] > (in_region ? options_.region_serial_limit : options_.serial_limit))
      for (std::size_t slot = 0; slot < node.inputs.size(); ++slot) {
        const NodeIndex source = without_views(graph_, node.inputs[slot]);
        const double share = evaluations_per_element(graph_, i, slot) / lanes * cost_[at(source)];
        const double limit = in_region && region_of_[at(source)] == region_of_[at(i)]
                                 ? options_.region_serial_limit
                                 : options_.serial_limit;
        if (!memory_[at(source)] && !is_literal(graph_[source]) && share > limit / 2 &&
            cost_[at(source)] > 16) {
          memory_[at(source)] = 1;
          for (NodeIndex view = node.inputs[slot]; view != source; view = graph_[view].inputs[0])
            cost_[at(view)] = 2;
        }
      }
    cost_[at(i)] = cost_of(graph_, i, memory_, cost_) / lanes;
  }

  void decide_by_cost(NodeIndex i) {
    const GraphNode& node = graph_[i];
    const bool in_region = region_of_[at(i)] >= 0;
    limit_serial_work(i, lanes_of(i));
    if (memory_[at(i)]) return;  // a consumer already requested memory for it
    if (wants_lanes(graph_, i) || joins_tails(graph_, consumers_, i)) return;
    const bool own_kernel =
        !in_region && (wants_group(graph_, i, options_) || wants_columns(graph_, i, options_) ||
                       wants_tiles(graph_, i, options_));
    memory_[at(i)] = is_memory_leaf(node) || forced_[at(i)] || node.kind() == OpKind::scan || own_kernel ||
                     inline_size(graph_, i, memory_, options_.node_limit) > options_.node_limit;
    if (memory_[at(i)] || is_literal(node) || node.kind() == OpKind::view) return;
    const double again = std::max(0.0, evaluations_asked(graph_, consumers_, i, cost_[at(i)]) -
                                           static_cast<double>(node.element_count()));
    if (again * cost_[at(i)] <= recompute_limit(graph_, i, region_of_, options_) ||
        is_cheap_scalar(node, cost_[at(i)], options_))
      return;
    // A cheap combination of folds, such as a clip factor from squared norms. The folds get memory because
    // they can run in parallel. Otherwise a separate kernel would combine them while everything waits.
    AboveFolds folds(graph_, memory_);
    const double above = folds.cost(i);
    if (!in_region && !folds.folds().empty() &&
        (again * above <= options_.recompute_limit || above <= options_.cheap_combination)) {
      for (NodeIndex fold : folds.folds()) memory_[at(fold)] = 1;
      cost_[at(i)] = above;
    } else {
      memory_[at(i)] = 1;
    }
  }

  // Values that consumers of consumers evaluate too often get memory.
  void count_evaluations() {
    // Recomputes costs with the memory chosen so far.
    for (NodeIndex i = 0; i < graph_.size(); ++i)
      cost_[at(i)] = row_group_of_[at(i)] >= 0
                         ? 1
                         : cost_of(graph_, i, memory_, cost_) / (wants_lanes(graph_, i) ? kShared : 1.0);

    std::vector<double> evaluated(graph_.nodes.size(), 0);
    for (NodeIndex i = graph_.size() - 1; i >= 0; --i) {
      const GraphNode& node = graph_[i];
      const double own = static_cast<double>(node.element_count());
      if (row_group_of_[at(i)] >= 0) {
        evaluated[at(i)] = own;
        continue;
      }
      evaluated[at(i)] = evaluations_by(graph_, consumers_[at(i)], i, cost_[at(i)],
                                        [&](NodeIndex consumer) { return evaluated[at(consumer)]; });
      if (!memory_[at(i)] && !is_literal(node) && node.kind() != OpKind::view && !wants_lanes(graph_, i) &&
          !joins_tails(graph_, consumers_, i) && !is_cheap_scalar(node, cost_[at(i)], options_))
        memory_[at(i)] =
            (evaluated[at(i)] - own) * cost_[at(i)] > recompute_limit(graph_, i, region_of_, options_);
      if (memory_[at(i)]) evaluated[at(i)] = own;
    }
  }

  const Graph& graph_;
  const std::vector<std::uint8_t>& forced_;
  const std::vector<std::int32_t>& region_of_;
  const std::vector<std::int32_t>& row_group_of_;
  const FusionOptions& options_;
  const std::vector<std::vector<NodeIndex>> consumers_;
  std::vector<std::uint8_t> memory_;
  std::vector<double> cost_;  // per node: of one element
};

}  // namespace

std::vector<std::uint8_t> choose_materialized(const Graph& graph, const std::vector<std::uint8_t>& forced,
                                              const std::vector<std::int32_t>& region_of,
                                              const std::vector<std::int32_t>& row_group_of,
                                              const FusionOptions& options) {
  return MemoryChoice(graph, forced, region_of, row_group_of, options).run();
}

}  // namespace imprint::graph
