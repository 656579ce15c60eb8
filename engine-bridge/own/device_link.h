#pragma once
// Shares memory between the host's device and a second device of Imprint's on the same GPU. Imprint observes
// the writes of the host's shaders, and these read the agents' choices, without a copy through the CPU.
//
// Memory is allocated on Imprint's device, exported, and imported on the host's device under a buffer that
// the host uses like its own. One device owns it at a time, Imprint's first: Context::release hands it to
// VK_QUEUE_FAMILY_EXTERNAL, from which the host acquires it, and back in the same way. The CPU orders the two
// queues: the host hands over what its fence says is written, and takes what drain, quiesce or a later answer
// says is done.

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

// Identifies a GPU. The identifiers are known only if the host declared Vulkan 1.1 or the extensions that
// they come from.
struct GpuIdentity {
  std::string name;    // empty: unknown
  bool known = false;  // the two identifiers below
  std::array<std::uint8_t, VK_UUID_SIZE> device{}, driver{};
};
GpuIdentity identify(const vk::DeviceDescription& description);

class DeviceLink {
 public:
  // own: the description that the context adopted. Errors: unsupported (a device lacks or does not declare an
  // extension; the devices are not of one GPU and driver).
  static Result<std::unique_ptr<DeviceLink>> make(const vk::DeviceDescription& host,
                                                  const vk::DeviceDescription& own, Context& context);
  virtual ~DeviceLink() = default;  // before the context; the host's GPU has finished with its buffers

  // A buffer with a HostSide. request.families is ignored. Errors: those of SharedBuffer::create;
  // unsupported, out of memory (the host's device refuses the import; nothing stays allocated).
  virtual Result<std::shared_ptr<SharedBuffer>> create_buffer(const SharedBufferRequest& request) = 0;

  // For the report.
  static constexpr const char* kText =
      "tensors lie in memory that both devices share (external memory); the host's fences and frames order "
      "it";
};

// Extensions to enable on Imprint's device for this, where it has them.
std::vector<const char*> link_extensions();

}  // namespace imprint::bridge
