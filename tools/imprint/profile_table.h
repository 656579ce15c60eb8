#pragma once
// imprint run --profile: the time of each kernel of a program, and of each kind of kernel.

#include <cstdint>

#include "compute/base/result.h"
#include "compute/program/program.h"
#include "tools/imprint/computer.h"

namespace imprint::tools {

// Runs each dispatch alone, `repeat` times and for at least a moment; on the CPU each kernel in turn. Prints
// medians, the costliest first. The inputs of slot 0 are written.
Result<> print_profile(Computer& computer, Program& program, std::uint32_t repeat);

}  // namespace imprint::tools
