// imprint tune: measures which kernel variants are fastest on a device, and writes them into a table.

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>

#include "compute/base/amount.h"
#include "compute/base/text.h"
#include "compute/model/files/file.h"
#include "compute/tuning/tuner.h"
#include "compute/tuning/tuning_table.h"
#include "tools/imprint/commands.h"
#include "tools/imprint/workloads.h"

namespace imprint::tools {
namespace {

struct TuneOptions {
  std::vector<std::string> models, workloads;
  std::string device, table;
  std::int64_t batch = 1;
  Precision precision = Precision::float32;
  double seconds = 300;
  std::uint32_t runs = 5;
  bool again = false;
};

// One line per variant, under one line per kernel. The fastest that beats the cost model's goes into the
// table.
bool print_step(const TuningStep& step, std::string& kernel) {
  if (step.us == 0) return true;
  if (step.kernel != kernel) std::printf("  %s\n", step.kernel.c_str());
  kernel = step.kernel;
  if (step.us < 0)
    std::printf("    %-44s cannot be made here\n", step.variant.c_str());
  else if (step.by_cost_model)
    std::printf("    %-44s %10.2f us, by the cost model\n", step.variant.c_str(), step.us);
  else
    std::printf("    %-44s %10.2f us, %+.1f %%\n", step.variant.c_str(), step.us,
                100 * (step.us / step.cost_model_us - 1));
  std::fflush(stdout);
  return true;
}

// Reads the file's tables: the whole text, and the entries for this device.
Result<> read_table(const TuneOptions& options, const vk::Capabilities& device, std::string& text,
                    VariantTable& known) {
  if (!std::filesystem::exists(options.table)) return {};
  IMPRINT_ASSIGN(const std::vector<std::byte> bytes, read_file(options.table));
  text.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  IMPRINT_CHECK(write_tuning_tables({}, device, text));  // damaged, or of another version
  if (options.again) return {};
  if (auto table = read_tuning_tables(text, device)) known = std::move(*table);
  return {};
}

Result<> tune(const TuneOptions& options) {
  if (options.models.empty() && options.workloads.empty())
    return make_error(ErrorCode::invalid_argument,
                      "found nothing to measure. Name models, or programs with --workload.");
  IMPRINT_CHECK(check_writable(options.table));
  std::vector<BenchCase> cases;
  for (const std::string& asked : options.workloads) {
    IMPRINT_ASSIGN(const std::vector<BenchCase> found, find_workloads(asked));
    cases.insert(cases.end(), found.begin(), found.end());
  }
  BenchDevice device{.name = options.device};
  IMPRINT_ASSIGN(device.computer, Computer::open(options.device));
  if (device.computer.on_cpu())
    return make_error(ErrorCode::unsupported,
                      "device: found 'cpu', whose kernels have no variants, expected a Vulkan device.");
  const vk::Capabilities& capabilities = device.context().device().capabilities();
  std::string before, kernel;
  VariantTable known;
  IMPRINT_CHECK(read_table(options, capabilities, before, known));
  const TuningOptions tuning{.seconds = options.seconds,
                             .runs = options.runs,
                             .progress = [&](const TuningStep& step) { return print_step(step, kernel); }};
  IMPRINT_ASSIGN(const std::shared_ptr<Tuner> tuner,
                 Tuner::create(device.runtime(), *device.context().queue(), known, tuning));
  device.runtime().set_tuner(tuner);

  std::printf("%s, %s; microseconds of a run of the whole program\n", device.computer.name().c_str(),
              device.computer.driver().c_str());
  // After each program: stopping loses one program at most.
  const auto save = [&]() -> Result<> {
    IMPRINT_ASSIGN(const std::string text, write_tuning_tables(tuner->table(), capabilities, before));
    return write_file_atomic(options.table, std::as_bytes(std::span(text)));
  };
  const auto start = std::chrono::steady_clock::now();
  std::size_t failed = 0;
  const auto measure = [&](const std::string& name, const std::function<Result<>()>& compile) {
    std::printf("%s\n", name.c_str());
    std::fflush(stdout);
    const TuningStats stats_before = tuner->stats();
    if (const Result<> status = compile(); !status) {
      std::printf("  failed: %s\n", status.error().message.c_str());
      ++failed;
    } else if (const TuningStats now = tuner->stats(); now.failed > stats_before.failed) {
      std::printf("  not measured to the end: %s\n", now.failure.c_str());
      ++failed;
    } else if (now.kernels == stats_before.kernels) {
      const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
      std::puts(taken.count() >= options.seconds
                    ? "  not measured, as --seconds are over"
                    : "  nothing to measure: its kernels have no variants, or are in the table");
    }
    return save();
  };
  for (const BenchCase& one : cases)
    IMPRINT_CHECK(measure(one.name, [&] { return look_at(device, one, [](Program&) {}); }));
  for (const std::string& model : options.models)
    IMPRINT_CHECK(measure(model, [&] {
      const auto program =
          compile_model(device.runtime(), model, {.batch = options.batch}, 1, options.precision);
      return program ? Result<>() : Result<>(program.error());
    }));
  device.runtime().set_tuner(nullptr);

  const TuningStats stats = tuner->stats();
  std::size_t changed = 0;
  for (const auto& [name, variant] : tuner->table()) changed += !known.contains(name);
  std::printf("\n%s, %s measured in %s, %s; %s new in the table\n", amount(stats.programs, "program").c_str(),
              amount(stats.kernels, "kernel").c_str(), amount(stats.variants, "variant").c_str(),
              amount(stats.runs, "run").c_str(), amount(changed, "kernel").c_str());
  if (failed > 0) return make_error(ErrorCode::internal, amount(failed, "program") + " failed, see above");
  return {};
}

}  // namespace

void add_tune(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "tune", "measure which kernel variants are fastest on a device, and write them into a table");
  command->footer(
      "Runs each program on zeros, in every variant that the cost model finds promising. A variant that "
      "saves "
      "less than 2 % is not used.\n"
      "The table is written after each program, so stopping loses one program at most. One file holds the "
      "tables "
      "of many devices and drivers: run this on each. Use it with imprint bench and explain --tuning, or in "
      "a game "
      "with tuning_set.");
  auto options = std::make_shared<TuneOptions>();
  command->add_option("models", options->models, "ONNX files")->type_name("MODEL.onnx");
  command->add_option("--workload", options->workloads, kWorkloadHelp)->type_name("NAME");
  command
      ->add_option("--table", options->table,
                   "the file; kernels that it has for this device are not measured again")
      ->type_name("FILE")
      ->required();
  command->add_option("--device", options->device, kDeviceHelp)->type_name("DEVICE");
  command->add_option("--batch", options->batch, "size of a model's open dimensions")
      ->check(CLI::Range(1, 1 << 30))
      ->option_text("N=1");
  command
      ->add_option_function<std::string>(
          "--precision", [options](const std::string& name) { options->precision = precision_named(name); },
          "of the models: float32, mixed or float16, as in imprint bench")
      ->check(CLI::IsMember({"float32", "mixed", "float16"}))
      ->option_text("TYPE=float32");
  command
      ->add_option("--seconds", options->seconds,
                   "time for measuring and compiling; then the cost model decides the rest")
      ->check(CLI::Range(0.1, 1e5))
      ->option_text("S=300");
  command->add_option("--runs", options->runs, "runs of each variant; the fastest counts")
      ->check(CLI::Range(1u, 1000u))
      ->option_text("N=5");
  command->add_flag("--again", options->again, "also measure what the table has");
  set_work(*command, [options] { return tune(*options); });
}

}  // namespace imprint::tools
