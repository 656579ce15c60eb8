#pragma once
// Which of a device's cooperative matrices kernels can use.

#include "compute/vk/capabilities/capabilities.h"
#include "compute/vk/functions.h"

namespace imprint::vk {

// Clears the cooperative_matrix_* of `found` whose shapes or types kernels are not written for.
void keep_usable_matrices(VkPhysicalDevice physical_device, const Functions& functions,
                          const Capabilities& declared, Capabilities& found);

}  // namespace imprint::vk
