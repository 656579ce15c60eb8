#include "compute/graph/plan/fusion.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include "compute/graph/passes/channels_last.h"
#include "compute/graph/passes/fold_split.h"
#include "compute/graph/passes/narrow_constants.h"
#include "compute/graph/passes/narrow_products.h"
#include "compute/graph/passes/page_expand.h"
#include "compute/graph/passes/product_split.h"
#include "compute/graph/passes/recompute.h"
#include "compute/graph/plan/fuser.h"
#include "compute/graph/regions/early_reads.h"
#include "compute/graph/regions/row_folds.h"
#include "compute/graph/schedule/region.h"
#include "compute/graph/schedule/request_queries.h"

namespace imprint::graph {
namespace {

// Cuts regions that have outgrown a workgroup into more parts, or leaves them fewer rows at a time.
void tighten(RegionLimits& limits, const RegionSplit& split, std::span<const Fuser::Outgrown> outgrown,
             const FusionOptions& options, std::vector<std::string>& notes) {
  std::set<std::pair<AxisClass, std::int32_t>> cut;  // again, as limits of their parts changed
  for (const auto& [index, smaller] : outgrown) {
    const RegionNodes& region = split.regions[static_cast<std::size_t>(index)];
    RegionLimit& limit = limits[region.uncut()];
    if (cut.contains(region.uncut())) continue;
    // A small region first takes fewer rows at a time.
    const bool large = region.nodes > 4 * static_cast<std::int64_t>(options.region_part_nodes);
    if ((smaller == 0 || large) && region.products > 1) {
      cut.insert(region.uncut());
      // Products may lie so close together that there were fewer cuts than asked for.
      limit = {2 * (2 * region.parts > limit.parts ? region.parts : limit.parts), {}};
      continue;
    }
    limit.row_blocks[region.part] = smaller;
    if (smaller == 0)
      notes.push_back("a row-local region over " + std::to_string(region.rows) + " rows needs more than " +
                      std::to_string(options.region_shared_bytes) +
                      " bytes of shared memory for one row and becomes separate kernels");
  }
}

}  // namespace

Result<Schedule> fuse(Graph& graph, FusionRequest& request, const FusionOptions& given) {
  std::int64_t steps = 0;
  FusionOptions options = given;
  options.steps = &steps;
  options.pads_inside = options.pads_inside && !learns(graph, request);
  std::vector<std::string> notes;
  if (options.expand != Expand::none) IMPRINT_CHECK(expand_pages(graph, request, options));
  if (options.channels_last)
    if (std::string note = arrange_channels_last(graph, request, options); !note.empty())
      notes.push_back(std::move(note));
  if (options.narrow_products) notes.push_back(narrow_products(graph, request, options));
  if (options.fuse && options.expand != Expand::compose) write_scalars_as_literals(graph);
  // Writes that come last would keep what they read, which recomputation is to free.
  if (recomputes(graph)) options.writes_late = false;
  if (options.fuse) read_state_early(graph, request);
  RegionLimits limits;
  bool tails = options.tails;
  // Only regions outgrow a workgroup, and only they leave tails.
  const bool is_only_attempt = !options.regions;
  for (;;) {
    Graph split_graph = is_only_attempt ? std::move(graph) : graph;
    FusionRequest split_request = is_only_attempt ? std::move(request) : request;
    RegionSplit split;
    if (options.fuse && options.regions) {
      split = split_regions(split_graph, split_request, options, limits);
    } else {
      split.region_of.assign(split_graph.nodes.size(), -1);
      split.phase.assign(split_graph.nodes.size(), 0);
    }
    RowGroups rows;
    if (options.fuse) {
      split_deep_products(split_graph, split_request, split, options);
      if (options.regions && tails) split_tails(split_graph, split_request, split, options);
      split_long_folds(split_graph, split_request, split, options);
      read_state_behind_regions(split_graph, split_request, split);
      if (options.row_folds) rows = find_row_groups(split_graph, split, options);
    }
    rows.group_of.resize(split_graph.nodes.size(), -1);
    Fuser fuser(split_graph, split_request, split, rows, options);
    Result<Schedule> made = fuser.run();
    if (!fuser.tails_fit()) {
      tails = false;
      continue;
    }
    IMPRINT_ASSIGN(Schedule schedule, std::move(made));
    if (fuser.outgrown().empty()) {
      for (const Task& task : schedule.tasks)
        for (const VariantChoice& choice : task.choices)
          if (!choice.refused.empty())
            notes.push_back("the tuning table has '" + choice.refused + "' for " + choice.kernel +
                            ", which cannot be made here: '" + choice.taken + "' by the cost model");
      schedule.notes = std::move(notes);
      std::ranges::move(split.notes, std::back_inserter(schedule.notes));
      std::ranges::move(rows.notes, std::back_inserter(schedule.notes));
      schedule.planning_steps = steps;
      if (given.steps) *given.steps += steps;
      if (options.fuse && options.arranges_constants && options.product_turn_operations == 0)
        arrange_constants(split_graph, schedule);
      graph = std::move(split_graph);
      request = std::move(split_request);
      return schedule;
    }
    tighten(limits, split, fuser.outgrown(), options, notes);
  }
}

}  // namespace imprint::graph
