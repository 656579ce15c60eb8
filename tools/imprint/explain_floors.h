#pragma once
// What a device needs for a dispatch, for bytes and for arithmetic at the least, and what a schedule
// therefore cannot beat.

#include "compute/base/result.h"
#include "compute/program/schedule_figures.h"
#include "tools/imprint/bench.h"

namespace imprint::tools {

struct DeviceFigures {
  double launch_us = 0;    // from one dispatch to the next that waits for it
  double gb_per_s = 0;     // of memory, read and written side by side
  double tflop_per_s = 0;  // of float32 multiply-adds
};

// Measures what is left at 0: the launch by suite floor, the rest by generated kernels that do nothing else.
// Not on the processor.
Status measure_figures(BenchDevice& device, DeviceFigures& figures);

// Microseconds. A dispatch can take no less than its launch and the longer of the other two.
struct Floor {
  double launch_us = 0, bytes_us = 0, arithmetic_us = 0;
  double total_us() const { return launch_us + (bytes_us > arithmetic_us ? bytes_us : arithmetic_us); }
};
Floor floor_of(const DispatchFigures& dispatch, const DeviceFigures& device);

}  // namespace imprint::tools
