#pragma once
// What the fusion pass decides: which nodes get memory, which kernels compute them, and at which level each kernel runs. Plain data.

#include <cstdint>
#include <string>
#include <vector>

#include "compute/graph/graph.h"

namespace imprint {

// Where a value lies between kernels. index: temporary -> node, input / output -> position in the program's description,
// variable -> position in Schedule::variables, constant -> node.
enum class PlaceKind : std::uint8_t { none, temporary, input, output, variable, constant };
struct Place {
  PlaceKind kind = PlaceKind::none;
  std::int32_t index = -1;
  bool operator==(const Place&) const = default;
};

// A value written by a kernel. row_indices >= 0: the value's rows go to the rows of `place` that this node names (scatter_rows).
struct Store {
  NodeIndex node = -1;
  Place place;
  NodeIndex row_indices = -1;
};

// A value read by a kernel. `aligned`: only at the linear index of the element being computed, so that it may be overwritten in place.
struct Read {
  NodeIndex node = -1;
  bool aligned = true;
};

enum class TaskKind : std::uint8_t {
  map,          // one invocation an output element; folds and contractions inside run as loops
  group_fold,   // one workgroup an output element of `anchor`, a reduction or contraction too long for one invocation
  scan,         // one invocation a line of `anchor`
  matmul_tile   // one workgroup a tile of `anchor`, a large contraction
};

// One kernel: everything in `members` is computed at the same linear index, in order.
struct Task {
  TaskKind kind = TaskKind::map;
  NodeIndex anchor = -1;               // group_fold, scan, matmul_tile
  std::vector<NodeIndex> members;      // ascending; the anchor first where there is one
  std::vector<Store> stores;
  std::vector<Read> reads;             // memory read, each node once
  std::vector<std::int32_t> after;     // tasks that must have finished
  std::int64_t element_count = 0;      // of each member
  std::int32_t level = 0;              // tasks of one level are independent of each other
};

struct Schedule {
  std::vector<std::uint8_t> materialized;   // per node: has memory (leaves, and what tasks store or keep)
  std::vector<Place> place;                 // per node: where consumers read it
  std::vector<Task> tasks;                  // in order of level
  std::vector<std::shared_ptr<VariableState>> variables;
  std::int32_t level_count = 0;
};

std::string task_text(const Graph& graph, const Task& task);

}  // namespace imprint
