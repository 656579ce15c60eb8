#include "plugin/abi/convert.h"

#include <algorithm>
#include <cstring>

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

const imp_vk_queue& host(void* calls) { return static_cast<const HostQueueCalls*>(calls)->host; }

bridge::QueueAccess to_queue(HostQueueCalls& calls) {
  bridge::QueueAccess access;
  access.queue = calls.host.queue;
  access.family = calls.host.family;
  access.index = calls.host.index;
  access.single_thread = calls.host.single_thread != 0;
  access.user = &calls;
  if (calls.host.lock)
    access.lock = [](void* self, VkQueue queue) { host(self).lock(host(self).user, queue); };
  if (calls.host.unlock)
    access.unlock = [](void* self, VkQueue queue) { host(self).unlock(host(self).user, queue); };
  if (calls.host.submit) {
    access.submit = [](void* self, VkQueue queue, std::uint32_t count, const VkSubmitInfo* submits,
                       VkFence fence) {
      std::uint64_t number = 0;
      std::memcpy(&number, &fence, sizeof fence);
      return static_cast<VkResult>(host(self).submit(host(self).user, queue, count, submits, number));
    };
  }
  if (calls.run_on_queue) {
    access.run = [](void* self, void (*work)(void* data, VkQueue queue), void* data) {
      static_cast<const HostQueueCalls*>(self)->run_on_queue(host(self).user, work, data);
    };
  }
  return access;
}

}  // namespace

Status check_pointer(const char* call, const char* name, const void* pointer) {
  return pointer ? Status{} : Status{refuse(call, std::string(name) + " is null")};
}

Status check_array(const char* call, const char* name, const void* pointer, std::size_t count,
                   std::size_t most) {
  if (count > most)
    return refuse(call, "the count of " + std::string(name) + " is " + std::to_string(count) + "; at most " +
                            std::to_string(most));
  if (count > 0 && !pointer)
    return refuse(call, std::string(name) + " is null but its count is " + std::to_string(count));
  return {};
}

Result<Limits> to_limits(const char* call, const imp_limits* limits) {
  imp_limits given = imp_limits_init();
  if (limits) {
    IMPRINT_ASSIGN(given, read_struct(call, "limits", limits));
  }
  if (given.worker_threads > 64)
    return refuse(call, "limits.worker_threads is " + std::to_string(given.worker_threads) + "; at most 64");
  IMPRINT_CHECK(check_enum(call, "limits.preference", given.preference, IMP_PREFER_COMPUTE));
  Limits result;
  result.budget.preference = static_cast<bridge::Preference>(given.preference);
  result.budget.frame_gpu_us = given.frame_gpu_us;
  result.budget.cpu_us_per_frame = given.cpu_us_per_frame;
  result.shadow_period_frames = given.shadow_period_frames;
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
                                              HostQueueCalls& calls) {
  IMPRINT_CHECK(check_array(call, "device.instance_extensions", given.instance_extensions,
                            given.instance_extension_count, kMostExtensions));
  IMPRINT_CHECK(check_array(call, "device.device_extensions", given.device_extensions,
                            given.device_extension_count, kMostExtensions));
  for (std::uint32_t i = 0; i < given.instance_extension_count; ++i)
    IMPRINT_CHECK(
        check_pointer(call, "an element of device.instance_extensions", given.instance_extensions[i]));
  for (std::uint32_t i = 0; i < given.device_extension_count; ++i)
    IMPRINT_CHECK(check_pointer(call, "an element of device.device_extensions", given.device_extensions[i]));

  bridge::ContextDescription description;
  vk::DeviceDescription& vulkan = description.device;
  vulkan.get_instance_proc_addr = reinterpret_cast<PFN_vkGetInstanceProcAddr>(given.get_instance_proc_addr);
  vulkan.instance = given.instance;
  vulkan.physical_device = given.physical_device;
  vulkan.device = given.device;
  vulkan.api_version = given.api_version;
  vulkan.instance_extensions = {given.instance_extensions, given.instance_extension_count};
  vulkan.device_extensions = {given.device_extensions, given.device_extension_count};
  vulkan.features = static_cast<const VkPhysicalDeviceFeatures2*>(given.features);
  vulkan.allocation_callbacks = static_cast<const VkAllocationCallbacks*>(given.allocation_callbacks);
  std::memcpy(&vulkan.pipeline_cache, &given.pipeline_cache, sizeof vulkan.pipeline_cache);
  vulkan.queue_family = given.queue.family;
  description.options = to_options(host, limits);
  calls.host = given.queue;
  calls.run_on_queue = given.run_on_queue;
  description.queue = to_queue(calls);
  description.queue.internally_synchronized = given.internally_synchronized != 0;
  description.queue.submit_without_fence = given.submit_without_fence != 0;
  description.queue.exclusive = given.exclusive != 0;
  if (description.queue.exclusive && limits.worker_threads == 0)
    return refuse(call,
                  "device.exclusive asks for a thread of Imprint's own that submits, and "
                  "limits.worker_threads of 0 for none; raise it, or give "
                  "the queue in another way");
  description.budget = limits.budget;
  return description;
}

