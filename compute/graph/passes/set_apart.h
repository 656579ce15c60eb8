#pragma once
// Splits kernels that bind more memory than a device can, and only those.

#include <cstdint>
#include <span>
#include <unordered_set>

#include "compute/graph/graph.h"
#include "compute/graph/schedule/schedule.h"

namespace imprint::graph {

// Attempts to plan a program, each with further operations apart.
inline constexpr int kMostSplits = 8;

// Adds the operations that these tasks compute to FusionOptions::apart for the next plan. Returns how many
// are new; 0: the tasks cannot be split.
std::size_t set_apart(const Graph& graph, const Schedule& schedule, std::span<const std::int32_t> tasks,
                      std::unordered_set<const Node*>& apart);

}  // namespace imprint::graph
