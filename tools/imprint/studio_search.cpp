// Searches settings of a game in the studio. A trial is a run with options of its own; a trial that goes on
// resumes from its checkpoint.
//
//   random      trials with drawn options
//   grid        every combination of the lists
//   halving     after each round the better half goes on, each with twice the steps. Jamieson, Talwalkar,
//               Non-stochastic Best Arm Identification and Hyperparameter Optimization, 2016
//   population  after each round the worst quarter goes on from copies of the best, with changed options.
//               Jaderberg et al., Population Based Training of Neural Networks, 2017

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>

#include "compute/base/json.h"
#include "compute/base/quote.h"
#include "compute/base/text.h"
#include "compute/model/files/file.h"
#include "tools/imprint/studio_run.h"

namespace imprint::tools {
namespace {

namespace fs = std::filesystem;

struct SearchedOption {
  enum class Kind : std::uint8_t { uniform, log, list };
  std::string name;
  Kind kind = Kind::list;
  std::vector<double> numbers;  // low and high, or the list
};
constexpr std::uint64_t kMostSearchBytes = 32 << 10;

struct Trial {
  std::uint32_t number = 0;
  std::vector<double> values;  // of the options
  double score = -INFINITY;
  std::uint64_t steps = 0;
  int status = 0;
  bool goes_on = true;
};

Result<std::vector<SearchedOption>> read_options(const std::string& path) {
  const auto refuse = [&](const std::string& field, const std::string& found, const char* expected) {
    return make_error(ErrorCode::corrupt_file, text("--search: '", path, "': ", clipped(field), ": found ",
                                                    clipped(found), ", expected ", expected, "."));
  };
  // ordered_json compares each name with all of its object.
  const auto bytes = read_file(path, kMostSearchBytes);
  if (!bytes) return make_error(bytes.error().code, text("--search: ", bytes.error().message));
  const std::string_view content(reinterpret_cast<const char*>(bytes->data()), bytes->size());
  if (const auto sound = parse_json(content); !sound)
    return make_error(ErrorCode::corrupt_file, text("--search: '", path, "': ", sound.error().message, "."));
  const auto json = nlohmann::ordered_json::parse(content, nullptr, false);  // options keep their order
  if (!json.is_object() || json.empty())
    return refuse("file", "no options", "{\"--option\": {\"log\": [low, high]}, ...}");
  std::vector<SearchedOption> options;
  for (const auto& [name, given] : json.items()) {
    SearchedOption option{.name = name};
    nlohmann::ordered_json numbers;
    if (given.is_object() && given.size() == 1) {
      numbers = given.begin().value();
      const std::string kind = given.begin().key();
      if (kind == "uniform")
        option.kind = SearchedOption::Kind::uniform;
      else if (kind == "log")
        option.kind = SearchedOption::Kind::log;
      else if (kind != "grid")
        return refuse(name, given.dump(), "uniform, log or grid");
    }
    for (const auto& each : numbers)
      if (each.is_number()) option.numbers.push_back(each.get<double>());
    const bool range = option.kind != SearchedOption::Kind::list;
    if (!numbers.is_array() || option.numbers.size() != numbers.size() || option.numbers.empty() ||
        (range && option.numbers.size() != 2) ||
        (option.kind == SearchedOption::Kind::log && (option.numbers[0] <= 0 || option.numbers[1] <= 0)))
      return refuse(
          name, given.dump(),
          "{\"uniform\": [low, high]}, {\"log\": [low, high]} above 0, or {\"grid\": [number, ...]}");
    options.push_back(std::move(option));
  }
  return options;
}

double drawn(const SearchedOption& option, std::mt19937_64& random) {
  const double u = std::uniform_real_distribution<double>(0, 1)(random), low = option.numbers.front(),
               high = option.numbers.back();
  switch (option.kind) {
    case SearchedOption::Kind::uniform:
      return low + u * (high - low);
    case SearchedOption::Kind::log:
      return low * std::pow(high / low, u);
    case SearchedOption::Kind::list:
      break;
  }
  const auto index = static_cast<std::size_t>(u * static_cast<double>(option.numbers.size()));
  return option.numbers[std::min(index, option.numbers.size() - 1)];
}

// A neighbour in the list, or 0.8 or 1.25 times the number, within its range.
double changed(const SearchedOption& option, double value, std::mt19937_64& random) {
  const bool up = random() % 2 == 0;
  if (option.kind != SearchedOption::Kind::list) {
    const auto [low, high] = std::minmax(option.numbers[0], option.numbers[1]);
    return std::clamp(value * (up ? 1.25 : 0.8), low, high);
  }
  const auto at = std::ranges::find(option.numbers, value) - option.numbers.begin();
  const auto next = std::clamp<std::ptrdiff_t>(at + (up ? 1 : -1), 0, std::ssize(option.numbers) - 1);
  return option.numbers[static_cast<std::size_t>(next)];
}

// As the game reads it: whole numbers without a point.
std::string written(double value) {
  std::ostringstream stream;
  stream.precision(6);
  stream << value;
  return stream.str();
}

// Mean of the newest rows with episodes, of the evaluation games if there are any. Rows: report.cpp.
double score_of(const std::string& folder) {
  std::ifstream file(folder + "/curve.csv");
  std::vector<std::pair<double, double>> plain, evaluated;  // score and episodes
  std::string line;
  while (std::getline(file, line)) {
    std::vector<double> cells;
    std::stringstream row(line);
    for (std::string cell; std::getline(row, cell, ',');) cells.push_back(std::strtod(cell.c_str(), nullptr));
    if (cells.size() < 10) continue;
    if (cells[4] > 0) plain.emplace_back(cells[3], cells[4]);
    if (cells[9] > 0) evaluated.emplace_back(cells[8], cells[9]);
  }
  const auto& rows = evaluated.empty() ? plain : evaluated;
  double sum = 0, count = 0;
  for (std::size_t i =
           rows.size() - std::min<std::size_t>(rows.size(), std::max<std::size_t>(10, rows.size() / 10));
       i < rows.size(); ++i) {
    sum += rows[i].first * rows[i].second;
    count += rows[i].second;
  }
  return count > 0 ? sum / count : -INFINITY;
}

class Search {
 public:
  Search(StudioOptions options, StudioSearch search, std::vector<SearchedOption> searched)
      : options_(std::move(options)),
        search_(std::move(search)),
        searched_(std::move(searched)),
        random_(options_.seed) {}

