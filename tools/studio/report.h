#pragma once
// The dashboard, as plain lines on stdout, and the curve. Rank 0. A full disk costs rows of the curve, and is
// told once.

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <span>
#include <string>
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

class Report {
 public:
  // learners: ranks that learn. games: those that play for them.
  Report(std::uint32_t learners, std::uint32_t games, double period_s, const std::string& curve_path);
  ~Report();
  Report(const Report&) = delete;
  Report& operator=(const Report&) = delete;

  void begin(std::uint64_t steps);
  void add(std::uint64_t exchanges, std::uint64_t steps, std::span<const Contribution> shares,
           const std::string& lesson);
  void end(std::uint64_t exchanges, std::uint64_t steps);
  void flush_curve();  // before a checkpoint: its row is there when a game dies behind it

 private:
  using Clock = std::chrono::steady_clock;
  void print(std::uint64_t exchanges, std::uint64_t steps);

  const std::uint32_t learners_, games_;
  const double period_s_;
  const std::string curve_path_;
  std::FILE* curve_ = nullptr;
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
};

}  // namespace imprint::studio
