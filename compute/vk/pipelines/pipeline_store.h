#pragma once
// Makes compute pipelines from GLSL. Each distinct shader is compiled once per device.

#include <vulkan/vulkan_core.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "compute/base/result.h"

namespace imprint::vk {

// The interface of every kernel of Imprint. No other sets.
//   set 0, bindings 0 .. storage_buffer_count-1   storage buffers (whole blocks of the pool)
//   set 0, binding kTableBinding                  a dynamic uniform buffer: the dispatch's table of element
//                                                 offsets and sizes (uvec4[])
//   push constants                                the same table where it fits into min(kPushBytes, device)
inline constexpr std::uint32_t kPushBytes = 256;
inline constexpr std::uint32_t kTableBinding = 16;
inline constexpr std::uint32_t kTableBytes = 4096;  // longest table, and range of its descriptor

// All members except the name identify a kernel. Line comments in `glsl` do not count.
struct KernelSource {
  std::string name;  // for messages, debug names and dumps
  std::string glsl;  // complete compute shader, #version 450
  std::uint32_t storage_buffer_count = 1;
  std::uint32_t subgroup_size = 0;  // required (Capabilities::runs_subgroups_of); 0: any
};

// A pipeline that the store owns. Lives as long as the device.
struct Kernel {
  VkPipeline pipeline = VK_NULL_HANDLE;
  VkPipelineLayout layout = VK_NULL_HANDLE;
  VkDescriptorSetLayout set_layout = VK_NULL_HANDLE;
  std::uint32_t storage_buffer_count = 0;
};

struct PipelineStats {
  std::uint64_t glsl_compiles = 0;  // successful glslang runs
  std::uint64_t archive_hits = 0;   // SPIR-V found in DeviceOptions::kernels
  std::uint64_t disk_hits = 0;      // SPIR-V found in the cache directory
  std::uint64_t pipelines = 0;      // successful vkCreateComputePipelines calls
};

// Thread-safe. SPIR-V comes from the kernel archive, the cache directory or the compiler, in jobs
// (DeviceOptions). Destroying the store drops kernels that wait for compilation.
class PipelineStore {
 public:
  virtual ~PipelineStore() = default;

  // The kernels in the order of the sources; makes missing ones and waits. After a failure the other sources
  // are still made, except those after one with too many storage buffers. Returns the first error in the
  // order of the sources. A later call tries failed ones again. Not for frame threads: a kernel first
  // requested in a frame is counted, and with pipelineCreationCacheControl refused (wrong_state) unless the
  // driver has it in its cache. Errors: compile_failed (glslang's log and the numbered source line),
  // unsupported (more storage buffers than the device has), not_found (a library without a compiler and no
  // archive with the kernel), out_of_*_memory, device_lost.
  virtual Result<std::vector<Kernel>> get(std::span<const KernelSource> sources) = 0;

  // The layouts that all kernels with this count of storage buffers share.
  virtual Result<Kernel> layouts(std::uint32_t storage_buffer_count) = 0;

  // The driver's pipeline cache in an envelope that detects damage (pipeline_blob.h), for a later start on
  // the same GPU and driver. Import before get(); a kernel in the cache is still created, but not compiled.
  // Neither may run beside get(). Errors: unsupported (the cache is the host's; another GPU or driver, then
  // nothing was imported), corrupt_file, out_of_*_memory, device_lost.
  virtual Result<std::vector<std::byte>> export_cache() = 0;
  virtual Result<> import_cache(std::span<const std::byte> blob) = 0;

  virtual PipelineStats stats() const = 0;
};

}  // namespace imprint::vk
