#include "tools/imprint/bench.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "compute/base/text.h"
#include "compute/vk/barrier.h"
#include "tools/imprint/commands.h"
#include "tools/imprint/profile_table.h"
#include "tools/imprint/workloads.h"

namespace imprint::tools {
namespace {

constexpr std::uint32_t kProfiledRuns = 5;  // of each kernel

struct BenchOptions {
  std::string suite = "all", device, json, markdown, only, tuning;
  std::string command;  // as it was given
  bool list = false, profile = false;
  std::vector<std::string> models;
  ModelBench how;  // of models
  Repeats repeats;
  std::uint32_t in_a_row = kChainedRuns, threads = 1;
};

// The columns, for --help, in lines of kHelpWidth.
constexpr const char* kColumns =
    R"(Columns: medians in microseconds, with the 95th percentile in brackets. A figure that does not
apply is empty.
  gpu        one run between timestamps, with copies of its inputs and outputs
  replayed   the same, as the recorded command buffer that frames run
  pieces     the same, as the separately recorded pieces that slicing runs
  chained    one of --in-a-row runs in one command buffer
  wall       from submit to the end of the wait
  cpu        CPU time of the submitting thread
  disp., barr., alloc.
             dispatches, barriers and allocations per run; a measured run that allocates fails, and
             so does a frame that waits
  kB, kFLOP  per run, from its schedule; GB/s and TFLOP/s (suite ops) use gpu and count operands
             and results once

Suite frame: frames that inferred (learning-off), ran a slice of learning (learning-on), or did
both on a busy thread (tick); or every frame with work in a game that learns (every), with the
99th percentile, the longest frame, and the waits of the frame thread. There cpu is the frame
thread's CPU time in all of Imprint's calls of a frame, wall is the same by the clock, and a
second line lists the calls.

Suite worlds ends with million steps per second of all agents, by chained; by wall for a learner
from its first step to its last (to-the-end; cpu: its world is on the CPU). On a software device
the operands of suite ops are smaller; the names of its rows say so.

Suite nets ends with the memory of intermediates (arena), the device memory in use with
parameters, optimiser and data (memory), and the time to compile. Rows with -16 are of mixed
precision.

Suite train: epochs of a Trainer. wall is an epoch's time per step, gpu the step's program alone.

Suite plan: CPU time to plan graphs of about 50,000 nodes, from tensors to kernels. The device
does not matter.

On the CPU (--device cpu) suites policy, learn, learners, pet, kennel, nets, extents, train and
frame run on the calling thread, or on --threads, except suite frame: wall and chained are its
time, and so is gpu of suite frame.)";

struct Suite {
  const char* name;
  std::vector<BenchCase> (*cases)();
  bool on_cpu;    // runs without a Vulkan device too
  bool programs;  // each benchmark is a program that explain and tune can take
};
constexpr Suite kSuites[] = {{"floor", floor_cases, false, false},  {"policy", policy_cases, true, true},
                             {"learn", learn_cases, true, true},    {"learners", learner_cases, true, true},
                             {"pet", pet_cases, true, true},        {"kennel", kennel_cases, true, true},
                             {"ops", ops_cases, false, true},       {"nets", nets_cases, true, true},
                             {"worlds", worlds_cases, false, true}, {"frame", frame_cases, true, false},
                             {"plan", plan_cases, true, false},     {"extents", extents_cases, true, true},
                             {"train", train_cases, true, true}};

std::vector<BenchCase> chosen_cases(const BenchOptions& options) {
  if (!options.models.empty()) return model_cases(options.models, options.how);
  std::vector<BenchCase> cases;
  for (const Suite& suite : kSuites) {
    if (options.suite != "all" && options.suite != suite.name) continue;
    if (bridge::names_cpu(options.device) && !suite.on_cpu) continue;
    for (BenchCase& one : suite.cases()) {
      if (one.name.find(options.only) != std::string::npos) cases.push_back(std::move(one));
    }
  }
  // A whole name means that benchmark alone, though others begin with it.
  if (std::ranges::find(cases, options.only, &BenchCase::name) != cases.end())
    std::erase_if(cases, [&](const BenchCase& one) { return one.name != options.only; });
  return cases;
}

Error nothing_to_run(const BenchOptions& options) {
  const bool on_cpu = bridge::names_cpu(options.device);
  for (const Suite& suite : kSuites)
    if (on_cpu && options.suite == suite.name && !suite.on_cpu)
      return make_error(ErrorCode::unsupported, text("suite ", options.suite,
                                                     " measures a Vulkan device, and --device cpu is none. "
                                                     "Choose another device."));
  return make_error(
      ErrorCode::not_found,
      text("no benchmark ", options.suite == "all" ? "" : "of suite " + options.suite + " ", "matches '",
           options.only, "'", on_cpu ? " on the CPU" : "", ". See imprint bench --list."));
}

nlohmann::ordered_json to_json(const Spread& spread) {
  return {{"median", spread.median}, {"p95", spread.p95}, {"p99", spread.p99}};
}

nlohmann::ordered_json to_json(const BenchResult& r) {
  nlohmann::ordered_json calls = nlohmann::ordered_json::object();
  for (const BenchResult::Calls& one : r.calls) calls[one.name] = to_json(one.wall_us);
  return {{"name", r.name},
          {"gpu_us", to_json(r.gpu_us)},
          {"replayed_gpu_us", to_json(r.replayed_us)},
          {"chained_gpu_us", to_json(r.chained_us)},
          {"pieces_gpu_us", to_json(r.pieces_us)},
          {"wall_us", to_json(r.wall_us)},
          {"frame_cpu_us", to_json(r.frame_cpu_us)},
          {"calls_wall_us", calls},
          {"samples", r.samples},
          {"samples_are", r.samples_are},
          {"dispatches", r.dispatches},
          {"barriers", r.barriers},
          {"allocations", r.allocations},
          {"bytes", r.bytes},
          {"flops", r.flops},
          {"arena_bytes", r.arena_bytes},
          {"memory_bytes", r.memory_bytes},
          {"compile_ms", r.compile_ms},
          {"gb_per_s", r.gb_per_s},
          {"tflop_per_s", r.tflop_per_s},
          {"waits", r.waits},
          {"most_us", r.most_us},
          {"steps_per_s", r.steps_per_s},
          {"nodes", r.nodes},
          {"planned_kernels", r.planned_kernels}};
}

void print_header(const Computer& computer) {
  std::printf("%s, %s; microseconds, median (p95); columns: imprint bench --help\n\n",
              computer.name().c_str(), computer.driver().c_str());
  std::printf("%-34s %19s %9s %9s %10s %19s %9s %6s %6s %6s %10s %10s %8s %8s\n", "name", "gpu", "replayed",
              "pieces", "chained", "wall", "cpu", "disp.", "barr.", "alloc.", "kB", "kFLOP", "GB/s",
              "TFLOP/s");
}

// Empty where nothing was measured.
std::string column(double value, int width, int digits) {
  char text[32] = "";
  if (value != 0) std::snprintf(text, sizeof text, "%.*f", digits, value);
  return std::string(std::max(0, width - static_cast<int>(std::strlen(text))), ' ') + text;
}

std::string column(const Spread& spread) {
  if (spread.median == 0) return std::string(19, ' ');
  char text[48];
  std::snprintf(text, sizeof text, "%9.1f (%7.1f)", spread.median, spread.p95);
  return text;
}

void print_row(const BenchResult& r) {
  std::printf("%-34s %s %s %s %s %s %s %6u %6u %6llu %s %s", r.name.c_str(), column(r.gpu_us).c_str(),
              column(r.replayed_us.median, 9, 1).c_str(), column(r.pieces_us.median, 9, 1).c_str(),
              column(r.chained_us.median, 10, 2).c_str(), column(r.wall_us).c_str(),
              column(r.frame_cpu_us.median, 9, 1).c_str(), r.dispatches, r.barriers,
              static_cast<unsigned long long>(r.allocations),
              column(static_cast<double>(r.bytes) * 1e-3, 10, 1).c_str(),
              column(static_cast<double>(r.flops) * 1e-3, 10, 1).c_str());
  if (r.gb_per_s > 0 || r.tflop_per_s > 0) std::printf(" %8.1f %8.2f", r.gb_per_s, r.tflop_per_s);
  if (r.most_us > 0)
    std::printf("   p99 %.1f, most %.1f us of %llu frames, %llu waits", r.gpu_us.p99, r.most_us,
                static_cast<unsigned long long>(r.samples), static_cast<unsigned long long>(r.waits));
  if (r.compile_ms > 0)
    std::printf("   arena %.1f MiB, memory %.1f MiB, compiled in %.0f ms",
                static_cast<double>(r.arena_bytes) / (1 << 20),
                static_cast<double>(r.memory_bytes) / (1 << 20), r.compile_ms);
  if (r.steps_per_s > 0) std::printf(" %8.3f M steps/s", r.steps_per_s * 1e-6);
  if (r.nodes > 0)
    std::printf("   %llu nodes, %u kernels, %.3f M nodes/s", static_cast<unsigned long long>(r.nodes),
                r.planned_kernels, static_cast<double>(r.nodes) / r.frame_cpu_us.median);
  std::puts("");
  if (!r.calls.empty()) {
    std::string line = "  of wall:";
    char part[64];
    for (const BenchResult::Calls& calls : r.calls) {
      std::snprintf(part, sizeof part, "  %s %.2f", calls.name, calls.wall_us.median);
      line += part;
    }
    std::puts(line.c_str());
  }
  std::fflush(stdout);
}

Result<> write_file(const std::string& path, const std::string& content) {
  std::ofstream file(path);
  file << content;
  file.close();
  if (!file) return make_error(ErrorCode::io, text("cannot write '", path, "'"));
  return {};
}

// The options that were given, as a command line that repeats them.
std::string as_given(const CLI::App& command) {
  std::string line = "imprint " + command.get_name();
  for (const CLI::Option* option : command.get_options()) {
    if (option->count() == 0) continue;
    line += " " + option->get_name();
    if (option->get_expected_max() > 0)
      for (const std::string& value : option->results()) line += " " + value;
  }
  return line;
}

std::string today() {
  const std::time_t now = std::time(nullptr);
  char date[16] = "";
  std::strftime(date, sizeof date, "%Y-%m-%d", std::gmtime(&now));
  return date;
}

std::string json_text(const BenchOptions& options, const Computer& computer,
                      const std::vector<BenchResult>& results) {
  nlohmann::ordered_json json{{"device", computer.name()},
                              {"driver", computer.driver()},
                              {"date", today()},
                              {"command", options.command},
                              {"results", nlohmann::ordered_json::array()}};
  for (const BenchResult& result : results) json["results"].push_back(to_json(result));
  return json.dump(2) + "\n";
}

// Medians only.
std::string markdown_text(const Computer& computer, const std::vector<BenchResult>& results) {
  std::string text =
      computer.name() + ", " + computer.driver() + "\n\n" +
      "| | gpu | replayed | pieces | chained | wall | cpu | dispatches | barriers | kB | kFLOP |\n" +
      "| --- | --: | --: | --: | --: | --: | --: | --: | --: | --: | --: |\n";
  const auto cell = [](double value, int digits) {
    char number[32];
    std::snprintf(number, sizeof(number), "%.*f", digits, value);
    return value == 0 ? std::string(" | ") : " | " + std::string(number);
  };
  for (const BenchResult& r : results) {
    text += "| `" + r.name + "`" + cell(r.gpu_us.median, 1) + cell(r.replayed_us.median, 1) +
            cell(r.pieces_us.median, 1) + cell(r.chained_us.median, 1) + cell(r.wall_us.median, 1) +
            cell(r.frame_cpu_us.median, 1) + cell(r.dispatches, 0) + cell(r.barriers, 0) +
            cell(static_cast<double>(r.bytes) * 1e-3, 1) + cell(static_cast<double>(r.flops) * 1e-3, 1) +
            " |\n";
  }
  return text;
}

Result<> run_bench(const BenchOptions& options) {
  const std::vector<BenchCase> cases = chosen_cases(options);
  if (cases.empty()) return nothing_to_run(options);
  if (options.list) {
    // The names are the same on all Vulkan devices, so the device is opened only to check that it exists.
    if (!options.device.empty()) IMPRINT_CHECK(Computer::open(options.device));
    for (const BenchCase& one : cases) std::puts(one.name.c_str());
    return {};
  }
  IMPRINT_CHECK(check_writable(options.json));
  IMPRINT_CHECK(check_writable(options.markdown));
  BenchDevice device{.name = options.device,
                     .repeats = options.repeats,
                     .in_a_row = options.in_a_row,
                     .profile = options.profile};
  IMPRINT_ASSIGN(device.computer, Computer::open(options.device, {}, kDefaultMemoryCap, options.threads));
  if (!device.computer.on_cpu()) {
    IMPRINT_ASSIGN(device.timer, GpuTimer::create(device.context()));
  }
  if (!options.tuning.empty()) IMPRINT_CHECK(use_tuning_file(device.computer, options.tuning));

  print_header(device.computer);
  std::vector<BenchResult> results;
  std::size_t failed = 0;
  for (const BenchCase& one : cases) {
    auto result = one.run(device);
    if (result) {
      print_row(*result);
      if (result->allocations > 0) {
        std::printf(
            "%-34s failed: its measured runs allocated device memory %llu times; a replay must not "
            "allocate\n",
            one.name.c_str(), static_cast<unsigned long long>(result->allocations));
        ++failed;
      } else if (result->waits > 0) {
        std::printf("%-34s failed: its frame thread waited %llu times; a frame must not wait\n",
                    one.name.c_str(), static_cast<unsigned long long>(result->waits));
        ++failed;
      }
      results.push_back(std::move(*result));
    } else {
      // Go on: the others may still be measured.
      std::printf("%-34s failed: %s\n", one.name.c_str(), result.error().message.c_str());
      ++failed;
    }
  }
  if (!options.json.empty())
    IMPRINT_CHECK(write_file(options.json, json_text(options, device.computer, results)));
  if (!options.markdown.empty())
    IMPRINT_CHECK(write_file(options.markdown, markdown_text(device.computer, results)));
  if (failed > 0)
    return make_error(ErrorCode::internal,
                      text(failed, " of ", cases.size(), " benchmarks failed, see above"));
  return {};
}

// Uploads state and every slot's inputs, which are no part of a measured run.
Result<> run_each_slot_once(bridge::Context& context, const Program& program) {
  constexpr std::uint64_t kTimeoutNs = 60'000'000'000;
  IMPRINT_ASSIGN(const Commands uploads, program::stream_uploads(context.runtime(), *context.queue()));
  std::vector<VkCommandBuffer> commands;
  if (uploads.primary) commands.push_back(uploads.primary);
  for (std::uint32_t slot = 0; slot < program.slot_count(); ++slot)
    commands.push_back(program.whole(slot, VK_COMMAND_BUFFER_LEVEL_PRIMARY));
  IMPRINT_ASSIGN(const vk::Ticket ticket, context.queue()->submit(commands));
  return context.queue()->wait(ticket, kTimeoutNs);
}

}  // namespace

