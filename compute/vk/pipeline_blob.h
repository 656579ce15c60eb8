#pragma once
// A driver's pipeline cache as bytes to keep. Drivers are not bound to survive a damaged one, so it travels
// in an envelope with a hash, and its own header is compared with the device before the driver sees any of
// it.
//
//   0   8   "imp-plc1"
//   8  16   hash of what follows
//  24   ..  what vkGetPipelineCacheData gave, which begins with a VkPipelineCacheHeaderVersionOne
//
// The hash finds damage; it is no signature. Whoever can write the file hands SPIR-V and machine code to the
// driver. Bounds of reading: linear time, no memory.

#include <cstddef>
#include <span>
#include <vector>

#include "compute/base/result.h"
#include "compute/vk/capabilities.h"

namespace imprint::vk {

std::vector<std::byte> wrap_pipeline_cache(std::span<const std::byte> data);

// The driver's bytes within the blob. Errors: corrupt_file (no such blob, or damaged), unsupported (of
// another GPU or driver).
Result<std::span<const std::byte>> unwrap_pipeline_cache(std::span<const std::byte> blob,
                                                         const Capabilities& device);

}  // namespace imprint::vk
