#pragma once
// Orders a schedule's tasks. Tasks of one level do not wait for each other.

#include "compute/base/result.h"
#include "compute/graph/fusion_options.h"
#include "compute/graph/schedule.h"

namespace imprint::graph {

// Drops tasks that store nothing, computes levels from Task::after, and sorts the tasks by level. Levels are
// as early as possible, with two exceptions. Tasks that only store state run as late as possible, so that a
// run may be cut anywhere before them. Tasks beside a region move to a later level if they can. Errors:
// internal (tasks wait for each other in a circle). Linear in tasks and what they wait for, apart from the
// sort.
Status order_tasks(Schedule& schedule, const FusionOptions& options);

}  // namespace imprint::graph
