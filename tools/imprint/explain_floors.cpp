#include "tools/imprint/explain_floors.h"

#include <vector>

#include "compute/tensor/tensor.h"

namespace imprint::tools {
namespace {

// GPU time of one run of the function on a vector of zeros.
Result<double> run_us(BenchDevice& device, std::int64_t count,
                      const std::function<Tensor(const Tensor&)>& function) {
  const Variable x = Variable::zeros("x", {count}), y = Variable::zeros("y", {count});
  // A variable, since GCC 13 crashes on this initialiser as an argument.
  const ProgramDescription description{
      .name = "floor", .updates = {Update::assign(y, function(x.value()))}, .slot_count = 1};
  IMPRINT_ASSIGN(Program program, Program::compile(device.runtime(), description));
  IMPRINT_ASSIGN(const BenchResult result, measure_program(device, program, "floor"));
  return result.gpu_us.median;
}

Result<double> launch_us(BenchDevice& device) {
  for (const BenchCase& one : floor_cases())
    if (one.name == "floor/dependent-dispatches/n100") {
      IMPRINT_ASSIGN(const BenchResult result, one.run(device));
      return result.gpu_us.median / 100;
    }
  return make_error(ErrorCode::internal, "suite floor has no dependent dispatches");
}

}  // namespace

Result<> measure_figures(BenchDevice& device, DeviceFigures& figures) {
  const bool software = device.context().device().capabilities().device_type == VK_PHYSICAL_DEVICE_TYPE_CPU;
  if (figures.launch_us <= 0) {
    IMPRINT_ASSIGN(figures.launch_us, launch_us(device));
  }
  if (figures.gb_per_s <= 0) {
    const std::int64_t count = software ? 1 << 21 : 1 << 26;  // beyond any cache
    IMPRINT_ASSIGN(const double us, run_us(device, count, [](const Tensor& x) { return x + 1.0f; }));
    figures.gb_per_s = 8e-3 * static_cast<double>(count) / us;
  }
  if (figures.tflop_per_s <= 0) {
    constexpr int kMultiplyAdds = 128;
    const std::int64_t count = software ? 1 << 18 : 1 << 25;
    IMPRINT_ASSIGN(const double us, run_us(device, count, [](const Tensor& x) {
                     Tensor value = x;
                     for (int i = 0; i < kMultiplyAdds; ++i)
                       value = value * x + (0.5f + static_cast<float>(i));
                     return value;
                   }));
    figures.tflop_per_s = 2e-6 * kMultiplyAdds * static_cast<double>(count) / us;
  }
  return {};
}

Floor floor_of(const DispatchFigures& dispatch, const DeviceFigures& device) {
  Floor floor{.launch_us = device.launch_us};
  for (const KernelFigures& kernel : dispatch.kernels) {
    floor.bytes_us += static_cast<double>(kernel.bytes_read + kernel.bytes_written) * 1e-3 / device.gb_per_s;
    floor.arithmetic_us += static_cast<double>(kernel.operations) * 1e-6 / device.tflop_per_s;
  }
  return floor;
}

}  // namespace imprint::tools
