#pragma once
// In which order a schedule's tasks run: those of one level wait for none of each other.

#include "compute/base/result.h"
#include "compute/graph/schedule.h"

namespace imprint::graph {

// Drops tasks that leave nothing, gives the others their levels by Task::after, and puts them in order of
// level. A level is as early as can be; but what only leaves state behind comes as late as it can, so that
// all before may be cut freely, and what would run beside a region moves on where it may. Errors: internal
// (tasks wait for each other in a circle).
Status order_tasks(Schedule& schedule);

}  // namespace imprint::graph
