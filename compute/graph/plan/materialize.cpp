// Chooses which values get memory.

#include <algorithm>
#include <limits>
#include <span>
#include <unordered_map>
#include <utility>

#include "compute/graph/number_set.h"
#include "compute/graph/passes/inlined_code.h"
#include "compute/graph/plan/kept_numbers.h"
#include "compute/graph/plan/uses.h"
#include "compute/graph/schedule/cost.h"
#include "compute/graph/schedule/product.h"
#include "compute/tensor/pages/library_page.h"

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

constexpr std::int64_t kTileExtent = 64;  // rows or columns of a usual tile
constexpr double kShared = 256;           // lanes that fold and keep a value that all of them need
// operations per element above which a wrong estimate of evaluations is too expensive
constexpr double kDear = 96;

bool is_cheap_scalar(const GraphNode& node, double cost, const FusionOptions& options) {
  return node.element_count() == 1 && cost <= options.cheap_combination;
}

// Partial results next to each other, which one workgroup folds together.
bool joins_tails(const Graph& graph, const Uses& uses, NodeIndex index) {
  return graph[index].op == Op::concat && !uses[index].empty() &&
         wants_lanes(graph, uses[index].front().consumer);
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

// The most evaluations per element count, and their sum in order of first appearance. Nearly all values have
// consumers of one count, which needs no table.
class SharedEvaluations {
 public:
  void add(std::int64_t element_count, double evaluations) {
    if (first_count_ < 0) first_count_ = element_count;
    if (element_count == first_count_) {
      first_most_ = std::max(first_most_, evaluations);
      return;
    }
    const auto [known, fresh] = position_.try_emplace(element_count, most_.size());
    if (fresh)
      most_.push_back(evaluations);
    else
      most_[known->second] = std::max(most_[known->second], evaluations);
  }
  double added_to(double sum) const {
    sum += first_most_;
    for (double most : most_) sum += most;
    return sum;
  }

 private:
  std::int64_t first_count_ = -1;
  double first_most_ = 0;
  std::unordered_map<std::int64_t, std::size_t> position_;  // of the others
  std::vector<double> most_;
};

// How often consumers evaluate the elements of a node, given evaluated(consumer), how often each consumer
// evaluates its own. Elementwise consumers of one size are assumed to share a kernel, which evaluates shared
// values once. This does not apply to values so expensive that a wrong assumption would hurt. Linear in the
// uses.
template <class Evaluated>
double evaluations_by(const Graph& graph, std::span<const Uses::Use> uses, double cost,
                      const Evaluated& evaluated) {
  double sum = 0;
  SharedEvaluations sharing;
  for (std::size_t i = 0; i < uses.size();) {
    const NodeIndex consumer = uses[i].consumer;
    const GraphNode& user = graph[consumer];
    double most = 0;  // x * x evaluates x once
    for (; i < uses.size() && uses[i].consumer == consumer; ++i)
      most = std::max(most, evaluations_per_element(graph, consumer, at(uses[i].slot)));
    most *= evaluated(consumer);
    if (user.kind() != OpKind::elementwise || cost > kDear)
      sum += most;
    else
      sharing.add(user.element_count(), most);
  }
  return sharing.added_to(sum);
}

// The same count as the direct consumers request it, behind views, each evaluated once. One pass over the
// graph for all views.
class AskedEvaluations {
 public:
  AskedEvaluations(const Graph& graph, const Uses& uses) : graph_(graph), uses_(uses) {
    for (const bool dear : {false, true}) {
      of_view_[dear].resize(graph.nodes.size(), 0);
      for (NodeIndex i = graph.size() - 1; i >= 0; --i)
        if (graph[i].kind() == OpKind::view)
          of_view_[dear][at(i)] = of(i, dear ? std::numeric_limits<double>::infinity() : 0);
    }
  }

  double of(NodeIndex index, double cost) const {
    return evaluations_by(graph_, uses_[index], cost, [&](NodeIndex consumer) {
      return graph_[consumer].kind() == OpKind::view ? of_view_[cost > kDear][at(consumer)]
                                                     : static_cast<double>(graph_[consumer].element_count());
    });
  }

 private:
  const Graph& graph_;
  const Uses& uses_;
  std::vector<double> of_view_[2];  // per view; by whether the value is dear
};

// The cost of one element if the longer folds inside it had memory, and a list of those folds without the
// node itself. Visits each node inside it once: a chain of y * y + y has 2^depth paths to a node.
class AboveFolds {
 public:
  AboveFolds(const Graph& graph, const std::vector<std::uint8_t>& memory)
      : graph_(graph),
        memory_(memory),
        known_(graph.nodes.size()),
        listed_(graph.nodes.size()),
        costs_(graph.nodes.size(), 0) {}

  double cost_of(NodeIndex index) {
    known_.clear();
    listed_.clear();
    folds_.clear();
    return cost(index);
  }
  const std::vector<NodeIndex>& folds() const { return folds_; }

 private:
  double cost(NodeIndex index) {
    if (known_.contains(index)) return costs_[at(index)];
    double cost = op_cost(graph_, index);
    for (std::size_t slot = 0; slot < graph_[index].inputs.size(); ++slot) {
      const NodeIndex input = graph_[index].inputs[slot];
      const double evaluations = evaluations_per_element(graph_, index, slot);
      if (memory_[at(input)]) {
        cost += evaluations;
      } else if (fold_length(graph_, input) >= 8 && !wants_lanes(graph_, input)) {
        if (listed_.insert(input)) folds_.push_back(input);
        cost += evaluations;
      } else {
        cost += evaluations * this->cost(input);
      }
    }
    known_.insert(index);
    costs_[at(index)] = cost;
    return cost;
  }

  const Graph& graph_;
  const std::vector<std::uint8_t>& memory_;
  Marks known_, listed_;
  std::vector<double> costs_;  // of known nodes
  std::vector<NodeIndex> folds_;
};

// Decides which values get memory: first forward by the cost of one element of each node, then backward by
// how often each is evaluated. Walks from each node down to memory, at most FusionOptions::node_limit nodes:
// linear in the graph.
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
        uses_(graph),
        asked_(graph, uses_),
        memory_(graph.nodes.size(), 0),
        cost_(graph.nodes.size(), 0),
        above_folds_(graph, memory_),
        inlined_(graph, memory_),
        code_(graph.nodes.size(), kOneNode),
        inside_(graph.nodes.size(), 1),
        stays_inside_(graph.nodes.size(), 0),
        computed_(computed_inputs(graph, forced)),
        pads_(options.pads_inside ? pads_of_windows(graph)
                                  : std::vector<std::uint8_t>(graph.nodes.size(), 0)),
        seen_(graph.nodes.size()) {
    for (NodeIndex i = 0; i < graph.size(); ++i)
      without_views_.push_back(graph[i].kind() == OpKind::view ? without_views_[at(graph[i].inputs[0])] : i);
  }

  std::vector<std::uint8_t> run() {
    if (!options_.fuse) return of_every_operation();
    const std::vector<ShiftedValue> shifted =
        keep_row_values(graph_, uses_, forced_, region_of_, row_group_of_, memory_);
    for (NodeIndex i = 0; i < graph_.size(); ++i) {
      const auto& inputs = graph_[i].inputs;
      for (std::size_t slot = 0; slot < inputs.size(); ++slot)  // x + x holds x once
        if (!memory_[at(inputs[slot])] && (slot == 0 || inputs[slot] != inputs[slot - 1]))
          inside_[at(i)] += inside_[at(inputs[slot])];
      if (row_group_of_[at(i)] >= 0)
        cost_[at(i)] = 1;
      else
        decide_by_cost(i);
    }
    count_evaluations();
    for (const ShiftedValue& value : shifted)
      if (!memory_[at(value.source)]) memory_[at(value.node)] = 1;
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
        const NodeIndex source = without_views_[at(node.inputs[slot])];
        const double share = evaluations_per_element(graph_, i, slot) / lanes * cost_[at(source)];
        const double limit = in_region && region_of_[at(source)] == region_of_[at(i)]
                                 ? options_.region_serial_limit
                                 : options_.serial_limit;
        if (!memory_[at(source)] && !stays_inside_[at(source)] && !is_literal(graph_[source]) &&
            share > limit / 2 && cost_[at(source)] > 16) {
          memory_[at(source)] = 1;
          for (NodeIndex view = node.inputs[slot]; view != source; view = graph_[view].inputs[0])
            cost_[at(view)] = 2;
        }
      }
    cost_[at(i)] = cost_of(graph_, i, memory_, cost_) / lanes;
  }

  // Counts the node's code from that of its inputs. Returns the inputs whose code is inside of it.
  int count_code(NodeIndex i) {
    const GraphNode& node = graph_[i];
    Code& code = code_[at(i)];
    code = node.inputs.empty() ? Code{} : kOneNode;
    code.has_branches = node.op == Op::pad || node.op == Op::concat;
    int open = 0;
    double beyond_own = 0;  // of one input: its nodes that may also be inside of other inputs
    for (std::size_t slot = 0; slot < node.inputs.size(); ++slot) {
      const NodeIndex input = node.inputs[slot];
      // x * x has the code of x once; concat of x and x has it twice, at two places.
      const bool is_repeated =
          node.kind() == OpKind::elementwise && slot > 0 && input == node.inputs[slot - 1];
      if (memory_[at(input)] || is_repeated) continue;
      if (!graph_[input].inputs.empty()) ++open;
      const Code& inner = code_[at(input)];
      const double own = uses_[input].size() == 1 ? inner.own : 0;
      code.has_branches = code.has_branches || inner.has_branches;
      code.paths += inner.paths;
      code.linear_paths += node.kind() == OpKind::elementwise ? inner.linear_paths : inner.paths;
      code.own += own;
      beyond_own = std::max(beyond_own, inner.nodes - own);
    }
    code.nodes = code.own + beyond_own;
    return open;
  }

  // Gives memory to inputs of a node that would compute too many values again. pad and concat evaluate few
  // elements of an input, which its cost counts, but write its code once per path to it.
  void limit_code(NodeIndex i) {
    constexpr std::int64_t kShort = 16;  // values that are not worth memory
    const GraphNode& node = graph_[i];
    const int open = count_code(i);
    Code& code = code_[at(i)];
    const std::int64_t most = options_.repeat_limit;
    // One index of its only input: no more repeats than the input has, which were limited.
    if (open <= 1 && (node.kind() == OpKind::view || node.kind() == OpKind::elementwise)) return;
    if (!code.has_branches || code.linear_paths - code.nodes <= static_cast<double>(most)) return;
    const std::int64_t before = inlined_.steps(), repeats = inlined_.repeats(i, most);
    count_steps(options_, inlined_.steps() - before);
    if (repeats <= most) {
      code.nodes = static_cast<double>(inlined_.nodes());
      code.linear_paths = code.nodes + static_cast<double>(repeats);
      return;
    }
    const std::int64_t share = std::max(kShort, most / static_cast<std::int64_t>(node.inputs.size()));
    for (NodeIndex input : node.inputs) {
      const NodeIndex source = without_views_[at(input)];
      if (memory_[at(source)] || is_literal(graph_[source]) || inlined_.values(input, share) < share)
        continue;
      memory_[at(source)] = 1;
      for (NodeIndex view = input; view != source; view = graph_[view].inputs[0]) {
        cost_[at(view)] = 2;
        code_[at(view)] = kOneNode;
      }
    }
    code = kOneNode;
    for (NodeIndex input : node.inputs)
      if (!memory_[at(input)]) {
        code.has_branches = true;
        code.paths += code_[at(input)].paths;
        code.linear_paths += code_[at(input)].paths;
      }
  }

  bool is_tiled(NodeIndex i) const { return region_of_[at(i)] < 0 && wants_tiles(graph_, i, options_); }

  // Gives memory to small operands of a tiled product that it would load one by one, many times: the weights
  // of a convolution, whose elements lie apart in the order of its terms.
  void arrange_operands(NodeIndex i) {
    constexpr std::int64_t kMost = 1 << 20, kLeastReads = 16;  // elements; tiles that read them
    if (options_.product_turn_operations > 0 || !is_tiled(i)) return;
    const ProductShape shape = product_shape(graph_, i);
    for (std::size_t slot = 0; slot < 2; ++slot) {
      NodeIndex operand = graph_[i].inputs[slot];
      while (graph_[operand].op == Op::expand) operand = graph_[operand].inputs[0];
      const NodeIndex source = without_views_[at(operand)];
      const std::int64_t others = shape.batch * (slot == 0 ? shape.columns : shape.rows),
                         count = graph_[operand].element_count();
      if (operand == source || !memory_[at(source)] || memory_[at(operand)] || count > kMost ||
          count > graph_[source].element_count() || others < kLeastReads * kTileExtent ||
          operand_layout(graph_, memory_, i, slot, graph_[operand].dtype == DType::float16 ? 8 : 4).width > 1)
        continue;
      memory_[at(operand)] = 1;
      cost_[at(operand)] = 1;
    }
  }

  // Whether only tiled products read the node, behind views. They test whether an element is inside once for
  // many products.
  bool feeds_products(NodeIndex i) const {
    return options_.product_turn_operations == 0 && !uses_[i].empty() &&
           std::ranges::all_of(uses_[i], [&](const Uses::Use& use) {
             return graph_[use.consumer].kind() == OpKind::view ? feeds_products(use.consumer)
                                                                : is_tiled(use.consumer);
           });
  }

  // Inputs of a page whose loads compute nothing.
  void store_inputs(NodeIndex index) {
    const tensor::LibraryPage& page = *graph_[index].source->page;
    for (std::size_t slot = 0; slot < graph_[index].inputs.size(); ++slot) {
      if (std::ranges::count(page.computed, slot) > 0) continue;
      if (!page.stored_inputs && std::ranges::find(page.quads, slot) == page.quads.end() &&
          std::ranges::find(page.eights, slot) == page.eights.end())
        continue;
      const NodeIndex input = graph_[index].inputs[slot];
      const NodeIndex source = without_views_[at(input)];
      if (memory_[at(source)] || is_literal(graph_[source])) continue;
      memory_[at(source)] = 1;
      for (NodeIndex view = input; view != source; view = graph_[view].inputs[0]) {
        cost_[at(view)] = 2;
        code_[at(view)] = kOneNode;
      }
    }
  }

  void decide_by_cost(NodeIndex i) {
    const GraphNode& node = graph_[i];
    const bool in_region = region_of_[at(i)] >= 0;
    arrange_operands(i);
    if (node.op == Op::page) store_inputs(i);
    limit_code(i);
    limit_serial_work(i, lanes_of(i));
    if (memory_[at(i)]) return;  // a consumer already requested memory for it
    if (wants_lanes(graph_, i) || joins_tails(graph_, uses_, i)) return;
    const bool own_kernel =
        !in_region && (wants_group(graph_, i, options_) || wants_columns(graph_, i, options_) ||
                       wants_tiles(graph_, i, options_));
    memory_[at(i)] = is_memory_leaf(node) || forced_[at(i)] || node.kind() == OpKind::scan ||
                     node.kind() == OpKind::page || own_kernel || inlines_too_much(i);
    if (memory_[at(i)] || is_literal(node) || node.kind() == OpKind::view) return;
    if (computed_[at(i)] && cost_[at(i)] <= kDear) {
      stays_inside_[at(i)] = 1;
      return;
    }
    if (is_rounded_result(i)) {
      stays_inside_[at(i)] = 1;
      return;
    }
    // The source of such a pad has memory (Fuser::forced_nodes).
    const bool is_cheap =
        !in_region && (pads_[at(i)] || (options_.channels_last && node.dtype == DType::float16));
    if (node.op == Op::pad && (is_cheap || feeds_products(i))) {
      stays_inside_[at(i)] = 1;
      return;
    }
    const double again =
        std::max(0.0, asked_.of(i, cost_[at(i)]) - static_cast<double>(node.element_count()));
    if (again * cost_[at(i)] <= recompute_limit(graph_, i, region_of_, options_) ||
        is_cheap_scalar(node, cost_[at(i)], options_))
      return;
    // A cheap combination of folds, such as a clip factor from squared norms. The folds get memory because
    // they can run in parallel. Otherwise a separate kernel would combine them while everything waits.
    const double above = above_folds_.cost_of(i);
    if (!in_region && !above_folds_.folds().empty() &&
        (again * above <= options_.recompute_limit || above <= options_.cheap_combination)) {
      for (NodeIndex fold : above_folds_.folds()) memory_[at(fold)] = 1;
      cost_[at(i)] = above;
    } else {
      memory_[at(i)] = 1;
    }
  }

  // A result that is stored as float16 (narrow_products.h): its readers take half as many bytes.
  bool is_rounded_result(NodeIndex i) const {
    if (graph_[i].op != Op::cast) return false;
    const GraphNode& source = graph_[graph_[i].inputs[0]];
    return source.op == Op::cast && source.stays_tiled;
  }

  // Whether more than node_limit distinct nodes would be computed inside this one. Counts them only where
  // the paths to memory have more.
  bool inlines_too_much(NodeIndex index) {
    if (inside_[at(index)] <= options_.node_limit) return false;
    seen_.clear();
    seen_.insert(index);
    found_.assign(1, index);
    const auto most = static_cast<std::size_t>(options_.node_limit) + 1;
    for (std::size_t next = 0; next < found_.size() && found_.size() < most; ++next)
      for (NodeIndex input : graph_[found_[next]].inputs)
        if (!memory_[at(input)] && seen_.insert(input)) found_.push_back(input);
    const auto count = static_cast<std::int32_t>(std::min(found_.size(), most));
    count_steps(options_, count);
    inside_[at(index)] = count;
    return count > options_.node_limit;
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
      evaluated[at(i)] = evaluations_by(graph_, uses_[i], cost_[at(i)],
                                        [&](NodeIndex consumer) { return evaluated[at(consumer)]; });
      if (!memory_[at(i)] && !stays_inside_[at(i)] && !is_literal(node) && node.kind() != OpKind::view &&
          !wants_lanes(graph_, i) && !joins_tails(graph_, uses_, i) &&
          !is_cheap_scalar(node, cost_[at(i)], options_))
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
  const Uses uses_;
  const AskedEvaluations asked_;
  std::vector<std::uint8_t> memory_;
  std::vector<double> cost_;  // per node: of one element
  // Per node: itself, or what it is a view of. Memory goes to the op that computes a value.
  std::vector<NodeIndex> without_views_;
  AboveFolds above_folds_;
  // Bounds of the code of one value, in nodes with inputs down to memory: at most those on all paths, at
  // least `nodes` different ones. Their difference is the most that is computed again.
  struct Code {
    double paths = 0, linear_paths = 0;  // at any index; at one of all its elements, as of a root
    double nodes = 0, own = 0;           // own: those that nothing else reads, except through this one
    bool has_branches = false;           // whether pad or concat computes it
  };
  static constexpr Code kOneNode{1, 1, 1, 1, false};
  InlinedCode inlined_;
  std::vector<Code> code_;                  // per node
  std::vector<double> inside_;              // per node: most nodes computed inside of it, with itself
  std::vector<std::uint8_t> stays_inside_;  // per node: computed inside of its readers, whatever that costs
  std::vector<std::uint8_t> computed_;      // per node: only computed inputs of pages read it
  std::vector<std::uint8_t> pads_;          // per node: pads_of_windows
  Marks seen_;
  std::vector<NodeIndex> found_;  // by the walk of inlines_too_much
};

}  // namespace

std::vector<std::uint8_t> choose_materialized(const Graph& graph, const std::vector<std::uint8_t>& forced,
                                              const std::vector<std::int32_t>& region_of,
                                              const std::vector<std::int32_t>& row_group_of,
                                              const FusionOptions& options) {
  return MemoryChoice(graph, forced, region_of, row_group_of, options).run();
}

}  // namespace imprint::graph
