// imprint doctor: one page on a device: which features Imprint uses of it, and which it misses.

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "compute/cpu/kernels.h"
#include "compute/vk/pipelines/glsl_compiler.h"
#include "engine-bridge/own/standalone.h"
#include "imprint/version.h"
#include "tools/imprint/commands.h"

namespace imprint::tools {
namespace {

// The devices that the page is not about.
void print_others(const std::vector<bridge::PhysicalDeviceSummary>& devices, const std::string& chosen) {
  for (const bridge::PhysicalDeviceSummary& device : devices)
    if (device.name != chosen)
      std::printf("also here: %s, %s; imprint doctor --device %u\n", device.name.c_str(),
                  device.driver.c_str(), device.index);
  std::printf("also here: the CPU without Vulkan, %s kernels; device cpu\n", cpu::kernels().name);
}

Result<> examine(const std::string& device) {
  std::printf("imprint %s, shaders are %s\n", IMP_VERSION_STRING,
              vk::GlslCompiler::present() ? "compiled here" : "only taken from kernel archives");
  if (bridge::names_cpu(device)) {
    std::printf("%s", bridge::Context::on_cpu({}, {})->report().c_str());
    return {};
  }
  bridge::StandaloneOptions options;
  options.device = device;
  IMPRINT_ASSIGN(const std::unique_ptr<bridge::Standalone> own, bridge::Standalone::open(options));
  std::printf("%s", own->context().report().c_str());
  IMPRINT_ASSIGN(const auto devices, bridge::list_devices());
  print_others(devices, own->context().device().capabilities().device_name);
  return {};
}

}  // namespace

void add_doctor(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "doctor",
      "show on one page what a device and its driver give Imprint, and what is missing, costliest first");
  auto device = std::make_shared<std::string>();
  command->add_option("--device", *device, kDeviceHelp)->type_name("DEVICE");
  set_work(*command, [device] { return examine(*device); });
}

}  // namespace imprint::tools
