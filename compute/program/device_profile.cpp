#include "compute/program/device_profile.h"

#include <algorithm>

#include "compute/vk/pipelines/glsl_compiler.h"
#include "compute/vk/pipelines/kernel_archive.h"
#include "compute/vk/pipelines/pipeline_store.h"

namespace imprint {

using namespace graph;
using namespace kernels;
using namespace program;

std::vector<vk::CapabilityProfile> program::profiles_of(const vk::Device& device) {
  const vk::CapabilityProfile own =
      vk::CapabilityProfile::of(device.capabilities(), device.options().schedule_as_gpu);
  const vk::KernelArchive* archive = device.options().kernels.get();
  const vk::CapabilityProfile* baked = archive ? archive->profile_for(own) : nullptr;
  if (!vk::GlslCompiler::present()) return {baked ? *baked : own};
  const vk::CapabilityProfile compiled = own.as_compiled_here();
  if (baked && !baked->lack(compiled).empty()) return {*baked, compiled};
  return {compiled};
}

FusionOptions program::fusion_options(const vk::CapabilityProfile& capabilities) {
  FusionOptions options;
  options.region_invocations =
      static_cast<std::int32_t>(std::min(256u, capabilities.max_workgroup_invocations));
  options.region_shared_bytes = std::min(49152u, capabilities.max_shared_memory_bytes);
  options.most_invocations =
      static_cast<std::int32_t>(std::min(1024u, capabilities.max_workgroup_invocations));
  options.fold_invocations = capabilities.max_workgroup_invocations < 256 ? 64 : 256;  // more terms in flight
  options.map_invocations = static_cast<std::int32_t>(std::min(128u, capabilities.max_workgroup_invocations));
  options.matrix_units = (capabilities.cooperative_matrix_nv || capabilities.cooperative_matrix_khr) &&
                         capabilities.vulkan_memory_model && capabilities.shader_float16 &&
                         capabilities.storage_16bit && capabilities.subgroup_size == 32 &&
                         capabilities.max_workgroup_invocations >= 256;
  options.matrix_tiles = options.matrix_units && capabilities.cooperative_matrix_khr;
  // These kernels also use the matrices of GL_KHR_cooperative_matrix.
  options.matrix_workgroups = options.matrix_tiles && capabilities.cooperative_matrix2_nv;
  options.pads_inside = !capabilities.processor;
  options.pages.integer_dot = capabilities.integer_dot;
  options.pages.invocations = options.most_invocations;
  options.pages.shared_bytes = static_cast<int>(options.region_shared_bytes);
  if (capabilities.processor) {
    // A CPU device has few cores, and a cache where a GPU has shared memory. Every invocation of a workgroup
    // saves its state at every barrier.
    options.group_fold_length = 192;
    options.column_fold_length = 4096;
    options.cheap_combination = 64;
    options.tails = false;
    options.product_turn_operations = 1000;
    options.region_groups = 8;
    options.region_invocations = 16;
    options.region_load_rows = 0;
    options.region_vectors = false;
    options.region_few_partials = 0;
    options.row_fold_elements = 1 << 16;
    options.fold_invocations = 64;
    options.row_lane_elements = 64;
    options.fill_groups = 8;
    options.pages.groups = 8;
    options.pages.processor = true;
    options.fill_invocations = 512;
  }
  return options;
}

DispatchLimits program::dispatch_limits(const vk::CapabilityProfile& capabilities) {
  DispatchLimits limits;
  limits.storage_buffers = std::min(capabilities.max_storage_buffers_per_stage, vk::kTableBinding);
  limits.workgroup_count_x = capabilities.max_workgroup_count_x;
  limits.invocations = capabilities.max_workgroup_invocations;
  limits.shared_bytes = std::min(49152u, capabilities.max_shared_memory_bytes);
  limits.table_entries = vk::kTableBytes / 4;
  limits.push_entries = std::min(vk::kPushBytes, capabilities.max_push_constant_bytes) / 4;
  limits.storage_16bit = capabilities.storage_16bit;
  limits.rounds_to_float16 = capabilities.storage_16bit && capabilities.rounds_to_float16;
  limits.fold_terms = capabilities.processor ? 2 : 8;
  limits.keep_loops = capabilities.processor;
  limits.matrix_dialect = capabilities.cooperative_matrix_khr ? MatrixDialect::khr : MatrixDialect::nv;
  return limits;
}

}  // namespace imprint
