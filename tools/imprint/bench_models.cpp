// Models of files as benchmarks.

#include <filesystem>

#include "compute/model/onnx/format/proto.h"
#include "tools/imprint/bench.h"
#include "tools/imprint/bench_noise.h"
#include "tools/imprint/workloads.h"

namespace imprint::tools {
namespace {

Result<BenchResult> run_model(BenchDevice& device, const std::string& name, const std::string& file,
                              const ModelShapes& shapes, Precision precision, FileLimits limits) {
  IMPRINT_ASSIGN(const onnx::Model model, load_limited(file, limits));
  device.runtime().set_cpu_memory_cap(limits.bytes());
  IMPRINT_ASSIGN(Program program,
                 compile_model(device.runtime(), file, shapes, kChainedRuns, precision, limits));
  IMPRINT_CHECK(check_memory(file, limits, program.stats()));
  IMPRINT_CHECK(check_work(file, limits, program.stats()));
  const std::vector<onnx::ValueInfo> inputs = model_inputs(model);
  Noise noise;
  for (std::uint32_t slot = 0; slot < program.slot_count(); ++slot)
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const std::span<std::byte> bytes = program.input_bytes(slot, i);
      if (inputs[i].type == onnx::ElementType::float32)
        noise.fill(bytes);
      else  // indices and lengths: zero is one everywhere
        std::ranges::fill(bytes, std::byte{0});
    }
  return measure_program(device, program, name);
}

}  // namespace

std::vector<BenchCase> model_cases(const std::vector<std::string>& files, const ModelShapes& shapes,
                                   Precision precision, const FileLimits& limits) {
  std::vector<BenchCase> cases;
  for (const std::string& file : files) {
    const std::string name = std::filesystem::path(file).stem().string();
    cases.push_back({name, [=](BenchDevice& device) {
                       return run_model(device, name, file, shapes, precision, limits);
                     }});
  }
  return cases;
}

}  // namespace imprint::tools
