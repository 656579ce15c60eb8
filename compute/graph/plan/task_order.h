#pragma once
// Orders a schedule's tasks. Tasks of one level do not wait for each other.

#include "compute/base/result.h"
#include "compute/graph/schedule/fusion_options.h"
#include "compute/graph/schedule/schedule.h"

namespace imprint::graph {

// Drops tasks that store nothing, computes levels from Task::after, and sorts the tasks by level, otherwise
// in their order. A level is as early as possible, with two exceptions:
// - A task that only stores state, and that no task waits for, gets the last level, with
//   FusionOptions::writes_late. A run may be cut before it. It keeps what it reads until then.
// - A task beside a region moves to a later level without one, if its consumers allow that.
// Errors: internal (tasks wait for each other in a circle). Linear in tasks and what they wait for, apart
// from the sort.
Result<> order_tasks(Schedule& schedule, const FusionOptions& options);

}  // namespace imprint::graph
