#include "tests/learning/learning.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <set>
#include <utility>

#include <unistd.h>

#include "samples/pet/yard/lessons.h"

namespace learning {
namespace {

using pet::Cue;
using pet::Report;
using pet::TeacherKind;

std::string percent(double share) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f %%", share * 100.0);
  return text;
}

std::string points(double share) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f points", share * 100.0);
  return text;
}

double mean_at(const std::vector<Report>& reports, double seconds) {
  double sum = 0.0;
  for (const Report& report : reports)
    sum += static_cast<double>(pet::success_at(report.checks, seconds).value_or(0.0f));
  return sum / static_cast<double>(reports.size());
}

// Mean success of some tricks at each moment.
double tricks_at(const Report& report, double seconds, const std::vector<Cue>& tricks) {
  double sum = 0.0;
  for (const pet::Check& check : report.checks) {
    if (check.seconds > seconds + 1e-6) break;
    sum = 0.0;
    for (const Cue cue : tricks) sum += static_cast<double>(check.per_trick[pet::trick_index(cue)]);
  }
  return sum / static_cast<double>(tricks.size());
}

std::string temporary(const char* what) {
  return (std::filesystem::temp_directory_path() /
          ("imprint-learning-" + std::to_string(getpid()) + "-" + what))
      .string();
}

// Without a game the experiments have no result.
template <class T>
T expect(pet::Result<T> result) {
  if (result) return std::move(*result);
  std::fprintf(stderr, "learning: %s\n", result.error().message.c_str());
  std::exit(2);
}

void expect(const pet::Result<>& status) {
  if (status) return;
  std::fprintf(stderr, "learning: %s\n", status.error().message.c_str());
  std::exit(2);
}

}  // namespace

pet::Result<Table> Table::create(const Plan& plan) {
  if (plan.device == "cpu") return Table(plan, nullptr);
  pet::VulkanOptions options;
  options.device = plan.device;
  options.validation = plan.validation;
  PET_ASSIGN(std::unique_ptr<pet::VulkanHost> host, pet::VulkanHost::create(options));
  return Table(plan, std::move(host));
}

pet::Options Table::options(std::uint64_t seed, TeacherKind teacher, double seconds) const {
  pet::Options options;
  options.headless = true;
  options.seed = seed;
  options.teacher = teacher;
  options.seconds = seconds;
  options.ghost = false;
  if (!host_) options.access = pet::Access::cpu;
  return options;
}

Table::Played Table::play(pet::Options options, const Between& between) {
  const auto run = expect(pet::Run::create(
      host_.get(), options, [this](const std::string& message) { complaints_.push_back(message); }));
  while (!run->game().finished()) {
    expect(run->frame());
    if (between) between(run->game());
  }
  Played played;
  played.exam = run->game().exam_decisions();
  played.report = expect(run->finish());
  return played;
}

std::vector<Report> Table::play_seeds(TeacherKind teacher, double seconds, pet::Learner learner) {
  std::vector<Report> reports;
  for (std::uint64_t seed = plan_.first_seed; seed <= plan_.last_seed(); ++seed) {
    pet::Options wanted = options(seed, teacher, seconds);
    wanted.learner = learner;
    reports.push_back(play(wanted).report);
    const Report& report = reports.back();
    std::printf("    %-9s %-9s seed %2llu:", pet::name(teacher), pet::name(learner),
                static_cast<unsigned long long>(seed));
    for (const pet::Check& check : report.checks)
      std::printf(" %3.0f", static_cast<double>(check.success) * 100.0);
    if (report.held_90_at_s) {
      std::printf("   held 90 %% at %.0f s\n", *report.held_90_at_s);
    } else {
      std::printf("\n");
    }
    std::fflush(stdout);
  }
  return reports;
}

void Table::row(const std::string& experiment, const std::string& measured, const std::string& bar,
                bool passed) {
  rows_.push_back({experiment, measured, bar, passed});
  std::printf("%-58s %-22s %-18s %s\n", experiment.c_str(), measured.c_str(), bar.c_str(),
              passed ? "pass" : "FAIL");
  std::fflush(stdout);
}

void Table::at_least(const std::string& experiment, double value, double bar) {
  row(experiment, percent(value), ">= " + percent(bar), value >= bar - 1e-9);
}

