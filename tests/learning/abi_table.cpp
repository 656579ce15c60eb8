// The learners' table: games through the C interface on device cpu, with the learners' defaults unless an
// option is named. Exit status 1 when a bar is missed, 2 after an error. The program needs no Vulkan driver.

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <imprint/imprint.h>

#include "compute/base/text.h"
#include "tests/learning/abi_trial.h"
#include "tests/learning/careless_person.h"
#include "tests/learning/gate_trial.h"

namespace {

using imprint::trials::AbiCheck;
using imprint::trials::AbiCurve;
using imprint::trials::AbiTrial;

struct Bar {
  std::string what;
  std::function<bool(const AbiCurve&)> meets;
  double share = 0.9;  // of the seeds
};

struct Row {
  std::string key;
  AbiTrial trial;
  std::vector<Bar> bars;
};

Bar reaches(double greedy, std::int64_t steps, double share = 0.9) {
  return {imprint::text("greedy >= ", greedy, " within ", steps / 1000, "k"),
          [=](const AbiCurve& curve) { return curve.reached(greedy) >= 0 && curve.reached(greedy) <= steps; },
          share};
}

// A network that does not suit the task.
Bar misses(double greedy) {
  return {imprint::text("greedy < ", greedy, " all the time"),
          [=](const AbiCurve& curve) { return curve.reached(greedy) < 0; }, 0.9};
}

AbiTrial trial(const char* learner, const char* game, std::int64_t steps, std::int64_t check) {
  AbiTrial made;
  made.learner = learner;
  made.game = game;
  made.steps = steps;
  made.check_every = check;
  return made;
}

// Without a signal or demonstrations, and with them.
std::vector<Row> rows_beside() {
  AbiTrial lock = trial("ppo", "lock", 200'000, 10'000), novel = lock, surprised = lock,
           dqn_lock = trial("dqn", "lock", 60'000, 5'000), dqn_novel = dqn_lock,
           dqn_keys = trial("dqn", "keys", 60'000, 5'000), dqn_shown = trial("dqn", "keys", 20'000, 5'000),
           cloned = trial("ppo", "keys", 60'000, 10'000), circle = trial("ppo", "circle", 200'000, 20'000),
           imitated = circle, hill_shown = trial("sac", "shown-mountain-car", 20'000, 5'000);
  for (AbiTrial* crowd : {&lock, &novel, &surprised, &cloned, &circle, &imitated}) crowd->agents = 8;
  novel.signals = dqn_novel.signals = {{"curiosity_strength", 0.5}};
  surprised.signals = {{"curiosity_strength", 0.5}, {"curiosity", IMP_CURIOSITY_SURPRISE}};
  cloned.shown = dqn_shown.shown = imitated.shown = 300;
  hill_shown.shown = 1000;
  cloned.shown_options = {{"pretraining", 200}};
  dqn_shown.shown_options = hill_shown.shown_options = {{"pretraining", 500}};
  circle.tells = imitated.tells = false;
  imitated.signals = {{"imitation_strength", 1}};
  return {{"ppo-lock", lock, {misses(0.5)}},
          {"ppo-lock-novelty", novel, {reaches(0.9, 200'000)}},
          {"ppo-lock-surprise", surprised, {}},
          {"dqn-lock", dqn_lock, {misses(0.5)}},
          {"dqn-lock-novelty", dqn_novel, {}},
          {"dqn-keys", dqn_keys, {misses(0.5)}},
          {"dqn-keys-shown", dqn_shown, {reaches(0.9, 20'000)}},
          {"ppo-keys-shown", cloned, {reaches(0.9, 20'000)}},
          {"ppo-circle", circle, {misses(0.5)}},
          {"ppo-circle-imitation", imitated, {reaches(0.8, 200'000)}},
          {"sac-mountain-car-shown", hill_shown, {reaches(90, 20'000)}}};
}

std::vector<Row> rows() {
  const Bar ends{
      "greedy >= 100 at the end, or an alarm",
      [](const AbiCurve& curve) { return curve.checks.back().greedy >= 100 || !curve.log.empty(); }, 1};
  const std::int64_t change = imprint::trials::kHabitChanges;
  const std::vector<Bar> fights = {
      {"played >= 0.85 of Bayes within 1k",
       [](const AbiCurve& c) { return c.played(0.85) >= 0 && c.played(0.85) <= 1000; }},
      {"again within 4k after the habit changed", [=](const AbiCurve& c) {
         const std::int64_t again = c.played(0.85, change + 500);
         return again >= 0 && again <= change + 4000;
       }}};
  AbiTrial stacked = trial("ppo", "maze", 60'000, 5'000), remembered = trial("ppo", "maze", 150'000, 10'000),
           blind = trial("ppo", "blind-cartpole", 100'000, 5'000);
  stacked.options = {{"stack", 8}};
  remembered.options = {{"cell", IMP_CELL_GRU}};
  remembered.length = 20;
  blind.options = {{"cell", IMP_CELL_GRU}};
  AbiTrial caught = trial("dqn", "catch", 40'000, 5'000),
           caught_by_ppo = trial("ppo", "catch", 100'000, 10'000),
           large = trial("dqn", "catch", 15'000, 3'000), large_by_ppo = trial("ppo", "catch", 60'000, 10'000),
           set = trial("ppo", "nearest", 200'000, 20'000), flat = set;
  caught_by_ppo.agents = large_by_ppo.agents = 8;
  large.pixels = large_by_ppo.pixels = 7;
  large.options = {{"replay_capacity", 1000}};
  set.agents = flat.agents = 16;
  flat.streams = false;
  for (AbiTrial* memory : {&stacked, &remembered, &blind}) memory->agents = 8;
  // rl-zoo's settings.
  AbiTrial hill = trial("dqn", "mountain-car", 120'000, 5'000);
  hill.options = {{"learning_rate", 4e-3}, {"batch_size", 128},           {"replay_capacity", 10'000},
                  {"discount", 0.98},      {"learn_period_frames", 2},    {"target_period", 300},
                  {"epsilon", 0.07},       {"epsilon_decisions", 24'000}, {"rate_half_life", 0}};
  AbiTrial zeros = trial("feedback", "fight", 14'500, 250);
  zeros.miss_is_zero = true;
  std::vector<Row> all = {
      {"dqn-cartpole", trial("dqn", "cartpole", 100'000, 2'500), {reaches(475, 100'000), ends}},
      {"ppo-cartpole", trial("ppo", "cartpole", 60'000, 2'500), {reaches(475, 60'000)}},
      {"ppo-acrobot", trial("ppo", "acrobot", 150'000, 10'000), {reaches(-100, 150'000)}},
      {"ppo-mountain-car", trial("ppo", "mountain-car", 150'000, 10'000), {}},
      {"dqn-mountain-car", hill, {}},
      {"sac-mountain-car", trial("sac", "mountain-car-continuous", 50'000, 5'000), {}},
      {"dqn-acrobot", trial("dqn", "acrobot", 100'000, 10'000), {}},
      {"ppo-maze-stack", stacked, {reaches(0.8, 60'000)}},
      {"ppo-maze-gru", remembered, {reaches(0.8, 150'000)}},
      {"ppo-blind-gru", blind, {reaches(475, 100'000, 0.8)}},
      {"dqn-catch", caught, {}},
      {"ppo-catch", caught_by_ppo, {reaches(0.9, 100'000)}},
      {"dqn-catch-84", large, {}},
      {"ppo-catch-84", large_by_ppo, {}},
      {"ppo-nearest-set", set, {reaches(0.9, 200'000)}},
      {"ppo-nearest-vector", flat, {misses(0.9)}},
      {"sac-pendulum", trial("sac", "pendulum", 20'000, 5'000), {reaches(-200, 20'000)}},
      {"dqn-fight", trial("dqn", "fight", 14'500, 250), fights},
      {"bandit-fight", trial("bandit", "fight", 14'500, 250), fights},
      {"ppo-fight", trial("ppo", "fight", 14'500, 250), fights},
      {"feedback-fight", trial("feedback", "fight", 14'500, 250), fights},
      {"feedback-fight-01", zeros, {fights[0]}}};
  const std::vector<Row> beside = rows_beside();
  all.insert(all.end(), beside.begin(), beside.end());
  return all;
}

// True when all bars are met.
bool run(const Row& row, std::uint64_t first_seed, std::uint64_t seeds, bool every_check, std::FILE* report) {
  std::printf("%s: %s, %s, %lld decisions of %u agents\n", row.key.c_str(), row.trial.learner.c_str(),
              row.trial.game.c_str(), static_cast<long long>(row.trial.steps), row.trial.agents);
  std::vector<AbiCurve> curves;
  for (std::uint64_t seed = first_seed; seed < first_seed + seeds; ++seed) {
    AbiTrial trial = row.trial;
    trial.seed = seed;
    curves.push_back(imprint::trials::run_abi_trial(trial));
    const AbiCurve& curve = curves.back();
    std::printf(
        "  seed %2llu: greedy best %.2f, at the end %.2f; played %.2f; used %llu, dropped %llu, late %llu; "
        "%llu minibatches, last loss %.4g; %.1f s\n",
        static_cast<unsigned long long>(seed), curve.best(), curve.checks.back().greedy,
        curve.checks.back().played, static_cast<unsigned long long>(curve.used),
        static_cast<unsigned long long>(curve.dropped), static_cast<unsigned long long>(curve.late),
        static_cast<unsigned long long>(curve.minibatches), static_cast<double>(curve.last_loss),
        curve.seconds);
    for (const std::string& line : curve.log) std::printf("    log: %s\n", line.c_str());
    for (const AbiCheck& check : curve.checks) {
      if (every_check)
        std::printf("    %8lld %9.2f %9.2f\n", static_cast<long long>(check.steps), check.greedy,
                    check.played);
      if (report)
        std::fprintf(report, "%s,%llu,%lld,%.4f,%.4f\n", row.key.c_str(),
                     static_cast<unsigned long long>(seed), static_cast<long long>(check.steps), check.greedy,
                     check.played);
    }
    std::fflush(stdout);
  }
  bool passed = true;
  for (const Bar& bar : row.bars) {
    const auto met = std::ranges::count_if(curves, bar.meets);
    const bool enough = static_cast<double>(met) >= bar.share * static_cast<double>(seeds) - 1e-9;
    std::printf("  %-44s %lld of %llu  %s\n", bar.what.c_str(), static_cast<long long>(met),
                static_cast<unsigned long long>(seeds), enough ? "met" : "MISSED");
    passed = passed && enough;
  }
  return passed;
}

// "name=value".
std::pair<std::string, double> option_of(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos)
    throw std::runtime_error("--set: found '" + text + "', expected name=value");
  return {text.substr(0, equals), std::stod(text.substr(equals + 1))};
}

}  // namespace

int main(int argc, char** argv) {
  std::uint64_t first_seed = 1, seeds = 10;
  std::int64_t steps = 0, check_every = 0;
  std::uint32_t agents = 0;
  std::uint32_t length = 0;
  std::string learner, game, report_path;
  bool curve = false;
  std::vector<std::string> only, set, set_shown, set_signals;
  CLI::App app{
      "Trains the plugin's learners through the C interface on device cpu and prints figures against bars."};
  app.add_option("--seeds", seeds, "number of seeds")->check(CLI::Range(1, 1000))->capture_default_str();
  app.add_option("--first-seed", first_seed, "the first seed")->capture_default_str();
  app.add_option("--learner", learner, "only rows of this learner: dqn, ppo, sac, bandit, feedback");
  app.add_option("--game", game, "only rows of this game: " + std::string(imprint::trials::kGameNames));
  app.add_option("--steps", steps, "decisions of all agents instead of the row's");
  app.add_option("--check-every", check_every, "decisions between checks instead of the row's");
  app.add_option("--agents", agents, "bodies that share the brain instead of one");
  app.add_option("--length", length, "of the maze's corridor instead of the row's");
  app.add_option("--set", set,
                 "an option of the learner or of its network instead of the row's: learning_rate=0.001");
  app.add_option("--set-shown", set_shown, "the same of imp_demonstration_options");
  app.add_option("--set-signal", set_signals, "the same of imp_signal_options");
  app.add_option("--report", report_path,
                 "write every check to this CSV file: row, seed, decisions, greedy, played");
  app.add_flag("--curve", curve, "print every check: decisions, greedy, played");
  std::string keys;
  for (const Row& row : rows()) keys += row.key + " ";
  app.add_option("rows", only,
                 keys + imprint::trials::kCarelessRows + " " + imprint::trials::kGateRows + "; default: all");
  CLI11_PARSE(app, argc, argv);
  try {
    std::FILE* report = report_path.empty() ? nullptr : std::fopen(report_path.c_str(), "w");
    if (!report_path.empty() && !report) throw std::runtime_error("--report: cannot write " + report_path);
    if (report) std::fputs("row,seed,decisions,greedy,played\n", report);
    bool passed = true;
    for (Row row : rows()) {
      if (!only.empty() && std::ranges::find(only, row.key) == only.end()) continue;
      if (!learner.empty() && row.trial.learner != learner) continue;
      if (!game.empty() && row.trial.game != game) continue;
      if (steps > 0) row.trial.steps = steps;
      if (check_every > 0) row.trial.check_every = check_every;
      if (agents > 0) row.trial.agents = agents;
      if (length > 0) row.trial.length = length;
      const auto put = [](const std::vector<std::string>& given, std::map<std::string, double>& into) {
        for (const std::string& one : given) {
          const auto [name, value] = option_of(one);
          into[name] = value;
        }
      };
      put(set, row.trial.options);
      put(set_shown, row.trial.shown_options);
      put(set_signals, row.trial.signals);
      passed = run(row, first_seed, seeds, curve, report) && passed;
    }
    if (report) std::fclose(report);
    if (learner.empty() && game.empty())
      passed = imprint::trials::print_careless_rows(only, first_seed, seeds) && passed;
    if (learner.empty() && game.empty())
      passed = imprint::trials::print_gate_rows(only, first_seed, seeds, steps) && passed;
    return passed ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "abi_table: %s\n", error.what());
    return 2;
  }
}
