#pragma once
// What a command computes on: a Vulkan device of our own, or with --device cpu the processor.

#include <memory>
#include <string>

#include "compute/base/result.h"
#include "compute/program/run.h"
#include "compute/vk/capability_profile.h"
#include "engine-bridge/own/standalone.h"

namespace imprint::tools {

class Computer {
 public:
  // device: as bridge::StandaloneOptions::device, or "cpu". Errors: those of bridge::Standalone::open.
  // kernels: a file of imprint bake, or "". Errors besides: those of reading it.
  static Result<Computer> open(const std::string& device, const std::string& kernels = {});

  bool on_cpu() const { return !standalone_; }
  bridge::Standalone& standalone() { return *standalone_; }  // not on the processor
  Session& session() { return standalone_ ? standalone_->session() : *session_; }
  Runtime& runtime() { return session().runtime(); }
  std::string name() const;
  std::string driver() const;  // on the processor the instruction set

 private:
  std::unique_ptr<bridge::Standalone> standalone_;
  std::unique_ptr<Runtime> runtime_;  // the processor's
  std::unique_ptr<Session> session_;
};

// What kernels are written for on a device of this computer. Errors: those of open; unsupported ("cpu").
Result<vk::CapabilityProfile> device_profile(const std::string& device);

}  // namespace imprint::tools
