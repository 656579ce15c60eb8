#include "tools/studio/report.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "compute/base/amount.h"

namespace imprint::studio {
namespace {

constexpr double kStraggles = 1.5;  // times the mean of all games

}  // namespace

Report::Report(std::uint32_t learners, std::uint32_t games, double period_s, const std::string& curve_path)
    : learners_(learners), games_(games), period_s_(period_s), curve_path_(curve_path) {
  if (curve_path.empty()) return;
  curve_ = std::fopen(curve_path.c_str(), "a");
  if (!curve_) {
    std::fprintf(stderr, "studio: cannot write '%s': %s. The run goes on.\n", curve_path.c_str(),
                 std::strerror(errno));
    return;
  }
  std::fseek(curve_, 0, SEEK_END);
  if (std::ftell(curve_) == 0)
    std::fputs("exchange,steps,seconds,score,episodes,loss,plays_s,waits_s,evaluated,evaluations,lesson\n",
               curve_);
}

Report::~Report() {
  if (curve_) std::fclose(curve_);
}

void Report::begin(std::uint64_t steps) {
  began_ = printed_ = Clock::now();
  first_steps_ = printed_steps_ = steps;
}

void Report::add(std::uint64_t exchanges, std::uint64_t steps, std::span<const Contribution> shares,
                 const std::string& lesson) {
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
    loss += share.loss / learners_;
    plays_s += share.plays_s / learners_;
    waits_s += share.waits_s / learners_;
    reduces_s_ += share.reduces_s / learners_;
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
  if (period_s_ > 0 && std::chrono::duration<double>(Clock::now() - printed_).count() >= period_s_)
    print(exchanges, steps);
}

void Report::print(std::uint64_t exchanges, std::uint64_t steps) {
  const Clock::time_point now = Clock::now();
  const double seconds = std::max(std::chrono::duration<double>(now - printed_).count(), 1e-6);
  if (episodes_ > 0) last_score_ = score_sum_ / episodes_;
  const double all_s = std::max(plays_s_ + waits_s_ + reduces_s_, 1e-9);
  std::printf(
      "exchange %6llu: %10llu steps, %7.0f per second; score %6.4g of %4.0f episodes; loss %9.3g; waits "
      "%2.0f "
      "%%, reduces %2.0f %%\n",
      static_cast<unsigned long long>(exchanges), static_cast<unsigned long long>(steps),
      static_cast<double>(steps - printed_steps_) / seconds, last_score_, episodes_,
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
  if (learners_ > 1 && slowest_s > kStraggles * mean_s) {
    std::snprintf(words, sizeof words, "slowest: rank %td, %.3g s for a share of %.3g s",
                  slowest - rank_plays_s_.begin(), slowest_s, mean_s);
    add_rest(words);
  }
  if (!rest.empty()) std::printf("    %s\n", rest.c_str());
  std::fflush(stdout);
  flush_curve();
  printed_ = now;
  printed_steps_ = steps;
  score_sum_ = episodes_ = loss_sum_ = plays_s_ = waits_s_ = reduces_s_ = evaluated_sum_ = evaluated_ = 0;
  std::ranges::fill(rank_plays_s_, 0.0);
  exchanges_since_ = 0;
}

void Report::end(std::uint64_t exchanges, std::uint64_t steps) {
  if (period_s_ > 0 && exchanges_since_ > 0) print(exchanges, steps);
  const double seconds = std::max(std::chrono::duration<double>(Clock::now() - began_).count(), 1e-6);
  if (period_s_ > 0)
    std::printf("done: %s of %s in %.2f s, %.0f per second; score %.4g\n",
                amount(steps - first_steps_, "step").c_str(), amount(games_, "game").c_str(), seconds,
                static_cast<double>(steps - first_steps_) / seconds, last_score_);
  std::fflush(stdout);
  flush_curve();
}

void Report::flush_curve() {
  if (!curve_ || std::fflush(curve_) == 0 || std::exchange(told_problem_, true)) return;
  std::fprintf(stderr, "studio: cannot write '%s': %s. Free some space on that disk; the run goes on.\n",
               curve_path_.c_str(), std::strerror(errno));
}

}  // namespace imprint::studio
