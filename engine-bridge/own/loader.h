#pragma once
// Finds the system's Vulkan loader, for Imprint's own device only. With a host's device the host passes the
// functions.

#include <vulkan/vulkan_core.h>

#include "compute/base/result.h"

namespace imprint::bridge {

struct SystemLoader {
  PFN_vkGetInstanceProcAddr get_instance_proc_addr = nullptr;
};

// The loader stays loaded until the process ends, because drivers keep threads. No function-table library is
// used: its variables have the names of Vulkan's functions and would collide with the host program's own.
// Errors: not_found (no loader; says what to install).
Result<SystemLoader> find_system_loader();

}  // namespace imprint::bridge
