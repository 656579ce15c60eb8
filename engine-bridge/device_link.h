#pragma once
// A second device of ours beside the host's, on the same GPU: memory that both have, and semaphores that both wait for, so that what a host's shader
// wrote is observed on the GPU, and what agents chose is read there, without a trip over the processor.
//
// Memory is taken on our device, exported, and imported on the host's, where it lies under a buffer that the host uses like its own. It belongs to one of
// the devices at a time, to ours first: a frame's release hands it to VK_QUEUE_FAMILY_EXTERNAL, from which the host acquires, and back in the same way.
// The order between the queues is told by timeline semaphores where both devices have them and can pass them on; else by the processor: a host hands
// over what its own fence says is written, and takes over what drain, or an answer that was asked for later, says is done.

#include <vulkan/vulkan_core.h>

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "compute/base/result.h"
#include "compute/vk/device.h"
#include "engine-bridge/context.h"
#include "engine-bridge/shared_buffer.h"

namespace imprint::bridge {

// Of a physical device, as far as it may be asked: the identifiers only where the host has declared the version or the extensions that they belong to.
struct GpuIdentity {
  std::string name;      // "": cannot be asked
  bool known = false;    // the two below
  std::array<std::uint8_t, VK_UUID_SIZE> device{}, driver{};
};
GpuIdentity identify(const vk::DeviceDescription& description);

class DeviceLink {
 public:
  // ours: as the context was adopted. Errors: unsupported (what either device lacks for it, or has not declared; or that they are not of one GPU and
  // driver). Without semaphores it is made too: text() says why.
  static Result<std::unique_ptr<DeviceLink>> make(const vk::DeviceDescription& host, const vk::DeviceDescription& ours, Context& context);
  virtual ~DeviceLink() = default;  // before the context; the host's GPU is done with what came from here

  // On our device, with a HostSide on the host's. request.families is the host's own affair. Errors: those of SharedBuffer::create; unsupported, out of
  // memory (the host's device does not take it; everything is given back).
  virtual Result<std::shared_ptr<SharedBuffer>> create_buffer(const SharedBufferRequest& request) = 0;

  virtual bool has_semaphores() const = 0;
  virtual std::string text() const = 0;            // for the report: how it is shared and ordered
  // On the host's device, each null without semaphores: the one that the host signals, with rising values, and ours, that Context::semaphore gives the
  // value for.
  virtual VkSemaphore ready() const = 0;
  virtual VkSemaphore done() const = 0;
  // What the host names is made what we wait for. Errors: unsupported (no semaphores), invalid_argument (any other than ready()).
  virtual Status translate(std::vector<HostSemaphore>& waits) const = 0;
};

// Which extensions a device of ours is to be made with for this, as far as it has them.
std::vector<const char*> link_extensions();
// What such a device's own semaphore is to be exported as (ContextDescription::exported_semaphore); 0: it cannot be.
VkExternalSemaphoreHandleTypeFlags link_semaphores(const vk::DeviceDescription& ours);

}  // namespace imprint::bridge
