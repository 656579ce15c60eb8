// Inference of a policy of the usual size, built as a user of the library would: 32 observations, two hidden layers of 64, 8 actions.

#include <string>

#include "compute/nn/sequential.h"
#include "tools/imprint/bench.h"
#include "tools/imprint/bench_noise.h"

namespace imprint::tools {
namespace {

Result<BenchResult> run_policy(BenchDevice& device, const std::string& name, std::int64_t batch) {
  const nn::Sequential policy = nn::mlp("policy", {32, 64, 64, 8}, {.activation = nn::Activation::tanh, .seed = 1});
  const Tensor observation = input("observation", {batch, 32});
  ProgramDescription description{.name = "policy", .inputs = {observation}, .outputs = {policy(observation)}, .slots = kChainedRuns};
  IMPRINT_ASSIGN(Program program, Program::compile(device.runtime(), description));
  Noise noise;
  for (std::uint32_t slot = 0; slot < program.slot_count(); ++slot) noise.fill(program.input_bytes(slot, 0));
  return measure_program(device, program, name);
}

}  // namespace

std::vector<BenchCase> policy_cases() {
  std::vector<BenchCase> cases;
  for (const std::int64_t batch : {1, 64, 1024, 16384}) {
    const std::string name = "policy/32-64-64-8/f32/b" + std::to_string(batch);
    cases.push_back({name, [=](BenchDevice& device) { return run_policy(device, name, batch); }});
  }
  return cases;
}

}  // namespace imprint::tools
