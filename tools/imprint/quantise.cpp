// imprint quantise: a model with 8-bit or 4-bit weights, and what that costs. imprint convert: weights of any
// file that Imprint reads, as safetensors.

#include "compute/model/quantise.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>

#include "compute/base/amount.h"
#include "compute/base/quote.h"
#include "compute/base/text.h"
#include "compute/base/utf8.h"
#include "compute/model/files/file.h"
#include "compute/model/onnx/export.h"
#include "compute/model/weights/weights.h"
#include "tools/imprint/commands.h"
#include "tools/imprint/computer.h"
#include "tools/imprint/file_limits.h"
#include "tools/imprint/model_inputs.h"
#include "tools/imprint/slow_step.h"
#include "tools/imprint/workloads.h"

namespace imprint::tools {

namespace {

struct QuantiseChoices {
  std::string model, out, input;
  std::vector<std::string> calibration;  // files of inputs
  double percentile = 100;
  QuantiseOptions options;
  ModelShapes shapes;  // without an input file
  FileLimits limits;
  std::uint32_t threads = 1;
};

struct Outputs {
  std::vector<std::string> names;
  std::vector<HostTensor> values;
};

Result<Outputs> outputs_of(const onnx::Model& model, const std::string& name, const safetensors::File& inputs,
                           const QuantiseChoices& choices) {
  const FileLimits& limits = choices.limits;
  IMPRINT_ASSIGN(const ImportedModel imported,
                 with_remedy(import_for(model, choices.input, inputs, limits.bytes()), limits));
  IMPRINT_ASSIGN(const std::vector<HostTensor> given, host_tensors(imported, inputs));
  IMPRINT_ASSIGN(Computer computer, Computer::open("cpu", {}, limits.bytes(), choices.threads));
  const ProgramDescription description{
      .name = name, .inputs = imported.input_tensors(), .outputs = imported.output_tensors()};
  IMPRINT_ASSIGN(Program program, with_remedy(Program::compile(computer.runtime(), description), limits));
  IMPRINT_CHECK(check_work(name, limits, program.stats()));
  Outputs outputs;
  for (const ImportedValue& output : imported.outputs) outputs.names.push_back(output.name);
  IMPRINT_ASSIGN(outputs.values, computer.session().run(program, given));
  return outputs;
}

// Rows of the last axis whose largest element is the same, of all rows.
std::pair<std::size_t, std::size_t> equal_choices(const HostTensor& a, const HostTensor& b) {
  const auto width = a.shape.rank() > 0 ? static_cast<std::ptrdiff_t>(a.shape[a.shape.rank() - 1]) : 1;
  std::size_t equal = 0, rows = 0;
  for (std::ptrdiff_t row = 0; row < std::ssize(a.floats); row += width, ++rows) {
    const auto best = [&](const HostTensor& x) {
      const auto begin = x.floats.begin() + row;
      return std::max_element(begin, begin + width) - begin;
    };
    equal += best(a) == best(b);
  }
  return {equal, rows};
}

void print_change(const std::string& name, const HostTensor& before, const HostTensor& after) {
  // The shape may follow from a weight, as that of its places that are not 0.
  if (before.dtype != after.dtype || before.shape != after.shape) {
    std::printf("  %s: %s %s becomes %s %s\n", clipped(name).c_str(), dtype_name(before.dtype).data(),
                before.shape.text().c_str(), dtype_name(after.dtype).data(), after.shape.text().c_str());
    return;
  }
  if (before.dtype != DType::float32 || before.floats.empty()) return;
  double change = 0, size = 0, most = 0;
  for (std::size_t i = 0; i < before.floats.size(); ++i) {
    const double x = static_cast<double>(before.floats[i]), d = static_cast<double>(after.floats[i]) - x;
    change += d * d;
    size += x * x;
    most = std::max(most, std::abs(d));
  }
  const auto [equal, rows] = equal_choices(before, after);
  std::printf(
      "  %s %s: change %.4f of its size (root mean square), at most %.3g; the largest of a row is the "
      "same in %zu of %zu rows\n",
      clipped(name).c_str(), before.shape.text().c_str(), size > 0 ? std::sqrt(change / size) : 0, most,
      equal, rows);
}

// The range of all values but those beyond the percentile, half of them on either side.
QuantiseOptions::Range range_of(std::vector<float>& values, double percentile) {
  if (values.empty()) return {};
  const auto beyond =
      static_cast<std::ptrdiff_t>(static_cast<double>(values.size()) * (100 - percentile) / 200);
  const auto low = values.begin() + beyond, high = values.end() - 1 - beyond;
  std::nth_element(values.begin(), low, values.end());
  const float least = *low;
  std::nth_element(values.begin(), high, values.end());
  return {least, *high};
}

// Ranges of the activations for the files of inputs.
Result<std::map<std::string, QuantiseOptions::Range>> calibrated(const onnx::Model& model,
                                                                 const QuantiseChoices& choices) {
  const SlowStep slow("calibrating");
  onnx::Model observed = model;
  observed.graph.outputs.clear();
  for (const std::string& name : quantised_activations(model, choices.options)) {
    onnx::ValueInfo& output = observed.graph.outputs.emplace_back();
    output.name = name;
    output.is_tensor = true;
    output.type = onnx::ElementType::float32;
  }
  std::map<std::string, QuantiseOptions::Range> ranges;
  if (observed.graph.outputs.empty()) return ranges;
  std::map<std::string, std::vector<float>> values;
  for (const std::string& path : choices.calibration) {
    IMPRINT_ASSIGN(const safetensors::File inputs, safetensors::load(path));
    IMPRINT_ASSIGN(const Outputs found, outputs_of(observed, path, inputs, choices));
    for (std::size_t i = 0; i < found.values.size(); ++i) {
      const std::vector<float>& more = found.values[i].floats;
      std::vector<float>& all = values[found.names[i]];
      all.insert(all.end(), more.begin(), more.end());
    }
  }
  for (auto& [name, found] : values) ranges[name] = range_of(found, choices.percentile);
  return ranges;
}

Result<> quantise(const QuantiseChoices& given) {
  QuantiseChoices choices = given;
  if (choices.input.empty() && !choices.calibration.empty()) choices.input = choices.calibration[0];
  IMPRINT_CHECK(check_replaceable(choices.out));
  IMPRINT_ASSIGN(const onnx::Model model, load_limited(choices.model, choices.limits));
  IMPRINT_ASSIGN(const std::vector<std::byte> file, read_file(choices.model));
  if (!choices.calibration.empty()) {
    IMPRINT_ASSIGN(choices.options.activations, calibrated(model, choices));
  }
  QuantisedModel made;
  {
    const SlowStep slow("quantising");
    IMPRINT_ASSIGN(made, quantise_onnx(file, model, choices.options));
  }
  if (made.weights.empty())
    return make_error(
        ErrorCode::unsupported,
        text("'", choices.model, "': found no weight to quantise, expected float32 initializers of ",
             choices.options.least_elements, " elements or more. Lower --least."));
  IMPRINT_ASSIGN(const onnx::Model after, onnx::parse(made.file));
  for (const QuantisedWeight& weight : made.weights)
    std::printf("  %d bits, change %.4f of its size: %s %s\n", weight.bits, weight.error,
                clipped(weight.name).c_str(), weight.shape.text().c_str());
  std::printf("%zu weights; initializers of %llu bytes become %llu (%.1f %%)\n", made.weights.size(),
              static_cast<unsigned long long>(made.bytes_before),
              static_cast<unsigned long long>(made.bytes_after),
              100.0 * static_cast<double>(made.bytes_after) / static_cast<double>(made.bytes_before));
  if (made.activations > 0) std::printf("%zu activations become 8-bit numbers\n", made.activations);
  const SlowStep slow("comparing");
  IMPRINT_ASSIGN(const safetensors::File inputs,
                 choices.input.empty()
                     ? noise_for(model, choices.model, choices.shapes, choices.limits.bytes())
                     : safetensors::load(choices.input));
  IMPRINT_ASSIGN(const Outputs exact, outputs_of(model, choices.model, inputs, choices));
  IMPRINT_ASSIGN(const Outputs rounded, outputs_of(after, choices.out, inputs, choices));
  IMPRINT_CHECK(write_file_atomic(choices.out, made.file));
  std::printf("outputs for %s:\n",
              choices.input.empty() ? "noise (give --input for data of your own)" : choices.input.c_str());
  for (std::size_t i = 0; i < exact.values.size() && i < rounded.values.size(); ++i)
    print_change(exact.names[i], exact.values[i], rounded.values[i]);
  return {};
}

struct ConvertChoices {
  std::string model, out;
  ModelShapes shapes;
  FileLimits limits;
};

// An exported model is a graph and its bytes, beside the imported one, whose constants are of the host and of
// a graph.
constexpr std::uint64_t kFormsOfFile = 6;

std::optional<safetensors::Type> type_of(onnx::ElementType type) {
  using enum onnx::ElementType;
  using safetensors::Type;
  constexpr std::pair<onnx::ElementType, Type> kTypes[] = {
      {float32, Type::float32}, {float16, Type::float16}, {bfloat16, Type::bfloat16},
      {float64, Type::float64}, {int8, Type::int8},       {int16, Type::int16},
      {int32, Type::int32},     {int64, Type::int64},     {uint8, Type::uint8},
      {uint16, Type::uint16},   {uint32, Type::uint32},   {uint64, Type::uint64},
      {boolean, Type::boolean}};
  for (const auto& [from, to] : kTypes)
    if (from == type) return to;
  return std::nullopt;
}

// The initializers of an ONNX file.
weights::File weights_of(const onnx::Model& model) {
  weights::File file{.format = "ONNX", .tensors = {}, .left_out = {}};
  for (const onnx::TensorData& tensor : model.graph.initializers) {
    const auto type = type_of(tensor.type);
    const bool fits = tensor.extents.size() <= static_cast<std::size_t>(Shape::kMaxRank);
    if (!type || !fits || !is_utf8(tensor.name)) {
      file.left_out.push_back({tensor.name, !type  ? "elements of " + onnx::element_type_name(tensor.type)
                                            : fits ? "a name that is not UTF-8"
                                                   : "more axes than Imprint has"});
      continue;
    }
    Shape shape;
    for (const std::int64_t extent : tensor.extents) shape.append(extent);
    file.tensors.arrays[tensor.name] = {*type, shape, SharedBytes(tensor.bytes)};
  }
  return file;
}

struct Converted {
  std::vector<std::byte> file;
  std::size_t nodes = 0;  // of the model that was read
};

Result<Converted> converted(const ConvertChoices& choices) {
  FileLimits limits = choices.limits;
  IMPRINT_ASSIGN(const onnx::Model model, load_limited(choices.model, limits));
  const ImportOptions options{.constant_limit_bytes = limits.bytes()};
  IMPRINT_ASSIGN(const ImportedModel imported,
                 with_remedy(import_at(model, choices.model, choices.shapes, options), limits));
  OnnxExport what;
  what.constant_limit_bytes = limits.bytes() / kFormsOfFile;
  for (const ImportedValue& input : imported.inputs) what.inputs.push_back({input.name, input.tensor});
  for (const ImportedValue& output : imported.outputs) what.outputs.push_back({output.name, output.tensor});
  IMPRINT_ASSIGN(std::vector<std::byte> file, with_remedy(export_onnx(what), limits));
  return Converted{std::move(file), model.graph.nodes.size()};
}

// The model as Imprint computes it, for these shapes. It is gone before the file is read again.
Result<> convert_model(const ConvertChoices& choices) {
  IMPRINT_ASSIGN(const Converted made, converted(choices));
  IMPRINT_ASSIGN(const onnx::Model written, onnx::parse(made.file));
  IMPRINT_CHECK(write_file_atomic(choices.out, made.file));
  std::printf("%zu nodes become %zu, %zu bytes\n", made.nodes, written.graph.nodes.size(), made.file.size());
  return {};
}

Result<> convert(const ConvertChoices& choices) {
  IMPRINT_CHECK(check_replaceable(choices.out));
  const SlowStep slow("converting");
  if (choices.model.ends_with(".onnx") && choices.out.ends_with(".onnx")) return convert_model(choices);
  weights::File file;
  if (choices.model.ends_with(".onnx")) {
    FileLimits limits = choices.limits;
    IMPRINT_ASSIGN(const onnx::Model model, load_limited(choices.model, limits));
    file = weights_of(model);
  } else {
    IMPRINT_ASSIGN(file, weights::load(choices.model));
  }
  for (const weights::LeftOut& entry : file.left_out)
    std::fprintf(stderr, "left out: %s: %s\n", quote(entry.name).c_str(), clipped(entry.reason).c_str());
  IMPRINT_CHECK(safetensors::save(file.tensors, choices.out));
  std::size_t bytes = 0;
  for (const auto& [name, array] : file.tensors.arrays) {
    bytes += array.bytes.size();
    std::printf("  %s %s %s\n", clipped(name).c_str(),
                std::string(safetensors::type_name(array.type)).c_str(), array.shape.text().c_str());
  }
  std::printf("%s: %s, %zu bytes\n", file.format.c_str(),
              amount(file.tensors.arrays.size(), "tensor").c_str(), bytes);
  return {};
}

}  // namespace

void add_quantise(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "quantise", "write a model with 8-bit or 4-bit weights, and measure what that changes on the CPU");
  auto choices = std::make_shared<QuantiseChoices>();
  command->add_option("model", choices->model, "an ONNX file")->required()->type_name("MODEL.onnx");
  command->add_option("out", choices->out, "the file for the result")->required()->type_name("OUT.onnx");
  command
      ->add_option(
          "--bits", choices->options.bits,
          "8: a scale per output channel; 4: of MatMul's weights, a scale per block, and 8 for others")
      ->check(CLI::IsMember({8, 4}))
      ->option_text("N=8");
  command->add_option("--block", choices->options.block, "4 bits: weights that share a scale")
      ->check(CLI::IsMember({16, 32, 64, 128, 256}))
      ->option_text("N=32");
  command
      ->add_option("--least", choices->options.least_elements, "weights with fewer elements stay as they are")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 40))
      ->option_text("N=1024");
  command
      ->add_option("--input", choices->input,
                   "inputs to compare the outputs for, as for imprint run; without a file they are noise")
      ->type_name("IN.safetensors");
  command
      ->add_option("--calibrate", choices->calibration,
                   "inputs that show the ranges of activations, which then become 8-bit numbers too; may be "
                   "repeated. Give --input for others that measure the loss")
      ->type_name("IN.safetensors");
  command
      ->add_option("--percentile", choices->percentile,
                   "share of an activation's values inside its range; 100: from the least to the largest")
      ->check(CLI::Range(90.0, 100.0))
      ->option_text("P=100");
  add_shape_option(*command, choices->shapes);
  command->add_option("--batch", choices->shapes.batch, "without --input: size of open dimensions")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 31))
      ->option_text("N=1");
  add_memory_limit_option(*command, choices->limits);
  add_work_limit_option(*command, choices->limits);
  add_threads_option(*command, choices->threads);
  set_work(*command, [choices] { return quantise(*choices); });
}

void add_convert(CLI::App& app) {
  CLI::App* command = app.add_subcommand("convert",
                                         "write the weights of an ONNX, PyTorch, GGUF, NumPy or safetensors "
                                         "file as safetensors, or an ONNX model "
                                         "for fixed shapes");
  auto choices = std::make_shared<ConvertChoices>();
  command->add_option("model", choices->model, "the file; nothing in it is executed")
      ->required()
      ->type_name("FILE");
  command
      ->add_option("out", choices->out,
                   "the file for the weights; with the end .onnx: for the model, by operators of opset 18 "
                   "without bodies")
      ->required()
      ->type_name("OUT.safetensors");
  add_shape_option(*command, choices->shapes);
  command->add_option("--batch", choices->shapes.batch, "of a model: size of open dimensions")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 31))
      ->option_text("N=1");
  add_memory_limit_option(*command, choices->limits);
  set_work(*command, [choices] { return convert(*choices); });
}

}  // namespace imprint::tools
