#pragma once
// Graphs of any size, of the kinds that stress a planner. Used by `imprint bench --suite plan` and by the
// test that holds planning near-linear.

#include <cstdint>
#include <span>

#include "compute/base/result.h"
#include "compute/program/program.h"

namespace imprint::tools {

struct LargeGraph {
  const char* name;
  // A program with about this many nodes.
  Result<ProgramDescription> (*make)(std::int64_t nodes);
};

std::span<const LargeGraph> large_graphs();

}  // namespace imprint::tools
