#pragma once
// A game's physics as a custom operation: a rope of masses between springs that hangs from its first mass.

#include <imprint/compute.h>

#include <cstdint>
#include <vector>

namespace rope {

inline constexpr std::int64_t kMasses = 8;
inline constexpr float kRest = 0.15f;  // length of a spring, metres

// Positions and velocities, float32 [masses, 2] each, after one step of 10 ms. force: [2], on the last mass.
// Differentiable, on a Vulkan device and on device cpu.
std::vector<imprint::Tensor> step(const imprint::Tensor& positions, const imprint::Tensor& velocities,
                                  const imprint::Tensor& force);

}  // namespace rope
