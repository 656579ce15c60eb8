#include "tests/learning/abi_report.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <ctime>
#include <exception>
#include <fstream>
#include <functional>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>
#include <thread>

#include "compute/base/text.h"

namespace imprint::trials {
namespace {

using Task = std::function<void()>;

// Runs tasks on threads; the first failure ends the rest.
void run_all(std::vector<Task> tasks, std::uint32_t jobs) {
  std::atomic<std::size_t> next{0};
  std::mutex mutex;
  std::exception_ptr failure;
  const auto work = [&] {
    for (std::size_t i = next++; i < tasks.size(); i = next++) {
      try {
        tasks[i]();
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (!failure) failure = std::current_exception();
        next = tasks.size();
      }
    }
  };
  std::vector<std::thread> threads;
  for (std::uint32_t i = 1; i < jobs; ++i) threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();
  if (failure) std::rethrow_exception(failure);
}

class Report {
 public:
  explicit Report(const std::string& path) {
    if (path.empty()) return;
    const bool is_new = !std::ifstream(path).good();
    file_.open(path, std::ios::app);
    if (!file_) throw std::runtime_error("--report: cannot write " + path);
    if (is_new) file_ << "row,seed,at,greedy,played,bound,warnings\n";
  }
  void add(const std::string& row, std::uint64_t seed, double at, double greedy, double played, double bound,
           std::size_t warnings) {
    if (!file_.is_open()) return;
    file_ << row << ',' << seed << ',' << at << ',' << greedy << ',' << played << ',' << bound << ','
          << warnings << '\n';
  }
  void flush() { file_.flush(); }

 private:
  std::ofstream file_;
};

std::string percent(double share) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f %%", 100 * share);
  return text;
}

std::string two(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", value);
  return text;
}

// "1 to 10", or each.
template <class Seeds>
std::string seeds_of(const Seeds& of) {
  if (of.empty()) return "";
  const std::uint64_t first = of.begin()->first, last = of.rbegin()->first;
  if (last - first + 1 == of.size() && of.size() > 1) return text(first, " to ", last);
  std::string all;
  for (const auto& [seed, curve] : of) all += (all.empty() ? "" : ", ") + std::to_string(seed);
  return all;
}

void judge_row(const AbiRow& row, const std::map<std::uint64_t, AbiCurve>& curves,
               std::vector<AbiVerdict>& verdicts) {
  const auto count = static_cast<double>(curves.size());
  for (const AbiBar& bar : row.bars) {
    const auto met = std::ranges::count_if(curves, [&](const auto& one) { return bar.meets(one.second); });
    AbiVerdict verdict{row.key, row.what, text(bar.what, ", ", 10 * bar.share, " of 10"),
                       text(met, " of ", curves.size()), seeds_of(curves)};
    verdict.met = static_cast<double>(met) >= bar.share * count - 1e-9;
    verdicts.push_back(verdict);
  }
  if (row.mean_at_end < -1e8) return;
  double mean = 0;
  for (const auto& [seed, curve] : curves) mean += curve.checks.back().greedy / count;
  verdicts.push_back({row.key, row.what, text("mean greedy >= ", row.mean_at_end, " at the end"), two(mean),
                      seeds_of(curves), mean >= row.mean_at_end});
}

void judge_lesson(const CarelessRow& row, const std::map<std::uint64_t, CarelessCurve>& curves,
                  std::vector<AbiVerdict>& verdicts) {
  const auto count = static_cast<double>(curves.size());
  for (std::size_t i = 0; i < row.bars.size(); ++i) {
    if (row.bars[i] == 0) continue;  // no bar at this check
    CarelessCheck mean;
    for (const auto& [seed, curve] : curves) {
      mean.minutes = curve.checks.at(i).minutes;
      mean.learner += curve.checks[i].learner / count;
      mean.ridge += curve.checks[i].ridge / count;
      mean.bayes += curve.checks[i].bayes / count;
    }
    AbiVerdict verdict{
        row.key, row.what,
        text("right after ", two(mean.minutes), " minutes: ", percent(row.bars[i]),
             ", and above ridge regression"),
        text(percent(mean.learner), "; ridge ", percent(mean.ridge), "; bound ", percent(mean.bayes)),
        seeds_of(curves)};
    verdict.met = mean.learner >= row.bars[i] && mean.learner > mean.ridge;
    verdicts.push_back(verdict);
  }
}

void print_verdicts(const std::string& key, const std::vector<AbiVerdict>& verdicts) {
  for (const AbiVerdict& verdict : verdicts)
    if (verdict.key == key)
      std::printf("  %-60s %s  %s\n", verdict.bar.c_str(), verdict.found.c_str(),
                  verdict.met ? "met" : "MISSED");
}

}  // namespace

