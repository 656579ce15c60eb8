#pragma once
// What a command line names to be compiled: programs of the benchmarks, and ONNX files.

#include <cstdint>
#include <string>
#include <vector>

#include "compute/base/result.h"
#include "compute/model/onnx_import.h"
#include "compute/program/program.h"
#include "tools/imprint/bench.h"

namespace imprint::tools {

inline constexpr const char* kWorkloadHelp =
    "a program of imprint bench --list (no row of floor or frame is one) by some of its name: policy, "
    "ppo/h64/b256, pet/b32";

// Those whose names have all pieces of the asked one, in order: ppo/h64/b256 is learn/ppo/h64/f32/b256.
// on_cpu: those that the processor runs. Errors: unsupported (such rows have no program of their own, or need
// a Vulkan device), not_found.
Result<std::vector<BenchCase>> find_workloads(const std::string& asked, bool on_cpu = false);

// Compiles the case's program, looks at it and runs nothing.
Status look_at(BenchDevice& device, const BenchCase& workload, const std::function<void(Program&)>& look);

// batch: what the model's open extents become. name: of the model in errors: unsupported (an input without a
// shape), and those of import_onnx.
Result<ImportedModel> import_batch(const onnx::Model& model, const std::string& name, std::int64_t batch);
Result<Program> compile_model(Runtime& runtime, const std::string& file, std::int64_t batch);

// Takes the tables of this device from a file, for what is compiled from now on. Errors: not_found, and those
// of read_tuning_tables.
Status use_tuning_file(Computer& computer, const std::string& file);

}  // namespace imprint::tools
