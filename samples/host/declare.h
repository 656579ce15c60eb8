#pragma once
// The host's device as it was created, for context_create. To record, Imprint needs the queue's family, not
// the queue.

#include <imprint/imprint_vulkan.h>

#include "host.h"

inline imp_vk_device_info declare(const Host& host) {
  imp_vk_device_info info = imp_vk_device_info_init();
  info.get_instance_proc_addr = reinterpret_cast<imp_get_instance_proc_addr>(vkGetInstanceProcAddr);
  info.instance = host.instance();
  info.physical_device = host.physical_device();
  info.device = host.device();
  info.api_version = Host::kApiVersion;
  info.queue.family = host.family();
  return info;
}
