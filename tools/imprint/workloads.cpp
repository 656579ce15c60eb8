#include "tools/imprint/workloads.h"

#include <algorithm>

#include "compute/base/text.h"
#include "compute/model/files/file.h"
#include "compute/tuning/tuning_table.h"
#include "tools/imprint/slow_step.h"

namespace imprint::tools {
namespace {

std::vector<std::string> pieces_of(const std::string& path) {
  std::vector<std::string> pieces{""};
  for (const char c : path) {
    if (c == '/')
      pieces.emplace_back();
    else
      pieces.back() += c;
  }
  return pieces;
}

bool is_meant(const std::string& asked, const std::string& name) {
  const std::vector<std::string> wanted = pieces_of(asked), given = pieces_of(name);
  std::size_t found = 0;
  for (const std::string& piece : given)
    if (found < wanted.size() && piece == wanted[found]) ++found;
  return found == wanted.size();
}

bool are_meant(const std::string& asked, const std::vector<BenchCase>& cases) {
  return std::ranges::any_of(cases, [&](const BenchCase& one) { return is_meant(asked, one.name); });
}

}  // namespace

Result<std::vector<BenchCase>> find_workloads(const std::string& asked, bool on_cpu) {
  std::vector<BenchCase> cases = program_cases(on_cpu);
  std::erase_if(cases, [&](const BenchCase& one) { return !is_meant(asked, one.name); });
  if (!cases.empty()) return cases;
  const std::string known =
      text("a program of suites ", program_suites(on_cpu), ". See imprint bench --list.");
  if (on_cpu && are_meant(asked, program_cases()))
    return make_error(ErrorCode::unsupported,
                      text("program: found '", asked, "', which needs a Vulkan device, expected ", known));
  if (are_meant(asked, cases_without_program()))
    return make_error(
        ErrorCode::unsupported,
        text("program: found '", asked, "', a benchmark without a program of its own, expected ", known));
  return make_error(ErrorCode::not_found, text("program: found '", asked, "', expected ", known));
}

Result<> look_at(BenchDevice& device, const BenchCase& workload, const std::function<void(Program&)>& look) {
  device.look = [&](Program& program) {
    look(program);
    return Result<>();
  };
  const auto looked = workload.run(device);
  device.look = nullptr;
  return looked ? Result<>() : Result<>(looked.error());
}

Result<ImportedModel> import_at(const onnx::Model& model, const std::string& name, const ModelShapes& shapes,
                                const ImportOptions& options) {
  IMPRINT_ASSIGN(const auto found, shapes_of(model, name, shapes));
  return import_onnx(model, found, options);
}

Result<Program> compile_model(Runtime& runtime, const std::string& file, const ModelShapes& shapes,
                              std::uint32_t slot_count, Precision precision, FileLimits limits) {
  const SlowStep slow(text("compiling '", file, "'"));
  IMPRINT_ASSIGN(const onnx::Model loaded, load_limited(file, limits));
  const ImportOptions options{.constant_limit_bytes = limits.bytes()};
  IMPRINT_ASSIGN(const ImportedModel imported, with_remedy(import_at(loaded, file, shapes, options), limits));
  // A variable, since GCC 13 crashes on this initialiser as an argument.
  const ProgramDescription description{.name = file,
                                       .inputs = imported.input_tensors(),
                                       .outputs = imported.output_tensors(),
                                       .slot_count = slot_count,
                                       .precision = precision};
  return Program::compile(runtime, description);
}

Precision precision_named(const std::string& name) {
  return name == "mixed" ? Precision::mixed16 : name == "float16" ? Precision::float16 : Precision::float32;
}

Result<> use_tuning_file(Computer& computer, const std::string& file) {
  if (computer.on_cpu())
    return make_error(
        ErrorCode::unsupported,
        text("tuning: found '", file, "' on the CPU, whose kernels have no variants. Remove it."));
  IMPRINT_ASSIGN(const std::vector<std::byte> bytes, read_file(file));
  const std::string_view json(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  auto table = read_tuning_tables(json, computer.standalone().context().device().capabilities());
  if (!table) return make_error(table.error().code, text("'", file, "': ", table.error().message));
  computer.runtime().set_variants(std::make_shared<const VariantTable>(std::move(*table)));
  return {};
}

}  // namespace imprint::tools