void Table::learning_off() {
  // The control: the same commands and the same praise, for as long as the longest lesson.
  const double seconds = plan_.fast ? 30.0 : 300.0;
  const std::vector<Report> reports = play_seeds(TeacherKind::off, seconds);
  float most = 0.0f;
  std::size_t within = 0;
  std::uint64_t minibatches = 0;
  for (const Report& report : reports) {
    float of_seed = 0.0f;
    for (const pet::Check& check : report.checks) of_seed = std::max(of_seed, check.success);
    most = std::max(most, of_seed);
    if (of_seed <= 0.2f + 1e-6f) ++within;
    minibatches += report.minibatches;
  }
  row("learning off: seeds that stay <= 20 % for the whole " + std::to_string(static_cast<int>(seconds)) +
          " s",
      std::to_string(within) + " (highest " + percent(static_cast<double>(most)) + ")",
      std::to_string(reports.size()), within == reports.size());
  row("learning off: minibatches", std::to_string(minibatches), "0", minibatches == 0);
}

void Table::demonstration() {
  const std::vector<Report> reports = play_seeds(TeacherKind::demo, plan_.fast ? 60.0 : 180.0);
  at_least("1 demonstration + praise and scolding: 60 s", mean_at(reports, 60.0), 0.85);
  if (plan_.fast) return;
  at_least("1 demonstration + praise and scolding: 180 s", mean_at(reports, 180.0), 0.92);
  double latest = 0.0;
  std::size_t held = 0;
  for (const Report& report : reports) {
    if (!report.held_90_at_s) continue;
    latest = std::max(latest, *report.held_90_at_s);
    if (*report.held_90_at_s <= 150.0) ++held;
  }
  row("1 demonstration: seeds that hold 90 % within 150 s",
      std::to_string(held) + " (last at " + std::to_string(static_cast<int>(latest)) + " s)",
      std::to_string(reports.size()), held == reports.size());
}

void Table::praise_only() {
  const std::vector<Report> reports = play_seeds(TeacherKind::praise, 300.0);
  at_least("praise and scolding only: 120 s", mean_at(reports, 120.0), 0.75);
  at_least("praise and scolding only: 180 s", mean_at(reports, 180.0), 0.85);
  const std::size_t held = static_cast<std::size_t>(std::count_if(
      reports.begin(), reports.end(), [](const Report& report) { return report.held_90_at_s.has_value(); }));
  const std::size_t bar = (reports.size() * 7 + 9) / 10;
  row("praise and scolding only: seeds that hold 90 % within 300 s",
      std::to_string(held) + " of " + std::to_string(reports.size()), ">= " + std::to_string(bar),
      held >= bar);
}

void Table::careless() {
  at_least("careless player, 2 demonstrations: 120 s",
           mean_at(play_seeds(TeacherKind::careless, 120.0), 120.0), 0.85);
}

void Table::wrong_words() {
  std::vector<Report> reports;
  for (std::uint64_t seed = plan_.first_seed; seed <= plan_.last_seed(); ++seed) {
    pet::Options wanted = options(seed, TeacherKind::demo, 180.0);
    wanted.plan = {{{pet::kTricks.begin(), pet::kTricks.end()}, 180.0, 0.2f}};
    reports.push_back(play(wanted).report);
  }
  at_least("1 demonstration, one word in five wrong: 180 s", mean_at(reports, 180.0), 0.85);
}

void Table::retention() {
  const std::vector<Cue> first = {Cue::sit, Cue::come};
  double before = 0.0;
  double after = 0.0;
  for (std::uint64_t seed = plan_.first_seed; seed <= plan_.last_seed(); ++seed) {
    pet::Options wanted = options(seed, TeacherKind::praise, 300.0);
    wanted.plan = {{first, 120.0, {}}, {{Cue::spin, Cue::fetch, Cue::bed}, 300.0, {}}};
    const Report report = play(wanted).report;
    before += tricks_at(report, 120.0, first) / static_cast<double>(plan_.seeds);
    after += tricks_at(report, 300.0, first) / static_cast<double>(plan_.seeds);
  }
  row("sit and come after 180 s of other lessons", percent(before) + " -> " + percent(after),
      "drop <= 5 points", before - after <= 0.05 + 1e-9);
}

