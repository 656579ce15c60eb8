#pragma once
// Finds the system's Vulkan loader. For the standalone device only: with a host's device, functions come from
// the host.

#include <vulkan/vulkan_core.h>

#include "compute/base/result.h"

namespace imprint::bridge {

struct SystemLoader {
  PFN_vkGetInstanceProcAddr get_instance_proc_addr = nullptr;
};

// The loader stays loaded until the process ends, as drivers keep threads of their own.
// A few lines instead of a function-table library: such a library defines the names of all Vulkan functions
// as variables, and those of a static library would meet the host program's own when both are linked
// together. Errors: not_found (no loader: says what to install).
Result<SystemLoader> find_system_loader();

}  // namespace imprint::bridge
