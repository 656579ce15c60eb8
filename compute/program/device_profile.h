#pragma once
// What the kind of a device decides: how fusion weighs its choices, and how kernels spread their work. Of a profile alone, so that kernels can be written
// where the device is not.

#include "compute/graph/fusion.h"
#include "compute/kernels/dispatch_source.h"
#include "compute/vk/capability_profile.h"
#include "compute/vk/device.h"

namespace imprint {

// What the programs of a device are written for: the device as it is; without a compiler, the profile of its kernel archive that it runs.
vk::CapabilityProfile profile_of(const vk::Device& device);

FusionOptions fusion_options(const vk::CapabilityProfile& profile);
DispatchLimits dispatch_limits(const vk::CapabilityProfile& profile);

}  // namespace imprint
