#pragma once
// Outputs, updates and options of a program, by nodes of its graph.

#include <cstdint>
#include <memory>
#include <vector>

#include "compute/graph/graph.h"

namespace imprint::graph {

struct GraphOutput {
  NodeIndex node = -1;
};
struct GraphUpdate {
  std::int32_t variable = -1;  // position in `variables`
  NodeIndex value = -1;
  NodeIndex rows = -1;      // >= 0: by rows
  NodeIndex own_rows = -1;  // the same numbers, for a kernel that cannot wait for `rows` (early_reads.h)
};

struct FusionRequest {
  std::vector<GraphOutput> outputs;
  std::vector<GraphUpdate> updates;
  std::vector<std::shared_ptr<VariableState>> variables;  // all that the program reads or updates
  std::vector<NodeIndex> inputs;                          // node of each program input; -1 when unused

  // index[old]: the new index of a node.
  void renumber(const std::vector<NodeIndex>& index);
};

}  // namespace imprint::graph
