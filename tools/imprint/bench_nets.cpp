// Suite nets: networks that people know, and the parts that they are made of. A step is forward, loss,
// backward and Adam.

#include "tools/imprint/bench_nets.h"

#include <chrono>

#include "compute/graph/gradients/autodiff.h"
#include "compute/nn/optimisers/optimiser.h"
#include "tools/imprint/bench.h"
#include "tools/imprint/bench_noise.h"
#include "tools/imprint/seconds.h"

namespace imprint::tools {

Variable noise_values(const std::string& name, const Shape& shape, float scale) {
  Noise noise;
  std::vector<float> values(static_cast<std::size_t>(shape.element_count()));
  for (float& value : values) value = scale * (2 * noise.next() - 1);
  return {name, shape, values};
}

Variable noise_indices(const std::string& name, const Shape& shape, std::int64_t count) {
  Noise noise;
  std::vector<std::int32_t> values(static_cast<std::size_t>(shape.element_count()));
  for (std::int32_t& value : values)
    value = static_cast<std::int32_t>(noise.next() * static_cast<float>(count));
  return {name, shape, values};
}

Result<ProgramDescription> stored(const std::vector<Tensor>& results, Precision precision) {
  ProgramDescription description{.precision = precision};
  for (const Tensor& result : results) {
    if (!result.ok()) return result.error();
    description.updates.push_back(
        Update::assign(Variable::zeros("result", result.shape(), result.dtype()), result));
  }
  return description;
}

Result<ProgramDescription> trained(const Tensor& loss, const nn::Parameters& parameters,
                                   Precision precision) {
  IMPRINT_ASSIGN(const std::vector<Tensor> found, gradients(loss, parameters.values()));
  IMPRINT_ASSIGN(ProgramDescription description, stored({loss}, precision));
  IMPRINT_ASSIGN(std::vector<Update> updates, nn::Adam(parameters).step(found, 0.001f));
  for (Update& update : updates) description.updates.push_back(std::move(update));
  return description;
}

namespace {

Result<BenchResult> run_net(BenchDevice& device, const Net& net) {
  const bool small = device.computer.on_cpu() ||
                     device.context().device().capabilities().device_type == VK_PHYSICAL_DEVICE_TYPE_CPU;
  IMPRINT_ASSIGN(ProgramDescription description, net.describe(small));
  description.name = net.name;
  description.slot_count = 1;
  const auto start = std::chrono::steady_clock::now();
  IMPRINT_ASSIGN(Program program, Program::compile(device.runtime(), description));
  const double compile_ms = seconds_since(start) * 1e3;
  IMPRINT_ASSIGN(BenchResult result,
                 measure_program(device, program, "nets/" + net.name + (small ? "/small" : "")));
  result.compile_ms = compile_ms;
  return result;
}

}  // namespace

std::vector<BenchCase> nets_cases() {
  std::vector<BenchCase> cases;
  for (const auto& nets : {layer_nets(), sequence_nets(), part_nets()})
    for (const Net& net : nets)
      cases.push_back({"nets/" + net.name, [net](BenchDevice& device) { return run_net(device, net); }});
  return cases;
}

}  // namespace imprint::tools
