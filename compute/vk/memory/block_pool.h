#pragma once
// The memory pool of a device: blocks of device memory, sub-allocated.

#include <memory>

#include "compute/vk/memory/memory_pool.h"

namespace imprint::vk {

class Device;

// The device must outlive its pool.
std::unique_ptr<MemoryPool> create_block_pool(Device& device, const MemoryPoolOptions& options);

}  // namespace imprint::vk