AbiResults run_rows(const std::vector<AbiRow>& rows, const std::vector<CarelessRow>& lessons,
                    const AbiRun& run) {
  AbiResults results;
  Report report(run.report);
  std::mutex mutex;
  std::vector<Task> tasks;
  const auto said = [](const std::string& key, std::uint64_t seed) {
    std::fprintf(stderr, "%s, seed %llu: done\n", key.c_str(), static_cast<unsigned long long>(seed));
  };
  for (const AbiRow& row : rows)
    for (std::uint64_t seed = run.first_seed; seed < run.first_seed + run.seeds; ++seed)
      tasks.emplace_back([&, row, seed] {
        AbiTrial trial = row.trial;
        trial.seed = seed;
        AbiCurve curve = run_abi_trial(trial);
        const std::lock_guard lock(mutex);
        for (const AbiCheck& check : curve.checks)
          report.add(row.key, seed, static_cast<double>(check.steps), check.greedy, check.played, 0,
                     curve.log.size());
        report.flush();
        said(row.key, seed);
        results.curves[row.key][seed] = std::move(curve);
      });
  for (const CarelessRow& row : lessons)
    for (std::uint64_t seed = run.first_seed; seed < run.first_seed + run.seeds; ++seed)
      tasks.emplace_back([&, row, seed] {
        CarelessPerson person = row.person;
        person.seed = seed;
        CarelessCurve curve{teach_carelessly(person)};
        const std::lock_guard lock(mutex);
        for (const CarelessCheck& check : curve.checks)
          report.add(row.key, seed, check.minutes, check.learner, check.ridge, check.bayes, 0);
        report.flush();
        said(row.key, seed);
        results.lessons[row.key][seed] = std::move(curve);
      });
  run_all(std::move(tasks), run.jobs);
  return results;
}

void read_report(const std::string& path, AbiResults& results) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error("--from: cannot read " + path);
  std::vector<std::string> lesson_keys;
  for (const CarelessRow& row : careless_rows()) lesson_keys.push_back(row.key);
  std::string line;
  std::getline(file, line);
  while (std::getline(file, line)) {
    std::vector<std::string> cells;
    std::istringstream parts(line);
    for (std::string cell; std::getline(parts, cell, ',');) cells.push_back(cell);
    if (cells.size() != 7)
      throw std::runtime_error(text("--from: ", path, ": found the line '", line, "', expected 7 columns"));
    const std::uint64_t seed = std::stoull(cells[1]);
    const double at = std::stod(cells[2]), greedy = std::stod(cells[3]), played = std::stod(cells[4]);
    if (std::ranges::find(lesson_keys, cells[0]) != lesson_keys.end()) {
      CarelessCheck check;
      check.minutes = at;
      check.learner = greedy;
      check.ridge = played;
      check.bayes = std::stod(cells[5]);
      results.lessons[cells[0]][seed].checks.push_back(check);
      continue;
    }
    AbiCurve& curve = results.curves[cells[0]][seed];
    curve.checks.push_back({static_cast<std::int64_t>(at), greedy, played});
    curve.log.resize(std::stoul(cells[6]));
  }
}

