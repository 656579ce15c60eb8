// The learners' table: games through the C interface on device cpu, with the learners' defaults unless an
// option is named. Exit status 1 when a bar is missed, 2 after an error. The program needs no Vulkan driver.

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tests/learning/abi_report.h"
#include "tests/learning/abi_rows.h"
#include "tests/learning/careless_person.h"

namespace {

using namespace imprint::trials;

struct Choice {
  std::uint64_t first_seed = 1, seeds = 10;
  std::int64_t steps = 0, check_every = 0;
  std::uint32_t agents = 0, length = 0, jobs = 1;
  std::string learner, game, report, table, device;
  bool curve = false;
  std::vector<std::string> rows, set, set_shown, set_signals, from;
};

// "name=value".
std::pair<std::string, double> option_of(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos)
    throw std::runtime_error("--set: found '" + text + "', expected name=value");
  return {text.substr(0, equals), std::stod(text.substr(equals + 1))};
}

bool is_chosen(const Choice& choice, const std::string& key) {
  return choice.rows.empty() || std::ranges::find(choice.rows, key) != choice.rows.end();
}

void put(const std::vector<std::string>& given, std::map<std::string, double>& into) {
  for (const std::string& one : given) {
    const auto [name, value] = option_of(one);
    into[name] = value;
  }
}

std::vector<AbiRow> chosen_rows(const Choice& choice) {
  std::vector<AbiRow> rows;
  for (AbiRow& row : abi_rows()) {
    if (!is_chosen(choice, row.key)) continue;
    if (!choice.learner.empty() && row.trial.learner != choice.learner) continue;
    if (!choice.game.empty() && row.trial.game != choice.game) continue;
    if (choice.steps > 0) row.trial.steps = choice.steps;
    if (choice.check_every > 0) row.trial.check_every = choice.check_every;
    if (choice.agents > 0) row.trial.agents = choice.agents;
    if (choice.length > 0) row.trial.length = choice.length;
    put(choice.set, row.trial.options);
    put(choice.set_shown, row.trial.shown_options);
    put(choice.set_signals, row.trial.signals);
    rows.push_back(std::move(row));
  }
  return rows;
}

std::vector<CarelessRow> chosen_lessons(const Choice& choice) {
  std::vector<CarelessRow> rows;
  if (!choice.learner.empty() || !choice.game.empty()) return rows;
  for (CarelessRow& row : careless_rows())
    if (is_chosen(choice, row.key)) rows.push_back(std::move(row));
  return rows;
}

void describe(CLI::App& app, Choice& choice) {
  app.add_option("--seeds", choice.seeds, "number of seeds")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_option("--first-seed", choice.first_seed, "the first seed")->capture_default_str();
  app.add_option("--jobs", choice.jobs, "seeds that run side by side, each in a thread")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  app.add_option("--learner", choice.learner,
                 "only rows of this learner: dqn, ppo, pqn, es, sac, bandit, feedback");
  app.add_option("--game", choice.game, "only rows of this game: " + std::string(kGameNames));
  app.add_option("--steps", choice.steps, "decisions of all agents instead of the row's");
  app.add_option("--check-every", choice.check_every, "decisions between checks instead of the row's");
  app.add_option("--agents", choice.agents, "bodies that share the brain instead of the row's");
  app.add_option("--length", choice.length,
                 "of the maze's corridor, or wheels of the lock, instead of the row's");
  app.add_option("--set", choice.set,
                 "an option of the learner or of its network instead of the row's: learning_rate=0.001");
  app.add_option("--set-shown", choice.set_shown, "the same of imp_demonstration_options");
  app.add_option("--set-signal", choice.set_signals, "the same of imp_signal_options");
  app.add_option("--report", choice.report, "append every check to this CSV file, each seed when it ends");
  app.add_option("--from", choice.from, "read seeds from such files instead of running them");
  app.add_option("--table", choice.table, "write rows and bars to this JSON file, for the pages");
  app.add_flag("--curve", choice.curve, "print every check: decisions, greedy, played");
  std::string keys;
  for (const AbiRow& row : abi_rows()) keys += row.key + " ";
  for (const CarelessRow& row : careless_rows()) keys += row.key + " ";
  app.add_option("rows", choice.rows, keys + "; default: all");
}

}  // namespace

int main(int argc, char** argv) {
  Choice choice;
  CLI::App app{
      "Trains the plugin's learners through the C interface on device cpu and prints figures against bars."};
  describe(app, choice);
  CLI11_PARSE(app, argc, argv);
  try {
    const std::vector<AbiRow> rows = chosen_rows(choice);
    const std::vector<CarelessRow> lessons = chosen_lessons(choice);
    AbiResults results;
    if (choice.from.empty())
      results = run_rows(rows, lessons, {choice.first_seed, choice.seeds, choice.jobs, choice.report});
    else
      for (const std::string& file : choice.from) read_report(file, results);
    const std::vector<AbiVerdict> verdicts = judge(rows, lessons, results);
    print_rows(rows, lessons, results, verdicts, choice.curve);
    if (!choice.table.empty()) write_table(choice.table, verdicts);
    return std::ranges::all_of(verdicts, &AbiVerdict::met) ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "abi_table: %s\n", error.what());
    return 2;
  }
}
