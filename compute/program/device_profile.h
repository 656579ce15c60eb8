#pragma once
// What the kind of a device decides: how fusion weighs its choices, and how kernels spread their work. Of a
// profile alone, so that kernels can be written where the device is not.

#include <vector>

#include "compute/graph/fusion.h"
#include "compute/kernels/dispatch_source.h"
#include "compute/vk/capability_profile.h"
#include "compute/vk/device.h"

namespace imprint::program {

// What the programs of a device are written for: the device, as far as the compiler knows its extensions;
// without a compiler, the profile of the kernel archive that it runs. Where a newer compiler made an archive
// with extensions that the library's own does not know, the archive's profile goes first, and the other one
// stands behind it for programs that were not baked.
std::vector<vk::CapabilityProfile> profiles_of(const vk::Device& device);
inline vk::CapabilityProfile profile_of(const vk::Device& device) { return profiles_of(device).front(); }

graph::FusionOptions fusion_options(const vk::CapabilityProfile& profile);
kernels::DispatchLimits dispatch_limits(const vk::CapabilityProfile& profile);

}  // namespace imprint::program
