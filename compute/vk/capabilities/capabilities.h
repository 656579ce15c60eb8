#pragma once
// Device features that Imprint may use: the host declared them and the physical device supports them.

#include <vulkan/vulkan_core.h>

#include <array>
#include <cstdint>
#include <string>

namespace imprint::vk {

// Every feature is optional and has a fallback.
struct Capabilities {
  std::uint32_t api_version = 0;  // the lower of the declared and the physical device's
  bool timeline_semaphore = false;
  bool synchronization2 = false;
  bool shader_float16 = false;
  bool storage_16bit = false;
  bool subgroup_size_control = false;
  bool host_query_reset = false;
  bool memory_budget = false;
  bool vulkan_memory_model = false;
  // Subgroup matrices of 16 x 16 x 16 float16, summed in float32. KHR also sums in float16.
  bool cooperative_matrix_nv = false;
  bool cooperative_matrix_khr = false;
  // Workgroup matrices of float16, summed in float32, by 128 or 256 invocations. Their extents are multiples
  // of 64 x 64 x 32, at most 256.
  bool cooperative_matrix2_nv = false;
  bool debug_utils = false;
  bool pipeline_creation_cache_control = false;
  bool integer_dot = false;  // shaders multiply four packed numbers of 8 bits at once

  // Properties of the physical device.
  std::string device_name;
  std::string driver_name;  // name and version: "llvmpipe Mesa 22.3.6 (LLVM 15.0.6)"
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
  // Subgroup sizes that a kernel may require; 0 without subgroup_size_control.
  std::uint32_t min_subgroup_size = 0, max_subgroup_size = 0;
  std::uint32_t timestamp_valid_bits = 0;  // of the queue family; 0: no timestamps
  double timestamp_period_ns = 0;
  // A kernel may ask for conversions to float16 that round halves to even and keep subnormals. Needs Vulkan
  // 1.2 or VK_KHR_shader_float_controls, declared.
  bool rounds_to_float16 = false;

  // Whether kernels can run in subgroups of this size: they can require it, or the device has no other size.
  bool runs_subgroups_of(std::uint32_t size) const {
    return max_subgroup_size > 0 ? min_subgroup_size <= size && size <= max_subgroup_size
                                 : subgroup_size == size;
  }
};

// "1.3" for VK_API_VERSION_1_3.
std::string version_text(std::uint32_t version);

}  // namespace imprint::vk
