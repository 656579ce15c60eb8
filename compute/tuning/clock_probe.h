#pragma once
// Lets a GPU's clock rise before measurements. The clock falls while the GPU has little work, as during
// kernel compilation. It rises in steps, a good part of a second apart. On the way, kernels take several
// times as long as in a game that keeps the GPU busy.
// No Vulkan call reports the clock. The probe therefore times a chain of arithmetic. Each operation waits for
// the one before, so the chain takes a fixed number of cycles.

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "compute/program/program.h"

namespace imprint::tuning {

// Judges the clock by times of the same arithmetic. The clock is up when it is as high as it ever was. If it
// no longer gets there, it is up when it stops rising.
class ClockWatch {
 public:
  using Time = std::chrono::steady_clock::time_point;
  // Call before each series of times. The pause since the last one does not count as time without a rise.
  void resume(Time now);
  bool is_up(double us, Time now);

 private:
  // One step of the clock, by the times measured on it.
  struct Stand {
    double first_us, least_us;
    Time since;
  };
  static bool rises(std::optional<Stand>& stand, double us, Time now);

  std::optional<Stand> highest_, lower_;  // after a fall from highest_
  std::optional<Time> asked_;             // the last is_up() call
};

class ClockProbe {
 public:
  // Runs secondary command buffers in order, `times` times in one submission, and waits. Returns the
  // microseconds of one repetition.
  using Run = std::function<Result<double>(std::span<const VkCommandBuffer> commands, std::uint32_t times)>;

  // Compiles a small program. The probe is empty, and raise() does nothing, in two cases: the device computes
  // on a CPU, whose clock behaves differently, or the library has no compiler.
  static Result<ClockProbe> create(Runtime& runtime);

  // Returns when the clock is as high as in any earlier call, stops rising, or `most` has passed. Keeps the
  // GPU busy meanwhile. The first call takes longer, to find how high the clock rises.
  Result<> raise(const Run& run, std::chrono::duration<double> most);

 private:
  std::optional<Program> chain_;
  std::vector<VkCommandBuffer>
      commands_;  // the chain's kernel after a barrier; no copy of its result: its speed is another
  ClockWatch watch_;
};

}  // namespace imprint::tuning
