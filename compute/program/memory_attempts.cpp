#include "compute/program/memory_attempts.h"

#include "compute/base/text.h"
#include "compute/graph/passes/recompute.h"

namespace imprint::program {

Result<> build_within_memory(const ProgramGraph& source, const MemoryAttempts& attempts) {
  Result<> first = attempts.build(source);
  if (first.ok() || first.error().code != ErrorCode::out_of_device_memory || !source.fuse) return first;
  ProgramGraph early = source;
  early.writes_late = false;
  if (attempts.build(early).ok()) {
    attempts.tell(text("program '", source.name, "' writes its state early to fit: ", first.error().message));
    return {};
  }
  const graph::Graph planned = attempts.planned().graph;
  const graph::Schedule schedule = attempts.planned().schedule;
  for (const int pieces : {2, 4, 8, 16}) {
    ProgramGraph less = early;
    const std::uint64_t bytes = graph::recompute_pieces(less.graph, less.request, planned, schedule, pieces);
    if (bytes == 0 || !attempts.build(less).ok()) continue;
    attempts.tell(text("program '", source.name, "' computes ", bytes,
                       " bytes of intermediates again to fit: ", first.error().message));
    return {};
  }
  return first;
}

}  // namespace imprint::program