Spread spread(std::vector<double> samples) {
  if (samples.empty()) return {};
  std::ranges::sort(samples);
  // The smallest sample that is at least as large as the given share of all samples.
  const auto quantile = [&](double share) {
    const auto rank = static_cast<std::size_t>(std::ceil(share * static_cast<double>(samples.size())));
    return samples[std::clamp<std::size_t>(rank, 1, samples.size()) - 1];
  };
  return {quantile(0.5), quantile(0.95), quantile(0.99)};
}

namespace {

// The calling thread computes, so its time is the wall time.
Result<BenchResult> measure_on_cpu(const Repeats& repeats, std::uint32_t in_a_row, Program& program,
                                   const std::string& name) {
  std::vector<double> wall_us, chained_us;
  const auto now_us = [] {
    return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
  };
  const double start = now_us();
  for (std::uint32_t run = 0; run < repeats.warmup || now_us() - start < 2e5; ++run) {
    IMPRINT_CHECK(program.run_pieces(run % program.slot_count(), 0, program.piece_count()));
    if (now_us() - start > repeats.seconds * 1e6) break;
  }
  const double measuring = now_us();
  while (wall_us.size() < repeats.measured &&
         (wall_us.size() < 10 || now_us() - measuring < repeats.seconds * 1e6)) {
    const double before = now_us();
    IMPRINT_CHECK(program.run_pieces(0, 0, program.piece_count()));
    const double after = now_us();
    for (std::uint32_t run = 0; run < in_a_row; ++run)
      IMPRINT_CHECK(program.run_pieces(run % program.slot_count(), 0, program.piece_count()));
    wall_us.push_back(after - before);
    chained_us.push_back((now_us() - after) / in_a_row);
  }
  BenchResult result;
  result.name = name;
  result.wall_us = result.frame_cpu_us = spread(wall_us);
  result.chained_us = spread(chained_us);
  result.samples = wall_us.size();
  return result;
}

void add_figures(const ProgramStats& stats, BenchResult& result) {
  result.dispatches = stats.dispatches;
  result.barriers = stats.barriers;
  result.bytes = stats.bytes_moved;
  result.flops = stats.flops;
  result.arena_bytes = stats.arena_bytes;
}

}  // namespace

