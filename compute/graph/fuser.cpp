#include "compute/graph/fuser.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "compute/graph/cost.h"
#include "compute/graph/element_reads.h"
#include "compute/graph/product.h"
#include "compute/graph/row_reads.h"
#include "compute/graph/task_order.h"
#include "compute/graph/workgroups.h"

namespace imprint::graph {
namespace {

constexpr std::size_t kMaxMembers = 12;    // values per kernel
constexpr double kMaxEpilogueCost = 400;   // operations that the single writing lane of a group fold may add
constexpr std::int64_t kMaxRowWidth = 16;  // elements of a row that an invocation keeps in registers

}  // namespace

Result<Schedule> Fuser::run() {
  schedule_.variables = request_.variables;
  schedule_.place.resize(graph_.nodes.size());
  task_of_.assign(graph_.nodes.size(), -1);
  IMPRINT_CHECK(place_leaves());
  schedule_.materialized =
      choose_materialized(graph_, forced_nodes(), split_.region_of, rows_.group_of, options_);
  leave_weights_to_regions();
  add_tasks();
  store_outputs();
  store_updates();
  store_temporaries();
  plan_regions();
  IMPRINT_CHECK(order_tasks(schedule_));
  share_tiles();
  choose_workgroups(graph_, options_, schedule_);
  return std::move(schedule_);
}

// ---- leaves and roots ----

Status Fuser::place_leaves() {
  for (NodeIndex i = 0; i < graph_.size(); ++i) {
    const GraphNode& node = graph_[i];
    Place& place = schedule_.place[at(i)];
    if (node.op == Op::constant) {
      place = {PlaceKind::constant, i};
    } else if (node.op == Op::input) {
      const auto found = std::ranges::find(request_.inputs, i);
      if (found == request_.inputs.end())
        return make_error(ErrorCode::invalid_argument, "inputs: found no '" + node.source->label +
                                                           "', expected every input that the program uses");
      place = {PlaceKind::input, static_cast<std::int32_t>(found - request_.inputs.begin())};
    } else if (node.op == Op::variable) {
      const auto found = std::ranges::find(request_.variables, node.source->variable);
      place = {PlaceKind::variable, static_cast<std::int32_t>(found - request_.variables.begin())};
    }
  }
  return {};
}

NodeIndex Fuser::without_reshape(NodeIndex index) const {
  while (graph_[index].op == Op::reshape) index = graph_[index].inputs[0];
  return index;
}

std::vector<std::uint8_t> Fuser::forced_nodes() const {
  std::vector<std::uint8_t> forced(graph_.nodes.size(), 0);
  for (const GraphOutput& output : request_.outputs) forced[at(without_reshape(output.node))] = 1;
  for (const GraphUpdate& update : request_.updates) {
    if (update.rows < 0) {
      forced[at(without_reshape(update.value))] = 1;
    } else if (reads_updated_variable(update.value) || reads_updated_variable(update.rows) ||
               split_.region_of[at(without_reshape(update.value))] >= 0) {
      // If rows depend on content that this program overwrites, both values and row numbers must be complete
      // before any overwrite.
      forced[at(without_reshape(update.value))] = 1;
      forced[at(without_reshape(update.rows))] = 1;
    }
  }
  for (NodeIndex i = 0; i < graph_.size(); ++i)
    if (graph_[i].blocks > 0 || graph_[i].is_snapshot) forced[at(i)] = 1;
  const auto consumers = split_.regions.empty() ? std::vector<std::vector<NodeIndex>>{} : graph_.consumers();
  for (NodeIndex i = 0; i < graph_.size(); ++i) {
    const std::int32_t region = split_.region_of[at(i)];
    if (region < 0 || graph_[i].kind() == OpKind::view) continue;
    if (graph_[i].op == Op::matmul || leaves_region(consumers, i, region)) forced[at(i)] = 1;
  }
  return forced;
}

bool Fuser::leaves_region(const std::vector<std::vector<NodeIndex>>& consumers, NodeIndex index,
                          std::int32_t region) const {
  return std::ranges::any_of(consumers[at(index)], [&](NodeIndex consumer) {
    if (split_.region_of[at(consumer)] == region) return false;
    return graph_[consumer].kind() != OpKind::view || leaves_region(consumers, consumer, region);
  });
}

bool Fuser::reads_updated_variable(NodeIndex index) const {
  std::vector<NodeIndex> stack{index};
  std::vector<std::uint8_t> seen(graph_.nodes.size(), 0);
  while (!stack.empty()) {
    const NodeIndex node = stack.back();
    stack.pop_back();
    if (std::exchange(seen[at(node)], 1)) continue;
    if (graph_[node].op == Op::variable &&
        std::ranges::find(request_.updates, schedule_.place[at(node)].index, &GraphUpdate::variable) !=
            request_.updates.end())
      return true;
    stack.insert(stack.end(), graph_[node].inputs.begin(), graph_[node].inputs.end());
  }
  return false;
}

// ---- kernels ----

bool Fuser::runs_on_matrix_units(std::int32_t region) const {
  return options_.narrow_products && suits_matrix_units(graph_, split_, region, options_) &&
         std::ranges::all_of(graph_.nodes, [&](const GraphNode& node) {
           const bool is_own =
               split_.region_of[static_cast<std::size_t>(&node - graph_.nodes.data())] == region;
           return !is_own || node.op != Op::matmul ||
                  (graph_[node.inputs[0]].dtype == DType::float16 &&
                   graph_[node.inputs[1]].dtype == DType::float16);
         });
}

void Fuser::leave_weights_to_regions() {
  std::vector<std::uint8_t> read(graph_.nodes.size(), 0), read_elsewhere(graph_.nodes.size(), 0);
  std::vector<std::uint8_t> on_units(split_.regions.size(), 0);
  for (std::size_t r = 0; r < on_units.size(); ++r)
    on_units[r] = runs_on_matrix_units(static_cast<std::int32_t>(r));
  if (std::ranges::find(on_units, 1) == on_units.end()) return;
  for (NodeIndex i = 0; i < graph_.size(); ++i)
    for (std::size_t slot = 0; slot < graph_[i].inputs.size(); ++slot) {
      const bool by_units = slot == 1 && graph_[i].op == Op::matmul && split_.region_of[at(i)] >= 0 &&
                            on_units[at(split_.region_of[at(i)])];
      (by_units ? read : read_elsewhere)[at(graph_[i].inputs[slot])] = 1;
    }
  for (NodeIndex i = 0; i < graph_.size(); ++i)
    if (read[at(i)] && !read_elsewhere[at(i)] && graph_[i].op == Op::cast &&
        is_memory_leaf(graph_[graph_[i].inputs[0]]))
      schedule_.materialized[at(i)] = 0;
}

void Fuser::add_tasks() {
  std::int32_t phases = 0;
  for (std::int32_t phase : split_.phase) phases = std::max(phases, phase + 1);
  for (std::int32_t phase = 0; phase < phases; ++phase) {
    for (NodeIndex i = 0; i < graph_.size(); ++i)
      if (split_.phase[at(i)] == phase && split_.region_of[at(i)] < 0) add_behind_inputs(i);
    for (std::size_t r = 0; r < split_.regions.size(); ++r)
      if (split_.regions[r].phase == phase) add_region(static_cast<std::int32_t>(r));
  }
}

void Fuser::add_behind_inputs(NodeIndex root) {
  added_.resize(graph_.nodes.size(), 0);
  std::vector<std::pair<NodeIndex, bool>> stack{{root, false}};
  while (!stack.empty()) {
    const auto [node, has_inputs] = stack.back();
    stack.pop_back();
    if (added_[at(node)]) continue;
    const std::int32_t group = rows_.group_of[at(node)];
    if (has_inputs) {
      if (group >= 0)
        add_row_group(group);
      else if (schedule_.materialized[at(node)] && !is_memory_leaf(graph_[node]))
        add_node(node);
      for (NodeIndex member : group >= 0 ? group_nodes(group) : std::vector{node}) added_[at(member)] = 1;
      continue;
    }
    stack.emplace_back(node, true);
    for (NodeIndex member : group >= 0 ? group_nodes(group) : std::vector{node})
      for (NodeIndex input : graph_[member].inputs)
        if (split_.phase[at(input)] == split_.phase[at(node)] && split_.region_of[at(input)] < 0 &&
            (group < 0 || rows_.group_of[at(input)] != group))
          stack.emplace_back(input, false);
  }
}

std::vector<NodeIndex> Fuser::group_nodes(std::int32_t group) const {
  std::vector<NodeIndex> nodes;
  for (NodeIndex i = 0; i < graph_.size(); ++i)
    if (rows_.group_of[at(i)] == group) nodes.push_back(i);
  return nodes;
}

void Fuser::add_row_group(std::int32_t group) {
  const std::vector<NodeIndex> nodes = group_nodes(group);
  Task task;
  task.kind = TaskKind::row_fold;
  std::ranges::copy_if(nodes, std::back_inserter(task.folds),
                       [&](NodeIndex node) { return graph_[node].kind() == OpKind::reduce; });
  task.anchor = task.folds.front();
  task.element_count = graph_[task.anchor].element_count();
  schedule_.tasks.push_back(std::move(task));
  const auto t = static_cast<std::int32_t>(schedule_.tasks.size()) - 1;
  for (NodeIndex node : nodes) {
    if (!schedule_.materialized[at(node)]) continue;
    std::vector<Read> reads = reads_of(node);
    for (Read& read : reads) read.aligned = false;
    join(t, node, reads);
  }
}

void Fuser::add_region(std::int32_t index) {
  const RegionNodes& nodes = split_.regions[static_cast<std::size_t>(index)];
  Region region;
  region.kernel = nodes.kernel;
  region.rows = nodes.rows;
  region.groups = nodes.groups;
  region.row_block = nodes.row_block;
  region.turns = nodes.turns;
  region.blocks = nodes.blocks;
  region.invocations = nodes.invocations;
  region.vectors = options_.region_vectors;
  if (runs_on_matrix_units(index)) region.matrix_groups = options_.region_groups;
  Task task;
  task.kind = TaskKind::region;
  task.region = index;
  task.element_count = nodes.groups * nodes.blocks;
  task.choices = nodes.choices;
  schedule_.regions.push_back(std::move(region));
  schedule_.tasks.push_back(std::move(task));
  const auto t = static_cast<std::int32_t>(schedule_.tasks.size()) - 1;
  for (NodeIndex i = 0; i < graph_.size(); ++i)
    if (split_.region_of[at(i)] == index && schedule_.materialized[at(i)]) {
      std::vector<Read> reads = reads_of(i);
      for (Read& read : reads) read.aligned = false;
      join(t, i, reads);
    }
}

void Fuser::plan_regions() {
  for (Task& task : schedule_.tasks)
    if (task.kind == TaskKind::region) {
      Region& region = schedule_.regions[static_cast<std::size_t>(task.region)];
      if (!plan_region(graph_, schedule_, split_, options_, task, region) ||
          wants_turns(region, split_.regions[static_cast<std::size_t>(task.region)]))
        outgrown_.push_back(task.region);
    }
}

bool Fuser::wants_turns(const Region& region, const RegionNodes& nodes) const {
  constexpr std::int32_t kLeastRows = 16;  // per turn; fewer rows are too few for tiles
  return nodes.may_turn && region.row_block / 2 >= kLeastRows &&
         region.blocks * region.groups > options_.region_groups &&
         4 * (region.shared_floats + region.shared_ints) > options_.region_resident_bytes;
}

std::vector<Read> Fuser::reads_of(NodeIndex index) const {
  if (is_memory_leaf(graph_[index])) return {{index, true}};
  std::vector<Read> reads = reads_by_element(
      graph_, index,
      [&](NodeIndex node) {
        return graph_[node].kind() == OpKind::elementwise || graph_[node].op == Op::reshape;
      },
      [&](NodeIndex node) { return schedule_.materialized[at(node)] != 0; });
  std::ranges::sort(reads, {}, &Read::node);
  return reads;
}

void Fuser::add_node(NodeIndex index) {
  const std::vector<Read> reads = reads_of(index);
  const GraphNode& node = graph_[index];
  if (node.blocks > 0) {  // partial results over the elements of the one sum that it reads
    const std::int32_t t = reads.empty() ? -1 : task_of_[at(reads.front().node)];
    const bool is_there =
        t >= 0 && schedule_.tasks[static_cast<std::size_t>(t)].kind == TaskKind::column_fold &&
        std::ranges::all_of(reads, [&](const Read& read) { return task_of_[at(read.node)] == t; });
    if (!is_there) {
      tails_fit_ = false;
      return;
    }
    schedule_.tasks[static_cast<std::size_t>(t)].tails.push_back(index);
    task_of_[at(index)] = t;
    return;
  }
  TaskKind kind = TaskKind::map;
  if (node.op == Op::custom)
    kind = TaskKind::custom;
  else if (node.kind() == OpKind::scan)
    kind = TaskKind::scan;
  else if (options_.fuse && wants_tiles(graph_, index, options_))
    kind = TaskKind::product;
  else if (options_.fuse && wants_columns(graph_, index, options_))
    kind = TaskKind::column_fold;
  else if (wants_group(graph_, index, options_))
    kind = TaskKind::group_fold;

  if (kind == TaskKind::map && options_.fuse) {
    const std::vector<Read> by_row = reads_by_row(graph_, schedule_.materialized, index);
    if (const std::int32_t host = find_row_host(index, by_row); host >= 0) {
      join(host, index, by_row);
      return;
    }
    if (const std::int32_t host = find_host(index, reads); host >= 0) {
      join(host, index, reads);
      return;
    }
  }
  Task task;
  task.kind = kind;
  task.anchor = kind == TaskKind::map ? -1 : index;
  task.element_count = node.element_count();
  if (kind == TaskKind::product) {
    task.tile = choose_tile(graph_, schedule_.materialized, index, options_, task.choices);
  }
  schedule_.tasks.push_back(std::move(task));
  join(static_cast<std::int32_t>(schedule_.tasks.size()) - 1, index,
       kind == TaskKind::custom ? reads_by_row(graph_, schedule_.materialized, index) : reads);
}

std::int32_t Fuser::find_row_host(NodeIndex index, const std::vector<Read>& reads) const {
  const GraphNode& node = graph_[index];
  if (node.shape.rank() == 0 || node.shape[0] == 0 || node.element_count() / node.shape[0] > kMaxRowWidth)
    return -1;
  for (std::size_t t = 0; t < schedule_.tasks.size(); ++t) {
    const Task& task = schedule_.tasks[t];
    if (task.kind != TaskKind::custom || graph_[task.anchor].shape[0] != node.shape[0]) continue;
    bool possible = true, follows = false;
    for (const Read& read : reads) {
      const std::int32_t producer = task_of_[at(read.node)];
      const bool own = producer == static_cast<std::int32_t>(t);
      follows = follows || own;
      possible =
          possible &&
          (own ? read.aligned
               : producer < 0 || schedule_.tasks[static_cast<std::size_t>(producer)].level < task.level);
    }
    if (possible && follows) return static_cast<std::int32_t>(t);
  }
  return -1;
}

std::int32_t Fuser::find_host(NodeIndex index, const std::vector<Read>& reads) const {
  std::int32_t best = -1;
  for (std::int32_t t = static_cast<std::int32_t>(schedule_.tasks.size()) - 1; t >= 0; --t) {
    const Task& task = schedule_.tasks[static_cast<std::size_t>(t)];
    if (task.element_count != graph_[index].element_count() || task.kind == TaskKind::scan ||
        task.kind == TaskKind::region || task.kind == TaskKind::custom || task.kind == TaskKind::row_fold ||
        task.members.size() >= kMaxMembers)
      continue;
    bool possible = true, shares = false, continues = false;
    for (const Read& read : reads) {
      const std::int32_t producer = task_of_[at(read.node)];
      if (producer == t) {
        possible = possible && read.aligned;
        continues = true;
      } else if (producer >= 0) {
        possible = possible && schedule_.tasks[static_cast<std::size_t>(producer)].level < task.level;
      }
      if (!possible) break;
      shares = shares || (graph_[read.node].element_count() > 1 &&
                          std::ranges::find(task.reads, read.node, &Read::node) != task.reads.end());
    }
    if (!possible || !(continues || (shares && task.kind == TaskKind::map))) continue;
    if (task.kind != TaskKind::map && cheap_cost(index) > kMaxEpilogueCost) continue;
    if (best < 0 || task.level > schedule_.tasks[static_cast<std::size_t>(best)].level) best = t;
  }
  return best;
}

double Fuser::cheap_cost(NodeIndex index) const {
  double cost = op_cost(graph_, index);
  for (std::size_t slot = 0; slot < graph_[index].inputs.size(); ++slot) {
    const NodeIndex input = graph_[index].inputs[slot];
    cost += evaluations_per_element(graph_, index, slot) *
            (schedule_.materialized[at(input)] ? 1.0 : cheap_cost(input));
    if (cost > kMaxEpilogueCost) break;
  }
  return cost;
}

void Fuser::join(std::int32_t t, NodeIndex index, const std::vector<Read>& reads) {
  Task& task = schedule_.tasks[static_cast<std::size_t>(t)];
  task.members.push_back(index);
  if (!is_memory_leaf(graph_[index])) task_of_[at(index)] = t;
  add_reads(t, reads);
}

void Fuser::add_reads(std::int32_t t, const std::vector<Read>& reads) {
  Task& task = schedule_.tasks[static_cast<std::size_t>(t)];
  for (const Read& read : reads) {
    const std::int32_t producer = task_of_[at(read.node)];
    if (producer == t) continue;
    const auto known = std::ranges::find(task.reads, read.node, &Read::node);
    if (known == task.reads.end())
      task.reads.push_back(read);
    else
      known->aligned = known->aligned && read.aligned;
    if (producer >= 0) add_order(producer, t);
  }
}

void Fuser::add_order(std::int32_t before, std::int32_t task) {
  Task& later = schedule_.tasks[static_cast<std::size_t>(task)];
  if (std::ranges::find(later.after, before) == later.after.end()) later.after.push_back(before);
  later.level = std::max(later.level, schedule_.tasks[static_cast<std::size_t>(before)].level + 1);
}

}  // namespace imprint::graph
