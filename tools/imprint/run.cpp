// imprint run: computes a model's outputs for given inputs on a device.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>

#include "compute/base/at.h"
#include "compute/base/text.h"
#include "compute/base/utf8.h"
#include "compute/model/file.h"
#include "compute/model/onnx_import.h"
#include "compute/model/onnx_tensor_data.h"
#include "compute/model/safetensors.h"
#include "tools/imprint/bench.h"
#include "tools/imprint/bench_noise.h"
#include "tools/imprint/commands.h"
#include "tools/imprint/computer.h"
#include "tools/imprint/profile_table.h"
#include "tools/imprint/slow_step.h"

namespace imprint::tools {

namespace {

using onnx::ElementType;

struct RunOptions {
  std::string model, input, device, kernels;
  std::optional<std::string> output;
  bool explain = false, mixed = false, profile = false;
  std::uint32_t repeat = 1, threads = 1;
  ModelShapes shapes;  // without an input file
  // Against files that ask for all there is.
  std::uint64_t most_mib = 4096, most_gop = 100'000;
};

// Looks for the input's name, and for "in.NAME" as reference files spell it.
const safetensors::Array* find_input(const safetensors::File& file, const std::string& name) {
  for (const std::string& key : {name, "in." + name})
    if (const auto found = file.arrays.find(key); found != file.arrays.end()) return &found->second;
  return nullptr;
}

Result<HostTensor> host_tensor(const safetensors::Array& array, const ImportedValue& input) {
  using safetensors::Type;
  const bool given_float = array.type == Type::float16 || array.type == Type::bfloat16 ||
                           array.type == Type::float32 || array.type == Type::float64;
  const DType dtype = input.tensor.dtype();
  if (given_float != (dtype == DType::float32))
    return make_error(ErrorCode::dtype_mismatch,
                      text("input '", input.name, "': found ", safetensors::type_name(array.type),
                           ", expected ", onnx::element_type_name(input.type)));
  if (dtype == DType::float32) return HostTensor::from(array.floats(), array.shape);
  auto ints = array.ints();
  if (!ints) return make_error(ints.error().code, text("input '", input.name, "': ", ints.error().message));
  HostTensor tensor = HostTensor::from_ints(std::move(*ints), array.shape);
  if (dtype == DType::boolean) {
    tensor.dtype = DType::boolean;
    for (std::int32_t& value : tensor.ints) value = value != 0;
  }
  return tensor;
}

// float32 and bool as computed; int32 if the model declares it; other integer types as int64.
safetensors::Array stored(const HostTensor& tensor, ElementType type) {
  if (tensor.dtype == DType::float32) return safetensors::Array::of(tensor.floats, tensor.shape);
  if (tensor.dtype == DType::boolean) return safetensors::Array::of_bools(tensor.ints, tensor.shape);
  if (type == ElementType::int32) return safetensors::Array::of(tensor.ints, tensor.shape);
  const std::vector<std::int64_t> wide(tensor.ints.begin(), tensor.ints.end());
  return safetensors::Array::of(wide, tensor.shape);
}

Result<> check_work(const RunOptions& options, const ProgramStats& stats) {
  constexpr std::uint64_t kGiga = 1'000'000'000;
  const std::uint64_t found = stats.flops / kGiga + stats.bytes_moved / kGiga;
  if (found < options.most_gop) return {};
  return make_error(ErrorCode::unsupported,
                    text("'", options.model, "': found ", found,
                         " billion operations and bytes moved, expected fewer than ", options.most_gop,
                         ". If you trust the file, raise --most-gop"));
}

// Shapes may follow from the values of inputs: a model that is refused for that is imported again, for these
// values.
Result<ImportedModel> import_for(const onnx::Model& model, const std::map<std::string, Shape>& shapes,
                                 const safetensors::File& given) {
  auto imported = import_onnx(model, shapes);
  if (imported || imported.error().code != ErrorCode::unsupported) return imported;
  ImportOptions options;
  for (const onnx::ValueInfo& input : model_inputs(model)) {
    const safetensors::Array* array = find_input(given, input.name);
    if (!array) continue;
    if (onnx::TensorData data = onnx::tensor_data(input.name, *array); data.type == input.type)
      options.known_inputs[input.name] = std::move(data);
  }
  auto known = import_onnx(model, shapes, options);
  if (!known) return imported;
  std::fprintf(stderr, "note: the inputs' values are constants of the program: shapes follow from them\n");
  return known;
}

// Inputs without a file: numbers in [0, 1), and zero for whole numbers, which may be indices.
Result<safetensors::File> noise_for(const onnx::Model& model, const RunOptions& options) {
  IMPRINT_ASSIGN(const auto shapes, shapes_of(model, options.model, options.shapes));
  safetensors::File file;
  Noise noise;
  for (const onnx::ValueInfo& input : model_inputs(model)) {
    const Shape& shape = shapes.at(input.name);
    const std::size_t count = at(shape.element_count());
    if (input.type == ElementType::boolean) {
      file.arrays.emplace(input.name, safetensors::Array::of_bools(std::vector<std::int32_t>(count), shape));
    } else if (is_float(input.type)) {
      std::vector<float> values(count);
      for (float& value : values) value = noise.next();
      file.arrays.emplace(input.name, safetensors::Array::of(values, shape));
    } else {
      file.arrays.emplace(input.name, safetensors::Array::of(std::vector<std::int64_t>(count), shape));
    }
  }
  return file;
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
      std::printf("%u runs with copies: median %.1f us, p95 %.1f us; the first %.1f us\n", repeat,
                  times.median, times.p95, us[0]);
    return results;
  }
}

Result<> run(const RunOptions& options) {
  if (options.output) IMPRINT_CHECK(check_replaceable(*options.output));
  IMPRINT_ASSIGN(const onnx::Model model, onnx::load(options.model));
  IMPRINT_ASSIGN(const safetensors::File given,
                 options.input.empty() ? noise_for(model, options) : safetensors::load(options.input));
  std::map<std::string, Shape> shapes;
  for (const onnx::ValueInfo& input : model.graph.inputs)
    if (const safetensors::Array* array = find_input(given, input.name))
      shapes.emplace(input.name, array->shape);
  for (const onnx::ValueInfo& input : model_inputs(model)) {
    if (shapes.contains(input.name)) continue;
    return make_error(ErrorCode::not_found,
                      text("'", options.input, "' lacks input '", input.name, "' ", input.shape_text(), ": ",
                           given.find(input.name).error().message));
  }
  IMPRINT_ASSIGN(const ImportedModel imported, import_for(model, shapes, given));
  for (const ImportedValue& output : imported.outputs)
    if (!is_utf8(output.name))
      return make_error(ErrorCode::unsupported, text("output '", output.name,
                                                     "': found a name that is not UTF-8, expected UTF-8, "
                                                     "which a safetensors file needs"));
  for (const std::string& note : imported.notes) std::fprintf(stderr, "note: %s\n", note.c_str());
  std::vector<HostTensor> inputs;
  for (const ImportedValue& input : imported.inputs) {
    IMPRINT_ASSIGN(HostTensor tensor, host_tensor(*find_input(given, input.name), input));
    inputs.push_back(std::move(tensor));
  }

  IMPRINT_ASSIGN(Computer computer,
                 Computer::open(options.device, options.kernels, options.most_mib << 20, options.threads));
  ProgramDescription description;
  description.name = options.model;
  description.inputs = imported.input_tensors();
  description.outputs = imported.output_tensors();
  description.slot_count = 1;
  if (options.mixed) description.precision = Precision::mixed16;
  IMPRINT_ASSIGN(Program program, Program::compile(computer.runtime(), description));
  IMPRINT_CHECK(check_work(options, program.stats()));
  if (options.explain) std::printf("%s\n", program.explain().c_str());
  IMPRINT_ASSIGN(const std::vector<HostTensor> results, run_often(computer, program, inputs, options.repeat));

  safetensors::File out;
  for (std::size_t i = 0; i < results.size(); ++i)
    out.arrays[imported.outputs[i].name] = stored(results[i], imported.outputs[i].type);
  out.metadata = {{"device", computer.name()}, {"driver", computer.driver()}};
  if (options.output) IMPRINT_CHECK(safetensors::save(out, *options.output));
  std::printf("%s: %u dispatches\n", computer.name().c_str(), program.stats().dispatches);
  if (options.profile) IMPRINT_CHECK(print_profile(computer, program, std::max(options.repeat, 5u)));
  for (const auto& [name, array] : out.arrays)
    std::printf("  %s %s %s\n", name.c_str(), std::string(safetensors::type_name(array.type)).c_str(),
                array.shape.text().c_str());
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
  command->add_option("--batch", options->shapes.batch, "without --input: size of open dimensions")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 31))
      ->option_text("N=1");
  command->add_option("--output", options->output, "the file for the outputs, with their names")
      ->type_name("OUT.safetensors");
  command->add_option("--device", options->device, kDeviceHelp)->type_name("DEVICE");
  add_threads_option(*command, options->threads);
  command
      ->add_option_function<std::string>(
          "--precision", [options](const std::string& precision) { options->mixed = precision == "mixed"; },
          "float32, or mixed: large products read float16")
      ->check(CLI::IsMember({"float32", "mixed"}))
      ->option_text("TYPE=float32");
  command
      ->add_option("--kernels", options->kernels,
                   "an archive of imprint bake; kernels that it lacks are compiled, if this build has a "
                   "compiler")
      ->type_name("FILE");
  command->add_option("--most-mib", options->most_mib, "refuse a model that takes more device memory, MiB")
      ->check(CLI::Range(1, 1 << 30))
      ->option_text("N=4096");
  command
      ->add_option("--most-gop", options->most_gop,
                   "refuse a model with more operations and bytes moved, billions")
      ->check(CLI::Range(1, 1 << 30))
      ->option_text("N=100000");
  command->add_option("--repeat", options->repeat, "runs, whose median time is printed")
      ->check(CLI::Range(1u, 1000000u))
      ->option_text("N=1");
  command->add_flag("--profile", options->profile, "print the time of each kernel, the costliest first");
  command->add_flag("--explain", options->explain,
                    "print the schedule: dispatches, kernels, shapes, barriers");
  set_work(*command, [options] { return run(*options); });
}

}  // namespace imprint::tools
