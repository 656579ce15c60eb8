#pragma once
// Workloads that several processes learn together, each on a device of its own: speed, time in sums, result.

#include <chrono>
#include <cstdint>
#include <string>

#include "imprint/studio_compute.h"

namespace imprint::studio {

struct BenchSettings {
  std::string share = "minibatches";  // or "updates"
  bool compressed = false;            // sums as float16
  bool messages = false;              // sums by messages and copies, not in memory that GPUs map
  std::int64_t samples = 0;           // of all processes, when the run ends; 0: by seconds alone
  double seconds = 10;                // of rank 0, after the first runs: when the run ends at the latest
  std::int64_t count = 0;             // worlds, or rows of a batch, per process; 0: the workload's own
  std::string shader_cache;           // folder; empty: none
  std::uint64_t cap_mib = 0;          // of each device's memory; 0: none
  std::uint64_t seed = 1;

  bool by_updates() const { return share == "updates"; }
  bool maps() const { return !compressed && !messages; }
};

// Figures of all processes, from the end of the first runs on.
struct BenchOutcome {
  std::int64_t samples = 0;  // since the start
  double per_second = 0;
  double sums_share = 0;  // of rank 0's time: waiting for the others and adding
  std::string score_name;
  double score = 0;
};

// Counts runs, each of as many samples in every process, until the settings' end.
class BenchClock {
 public:
  BenchClock(const BenchSettings& settings, std::int64_t samples_per_run);

  double progress() const;  // 0 .. 1
  // After each run, in all processes. True: it was the last.
  bool is_over();
  BenchOutcome outcome() const { return outcome_; }  // after the last

 private:
  using Clock = std::chrono::steady_clock;
  static double seconds_since(Clock::time_point start);

  BenchSettings settings_;
  std::int64_t per_run_ = 0, runs_ = 0, next_question_ = 0;
  Clock::time_point from_ = Clock::now();  // the end of the first runs
  double sums_from_ = 0, asked_s_ = 0;
  BenchOutcome outcome_;
};
// Sum over all processes.
double total_of(double own);
// The functions that add up, as the settings say.
void share(ProgramSequence& sequence, const BenchSettings& settings);

Result<BenchOutcome> bench_cart_pole(Session& session, const BenchSettings& settings);
Result<BenchOutcome> bench_pictures(Session& session, const BenchSettings& settings);
Result<BenchOutcome> bench_sac(Session& session, const BenchSettings& settings);
Result<> bench_costs(Session& session);  // prints its own line
Result<BenchOutcome> bench_gpt(Session& session, const BenchSettings& settings);

}  // namespace imprint::studio
