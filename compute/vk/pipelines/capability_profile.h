#pragma once
// A profile is the set of device properties that kernels depend on. It allows writing kernels without the
// device.

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace imprint::vk {

struct Capabilities;
struct ProfileField;

// Members mean the same as in Capabilities. When kernels depend on more, add it here and to the table in the
// .cpp.
struct CapabilityProfile {
  std::string name;  // for messages; not compared
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
  bool cooperative_matrix_khr = false;  // preferred to the one above
  bool cooperative_matrix2_nv = false;  // preferred to both
  bool rounds_to_float16 = false;       // with a mode that kernels ask for
  bool processor = false;               // written for a CPU's few cores and caches; runs anywhere
  bool integer_dot = false;             // products of 8-bit numbers
  // Of an archive's profile: bit i is set if profile_fields()[i] changes none of its kernels.
  std::uint32_t unused_fields = 0;

  static CapabilityProfile of(const Capabilities& device, bool schedule_as_gpu);

  // Without the features that this library's compiler cannot translate. A library without a compiler
  // translates nothing and uses what an archive has.
  CapabilityProfile as_compiled_here() const;

  // An optional feature, or the subgroup size, which depends on one. A game may enable fewer of them on the
  // same device. Limits are those of the device.
  static bool depends_on_game(const ProfileField& field);
  // Without the fields that are set and for which drop is true. They then count as unused.
  CapabilityProfile without(const std::function<bool(const ProfileField&)>& drop) const;

  // Both profiles have the same kernels: they differ at most in unused fields.
  bool equals(const CapabilityProfile& other) const;
  // The first field in which a device differs: "storage_16bit: found 1, expected 0". Empty when equal.
  std::string difference(const CapabilityProfile& device) const;
  // Why the device cannot run kernels written for this profile: "needs max_shared_memory_bytes 49152, it has
  // 32768". Empty when it can.
  std::string lack(const CapabilityProfile& device) const;
  // Why no device can have this profile: Vulkan 1.1 guarantees more. Empty when a device can.
  std::string below_vulkan() const;
};

// A member of the profile, for files. Exactly one pointer is set.
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
const ProfileField* find_profile_field(std::string_view name);  // null: no such name

// Profiles that many devices can run, in this order:
//   "desktop"   what GPUs of desktops and laptops have had for years
//   "software"  llvmpipe and similar devices
//   "baseline"  the minimum that Vulkan 1.1 guarantees: every device
std::span<const CapabilityProfile> named_profiles();

}  // namespace imprint::vk