void Table::save_and_load() {
  const std::string file = temporary("saved.imprint");
  std::size_t same = 0;
  std::size_t same_submitting = 0;
  for (std::uint64_t seed = plan_.first_seed; seed <= plan_.last_seed(); ++seed) {
    pet::Options wanted = options(seed, TeacherKind::demo, plan_.fast ? 20.0 : 60.0);
    wanted.save = file;
    const Played taught = play(wanted);
    pet::Options again = options(seed, TeacherKind::off, pet::kStepSeconds);
    again.load = file;
    const Played remembered = play(again);
    if (taught.exam == remembered.exam) ++same;
    if (host_) again.access = pet::Access::submit;
    if (play(again).exam == taught.exam) ++same_submitting;
  }
  std::filesystem::remove(file);
  const std::string all = std::to_string(plan_.seeds);
  row("saved, quit, loaded: same actions in 100 trials", std::to_string(same) + " of " + all + " seeds", all,
      same == plan_.seeds);
  if (host_)
    row("the same, loaded by a game that submits", std::to_string(same_submitting) + " of " + all + " seeds",
        all, same_submitting == plan_.seeds);
}

void Table::undo() {
  // A minute of good lessons, a snapshot, a minute with a teacher whose feedback has the wrong sign, then
  // undo. Learning pauses during each examination, so that the brain does not change meanwhile.
  double before = 0.0;
  double spoiled = 0.0;
  double worst = 0.0;
  for (std::uint64_t seed = plan_.first_seed; seed <= plan_.last_seed(); ++seed) {
    pet::Options wanted = options(seed, TeacherKind::demo, 120.0);
    wanted.plan = {{{pet::kTricks.begin(), pet::kTricks.end()}, 61.0, {}},
                   {{Cue::sit, Cue::come, Cue::bed}, 150.0, 1.0f}};
    std::set<int> done;
    const auto once = [&](int what, bool due, const std::function<void()>& act) {
      if (due && done.insert(what).second) act();
    };
    const Report report =
        play(wanted, [&](pet::Game& game) {
          const double now = game.time_s();
          once(0, now >= 59.0, [&] {
            game.input(pet::signal(pet::SignalKind::learning, 0));
            game.input(pet::signal(pet::SignalKind::snapshot));
          });
          once(1, now >= 61.0, [&] { game.input(pet::signal(pet::SignalKind::learning, 1)); });
          once(2, now >= 106.0, [&] { game.input(pet::signal(pet::SignalKind::learning, 0)); });
          once(3, now >= 107.0, [&] { game.input(pet::signal(pet::SignalKind::undo)); });
        }).report;
    const auto at = [&](double seconds) {
      return static_cast<double>(pet::success_at(report.checks, seconds).value_or(0.0f));
    };
    before += at(60.0) / static_cast<double>(plan_.seeds);
    spoiled += at(105.0) / static_cast<double>(plan_.seeds);
    worst = std::max(worst, std::abs(at(120.0) - at(60.0)));
  }
  row("a bad lesson does harm", percent(before) + " -> " + percent(spoiled), "a drop",
      spoiled < before - 0.05);
  row("undo: largest difference to before the bad lesson", points(worst), "<= 2.0 points",
      worst <= 0.02 + 1e-9);
}

void Table::then() {
  // The ghost shows a memory of the pet, then the untaught pet again. Counts the commands that each follows.
  const std::string folder = temporary("memories");
  std::filesystem::create_directory(folder);
  pet::Options wanted = options(1, TeacherKind::demo, 90.0);
  wanted.ghost = true;
  wanted.memories = folder;
  struct Count {
    double good = 0.0, all = 0.0;
    double share() const { return all > 0.0 ? good / all : 0.0; }
  };
  std::array<Count, 3> counts;  // before, as the memory, after
  std::size_t part = 0;
  bool asked = false, was_over = true;
  double command_s = -1.0;
  play(wanted, [&](pet::Game& game) {
    const double now = game.time_s();
    if (!asked && now >= 30.0) {
      game.input(pet::signal(pet::SignalKind::snapshot));
      asked = true;
    }
    if (part == 0 && !game.overlay().snapshots.empty()) game.show_then(0);
    if (part == 0 && game.overlay().then) part = 1;
    if (part == 1 && now >= 60.0) game.show_then(std::nullopt);
    if (part == 1 && !game.overlay().then) part = 2;
    const pet::WorldView& ghost = *game.ghost();
    if (ghost.cue != Cue::none && ghost.cue_since_s != command_s) {
      command_s = ghost.cue_since_s;
      counts[part].all += 1.0;
    }
    if (ghost.trial_over && !was_over && ghost.trial_success) counts[part].good += 1.0;
    was_over = ghost.trial_over;
  });
  std::filesystem::remove_all(folder);
  row("the ghost follows commands: untaught, as a memory, untaught",
      percent(counts[0].share()) + ", " + percent(counts[1].share()) + ", " + percent(counts[2].share()),
      "< 40, > 70, < 40 %",
      counts[0].share() < 0.4 && counts[1].share() > 0.7 && counts[2].share() < 0.4 && counts[2].all > 0.0);
}

