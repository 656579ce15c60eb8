#pragma once
// The host's device as it was created, for context_create. To record, Imprint needs the queue's family, not
// the queue. Also the buffer of a picture, for tensor_import_vk: how it was created, and the stage that
// writes it.

#include <imprint/imprint_vulkan.h>

#include <cstring>

#include "drawn_picture.h"
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

inline imp_vk_buffer declare(const DrawnPicture& picture) {
  const VkBuffer buffer = picture.buffer();
  imp_vk_buffer declared = imp_vk_buffer_init();
  std::memcpy(&declared.buffer, &buffer, sizeof buffer);
  declared.size = picture.bytes();
  declared.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT;
  declared.memory_flags = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
  declared.stages = VK_PIPELINE_STAGE_TRANSFER_BIT;
  declared.access = VK_ACCESS_TRANSFER_WRITE_BIT;
  return declared;
}
