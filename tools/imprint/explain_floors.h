#pragma once
// Launch cost, bandwidth and arithmetic of a device, and the lower bound that they give a schedule.

#include "compute/base/result.h"
#include "compute/program/schedule_figures.h"
#include "tools/imprint/bench.h"

namespace imprint::tools {

struct DeviceFigures {
  double launch_us = 0;    // of a dependent dispatch
  double gb_per_s = 0;     // of memory, reads and writes together
  double tflop_per_s = 0;  // of float32 multiply-adds
};

// Measures the fields that are 0: the launch by suite floor, the others by generated kernels. Not on the CPU.
Result<> measure_figures(BenchDevice& device, DeviceFigures& figures);

// Microseconds. A dispatch takes at least its launch plus the longer of the other two.
struct Floor {
  double launch_us = 0, bytes_us = 0, arithmetic_us = 0;
  double total_us() const { return launch_us + (bytes_us > arithmetic_us ? bytes_us : arithmetic_us); }
};
Floor floor_of(const DispatchFigures& dispatch, const DeviceFigures& device);

}  // namespace imprint::tools
