#include "plugin/abi/convert.h"

#include <cstring>

namespace imprint::abi {
namespace {

Error refuse(const char* call, const std::string& what) { return make_error(ErrorCode::invalid_argument, std::string(call) + ": " + what); }

Status check_array(const char* call, const char* name, const void* pointer, std::size_t count) {
  if (count > 0 && !pointer) return refuse(call, std::string(name) + " is null but its count is " + std::to_string(count));
  return {};
}

vk::DeviceOptions to_options(const imp_host* host, const Limits& limits) {
  vk::DeviceOptions options;
  options.memory.cap_bytes = limits.memory_cap_bytes;
  options.compile_threads = limits.worker_threads;
  if (host) {
    if (host->shader_cache_directory) options.shader_cache_directory = host->shader_cache_directory;
    if (host->shader_dump_directory) options.shader_dump_directory = host->shader_dump_directory;
  }
  return options;
}

Status check_host(const char* call, const imp_host* host) {
  return host ? check_struct(call, "host", host, IMP_STRUCT_HOST) : Status{};
}

const imp_vk_queue& host(void* calls) { return static_cast<const HostQueueCalls*>(calls)->host; }

bridge::QueueAccess to_queue(HostQueueCalls& calls) {
  bridge::QueueAccess access;
  access.queue = calls.host.queue;
  access.family = calls.host.family;
  access.index = calls.host.index;
  access.single_thread = calls.host.single_thread != 0;
  access.user = &calls;
  if (calls.host.lock) access.lock = [](void* self, VkQueue queue) { host(self).lock(host(self).user, queue); };
  if (calls.host.unlock) access.unlock = [](void* self, VkQueue queue) { host(self).unlock(host(self).user, queue); };
  if (calls.host.submit) {
    access.submit = [](void* self, VkQueue queue, std::uint32_t count, const VkSubmitInfo* submits, VkFence fence) {
      std::uint64_t number = 0;
      std::memcpy(&number, &fence, sizeof fence);
      return static_cast<VkResult>(host(self).submit(host(self).user, queue, count, submits, number));
    };
  }
  return access;
}

}  // namespace

Status check_header(const char* call, const char* name, const imp_header* header, std::size_t size, imp_struct_type type) {
  if (!header) return refuse(call, std::string(name) + " is null");
  if (header->type != static_cast<std::uint32_t>(type))
    return refuse(call, std::string(name) + " has struct type " + std::to_string(header->type) + "; expected " +
                            std::to_string(static_cast<std::uint32_t>(type)) + ": make it with its imp_*_init function");
  if (header->size != size)
    return refuse(call, std::string(name) + " has size " + std::to_string(header->size) + "; this library knows " + std::to_string(size) +
                            ": use the header that came with it");
  if (header->next) return refuse(call, std::string(name) + " has a next chain; it is reserved and must be null");
  return {};
}

Status check_pointer(const char* call, const char* name, const void* pointer) {
  return pointer ? Status{} : Status{refuse(call, std::string(name) + " is null")};
}

Result<Limits> to_limits(const char* call, const imp_limits* limits) {
  const imp_limits defaults = imp_limits_init();
  if (limits) IMPRINT_CHECK(check_struct(call, "limits", limits, IMP_STRUCT_LIMITS));
  const imp_limits& given = limits ? *limits : defaults;
  if (given.worker_threads == 0) return refuse(call, "limits.worker_threads is 0; at least 1 thread must compile shaders");
  if (given.worker_threads > 64) return refuse(call, "limits.worker_threads is " + std::to_string(given.worker_threads) + "; at most 64");
  Limits result;
  result.budget.gpu_us_per_frame = given.gpu_us_per_frame;
  result.budget.max_slice_us = given.max_slice_us;
  result.worker_threads = given.worker_threads;
  result.memory_cap_bytes = given.memory_cap_bytes;
  return result;
}

Result<bridge::ContextDescription> to_context(const char* call, const imp_vk_device_info* device, const imp_host* host, const Limits& limits,
                                              HostQueueCalls& calls) {
  IMPRINT_CHECK(check_struct(call, "device", device, IMP_STRUCT_VK_DEVICE_INFO));
  IMPRINT_CHECK(check_host(call, host));
  IMPRINT_CHECK(check_array(call, "device.instance_extensions", device->instance_extensions, device->instance_extension_count));
  IMPRINT_CHECK(check_array(call, "device.device_extensions", device->device_extensions, device->device_extension_count));
  for (std::uint32_t i = 0; i < device->instance_extension_count; ++i)
    IMPRINT_CHECK(check_pointer(call, "an element of device.instance_extensions", device->instance_extensions[i]));
  for (std::uint32_t i = 0; i < device->device_extension_count; ++i)
    IMPRINT_CHECK(check_pointer(call, "an element of device.device_extensions", device->device_extensions[i]));

  bridge::ContextDescription description;
  vk::DeviceDescription& vulkan = description.device;
  vulkan.get_instance_proc_addr = reinterpret_cast<PFN_vkGetInstanceProcAddr>(device->get_instance_proc_addr);
  vulkan.instance = device->instance;
  vulkan.physical_device = device->physical_device;
  vulkan.device = device->device;
  vulkan.api_version = device->api_version;
  vulkan.instance_extensions = {device->instance_extensions, device->instance_extension_count};
  vulkan.device_extensions = {device->device_extensions, device->device_extension_count};
  vulkan.features = static_cast<const VkPhysicalDeviceFeatures2*>(device->features);
  vulkan.allocation_callbacks = static_cast<const VkAllocationCallbacks*>(device->allocation_callbacks);
  std::memcpy(&vulkan.pipeline_cache, &device->pipeline_cache, sizeof vulkan.pipeline_cache);
  vulkan.queue_family = device->queue.family;
  description.options = to_options(host, limits);
  calls.host = device->queue;
  description.queue = to_queue(calls);
  description.budget = limits.budget;
  return description;
}

Result<bridge::StandaloneOptions> to_standalone(const char* call, const imp_standalone_info* device, const imp_host* host, const Limits& limits) {
  IMPRINT_CHECK(check_struct(call, "device", device, IMP_STRUCT_STANDALONE_INFO));
  IMPRINT_CHECK(check_host(call, host));
  bridge::StandaloneOptions options;
  if (device->device) options.device = device->device;
  options.validation = device->validation != 0;
  options.options = to_options(host, limits);
  options.budget = limits.budget;
  return options;
}

Result<agent::BrainSpec> to_brain_spec(const imp_brain_desc* desc) {
  constexpr const char* call = "brain_create";
  IMPRINT_CHECK(check_struct(call, "desc", desc, IMP_STRUCT_BRAIN_DESC));
  IMPRINT_CHECK(check_array(call, "desc.branch_sizes", desc->branch_sizes, desc->branch_count));
  if (desc->branch_count > IMP_MAX_BRANCHES)
    return refuse(call, "desc.branch_count is " + std::to_string(desc->branch_count) + "; at most " + std::to_string(IMP_MAX_BRANCHES));
  if (desc->hidden_count > 16) return refuse(call, "desc.hidden_count is " + std::to_string(desc->hidden_count) + "; at most 16");
  IMPRINT_CHECK(check_enum(call, "desc.activation", desc->activation, IMP_ACTIVATION_GELU));
  IMPRINT_CHECK(check_enum(call, "desc.learner", desc->learner, IMP_LEARNER_CLONING));
  if (desc->observation_scale && desc->observation_count > (1u << 20)) return refuse(call, "desc.observation_count is above 1048576");

  agent::BrainSpec spec;
  if (desc->name) spec.name = desc->name;
  spec.observation.count = desc->observation_count;
  if (desc->observation_scale) spec.observation.scale.assign(desc->observation_scale, desc->observation_scale + desc->observation_count);
  if (desc->branch_count > 0) spec.action.branch_sizes.assign(desc->branch_sizes, desc->branch_sizes + desc->branch_count);
  spec.action.continuous_count = desc->continuous_count;
  spec.goal_count = desc->goal_count;
  spec.hidden_sizes.assign(desc->hidden_count, 64);
  if (desc->hidden_sizes) spec.hidden_sizes.assign(desc->hidden_sizes, desc->hidden_sizes + desc->hidden_count);
  spec.activation = static_cast<agent::Activation>(desc->activation);
  spec.brain_count = desc->brain_count;
  spec.agents_per_brain = desc->agents_per_brain;
  spec.seed = desc->seed;
  spec.action_latency_frames = desc->action_latency_frames;
  spec.learner = static_cast<agent::LearnerKind>(desc->learner);
  spec.learn_period_frames = desc->learn_period_frames;
  spec.batch_size = desc->batch_size;
  spec.replay_capacity = desc->replay_capacity;
  spec.learning_rate = desc->learning_rate;
  spec.max_gradient_norm = desc->max_gradient_norm;
  spec.exploration = desc->exploration;
  spec.margin = desc->margin;
  spec.margin_weight = desc->margin_weight;
  spec.credit_delay_s = desc->credit_delay_s;
  spec.credit_width_s = desc->credit_width_s;
  spec.snapshot_count = desc->snapshot_count;
  return spec;
}

Result<agent::PolicySpec> to_policy_spec(const imp_policy_desc* desc) {
  constexpr const char* call = "brain_create_from_onnx";
  IMPRINT_CHECK(check_struct(call, "desc", desc, IMP_STRUCT_POLICY_DESC));
  IMPRINT_CHECK(check_array(call, "desc.data", desc->data, desc->size));
  agent::PolicySpec spec;
  if (desc->name) spec.name = desc->name;
  spec.file = {static_cast<const std::byte*>(desc->data), desc->size};
  spec.agent_capacity = desc->agent_capacity;
  spec.action_latency_frames = desc->action_latency_frames;
  return spec;
}

}  // namespace imprint::abi
