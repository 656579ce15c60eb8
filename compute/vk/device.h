#pragma once
// A VkDevice that somebody else made, with what was declared about it. Nothing of the host's is destroyed,
// waited for or guessed.

#include <vulkan/vulkan_core.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "compute/base/log.h"
#include "compute/base/result.h"
#include "compute/vk/completion.h"
#include "compute/vk/functions.h"
#include "compute/vk/memory_pool.h"
#include "compute/vk/pipeline_store.h"
#include "compute/vk/queue.h"

namespace imprint {
class JobQueue;
}

namespace imprint::vk {

// What the host declares (R1). Absent means "not enabled". Read only during Device::adopt; nothing is kept
// but the handles.
struct DeviceDescription {
  PFN_vkGetInstanceProcAddr get_instance_proc_addr = nullptr;  // required; the only way functions are found
  VkInstance instance = VK_NULL_HANDLE;
  VkPhysicalDevice physical_device = VK_NULL_HANDLE;
  VkDevice device = VK_NULL_HANDLE;
  std::uint32_t api_version = 0;  // VkApplicationInfo::apiVersion; at least VK_API_VERSION_1_1
  std::span<const char* const> instance_extensions;  // enabled
  std::span<const char* const> device_extensions;    // enabled
  const VkPhysicalDeviceFeatures2* features =
      nullptr;  // enabled, with its chain (core 1.1-1.3 and per-extension structs)
  const VkAllocationCallbacks* allocation_callbacks = nullptr;  // copied; used for every create and destroy
  VkPipelineCache pipeline_cache =
      VK_NULL_HANDLE;              // the host's, internally synchronised, or null for one of our own
  std::uint32_t queue_family = 0;  // the family that our command buffers are made for
};

class KernelArchive;  // kernel_archive.h

struct DeviceOptions {
  MemoryPoolOptions memory;
  std::shared_ptr<const KernelArchive>
      kernels;  // compiled before, asked first; a library without a compiler has no others. May be null
  std::string shader_cache_directory;  // SPIR-V by content hash; empty = off; for a library with a compiler
  std::string shader_dump_directory;   // generated GLSL for reading; empty = off
  std::uint32_t compile_threads =
      1;  // of the device's own, that run glslang and create pipelines; 0: whoever asks for a kernel does it
  std::shared_ptr<JobQueue> jobs;  // where that is done instead, beside other work; null: by those threads
  // Schedules and kernels as a GPU gets them on a software device too, where they are slower: for tests of
  // them without a GPU.
  bool schedule_as_gpu = false;
  LogSink log;
};

// Effective = declared and supported by the physical device. Every member is a bonus with its own fallback.
struct Capabilities {
  std::uint32_t api_version = 0;  // min(declared, physical device's)
  bool timeline_semaphore = false;
  bool synchronization2 = false;
  bool shader_float16 = false;
  bool storage_16bit = false;
  bool subgroup_size_control = false;
  bool host_query_reset = false;
  bool memory_budget = false;
  bool vulkan_memory_model = false;
  bool cooperative_matrix_nv =
      false;  // with matrices of 16 x 16 x 16 a subgroup, of float16, summed in float32
  bool cooperative_matrix_khr = false;  // the same, summed in float16 too
  // With matrices of 64 x 64 x 32 and multiples of that up to 256 a workgroup, of float16, summed in float32;
  // of 128 and 256 invocations.
  bool cooperative_matrix2_nv = false;
  bool debug_utils = false;
  bool pipeline_creation_cache_control = false;

