#pragma once
// One attempt at a schedule: for regions, row groups and splits that are given.

#include <cstdint>
#include <vector>

#include "compute/base/result.h"
#include "compute/graph/fusion_options.h"
#include "compute/graph/fusion_request.h"
#include "compute/graph/graph.h"
#include "compute/graph/region.h"
#include "compute/graph/row_folds.h"
#include "compute/graph/schedule.h"

namespace imprint::graph {

class Fuser {
 public:
  Fuser(const Graph& graph, const FusionRequest& request, const RegionSplit& split, const RowGroups& rows,
        const FusionOptions& options)
      : graph_(graph), request_(request), split_(split), rows_(rows), options_(options) {}

  Result<Schedule> run();
  // Positions in the split's regions of those whose workgroup does not fit into shared memory; the schedule
  // is of no use then.
  const std::vector<std::int32_t>& outgrown() const { return outgrown_; }

  // False when a sum's tail would have to be computed apart from the sum; the schedule is of no use then.
  bool tails_fit() const { return tails_fit_; }

 private:
  // ---- leaves and roots ----

  Status place_leaves();
  // A reshape has its input's elements in the same order, so what is stored for one is stored for the other.
  NodeIndex without_reshape(NodeIndex index) const;
  std::vector<std::uint8_t> forced_nodes() const;
  // Whether a value of a region is asked for from outside of it.
  bool leaves_region(const std::vector<std::vector<NodeIndex>>& consumers, NodeIndex index,
                     std::int32_t region) const;
  bool reads_updated_variable(NodeIndex index) const;
  // ---- kernels ----

  bool runs_on_matrix_units(std::int32_t region) const;
  // Weights of a region on matrix units are rounded by its workgroups, each once, rather than by a kernel in
  // front of it.
  void leave_weights_to_regions();
  // Phase by phase: what a region waits for stands before it, and what waits for the region behind it.
  void add_tasks();
  // A row group stands behind everything that any of its nodes waits for.
  void add_behind_inputs(NodeIndex root);
  std::vector<NodeIndex> group_nodes(std::int32_t group) const;
  void add_row_group(std::int32_t group);
  void add_region(std::int32_t index);
  void plan_regions();
  // Whether workgroups wait for each other that would run side by side if each took fewer rows at a time.
  bool wants_turns(const Region& region, const RegionNodes& nodes) const;
  // What the evaluation of a node reads from memory, and whether always at the element's own linear index.
  std::vector<Read> reads_of(NodeIndex index) const;
  void add_node(NodeIndex index);
  // A caller's kernel from whose rows this node's rows follow.
  std::int32_t find_row_host(NodeIndex index, const std::vector<Read>& reads) const;
  // A task that this node can be computed in without making that task wait longer, and that has something to
  // share with it.
  std::int32_t find_host(NodeIndex index, const std::vector<Read>& reads) const;
  // Operations to evaluate one element, down to memory.
  double cheap_cost(NodeIndex index) const;
  void join(std::int32_t t, NodeIndex index, const std::vector<Read>& reads);
  void add_reads(std::int32_t t, const std::vector<Read>& reads);
  void add_order(std::int32_t before, std::int32_t task);
  // ---- what a program leaves behind ----

  // A task that evaluates `node` (reading it, if it has memory) for the sake of a store alone.
  std::int32_t add_copy(NodeIndex node);
  void add_store(std::int32_t t, NodeIndex node, Place place, NodeIndex rows = -1);
  void store_outputs();
  std::vector<std::int32_t> readers_of_variable(std::int32_t variable) const;
  const Read* reads_variable(std::int32_t t, std::int32_t variable) const;
  bool depends(std::int32_t task, std::int32_t on) const;
  // Whether `writer` may overwrite the variable: nothing that waits for it reads the old content, and it
  // reads only what it overwrites.
  bool can_write_in_place(std::int32_t writer, std::int32_t variable, bool by_rows) const;
  // Whether those who wait for the writer's value would have to wait, with it, for all who read the old
  // content. A copy can wait in its place.
  bool delays_others(std::int32_t writer, const GraphUpdate& update) const;
  void write_variable(std::int32_t writer, NodeIndex node, std::int32_t variable, NodeIndex rows = -1);
  // Tasks for every update first, so that all readers of a variable are known before any writer is placed.
  void store_updates();
  std::int32_t assignment_writer(const GraphUpdate& update);
  // Whoever computes the values, where the row numbers are there before, or can be had on the spot; otherwise
  // a copy. rows: the numbers it goes by.
  std::int32_t rows_writer(const GraphUpdate& update, NodeIndex& rows);
  std::int32_t add_rows_copy(const GraphUpdate& update);
  std::vector<Read> row_reads(NodeIndex rows) const;
  // Everything that another task reads and nobody has placed yet.
  void store_temporaries();
  // Products of one level share a dispatch if they have one tile. What a table says of one of them stays.
  void share_tiles();
  const Graph& graph_;
  const FusionRequest& request_;
  const RegionSplit& split_;
  const RowGroups& rows_;
  const FusionOptions& options_;
  Schedule schedule_;
  std::vector<std::int32_t> outgrown_;
  bool tails_fit_ = true;
  std::vector<std::int32_t> task_of_;  // per node, -1: none
  std::vector<std::uint8_t> added_;    // per node: its task stands, if it has one
};

}  // namespace imprint::graph
