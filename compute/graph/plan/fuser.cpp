#include "compute/graph/plan/fuser.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>

#include "compute/graph/plan/kept_numbers.h"
#include "compute/graph/plan/task_order.h"
#include "compute/graph/plan/workgroups.h"
#include "compute/graph/regions/row_reads.h"
#include "compute/graph/schedule/cost.h"
#include "compute/graph/schedule/element_reads.h"
#include "compute/graph/schedule/exact_values.h"
#include "compute/graph/schedule/product.h"
#include "compute/tensor/pages/library_page.h"

namespace imprint::graph {
namespace {

constexpr std::size_t kMaxMembers = 12, kMaxScalars = 32;  // values per kernel, and of one element each
constexpr double kMaxEpilogueCost = 400;   // operations that the single writing lane of a group fold may add
constexpr std::int64_t kMaxRowWidth = 16;  // elements of a row that an invocation keeps in registers

bool is_full(const Task& task) {
  return task.members.size() >= (task.element_count == 1 ? kMaxScalars : kMaxMembers);
}

}  // namespace

Result<Schedule> Fuser::run() {
  schedule_.variables = request_.variables;
  schedule_.place.resize(graph_.nodes.size());
  task_of_.assign(graph_.nodes.size(), -1);
  IMPRINT_CHECK(place_leaves());
  list_members();
  const std::vector<std::uint8_t> forced = forced_nodes();
  schedule_.materialized = choose_materialized(graph_, forced, split_.region_of, rows_.group_of, options_);
  keep_numbers(graph_, forced, split_.region_of, rows_.group_of, options_, schedule_.materialized);
  leave_weights_to_regions();
  add_tasks();
  store_outputs();
  store_updates();
  store_temporaries();
  plan_regions();
  IMPRINT_CHECK(order_tasks(schedule_, options_));
  share_tiles();
  choose_workgroups(graph_, options_, schedule_);
  schedule_.exact = exact_values(graph_, schedule_.materialized, options_);
  return std::move(schedule_);
}

// ---- leaves and roots ----

Result<> Fuser::place_leaves() {
  std::unordered_map<NodeIndex, std::int32_t> inputs;
  std::unordered_map<const VariableState*, std::int32_t> variables;
  for (std::size_t i = 0; i < request_.inputs.size(); ++i)
    inputs.emplace(request_.inputs[i], static_cast<std::int32_t>(i));
  for (std::size_t i = 0; i < request_.variables.size(); ++i)
    variables.emplace(request_.variables[i].get(), static_cast<std::int32_t>(i));
  for (NodeIndex i = 0; i < graph_.size(); ++i) {
    const GraphNode& node = graph_[i];
    Place& place = schedule_.place[at(i)];
    if (node.op == Op::constant) {
      place = {PlaceKind::constant, i};
    } else if (node.op == Op::input) {
      const auto found = inputs.find(i);
      if (found == inputs.end())
        return make_error(ErrorCode::invalid_argument, "inputs: found no '" + node.source->label +
                                                           "', expected every input that the program uses");
      place = {PlaceKind::input, found->second};
    } else if (node.op == Op::variable) {
      place = {PlaceKind::variable, variables.at(node.source->variable.get())};
    }
  }
  return {};
}

std::vector<std::uint8_t> Fuser::forced_nodes() const {
  std::vector<std::uint8_t> forced(graph_.nodes.size(), 0);
  const std::vector<std::uint8_t> reads_updated = nodes_of_updated_variables();
  for (const GraphOutput& output : request_.outputs) forced[at(graph_.without_reshape(output.node))] = 1;
  for (const GraphUpdate& update : request_.updates) {
    if (update.rows < 0) {
      forced[at(graph_.without_reshape(update.value))] = 1;
    } else if (reads_updated[at(update.value)] || reads_updated[at(update.rows)] ||
               split_.region_of[at(graph_.without_reshape(update.value))] >= 0) {
      // If rows depend on content that this program overwrites, both values and row numbers must be complete
      // before any overwrite.
      forced[at(graph_.without_reshape(update.value))] = 1;
      forced[at(graph_.without_reshape(update.rows))] = 1;
    }
  }
  const auto is_rounded_result = [](const GraphNode& node) {  // narrow_products.h
    return node.op == Op::cast && node.stays_tiled;
  };
  for (NodeIndex i = 0; i < graph_.size(); ++i)
    if (graph_[i].blocks > 0 || graph_[i].is_snapshot || stays_apart(graph_[i], options_) ||
        is_rounded_result(graph_[i]))
      forced[at(i)] = 1;
  // Windows read a value many times: it has memory, and what pads it does not.
  if (options_.pads_inside) {
    const std::vector<std::uint8_t> pads = pads_of_windows(graph_);
    for (NodeIndex i = 0; i < graph_.size(); ++i)
      if (pads[at(i)] && split_.region_of[at(i)] < 0)
        forced[at(graph_.without_views(graph_[i].inputs[0]))] = 1;
  }
  for (NodeIndex i = 0; i < graph_.size() && options_.channels_last; ++i) {
    const GraphNode& node = graph_[i];
    if (node.dtype != DType::float16 || (node.op != Op::pad && node.op != Op::window)) continue;
    if (node.op == Op::pad && node.stays_tiled) {  // has memory itself, which windows read in eights
      forced[at(i)] = 1;
      continue;
    }
    const NodeIndex source = graph_.without_views(node.inputs[0]);
    if (graph_[source].op == Op::cast) forced[at(source)] = 1;
  }
  const auto consumers = split_.regions.empty() ? std::vector<std::vector<NodeIndex>>{} : graph_.consumers();
  for (NodeIndex i = 0; i < graph_.size(); ++i) {
    const std::int32_t region = split_.region_of[at(i)];
    if (region < 0 || graph_[i].kind() == OpKind::view) continue;
    if (graph_[i].op == Op::matmul || leaves_region(consumers, i, region)) forced[at(i)] = 1;
  }
  return forced;
}

// Views have one input, so that the views of all values together are visited once.
bool Fuser::leaves_region(const std::vector<std::vector<NodeIndex>>& consumers, NodeIndex index,
                          std::int32_t region) const {
  std::vector<NodeIndex> stack{index};
  while (!stack.empty()) {
    const NodeIndex node = stack.back();
    stack.pop_back();
    for (NodeIndex consumer : consumers[at(node)]) {
      if (split_.region_of[at(consumer)] == region) continue;
      if (graph_[consumer].kind() != OpKind::view) return true;
      stack.push_back(consumer);
    }
  }
  return false;
}

std::vector<std::uint8_t> Fuser::nodes_of_updated_variables() const {
  std::vector<std::uint8_t> is_updated(request_.variables.size(), 0), result(graph_.nodes.size(), 0);
  for (const GraphUpdate& update : request_.updates) is_updated[at(update.variable)] = 1;
  for (NodeIndex i = 0; i < graph_.size(); ++i)
    result[at(i)] =
        graph_[i].op == Op::variable
            ? is_updated[at(schedule_.place[at(i)].index)]
            : std::ranges::any_of(graph_[i].inputs, [&](NodeIndex input) { return result[at(input)] != 0; });
  return result;
}

void Fuser::list_members() {
  region_nodes_.resize(split_.regions.size());
  group_nodes_.resize(rows_.groups.size());
  for (NodeIndex i = 0; i < graph_.size(); ++i) {
    const auto phase = at(split_.phase[at(i)]);
    if (phase_nodes_.size() <= phase) phase_nodes_.resize(phase + 1);
    if (rows_.group_of[at(i)] >= 0) group_nodes_[at(rows_.group_of[at(i)])].push_back(i);
    const std::int32_t region = split_.region_of[at(i)];
    (region >= 0 ? region_nodes_[at(region)] : phase_nodes_[phase]).push_back(i);
  }
  count_steps(options_, graph_.size());
}

// ---- kernels ----

bool Fuser::runs_on_matrix_units(std::int32_t region) const {
  const std::vector<NodeIndex>& nodes = region_nodes_[at(region)];
  return options_.narrow_products && suits_matrix_units(graph_, split_, region, nodes, options_) &&
         std::ranges::all_of(nodes, [&](NodeIndex node) {
           return graph_[node].op != Op::matmul || (graph_[graph_[node].inputs[0]].dtype == DType::float16 &&
                                                    graph_[graph_[node].inputs[1]].dtype == DType::float16);
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
  added_.resize(graph_.nodes.size(), 0);
  schedule_.regions.resize(split_.regions.size());  // by index: a later region may have an earlier phase
  std::vector<std::vector<std::int32_t>> regions(phase_nodes_.size());
  for (std::size_t r = 0; r < split_.regions.size(); ++r)
    if (at(split_.regions[r].phase) < regions.size())
      regions[at(split_.regions[r].phase)].push_back(static_cast<std::int32_t>(r));
  for (std::size_t phase = 0; phase < phase_nodes_.size(); ++phase) {
    for (NodeIndex i : phase_nodes_[phase]) add_behind_inputs(i);
    for (std::int32_t region : regions[phase]) add_region(region);
  }
}

// Visits each node and each edge once, over all calls.
void Fuser::add_behind_inputs(NodeIndex root) {
  std::vector<std::pair<NodeIndex, bool>> stack{{root, false}};
  while (!stack.empty()) {
    const auto [node, has_inputs] = stack.back();
    stack.pop_back();
    count_steps(options_, 1);
    if (added_[at(node)]) continue;
    const std::int32_t group = rows_.group_of[at(node)];
    if (has_inputs) {
      if (group >= 0)
        add_row_group(group);
      else if (schedule_.materialized[at(node)] && !is_memory_leaf(graph_[node]))
        add_node(node);
      added_[at(node)] = 1;
      for (NodeIndex member : group_nodes(node)) added_[at(member)] = 1;
      continue;
    }
    stack.emplace_back(node, true);
    const auto visit_inputs = [&](NodeIndex member) {
      for (NodeIndex input : graph_[member].inputs)
        if (split_.phase[at(input)] == split_.phase[at(node)] && split_.region_of[at(input)] < 0 &&
            !added_[at(input)] && (group < 0 || rows_.group_of[at(input)] != group))
          stack.emplace_back(input, false);
    };
    if (group < 0) visit_inputs(node);
    for (NodeIndex member : group_nodes(node)) visit_inputs(member);
  }
}

// Empty for a node outside row groups.
std::span<const NodeIndex> Fuser::group_nodes(NodeIndex node) const {
  const std::int32_t group = rows_.group_of[at(node)];
  return group >= 0 ? std::span<const NodeIndex>(group_nodes_[at(group)]) : std::span<const NodeIndex>{};
}

void Fuser::add_row_group(std::int32_t group) {
  const std::vector<NodeIndex>& nodes = group_nodes_[at(group)];
  Task task;
  task.kind = TaskKind::row_fold;
  std::ranges::copy_if(nodes, std::back_inserter(task.folds),
                       [&](NodeIndex node) { return graph_[node].kind() == OpKind::reduce; });
  task.anchor = task.folds.front();
  task.element_count = graph_[task.anchor].element_count();
  const std::int32_t t = links_.add(std::move(task));
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
  schedule_.regions[at(index)] = std::move(region);
  const std::int32_t t = links_.add(std::move(task));
  for (NodeIndex i : region_nodes_[at(index)])
    if (schedule_.materialized[at(i)]) {
      std::vector<Read> reads = reads_of(i);
      for (Read& read : reads) read.aligned = false;
      join(t, i, reads);
    }
}

void Fuser::plan_regions() {
  RegionScratch scratch;
  for (Task& task : schedule_.tasks)
    if (task.kind == TaskKind::region) {
      Region& region = schedule_.regions[static_cast<std::size_t>(task.region)];
      if (!plan_region(graph_, schedule_, split_, options_, scratch, task, region) ||
          wants_turns(region, split_.regions[static_cast<std::size_t>(task.region)]))
        outgrown_.push_back({task.region, scratch.is_too_large ? region.row_block : region.row_block / 2});
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
      [&](NodeIndex node) { return schedule_.materialized[at(node)] != 0; }, options_.steps);
  std::ranges::sort(reads, {}, &Read::node);
  return reads;
}

void Fuser::add_node(NodeIndex index) {
  const std::vector<Read> reads = reads_of(index);
  const GraphNode& node = graph_[index];
  if (node.blocks > 0) return add_tail(index, reads);
  if (node.op == Op::page_output) {  // computed by the page's own task
    join(task_of_[at(node.inputs[0])], index, {});
    return;
  }
  TaskKind kind = TaskKind::map;
  if (node.op == Op::page)
    kind = TaskKind::page;
  else if (node.op == Op::custom)
    kind = TaskKind::custom;
  else if (node.kind() == OpKind::scan)
    kind = TaskKind::scan;
  else if (options_.fuse && wants_tiles(graph_, index, options_))
    kind = TaskKind::product;
  else if (options_.fuse && wants_columns(graph_, index, options_))
    kind = TaskKind::column_fold;
  else if (wants_group(graph_, index, options_))
    kind = TaskKind::group_fold;

  if (kind == TaskKind::map && options_.fuse && !stays_apart(node, options_)) {
    if (has_custom_) {
      const std::vector<Read> by_row = reads_by_row(graph_, schedule_.materialized, index);
      if (const std::int32_t host = find_row_host(index, by_row); host >= 0) {
        join(host, index, by_row);
        return;
      }
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
  if (kind == TaskKind::page)
    for (const PageOutput& output : node.source->page->outputs)
      task.element_count = std::max(task.element_count, output.shape.element_count());
  if (kind == TaskKind::product) {
    task.tile = choose_tile(graph_, schedule_.materialized, index, options_, task.choices);
  }
  has_custom_ = has_custom_ || kind == TaskKind::custom;
  join(links_.add(std::move(task)), index,
       kind == TaskKind::custom ? reads_by_row(graph_, schedule_.materialized, index) : reads);
}

// Partial results over the elements of one sum, from these and from memory that exists before the run.
void Fuser::add_tail(NodeIndex index, std::vector<Read> reads) {
  const auto is_early = [&](const Read& read) {
    return is_memory_leaf(graph_[read.node]) || graph_[read.node].is_snapshot;
  };
  const auto sum = std::ranges::find_if_not(reads, is_early);
  const std::int32_t t = sum == reads.end() ? -1 : task_of_[at(sum->node)];
  const bool is_there = t >= 0 && schedule_.tasks[at(t)].kind == TaskKind::column_fold &&
                        std::ranges::all_of(reads, [&](const Read& read) {
                          return is_early(read) || task_of_[at(read.node)] == t;
                        });
  if (!is_there) {
    tails_fit_ = false;
    return;
  }
  schedule_.tasks[at(t)].tails.push_back(index);
  task_of_[at(index)] = t;
  std::erase_if(reads, [&](const Read& read) { return !is_early(read); });
  add_reads(t, reads);
}

std::int32_t Fuser::find_row_host(NodeIndex index, const std::vector<Read>& reads) const {
  const GraphNode& node = graph_[index];
  if (node.shape.rank() == 0 || node.shape[0] == 0 || node.element_count() / node.shape[0] > kMaxRowWidth)
    return -1;
  std::set<std::int32_t> producers;
  for (const Read& read : reads) producers.insert(task_of_[at(read.node)]);
  producers.erase(-1);
  for (std::int32_t t : producers) {
    const Task& task = schedule_.tasks[at(t)];
    if (task.kind != TaskKind::custom || graph_[task.anchor].shape[0] != node.shape[0]) continue;
    const bool possible = std::ranges::all_of(reads, [&](const Read& read) {
      const std::int32_t producer = task_of_[at(read.node)];
      return producer == t ? read.aligned : producer < 0 || schedule_.tasks[at(producer)].level < task.level;
    });
    if (possible) return t;
  }
  return -1;
}

// A task that shares a read must have a higher level than every task that the node waits for. A task that
// the node continues must have a higher level than all others of these. So the first kind always has the
// higher level, and of the second kind there is at most one. O(log n) per read.
std::int32_t Fuser::find_host(NodeIndex index, const std::vector<Read>& reads) const {
  std::int32_t highest = -1;  // level that the node waits for
  for (const Read& read : reads)
    if (const std::int32_t producer = task_of_[at(read.node)]; producer >= 0)
      highest = std::max(highest, schedule_.tasks[at(producer)].level);

  std::pair best{highest, -1};  // level and task
  for (const Read& read : reads)
    if (const std::int32_t t = links_.highest_host(read.node, graph_[index].element_count()); t >= 0)
      if (schedule_.tasks[at(t)].level > highest) best = std::max(best, {schedule_.tasks[at(t)].level, t});
  return best.second >= 0 ? best.second : find_continued(index, reads, highest);
}

std::int32_t Fuser::find_continued(NodeIndex index, const std::vector<Read>& reads,
                                   std::int32_t level) const {
  std::int32_t host = -1;
  for (const Read& read : reads) {
    const std::int32_t producer = task_of_[at(read.node)];
    if (producer < 0 || schedule_.tasks[at(producer)].level < level) continue;
    if (!read.aligned || (host >= 0 && producer != host)) return -1;
    host = producer;
  }
  if (host < 0) return -1;
  const Task& task = schedule_.tasks[at(host)];
  if (task.kind == TaskKind::page && !graph_[task.anchor].source->page->is_continued) return -1;
  const bool takes = task.element_count == graph_[index].element_count() && task.kind != TaskKind::scan &&
                     task.kind != TaskKind::region && task.kind != TaskKind::custom &&
                     task.kind != TaskKind::row_fold && !is_full(task) &&
                     !stays_apart(graph_[task.members.front()], options_);
  return takes && (task.kind == TaskKind::map || cheap_cost(index) <= kMaxEpilogueCost) ? host : -1;
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
  schedule_.tasks[at(t)].members.push_back(index);
  if (!is_memory_leaf(graph_[index])) task_of_[at(index)] = t;
  add_reads(t, reads);
  const Task& task = schedule_.tasks[at(t)];
  if (task.kind == TaskKind::map)
    links_.update_host(t, !is_full(task) && !stays_apart(graph_[index], options_));
}

void Fuser::add_reads(std::int32_t t, const std::vector<Read>& reads) {
  for (const Read& read : reads) {
    const std::int32_t producer = task_of_[at(read.node)];
    if (producer == t) continue;
    links_.add_read(t, read);
    if (producer >= 0) links_.add_order(producer, t);
  }
}

}  // namespace imprint::graph