  // From the physical device's properties.
  std::string device_name;
  std::string driver_name;  // "NVIDIA 580.159.4" / "llvmpipe Mesa 22.3.6 (LLVM 15.0.6)": name and version
  std::uint32_t vendor_id = 0, device_id = 0, driver_version = 0;
  std::array<std::uint8_t, VK_UUID_SIZE> pipeline_cache_uuid{};
  VkPhysicalDeviceType device_type = VK_PHYSICAL_DEVICE_TYPE_OTHER;
  std::uint64_t max_storage_buffer_range = 0;
  std::uint64_t min_storage_buffer_offset_alignment = 0;
  std::uint64_t min_uniform_buffer_offset_alignment = 0;
  std::uint32_t max_storage_buffers_per_stage = 4;
  std::uint32_t max_push_constant_bytes = 128;
  std::uint32_t max_workgroup_count_x = 65535;
  std::uint32_t max_workgroup_invocations = 128;
  std::uint32_t max_workgroup_size_x = 128;
  std::uint32_t max_shared_memory_bytes = 16384;
  std::uint32_t max_memory_allocation_count = 4096;
  std::uint32_t subgroup_size = 1;
  std::uint32_t min_subgroup_size = 0,
                max_subgroup_size = 0;  // that a kernel may ask for; 0 without subgroup_size_control
  // Whether kernels that are written for subgroups of this size run: they ask for it, or the device has no
  // other.
  bool runs_subgroups_of(std::uint32_t size) const {
    return max_subgroup_size > 0 ? min_subgroup_size <= size && size <= max_subgroup_size
                                 : subgroup_size == size;
  }
  std::uint32_t timestamp_valid_bits = 0;  // of the queue family; 0 = no timestamps
  double timestamp_period_ns = 0;
};

// What would have to be done about a loss.
enum class RemedyKind : std::uint8_t {
  none,            // nothing helps on this device
  declare_less,    // the description says what is not so
  raise_version,   // or enable the extension
  enable_feature,  // and its extension, where api_version does not have it
  enable_extension,
  enable_instance_extension,
  other_queue_family,
};

// A line of the adoption report: what is missing, what that costs, how to get it.
struct CapabilityLoss {
  std::string item;    // "timelineSemaphore", "VK_KHR_synchronization2", ...
  std::string cause;   // "not declared", "declared but not supported by the device"
  std::string cost;    // what is lost or slower
  std::string remedy;  // how to enable it, for a host that makes its device itself
  RemedyKind kind = RemedyKind::none;
  std::string feature, extension;  // to enable; empty where that is not it
  std::uint32_t core_since = 0;    // the version that has the feature without the extension; 0 = none
};

// A feature or extension that Imprint does without, declared or not, and why it would gain nothing.
struct UnusedBonus {
  const char* item;
  const char* reason;
};
std::span<const UnusedBonus> unused_bonuses();

// Counted since adoption, on any thread. The frame_* counters are those of the frame thread's own calls,
// inside a frame.
struct Counters {
  std::atomic<std::uint64_t> compiles{0};     // pipelines created
  std::atomic<std::uint64_t> allocations{0};  // vkAllocateMemory
  std::atomic<std::uint64_t> waits{0};        // blocking waits for the GPU
  std::atomic<std::uint64_t> submits{0};
  std::atomic<std::uint64_t> frame_compiles{0};
  std::atomic<std::uint64_t> frame_allocations{0};
  std::atomic<std::uint64_t> frame_waits{0};

  void enter_frame() { frame_thread.store(std::this_thread::get_id(), std::memory_order_relaxed); }
  void leave_frame() { frame_thread.store({}, std::memory_order_relaxed); }
  bool on_frame() const { return frame_thread.load(std::memory_order_relaxed) == std::this_thread::get_id(); }

 private:
  std::atomic<std::thread::id> frame_thread;  // while a frame call runs; one frame thread per device
};

// Owns everything of ours on the host's device. Destroying it does not wait: the caller first completes or
// abandons (device lost) all work.
class Device {
 public:
  // Errors: invalid_argument (which field is missing), unsupported (api_version below 1.1: names the field to
  // raise; family without compute).
  static Result<std::unique_ptr<Device>> adopt(const DeviceDescription& description,
                                               const DeviceOptions& options);
  virtual ~Device() = default;

  virtual const Functions& functions() const = 0;
  virtual VkDevice handle() const = 0;
  virtual VkPhysicalDevice physical_device() const = 0;
  virtual const VkAllocationCallbacks* allocation_callbacks() const = 0;
  virtual std::uint32_t queue_family() const = 0;
  virtual const Capabilities& capabilities() const = 0;
  virtual const std::vector<CapabilityLoss>& losses() const = 0;
  virtual const DeviceOptions& options() const = 0;
  virtual MemoryPool& memory() = 0;
  virtual PipelineStore& pipelines() = 0;
  virtual Counters& counters() = 0;

  // ---- order of completion (see completion.h for how the bridge feeds it) ----
  virtual Completion& completion() = 0;    // the bridge's side of it; the calls below are the rooms' side
  virtual Ticket last_ticket() const = 0;  // the newest ticket handed out
  virtual bool is_complete(Ticket ticket) = 0;  // polls, never blocks
  // Runs `destroy` once everything up to `ticket` is complete (at once if it already is). Runs from collect()
  // or the destructor.
  virtual void retire(Ticket ticket, std::function<void()> destroy) = 0;
  virtual void collect() = 0;  // runs what is due; called by the bridge each frame

  // After VK_ERROR_DEVICE_LOST was seen anywhere: no further Vulkan calls are made but destroys.
  virtual void mark_lost() = 0;
  virtual bool lost() const = 0;
};

// Names an object for the validation layer and captures; nothing without VK_EXT_debug_utils.
void set_debug_name(const Device& device, VkObjectType type, std::uint64_t handle, const std::string& name);
template <class H>
void set_debug_name(const Device& device, VkObjectType type, H* handle, const std::string& name) {
  set_debug_name(device, type, reinterpret_cast<std::uint64_t>(handle), name);
}

// A name for the commands recorded while it lives, in captures; nothing without VK_EXT_debug_utils.
class CommandLabel {
 public:
  CommandLabel(const Functions& functions, VkCommandBuffer commands,
               const char* name);  // in frames too: allocates nothing
  ~CommandLabel();
  CommandLabel(const CommandLabel&) = delete;
  CommandLabel& operator=(const CommandLabel&) = delete;

 private:
  const Functions& functions_;
  VkCommandBuffer commands_;
};

// Turns a VkResult into an Error ("vkQueueSubmit: VK_ERROR_DEVICE_LOST"), and marks the device lost when it
// says so.
Error vulkan_error(Device& device, const char* call, VkResult result);
Error result_error(const char* call, VkResult result);  // before there is a device to mark

}  // namespace imprint::vk
