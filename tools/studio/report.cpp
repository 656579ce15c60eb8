#include "tools/studio/report.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "compute/base/amount.h"
#include "compute/base/text.h"
#include "compute/model/files/event_file.h"

namespace imprint::studio {
namespace {

constexpr double kStraggles = 1.5;   // times the mean of all games
constexpr double kEventSeconds = 1;  // between events of a run that prints no lines

double report_seconds(std::chrono::steady_clock::time_point from, std::chrono::steady_clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

double wall_seconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace

Report::Report(ReportOptions options) : options_(std::move(options)) {
  curve_ = open(options_.curve_path);
  if (curve_ && std::ftell(curve_) == 0)
    std::fputs("exchange,steps,seconds,score,episodes,loss,plays_s,waits_s,evaluated,evaluations,lesson\n",
               curve_);
  events_ = open(options_.events_path);
  if (events_ && std::ftell(events_) == 0) {
    const std::string head = event_head(wall_seconds());
    std::fwrite(head.data(), 1, head.size(), events_);
  }
}

Report::~Report() {
  for (std::FILE* file : {curve_, events_})
    if (file) std::fclose(file);
}

// At its end. Null: it cannot be written.
std::FILE* Report::open(const std::string& path) {
  if (path.empty()) return nullptr;
  std::FILE* file = std::fopen(path.c_str(), "ab");
  if (file)
    std::fseek(file, 0, SEEK_END);
  else
    std::fprintf(stderr, "studio: cannot write '%s': %s. The run goes on.\n", path.c_str(),
                 std::strerror(errno));
  return file;
}

void Report::begin(std::uint64_t steps) {
  began_ = printed_ = Clock::now();
  first_steps_ = printed_steps_ = steps;
  if (options_.period_s > 0)
    std::puts(
        "At an exchange games share what they learned. waits, reduces: shares of time, for other games and "
        "for "
        "sums");
}

void Report::add(std::uint64_t exchanges, std::uint64_t steps, std::span<const Contribution> shares,
                 const std::string& lesson, const Figures& learned) {
  lesson_ = lesson;
  double evaluated_sum = 0, evaluated = 0;
  double score_sum = 0, episodes = 0, loss = 0, plays_s = 0, waits_s = 0;
  for (std::uint32_t rank = 0; rank < shares.size(); ++rank) {
    const Contribution& share = shares[rank];
    if (share.evaluates > 0) {
      evaluated_sum += share.score_sum;
      evaluated += share.episodes;
      continue;
    }
    evaluated_sum += share.evaluated_sum;
    evaluated += share.evaluations;
    score_sum += share.score_sum;
    episodes += share.episodes;
    loss += share.loss / options_.learners;
    plays_s += share.plays_s / options_.learners;
    waits_s += share.waits_s / options_.learners;
    reduces_s_ += share.reduces_s / options_.learners;
    rank_plays_s_.resize(shares.size());
    rank_plays_s_[rank] += share.plays_s;
  }
  score_sum_ += score_sum;
  episodes_ += episodes;
  loss_sum_ += loss;
  plays_s_ += plays_s;
  waits_s_ += waits_s;
  evaluated_sum_ += evaluated_sum;
  evaluated_ += evaluated;
  ++exchanges_since_;
  if (curve_)
    std::fprintf(curve_, "%llu,%llu,%.3f,%.4f,%.0f,%.6g,%.6f,%.6f,%.4f,%.0f,%s\n",
                 static_cast<unsigned long long>(exchanges), static_cast<unsigned long long>(steps),
                 std::chrono::duration<double>(Clock::now() - began_).count(),
                 episodes > 0 ? score_sum / episodes : 0.0, episodes, loss, plays_s, waits_s,
                 evaluated > 0 ? evaluated_sum / evaluated : 0.0, evaluated, lesson.c_str());
  if (!learned.empty()) learned_ = learned;
  const double period = options_.period_s > 0 ? options_.period_s : kEventSeconds;
  if (report_seconds(printed_, Clock::now()) >= period) report_line(exchanges, steps);
}

void Report::report_line(std::uint64_t exchanges, std::uint64_t steps) {
  if (episodes_ > 0) last_score_ = score_sum_ / episodes_;
  if (events_) write_event(steps);
  if (options_.period_s > 0) print(exchanges, steps);
  flush_curve();
  printed_ = Clock::now();
  printed_steps_ = steps;
  score_sum_ = episodes_ = loss_sum_ = plays_s_ = waits_s_ = reduces_s_ = evaluated_sum_ = evaluated_ = 0;
  std::ranges::fill(rank_plays_s_, 0.0);
  exchanges_since_ = 0;
}

double Report::speed(std::uint64_t steps) const {
  return static_cast<double>(steps - printed_steps_) / std::max(report_seconds(printed_, Clock::now()), 1e-6);
}

void Report::write_event(std::uint64_t steps) {
  EventValues event{.wall_s = wall_seconds(),
                    .step = static_cast<std::int64_t>(steps),
                    .values = std::exchange(learned_, {})};
  const auto put = [&](const char* name, double value) { event.values.emplace_back(name, value); };
  if (episodes_ > 0) put("score", last_score_);
  if (evaluated_ > 0) put("evaluated", evaluated_sum_ / evaluated_);
  const double all_s = std::max(plays_s_ + waits_s_ + reduces_s_, 1e-9);
  put("loss", loss_sum_ / std::max(exchanges_since_, 1u));
  put("steps_per_second", speed(steps));
  put("share_of_waits", waits_s_ / all_s);
  put("share_of_reduces", reduces_s_ / all_s);
  const std::string record = event_record(event);
  std::fwrite(record.data(), 1, record.size(), events_);
}

// " (41 %, 0:00:12 left)", by the speed since the start.
std::string Report::progress(std::uint64_t steps) const {
  if (options_.wanted_steps == 0 || steps <= first_steps_) return "";
  const double done = static_cast<double>(steps) / static_cast<double>(options_.wanted_steps);
  const double left = static_cast<double>(options_.wanted_steps - std::min(steps, options_.wanted_steps)) *
                      report_seconds(began_, Clock::now()) / static_cast<double>(steps - first_steps_);
  const auto seconds = static_cast<std::uint64_t>(std::min(left, 1e9));
  char words[64];
  std::snprintf(words, sizeof words, " (%.0f %%, %llu:%02llu:%02llu left)", 100 * std::min(done, 1.0),
                static_cast<unsigned long long>(seconds / 3600),
                static_cast<unsigned long long>(seconds / 60 % 60),
                static_cast<unsigned long long>(seconds % 60));
  return words;
}

void Report::print(std::uint64_t exchanges, std::uint64_t steps) {
  const double all_s = std::max(plays_s_ + waits_s_ + reduces_s_, 1e-9);
  std::printf(
      "exchange %5llu: %llu steps%s, %.0f/s; score %.4g of %.0f episodes; loss %.3g; waits %.0f %%, reduces "
      "%.0f %%\n",
      static_cast<unsigned long long>(exchanges), static_cast<unsigned long long>(steps),
      progress(steps).c_str(), speed(steps), last_score_, episodes_,
      loss_sum_ / std::max(exchanges_since_, 1u), 100 * waits_s_ / all_s, 100 * reduces_s_ / all_s);
  const double mean_s = plays_s_ / std::max(exchanges_since_, 1u);
  // Columns of some runs only are on a line of their own: the first one fits a terminal of 120 columns.
  std::string rest;
  const auto add_rest = [&](const std::string& words) { rest += (rest.empty() ? "" : "; ") + words; };
  char words[128];
  if (evaluated_ > 0) {
    std::snprintf(words, sizeof words, "evaluated %.4g of %.0f episodes", evaluated_sum_ / evaluated_,
                  evaluated_);
    add_rest(words);
  }
  if (!lesson_.empty()) add_rest("lesson " + lesson_);
  const auto slowest = std::ranges::max_element(rank_plays_s_);
  const double slowest_s = slowest == rank_plays_s_.end() ? 0 : *slowest / std::max(exchanges_since_, 1u);
  if (options_.learners > 1 && slowest_s > kStraggles * mean_s) {
    std::snprintf(words, sizeof words, "slowest: rank %td, %.3g s per exchange, mean %.3g s",
                  slowest - rank_plays_s_.begin(), slowest_s, mean_s);
    add_rest(words);
  }
  if (!rest.empty()) std::printf("    %s\n", rest.c_str());
  std::fflush(stdout);
}

void Report::end(std::uint64_t exchanges, std::uint64_t steps) {
  if (exchanges_since_ > 0) report_line(exchanges, steps);
  const double seconds = std::max(std::chrono::duration<double>(Clock::now() - began_).count(), 1e-6);
  if (options_.period_s > 0)
    std::printf("done: %s of %s in %.2f s, %.0f per second; score %.4g%s\n",
                amount(steps - first_steps_, "step").c_str(), amount(options_.games, "game").c_str(), seconds,
                static_cast<double>(steps - first_steps_) / seconds, last_score_,
                first_steps_ > 0 ? text("; ", steps, " steps with those before this start").c_str() : "");
  std::fflush(stdout);
  flush_curve();
}

void Report::flush_curve() {
  flush(curve_, options_.curve_path);
  flush(events_, options_.events_path);
}

void Report::flush(std::FILE* file, const std::string& path) {
  if (!file || std::fflush(file) == 0 || std::exchange(told_problem_, true)) return;
  std::fprintf(stderr, "studio: cannot write '%s': %s. Free some space on that disk; the run goes on.\n",
               path.c_str(), std::strerror(errno));
}

}  // namespace imprint::studio
