#pragma once
// Figures of a compiled program's schedule: its kernels, barriers and memory traffic. Plain data for tools
// and tests.

#include <cstdint>
#include <string>
#include <vector>

#include "compute/graph/schedule/variants.h"

namespace imprint {

struct KernelFigures {
  std::string kind;                           // "map", "region", ...: name of its TaskKind
  std::string text;                           // what it stores and reads
  std::vector<graph::VariantChoice> choices;  // choices that shaped it
  // for a region: the steps of its workgroups between barriers
  std::vector<std::string> stages;
  std::uint64_t bytes_read = 0, bytes_written = 0;  // each tensor once
  std::uint64_t operations = 0;                     // floating-point; a transcendental function counts as one
};

struct DispatchFigures {
  bool barrier_before = false;                    // waits for dispatches before it
  std::uint32_t workgroups = 0, invocations = 0;  // invocations: per workgroup
  std::vector<KernelFigures> kernels;             // run in parallel
  std::string glsl;
};

// A program, or a part of a sequence that runs `repeat` times. On the CPU every kernel is a dispatch without
// workgroups or text.
struct ScheduleFigures {
  std::string name;
  std::uint32_t repeat = 1;
  std::vector<DispatchFigures> dispatches;
  std::vector<std::string> notes;  // missed fusions, and why
};

}  // namespace imprint
