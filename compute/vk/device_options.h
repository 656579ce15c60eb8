#pragma once
// The host's part when Imprint adopts its device: the device, and options for Imprint's behaviour.

#include <vulkan/vulkan_core.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "compute/base/log.h"
#include "compute/vk/memory/memory_pool.h"

namespace imprint {
class JobQueue;
}

namespace imprint::vk {

class KernelArchive;  // kernel_archive.h

// The host's declaration (R1). Absent means "not enabled". Device::adopt reads it and keeps only the handles.
struct DeviceDescription {
  PFN_vkGetInstanceProcAddr get_instance_proc_addr = nullptr;  // required; the only source of functions
  VkInstance instance = VK_NULL_HANDLE;
  VkPhysicalDevice physical_device = VK_NULL_HANDLE;
  VkDevice device = VK_NULL_HANDLE;
  std::uint32_t api_version = 0;  // VkApplicationInfo::apiVersion; at least VK_API_VERSION_1_1
  std::span<const char* const> instance_extensions;  // enabled
  std::span<const char* const> device_extensions;    // enabled
  // The chain of VkDeviceCreateInfo::pNext, in any order and with any structs, and its pEnabledFeatures.
  const void* features = nullptr;
  const VkPhysicalDeviceFeatures* enabled_features = nullptr;
  const VkAllocationCallbacks* allocation_callbacks = nullptr;  // copied; for every create and destroy
  VkPipelineCache pipeline_cache = VK_NULL_HANDLE;  // internally synchronised; null: Imprint creates its own
  std::uint32_t queue_family = 0;                   // of Imprint's command buffers
};

struct DeviceOptions {
  MemoryPoolOptions memory;
  // Precompiled kernels, looked up first. A library without a compiler has no others. May be null.
  std::shared_ptr<const KernelArchive> kernels;
  std::string shader_cache_directory;  // SPIR-V by content hash; empty: off. Needs a compiler.
  std::string shader_dump_directory;   // generated GLSL for reading; empty: off
  // Number of threads that the device creates to run glslang and create pipelines. 0: the thread that asks
  // for a kernel does it.
  std::uint32_t compile_threads = 1;
  std::shared_ptr<JobQueue> jobs;  // compiles instead of those threads; may be null
  // Treats a software device as a GPU, which is slower. Tests use it to cover GPU schedules without a GPU.
  bool schedule_as_gpu = false;
  // Ignores 16-bit storage, as if the device lacked it. Tests use it to cover narrow floats in words.
  bool ignore_16bit_storage = false;
  // The longest range that a descriptor binds, if less than maxStorageBufferRange; 0: the device's. Tests use
  // it to cover programs whose memory lies in several sections.
  std::uint64_t storage_buffer_range = 0;
  LogSink log;
};

}  // namespace imprint::vk
