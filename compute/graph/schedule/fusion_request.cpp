#include "compute/graph/schedule/fusion_request.h"

namespace imprint::graph {

void FusionRequest::renumber(const std::vector<NodeIndex>& index) {
  for (GraphOutput& output : outputs) output.node = index[at(output.node)];
  for (GraphUpdate& update : updates) {
    update.value = index[at(update.value)];
    if (update.rows >= 0) update.rows = index[at(update.rows)];
    if (update.own_rows >= 0) update.own_rows = index[at(update.own_rows)];
  }
  for (NodeIndex& input : inputs)
    if (input >= 0) input = index[at(input)];
}

}  // namespace imprint::graph
