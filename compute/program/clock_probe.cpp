#include "compute/program/clock_probe.h"

#include <algorithm>
#include <utility>

#include "compute/program/runtime_impl.h"

namespace imprint {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kChain = 256;           // operations one after the other: some microseconds
constexpr std::uint32_t kTimes = 32;  // so that a submission is more than its launch
// Times differ by a tenth with the multiprocessor that a workgroup comes to, and the steps of a clock by a half.
constexpr double kRises = 0.85, kAsHigh = 1.25;  // of the least time so far
constexpr std::chrono::duration<double> kStep{1.0};  // longer than a clock was seen to stand on one step (0.9 s, NVIDIA's driver 580)
constexpr std::chrono::milliseconds kPause{100};

}  // namespace

Result<ClockProbe> ClockProbe::create(Runtime& runtime) {
  ClockProbe probe;
  if (runtime.on_cpu() || static_cast<RuntimeImpl&>(runtime).device().capabilities().device_type == VK_PHYSICAL_DEVICE_TYPE_CPU) return probe;
  Tensor x = cast(iota({64}, 0), DType::float32) * (1.0 / 64);
  for (int i = 0; i < kChain; ++i) x = sin(x * 1.5 + 0.25);
  IMPRINT_ASSIGN(probe.chain_, Program::compile(runtime, ProgramDescription{.name = "clock probe", .outputs = {x}, .slots = 1}));
  constexpr VkCommandBufferLevel kSecondary = VK_COMMAND_BUFFER_LEVEL_SECONDARY;
  probe.commands_.push_back(runtime.barrier().secondary);
  for (std::uint32_t i = 1; i + 1 < probe.chain_->piece_count(); ++i) probe.commands_.push_back(probe.chain_->pieces(0, kSecondary)[i]);
  return probe;
}

bool ClockWatch::is_up(double us, Time now) {
  if (asked_ && now - *asked_ > kPause) *rose_ += now - *asked_;  // nothing ran that could have raised it
  asked_ = now;
  if (!rose_ || us < least_us_ * kRises) rose_ = now;
  least_us_ = std::min(least_us_, us);
  is_known_ = is_known_ || now - *rose_ >= kStep;
  return is_known_ && us <= least_us_ * kAsHigh;
}

Status ClockProbe::raise(const Run& run, std::chrono::duration<double> most) {
  if (!chain_) return {};
  for (const Clock::time_point start = Clock::now();;) {
    IMPRINT_ASSIGN(const double us, run(commands_, kTimes));
    const Clock::time_point now = Clock::now();
    if (watch_.is_up(us, now) || now - start >= most) return {};
  }
}

}  // namespace imprint
