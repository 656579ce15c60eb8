// Inference of a policy of the usual size, built as a user of the library would: 32 observations, two hidden layers of 64, 8 actions.

#include <string>
#include <vector>

#include "compute/nn/sequential.h"
#include "tools/imprint/bench.h"
#include "tools/imprint/bench_noise.h"

namespace imprint::tools {
namespace {

constexpr std::int64_t kObservations = 32, kActions = 8;
constexpr std::int64_t kResident = 131072;   // rows from which on observations and actions stay on the device, as those of a world there do

Result<BenchResult> run_policy(BenchDevice& device, const std::string& name, std::int64_t batch, Precision precision) {
  const nn::Sequential policy = nn::mlp("policy", {kObservations, 64, 64, kActions}, {.activation = nn::Activation::tanh, .seed = 1});
  ProgramDescription description{.name = "policy", .slots = kChainedRuns, .precision = precision};
  Noise noise;
  if (batch >= kResident) {
    std::vector<float> values(static_cast<std::size_t>(batch * kObservations));
    for (float& value : values) value = 2 * noise.next() - 1;
    const Variable observation("observation", {batch, kObservations}, values);
    description.updates = {Update::assign(Variable::zeros("action", {batch, kActions}), policy(observation.value()))};
  } else {
    description.inputs = {input("observation", {batch, kObservations})};
    description.outputs = {policy(description.inputs[0])};
  }
  IMPRINT_ASSIGN(Program program, Program::compile(device.runtime(), description));
  for (std::uint32_t slot = 0; slot < program.slot_count(); ++slot) noise.fill(program.input_bytes(slot, 0));
  return measure_program(device, program, name);
}

}  // namespace

std::vector<BenchCase> policy_cases() {
  std::vector<BenchCase> cases;
  const auto add = [&](std::int64_t batch, Precision precision) {
    const std::string name = "policy/32-64-64-8/" + std::string(precision == Precision::mixed16 ? "f16" : "f32") + "/b" + std::to_string(batch);
    cases.push_back({name, [=](BenchDevice& device) { return run_policy(device, name, batch, precision); }});
  };
  for (const std::int64_t batch : {1, 64, 1024, 16384, 131072}) add(batch, Precision::float32);
  for (const std::int64_t batch : {16384, 131072}) add(batch, Precision::mixed16);
  return cases;
}

}  // namespace imprint::tools
