#pragma once
// How much of its budget learning takes, by what the host measures of its own frames. Our timestamps see our
// work alone, and on queues that overlap they overstate it; whether the picture suffers only the host's frame
// can say.

#include <cstdint>

namespace imprint::bridge {

enum class Preference : std::uint8_t {
  graphics,  // a frame over its time gives up learning at once (but for what is due), and learning comes back
             // slowly
  balanced,  // gives way step by step, but for a quarter of the budget
  compute    // keeps its budget whatever the frame takes
};

// Frame thread.
class Governor {
 public:
  // frame_us: GPU time that a whole frame of the host's may take; 0 = nothing to keep to.
  void set(Preference preference, std::uint32_t frame_us) {
    preference_ = preference;
    frame_us_ = frame_us;
    if (frame_us == 0 || preference == Preference::compute) share_ = 1;
  }
  // The newest frame that the host has measured, all work on the GPU included; 0 = none.
  void measured(std::uint32_t host_gpu_us);
  float share() const { return share_; }  // of the budget, 0 .. 1

 private:
  Preference preference_ = Preference::graphics;
  std::uint32_t frame_us_ = 0;
  float share_ = 1;
};

}  // namespace imprint::bridge
