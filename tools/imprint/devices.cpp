// imprint devices: lists devices, and what Imprint would use of each.

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "compute/cpu/kernels.h"
#include "compute/model/files/file.h"
#include "compute/program/device_profile.h"
#include "compute/vk/capabilities/capabilities.h"
#include "compute/vk/pipelines/glsl_compiler.h"
#include "engine-bridge/own/standalone.h"
#include "tools/imprint/commands.h"
#include "tools/imprint/computer.h"
#include "tools/imprint/profiles.h"

namespace imprint::tools {

using namespace graph;
using namespace program;

namespace {

const char* kind_name(VkPhysicalDeviceType type) {
  switch (type) {
    case VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU:
      return "discrete";
    case VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU:
      return "integrated";
    case VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU:
      return "virtual";
    case VK_PHYSICAL_DEVICE_TYPE_CPU:
      return "cpu";
    default:
      return "other";
  }
}

struct Feature {
  const char* name;
  bool vk::Capabilities::*member;
};
constexpr Feature kFeatures[] = {
    {"timeline_semaphore", &vk::Capabilities::timeline_semaphore},
    {"synchronization2", &vk::Capabilities::synchronization2},
    {"shader_float16", &vk::Capabilities::shader_float16},
    {"storage_16bit", &vk::Capabilities::storage_16bit},
    {"subgroup_size_control", &vk::Capabilities::subgroup_size_control},
    {"host_query_reset", &vk::Capabilities::host_query_reset},
    {"memory_budget", &vk::Capabilities::memory_budget},
    {"vulkan_memory_model", &vk::Capabilities::vulkan_memory_model},
    {"integer_dot", &vk::Capabilities::integer_dot},
    {"cooperative_matrix_nv", &vk::Capabilities::cooperative_matrix_nv},
    {"cooperative_matrix_khr", &vk::Capabilities::cooperative_matrix_khr},
    {"cooperative_matrix2_nv", &vk::Capabilities::cooperative_matrix2_nv},
    {"rounds_to_float16", &vk::Capabilities::rounds_to_float16},
    {"debug_utils", &vk::Capabilities::debug_utils},
    {"pipeline_creation_cache_control", &vk::Capabilities::pipeline_creation_cache_control}};

// The matrix units that multiply float16 on this device.
std::string matrix_units_text(const vk::Capabilities& has) {
  const vk::CapabilityProfile profile = vk::CapabilityProfile::of(has, false).as_compiled_here();
  const FusionOptions options = fusion_options(profile);
  const auto knows = [](const char* extension) {
    return std::string(vk::GlslCompiler::knows(extension) ? "knows " : "does not know ") + extension;
  };
  return std::string(!options.matrix_units            ? "not used"
                     : options.matrix_workgroups      ? "VK_NV_cooperative_matrix2, VK_KHR_cooperative_matrix"
                     : profile.cooperative_matrix_khr ? "VK_KHR_cooperative_matrix"
                                                      : "VK_NV_cooperative_matrix") +
         "; the shader compiler " + knows("GL_KHR_cooperative_matrix") + ", " +
         knows("GL_NV_cooperative_matrix2");
}

std::string full_version(std::uint32_t version) {
  return vk::version_text(version) + "." + std::to_string(VK_API_VERSION_PATCH(version));
}

nlohmann::ordered_json to_json(const bridge::PhysicalDeviceSummary& device) {
  const vk::Capabilities& has = device.capabilities;
  nlohmann::ordered_json features = nlohmann::ordered_json::object();
  for (const Feature& feature : kFeatures) features[feature.name] = has.*feature.member;
  return {{"index", device.index},
          {"name", device.name},
          {"driver", device.driver},
          {"kind", kind_name(has.device_type)},
          {"api_version", full_version(has.api_version)},
          {"memory_bytes", device.device_memory_bytes},
          {"compute_queues", device.compute_queue_count},
          {"subgroup_size", has.subgroup_size},
          {"max_storage_buffer_range", has.max_storage_buffer_range},
          {"max_workgroup_invocations", has.max_workgroup_invocations},
          {"max_shared_memory_bytes", has.max_shared_memory_bytes},
          {"timestamp_period_ns", has.timestamp_valid_bits == 0 ? 0.0 : has.timestamp_period_ns},
          {"matrix_units", matrix_units_text(has)},
          {"features", std::move(features)}};
}

void print(const bridge::PhysicalDeviceSummary& device) {
  const vk::Capabilities& has = device.capabilities;
  std::printf("%u  %s\n", device.index, device.name.c_str());
  std::printf("   %s, %s, Vulkan %s, %.1f GiB, %u compute queue%s\n", device.driver.c_str(),
              kind_name(has.device_type), full_version(has.api_version).c_str(),
              static_cast<double>(device.device_memory_bytes) / (1 << 30), device.compute_queue_count,
              device.compute_queue_count == 1 ? "" : "s");
  std::printf("   subgroup %u, workgroup %u, shared memory %u KiB, buffer range %llu MiB, %s\n",
              has.subgroup_size, has.max_workgroup_invocations, has.max_shared_memory_bytes / 1024,
              static_cast<unsigned long long>(has.max_storage_buffer_range >> 20),
              has.timestamp_valid_bits == 0 ? "no timestamps" : "timestamps");
  std::string uses, lacks;
  for (const Feature& feature : kFeatures) {
    std::string& list = has.*feature.member ? uses : lacks;
    list += (list.empty() ? "" : ", ") + std::string(feature.name);
  }
  std::printf("   uses: %s\n", uses.empty() ? "the baseline alone" : uses.c_str());
  if (!lacks.empty()) std::printf("   lacks: %s\n", lacks.c_str());
  std::printf("   matrix units: %s\n", matrix_units_text(has).c_str());
}

// Vulkan devices, if any, then the CPU.
Result<> list(bool as_json) {
  auto found = bridge::list_devices();
  if (!found && found.error().code != ErrorCode::not_found) return found.error();
  const std::vector<bridge::PhysicalDeviceSummary> devices =
      found ? std::move(*found) : std::vector<bridge::PhysicalDeviceSummary>();
  if (!found) std::fprintf(stderr, "note: %s\n", found.error().message.c_str());
  if (as_json) {
    nlohmann::ordered_json all = nlohmann::ordered_json::array();
    for (const auto& device : devices) all.push_back(to_json(device));
    all.push_back({{"index", "cpu"}, {"name", "CPU"}, {"driver", cpu::kernels().name}, {"kind", "CPU"}});
    std::printf("%s\n", all.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace).c_str());
    return {};
  }
  for (const auto& device : devices) print(device);
  std::printf("cpu  the CPU without Vulkan: %s kernels on the calling thread\n", cpu::kernels().name);
  return {};
}

struct Profile {
  std::string file, device;
};

// The profile has every feature that Imprint would use. A game that enables fewer removes those fields.
Result<> write_profile(const Profile& wanted) {
  IMPRINT_CHECK(check_replaceable(wanted.file));
  IMPRINT_ASSIGN(const vk::CapabilityProfile profile, device_profile(wanted.device));
  const std::string text = profile_json(profile);
  IMPRINT_CHECK(write_file_atomic(wanted.file, std::as_bytes(std::span(text))));
  std::printf("%s: %s\n", wanted.file.c_str(), profile.name.c_str());
  return {};
}

}  // namespace

void add_devices(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("devices", "list Vulkan devices and what Imprint would use of each, and the CPU");
  auto as_json = std::make_shared<bool>(false);
  command->add_flag("--json", *as_json, "print a JSON list");
  auto profile = std::make_shared<Profile>();
  CLI::Option* file = command->add_option(
      "--profile", profile->file, "write the profile of one device to this file instead, for imprint bake");
  file->type_name("FILE.json");
  command->add_option("--device", profile->device, kDeviceHelp)->type_name("DEVICE")->needs(file);
  set_work(*command, [as_json, profile, file] {
    return file->count() == 0 ? list(*as_json) : write_profile(*profile);
  });
}

}  // namespace imprint::tools
