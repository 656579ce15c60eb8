#pragma once
// A Vulkan instance, device and compute queue of our own, for tools, tests and headless use. The only place
// that looks for the Vulkan loader.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "compute/base/result.h"
#include "compute/program/run.h"
#include "engine-bridge/context.h"

namespace imprint::bridge {

class DeviceLink;  // device_link.h

// "cpu" in any case: not a device but none, for whoever offers the processor in its place (Context::on_cpu).
bool names_cpu(std::string_view device);

struct StandaloneOptions {
  std::string
      device;  // index ("0") or part of the name, any case; empty = first discrete, else integrated, else any
  bool validation = false;  // VK_LAYER_KHRONOS_validation with synchronisation checks; messages are counted
                            // and logged as errors
  std::uint32_t api_version =
      0;  // 0 = the highest that loader and device have; tests lower it to VK_API_VERSION_1_1
  bool optional_features =
      true;  // false: the bare baseline (no timeline semaphore, no synchronization2, ...)
  // The host's device, beside which this one is opened: on the same GPU where it can be told which, else on
  // one of that name, else on any, whatever `device` says; and linked with it where both can. Borrowed during
  // open.
  const vk::DeviceDescription* beside = nullptr;
  vk::DeviceOptions options;
  Budget budget;
};

struct PhysicalDeviceSummary {
  std::uint32_t index = 0;
  std::string name, driver;
  vk::Capabilities capabilities;  // as Imprint would use them, were everything it knows enabled
  std::uint64_t device_memory_bytes = 0;
  std::uint32_t compute_queue_count = 0;
};

class Standalone {
 public:
  // Errors: not_found ("no Vulkan loader: install libvulkan1", "no Vulkan device: install a driver, or
  // mesa-vulkan-drivers for software", "no device matches 'x'; there are: ..."), unsupported (validation
  // asked for, layer missing: says which package).
  static Result<std::unique_ptr<Standalone>> open(const StandaloneOptions& options);
  virtual ~Standalone() = default;

  virtual Context& context() = 0;
  virtual Session& session() = 0;  // synchronous runs on the same queue; not while a frame is open
  virtual DeviceLink*
  link() = 0;  // with StandaloneOptions::beside; null: there is none, because of link_text()
  virtual const std::string& link_text() const = 0;
  virtual std::uint64_t validation_messages() const = 0;  // warnings and errors since open
  virtual std::string first_validation_message() const = 0;
};

Result<std::vector<PhysicalDeviceSummary>> list_devices();

}  // namespace imprint::bridge
