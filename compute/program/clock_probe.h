#pragma once
// Whether a GPU's clock is up. It falls while little is to be done, as when kernels are compiled, and rises in steps a good part of a second apart: what is
// measured on the way takes several times as long as in a game that keeps the GPU busy. No Vulkan call tells the clock, but arithmetic of which each
// operation waits for the one before takes a number of its cycles.

#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "compute/program/program.h"

namespace imprint {

// What times of the same arithmetic tell: whether the clock is as high as it has been, once it stopped rising.
class ClockWatch {
 public:
  using Time = std::chrono::steady_clock::time_point;
  bool is_up(double us, Time now);

 private:
  double least_us_ = std::numeric_limits<double>::max();
  std::optional<Time> rose_, asked_;  // last
  bool is_known_ = false;  // least_us_ was seen to fall no further
};

class ClockProbe {
 public:
  // Runs secondary command buffers one after the other, all of them so often in one submission, waits, and gives the microseconds of one time.
  using Run = std::function<Result<double>(std::span<const VkCommandBuffer> commands, std::uint32_t times)>;

  // Compiles a small program; on a device in software, whose clock is the processor's, nothing, and raise() does nothing there.
  static Result<ClockProbe> create(Runtime& runtime);

  // Returns when the clock is as high as it ever was in these calls, or `most` has passed. Keeps the GPU busy meanwhile. The first call stays for a while
  // to see how high that is.
  Status raise(const Run& run, std::chrono::duration<double> most);

 private:
  std::optional<Program> chain_;
  std::vector<VkCommandBuffer> commands_;  // its kernel, behind a barrier; not the copy of its result, which goes at a pace of its own
  ClockWatch watch_;
};

}  // namespace imprint
