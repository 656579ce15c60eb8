#pragma once
// A driver's pipeline cache as storable bytes. A damaged cache may crash a driver, so an envelope with a hash
// protects it. The cache's own header is compared with the device before the driver sees any byte.
//
//   0   8   "imp-plc1"
//   8  16   hash of everything after it
//  24  ..   the result of vkGetPipelineCacheData, which begins with a VkPipelineCacheHeaderVersionOne
//
// The hash finds damage; it is not a signature. Anyone who can write the file hands SPIR-V and machine code
// to the driver. Bounds of reading: linear time, no memory.

#include <cstddef>
#include <span>
#include <vector>

#include "compute/base/result.h"
#include "compute/vk/capabilities/capabilities.h"

namespace imprint::vk {

std::vector<std::byte> wrap_pipeline_cache(std::span<const std::byte> data);

// The driver's bytes within the blob. Errors: corrupt_file (not such a blob, or damaged), unsupported (from
// another GPU or driver).
Result<std::span<const std::byte>> unwrap_pipeline_cache(std::span<const std::byte> blob,
                                                         const Capabilities& device);

}  // namespace imprint::vk
