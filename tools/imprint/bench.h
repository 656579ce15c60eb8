#pragma once
// `imprint bench`: the time of one run on a device. Also what its suites share.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "compute/base/result.h"
#include "compute/program/program.h"
#include "tools/imprint/bench_timer.h"
#include "tools/imprint/computer.h"
#include "tools/imprint/file_limits.h"
#include "tools/imprint/model_shapes.h"

namespace CLI {
class App;
}

namespace imprint::tools {

// Add the subcommands to the command line.
void add_bench(CLI::App& app);
void add_explain(CLI::App& app);  // explain.cpp
void add_tune(CLI::App& app);     // tune.cpp

// Default of --in-a-row: runs for BenchResult::chained_us. Compile programs with this many slots; longer rows
// reuse them.
inline constexpr std::uint32_t kChainedRuns = 8;

struct Spread {
  double median = 0, p95 = 0, p99 = 0;
};
// All 0 without samples.
Spread spread(std::vector<double> samples);

// One line of the table. Times are microseconds per run; a figure that does not apply is 0.
struct BenchResult {
  std::string name;
  Spread gpu_us;        // one run encoded between timestamps, with copies of its inputs and outputs
  Spread replayed_us;   // the same for the recorded command buffer, with the barrier at its start
  Spread chained_us;    // several dependent runs encoded back to back, divided by their number (suite floor:
                        // by dispatches)
  Spread pieces_us;     // the run's dispatches as separately recorded pieces, without the copies
  Spread wall_us;       // from submit until the host knows that it is complete (suite train: of an epoch,
                        // per step)
  Spread frame_cpu_us;  // CPU time of the submitting thread inside the submit (suite frame: inside all of
                        // Imprint's calls of a frame)
  struct Calls {
    const char* name = "";
    Spread wall_us;
  };
  std::vector<Calls> calls;  // suite frame: each call of a frame
  std::string samples_are = "runs";
  std::uint64_t samples = 0;  // of gpu_us
  std::uint32_t dispatches = 0, barriers = 0;
  std::uint64_t allocations = 0;  // vkAllocateMemory calls while measuring
  std::uint64_t bytes = 0;        // read and written by the kernels of one run
  std::uint64_t flops = 0;
  std::uint64_t arena_bytes = 0;   // intermediates
  std::uint64_t memory_bytes = 0;  // device memory in use after a run: intermediates, variables, staging
  double compile_ms = 0;           // suite nets: from tensors to a program that runs
  // Suite ops, by gpu_us: bytes of operands and result, each counted once, and arithmetic.
  double gb_per_s = 0, tflop_per_s = 0;
  std::uint64_t waits = 0;            // suite frame: of the frame thread, while measuring
  double most_us = 0;                 // suite frame, rows of every frame: the longest, by gpu_us
  std::uint64_t nodes = 0;            // suite plan: of the graph, before planning
  std::uint32_t planned_kernels = 0;  // suite plan
  double steps_per_s = 0;  // suite worlds, by chained_us (to the end: by wall_us): of all agents together
};

// A device, opened once for all benchmarks. Suite frame opens contexts of its own on the same device.
struct BenchDevice {
  std::string name;  // as Computer::open takes it
  Computer computer;
  std::unique_ptr<GpuTimer> timer;  // null on the CPU
  Repeats repeats;
  std::uint32_t in_a_row = kChainedRuns;
  bool profile = false;                    // print the time of each kernel of a program
  std::function<Result<>(Program&)> look;  // if set, receives a benchmark's program instead of measuring it

  Runtime& runtime() { return computer.runtime(); }
  bridge::Context& context() { return computer.standalone().context(); }  // not on the CPU
};

struct BenchCase {
  std::string name;  // a path: suite/what/variant
  std::function<Result<BenchResult>(BenchDevice&)> run;
};

std::vector<BenchCase> floor_cases();
std::vector<BenchCase> policy_cases();
std::vector<BenchCase> learn_cases();
std::vector<BenchCase> learner_cases();
std::vector<BenchCase> pet_cases();
std::vector<BenchCase> kennel_cases();
std::vector<BenchCase> ops_cases();
std::vector<BenchCase> order_cases();  // bench_order.cpp: part of suite ops
std::vector<BenchCase> nets_cases();
std::vector<BenchCase> extents_cases();
std::vector<BenchCase> train_cases();
std::vector<BenchCase> worlds_cases();
std::vector<BenchCase> frame_cases();
std::vector<BenchCase> plan_cases();
// How models of files are measured: with inputs and outputs in memory of the device, unless `copied`.
struct ModelBench {
  ModelShapes shapes;
  Precision precision = Precision::float32;
  FileLimits limits;    // of each
  bool copied = false;  // inputs from the host and outputs to it, in each run
};
std::vector<BenchCase> model_cases(const std::vector<std::string>& files, const ModelBench& given);

// Benchmarks of the suites that are programs (on_cpu: of those that run on the CPU too), and the suites'
// names.
std::vector<BenchCase> program_cases(bool on_cpu = false);
std::string program_suites(bool on_cpu = false);
// The other suites: floor measures the device; frame runs the plugin's programs.
std::vector<BenchCase> cases_without_program();

// Warms up, then measures runs of slots 0 .. slot_count - 1. Write the inputs first.
Result<BenchResult> measure_program(BenchDevice& device, Program& program, const std::string& name);

}  // namespace imprint::tools
