#pragma once
// GPU time of command buffers on the standalone device, by timestamps, with the wall and CPU time of getting
// them there.

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "compute/base/result.h"
#include "engine-bridge/own/standalone.h"

namespace imprint::tools {

// CPU time of the calling thread, microseconds.
double thread_cpu_us();

struct Timing {
  std::vector<double> gpu_us, wall_us, cpu_us;  // one entry a measured submission
  std::uint64_t submissions = 0;                // of what was measured, to warm up included
};

// How often to run. A case that is slow on this device stops early, but not before it has a spread.
struct Repeats {
  std::uint32_t warmup = 20;     // runs, and at least 0.2 s; but no longer than `seconds`
  std::uint32_t measured = 200;  // runs at most
  double seconds = 3;            // of measuring, after which 10 runs are enough
};

// Owns a command pool and a query pool on the device. One thread.
class GpuTimer {
 public:
  // Takes a second or more of a GPU, to see how high its clock rises (compute/tuning/clock_probe.h). Errors:
  // unsupported (the queue has no timestamps), out_of_*_memory.
  static Result<std::unique_ptr<GpuTimer>> create(bridge::Context& context);
  virtual ~GpuTimer() = default;

  // A primary command buffer with `body` recorded between two timestamps, submitted again and again, one
  // after the other, from when the clock is up.
  virtual Result<Timing> time(const Repeats& repeats, const std::function<void(VkCommandBuffer)>& body) = 0;
};

}  // namespace imprint::tools
