#pragma once
// A host's device description in C, for tests through the function table.

#include <imprint/imprint.h>

#include "tests/hosts/plain_host.h"

namespace imprint::bridge {

inline const imp_api* table() {
  const imp_api* api = nullptr;
  return imp_get_api(IMP_ABI_VERSION, &api) == IMP_OK ? api : nullptr;
}

// Without a way to submit. Borrows from `device`.
inline imp_vk_device_info device_info(const PlainHost& host, const vk::DeviceDescription& device) {
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
  info.queue.queue = host.queue();
  info.queue.family = host.family();
  return info;
}

// A small brain: four observations, three choices, sixteen samples per minibatch.
inline imp_brain_desc small_brain(std::uint32_t learn_period_frames, std::uint32_t snapshot_count,
                                  std::uint64_t seed) {
  static const std::uint32_t branch = 3, hidden = 8;
  imp_brain_desc desc = imp_brain_desc_init();
  desc.observation_count = 4;
  desc.branch_count = 1;
  desc.branch_sizes = &branch;
  desc.hidden_count = 1;
  desc.hidden_sizes = &hidden;
  desc.learner = IMP_LEARNER_FEEDBACK;
  desc.learn_period_frames = learn_period_frames;
  desc.batch_size = 4;
  desc.replay_capacity = 16;
  desc.snapshot_count = snapshot_count;
  desc.seed = seed;
  return desc;
}

}  // namespace imprint::bridge
