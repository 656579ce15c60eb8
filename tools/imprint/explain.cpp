// imprint explain: a program's schedule, and a lower bound of each dispatch's time.

#include <CLI/CLI.hpp>
#include <cstdio>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>

#include "compute/base/amount.h"
#include "compute/base/text.h"
#include "tools/imprint/commands.h"
#include "tools/imprint/explain_floors.h"
#include "tools/imprint/workloads.h"

namespace imprint::tools {

using namespace graph;

namespace {

struct ExplainOptions {
  std::string program, device, json, tuning;
  ModelShapes shapes;
  Precision precision = Precision::float32;
  bool glsl = false;
  DeviceFigures figures;
};

struct Explained {
  std::string name;
  ProgramStats stats;
  std::vector<ScheduleFigures> parts;
};

Result<BenchCase> find_program(const std::string& asked, bool on_cpu) {
  auto found = find_workloads(asked, on_cpu);
  if (!found && found.error().code == ErrorCode::not_found)
    return make_error(
        ErrorCode::not_found,
        text("program: found '", asked, "', expected an ONNX file (MODEL.onnx) or a program of suites ",
             program_suites(on_cpu), ". See imprint bench --list."));
  if (!found) return found.error();
  if (found->size() > 1)
    std::printf("%zu programs have '%s' in their names; this is the first\n", found->size(), asked.c_str());
  return found->front();
}

Result<Explained> built_in(BenchDevice& device, const BenchCase& chosen) {
  Explained explained{.name = chosen.name};
  IMPRINT_CHECK(look_at(device, chosen, [&](Program& program) {
    explained.stats = program.stats();
    explained.parts = program.schedule();
  }));
  return explained;
}

Result<Explained> model(BenchDevice& device, const std::string& file, const ModelShapes& shapes,
                        Precision precision) {
  IMPRINT_ASSIGN(const Program program, compile_model(device.runtime(), file, shapes, 1, precision));
  return Explained{file, program.stats(), program.schedule()};
}

// 1.5 k, 20 M.
std::string short_number(double number) {
  static constexpr const char* kUnits[] = {"", " k", " M", " G", " T"};
  std::size_t unit = 0;
  for (; number >= 999.5 && unit + 1 < std::size(kUnits); ++unit) number /= 1000;
  char text[32];
  std::snprintf(text, sizeof text, unit == 0 || number >= 99.95 ? "%.0f%s" : "%.1f%s", number, kUnits[unit]);
  return text;
}

// The chosen variant, the reason, and the other variants.
void print_choice(const VariantChoice& choice) {
  std::string others;
  for (const std::string& variant : choice.variants)
    if (variant != choice.taken) others += (others.empty() ? "" : ", ") + variant;
  const std::string why = choice.from_table ? "by the table"
                          : choice.refused.empty()
                              ? "by the cost model"
                              : "by the cost model, as the table's " + choice.refused + " cannot be made";
  std::printf("            %s: %s, %s; else %s\n", choice.kernel.c_str(), choice.taken.c_str(), why.c_str(),
              others.c_str());
}

nlohmann::ordered_json to_json(const VariantChoice& choice) {
  return {{"kernel", choice.kernel},
          {"variant", choice.taken},
          {"by", choice.from_table ? "table" : "cost model"},
          {"refused", choice.refused},
          {"variants", choice.variants}};
}

void print_dispatch(std::size_t number, const DispatchFigures& dispatch, const DeviceFigures& figures,
                    bool glsl) {
  const Floor floor = floor_of(dispatch, figures);
  std::uint64_t bytes = 0, operations = 0;
  for (const KernelFigures& kernel : dispatch.kernels) {
    bytes += kernel.bytes_read + kernel.bytes_written;
    operations += kernel.operations;
  }
  const std::string groups = dispatch.workgroups > 0 ? std::to_string(dispatch.workgroups) + " x " +
                                                           std::to_string(dispatch.invocations)
                                                     : "";
  std::printf("%4zu  %-7s %14s %10s %10s", number, dispatch.barrier_before ? "barrier" : "", groups.c_str(),
              short_number(static_cast<double>(bytes)).c_str(),
              short_number(static_cast<double>(operations)).c_str());
  if (figures.launch_us > 0)
    std::printf(" %8.2f %8.2f %8.2f %9.2f", floor.launch_us, floor.bytes_us, floor.arithmetic_us,
                floor.total_us());
  std::puts("");
  for (const KernelFigures& kernel : dispatch.kernels) {
    std::printf("        %s: reads %sB, writes %sB, %s operations\n", kernel.kind.c_str(),
                short_number(static_cast<double>(kernel.bytes_read)).c_str(),
                short_number(static_cast<double>(kernel.bytes_written)).c_str(),
                short_number(static_cast<double>(kernel.operations)).c_str());
    std::printf("          %s\n", kernel.text.c_str());
    for (const std::string& stage : kernel.stages) std::printf("            - %s\n", stage.c_str());
    for (const VariantChoice& choice : kernel.choices) print_choice(choice);
  }
  if (glsl && !dispatch.glsl.empty()) std::printf("\n%s\n", dispatch.glsl.c_str());
}

void print_table(const Explained& explained, const BenchDevice& device, const ExplainOptions& options) {
  const DeviceFigures& figures = options.figures;
  const ProgramStats& stats = explained.stats;
  std::printf("%s on %s: %s of %s, %s, %sB of intermediates (%sB if none shared memory)\n",
              explained.name.c_str(), device.computer.name().c_str(),
              amount(stats.dispatches, "dispatch").c_str(), amount(stats.kernels, "kernel").c_str(),
              amount(stats.barriers, "barrier").c_str(),
              short_number(static_cast<double>(stats.arena_bytes)).c_str(),
              short_number(static_cast<double>(stats.unplanned_bytes)).c_str());
  if (figures.launch_us > 0)
    std::printf(
        "The floor of a dispatch is its launch plus the longer of bytes and arithmetic. This device: %.2f "
        "us, "
        "%.0f GB/s, %.2f TFLOP/s.\n"
        "Bytes in a cache take less time.\n",
        figures.launch_us, figures.gb_per_s, figures.tflop_per_s);
  double total = 0;
  for (const ScheduleFigures& part : explained.parts) {
    std::puts("");
    if (explained.parts.size() > 1 || part.repeat > 1)
      std::printf("%u x %s\n", part.repeat, part.name.c_str());
    for (const std::string& note : part.notes) std::printf("note: %s\n", note.c_str());
    std::printf("%4s  %-7s %14s %10s %10s", "", "", "workgroups", "bytes", "operations");
    if (figures.launch_us > 0) std::printf(" %8s %8s %8s %9s", "launch", "bytes", "arith.", "floor us");
    std::puts("");
    for (std::size_t i = 0; i < part.dispatches.size(); ++i) {
      print_dispatch(i, part.dispatches[i], figures, options.glsl);
      if (figures.launch_us > 0) total += part.repeat * floor_of(part.dispatches[i], figures).total_us();
    }
  }
  if (figures.launch_us > 0) std::printf("\nfloor of one run: %.2f us\n", total);
}

nlohmann::ordered_json to_json(const DispatchFigures& dispatch, const ExplainOptions& options) {
  nlohmann::ordered_json json{{"barrier_before", dispatch.barrier_before},
                              {"workgroups", dispatch.workgroups},
                              {"invocations", dispatch.invocations}};
  for (const KernelFigures& kernel : dispatch.kernels) {
    json["kernels"].push_back({{"kind", kernel.kind},
                               {"text", kernel.text},
                               {"stages", kernel.stages},
                               {"bytes_read", kernel.bytes_read},
                               {"bytes_written", kernel.bytes_written},
                               {"operations", kernel.operations},
                               {"choices", nlohmann::ordered_json::array()}});
    for (const VariantChoice& choice : kernel.choices)
      json["kernels"].back()["choices"].push_back(to_json(choice));
  }
  if (options.figures.launch_us > 0) {
    const Floor floor = floor_of(dispatch, options.figures);
    json["floor_us"] = {{"launch", floor.launch_us},
                        {"bytes", floor.bytes_us},
                        {"arithmetic", floor.arithmetic_us},
                        {"total", floor.total_us()}};
  }
  if (options.glsl) json["glsl"] = dispatch.glsl;
  return json;
}

Result<> write_json(const Explained& explained, const BenchDevice& device, const ExplainOptions& options) {
  const ProgramStats& stats = explained.stats;
  nlohmann::ordered_json json{{"program", explained.name},
                              {"device", device.computer.name()},
                              {"dispatches", stats.dispatches},
                              {"kernels", stats.kernels},
                              {"barriers", stats.barriers},
                              {"bytes", stats.bytes_moved},
                              {"operations", stats.flops},
                              {"arena_bytes", stats.arena_bytes},
                              {"parts", nlohmann::ordered_json::array()}};
  for (const ScheduleFigures& part : explained.parts) {
    nlohmann::ordered_json own{{"name", part.name},
                               {"repeat", part.repeat},
                               {"notes", part.notes},
                               {"dispatches", nlohmann::ordered_json::array()}};
    for (const DispatchFigures& dispatch : part.dispatches)
      own["dispatches"].push_back(to_json(dispatch, options));
    json["parts"].push_back(std::move(own));
  }
  std::ofstream file(options.json);
  file << json.dump(2) << "\n";
  file.close();
  return file ? Result<>() : make_error(ErrorCode::io, text("cannot write '", options.json, "'"));
}

Result<Explained> compile(BenchDevice& device, const ExplainOptions& options) {
  if (options.program.ends_with(".onnx"))
    return model(device, options.program, options.shapes, options.precision);
  IMPRINT_ASSIGN(const BenchCase chosen, find_program(options.program, device.computer.on_cpu()));
  return built_in(device, chosen);
}

Result<> explain(ExplainOptions& options) {
  if (!options.json.empty()) IMPRINT_CHECK(check_writable(options.json));
  BenchDevice device{.name = options.device, .repeats = {.warmup = 3, .measured = 20, .seconds = 0.5}};
  IMPRINT_ASSIGN(device.computer, Computer::open(options.device));
  if (!options.tuning.empty()) IMPRINT_CHECK(use_tuning_file(device.computer, options.tuning));
  if (!device.computer.on_cpu()) {
    IMPRINT_ASSIGN(device.timer, GpuTimer::create(device.context()));
  }
  IMPRINT_ASSIGN(const Explained explained, compile(device, options));
  if (device.timer) IMPRINT_CHECK(measure_figures(device, options.figures));  // last, as it takes seconds
  print_table(explained, device, options);
  return options.json.empty() ? Result<>() : write_json(explained, device, options);
}

}  // namespace

void add_explain(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "explain", "show a program's kernels and barriers on a device, and a lower bound of their time");
  auto options = std::make_shared<ExplainOptions>();
  command->add_option("program", options->program, std::string("an ONNX file, or ") + kWorkloadHelp)
      ->required()
      ->type_name("PROGRAM");
  command->add_option("--device", options->device, kDeviceHelp)->type_name("DEVICE");
  add_shape_option(*command, options->shapes);
  command->add_option("--batch", options->shapes.batch, "size of a model's open dimensions")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 31))
      ->option_text("N=1");
  command
      ->add_option_function<std::string>(
          "--precision", [options](const std::string& name) { options->precision = precision_named(name); },
          "of a model: float32, mixed or float16, as in imprint run")
      ->check(CLI::IsMember({"float32", "mixed", "float16"}));
  command->add_option("--tuning", options->tuning, "a table of imprint tune")->type_name("FILE");
  command->add_flag("--glsl", options->glsl, "also print the GLSL of each dispatch");
  command->add_option("--json", options->json, "also write the figures to this file")->type_name("FILE");
  command
      ->add_option("--launch-us", options->figures.launch_us,
                   "launch time of a dependent dispatch; measured by default")
      ->check(CLI::Range(1e-6, 1e9))
      ->option_text("NUMBER");
  command->add_option("--gb-per-s", options->figures.gb_per_s, "memory bandwidth; measured by default")
      ->check(CLI::Range(1e-6, 1e9))
      ->option_text("NUMBER");
  command
      ->add_option("--tflop-per-s", options->figures.tflop_per_s,
                   "float32 multiply-adds; measured by default")
      ->check(CLI::Range(1e-6, 1e9))
      ->option_text("NUMBER");
  set_work(*command, [options] { return explain(*options); });
}

}  // namespace imprint::tools
