// Inference of a policy of typical size, built as a user of the library would: 32 observations, two hidden
// layers of 64, 8 actions. Observations and actions are on the device, as when a game shares its buffers or a
// world runs there. In rows of policy-copied they are inputs and outputs.

#include <string>
#include <vector>

#include "compute/nn/modules/sequential.h"
#include "tools/imprint/bench.h"
#include "tools/imprint/bench_noise.h"

namespace imprint::tools {
namespace {

constexpr std::int64_t kInputs = 32, kOutputs = 8;

nn::Sequential make_policy() {
  return nn::mlp("policy", {kInputs, 64, 64, kOutputs}, {.activation = nn::Activation::tanh, .seed = 1});
}

Result<BenchResult> run_policy(BenchDevice& device, const std::string& name, std::int64_t batch,
                               Precision precision) {
  Noise noise;
  std::vector<float> values(static_cast<std::size_t>(batch * kInputs));
  for (float& value : values) value = 2 * noise.next() - 1;
  const Variable observation("observation", {batch, kInputs}, values),
      action = Variable::zeros("action", {batch, kOutputs});
  ProgramDescription description{.name = "policy", .slot_count = kChainedRuns, .precision = precision};
  description.updates = {Update::assign(action, make_policy()(observation.value()))};
  IMPRINT_ASSIGN(Program program, Program::compile(device.runtime(), description));
  return measure_program(device, program, name);
}

Result<BenchResult> run_copied_policy(BenchDevice& device, const std::string& name, std::int64_t batch) {
  const Tensor observation = input("observation", {batch, kInputs});
  ProgramDescription description{.name = "policy",
                                 .inputs = {observation},
                                 .outputs = {make_policy()(observation)},
                                 .slot_count = kChainedRuns};
  IMPRINT_ASSIGN(Program program, Program::compile(device.runtime(), description));
  Noise noise;
  for (std::uint32_t slot = 0; slot < program.slot_count(); ++slot) noise.fill(program.input_bytes(slot, 0));
  return measure_program(device, program, name);
}

}  // namespace

std::vector<BenchCase> policy_cases() {
  std::vector<BenchCase> cases;
  const auto add = [&](std::int64_t batch, Precision precision) {
    const std::string name = "policy/32-64-64-8/" +
                             std::string(precision == Precision::mixed16 ? "f16" : "f32") + "/b" +
                             std::to_string(batch);
    cases.push_back({name, [=](BenchDevice& device) { return run_policy(device, name, batch, precision); }});
  };
  for (const std::int64_t batch : {1, 64, 1024, 16384, 131072}) add(batch, Precision::float32);
  for (const std::int64_t batch : {16384, 131072}) add(batch, Precision::mixed16);
  for (const std::int64_t batch : {1, 64, 1024}) {
    const std::string name = "policy-copied/32-64-64-8/f32/b" + std::to_string(batch);
    cases.push_back({name, [=](BenchDevice& device) { return run_copied_policy(device, name, batch); }});
  }
  return cases;
}

}  // namespace imprint::tools
