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

// Descent on an LSTM of 128 with 32 inputs, as a loop of this many steps.
Result<ProgramDescription> looped_lstm(std::int64_t steps);

}  // namespace imprint::tools
