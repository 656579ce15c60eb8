#pragma once
// A Vulkan instance, device and compute queue of Imprint's own, for tools, tests and headless use. Only this
// room looks for the Vulkan loader.

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

// Whether `device` is "cpu", in any case: the caller then uses Context::on_cpu.
bool names_cpu(std::string_view device);

struct StandaloneOptions {
  // Index ("0") or part of the name, any case. Empty: the first discrete GPU, else integrated, else any. The
  // CPU alone is no Vulkan device: Runtime::create_on_cpu.
  std::string device;
  // Loads VK_LAYER_KHRONOS_validation with synchronisation checks. Messages are counted and logged as errors.
  bool validation = false;
  std::uint32_t api_version = 0;  // 0 = the highest of loader and device
  bool optional_features = true;  // false: Vulkan 1.1 alone, without timeline semaphores and the rest
  // Opens a second device beside this host's: on the same GPU if it is known, else on one of that name, else
  // on any; `device` is ignored. Links both where they can share memory. Read during open only.
  const vk::DeviceDescription* beside = nullptr;
  // Sums over processes copy on queues of their own, beside the main queue's work. Needs timeline semaphores;
  // without them the main queue copies. Without a queue family that only copies, copies come after the
  // kernels of their part.
  bool copy_queues = false;
  vk::DeviceOptions options;
  Budget budget;
  CpuThreads cpu_threads;  // for the caller's Context::on_cpu
};

struct PhysicalDeviceSummary {
  std::uint32_t index = 0;
  std::string name, driver;
  vk::Capabilities capabilities;  // as Imprint uses them, with every optional feature enabled
  std::uint64_t device_memory_bytes = 0;
  std::uint32_t compute_queue_count = 0;
};

class Standalone {
 public:
  // Errors: not_found (no loader, no device, no match; says what to install or lists the devices),
  // unsupported (no validation layer; says which package).
  static Result<std::unique_ptr<Standalone>> open(const StandaloneOptions& options);
  virtual ~Standalone() = default;

  virtual Context& context() = 0;
  virtual Session& session() = 0;  // blocking runs on the same queue; not while a frame is open
  virtual DeviceLink* link() = 0;  // null: not linked; link_text() says why
  virtual const std::string& link_text() const = 0;
  virtual std::uint64_t validation_messages() const = 0;  // warnings and errors since open
  virtual std::string first_validation_message() const = 0;
};

Result<std::vector<PhysicalDeviceSummary>> list_devices();

}  // namespace imprint::bridge