Result<BenchResult> measure_program(BenchDevice& device, Program& program, const std::string& name) {
  if (device.look) {
    IMPRINT_CHECK(device.look(program));
    return BenchResult{.name = name};
  }
  if (device.computer.on_cpu()) {
    IMPRINT_ASSIGN(BenchResult result, measure_on_cpu(device.repeats, device.in_a_row, program, name));
    add_figures(program.stats(), result);
    if (device.profile) IMPRINT_CHECK(print_profile(device.computer, program, kProfiledRuns));
    return result;
  }
  vk::Device& vulkan = device.context().device();
  const vk::Functions& f = vulkan.functions();
  constexpr auto kSecondary = VK_COMMAND_BUFFER_LEVEL_SECONDARY;
  const auto execute = [&](VkCommandBuffer into, std::span<const VkCommandBuffer> commands) {
    f.vkCmdExecuteCommands(into, static_cast<std::uint32_t>(commands.size()), commands.data());
  };
  // A slot's pieces without the upload at its start and the download at its end.
  const auto kernels = [&](std::uint32_t slot) {
    return program.pieces(slot, kSecondary).subspan(1, program.piece_count() - 2);
  };
  const VkCommandBuffer barrier = device.runtime().barrier().secondary;

  IMPRINT_CHECK(run_each_slot_once(device.context(), program));
  const std::uint64_t allocations = vulkan.counters().allocations;
  BenchResult result;
  result.name = name;
  result.memory_bytes = vulkan.memory().stats().bytes_in_use;
  IMPRINT_ASSIGN(const Timing encoded,
                 device.timer->time(device.repeats, [&](VkCommandBuffer into) { program.encode(into, 0); }));
  IMPRINT_ASSIGN(const Timing whole, device.timer->time(device.repeats, [&](VkCommandBuffer into) {
    const VkCommandBuffer run = program.whole(0, kSecondary);
    execute(into, std::span(&run, 1));
  }));
  IMPRINT_ASSIGN(const Timing alone, device.timer->time(device.repeats, [&](VkCommandBuffer into) {
    execute(into, std::span(&barrier, 1));
    execute(into, kernels(0));
  }));
  IMPRINT_ASSIGN(const Timing chained, device.timer->time(device.repeats, [&](VkCommandBuffer into) {
    for (std::uint32_t i = 0; i < device.in_a_row; ++i) {  // as a ProgramSequence records them
      vk::memory_barrier(f, into, vk::our_writes(vk::kWorkStages), vk::our_accesses(vk::kWorkStages));
      program.encode(into, i % program.slot_count());
    }
  }));
  result.gpu_us = spread(encoded.gpu_us);
  result.replayed_us = spread(whole.gpu_us);
  result.wall_us = spread(whole.wall_us);
  result.frame_cpu_us = spread(whole.cpu_us);
  result.samples = encoded.gpu_us.size();
  result.pieces_us = spread(alone.gpu_us);
  result.chained_us = spread(chained.gpu_us);
  for (double* one : {&result.chained_us.median, &result.chained_us.p95, &result.chained_us.p99})
    *one /= device.in_a_row;
  result.allocations = vulkan.counters().allocations - allocations;
  add_figures(program.stats(), result);
  if (device.profile) IMPRINT_CHECK(print_profile(device.computer, program, kProfiledRuns));
  return result;
}

