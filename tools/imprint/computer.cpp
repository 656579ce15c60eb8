#include "tools/imprint/computer.h"

#include <algorithm>
#include <thread>

#include "compute/cpu/kernels.h"
#include "compute/model/files/file.h"
#include "compute/vk/pipelines/kernel_archive.h"

namespace imprint::tools {

constexpr std::uint32_t kMostCompileThreads = 16;

Result<Computer> Computer::open(const std::string& device, const std::string& kernels,
                                std::uint64_t memory_cap, std::uint32_t threads) {
  Computer computer;
  vk::DeviceOptions options;
  options.memory.cap_bytes = memory_cap;
  options.compile_threads = std::clamp(std::thread::hardware_concurrency(), 1u, kMostCompileThreads);
  if (!kernels.empty()) {
    IMPRINT_ASSIGN(const std::vector<std::byte> bytes, read_file(kernels));
    auto archive = vk::KernelArchive::parse(bytes);
    if (!archive) return make_error(archive.error().code, "'" + kernels + "': " + archive.error().message);
    options.kernels = std::move(*archive);
  }
  if (bridge::names_cpu(device)) {
    const std::uint32_t count =
        threads > 0 ? threads : std::clamp(std::thread::hardware_concurrency(), 1u, kMostCpuThreads);
    computer.runtime_ = Runtime::create_on_cpu({}, memory_cap, {.count = count});
    computer.session_ = std::make_unique<Session>(*computer.runtime_);
    return computer;
  }
  IMPRINT_ASSIGN(computer.standalone_, bridge::Standalone::open({.device = device, .options = options}));
  return computer;
}

std::string Computer::name() const {
  return on_cpu() ? "CPU" : standalone_->context().device().capabilities().device_name;
}
std::string Computer::driver() const {
  return on_cpu() ? cpu::kernels().name : standalone_->context().device().capabilities().driver_name;
}

Result<vk::CapabilityProfile> device_profile(const std::string& device) {
  if (bridge::names_cpu(device))
    return make_error(
        ErrorCode::unsupported,
        "device: found 'cpu', expected a Vulkan device. The CPU's kernels are part of the library.");
  IMPRINT_ASSIGN(Computer computer, Computer::open(device));
  return vk::CapabilityProfile::of(computer.standalone().context().device().capabilities(), false);
}

}  // namespace imprint::tools
