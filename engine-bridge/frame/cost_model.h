#pragma once
// Costs of a program's pieces, in microseconds: guessed from the device's kind or measured once, then
// corrected by the times of whole frames. Pure arithmetic.

#include <cstdint>
#include <span>
#include <vector>

namespace imprint::bridge {

// A device's speed, for a guess before anything is measured.
struct DeviceRates {
  float dispatch_us = 5;        // a dependent dispatch that does nothing
  float bytes_per_us = 50000;   // memory
  float flops_per_us = 500000;  // arithmetic
};
enum class DeviceKind : std::uint8_t {
  discrete,
  integrated,
  software,  // Vulkan on the CPU
  cpu        // without Vulkan
};
DeviceRates rates_of(DeviceKind kind);

// A program's work, known without running it.
struct WorkEstimate {
  std::uint32_t piece_count = 0;
  std::uint64_t bytes = 0;
  std::uint64_t flops = 0;
};

class ProgramCost {
 public:
  ProgramCost() = default;
  static ProgramCost guess(const WorkEstimate& work, const DeviceRates& rates);  // equal pieces
  static ProgramCost measured(std::span<const float> piece_us);

  std::uint32_t piece_count() const { return static_cast<std::uint32_t>(until_.size()) - 1; }
  float range_us(std::uint32_t begin, std::uint32_t end) const {
    return (until_[end] - until_[begin]) * scale_;
  }

  // The number of pieces in [begin, end), from begin on, that take at most `us` together.
  std::uint32_t fit(std::uint32_t begin, std::uint32_t end, float us) const;

  // Work predicted to take `predicted_us` took `measured_us`; `share` in (0, 1] of it was this program's.
  // Early observations move a guess a lot; later ones, such as a preempted frame, move the model little.
  void correct(float predicted_us, float measured_us, float share);

 private:
  std::vector<float> until_{0};  // until_[i]: pieces [0, i) before scaling
  float scale_ = 1;
  std::uint32_t observations_ = 0;
};

}  // namespace imprint::bridge
