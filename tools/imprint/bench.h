#pragma once
// `imprint bench`: what one run costs on a device. Also the pieces that its suites share.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "compute/base/result.h"
#include "compute/program/program.h"
#include "tools/imprint/bench_timer.h"
#include "tools/imprint/computer.h"

namespace CLI {
class App;
}

namespace imprint::tools {

// Add the subcommands to the command line.
void add_bench(CLI::App& app);
void add_explain(CLI::App& app);  // explain.cpp
void add_tune(CLI::App& app);     // tune.cpp

// Runs of BenchResult::chained_us unless asked otherwise (--in-a-row): compile programs with this many slots,
// of which longer rows take each again.
inline constexpr std::uint32_t kChainedRuns = 8;

struct Spread {
  double median = 0, p95 = 0, p99 = 0;
};
// Zeros for no samples.
Spread spread(std::vector<double> samples);

// One line of the table. Times are microseconds of one run; what does not apply is left at 0.
struct BenchResult {
  std::string name;
  Spread gpu_us;  // timestamps round a whole run alone, encoded between them, copies of its inputs and
                  // outputs included where it has any
  Spread
      replayed_us;  // the same of the command buffer that was recorded for it, with the barrier in its front
  Spread
      chained_us;  // the same round several runs encoded back to back as the turns of a ProgramSequence are,
                   // each depending on the one before, divided by the runs (suite floor: by dispatches)
  Spread pieces_us;     // the same round the run's dispatches as the separately recorded pieces that slicing
                        // executes, without the copies
  Spread wall_us;       // submit until the host knows that it is complete
  Spread frame_cpu_us;  // CPU time of the submitting thread inside the submit (suite frame: inside all of
                        // Imprint's calls of a frame)
  struct Calls {
    const char* name = "";
    Spread wall_us;
  };
  std::vector<Calls> calls;  // suite frame: what a frame's calls take one by one
  std::string samples_are = "runs";
  std::uint64_t samples = 0;  // of gpu_us
  std::uint32_t dispatches = 0, barriers = 0;
  std::uint64_t allocations = 0;  // vkAllocateMemory calls while measuring
  std::uint64_t bytes = 0;        // read and written by the kernels of one run
  std::uint64_t flops = 0;
  // Suite ops, by gpu_us: the bytes of an operation's operand and result alone, however often its kernels
  // read them; its arithmetic.
  double gb_per_s = 0, tflop_per_s = 0;
  std::uint64_t waits = 0;  // suite frame: of the frame thread, while measuring
  double most_us = 0;       // suite frame, rows of every frame: the dearest by gpu_us
  double steps_per_s = 0;   // suite worlds, by chained_us (to the end: by wall_us): of all agents together
};

// A device opened once for all cases but those of the suite frame, which has contexts of its own on the same
// device.
struct BenchDevice {
  std::string name;  // as Computer::open takes it
  Computer computer;
  std::unique_ptr<GpuTimer> timer;  // null on the processor
  Repeats repeats;
  std::uint32_t in_a_row = kChainedRuns;
  std::function<Status(Program&)>
      look;  // what is done with a case's program in the place of measuring it; empty: it is measured

  Runtime& runtime() { return computer.runtime(); }
  bridge::Context& context() { return computer.standalone().context(); }  // not on the processor
};

struct BenchCase {
  std::string name;  // a path: suite/what/variant
  std::function<Result<BenchResult>(BenchDevice&)> run;
};

std::vector<BenchCase> floor_cases();
std::vector<BenchCase> policy_cases();
std::vector<BenchCase> learn_cases();
std::vector<BenchCase> pet_cases();
std::vector<BenchCase> kennel_cases();
std::vector<BenchCase> ops_cases();
std::vector<BenchCase> worlds_cases();
std::vector<BenchCase> frame_cases();

// Of suites whose cases are programs of their own, or of those among them that run on the processor too; and
// the names of these suites, in a row.
std::vector<BenchCase> program_cases(bool on_cpu = false);
std::string program_suites(bool on_cpu = false);
// The others: suite floor measures the device, and the programs of suite frame are the plugin's.
std::vector<BenchCase> cases_without_program();

// Warm-up, then measured runs of slots 0 .. slot_count - 1. The inputs must have been written.
Result<BenchResult> measure_program(BenchDevice& device, Program& program, const std::string& name);

}  // namespace imprint::tools
