#pragma once
// Allocations of device memory begin at multiples of this many bytes, and two of them that follow each other
// in a buffer have less than that between them.

#include <algorithm>
#include <cstdint>

#include "compute/vk/capabilities/capabilities.h"

namespace imprint::vk {

inline std::uint64_t allocation_step(const Capabilities& capabilities) {
  return std::max<std::uint64_t>({16, capabilities.min_storage_buffer_offset_alignment,
                                  capabilities.min_uniform_buffer_offset_alignment});
}

}  // namespace imprint::vk
