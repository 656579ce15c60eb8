#pragma once
// GLSL in, compute pipelines out; each distinct shader once per device. SPIR-V comes from the kernel archive,
// from the cache on disk, or from the compiler, in jobs (DeviceOptions).

#include <vulkan/vulkan_core.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compute/base/hash.h"
#include "compute/base/result.h"

namespace imprint::vk {

// The one interface of all compute kernels of Imprint:
//   set 0, bindings 0 .. storage_buffer_count-1   storage buffers (whole pool blocks)
//   set 0, binding kTableBinding                  a dynamic uniform buffer: the dispatch's table of element
//   offsets and sizes (uvec4[]) push constants                                the same table where it fits:
//   as many bytes as the device has, up to kPushBytes
// No other sets.
inline constexpr std::uint32_t kPushBytes = 256;
inline constexpr std::uint32_t kTableBinding = 16;
inline constexpr std::uint32_t kTableBytes =
    4096;  // range of the table's descriptor; a dispatch's table is at most this long

struct KernelSource {
  std::string name;  // for messages, debug names and dumps; not part of the identity
  std::string glsl;  // complete compute shader, #version 450
  std::uint32_t storage_buffer_count = 1;
  std::uint32_t subgroup_size =
      0;  // that it is written for (Capabilities::runs_subgroups_of); 0 = any; part of the identity
};

// A pipeline owned by the store, alive as long as the device.
struct Kernel {
  VkPipeline pipeline = VK_NULL_HANDLE;
  VkPipelineLayout layout = VK_NULL_HANDLE;
  VkDescriptorSetLayout set_layout = VK_NULL_HANDLE;
  std::uint32_t storage_buffer_count = 0;
};

struct PipelineStats {
  std::uint64_t glsl_compiles = 0;  // glslang runs
  std::uint64_t archive_hits = 0;   // SPIR-V found in DeviceOptions::kernels
  std::uint64_t disk_hits = 0;      // SPIR-V found in the cache directory
  std::uint64_t pipelines = 0;      // vkCreateComputePipelines calls
};

class Device;

// Thread-safe. Destroying it drops kernels still waiting to be compiled.
class PipelineStore {
 public:
  // The device outlives its store, and creates it with its own options: rooms use Device::pipelines().
  // Errors: out_of_host_memory (no threads, no memory), device_lost.
  static Result<std::unique_ptr<PipelineStore>> create(Device& device, VkPipelineCache host_cache);
  virtual ~PipelineStore() = default;

  // All kernels, in the order of the sources; has compiled what is missing and waits for it. Never on a frame
  // thread: what is asked for there all the same is counted, and with pipelineCreationCacheControl refused
  // unless the driver has it in its cache (wrong_state), so that a slip shows as an error and not as a hitch.
  // Errors: compile_failed with glslang's log and the numbered source line, unsupported (more storage buffers
  // than the device has), not_found (a library without a compiler, and a kernel that its archive lacks),
  // out_of_*_memory, device_lost. All sources are tried; the error is that of the first that failed.
  virtual Result<std::vector<Kernel>> get(std::span<const KernelSource> sources) = 0;

  // The pipeline and set layout for a count of storage buffers (shared by all kernels with that count).
  virtual Result<Kernel> layouts(std::uint32_t storage_buffer_count) = 0;

  // What the driver has made of all kernels so far, for a later start on the same GPU and driver: the
  // pipeline cache's own bytes in an envelope that recognises damage (pipeline_blob.h). Import before kernels
  // are asked for; a kernel that is in it is still created, but not compiled by the driver. Neither while
  // get() runs. Errors: unsupported (the cache is the host's; of another GPU or driver, and nothing was
  // taken), corrupt_file, out_of_*_memory, device_lost.
  virtual Result<std::vector<std::byte>> export_cache() = 0;
  virtual Status import_cache(std::span<const std::byte> blob) = 0;

  virtual PipelineStats stats() const = 0;
};

}  // namespace imprint::vk
