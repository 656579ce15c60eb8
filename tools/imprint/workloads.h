#pragma once
// Programs that a command line can name for compiling: those of the benchmarks, and ONNX files.

#include <cstdint>
#include <string>
#include <vector>

#include "compute/base/result.h"
#include "compute/model/onnx/import.h"
#include "compute/program/program.h"
#include "tools/imprint/bench.h"
#include "tools/imprint/model_shapes.h"

namespace imprint::tools {

inline constexpr const char* kWorkloadHelp =
    "a program of imprint bench --list (except suites floor, frame and plan), by part of its name: policy, "
    "ppo/h64/b256, pet/b32";

// Programs whose names have all pieces of `asked`, in order: ppo/h64/b256 matches learn/ppo/h64/f32/b256.
// on_cpu: only those that run on the CPU. Errors: unsupported (a benchmark without a program of its own, or
// one that needs a Vulkan device), not_found.
Result<std::vector<BenchCase>> find_workloads(const std::string& asked, bool on_cpu = false);

// Compiles the benchmark's program and hands it to `look`; runs nothing.
Result<> look_at(BenchDevice& device, const BenchCase& workload, const std::function<void(Program&)>& look);

// limits: of the file; 0: by its size. name: of the model, for errors. Errors: those of shapes_of and
// import_onnx.
Result<ImportedModel> import_at(const onnx::Model& model, const std::string& name, const ModelShapes& shapes,
                                const ImportOptions& options = {});
Result<Program> compile_model(Runtime& runtime, const std::string& file, const ModelShapes& shapes,
                              std::uint32_t slot_count = 1, Precision precision = Precision::float32,
                              FileLimits limits = {});

// name: float32, mixed or float16.
Precision precision_named(const std::string& name);

// Uses this device's table from a file for everything compiled from now on. Errors: not_found, those of
// read_tuning_tables.
Result<> use_tuning_file(Computer& computer, const std::string& file);

}  // namespace imprint::tools
