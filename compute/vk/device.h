#pragma once
// A host's VkDevice, with the host's declaration of it. Imprint never destroys, waits for or guesses anything
// that belongs to the host.

#include <vulkan/vulkan_core.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "compute/base/result.h"
#include "compute/vk/capabilities/capabilities.h"
#include "compute/vk/capabilities/missing_feature.h"
#include "compute/vk/completion.h"
#include "compute/vk/counters.h"
#include "compute/vk/debug_label.h"
#include "compute/vk/device_options.h"
#include "compute/vk/functions.h"
#include "compute/vk/memory/memory_pool.h"
#include "compute/vk/pipelines/pipeline_store.h"
#include "compute/vk/queue.h"
#include "compute/vk/vulkan_error.h"

namespace imprint::vk {

// Owns everything of Imprint's on the device. Destroying it does not wait: the caller first completes all
// work, or abandons it when the device is lost.
class Device {
 public:
  // Errors: invalid_argument (names the missing field), unsupported (api_version below 1.1; a queue family
  // without compute).
  static Result<std::unique_ptr<Device>> adopt(const DeviceDescription& description,
                                               const DeviceOptions& options);
  virtual ~Device() = default;

  virtual const Functions& functions() const = 0;
  virtual VkDevice handle() const = 0;
  virtual VkPhysicalDevice physical_device() const = 0;
  virtual const VkAllocationCallbacks* allocation_callbacks() const = 0;
  virtual std::uint32_t queue_family() const = 0;
  virtual const Capabilities& capabilities() const = 0;
  virtual const std::vector<MissingFeature>& missing_features() const = 0;
  virtual const DeviceOptions& options() const = 0;
  virtual MemoryPool& memory() = 0;
  virtual PipelineStore& pipelines() = 0;
  virtual Counters& counters() = 0;

  // ---- order of completion ----
  virtual Completion& completion() = 0;         // for the engine bridge, which feeds it
  virtual Ticket last_ticket() const = 0;       // the newest issued
  virtual bool is_complete(Ticket ticket) = 0;  // polls, never blocks
  // Runs `destroy` once everything up to `ticket` is complete; immediately if it already is. Otherwise
  // collect() or the destructor runs it.
  virtual void retire(Ticket ticket, std::function<void()> destroy) = 0;
  virtual void collect() = 0;  // runs what is due; the bridge calls it each frame

  // Call after any call returned VK_ERROR_DEVICE_LOST. From then on Imprint only destroys.
  virtual void mark_lost() = 0;
  virtual bool lost() const = 0;
};

}  // namespace imprint::vk
