#pragma once
// Memory for time: values of a program's first half are computed again for its second half, instead of being
// kept. For programs whose intermediates do not fit.

#include <string_view>

#include "compute/graph/graph.h"
#include "compute/graph/schedule/fusion_request.h"
#include "compute/graph/schedule/schedule.h"

namespace imprint::graph {

// `value`, once `signal` is there. The condition always holds, which no pass knows: what is computed from the
// result is neither merged with what is computed from the value, nor computed before the signal. float32 and
// int32; other types as they are.
Tensor wait_for(const Tensor& value, const Tensor& signal);

// Whether the program has such values. It then asks for little memory.
bool recomputes(const Graph& graph);

// graph, request: as fuse() takes them, pages expanded; planned, schedule: what fuse() made of a copy. Cuts
// the levels before the one with the most memory into `pieces` of about equal bytes. Values that cross a cut
// are kept, and so is the last piece; other values that later levels read are computed again for them, when
// those levels are near. Equal values. Returns the bytes that are no longer kept; 0: the graph is as before.
// Takes time in proportion to pieces times nodes.
std::uint64_t recompute_pieces(Graph& graph, FusionRequest& request, const Graph& planned,
                               const Schedule& schedule, int pieces);

}  // namespace imprint::graph