std::vector<BenchCase> program_cases(bool on_cpu) {
  std::vector<BenchCase> cases;
  for (const Suite& suite : kSuites)
    if (suite.programs && (suite.on_cpu || !on_cpu))
      std::ranges::move(suite.cases(), std::back_inserter(cases));
  return cases;
}

std::vector<BenchCase> cases_without_program() {
  std::vector<BenchCase> cases;
  for (const Suite& suite : kSuites)
    if (!suite.programs) std::ranges::move(suite.cases(), std::back_inserter(cases));
  return cases;
}

std::string program_suites(bool on_cpu) {
  std::string names;
  for (const Suite& suite : kSuites)
    if (suite.programs && (suite.on_cpu || !on_cpu))
      names += (names.empty() ? "" : ", ") + std::string(suite.name);
  return names;
}

void add_bench(CLI::App& app) {
  auto options = std::make_shared<BenchOptions>();
  CLI::App* command = app.add_subcommand("bench", "measure the time of programs and frames on a device");
  command->footer(kColumns);
  std::vector<std::string> names{"all"};
  std::string list = "all";
  for (const Suite& suite : kSuites) {
    names.emplace_back(suite.name);
    list += ", " + names.back();
  }
  command->add_option("models", options->models, "ONNX files, instead of a suite")->type_name("MODEL.onnx");
  add_shape_option(*command, options->how.shapes);
  command->add_option("--batch", options->how.shapes.batch, "size of the models' open dimensions")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 31))
      ->option_text("N=1");
  command
      ->add_option_function<std::string>(
          "--precision",
          [options](const std::string& name) { options->how.precision = precision_named(name); },
          "of the models: float32; mixed: large products read float16; float16: images are kept in float16 "
          "too")
      ->check(CLI::IsMember({"float32", "mixed", "float16"}))
      ->option_text("TYPE=float32");
  command->add_flag(
      "--copied", options->how.copied,
      "of the models: each run copies inputs from the host and outputs to it; rows NAME-copied");
  add_memory_limit_option(*command, options->how.limits);
  add_work_limit_option(*command, options->how.limits);
  command->add_option("--suite", options->suite, list)->check(CLI::IsMember(names))->option_text("SUITE=all");
  command->add_option("--device", options->device, kDeviceHelp)->type_name("DEVICE");
  add_threads_option(*command, options->threads);
  command->add_option("--json", options->json, "write the results to this file")->type_name("FILE");
  command->add_option("--markdown", options->markdown, "write the medians as a table to this file")
      ->type_name("FILE");
  command->add_option("--tuning", options->tuning, "a table of imprint tune, for all suites except frame")
      ->type_name("FILE");
  command
      ->add_option("--only", options->only,
                   "only benchmarks whose name contains this; a whole name means that one alone")
      ->type_name("TEXT");
  command->add_option("--warmup", options->repeats.warmup, "runs before measuring, for at most --seconds")
      ->option_text("N=20");
  command->add_option("--repeats", options->repeats.measured, "measured runs, at most 100000")
      ->check(CLI::Range(1u, 100000u))
      ->option_text("N=200");
  command
      ->add_option("--seconds", options->repeats.seconds,
                   "time for a benchmark's measured runs, 0.001 to 3600")
      ->check([](const std::string& given) {
        double seconds = 0;
        return CLI::detail::lexical_cast(given, seconds) && seconds >= 1e-3 && seconds <= 3600
                   ? std::string()
                   : "found '" + given + "', expected 0.001 to 3600";
      })
      ->capture_default_str();
  command
      ->add_option("--in-a-row", options->in_a_row,
                   "runs in one command buffer for column chained, at most 1000")
      ->check(CLI::Range(1u, 1000u))
      ->option_text("N=" + std::to_string(kChainedRuns));
  command->add_flag("--profile", options->profile,
                    "print the time of each kernel of each program, the costliest first, before its row");
  command->add_flag("--list", options->list,
                    "print the names of the benchmarks that would run (on --device), and stop");
  set_work(*command, [options, command] {
    options->command = as_given(*command);
    return run_bench(*options);
  });
}

}  // namespace imprint::tools
