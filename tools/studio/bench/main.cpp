// imprint_studio_bench: one workload in all processes of a run; rank 0 prints one line of JSON.
//
//   IMPRINT_STUDIO_DEVICES=0,1 mpirun --bind-to none -np 2 imprint_studio_bench pictures --seconds 10

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <vector>

#include "engine-bridge/own/standalone.h"
#include "tools/studio/bench/bench.h"

namespace imprint::studio {

double total_of(double own) {
  float number = static_cast<float>(own);
  all_reduce()(std::span(&number, 1));
  return static_cast<double>(number);
}

void share(ProgramSequence& sequence, const BenchSettings& settings) {
  sequence.all_reduce = all_reduce(settings.compressed);
  if (settings.maps()) sequence.shared_sums = shared_sums();
}

namespace {
constexpr std::int64_t kFirstRuns = 3;  // uploads, caches, clocks: not measured
}

BenchClock::BenchClock(const BenchSettings& settings, std::int64_t samples_per_run)
    : settings_(settings), per_run_(samples_per_run * ranks()), next_question_(kFirstRuns) {}

double BenchClock::seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

double BenchClock::progress() const {
  const double done = settings_.samples > 0
                          ? static_cast<double>(outcome_.samples) / static_cast<double>(settings_.samples)
                          : seconds_since(from_) / settings_.seconds;
  return std::min(done, 1.0);
}

bool BenchClock::is_over() {
  ++runs_;
  outcome_.samples += per_run_;
  bool over = settings_.samples > 0 && outcome_.samples >= settings_.samples;
  if (runs_ == kFirstRuns) {
    total_of(0);
    from_ = Clock::now();
    sums_from_ = seconds_in_sums();
  }
  if (runs_ >= next_question_ && !over) {
    // Rank 0's clock ends the run, in all processes alike.
    const double before = seconds_in_sums();
    over = total_of(rank() == 0 && seconds_since(from_) >= settings_.seconds ? 1 : 0) > 0;
    if (runs_ > kFirstRuns) asked_s_ += seconds_in_sums() - before;
    next_question_ = runs_ + std::max<std::int64_t>(1, runs_ / 8);
  }
  if (!over) return false;
  const double elapsed = seconds_since(from_);
  const auto measured = static_cast<double>((runs_ - kFirstRuns) * per_run_);
  outcome_.per_second = runs_ > kFirstRuns ? measured / elapsed : 0;
  outcome_.sums_share = (seconds_in_sums() - sums_from_ - asked_s_) / elapsed;
  return true;
}

namespace {

struct Workload {
  const char* name;
  Result<BenchOutcome> (*run)(Session&, const BenchSettings&);
};
constexpr Workload kWorkloads[] = {
    {"cartpole", bench_cart_pole}, {"pictures", bench_pictures}, {"sac", bench_sac}, {"gpt", bench_gpt}};

Result<> run(const std::string& name, const BenchSettings& settings) {
  const Workload* workload = std::ranges::find(kWorkloads, name, &Workload::name);
  const std::string chosen = device();
  std::unique_ptr<bridge::Standalone> standalone;
  std::unique_ptr<Runtime> runtime;
  std::unique_ptr<Session> own;
  if (bridge::names_cpu(chosen)) {
    runtime = Runtime::create_on_cpu();
    own = std::make_unique<Session>(*runtime);
  } else {
    vk::DeviceOptions options;
    options.memory.cap_bytes = settings.cap_mib << 20;
    options.shader_cache_directory = settings.shader_cache;
    IMPRINT_ASSIGN(standalone, bridge::Standalone::open({.device = chosen,
                                                         .copy_queues = ranks() > 1 && !settings.messages,
                                                         .options = options}));
  }
  Session& session = own ? *own : standalone->session();
  if (name == "costs") return bench_costs(session);
  IMPRINT_ASSIGN(const BenchOutcome outcome, workload->run(session, settings));
  double memory_mib = 0;
  if (standalone)
    memory_mib =
        static_cast<double>(standalone->context().device().memory().stats().bytes_reserved) / (1 << 20);
  const double total_memory = total_of(memory_mib);
  if (rank() > 0) return {};
  nlohmann::ordered_json row;
  row["name"] = "studio/" + name + "/" + settings.share +
                (settings.compressed ? "/float16"
                 : settings.messages ? "/messages"
                                     : "");
  row["ranks"] = ranks();
  row["steps_per_s"] = outcome.per_second;
  row["sums_share"] = outcome.sums_share;
  row[outcome.score_name] = outcome.score;
  row["samples"] = outcome.samples;
  row["memory_mib"] = total_memory / ranks();
  row["device"] = standalone ? standalone->context().device().capabilities().device_name : std::string("CPU");
  std::printf("%s\n", row.dump().c_str());
  std::fflush(stdout);
  return {};
}

}  // namespace
}  // namespace imprint::studio

int main(int argc, char** argv) {
  using namespace imprint::studio;
  BenchSettings settings;
  std::string name;
  CLI::App app{
      "Learns one workload in all processes of mpirun, each on its device (IMPRINT_STUDIO_DEVICES)."};
  app.add_option("workload", name, "cartpole, pictures, sac, gpt or costs")
      ->required()
      ->check(CLI::IsMember({"cartpole", "pictures", "sac", "gpt", "costs"}));
  app.add_option("--share", settings.share, "minibatches or updates")
      ->check(CLI::IsMember({"minibatches", "updates"}));
  app.add_flag("--float16", settings.compressed, "send float16");
  app.add_flag("--messages", settings.messages, "no memory that GPUs map, no copies beside computing");
  app.add_option("--samples", settings.samples, "of all processes until the end; 0: by seconds");
  app.add_option("--seconds", settings.seconds, "until the end at the latest");
  app.add_option("--count", settings.count, "worlds, or rows of a batch, of each process");
  app.add_option("--memory-mib", settings.cap_mib, "most that a device's memory may be; 0: any");
  app.add_option("--shader-cache", settings.shader_cache, "folder for compiled shaders");
  app.add_option("--seed", settings.seed, "of weights and worlds");
  CLI11_PARSE(app, argc, argv);
  if (const imprint::Result<> done = run(name, settings); !done.ok()) fail(done.error().message);
  finish();
  return 0;
}