void Table::same_hash() {
  struct Way {
    pet::Access access;
    std::uint32_t slice_us;
    std::uint32_t budget_us;
  };
  // On a fast GPU a minibatch takes 20 us: only smaller slices cut it.
  std::vector<Way> ways = {{pet::Access::record, 1000, 500},  {pet::Access::record, 5, 5},
                           {pet::Access::record, 0, 1000000}, {pet::Access::submit, 1000, 500},
                           {pet::Access::submit, 5, 5},       {pet::Access::submit, 0, 1000000}};
  // The CPU has budgets only. The small one is less than a minibatch takes.
  if (!host_) ways = {{pet::Access::cpu, 0, 500}, {pet::Access::cpu, 0, 40}, {pet::Access::cpu, 0, 1000000}};
  for (std::uint64_t seed = plan_.first_seed;
       seed < plan_.first_seed + (plan_.fast ? 1u : std::min<std::uint64_t>(plan_.seeds, 3)); ++seed) {
    std::set<std::string> hashes;
    std::vector<std::uint64_t> slices;
    for (const Way& way : ways) {
      pet::Options wanted = options(seed, TeacherKind::demo, plan_.fast ? 10.0 : 30.0);
      wanted.access = way.access;
      wanted.slice_us = way.slice_us;
      wanted.budget_us = way.budget_us;
      const Report report = play(wanted).report;
      hashes.insert(report.weights_hash);
      slices.push_back(report.slices);
    }
    const std::string of_seed = "seed " + std::to_string(seed) + ": ";
    row(of_seed + (host_ ? "record and submit, slices 5 us, 1 ms, unlimited"
                         : "budgets of 40 us, 500 us, unlimited"),
        std::to_string(hashes.size()) + " hash of " + std::to_string(ways.size()) + " runs", "1",
        hashes.size() == 1 && !hashes.contains(""));
    if (!host_) {
      row(of_seed + "slices with budgets of 40 us and unlimited",
          std::to_string(slices[1]) + ", " + std::to_string(slices[2]), "more", slices[1] > slices[2]);
      continue;
    }
    // Checks that the work was really cut in both modes; otherwise the row above proves nothing.
    row(of_seed + "slices of 5 us and unlimited, record; submit",
        std::to_string(slices[1]) + ", " + std::to_string(slices[2]) + "; " + std::to_string(slices[4]) +
            ", " + std::to_string(slices[5]),
        "more; more", slices[1] > slices[2] && slices[4] > slices[5]);
  }
}

void Table::replayed_log() {
  const std::string file = temporary("session.log");
  pet::Options wanted = options(1, TeacherKind::careless, plan_.fast ? 15.0 : 60.0);
  wanted.log = file;
  const std::string played = play(wanted).report.weights_hash;
  pet::Options again = options(99, TeacherKind::none, 0.0);
  again.replay = file;
  const std::string replayed = play(again).report.weights_hash;
  std::filesystem::remove(file);
  row("a session's log, played again", played == replayed ? "same hash" : "another hash", "same hash",
      !played.empty() && played == replayed);
}

void Table::kennel() {
  pet::Options wanted = options(1, TeacherKind::demo, plan_.fast ? 20.0 : 60.0);
  wanted.kennel = 8;
  const Report report = play(wanted).report;
  at_least("kennel of 8, each taught by its own teacher: " +
               std::to_string(static_cast<int>(wanted.seconds)) + " s",
           static_cast<double>(report.final_success), 0.85);
  // The first pet of a kennel learns like a single pet.
  wanted.kennel = 1;
  wanted.ghost = false;
  const Report alone = play(wanted).report;
  const double difference =
      std::abs(static_cast<double>(alone.final_success) - static_cast<double>(report.final_per_pet.front()));
  row("its first pet and one alone with that seed and teacher", points(difference), "<= 5.0 points",
      difference <= 0.05 + 1e-9);
}