  Result<> run() {
    IMPRINT_CHECK(make_trials());
    const bool staged = search_.how == "halving" || search_.how == "population";
    const std::uint32_t rounds = staged ? search_.rounds : 1;
    for (std::uint32_t round = 0; round < rounds; ++round) {
      const double share = search_.how == "halving" ? std::exp2(static_cast<double>(round) + 1 - rounds)
                                                    : (round + 1.0) / rounds;
      run_all(static_cast<std::uint64_t>(std::llround(share * static_cast<double>(options_.steps))));
      print(round + 1, rounds);
      if (round + 1 == rounds) break;
      if (search_.how == "halving") drop_worse_half();
      if (search_.how == "population") IMPRINT_CHECK(replace_worst());
    }
    return finish();
  }

 private:
  std::string folder_of(const Trial& trial) const { return text(options_.folder, "/trial-", trial.number); }

  Result<> make_trials() {
    std::size_t count = search_.trials;
    if (search_.how == "grid") {
      count = 1;
      for (const SearchedOption& option : searched_) {
        if (option.kind != SearchedOption::Kind::list)
          return make_error(
              ErrorCode::invalid_argument,
              text("--search: ", option.name, ": found a range, expected {\"grid\": [...]} for --how grid."));
        count *= option.numbers.size();
      }
      if (count > 10'000)
        return make_error(ErrorCode::invalid_argument,
                          text("--search: found ", count, " combinations, expected at most 10000."));
    }
    for (std::size_t i = 0; i < count; ++i) {
      Trial trial{.number = static_cast<std::uint32_t>(i + 1)};
      std::size_t rest = i;
      for (const SearchedOption& option : searched_) {
        if (search_.how == "grid") {
          trial.values.push_back(option.numbers[rest % option.numbers.size()]);
          rest /= option.numbers.size();
        } else {
          trial.values.push_back(drawn(option, random_));
        }
      }
      trials_.push_back(std::move(trial));
    }
    return {};
  }

  // Trials of one round, `parallel` at a time, each in a process of its own.
  void run_all(std::uint64_t steps) {
    std::vector<std::pair<pid_t, Trial*>> running;
    const auto wait_for_one = [&] {
      int status = 0;
      const pid_t ended = ::wait(&status);
      for (auto& [process, trial] : running)
        if (process == ended) {
          trial->status = WIFEXITED(status) ? WEXITSTATUS(status) : 1;
          trial->score = trial->status == 0 ? score_of(folder_of(*trial)) : -INFINITY;
        }
      std::erase_if(running, [&](const auto& each) { return each.first == ended; });
    };
    std::fflush(nullptr);
    for (Trial& trial : trials_) {
      if (!trial.goes_on) continue;
      if (running.size() >= search_.parallel) wait_for_one();
      trial.steps = steps;
      StudioOptions own = options_;
      own.folder = folder_of(trial);
      own.steps = steps;
      own.report_s = 0;
      for (std::size_t i = 0; i < searched_.size(); ++i)
        own.game.insert(own.game.end(), {searched_[i].name, written(trial.values[i])});
      std::error_code ignored;
      fs::create_directories(own.folder, ignored);
      const pid_t process = ::fork();
      if (process == 0) ::_exit(run_studio_apart(own, own.folder + "/log.txt"));
      running.emplace_back(process, &trial);
    }
    while (!running.empty()) wait_for_one();
  }

  std::vector<Trial*> ranked() {
    std::vector<Trial*> list;
    for (Trial& trial : trials_)
      if (trial.goes_on) list.push_back(&trial);
    std::ranges::stable_sort(list, [](const Trial* a, const Trial* b) { return a->score > b->score; });
    return list;
  }

  void drop_worse_half() {
    const std::vector<Trial*> list = ranked();
    for (std::size_t i = (list.size() + 1) / 2; i < list.size(); ++i) list[i]->goes_on = false;
  }

  Result<> replace_worst() {
    const std::vector<Trial*> list = ranked();
    const std::size_t quarter = list.size() / 4;
    for (std::size_t i = 0; i < quarter; ++i) {
      const Trial& from = *list[i];
      Trial& to = *list[list.size() - 1 - i];
      std::error_code error;
      fs::remove_all(folder_of(to), error);
      fs::copy(folder_of(from), folder_of(to), fs::copy_options::recursive, error);
      if (error)
        return make_error(ErrorCode::io, text("cannot copy '", folder_of(from), "': ", error.message()));
      for (std::size_t k = 0; k < searched_.size(); ++k)
        to.values[k] = changed(searched_[k], from.values[k], random_);
      std::printf("trial %u goes on from trial %u\n", to.number, from.number);
    }
    return {};
  }

  void print(std::uint32_t round, std::uint32_t rounds) {
    std::printf("round %u of %u:\n", round, rounds);
    for (const Trial* trial : ranked()) {
      std::printf("  trial %u: score %.4g after %llu steps:", trial->number, trial->score,
                  static_cast<unsigned long long>(trial->steps));
      for (std::size_t i = 0; i < searched_.size(); ++i)
        std::printf(" %s %s", searched_[i].name.c_str(), written(trial->values[i]).c_str());
      std::printf(trial->status == 0 ? "\n" : " failed: see its log.txt\n");
    }
    std::fflush(stdout);
  }

  Result<> finish() {
    const Trial& best = *ranked().front();
    std::ofstream table(options_.folder + "/search.csv");
    table << "trial,score,steps";
    for (const SearchedOption& option : searched_) table << "," << option.name;
    for (const Trial& trial : trials_) {
      table << "\n" << trial.number << "," << trial.score << "," << trial.steps;
      for (const double value : trial.values) table << "," << written(value);
    }
    table << "\n";
    std::error_code error;
    fs::copy_file(folder_of(best) + "/final.brain", options_.folder + "/final.brain",
                  fs::copy_options::overwrite_existing, error);
    if (best.status != 0 || error || !table.flush())
      return make_error(ErrorCode::io, text("no trial left a brain: see ", folder_of(best), "/log.txt"));
    std::printf("best: trial %u, score %.4g; its brain is %s/final.brain\n", best.number, best.score,
                options_.folder.c_str());
    return {};
  }

  StudioOptions options_;
  StudioSearch search_;
  std::vector<SearchedOption> searched_;
  std::mt19937_64 random_;
  std::vector<Trial> trials_;
};

}  // namespace

Result<> search_studio(const StudioOptions& options, const StudioSearch& search) {
  if (options.steps == 0)
    return make_error(ErrorCode::invalid_argument, "--steps: found 0, expected the steps of a whole trial.");
  IMPRINT_ASSIGN(std::vector<SearchedOption> searched, read_options(search.file));
  return Search(options, search, std::move(searched)).run();
}

}  // namespace imprint::tools
