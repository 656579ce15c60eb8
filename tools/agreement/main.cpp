// Runs models that have reference answers and prints how many agree, by operator.
// Exit status: 0 done and the bars are met; 1 a bar is missed or a folder cannot be read; 2 the command line
// is wrong; 77 no folder is there.

#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <set>

#include "compute/base/amount.h"
#include "compute/base/text.h"
#include "compute/model/files/file.h"
#include "compute/model/files/safetensors.h"
#include "compute/model/onnx/export.h"
#include "compute/model/onnx/import.h"
#include "compute/model/onnx/value.h"
#include "tools/agreement/cases.h"
#include "tools/imprint/computer.h"

namespace imprint::tools {
namespace {

constexpr int kNothingThere = 77;  // ctest skips

struct Options {
  std::vector<std::string> folders;
  std::string device = "cpu", only, apart, keep;
  bool exported = false;
  std::string named;  // axes with named extents: "" none, "rows" or "all"
  std::size_t agreeing = 0, types = 0, wrong = 0;
  bool list = false;
};

enum class Verdict { agrees, refused, wrong };
struct Outcome {
  Verdict verdict = Verdict::agrees;
  std::string reason;
};
Outcome refused(std::string reason) { return {Verdict::refused, std::move(reason)}; }
Outcome wrong(std::string reason) { return {Verdict::wrong, std::move(reason)}; }

std::string part_name(const std::string& name, std::size_t part) { return text(name, "[", part, "]"); }

Result<HostTensor> host_tensor(const onnx::TensorData& data) {
  IMPRINT_ASSIGN(const onnx::HostArray array, onnx::host_array(data));
  if (onnx::is_float(array.type))
    return HostTensor::from({array.floats.begin(), array.floats.end()}, array.shape);
  std::vector<std::int32_t> ints;
  for (const std::int64_t value : array.ints) {
    if (array.type != onnx::ElementType::uint32 && !std::in_range<std::int32_t>(value))
      return make_error(ErrorCode::unsupported, text("an input holds ", value, ", which does not fit int32"));
    ints.push_back(static_cast<std::int32_t>(value));
  }
  HostTensor tensor = HostTensor::from_ints(std::move(ints), array.shape);
  tensor.dtype = onnx::run_time_dtype(array.type);
  return tensor;
}

struct Prepared {
  ImportedModel imported;
  std::map<std::string, onnx::TensorData> given;  // by the import's names
};

// The shape with named extents, whose bounds are larger than the extents: axes of one extent have one name.
// rows: the first axis alone, of inputs that have as many places there as the first input.
Shape with_names(const Shape& shape, const std::string& named, std::int64_t rows) {
  Shape out;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    const std::int64_t extent = shape[axis];
    const bool takes = named == "all" ? extent > 1 : axis == 0 && extent == rows && extent > 0;
    const Extent bounded(text("n", extent), extent + 3);
    out.append(takes ? bounded.bound() : extent);
    if (takes) out.set_name(axis, bounded.axis_name());
  }
  return out;
}

// Shapes may follow from values: a model that is refused for that is imported for these values.
Result<Prepared> prepare(const onnx::Model& model, const Case& one, const std::string& named) {
  Prepared out;
  ImportOptions options;
  std::map<std::string, Shape> shapes;
  bool texts = false;
  for (const auto& [name, value] : one.inputs) {
    if (value.absent()) options.absent_inputs.insert(name);
    if (value.sequence) options.sequence_inputs[name];
    for (std::size_t i = 0; i < value.tensors.size(); ++i) {
      const onnx::TensorData& data = value.tensors[i];
      const Shape shape(data.extents);
      if (value.sequence)
        options.sequence_inputs[name].push_back(shape);
      else
        shapes.emplace(name, shape);
      out.given[value.sequence ? part_name(name, i) : name] = data;
      texts = texts || data.type == onnx::ElementType::string;
    }
  }
  Result<ImportedModel> imported = make_error(ErrorCode::unsupported, "strings");
  if (!texts) imported = import_onnx(model, shapes, options);
  if (!named.empty()) {
    const onnx::ValueInfo* first = model.graph.inputs.empty() ? nullptr : &model.graph.inputs[0];
    const Shape* const leading = first && shapes.contains(first->name) ? &shapes[first->name] : nullptr;
    const std::int64_t rows = leading && leading->rank() > 0 ? (*leading)[0] : 0;
    onnx::Model open = model;
    for (onnx::ValueInfo& input : open.graph.inputs) input.shape.reset();
    for (auto& [name, shape] : shapes) shape = with_names(shape, named, rows);
    // Lists of numbers are often axes, ends or shapes, which must be known.
    for (const bool knows : {false, true}) {
      if (knows)
        for (const auto& [name, data] : out.given)
          if (data.extents.size() <= 1 && onnx::is_integer(data.type)) {
            options.known_inputs[name] = data;
            shapes.erase(name);
          }
      imported = import_onnx(open, shapes, options);
      if (imported) break;
    }
  } else if (!imported && imported.error().code == ErrorCode::unsupported) {
    options.known_inputs = out.given;
    imported = import_onnx(model, shapes, options);
  }
  if (!imported) return imported.error();
  out.imported = std::move(*imported);
  return out;
}

Outcome compared(const Case& one, const std::string& name, const std::string& output, const HostTensor& found,
                 const onnx::TensorData& expected) {
  auto wanted = onnx::host_array(expected);
  if (!wanted) return refused(wanted.error().message);
  if (!(found.shape == wanted->shape))
    return wrong(text(name, ": found shape ", found.shape.text(), ", expected ", wanted->shape.text()));
  const bool floats = onnx::is_float(wanted->type);
  if (floats != (found.dtype == DType::float32))
    return wrong(text(name, ": found ", dtype_name(found.dtype), ", expected ",
                      onnx::element_type_name(wanted->type)));
  for (std::size_t i = 0; i < wanted->ints.size(); ++i)
    if (found.ints[i] != static_cast<std::int32_t>(wanted->ints[i]))
      return wrong(text(name, ": found ", found.ints[i], ", expected ", wanted->ints[i], " at ", i));
  const Tolerance within = tolerance_of(one, output, wanted->type);
  double largest = 0;
  for (const float value : wanted->floats)
    if (std::isfinite(value)) largest = std::max(largest, std::fabs(static_cast<double>(value)));
  for (std::size_t i = 0; i < wanted->floats.size(); ++i) {
    const double a = static_cast<double>(found.floats[i]), b = static_cast<double>(wanted->floats[i]);
    if (a == b || (std::isnan(a) && std::isnan(b))) continue;
    const double limit = within.relative * std::fabs(b) + within.absolute + within.of_largest * largest;
    if (!std::isfinite(a) || !std::isfinite(b) || std::fabs(a - b) > limit)
      return wrong(text(name, ": found ", a, ", expected ", b, " at ", i));
  }
  return {};
}

Outcome compared_texts(const std::string& name, const ImportedText& found, const onnx::TensorData& expected) {
  if (!(found.shape == Shape(expected.extents)))
    return wrong(text(name, ": found shape ", found.shape.text()));
  if (found.strings != expected.strings) return wrong(text(name, ": other strings"));
  return {};
}

// The import as an ONNX file of Imprint's own, read again.
Result<ImportedModel> exported(const ImportedModel& imported, std::vector<std::byte>& file) {
  OnnxExport what;
  for (const ImportedValue& input : imported.inputs) what.inputs.push_back({input.name, input.tensor});
  for (const ImportedValue& output : imported.outputs) what.outputs.push_back({output.name, output.tensor});
  IMPRINT_ASSIGN(file, export_onnx(what));
  IMPRINT_ASSIGN(const onnx::Model model, onnx::parse(file));
  std::map<std::string, Shape> shapes;
  for (const ImportedValue& input : imported.inputs) shapes.emplace(input.name, input.tensor.shape());
  return import_onnx(model, shapes);
}

// For other runtimes: the file, the inputs and what Imprint finds.
Result<> keep(const std::string& stem, std::span<const std::byte> file, const ImportedModel& imported,
              std::span<const HostTensor> inputs, std::span<const HostTensor> results) {
  safetensors::File values;
  const auto add = [&](const std::string& name, const HostTensor& tensor) {
    using safetensors::Array;
    values.arrays[name] = tensor.dtype == DType::float32   ? Array::of(tensor.floats, tensor.shape)
                          : tensor.dtype == DType::boolean ? Array::of_bools(tensor.ints, tensor.shape)
                                                           : Array::of(tensor.ints, tensor.shape);
  };
  for (std::size_t i = 0; i < inputs.size(); ++i) add("in." + imported.inputs[i].name, inputs[i]);
  for (std::size_t i = 0; i < results.size(); ++i) add("out." + imported.outputs[i].name, results[i]);
  IMPRINT_CHECK(write_file_atomic(stem + ".onnx", file));
  return safetensors::save(values, stem + ".safetensors");
}

Outcome run_case(Computer& computer, const onnx::Model& model, const Case& one, const Options& options) {
  auto prepared = prepare(model, one, options.named);
  if (!prepared) return refused(prepared.error().message);
  ImportedModel& imported = prepared->imported;
  std::vector<HostTensor> inputs, results;
  std::vector<std::byte> file;
  if (options.exported) {
    auto again = exported(imported, file);
    if (!again) return refused(again.error().message);
    again->texts = std::move(imported.texts);
    imported = std::move(*again);
  }
  for (const ImportedValue& input : imported.inputs) {
    const auto given = prepared->given.find(input.name);
    if (given == prepared->given.end()) return refused(text("no data for input ", input.name));
    auto tensor = host_tensor(given->second);
    if (!tensor) return refused(tensor.error().message);
    inputs.push_back(std::move(*tensor));
  }
  if (!imported.outputs.empty()) {
    const ProgramDescription description{.name = one.name,
                                         .inputs = imported.input_tensors(),
                                         .outputs = imported.output_tensors(),
                                         .slot_count = 1};
    auto program = Program::compile(computer.runtime(), description);
    if (!program) return refused(program.error().message);
    auto ran = computer.session().run(*program, inputs);
    if (!ran) return refused(ran.error().message);
    results = std::move(*ran);
  }
  if (options.exported && !options.keep.empty())
    if (const auto kept = keep(options.keep + "/" + one.name, file, imported, inputs, results); !kept)
      return refused(kept.error().message);
  std::size_t parts = 0;
  for (const auto& [output, value] : one.outputs)
    for (std::size_t i = 0; i < value.tensors.size(); ++i) {
      ++parts;
      const std::string name = value.sequence ? part_name(output, i) : output;
      Outcome outcome = wrong(text("lacks output ", name));
      for (std::size_t k = 0; k < results.size(); ++k)
        if (imported.outputs[k].name == name)
          outcome = compared(one, name, output, results[k], value.tensors[i]);
      for (const ImportedText& words : imported.texts)
        if (words.name == name) outcome = compared_texts(name, words, value.tensors[i]);
      if (outcome.verdict != Verdict::agrees) return outcome;
    }
  if (one.from_specification && parts != imported.outputs.size() + imported.texts.size())
    return wrong(text("found ", amount(imported.outputs.size(), "output"), ", expected ", parts));
  return {};
}

struct Counts {
  std::size_t agrees = 0, refused = 0, wrong = 0;
};

struct Report {
  Counts cases;
  std::size_t apart = 0, without = 0;
  std::map<std::string, Counts> operators;
  std::vector<std::string> lines;
};

void count(Report& report, const onnx::Model& model, const std::string& path, const Outcome& outcome) {
  const auto add = [&](Counts& counts) {
    ++(outcome.verdict == Verdict::agrees    ? counts.agrees
       : outcome.verdict == Verdict::refused ? counts.refused
                                             : counts.wrong);
  };
  add(report.cases);
  for (const OperatorUse& use : operators_of(model)) add(report.operators[use.name]);
  if (outcome.verdict != Verdict::agrees)
    report.lines.push_back(text(outcome.verdict == Verdict::wrong ? "WRONG   " : "refused ", path, ": ",
                                outcome.reason.substr(0, 300)));
}

// Names of cases, each with a reason: "NAME: REASON". A NAME may be the start of a path's folder or file.
Result<std::map<std::string, std::string>> read_apart(const std::string& path) {
  std::map<std::string, std::string> out;
  if (path.empty()) return out;
  std::ifstream file(path);
  if (!file) return make_error(ErrorCode::not_found, text("cannot read '", path, "'"));
  for (std::string line; std::getline(file, line);)
    if (const auto colon = line.find(": "); !line.starts_with("#") && colon != std::string::npos)
      out[line.substr(0, colon)] = line.substr(colon + 2);
  return out;
}

// A model with a case of its folder's name, or a file.
std::string case_name(const std::filesystem::path& path) {
  return path.filename() == "model.onnx" ? path.parent_path().filename().string() : path.filename().string();
}

void run_model(Computer& computer, const std::string& path, const Options& options, Report& report) {
  const auto model = onnx::load(path);
  if (!model) {
    ++report.cases.refused;
    report.lines.push_back(text("refused ", path, ": ", model.error().message));
    return;
  }
  const auto cases = cases_of(path, *model);
  if (!cases) return count(report, *model, path, refused(cases.error().message));
  if (cases->empty()) {
    ++report.without;
    return;
  }
  Outcome outcome;
  for (const Case& one : *cases)
    if (outcome.verdict == Verdict::agrees) outcome = run_case(computer, *model, one, options);
  count(report, *model, path, outcome);
}

int print(const Options& options, const Report& report) {
  std::size_t agreeing = 0;
  std::printf("%-40s %8s %8s %8s\n", "operator", "agree", "refused", "wrong");
  for (const auto& [name, counts] : report.operators) {
    agreeing += counts.agrees > 0 ? 1 : 0;
    if (options.list || counts.refused + counts.wrong > 0)
      std::printf("%-40s %8zu %8zu %8zu\n", name.c_str(), counts.agrees, counts.refused, counts.wrong);
  }
  for (const std::string& line : report.lines) std::printf("%s\n", line.c_str());
  std::printf(
      "%zu models agree, %zu are refused, %zu are wrong, %zu set apart, %zu without a reference; %zu of %zu "
      "operators have one that agrees\n",
      report.cases.agrees, report.cases.refused, report.cases.wrong, report.apart, report.without, agreeing,
      report.operators.size());
  const auto missed = [](const char* what, std::size_t found, const char* bound, std::size_t expected) {
    std::fprintf(stderr, "imprint_agreement: %s: found %zu, expected at %s %zu\n", what, found, bound,
                 expected);
  };
  if (report.cases.agrees < options.agreeing)
    missed("models that agree", report.cases.agrees, "least", options.agreeing);
  if (agreeing < options.types) missed("operators that agree", agreeing, "least", options.types);
  if (report.cases.wrong > options.wrong) missed("wrong models", report.cases.wrong, "most", options.wrong);
  return report.cases.agrees < options.agreeing || agreeing < options.types ||
         report.cases.wrong > options.wrong;
}

Result<int> run(const Options& options) {
  std::vector<std::string> models;
  for (const std::string& folder : options.folders)
    if (std::filesystem::is_directory(folder))
      for (std::string& path : find_models(folder)) models.push_back(std::move(path));
    else
      std::printf("%s is not there. Debian has ONNX's test data in the package libonnx-testdata.\n",
                  folder.c_str());
  if (models.empty()) return kNothingThere;
  IMPRINT_ASSIGN(const auto apart, read_apart(options.apart));
  IMPRINT_ASSIGN(Computer computer, Computer::open(options.device));
  Report report;
  for (const std::string& path : models) {
    if (path.find(options.only) == std::string::npos) continue;
    if (apart.contains(case_name(path)))
      ++report.apart;
    else
      run_model(computer, path, options, report);
  }
  return print(options, report);
}

}  // namespace
}  // namespace imprint::tools