Result<bridge::StandaloneOptions> to_standalone(const char* call, const imp_standalone_info* device,
                                                const imp_host& host, const Limits& limits) {
  IMPRINT_ASSIGN(const imp_standalone_info given, read_struct(call, "device", device));
  bridge::StandaloneOptions options;
  if (given.device) options.device = given.device;
  options.validation = given.validation != 0;
  options.options = to_options(host, limits);
  options.budget = limits.budget;
  return options;
}

Result<agent::BrainSpec> to_brain_spec(const imp_brain_desc* desc) {
  constexpr const char* call = "brain_create";
  IMPRINT_ASSIGN(const imp_brain_desc given, read_struct(call, "desc", desc));
  if (given.branch_count > IMP_MAX_BRANCHES)
    return refuse(call, "desc.branch_count is " + std::to_string(given.branch_count) + "; at most " +
                            std::to_string(IMP_MAX_BRANCHES));
  IMPRINT_CHECK(
      check_array(call, "desc.branch_sizes", given.branch_sizes, given.branch_count, IMP_MAX_BRANCHES));
  if (given.reserved != 0)
    return refuse(call, "desc.reserved is " + std::to_string(given.reserved) +
                            "; expected 0: make it with imp_brain_desc_init");
  if (given.hidden_count > 16)
    return refuse(call, "desc.hidden_count is " + std::to_string(given.hidden_count) + "; at most 16");
  IMPRINT_CHECK(check_enum(call, "desc.activation", given.activation, IMP_ACTIVATION_GELU));
  IMPRINT_CHECK(check_enum(call, "desc.learner", given.learner, IMP_LEARNER_PPO));
  if (given.observation_scale && given.observation_count > (1u << 20))
    return refuse(call, "desc.observation_count is above 1048576");

  agent::BrainSpec spec;
  if (given.name) spec.name = given.name;
  spec.observation.count = given.observation_count;
  if (given.observation_scale)
    spec.observation.scale.assign(given.observation_scale, given.observation_scale + given.observation_count);
  if (given.branch_count > 0)
    spec.action.branch_sizes.assign(given.branch_sizes, given.branch_sizes + given.branch_count);
  spec.action.continuous_count = given.continuous_count;
  spec.goal_count = given.goal_count;
  spec.hidden_sizes.assign(given.hidden_count, 64);
  if (given.hidden_sizes)
    spec.hidden_sizes.assign(given.hidden_sizes, given.hidden_sizes + given.hidden_count);
  spec.activation = static_cast<agent::Activation>(given.activation);
  spec.brain_count = given.brain_count;
  spec.agents_per_brain = given.agents_per_brain;
  spec.seed = given.seed;
  spec.action_latency_frames = given.action_latency_frames;
  spec.decision_period_frames = std::max(1u, given.decision_period_frames);
  spec.learner = static_cast<agent::LearnerKind>(given.learner);
  spec.learn_period_frames = given.learn_period_frames;
  spec.batch_size = given.batch_size;
  spec.replay_capacity = given.replay_capacity;
  spec.learning_rate = given.learning_rate;
  spec.max_gradient_norm = given.max_gradient_norm;
  spec.exploration = given.exploration;
  spec.margin = given.margin;
  spec.margin_weight = given.margin_weight;
  spec.credit_delay_s = given.credit_delay_s;
  spec.credit_width_s = given.credit_width_s;
  spec.snapshot_count = given.snapshot_count;
  // What came later means its default when it is 0.
  if (given.target_period != 0) spec.target_period = given.target_period;
  if (given.target_rate != 0) spec.target_rate = given.target_rate;
  if (given.discount != 0) spec.discount = given.discount;
  spec.double_estimate = given.double_estimate != 0;
  spec.epsilon = given.epsilon;
  spec.epsilon_decisions = given.epsilon_decisions;
  spec.trace_decay = given.trace_decay;
  if (given.rollout_steps != 0) spec.rollout_steps = given.rollout_steps;
  if (given.epochs != 0) spec.epochs = given.epochs;
  if (given.advantage_decay != 0) spec.advantage_decay = given.advantage_decay;
  if (given.clip_range != 0) spec.clip_range = given.clip_range;
  if (given.entropy_coefficient != 0) spec.entropy_coefficient = given.entropy_coefficient;
  return spec;
}

Result<agent::PolicySpec> to_policy_spec(const imp_policy_desc* desc) {
  constexpr const char* call = "brain_create_from_onnx";
  IMPRINT_ASSIGN(const imp_policy_desc given, read_struct(call, "desc", desc));
  IMPRINT_CHECK(check_array(call, "desc.data", given.data, given.size, SIZE_MAX));
  agent::PolicySpec spec;
  if (given.name) spec.name = given.name;
  spec.file = {static_cast<const std::byte*>(given.data), given.size};
  spec.agent_capacity = given.agent_capacity;
  spec.action_latency_frames = given.action_latency_frames;
  return spec;
}

}  // namespace imprint::abi
