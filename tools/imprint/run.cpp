// imprint run: computes a model's outputs for given inputs on a device.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>

#include "compute/base/amount.h"
#include "compute/base/quote.h"
#include "compute/base/saturated.h"
#include "compute/base/text.h"
#include "compute/base/utf8.h"
#include "compute/model/files/file.h"
#include "compute/model/files/safetensors.h"
#include "compute/model/onnx/import.h"
#include "tools/imprint/bench.h"
#include "tools/imprint/commands.h"
#include "tools/imprint/computer.h"
#include "tools/imprint/file_limits.h"
#include "tools/imprint/model_inputs.h"
#include "tools/imprint/profile_table.h"
#include "tools/imprint/slow_step.h"
#include "tools/imprint/workloads.h"

namespace imprint::tools {

namespace {

using onnx::ElementType;

struct RunOptions {
  std::string model, input, device, kernels;
  std::optional<std::string> output;
  bool explain = false, profile = false;
  Precision precision = Precision::float32;
  std::uint32_t repeat = 1, threads = 1;
  ModelShapes shapes;  // without an input file
  FileLimits limits;
};

// float32 and bool as computed; int32 if the model declares it; other integer types as int64.
safetensors::Array stored(const HostTensor& tensor, ElementType type) {
  if (tensor.dtype == DType::float32) return safetensors::Array::of(tensor.floats, tensor.shape);
  if (tensor.dtype == DType::boolean) return safetensors::Array::of_bools(tensor.ints, tensor.shape);
  if (type == ElementType::int32) return safetensors::Array::of(tensor.ints, tensor.shape);
  std::vector<std::int64_t> wide(tensor.ints.begin(), tensor.ints.end());
  if (type == ElementType::uint32)
    for (std::int64_t& value : wide) value = static_cast<std::uint32_t>(value);
  return safetensors::Array::of(wide, tensor.shape);
}

// Copies of inputs as the file has them and as tensors, and of outputs as tensors, as the file has them, and
// as bytes.
std::uint64_t copied_bytes(const ImportedModel& model, const RunOptions& options) {
  const auto bytes = [](const std::vector<ImportedValue>& values) {
    std::uint64_t sum = 0;
    for (const ImportedValue& value : values)
      sum = saturated_sum(
          sum, saturated_product(static_cast<std::uint64_t>(value.tensor.shape().element_count()), 4));
    return sum;
  };
  const std::uint64_t of_inputs = 2, of_outputs = options.output ? 3 : 1;
  return saturated_sum(saturated_product(of_inputs, bytes(model.inputs)),
                       saturated_product(of_outputs, bytes(model.outputs)));
}

// The results of the last of `repeat` runs. With more than one, prints their times.
Result<std::vector<HostTensor>> run_often(Computer& computer, Program& program,
                                          const std::vector<HostTensor>& inputs, std::uint32_t repeat) {
  const SlowStep slow("running");
  std::vector<double> us;
  for (std::uint32_t i = 0;; ++i) {
    const auto start = std::chrono::steady_clock::now();
    IMPRINT_ASSIGN(std::vector<HostTensor> results, computer.session().run(program, inputs));
    const std::chrono::duration<double, std::micro> taken = std::chrono::steady_clock::now() - start;
    us.push_back(taken.count());
    if (i + 1 < repeat) continue;
    const Spread times = spread(us);
    if (repeat > 1)
      std::printf("%s with copies: median %.1f us, p95 %.1f us; the first %.1f us\n",
                  amount(repeat, "run").c_str(), times.median, times.p95, us[0]);
    return results;
  }
}

Result<> run(const RunOptions& options) {
  if (options.output) IMPRINT_CHECK(check_replaceable(*options.output));
  FileLimits limits = options.limits;
  IMPRINT_ASSIGN(const onnx::Model model, load_limited(options.model, limits));
  IMPRINT_ASSIGN(const safetensors::File given,
                 options.input.empty() ? noise_for(model, options.model, options.shapes, limits.bytes())
                                       : safetensors::load(options.input));
  IMPRINT_ASSIGN(const std::vector<DimensionBound> bounds, bounds_of(options.shapes));
  IMPRINT_ASSIGN(const ImportedModel imported,
                 with_remedy(import_for(model, options.input, given, limits.bytes(), bounds), limits));
  for (const ImportedValue& output : imported.outputs)
    if (!is_utf8(output.name))
      return make_error(ErrorCode::unsupported, text("output ", quote(output.name),
                                                     ": found a name that is not UTF-8, expected UTF-8, "
                                                     "which a safetensors file needs"));
  for (const std::string& note : imported.notes) std::fprintf(stderr, "note: %s\n", note.c_str());
  IMPRINT_ASSIGN(const std::vector<HostTensor> inputs, host_tensors(imported, given));

  IMPRINT_ASSIGN(Computer computer,
                 Computer::open(options.device, options.kernels, limits.bytes(), options.threads));
  ProgramDescription description;
  description.name = options.model;
  description.inputs = imported.input_tensors();
  description.outputs = imported.output_tensors();
  description.slot_count = 1;
  description.precision = options.precision;
  IMPRINT_ASSIGN(Program program, with_remedy(Program::compile(computer.runtime(), description), limits));
  IMPRINT_CHECK(check_memory(options.model, limits, program.stats(), copied_bytes(imported, options)));
  IMPRINT_CHECK(check_work(options.model, limits, program.stats()));
  if (options.explain) std::printf("%s\n", program.explain().c_str());
  IMPRINT_ASSIGN(std::vector<HostTensor> results, run_often(computer, program, inputs, options.repeat));

  safetensors::File out;
  std::map<std::string, std::string> forms;
  for (std::size_t i = 0; i < results.size(); ++i) {
    const std::string& name = imported.outputs[i].name;
    const ElementType type = imported.outputs[i].type;
    const HostTensor result = std::move(results[i]), empty{result.dtype, Shape{0}, {}, {}};
    forms[name] = text(safetensors::type_name(stored(empty, type).type), " ", result.shape.text());
    if (options.output) out.arrays[name] = stored(result, type);
  }
  out.metadata = {{"device", computer.name()}, {"driver", computer.driver()}};
  if (options.output) IMPRINT_CHECK(safetensors::save(out, *options.output));
  std::printf("%s: %s\n", computer.name().c_str(), amount(program.stats().dispatches, "dispatch").c_str());
  if (options.profile) IMPRINT_CHECK(print_profile(computer, program, std::max(options.repeat, 5u)));
  for (const auto& [name, form] : forms) std::printf("  %s %s\n", clipped(name).c_str(), form.c_str());
  return {};
}

}  // namespace

void add_run(CLI::App& app) {
  CLI::App* command = app.add_subcommand("run", "run a model on a device");
  auto options = std::make_shared<RunOptions>();
  command->add_option("model", options->model, "an ONNX file")->required()->type_name("MODEL.onnx");
  command
      ->add_option("--input", options->input,
                   "a file of tensors with the names of the model's inputs; without one they are noise")
      ->type_name("IN.safetensors");
  add_shape_option(*command, options->shapes);
  add_extent_option(*command, options->shapes);
  command->add_option("--batch", options->shapes.batch, "without --input: size of open dimensions")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 31))
      ->option_text("N=1");
  command->add_option("--output", options->output, "the file for the outputs, with their names")
      ->type_name("OUT.safetensors");
  command->add_option("--device", options->device, kDeviceHelp)->type_name("DEVICE");
  add_threads_option(*command, options->threads);
  command
      ->add_option_function<std::string>(
          "--precision", [options](const std::string& name) { options->precision = precision_named(name); },
          "float32; mixed: large products read float16; float16: images are kept in float16 too")
      ->check(CLI::IsMember({"float32", "mixed", "float16"}))
      ->option_text("TYPE=float32");
  command
      ->add_option("--kernels", options->kernels,
                   "an archive of imprint bake; kernels that it lacks are compiled, if this build has a "
                   "compiler")
      ->type_name("FILE");
  add_memory_limit_option(*command, options->limits);
  add_work_limit_option(*command, options->limits);
  command->add_option("--repeat", options->repeat, "runs, whose median time is printed")
      ->check(CLI::Range(1u, 1000000u))
      ->option_text("N=1");
  command->add_flag("--profile", options->profile, "print the time of each kernel, the costliest first");
  command->add_flag("--explain", options->explain,
                    "print the schedule: dispatches, kernels, shapes, barriers");
  set_work(*command, [options] { return run(*options); });
}

}  // namespace imprint::tools
