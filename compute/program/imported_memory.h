#pragma once
// Host memory that a device copies from and to: a buffer over memory of its caller's.

#include <vulkan/vulkan_core.h>

#include <cstddef>
#include <memory>
#include <span>

#include "compute/base/result.h"
#include "compute/vk/device.h"
#include "compute/vk/handle.h"

namespace imprint::program {

class ImportedMemory {
 public:
  // Whether the device was created with VK_EXT_external_memory_host.
  static bool is_usable(vk::Device& device);
  // `host` begins at a multiple of the device's minImportedHostPointerAlignment, as its length is; it
  // outlives this. Errors: unsupported (the extension; an alignment; memory that is not coherent), and the
  // driver's.
  static Result<std::unique_ptr<ImportedMemory>> import(vk::Device& device, std::span<std::byte> host);
  VkBuffer buffer() const { return buffer_.get(); }

 private:
  ImportedMemory() = default;
  vk::Handle<VkDeviceMemory> memory_;
  vk::Handle<VkBuffer> buffer_;  // destroyed first
};

}  // namespace imprint::program
