#pragma once
// The device that a command computes on: a standalone Vulkan device, or the CPU (--device cpu).

#include <memory>
#include <string>

#include "compute/base/result.h"
#include "compute/program/run.h"
#include "compute/vk/pipelines/capability_profile.h"
#include "engine-bridge/own/standalone.h"

namespace imprint::tools {

// Bytes.
inline constexpr std::uint64_t kDefaultMemoryCap = std::uint64_t{4} << 30;

class Computer {
 public:
  // device: as bridge::StandaloneOptions::device, or "cpu". kernels: an archive of imprint bake, or "".
  // Errors: those of bridge::Standalone::open and of reading the archive.
  // memory_cap: bytes of the device. threads: of the CPU; 0: one per core. A Vulkan device needs none.
  static Result<Computer> open(const std::string& device, const std::string& kernels = {},
                               std::uint64_t memory_cap = kDefaultMemoryCap, std::uint32_t threads = 1);

  bool on_cpu() const { return !standalone_; }
  bridge::Standalone& standalone() { return *standalone_; }  // not on the CPU
  Session& session() { return standalone_ ? standalone_->session() : *session_; }
  Runtime& runtime() { return session().runtime(); }
  std::string name() const;
  std::string driver() const;  // on the CPU: the instruction set

 private:
  std::unique_ptr<bridge::Standalone> standalone_;
  std::unique_ptr<Runtime> runtime_;  // the CPU's
  std::unique_ptr<Session> session_;
};

// The profile of a device of this computer. Errors: those of open; unsupported ("cpu").
Result<vk::CapabilityProfile> device_profile(const std::string& device);

}  // namespace imprint::tools
