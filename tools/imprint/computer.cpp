#include "tools/imprint/computer.h"

#include "compute/cpu/kernels.h"

namespace imprint::tools {

Result<Computer> Computer::open(const std::string& device) {
  Computer computer;
  if (bridge::names_processor(device)) {
    computer.runtime_ = Runtime::create_on_cpu();
    computer.session_ = std::make_unique<Session>(*computer.runtime_);
    return computer;
  }
  IMPRINT_ASSIGN(computer.standalone_, bridge::Standalone::open({.device = device}));
  return computer;
}

std::string Computer::name() const { return on_cpu() ? "CPU" : standalone_->context().device().capabilities().device_name; }
std::string Computer::driver() const { return on_cpu() ? cpu::kernels().name : standalone_->context().device().capabilities().driver_name; }

}  // namespace imprint::tools
