#pragma once
// The pipeline store of a device.

#include <memory>

#include "compute/base/result.h"
#include "compute/vk/pipelines/pipeline_store.h"

namespace imprint::vk {

class Device;

// Uses the device's options. The device must outlive its store. host_cache: null creates a cache for the
// store. Errors: out_of_host_memory (no threads, no memory), device_lost.
Result<std::unique_ptr<PipelineStore>> create_compiling_store(Device& device, VkPipelineCache host_cache);

}  // namespace imprint::vk
