// Models of files as benchmarks.

#include <filesystem>

#include "compute/model/onnx/format/proto.h"
#include "compute/tensor/composites/composites.h"
#include "tools/imprint/bench.h"
#include "tools/imprint/bench_noise.h"
#include "tools/imprint/workloads.h"

namespace imprint::tools {
namespace {

// The model with inputs and outputs in memory of the device, as a game's shared tensors: a run copies none.
Result<Program> compile_on_device(Runtime& runtime, const std::string& file, const onnx::Model& model,
                                  const ModelBench& given, const FileLimits& limits) {
  const ImportOptions options{.constant_limit_bytes = limits.bytes()};
  IMPRINT_ASSIGN(const ImportedModel imported,
                 with_remedy(import_at(model, file, given.shapes, options), limits));
  Noise noise;
  std::vector<Tensor> inputs;
  for (const ImportedValue& input : imported.inputs) {
    const Variable held = Variable::zeros(input.name, input.tensor.shape(), input.tensor.dtype());
    if (input.type == onnx::ElementType::float32) {
      std::vector<std::byte> bytes(held.bytes());
      noise.fill(bytes);
      IMPRINT_CHECK(runtime.write(held, bytes));
    }
    inputs.push_back(held.value());
  }
  ProgramDescription description{.name = file, .slot_count = 1, .precision = given.precision};
  for (const Tensor& output : substitute(imported.output_tensors(), imported.input_tensors(), inputs))
    description.updates.push_back(
        Update::assign(Variable::zeros("output", output.shape(), output.dtype()), output));
  return Program::compile(runtime, description);
}

// The model with inputs from the host. Those that are no floats are indices and lengths: zero is one
// everywhere.
Result<Program> compile_copied(Runtime& runtime, const std::string& file, const onnx::Model& model,
                               const ModelBench& given, const FileLimits& limits) {
  IMPRINT_ASSIGN(Program program,
                 compile_model(runtime, file, given.shapes, kChainedRuns, given.precision, limits));
  const std::vector<onnx::ValueInfo> inputs = model_inputs(model);
  Noise noise;
  for (std::uint32_t slot = 0; slot < program.slot_count(); ++slot)
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const std::span<std::byte> bytes = program.input_bytes(slot, i);
      if (inputs[i].type == onnx::ElementType::float32)
        noise.fill(bytes);
      else
        std::ranges::fill(bytes, std::byte{0});
    }
  return program;
}

Result<BenchResult> run_model(BenchDevice& device, const std::string& name, const std::string& file,
                              const ModelBench& given) {
  FileLimits limits = given.limits;
  IMPRINT_ASSIGN(const onnx::Model model, load_limited(file, limits));
  device.runtime().set_cpu_memory_cap(limits.bytes());
  IMPRINT_ASSIGN(Program program, (given.copied ? compile_copied : compile_on_device)(device.runtime(), file,
                                                                                      model, given, limits));
  IMPRINT_CHECK(check_memory(file, limits, program.stats()));
  IMPRINT_CHECK(check_work(file, limits, program.stats()));
  return measure_program(device, program, name);
}

}  // namespace

std::vector<BenchCase> model_cases(const std::vector<std::string>& files, const ModelBench& given) {
  std::vector<BenchCase> cases;
  for (const std::string& file : files) {
    const std::string name = std::filesystem::path(file).stem().string() + (given.copied ? "-copied" : "");
    cases.push_back({name, [=](BenchDevice& device) { return run_model(device, name, file, given); }});
  }
  return cases;
}

}  // namespace imprint::tools
