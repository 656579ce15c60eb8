#pragma once
// What the kind of a device decides: how fusion weighs its choices, and how kernels spread their work.

#include "compute/graph/fusion.h"
#include "compute/kernels/dispatch_source.h"
#include "compute/vk/device.h"

namespace imprint {

FusionOptions fusion_options(const vk::Device& device);
DispatchLimits dispatch_limits(const vk::Device& device);

}  // namespace imprint
