#pragma once
// Plans that need less memory, for a program that does not fit.

#include <functional>
#include <string>

#include "compute/program/program_graph.h"

namespace imprint::program {

struct Planned {
  const graph::Graph& graph;  // after fusion
  const graph::Schedule& schedule;
};

struct MemoryAttempts {
  // Plans and makes the program. out_of_device_memory: it does not fit.
  std::function<Result<>(const ProgramGraph& source)> build;
  std::function<Planned()> planned;              // by the last build
  std::function<void(const std::string&)> tell;  // once, how the program came to fit
};

// Builds the program. If it does not fit, first lets it write its state early, then lets it compute more and
// more values again (recompute.h). source: its pages are expanded. Errors: the first build's.
Result<> build_within_memory(const ProgramGraph& source, const MemoryAttempts& attempts);

}  // namespace imprint::program
