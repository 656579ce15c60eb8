#pragma once
// What of a device decides how kernels are written, by itself, so that they can be written where the device
// is not.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace imprint::vk {

struct Capabilities;

// Members mean what those of Capabilities do. Whoever lets kernels depend on more adds it here, and to the
// table in the .cpp.
struct CapabilityProfile {
  std::string name;  // for messages; no part of what is compared
  std::uint32_t max_storage_buffers_per_stage = 4;
  std::uint32_t max_push_constant_bytes = 128;
  std::uint32_t max_workgroup_count_x = 65535;
  std::uint32_t max_workgroup_invocations = 128;
  std::uint32_t max_workgroup_size_x = 128;
  std::uint32_t max_shared_memory_bytes = 16384;
  std::uint32_t subgroup_size = 0;  // 32 where kernels may ask for that; 0: any, and nothing depends on it
  bool storage_16bit = false;
  bool shader_float16 = false;
  bool vulkan_memory_model = false;
  bool cooperative_matrix_nv = false;
  bool cooperative_matrix_khr = false;  // before the one above
  bool cooperative_matrix2_nv = false;  // before both
  bool processor = false;               // written for a processor's few cores and caches; runs anywhere

  static CapabilityProfile of(const Capabilities& device, bool schedule_as_gpu);

  // Less what this library's compiler cannot translate; a library without one can translate nothing, and
  // takes what an archive has.
  CapabilityProfile as_compiled_here() const;

  bool equals(const CapabilityProfile& other) const;
  // Why the device cannot run what was written for this profile: "needs max_shared_memory_bytes 49152, it has
  // 32768"; empty when it can.
  std::string lack(const CapabilityProfile& device) const;
  // Why no device is so: Vulkan 1.1 promises more. Empty where it does not.
  std::string below_vulkan() const;
};

// One of the members, for files. Exactly one pointer is set.
struct ProfileField {
  const char* name = "";
  std::uint32_t CapabilityProfile::*number = nullptr;
  bool CapabilityProfile::*flag = nullptr;
  std::uint32_t get(const CapabilityProfile& profile) const {
    return number ? profile.*number : profile.*flag;
  }
  void set(CapabilityProfile& profile, std::uint32_t value) const;
};
std::span<const ProfileField> profile_fields();
const ProfileField* find_profile_field(std::string_view name);  // null: none of that name

// Profiles that many devices can run: "desktop" (what GPUs of desktops and laptops have had for years),
// "software" (llvmpipe and the like), "baseline" (the least that Vulkan 1.1 promises: every device). In that
// order.
std::span<const CapabilityProfile> named_profiles();

}  // namespace imprint::vk
