#pragma once
// The share of its budget that learning may use, by the GPU time that the host measures for its own frames.
// Imprint's timestamps cover Imprint's work only, and overstate it where queues overlap. Only the host's
// frame time tells whether the picture suffers.

#include <cstdint>

namespace imprint::bridge {

enum class Preference : std::uint8_t {
  graphics,  // a frame over its time stops learning that is not due at once; it comes back slowly
  balanced,  // gives way step by step, down to a quarter of the budget
  compute    // always keeps its budget
};

// Frame thread.
class Governor {
 public:
  // frame_us: limit of GPU time for the host's whole frame; 0 = none.
  void set(Preference preference, std::uint32_t frame_us) {
    preference_ = preference;
    frame_us_ = frame_us;
    if (frame_us == 0 || preference == Preference::compute) share_ = 1;
  }
  // GPU time of the newest whole frame that the host has measured; 0 = none.
  void measured(std::uint32_t host_gpu_us);
  float share() const { return share_; }  // of the budget, 0 .. 1

 private:
  Preference preference_ = Preference::graphics;
  std::uint32_t frame_us_ = 0;
  float share_ = 1;
};

}  // namespace imprint::bridge
