#pragma once
// The dashboard, as plain lines on stdout, and the curve: as a table, and for TensorBoard. Rank 0. A full
// disk costs rows of the curve, and is told once.

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace imprint::studio {

// One rank since the exchange before.
struct Contribution {
  double plays_s = 0, waits_s = 0, reduces_s = 0;
  double score_sum = 0, episodes = 0;
  double steps = 0;  // decisions since this start
  double loss = 0, stopped = 0, ends = 0, evaluates = 0;
  double evaluated_sum = 0, evaluations = 0;  // scores of a learner's actors that evaluate
  static constexpr std::size_t kNumbers = 12;
};

struct ReportOptions {
  std::uint32_t learners = 1, games = 1;  // ranks that learn; games that play for them
  double period_s = 1;                    // between lines; 0: none
  std::string curve_path, events_path;    // empty: none
  std::uint64_t wanted_steps = 0;         // of the run; 0: any
};

class Report {
 public:
  using Figures = std::vector<std::pair<std::string, double>>;

  explicit Report(ReportOptions options);
  ~Report();
  Report(const Report&) = delete;
  Report& operator=(const Report&) = delete;

  void begin(std::uint64_t steps);
  void add(std::uint64_t exchanges, std::uint64_t steps, std::span<const Contribution> shares,
           const std::string& lesson, const Figures& learned = {});
  void end(std::uint64_t exchanges, std::uint64_t steps);
  void flush_curve();  // before a checkpoint: its row is there when a game dies behind it

 private:
  using Clock = std::chrono::steady_clock;
  void report_line(std::uint64_t exchanges, std::uint64_t steps);
  void print(std::uint64_t exchanges, std::uint64_t steps);
  void write_event(std::uint64_t steps);
  double speed(std::uint64_t steps) const;  // steps per second since the newest line
  std::FILE* open(const std::string& path);
  std::string progress(std::uint64_t steps) const;
  void flush(std::FILE* file, const std::string& path);

  const ReportOptions options_;
  std::FILE *curve_ = nullptr, *events_ = nullptr;
  bool told_problem_ = false;  // of the curve
  Clock::time_point began_ = Clock::now(), printed_ = began_;
  std::uint64_t first_steps_ = 0, printed_steps_ = 0;
  // Since the newest line.
  double score_sum_ = 0, episodes_ = 0, loss_sum_ = 0, plays_s_ = 0, waits_s_ = 0, reduces_s_ = 0;
  std::vector<double> rank_plays_s_;
  std::uint32_t exchanges_since_ = 0;
  double evaluated_sum_ = 0, evaluated_ = 0;  // scores of the ranks that evaluate
  double last_score_ = 0;
  std::string lesson_;
  Figures learned_;  // since the newest line
};

}  // namespace imprint::studio
