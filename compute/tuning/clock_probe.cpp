#include "compute/tuning/clock_probe.h"

#include <algorithm>
#include <utility>

#include "compute/program/runtime_impl.h"
#include "compute/vk/pipelines/capability_profile.h"
#include "compute/vk/pipelines/glsl_compiler.h"

namespace imprint {

using namespace program;
using namespace tuning;

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kChain = 256;             // operations in sequence: a few microseconds
constexpr std::uint32_t kRepeats = 32;  // so that a submission takes longer than its launch
// Times vary by a tenth between a GPU's multiprocessors, and by a half between the steps of a clock.
constexpr double kRises = 0.85;   // relative to a step's first time: below this, the clock rose
constexpr double kAsHigh = 1.25;  // relative to a step's least time: up to this, the clock is as high
constexpr std::chrono::duration<double> kStep{
    1.0};  // longer than a clock was seen to stay on one step (0.9 s, NVIDIA driver 580)

}  // namespace

Result<ClockProbe> ClockProbe::create(Runtime& runtime) {
  ClockProbe probe;
  if (runtime.on_cpu() || !vk::GlslCompiler::present()) return probe;
  const vk::Device& device = static_cast<RuntimeImpl&>(runtime).device();
  if (vk::CapabilityProfile::of(device.capabilities(), device.options().schedule_as_gpu).processor)
    return probe;
  // Starts from iota, so that nothing must be uploaded first.
  Tensor x = cast(iota({64}, 0), DType::float32) * (1.0 / 64);
  for (int i = 0; i < kChain; ++i) x = sin(x * 1.5 + 0.25);
  IMPRINT_ASSIGN(
      probe.chain_,
      Program::compile(runtime, ProgramDescription{.name = "clock probe", .outputs = {x}, .slot_count = 1}));
  constexpr VkCommandBufferLevel kSecondary = VK_COMMAND_BUFFER_LEVEL_SECONDARY;
  probe.commands_.push_back(runtime.barrier().secondary);
  for (std::uint32_t i = 1; i + 1 < probe.chain_->piece_count(); ++i)
    probe.commands_.push_back(probe.chain_->pieces(0, kSecondary)[i]);
  return probe;
}

void ClockWatch::resume(Time now) {
  for (std::optional<Stand>* stand : {&highest_, &lower_})
    if (*stand && asked_) (*stand)->since += now - *asked_;
}

// Compares with the first time of a step: a clock that rises in small amounts also counts as rising.
bool ClockWatch::rises(std::optional<Stand>& stand, double us, Time now) {
  if (!stand || us < stand->first_us * kRises) stand = Stand{us, us, now};
  stand->least_us = std::min(stand->least_us, us);
  return now - stand->since < kStep;
}

bool ClockWatch::is_up(double us, Time now) {
  asked_ = now;
  if (!highest_ || us <= highest_->least_us * kAsHigh) {
    lower_.reset();
    return !rises(highest_, us, now);
  }
  if (rises(lower_, us, now)) return false;
  highest_ = std::exchange(lower_, std::nullopt);  // something holds the clock down: heat, a power limit or
                                                   // other programs that compute there
  return true;
}

Result<> ClockProbe::raise(const Run& run, std::chrono::duration<double> most) {
  if (!chain_) return {};
  const Clock::time_point start = Clock::now();
  watch_.resume(start);
  for (;;) {
    IMPRINT_ASSIGN(const double us, run(commands_, kRepeats));
    const Clock::time_point now = Clock::now();
    if (watch_.is_up(us, now) || now - start >= most) return {};
  }
}

}  // namespace imprint
