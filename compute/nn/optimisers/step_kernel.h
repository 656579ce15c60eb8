#pragma once
// The step of a small network as one kernel, for optimisers that fold over whole parameters: their ordinary
// operations would take several dispatches, one after the other. A workgroup takes a parameter. Internal.

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "compute/nn/parameter.h"
#include "compute/tensor/pages/library_page.h"

namespace imprint::nn {

// Whether there are at most 32 parameters, each of at most `most` numbers. For larger ones several workgroups
// are faster.
bool suits_step_kernel(const Parameters& parameters, std::int64_t most = 512);

// shaders/pages/NAME.glsl sees, for parameter p: size_of(p), value(p, i), gradient(p, i), a function per
// moment, and of the value and each moment store_value(p, i, x); rate(), decay() and, if the rule counts
// them, steps(); sum_of_group(x); and the tables and numbers below.
struct StepKernel {
  std::string name;                        // of the page and of its shader
  std::vector<std::string> moments = {};   // in the order of the rule
  std::vector<std::string> includes = {};  // of shaders/include
  std::vector<std::pair<std::string, double>> numbers = {};
  std::vector<std::pair<std::string, std::int64_t>> constants = {};
  // By name: a number per parameter, as name(p).
  std::vector<std::pair<std::string, std::vector<double>>> tables = {};
};

// The page without outputs and composition.
tensor::LibraryPage page_of_kernel(const StepKernel& kernel);

}  // namespace imprint::nn
