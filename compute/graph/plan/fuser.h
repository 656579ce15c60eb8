#pragma once
// One attempt at a schedule, for given regions, row groups and splits.

#include <cstdint>
#include <span>
#include <vector>

#include "compute/base/result.h"
#include "compute/graph/graph.h"
#include "compute/graph/plan/task_links.h"
#include "compute/graph/regions/row_folds.h"
#include "compute/graph/schedule/fusion_options.h"
#include "compute/graph/schedule/fusion_request.h"
#include "compute/graph/schedule/region.h"
#include "compute/graph/schedule/schedule.h"

namespace imprint::graph {

class Fuser {
 public:
  Fuser(const Graph& graph, const FusionRequest& request, const RegionSplit& split, const RowGroups& rows,
        const FusionOptions& options)
      : graph_(graph),
        request_(request),
        split_(split),
        rows_(rows),
        options_(options),
        links_(graph, schedule_, options.steps) {}

  Result<Schedule> run();
  // A region whose workgroup does not fit into shared memory.
  struct Outgrown {
    std::int32_t region;     // position in RegionSplit::regions
    std::int32_t row_block;  // that could fit; 0: none
  };
  // If there are any, discard the schedule.
  const std::vector<Outgrown>& outgrown() const { return outgrown_; }

  // False when a sum's tail would need a kernel apart from the sum. Discard the schedule then.
  bool tails_fit() const { return tails_fit_; }

 private:
  // ---- leaves and roots ----

  Result<> place_leaves();
  std::vector<std::uint8_t> forced_nodes() const;
  // Whether anything outside the region reads this value of it.
  bool leaves_region(const std::vector<std::vector<NodeIndex>>& consumers, NodeIndex index,
                     std::int32_t region) const;
  // Per node: whether its value depends on content that the program overwrites.
  std::vector<std::uint8_t> nodes_of_updated_variables() const;
  void list_members();
  // ---- kernels ----

  bool runs_on_matrix_units(std::int32_t region) const;
  // On matrix units, each workgroup of the region rounds the weights once; no separate kernel rounds them
  // first.
  void leave_weights_to_regions();
  // Adds tasks phase by phase: a region comes after what it waits for and before what waits for it.
  void add_tasks();
  // A row group comes after everything that any of its nodes waits for.
  void add_behind_inputs(NodeIndex root);
  std::span<const NodeIndex> group_nodes(NodeIndex node) const;
  void add_row_group(std::int32_t group);
  void add_region(std::int32_t index);
  void plan_regions();
  // Whether some workgroups must wait that could run at the same time if each took fewer rows at a time.
  bool wants_turns(const Region& region, const RegionNodes& nodes) const;
  // The memory that evaluating a node reads, and whether it reads only at the element's own linear index.
  std::vector<Read> reads_of(NodeIndex index) const;
  void add_node(NodeIndex index);
  void add_tail(NodeIndex index, std::vector<Read> reads);
  // Returns a caller's kernel whose result rows determine this node's rows.
  std::int32_t find_row_host(NodeIndex index, const std::vector<Read>& reads) const;
  // Returns a task that can also compute this node: it has work to share with the node, and need not wait
  // longer for it.
  std::int32_t find_host(NodeIndex index, const std::vector<Read>& reads) const;
  // The one task of this level whose values the node reads, if it can compute the node too.
  std::int32_t find_continued(NodeIndex index, const std::vector<Read>& reads, std::int32_t level) const;
  // Operations to evaluate one element, down to memory.
  double cheap_cost(NodeIndex index) const;
  void join(std::int32_t t, NodeIndex index, const std::vector<Read>& reads);
  void add_reads(std::int32_t t, const std::vector<Read>& reads);
  // ---- stores ----

  // Adds a task that only evaluates `node` (or reads it, if it has memory) and stores it.
  std::int32_t add_copy(NodeIndex node);
  void add_store(std::int32_t t, NodeIndex node, Place place, NodeIndex rows = -1);
  void store_outputs();
  // Whether `writer` may overwrite the variable: nothing that waits for it reads the old content, and it
  // reads only the elements that it overwrites.
  bool can_write_in_place(std::int32_t writer, std::int32_t variable, bool by_rows) const;
  // Whether a store by the writer would delay the tasks that wait for its value: they would also wait for all
  // readers of the old content. A separate copy task can wait instead.
  bool delays_others(std::int32_t writer, const GraphUpdate& update);
  bool reads_other_updates(std::int32_t t, std::int32_t variable);
  void write_variable(std::int32_t writer, NodeIndex node, std::int32_t variable, NodeIndex rows = -1);
  // Creates the tasks of all updates first: all readers of a variable are then known before any writer is
  // placed.
  void store_updates();
  std::int32_t assignment_writer(const GraphUpdate& update);
  // Returns the task that computes the values, if the row numbers exist before it runs or it can compute them
  // itself; otherwise a copy task. rows: set to the row numbers that the task uses.
  std::int32_t rows_writer(const GraphUpdate& update, NodeIndex& rows);
  std::int32_t add_rows_copy(const GraphUpdate& update);
  std::vector<Read> row_reads(NodeIndex rows) const;
  // Stores every value that another task reads and that has no place yet.
  void store_temporaries();
  // Products of one level share a dispatch if they use one tile. Tiles that a variant table sets stay.
  void share_tiles();
  void share_tile(const std::vector<Task*>& tasks);  // products of one level
  const Graph& graph_;
  const FusionRequest& request_;
  const RegionSplit& split_;
  const RowGroups& rows_;
  const FusionOptions& options_;
  Schedule schedule_;
  std::vector<Outgrown> outgrown_;
  std::vector<std::uint8_t> is_updated_;  // per variable, once asked for
  bool tails_fit_ = true, has_custom_ = false;
  TaskLinks links_;
  std::vector<std::int32_t> task_of_;  // per node, -1: none
  std::vector<std::uint8_t> added_;    // per node: 1 once its task, if any, exists
  // Ascending nodes of each region, of each row group, and of each phase outside regions.
  std::vector<std::vector<NodeIndex>> region_nodes_, group_nodes_, phase_nodes_;
};

}  // namespace imprint::graph
