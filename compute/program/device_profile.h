#pragma once
// Settings that depend on the kind of device: how fusion weighs its choices, and how kernels spread their
// work. They use only a profile, so kernels can be generated without the device.

#include <vector>

#include "compute/graph/plan/fusion.h"
#include "compute/kernels/dispatch_source.h"
#include "compute/vk/device.h"
#include "compute/vk/pipelines/capability_profile.h"

namespace imprint::program {

// Profiles to generate the device's programs for, best first. With a compiler: the device, limited to
// extensions that the compiler knows. Without a compiler: the profile of the kernel archive in use. If a
// newer compiler made the archive with extensions unknown to this compiler, the archive's profile comes
// first. The device's profile follows for programs that were not baked.
std::vector<vk::CapabilityProfile> profiles_of(const vk::Device& device);
inline vk::CapabilityProfile profile_of(const vk::Device& device) { return profiles_of(device).front(); }

graph::FusionOptions fusion_options(const vk::CapabilityProfile& profile);
kernels::DispatchLimits dispatch_limits(const vk::CapabilityProfile& profile);

}  // namespace imprint::program
