#pragma once
// A host's device description in C, for tests through the function table.

#include <imprint/imprint.hpp>

#include "tests/hosts/plain_host.h"

namespace imprint::bridge {

inline const imp_api* table() {
  const imp_api* api = nullptr;
  return imp_get_api(IMP_ABI_VERSION, &api) == IMP_OK ? api : nullptr;
}

// Without the callbacks of `access`. Borrows from `device`.
inline imp_vk_device_info device_info(const PlainHost& host, const vk::DeviceDescription& device,
                                      imp_queue_access access) {
  imp_vk_device_info info = imp_vk_device_info_init();
  info.get_instance_proc_addr = reinterpret_cast<imp_get_instance_proc_addr>(device.get_instance_proc_addr);
  info.instance = device.instance;
  info.physical_device = device.physical_device;
  info.device = device.device;
  info.api_version = device.api_version;
  info.instance_extension_count = static_cast<std::uint32_t>(device.instance_extensions.size());
  info.instance_extensions = device.instance_extensions.data();
  info.device_extension_count = static_cast<std::uint32_t>(device.device_extensions.size());
  info.device_extensions = device.device_extensions.data();
  info.features = device.features;
  info.queue.access = access;
  if (access != IMP_QUEUE_RECORD_ONLY) info.queue.queue = host.queue();
  info.queue.family = host.family();
  return info;
}

// The host's lock around its queue.
inline imp_vk_device_info locked_info(PlainHost& host, const vk::DeviceDescription& device) {
  imp_vk_device_info info = device_info(host, device, IMP_QUEUE_LOCK);
  info.queue.user = &host;
  info.queue.lock = [](void* user, VkQueue) { static_cast<PlainHost*>(user)->mutex().lock(); };
  info.queue.unlock = [](void* user, VkQueue) { static_cast<PlainHost*>(user)->mutex().unlock(); };
  return info;
}

// The C form of a game::BrainDesc, for one call.
inline const imp_brain_desc* c_form(const imp_brain_desc& desc) { return &desc; }

// A small brain: four observations, three choices, sixteen samples in its replay.
inline game::BrainDesc small_brain(std::uint32_t learn_period_frames, std::uint32_t snapshot_count,
                                   std::uint64_t seed, std::uint32_t replay_capacity = 16) {
  game::FeedbackOptions options;
  options.learn_period_frames = learn_period_frames;
  options.batch_size = 4;
  options.replay_capacity = replay_capacity;
  game::BrainDesc desc;
  desc.observation_count = 4;
  desc.branch_sizes = {3};
  desc.hidden_sizes = {8};
  desc.learner = options;
  desc.snapshot_count = snapshot_count;
  desc.seed = seed;
  return desc;
}

}  // namespace imprint::bridge
