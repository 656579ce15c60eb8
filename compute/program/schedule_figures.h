#pragma once
// A compiled program's schedule in figures: what runs, what waits, what moves. Plain data for tools and
// tests.

#include <cstdint>
#include <string>
#include <vector>

#include "compute/graph/variants.h"

namespace imprint {

struct KernelFigures {
  std::string kind;                                 // "map", "region", ...: TaskKind in words
  std::string text;                                 // what it stores, and from what
  std::vector<graph::VariantChoice> choices;        // that made it what it is
  std::vector<std::string> stages;                  // of a region: what its workgroups do between barriers
  std::uint64_t bytes_read = 0, bytes_written = 0;  // each tensor once
  std::uint64_t operations = 0;                     // floating-point; a transcendental function counts as one
};

struct DispatchFigures {
  bool barrier_before = false;                    // waits for dispatches before it
  std::uint32_t workgroups = 0, invocations = 0;  // invocations: of a workgroup
  std::vector<KernelFigures> kernels;             // side by side
  std::string glsl;
};

// A program, or a part of a sequence that runs `repeat` times. On the CPU every kernel is a dispatch of no
// workgroups and no text.
struct ScheduleFigures {
  std::string name;
  std::uint32_t repeat = 1;
  std::vector<DispatchFigures> dispatches;
  std::vector<std::string> notes;  // what is not fused although it might be, and why
};

}  // namespace imprint