// The other learners. Their success has no bar, but they must learn something.
void Table::learners() {
  const double seconds = plan_.fast ? 60.0 : 300.0;
  for (const pet::Learner learner : {pet::Learner::dqn, pet::Learner::coach, pet::Learner::ppo}) {
    const std::vector<Report> reports = play_seeds(TeacherKind::praise, seconds, learner);
    const double last = mean_at(reports, seconds);
    std::string measured;
    for (const double at : {60.0, 120.0, 180.0, 300.0}) {
      if (at <= seconds) measured += (measured.empty() ? "" : ", ") + percent(mean_at(reports, at));
    }
    row(std::string("learner ") + pet::name(learner) +
            ", praise and scolding only: " + (plan_.fast ? "60 s" : "60, 120, 180, 300 s"),
        measured, "> 20 % at the end", last > 0.2);
  }
}

// Changes to an untaught brain of another learner and back, during play.
void Table::switched() {
  pet::Options wanted = options(1, TeacherKind::demo, 60.0);
  wanted.headless = false;  // with all minds, as in the window
  std::size_t sent = 0;
  const std::array<std::pair<double, pet::Learner>, 2> changes = {
      {{32.0, pet::Learner::coach}, {47.0, pet::Learner::feedback}}};
  const Report report =
      play(wanted, [&](pet::Game& game) {
        if (sent == changes.size() || game.time_s() < changes[sent].first) return;
        game.input(pet::signal(pet::SignalKind::learner, static_cast<std::uint64_t>(changes[sent++].second)));
      }).report;
  const auto at = [&](double time) {
    return static_cast<double>(pet::success_at(report.checks, time).value_or(0.0f));
  };
  row("another mind from 32 s to 47 s: success at 30, 45, 60 s",
      percent(at(30.0)) + ", " + percent(at(45.0)) + ", " + percent(at(60.0)), "> 80, < 60, > 80 %",
      at(30.0) > 0.8 && at(45.0) < 0.6 && at(60.0) > 0.8);
  const std::uint64_t stalls =
      report.frame_thread_compiles + report.frame_thread_allocations + report.frame_thread_waits;
  row("the same: compiles, allocations and waits of the frame thread", std::to_string(stalls), "0",
      stalls == 0);
}

bool Table::run() {
  enum class Fast { no, on_cpu, yes };  // as part of --fast
  struct Experiment {
    const char* name;
    void (Table::*run)();
    Fast fast;
  };
  const std::vector<Experiment> experiments = {
      {"off", &Table::learning_off, Fast::yes},    {"demo", &Table::demonstration, Fast::yes},
      {"praise", &Table::praise_only, Fast::no},   {"careless", &Table::careless, Fast::no},
      {"wrong", &Table::wrong_words, Fast::no},    {"retention", &Table::retention, Fast::no},
      {"save", &Table::save_and_load, Fast::yes},  {"undo", &Table::undo, Fast::no},
      {"then", &Table::then, Fast::yes},           {"hash", &Table::same_hash, Fast::yes},
      {"replay", &Table::replayed_log, Fast::yes}, {"kennel", &Table::kennel, Fast::yes},
      {"sofa", &Table::sofa, Fast::on_cpu},        {"lure", &Table::lure, Fast::on_cpu},
      {"learners", &Table::learners, Fast::no},    {"switch", &Table::switched, Fast::yes}};
  std::printf("%s, %s; seeds %llu to %llu\n", host_ ? host_->properties().deviceName : "CPU",
              host_ ? host_->driver_name().c_str() : "no GPU",
              static_cast<unsigned long long>(plan_.first_seed),
              static_cast<unsigned long long>(plan_.last_seed()));
  const auto start = std::chrono::steady_clock::now();
  for (const Experiment& experiment : experiments) {
    const bool named = std::find(plan_.only.begin(), plan_.only.end(), experiment.name) != plan_.only.end();
    const bool quick = experiment.fast == Fast::yes || (experiment.fast == Fast::on_cpu && !host_);
    if (plan_.only.empty() ? quick || !plan_.fast : named) (this->*experiment.run)();
  }
  std::printf("%.0f s\n", std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  if (!complaints_.empty())
    row("warnings of Imprint: \"" + complaints_.front() + "\"", std::to_string(complaints_.size()), "0",
        false);
  if (plan_.validation && host_) {
    row("messages of the validation layer", std::to_string(host_->validation_messages()), "0",
        host_->validation_messages() == 0);
  }
  return std::all_of(rows_.begin(), rows_.end(), [](const Row& row) { return row.passed; });
}

}  // namespace learning
