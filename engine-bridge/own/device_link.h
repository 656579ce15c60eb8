#pragma once
// A second device of ours beside the host's, on the same GPU: memory that both have, so that what a host's
// shader wrote is observed on the GPU, and what agents chose is read there, without a trip over the
// processor.
//
// Memory is taken on our device, exported, and imported on the host's, where it lies under a buffer that the
// host uses like its own. It belongs to one of the devices at a time, to ours first: a frame's release hands
// it to VK_QUEUE_FAMILY_EXTERNAL, from which the host acquires, and back in the same way. The order between
// the queues is the processor's: a host hands over what its own fence says is written, and takes over what
// drain, quiesce, or an answer that was asked for later, says is done.

#include <vulkan/vulkan_core.h>

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "compute/base/result.h"
#include "compute/vk/device.h"
#include "engine-bridge/context.h"
#include "engine-bridge/host/shared_buffer.h"

namespace imprint::bridge {

// Of a physical device, as far as it may be asked: the identifiers only where the host has declared the
// version or the extensions that they belong to.
struct GpuIdentity {
  std::string name;    // "": cannot be asked
  bool known = false;  // the two below
  std::array<std::uint8_t, VK_UUID_SIZE> device{}, driver{};
};
GpuIdentity identify(const vk::DeviceDescription& description);

class DeviceLink {
 public:
  // ours: as the context was adopted. Errors: unsupported (what either device lacks for it, or has not
  // declared; or that they are not of one GPU and driver).
  static Result<std::unique_ptr<DeviceLink>> make(const vk::DeviceDescription& host,
                                                  const vk::DeviceDescription& ours, Context& context);
  virtual ~DeviceLink() = default;  // before the context; the host's GPU is done with what came from here

  // On our device, with a HostSide on the host's. request.families is the host's own affair. Errors: those of
  // SharedBuffer::create; unsupported, out of memory (the host's device does not take it; everything is given
  // back).
  virtual Result<std::shared_ptr<SharedBuffer>> create_buffer(const SharedBufferRequest& request) = 0;

  // For the report.
  static constexpr const char* kText =
      "tensors lie in memory that the host's device has too (external memory), in the order that the host's "
      "fences and frames keep";
};

// Which extensions a device of ours is to be made with for this, as far as it has them.
std::vector<const char*> link_extensions();

}  // namespace imprint::bridge