int main(int argc, char** argv) {
  imprint::tools::Options options;
  CLI::App app("Runs models that have reference answers, and prints how many agree, by operator");
  app.add_option("folders", options.folders, "folders of models")->required()->type_name("FOLDER");
  app.add_option("--device", options.device, "cpu, or a device of imprint devices")
      ->option_text("DEVICE=cpu");
  app.add_option("--only", options.only, "only paths that contain this")->type_name("TEXT");
  app.add_option("--apart", options.apart, "a file of cases that are not run: lines of NAME: REASON")
      ->type_name("FILE");
  app.add_option("--agreeing", options.agreeing, "fail if fewer models agree")->option_text("N=0");
  app.add_option("--types", options.types, "fail if fewer operators have a model that agrees")
      ->option_text("N=0");
  app.add_option("--wrong", options.wrong, "fail if more models are wrong")->option_text("N=0");
  app.add_option("--named", options.named,
                 "give input axes named extents with larger bounds: rows (the first axes), or all")
      ->check(CLI::IsMember({"rows", "all"}))
      ->type_name("AXES");
  app.add_flag("--exported", options.exported, "run each model as export_onnx writes it");
  app.add_option("--keep", options.keep,
                 "with --exported: a folder for these files, their inputs and their outputs")
      ->type_name("FOLDER");
  app.add_flag("--list", options.list, "print each operator, also those that agree");
  CLI11_PARSE(app, argc, argv);
  try {
    const auto status = imprint::tools::run(options);
    if (status) return *status;
    std::fprintf(stderr, "imprint_agreement: %s\n", status.error().message.c_str());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "imprint_agreement: %s\n", error.what());
  }
  return 1;
}
