#include "plugin/abi/convert.h"

#include <algorithm>
#include <cstring>
#include <initializer_list>

#include "compute/base/utf8.h"

namespace imprint::abi {
namespace {

constexpr std::size_t kMostExtensions = 4096;

vk::DeviceOptions to_options(const imp_host& host, const Limits& limits) {
  vk::DeviceOptions options;
  options.memory.cap_bytes = limits.memory_cap_bytes;
  if (host.shader_cache_directory) options.shader_cache_directory = host.shader_cache_directory;
  if (host.shader_dump_directory) options.shader_dump_directory = host.shader_dump_directory;
  return options;
}

const imp_vk_queue& host(void* queue) { return *static_cast<const imp_vk_queue*>(queue); }

const char* name_of(imp_queue_access access) {
  constexpr const char* kNames[] = {"IMP_QUEUE_RECORD_ONLY",     "IMP_QUEUE_LOCK",
                                    "IMP_QUEUE_SUBMIT_CALLBACK", "IMP_QUEUE_RUN_ON_QUEUE",
                                    "IMP_QUEUE_SINGLE_THREAD",   "IMP_QUEUE_INTERNALLY_SYNCHRONIZED",
                                    "IMP_QUEUE_EXCLUSIVE"};
  return kNames[number_of(access)];
}

// Each field that `queue.access` needs is set, and each that it does not use is not.
Result<> check_queue(const char* call, const imp_vk_queue& queue) {
  IMPRINT_CHECK(check_enum(call, "device.queue.access", queue.access, IMP_QUEUE_EXCLUSIVE));
  IMPRINT_CHECK(check_flag(call, "device.queue.submit_without_fence", queue.submit_without_fence));
  enum class Use { unused, optional, required };
  const auto used_by = [&](Use use, std::initializer_list<imp_queue_access> accesses) {
    return std::ranges::find(accesses, queue.access) != accesses.end() ? use : Use::unused;
  };
  const bool any_queue = queue.access != IMP_QUEUE_RECORD_ONLY;
  const bool locks = queue.access == IMP_QUEUE_LOCK;
  const Use lock = locks ? Use::required : used_by(Use::optional, {IMP_QUEUE_EXCLUSIVE});
  const struct {
    const char* name;
    bool given;
    Use use;
  } fields[] = {
      {"queue", queue.queue != nullptr, any_queue ? Use::required : Use::unused},
      {"lock", queue.lock != nullptr, lock},
      {"unlock", queue.unlock != nullptr, lock},
      {"submit", queue.submit != nullptr, used_by(Use::required, {IMP_QUEUE_SUBMIT_CALLBACK})},
      {"run_on_queue", queue.run_on_queue != nullptr, used_by(Use::required, {IMP_QUEUE_RUN_ON_QUEUE})},
      {"submit_without_fence", queue.submit_without_fence != 0,
       used_by(Use::optional, {IMP_QUEUE_SUBMIT_CALLBACK})},
      {"user", queue.user != nullptr,
       used_by(Use::optional,
               {IMP_QUEUE_LOCK, IMP_QUEUE_SUBMIT_CALLBACK, IMP_QUEUE_RUN_ON_QUEUE, IMP_QUEUE_EXCLUSIVE})},
  };
  for (const auto& field : fields) {
    if (field.given && field.use == Use::unused)
      return refuse(call, text("device.queue.", field.name, ": found a value, but ", name_of(queue.access),
                               " does not use it. Leave it zero, or set device.queue.access to the access "
                               "that you mean."));
    if (!field.given && field.use == Use::required)
      return refuse(
          call, text("device.queue.", field.name, ": found null, but ", name_of(queue.access), " needs it"));
  }
  if (!queue.lock != !queue.unlock)
    return refuse(call, "device.queue.lock, unlock: found one, expected both or neither");
  return {};
}

// `queue` was checked.
bridge::QueueAccess to_queue(imp_vk_queue& queue) {
  bridge::QueueAccess access;
  access.queue = queue.queue;
  access.family = queue.family;
  access.single_thread = queue.access == IMP_QUEUE_SINGLE_THREAD;
  access.internally_synchronized = queue.access == IMP_QUEUE_INTERNALLY_SYNCHRONIZED;
  access.exclusive = queue.access == IMP_QUEUE_EXCLUSIVE;
  access.submit_without_fence = queue.submit_without_fence != 0;
  access.user = &queue;
  if (queue.lock) access.lock = [](void* self, VkQueue on) { host(self).lock(host(self).user, on); };
  if (queue.unlock) access.unlock = [](void* self, VkQueue on) { host(self).unlock(host(self).user, on); };
  if (queue.submit) {
    access.submit = [](void* self, VkQueue on, std::uint32_t count, const VkSubmitInfo* submits,
                       VkFence fence) {
      std::uint64_t number = 0;
      std::memcpy(&number, &fence, sizeof fence);
      return static_cast<VkResult>(host(self).submit(host(self).user, on, count, submits, number));
    };
  }
  if (queue.run_on_queue) {
    access.run = [](void* self, void (*work)(void* data, VkQueue on), void* data) {
      host(self).run_on_queue(host(self).user, work, data);
    };
  }
  return access;
}

}  // namespace

Result<> check_pointer(const char* call, const char* name, const void* pointer) {
  return pointer ? Result<>{} : Result<>{refuse(call, text(name, ": found null, expected a pointer"))};
}

Result<std::string> to_name(const char* call, const std::string& field, const char* given) {
  IMPRINT_CHECK(check_pointer(call, field.c_str(), given));
  if (is_utf8(given)) return std::string(given);
  return refuse(call, field + ": found bytes that are not UTF-8, expected UTF-8");
}

Result<std::vector<std::string>> to_names(const char* call, const std::string& field,
                                          const char* const* given, std::uint32_t count) {
  IMPRINT_CHECK(check_array(call, field.c_str(), given, count, kMostListed));
  std::vector<std::string> names;
  for (std::uint32_t i = 0; i < count; ++i) {
    IMPRINT_ASSIGN(std::string name, to_name(call, text(field, "[", i, "]"), given[i]));
    names.push_back(std::move(name));
  }
  return names;
}

Result<std::vector<std::pair<std::string, std::string>>> to_states(const char* call, const std::string& field,
                                                                   const imp_model_state* given,
                                                                   std::uint32_t count) {
  IMPRINT_CHECK(check_array(call, field.c_str(), given, count, kMostListed));
  std::vector<std::pair<std::string, std::string>> states;
  for (std::uint32_t i = 0; i < count; ++i) {
    IMPRINT_ASSIGN(std::string input, to_name(call, text(field, "[", i, "].input"), given[i].input));
    IMPRINT_ASSIGN(std::string output, to_name(call, text(field, "[", i, "].output"), given[i].output));
    states.emplace_back(std::move(input), std::move(output));
  }
  return states;
}

Result<> check_array(const char* call, const char* name, const void* pointer, std::size_t count,
                     std::size_t most) {
  if (count > most)
    return refuse(call, text(name, ": found a count of ", count, ", expected at most ", most));
  if (count > 0 && !pointer) return refuse(call, text(name, ": found null, expected ", count, " elements"));
  return {};
}

Result<> check_flag(const char* call, const char* name, std::uint32_t value) {
  if (value <= 1) return {};
  return refuse(call, text(name, ": found ", value, ", expected 0 or 1"));
}

Result<Limits> to_limits(const char* call, const imp_limits* limits) {
  imp_limits given = imp_limits_init();
  if (limits) {
    IMPRINT_ASSIGN(given, read_struct(call, "limits", limits));
  }
  if (given.worker_threads > 64)
    return refuse(call, text("limits.worker_threads: found ", given.worker_threads, ", expected 0 to 64"));
  IMPRINT_CHECK(check_enum(call, "limits.preference", given.preference, IMP_PREFER_COMPUTE));
  IMPRINT_CHECK(check_flag(call, "limits.deterministic", given.deterministic));
  Limits result;
  result.budget.preference = static_cast<bridge::Preference>(given.preference);
  result.budget.frame_gpu_us = given.frame_gpu_us;
  result.budget.cpu_us_per_frame = given.cpu_us_per_frame;
  result.host_copy_period_frames = given.host_copy_period_frames;
  result.tuning_ms = given.tuning_ms;
  result.deterministic = given.deterministic != 0;
  result.budget.gpu_us_per_frame = given.gpu_us_per_frame;
  result.budget.max_slice_us = given.max_slice_us;
  result.worker_threads = given.worker_threads;
  result.memory_cap_bytes = given.memory_cap_bytes;
  return result;
}

Result<imp_host> to_host(const char* call, const imp_host* host) {
  if (!host) return imp_host_init();
  return read_struct(call, "host", host);
}

Result<bridge::ContextDescription> to_context(const char* call, const imp_vk_device_info& given,
                                              const imp_host& host, const Limits& limits,
                                              imp_vk_queue& queue) {
  IMPRINT_CHECK(check_queue(call, given.queue));
  IMPRINT_CHECK(check_flag(call, "device.allow_own_device", given.allow_own_device));
  IMPRINT_CHECK(check_array(call, "device.instance_extensions", given.instance_extensions,
                            given.instance_extension_count, kMostExtensions));
  IMPRINT_CHECK(check_array(call, "device.device_extensions", given.device_extensions,
                            given.device_extension_count, kMostExtensions));
  for (std::uint32_t i = 0; i < given.instance_extension_count; ++i)
    IMPRINT_CHECK(check_pointer(call, text("device.instance_extensions[", i, "]").c_str(),
                                given.instance_extensions[i]));
  for (std::uint32_t i = 0; i < given.device_extension_count; ++i)
    IMPRINT_CHECK(
        check_pointer(call, text("device.device_extensions[", i, "]").c_str(), given.device_extensions[i]));

  bridge::ContextDescription description;
  vk::DeviceDescription& vulkan = description.device;
  vulkan.get_instance_proc_addr = reinterpret_cast<PFN_vkGetInstanceProcAddr>(given.get_instance_proc_addr);
  vulkan.instance = given.instance;
  vulkan.physical_device = given.physical_device;
  vulkan.device = given.device;
  vulkan.api_version = given.api_version;
  vulkan.instance_extensions = {given.instance_extensions, given.instance_extension_count};
  vulkan.device_extensions = {given.device_extensions, given.device_extension_count};
  vulkan.features = given.features;
  vulkan.enabled_features = static_cast<const VkPhysicalDeviceFeatures*>(given.enabled_features);
  vulkan.allocation_callbacks = static_cast<const VkAllocationCallbacks*>(given.allocation_callbacks);
  std::memcpy(&vulkan.pipeline_cache, &given.pipeline_cache, sizeof vulkan.pipeline_cache);
  vulkan.queue_family = given.queue.family;
  description.options = to_options(host, limits);
  queue = given.queue;
  description.queue = to_queue(queue);
  if (description.queue.exclusive && limits.worker_threads == 0)
    return refuse(call,
                  "limits.worker_threads: found 0, but IMP_QUEUE_EXCLUSIVE needs a thread of Imprint's own "
                  "that submits. Raise it, or choose another access.");
  description.budget = limits.budget;
  return description;
}

Result<bridge::StandaloneOptions> to_standalone(const char* call, const imp_standalone_info* device,
                                                const imp_host& host, const Limits& limits) {
  IMPRINT_ASSIGN(const imp_standalone_info given, read_struct(call, "device", device));
  IMPRINT_CHECK(check_flag(call, "device.validation", given.validation));
  bridge::StandaloneOptions options;
  if (given.device) options.device = given.device;
  options.validation = given.validation != 0;
  options.options = to_options(host, limits);
  options.budget = limits.budget;
  if (given.cpu_threads > kMostCpuThreads)
    return refuse(
        call, text("device.cpu_threads: found ", given.cpu_threads, ", expected at most ", kMostCpuThreads));
  options.cpu_threads = {.count = std::max(1u, given.cpu_threads), .host = {host.job_submit, host.user}};
  return options;
}

}  // namespace imprint::abi
