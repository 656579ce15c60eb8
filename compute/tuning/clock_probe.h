#pragma once
// Whether a GPU's clock is up. It falls while little is to be done, as when kernels are compiled, and rises
// in steps a good part of a second apart: what is measured on the way takes several times as long as in a
// game that keeps the GPU busy. No Vulkan call tells the clock, but arithmetic of which each operation waits
// for the one before takes a number of its cycles.

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "compute/program/program.h"

namespace imprint::tuning {

// What times of the same arithmetic tell: whether the clock stands as high as it has stood, or, where it
// comes no higher any more, as high as it gets.
class ClockWatch {
 public:
  using Time = std::chrono::steady_clock::time_point;
  // Before the first time of several: what went by since the last one raised nothing.
  void resume(Time now);
  bool is_up(double us, Time now);

 private:
  // Where the clock stands, by the times of one step of it.
  struct Stand {
    double first_us, least_us;
    Time since;
  };
  static bool rises(std::optional<Stand>& stand, double us, Time now);

  std::optional<Stand> highest_, lower_;  // lower_: since it fell from there
  std::optional<Time> asked_;             // last
};

class ClockProbe {
 public:
  // Runs secondary command buffers one after the other, all of them so often in one submission, waits, and
  // gives the microseconds of one time.
  using Run = std::function<Result<double>(std::span<const VkCommandBuffer> commands, std::uint32_t times)>;

  // Compiles a small program. For a device that computes on a processor, whose clock is another matter, and
  // in a library without a compiler there is none, and raise() does nothing.
  static Result<ClockProbe> create(Runtime& runtime);

  // Returns when the clock is as high as it ever was in these calls, or rises no more, or `most` has passed.
  // Keeps the GPU busy meanwhile. The first call stays for a while to see how high that is.
  Status raise(const Run& run, std::chrono::duration<double> most);

 private:
  std::optional<Program> chain_;
  std::vector<VkCommandBuffer>
      commands_;  // its kernel, behind a barrier; not the copy of its result, which goes at a pace of its own
  ClockWatch watch_;
};

}  // namespace imprint::tuning