std::vector<AbiVerdict> judge(const std::vector<AbiRow>& rows, const std::vector<CarelessRow>& lessons,
                              const AbiResults& results) {
  std::vector<AbiVerdict> verdicts;
  for (const AbiRow& row : rows)
    if (const auto found = results.curves.find(row.key); found != results.curves.end())
      judge_row(row, found->second, verdicts);
  for (const CarelessRow& row : lessons)
    if (const auto found = results.lessons.find(row.key); found != results.lessons.end())
      judge_lesson(row, found->second, verdicts);
  return verdicts;
}

void print_rows(const std::vector<AbiRow>& rows, const std::vector<CarelessRow>& lessons,
                const AbiResults& results, const std::vector<AbiVerdict>& verdicts, bool every_check) {
  for (const AbiRow& row : rows) {
    const auto found = results.curves.find(row.key);
    if (found == results.curves.end()) continue;
    std::printf("%s: %s, %s, %lld decisions of %u agents\n", row.key.c_str(), row.trial.learner.c_str(),
                row.trial.game.c_str(), static_cast<long long>(row.trial.steps), row.trial.agents);
    for (const auto& [seed, curve] : found->second) {
      std::printf(
          "  seed %2llu: greedy best %.2f, at the end %.2f; played %.2f; used %llu, dropped %llu, late %llu; "
          "%llu minibatches, last loss %.4g; %.1f s\n",
          static_cast<unsigned long long>(seed), curve.best(), curve.checks.back().greedy,
          curve.checks.back().played, static_cast<unsigned long long>(curve.used),
          static_cast<unsigned long long>(curve.dropped), static_cast<unsigned long long>(curve.late),
          static_cast<unsigned long long>(curve.minibatches), static_cast<double>(curve.last_loss),
          curve.seconds);
      for (const std::string& line : curve.log)
        if (!line.empty()) std::printf("    log: %s\n", line.c_str());
      for (const AbiCheck& check : curve.checks)
        if (every_check)
          std::printf("    %8lld %9.2f %9.2f\n", static_cast<long long>(check.steps), check.greedy,
                      check.played);
    }
    print_verdicts(row.key, verdicts);
  }
  for (const CarelessRow& row : lessons) {
    const auto found = results.lessons.find(row.key);
    if (found == results.lessons.end()) continue;
    std::printf("%s: %s\n", row.key.c_str(), row.what.c_str());
    for (const auto& [seed, curve] : found->second) {
      std::printf("  seed %2llu:", static_cast<unsigned long long>(seed));
      for (const CarelessCheck& check : curve.checks)
        std::printf("  %2.0f min: %s right, ridge %s, known from %u words %s, reliability %.2f;",
                    check.minutes, percent(check.learner).c_str(), percent(check.ridge).c_str(), check.words,
                    percent(check.bayes).c_str(), check.reliability);
      std::printf("\n");
    }
    print_verdicts(row.key, verdicts);
  }
}

void write_table(const std::string& path, const std::vector<AbiVerdict>& verdicts) {
  nlohmann::ordered_json table;
  table["device"] = "cpu";
  const std::time_t now = std::time(nullptr);
  char date[16];
  std::strftime(date, sizeof date, "%Y-%m-%d", std::gmtime(&now));
  table["date"] = date;
  table["command"] = "tools/learning abi --first-seed SEED ROW";
  table["left"] = 3;
  table["columns"] = {"row", "task", "bar", "found", "seeds", "met"};
  for (const AbiVerdict& verdict : verdicts)
    table["rows"].push_back({"`" + verdict.key + "`", verdict.what, verdict.bar, verdict.found, verdict.seeds,
                             verdict.met ? "yes" : "no"});
  std::ofstream file(path);
  file << table.dump(1) << "\n";
  if (!file) throw std::runtime_error("--table: cannot write " + path);
}

}  // namespace imprint::trials
