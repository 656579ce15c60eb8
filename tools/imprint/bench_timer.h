#pragma once
// GPU time of command buffers on the standalone device, by timestamps, with wall and CPU time of submitting
// them.

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
  std::vector<double> gpu_us, wall_us, cpu_us;  // one entry per measured submission
  std::uint64_t submissions = 0;                // with those of the warm-up
};

// How often to run. A slow benchmark stops early, but not before it has a spread.
struct Repeats {
  std::uint32_t warmup = 20;     // runs, and at least 0.2 s; but no longer than `seconds`
  std::uint32_t measured = 200;  // runs at most
  double seconds = 3;            // of measuring, after which 10 runs are enough
};

// Owns a command pool and a query pool on the device. One thread.
class GpuTimer {
 public:
  // Takes a second or more, to find how high the GPU's clock rises (compute/tuning/clock_probe.h). Errors:
  // unsupported (the queue has no timestamps), out_of_*_memory.
  static Result<std::unique_ptr<GpuTimer>> create(bridge::Context& context);
  virtual ~GpuTimer() = default;

  // Records `body` between two timestamps in a primary command buffer. Once the clock is up, submits it
  // repeatedly, one after the other.
  virtual Result<Timing> time(const Repeats& repeats, const std::function<void(VkCommandBuffer)>& body) = 0;
};

}  // namespace imprint::tools
