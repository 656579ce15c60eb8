#pragma once
// A run on the terminal: progress, curves and a table of metrics that stay in place. Without a terminal, the
// lines of line_of().
//
//   training::StopSignal stop;  // Ctrl-C saves and stops
//   training::Dashboard dashboard;
//   training::Trainer trainer(session, model, state, optimiser,
//                             {.report_every = 10, .report = std::ref(dashboard), .stop = stop.flag()});

#include <cstdio>
#include <span>
#include <string>
#include <vector>

#include "compute/training/trainer.h"

namespace imprint::training {

// The last values as columns of eight heights, such as "▁▃▆█"; at most `columns` of them.
std::string sparkline(std::span<const double> values, std::size_t columns);

class Dashboard {
 public:
  // out: a terminal, or a file for plain lines.
  explicit Dashboard(std::FILE* out = stdout);

  // For TrainerOptions::report, by std::ref.
  void operator()(const Report& report);
  // The lines that a terminal shows, without control codes, after this report.
  std::vector<std::string> lines(const Report& report, std::size_t columns);

 private:
  std::FILE* out_;
  bool is_terminal_;
  std::size_t shown_ = 0;  // lines on the terminal
  std::vector<double> training_, validation_;
  Scores last_validation_;
};

}  // namespace imprint::training
