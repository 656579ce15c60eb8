#include "compute/vk/pipelines/capability_profile.h"

#include <algorithm>
#include <array>

#include "compute/base/text.h"
#include "compute/vk/capabilities/capabilities.h"
#include "compute/vk/pipelines/glsl_compiler.h"

namespace imprint::vk {
namespace {

using P = CapabilityProfile;
constexpr ProfileField kFields[] = {
    {"max_storage_buffers_per_stage", &P::max_storage_buffers_per_stage, nullptr},
    {"max_push_constant_bytes", &P::max_push_constant_bytes, nullptr},
    {"max_workgroup_count_x", &P::max_workgroup_count_x, nullptr},
    {"max_workgroup_invocations", &P::max_workgroup_invocations, nullptr},
    {"max_workgroup_size_x", &P::max_workgroup_size_x, nullptr},
    {"max_shared_memory_bytes", &P::max_shared_memory_bytes, nullptr},
    {"subgroup_size", &P::subgroup_size, nullptr},
    {"storage_16bit", nullptr, &P::storage_16bit},
    {"shader_float16", nullptr, &P::shader_float16},
    {"vulkan_memory_model", nullptr, &P::vulkan_memory_model},
    {"cooperative_matrix_nv", nullptr, &P::cooperative_matrix_nv},
    {"cooperative_matrix_khr", nullptr, &P::cooperative_matrix_khr},
    {"cooperative_matrix2_nv", nullptr, &P::cooperative_matrix2_nv},
    {"processor", nullptr, &P::processor},
    {"rounds_to_float16", nullptr, &P::rounds_to_float16},
    {"integer_dot", nullptr, &P::integer_dot}};

std::uint32_t bit_of(const ProfileField& field) { return 1u << (&field - std::begin(kFields)); }

bool suffices(const ProfileField& field, const CapabilityProfile& wanted, const CapabilityProfile& device) {
  if (field.flag == &P::processor) return true;
  if (field.number == &P::subgroup_size)
    return wanted.subgroup_size == 0 || wanted.subgroup_size == device.subgroup_size;
  return field.get(wanted) <= field.get(device);
}

std::array<CapabilityProfile, 3> make_named() {
  CapabilityProfile desktop, baseline;
  desktop.name = "desktop";
  desktop.max_storage_buffers_per_stage = 16;
  desktop.max_workgroup_invocations = desktop.max_workgroup_size_x = 1024;
  desktop.max_shared_memory_bytes = 32768;
  CapabilityProfile software = desktop;
  software.name = "software";
  software.processor = true;
  baseline.name = "baseline";
  return {desktop, software, baseline};
}

}  // namespace

CapabilityProfile CapabilityProfile::of(const Capabilities& device, bool schedule_as_gpu) {
  CapabilityProfile profile;
  profile.name = device.device_name;
  profile.max_storage_buffers_per_stage = device.max_storage_buffers_per_stage;
  profile.max_push_constant_bytes = device.max_push_constant_bytes;
  profile.max_workgroup_count_x = device.max_workgroup_count_x;
  profile.max_workgroup_invocations = device.max_workgroup_invocations;
  profile.max_workgroup_size_x = device.max_workgroup_size_x;
  profile.max_shared_memory_bytes = device.max_shared_memory_bytes;
  profile.subgroup_size = device.runs_subgroups_of(32) ? 32 : device.subgroup_size;
  profile.storage_16bit = device.storage_16bit;
  profile.shader_float16 = device.shader_float16;
  profile.vulkan_memory_model = device.vulkan_memory_model;
  profile.cooperative_matrix_nv = device.cooperative_matrix_nv;
  profile.cooperative_matrix_khr = device.cooperative_matrix_khr;
  profile.cooperative_matrix2_nv = device.cooperative_matrix2_nv &&
                                   device.api_version >= VK_API_VERSION_1_3;  // its kernels are SPIR-V 1.6
  profile.rounds_to_float16 = device.rounds_to_float16;
  profile.integer_dot = device.integer_dot;
  profile.processor = device.device_type == VK_PHYSICAL_DEVICE_TYPE_CPU && !schedule_as_gpu;
  return profile;
}

CapabilityProfile CapabilityProfile::as_compiled_here() const {
  CapabilityProfile profile = *this;
  profile.cooperative_matrix_khr = cooperative_matrix_khr && GlslCompiler::knows("GL_KHR_cooperative_matrix");
  profile.cooperative_matrix2_nv = cooperative_matrix2_nv && GlslCompiler::knows("GL_NV_cooperative_matrix2");
  profile.rounds_to_float16 = rounds_to_float16 && GlslCompiler::knows("GL_EXT_spirv_intrinsics");
  profile.integer_dot = integer_dot && GlslCompiler::knows("GL_EXT_spirv_intrinsics");
  return profile;
}

bool CapabilityProfile::depends_on_game(const ProfileField& field) {
  return field.number == &P::subgroup_size || (field.flag && field.flag != &P::processor);
}

CapabilityProfile CapabilityProfile::without(const std::function<bool(const ProfileField&)>& drop) const {
  CapabilityProfile profile = *this;
  const CapabilityProfile least;
  for (const ProfileField& field : kFields) {
    if (!drop(field) || field.get(*this) == field.get(least)) continue;
    field.set(profile, field.get(least));
    profile.unused_fields |= bit_of(field);
  }
  return profile;
}

bool CapabilityProfile::equals(const CapabilityProfile& other) const { return difference(other).empty(); }

std::string CapabilityProfile::difference(const CapabilityProfile& device) const {
  for (const ProfileField& field : kFields) {
    if (((unused_fields | device.unused_fields) & bit_of(field)) != 0) continue;
    if (field.get(*this) != field.get(device))
      return text(field.name, ": found ", field.get(*this), ", expected ", field.get(device));
  }
  return {};
}

std::string CapabilityProfile::lack(const CapabilityProfile& device) const {
  for (const ProfileField& field : kFields) {
    if (suffices(field, *this, device)) continue;
    return field.flag ? text("needs ", field.name)
                      : text("needs ", field.name, " ", field.get(*this), ", it has ", field.get(device));
  }
  return {};
}

std::string CapabilityProfile::below_vulkan() const {
  const CapabilityProfile least;  // the members' defaults, Vulkan 1.1's minimum
  for (const ProfileField& field : kFields)
    if (field.number && field.get(*this) < field.get(least))
      return text(field.name, ": found ", field.get(*this), ", expected at least ", field.get(least));
  return {};
}

void ProfileField::set(CapabilityProfile& profile, std::uint32_t value) const {
  if (number) {
    profile.*number = value;
  } else {
    profile.*flag = value != 0;
  }
}

std::span<const ProfileField> profile_fields() { return kFields; }

const ProfileField* find_profile_field(std::string_view name) {
  const auto* found = std::ranges::find(kFields, name, &ProfileField::name);
  return found == std::end(kFields) ? nullptr : found;
}

std::span<const CapabilityProfile> named_profiles() {
  static const std::array<CapabilityProfile, 3> profiles = make_named();
  return profiles;
}

}  // namespace imprint::vk
